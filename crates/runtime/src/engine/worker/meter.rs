//! Time in the steps of one operator, measured at a cost below 1 %.

use onbeat_trace::Histogram;

/// Time that reading the clock may cost, as a part of the steps' time: one in this many.
const SHARE: u64 = 128;

/// Time to read the clock twice, in nanoseconds. A guess on the high side: the vDSO takes 20 to 25 ns on
/// current machines.
const CLOCK_NS: u64 = 50;

/// Cost of a timed pass through a chain besides reading the clock, in nanoseconds: direct hand-over ends,
/// chunks go over the edges, and times are noted for each operator.
const PASS_NS: u64 = 600;

/// Cost of a timed step that is also noted in the flight recorder, in nanoseconds, with the cache lines that
/// this takes. Four times the measured cost, as samples serve only statistics.
const NOTE_NS: u64 = 600;

/// Most steps from one timed step to the next: rare events should be seen within a second.
const MOST: u64 = 8192;

/// Times every n-th step, with n such that the clock costs less than 1 % of the steps' time. n varies a
/// little, so that the samples of an operator with a rhythm do not always meet the same beat.
#[derive(Debug)]
pub(crate) struct Meter {
    /// Durations of steps that were timed, but not noted in the flight recorder.
    pub histogram: Histogram,
    steps: u64,
    timed_steps: u64,
    timed_ns: u64,
    /// Whether steps are long, as the worker counts them.
    pub is_long: bool,
    /// Whether steps are slow, on a worker that hands out messages to others.
    pub is_slow: bool,
    /// Cost of timing a step.
    cost_ns: u64,
    /// Steps until the next timed step.
    left: u32,
    /// Whether each step is timed.
    is_exact: bool,
    /// If so: steps until the next one that would be timed as a sample.
    until_sample: u32,
    random: u32,
}

impl Meter {
    /// A meter for an operator; `noted` if timed steps are noted in a flight recorder.
    pub fn new(seed: u32, noted: bool) -> Self {
        Meter {
            histogram: Histogram::new(),
            steps: 0,
            timed_steps: 0,
            timed_ns: 0,
            is_long: false,
            is_slow: false,
            cost_ns: if noted { NOTE_NS } else { CLOCK_NS },
            left: 1,
            is_exact: false,
            until_sample: 0,
            random: seed.wrapping_mul(2) | 1,
        }
    }

    /// Counts further steps. Returns whether the next one is timed.
    #[inline]
    pub fn count(&mut self, steps: u32) -> bool {
        self.steps += u64::from(steps);
        self.left = self.left.saturating_sub(steps);
        self.left == 0
    }

    /// Counts further steps that could not have been timed.
    pub fn add(&mut self, steps: u64) {
        self.steps += steps;
    }

    /// Notes the duration of a step, except in the histogram. `exact` if the next step is timed, too.
    pub fn timed(&mut self, ns: u64, exact: bool) {
        self.timed_steps += 1;
        self.timed_ns += ns;
        self.is_exact = exact;
        self.left = if exact { 1 } else { self.interval() };
    }

    /// Whether the next step, which is timed, belongs to the sample.
    #[inline]
    pub fn is_sample(&mut self) -> bool {
        if !self.is_exact {
            return true;
        }
        let is_due = self.until_sample == 0;
        self.until_sample = if is_due { self.interval() } else { self.until_sample - 1 };
        is_due
    }

    /// Steps from one sample to the next.
    fn interval(&mut self) -> u32 {
        self.interval_for(self.cost_ns, self.mean_ns())
    }

    /// Passes from one timed pass to the next through operators of which this is the first, given the cost of
    /// timing all of them and the mean time of a pass.
    pub fn passes(&mut self, cost_ns: u64, mean_ns: u64) -> u32 {
        self.interval_for(cost_ns + PASS_NS, mean_ns)
    }

    fn interval_for(&mut self, cost_ns: u64, mean_ns: u64) -> u32 {
        let every = (cost_ns * SHARE / mean_ns.max(1)).clamp(1, MOST) as u32;
        // Marsaglia's xorshift with 13, 17, 5: plenty for "not always the same".
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        every - every / 4 + self.random % (every / 2 + 1)
    }

    /// Cost of timing a step, in nanoseconds.
    pub fn cost_ns(&self) -> u64 {
        self.cost_ns
    }

    /// Steps until the next timed step.
    #[inline]
    pub fn left(&self) -> u32 {
        self.left
    }

    /// Number of all steps, given those since the last count.
    pub fn steps(&self, since: u64) -> u64 {
        self.steps + since
    }

    /// Number of steps up to the last count.
    #[inline]
    pub fn steps_so_far(&self) -> u64 {
        self.steps
    }

    /// Whether the last step, or the mean of all timed steps, took longer than the limit.
    #[inline]
    pub fn is_above(&self, step_ns: u64, limit_ns: u64) -> bool {
        // Without a division, which would cost as much as the rest of a time stamp.
        step_ns > limit_ns || self.timed_ns > limit_ns.saturating_mul(self.timed_steps)
    }

    /// Mean of the timed steps, 0 if there are none.
    pub fn mean_ns(&self) -> u64 {
        self.timed_ns / self.timed_steps.max(1)
    }

    pub fn timed_steps(&self) -> u64 {
        self.timed_steps
    }

    /// Time in all `steps`, extrapolated from the timed steps.
    pub fn busy_ns(&self, steps: u64) -> u64 {
        if self.timed_steps == 0 {
            return 0;
        }
        (u128::from(self.timed_ns) * u128::from(steps) / u128::from(self.timed_steps)) as u64
    }
}
