//! Work of an operator per step: none, or arithmetic for a given time.

use onbeat_os::clock;
use std::hint::black_box;

/// Work done in each step.
pub(super) trait Effort: Copy + Send + 'static {
    fn spend(self);
}

/// No work, at no cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoEffort;

/// This many dependent rounds of arithmetic.
#[derive(Debug, Clone, Copy)]
pub(super) struct ArithmeticRounds(pub u64);

impl Effort for NoEffort {
    #[inline(always)]
    fn spend(self) {}
}

impl Effort for ArithmeticRounds {
    #[inline]
    fn spend(self) {
        let mut x = black_box(1_u64);
        for _ in 0..self.0 {
            x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
        black_box(x);
    }
}

impl ArithmeticRounds {
    /// Mean time of one call alone in nanoseconds, over this many calls.
    fn cost_ns(self, spendings: u64) -> f64 {
        let begin_ns = clock::monotonic_ns();
        for _ in 0..spendings {
            self.spend();
        }
        (clock::monotonic_ns() - begin_ns) as f64 / spendings as f64
    }

    /// Returns the number of rounds that take about `wanted_ns`.
    pub fn for_ns(wanted_ns: f64) -> ArithmeticRounds {
        // A few rounds overlap with their surroundings, so the cost of a round is measured among many.
        const MANY: u64 = 1000;
        let (few, many) = (ArithmeticRounds(0).cost_ns(2000), ArithmeticRounds(MANY).cost_ns(500));
        let round_ns = ((many - few) / MANY as f64).max(0.05);
        ArithmeticRounds((wanted_ns / round_ns).round().max(1.0) as u64)
    }
}
