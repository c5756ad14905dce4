//! What one operator's steps cost, at a price that does not show.

use onbeat_trace::Histogram;

/// Time that looking at the clock may cost, as a part of the step: one in this many.
const SHARE: u64 = 128;

/// Two looks at the clock, in nanoseconds. A guess on the high side: the vDSO takes 20 to 25 ns on current machines.
const LOOKS_NS: u64 = 50;

/// What a pass through several operators costs that is timed, besides the looks between them: those that go on from hand to hand
/// end, it goes over the edges, and what it took is noted for each.
const PASS_NS: u64 = 600;

/// The same for a sample that is noted, too, for whoever is to say why something was late, on another core: with the lines of cache
/// that this takes. Four times what it was measured at, as nobody asks for samples but for statistics.
const NOTE_NS: u64 = 600;

/// Most steps between two that are timed: rare events are to be seen within a second.
const MOST: u64 = 8192;

/// Times every n-th step, where n is such that the clock costs less than 1 % of the steps; n varies a little, so that
/// operators with a rhythm of their own are not always met on the same beat.
#[derive(Debug)]
pub(crate) struct Meter {
    /// Of the steps that were timed and not noted.
    pub histogram: Histogram,
    steps: u64,
    timed_steps: u64,
    timed_ns: u64,
    /// The worker takes its steps to be long ones.
    pub is_long: bool,
    /// Whether its steps are slow, on a worker that hands out messages to others.
    pub is_slow: bool,
    /// What timing a step costs.
    cost_ns: u64,
    /// Steps until one is timed.
    left: u32,
    /// Each step is timed; and how many more until one would be that is a sample.
    is_exact: bool,
    until_sample: u32,
    random: u32,
}

impl Meter {
    /// `noted` where steps that are timed are noted, too.
    pub fn new(seed: u32, noted: bool) -> Self {
        Meter {
            histogram: Histogram::new(),
            steps: 0,
            timed_steps: 0,
            timed_ns: 0,
            is_long: false,
            is_slow: false,
            cost_ns: if noted { NOTE_NS } else { LOOKS_NS },
            left: 1,
            is_exact: false,
            until_sample: 0,
            random: seed.wrapping_mul(2) | 1,
        }
    }

    /// Counts `steps` more, and says whether the next one is to be timed.
    #[inline]
    pub fn count(&mut self, steps: u32) -> bool {
        self.steps += u64::from(steps);
        self.left = self.left.saturating_sub(steps);
        self.left == 0
    }

    /// Counts `steps` more that were made without being asked for.
    pub fn add(&mut self, steps: u64) {
        self.steps += steps;
    }

    /// Notes the duration of a step; the histogram is somebody else's business.
    pub fn timed(&mut self, ns: u64, exact: bool) {
        self.timed_steps += 1;
        self.timed_ns += ns;
        self.is_exact = exact;
        self.left = if exact { 1 } else { self.interval() };
    }

    /// Whether the coming step, which is timed, is one of a sample.
    #[inline]
    pub fn is_sample(&mut self) -> bool {
        if !self.is_exact {
            return true;
        }
        let is_due = self.until_sample == 0;
        self.until_sample = if is_due { self.interval() } else { self.until_sample - 1 };
        is_due
    }

    /// Steps from one of a sample to the next.
    fn interval(&mut self) -> u32 {
        self.interval_for(self.cost_ns, self.mean_ns())
    }

    /// Passes through several operators, of which this one is the first, from one that is timed to the next: what these cost together
    /// to time, and what they take.
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

    /// What timing a step costs, in nanoseconds.
    pub fn cost_ns(&self) -> u64 {
        self.cost_ns
    }

    /// Steps until one is to be timed.
    #[inline]
    pub fn left(&self) -> u32 {
        self.left
    }

    /// Steps in all, given those since the last look.
    pub fn steps(&self, since: u64) -> u64 {
        self.steps + since
    }

    /// Steps until the last look.
    #[inline]
    pub fn steps_so_far(&self) -> u64 {
        self.steps
    }

    /// Whether the last step, or the mean of all that were timed, took longer than that.
    #[inline]
    pub fn is_above(&self, step_ns: u64, limit_ns: u64) -> bool {
        // Without a division, which would cost as much as the rest of a stamp.
        step_ns > limit_ns || self.timed_ns > limit_ns.saturating_mul(self.timed_steps)
    }

    /// Of the steps that were timed.
    pub fn mean_ns(&self) -> u64 {
        self.timed_ns / self.timed_steps.max(1)
    }

    pub fn timed_steps(&self) -> u64 {
        self.timed_steps
    }

    /// Time in all `steps`, from those that were timed.
    pub fn busy_ns(&self, steps: u64) -> u64 {
        if self.timed_steps == 0 {
            return 0;
        }
        (u128::from(self.timed_ns) * u128::from(steps) / u128::from(self.timed_steps)) as u64
    }
}
