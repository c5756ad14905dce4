//! Whether it is worth it to let a run go in waves: that is tried, again and again, and the faster way is taken.

/// Passes from one look at the clock to the next, where the worker goes alone: at first, and at most.
const FEW: u32 = 64;
const PASSES: u32 = 1024;

/// How long either way is tried, in nanoseconds.
const TRIAL_NS: u64 = 100_000;

/// How long others are waited for in a trial.
const PATIENCE_NS: u64 = 2_000_000;

/// How long what was found is taken for true, at first and at most. It is looked at again and again as the host, the operators and who else is
/// there change.
const SHORTEST_NS: u64 = 1_000_000;
const LONGEST_NS: u64 = 64_000_000;

/// A wave is taken where a message takes at most this part of the time. Below that it may be no more than chance, and it costs a core.
const WORTH: f64 = 0.95;

/// How long a wave is open, in nanoseconds: so long others wait for the worker, and it costs about 1 % of this to begin and to end one.
const RIDE_NS: f64 = 200_000.0;

/// Messages of the worker in a wave, at least: at its end nobody has the next one.
const LEAST: u64 = 32;

/// From one look at the clock to the next, in nanoseconds, where messages take that long.
const LOOK_NS: f64 = 20_000.0;

/// What a worker knows of one run.
#[derive(Debug)]
pub(crate) struct WavePolicy {
    now: Now,
    /// Passes until it is looked at the clock again.
    left: u32,
    is_better: bool,
    /// Nobody helped the last time.
    is_lonely: bool,
    /// How long what was found is taken for true.
    holds_ns: u64,
    /// From one message to the next, alone.
    alone_ns: f64,
    /// Of this thread, in a wave.
    own_ns: f64,
    /// How many legs there are, and by operator of the run and its ends the one that it is in.
    count: usize,
    stages: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
enum Now {
    /// It begins.
    Fresh,
    /// It goes alone, to see how long that takes, since then, from so many messages on.
    Alone { since_ns: u64, messages: u64 },
    /// It goes in waves to see that: so long for so many messages; from then on.
    Wave { since_ns: u64, spent_ns: u64, messages: u64 },
    /// What is better is known, until then.
    Known { until_ns: u64 },
}

/// What a worker is to do with its next messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaveChoice {
    /// Go on alone.
    Alone,
    /// Carry at most so many of them itself, while others help. They are called if this says so. Between two looks at the clock there are
    /// at most so many messages.
    Wave { most: u64, calls: bool, between: u64 },
}

impl WavePolicy {
    /// For so many threads, and operators of the run and its ends.
    pub fn new(threads: usize, operators: usize) -> Self {
        WavePolicy {
            count: super::stages(threads, operators),
            stages: Vec::with_capacity(operators),
            now: Now::Fresh,
            left: 0,
            is_better: false,
            is_lonely: true,
            holds_ns: SHORTEST_NS,
            alone_ns: 0.0,
            own_ns: 0.0,
        }
    }

    /// Whether it goes on alone without a look at the clock.
    #[inline(always)]
    pub fn is_low(&mut self) -> bool {
        let is_low = self.left > 0;
        self.left -= u32::from(is_low);
        is_low
    }

    /// Until the clock is looked at again: so many passes, at least.
    #[inline(always)]
    pub fn passes_alone(&self) -> u32 {
        self.left
    }

    /// It went alone, so many times more.
    #[inline(always)]
    pub fn went(&mut self, passes: u32) {
        self.left = self.left.saturating_sub(passes);
    }

    /// By operator of the run and its ends: its leg.
    pub fn stages(&self) -> &[usize] {
        &self.stages
    }

    /// Cuts a run into legs that take about the same time, where that is not done: each operator goes to the leg in which its middle lies.
    pub fn cut(&mut self, costs_ns: impl Iterator<Item = u64> + Clone) {
        if !self.stages.is_empty() {
            return;
        }
        // Who was never timed counts all the same.
        let costs = costs_ns.map(|cost_ns| cost_ns.max(1));
        let total: u64 = costs.clone().sum();
        let mut before = 0;
        for cost in costs {
            let middle = (2 * before + cost) as f64 / (2 * total) as f64;
            self.stages.push(((middle * self.count as f64) as usize).min(self.count - 1));
            before += cost;
        }
        // The source is at the first station, also where it takes most of the time.
        let first = self.stages.first().copied().unwrap_or(0);
        self.stages.iter_mut().for_each(|stage| *stage -= first);
    }

    /// What to do now, behind so many messages.
    pub fn todo(&mut self, now_ns: u64, messages: u64) -> WaveChoice {
        // As many as a trial takes, where that is known.
        let in_trial = (TRIAL_NS as f64 / self.alone_ns.max(1.0)) as u32;
        self.left = if self.alone_ns > 0.0 { in_trial.clamp(1, PASSES) } else { FEW };
        match self.now {
            Now::Fresh => self.now = Now::Alone { since_ns: now_ns, messages },
            Now::Alone { since_ns, messages: before } => {
                let spent_ns = now_ns.saturating_sub(since_ns);
                if spent_ns >= TRIAL_NS && messages > before {
                    self.alone_ns = spent_ns as f64 / (messages - before) as f64;
                    self.stages.clear();
                    self.now = Now::Wave { since_ns: now_ns, spent_ns: 0, messages: 0 };
                    return self.wave();
                }
            }
            Now::Wave { .. } => return self.wave(),
            Now::Known { until_ns } if now_ns >= until_ns => {
                self.now = Now::Alone { since_ns: now_ns, messages };
            }
            Now::Known { .. } if self.is_better => return self.wave(),
            Now::Known { .. } => {}
        }
        WaveChoice::Alone
    }

    fn wave(&self) -> WaveChoice {
        let own_ns = if self.own_ns > 0.0 { self.own_ns } else { 2.0 * self.alone_ns };
        let within = |time_ns: f64| (time_ns / own_ns.max(1.0)) as u64;
        WaveChoice::Wave { most: within(RIDE_NS).max(LEAST), calls: self.is_lonely, between: within(LOOK_NS) }
    }

    /// A wave is over: it took so long for so many messages, some of which others have carried.
    pub fn ended(&mut self, begin_ns: u64, end_ns: u64, whole: u64, by_others: u64) {
        let took_ns = end_ns.saturating_sub(begin_ns);
        if whole > by_others {
            self.own_ns = took_ns as f64 / (whole - by_others) as f64;
        }
        self.is_lonely = by_others == 0;
        // The next one at once; but a source that has something else to do does it now.
        self.left = 0;
        let Now::Wave { since_ns, spent_ns, messages } = self.now else { return };
        let (spent_ns, messages) =
            if by_others > 0 { (spent_ns + took_ns, messages + whole) } else { (spent_ns, messages) };
        self.now = Now::Wave { since_ns, spent_ns, messages };
        if spent_ns >= TRIAL_NS {
            self.found(end_ns, (spent_ns as f64) < WORTH * self.alone_ns * messages as f64);
        } else if end_ns.saturating_sub(since_ns) > PATIENCE_NS {
            self.found(end_ns, false);
        }
    }

    /// Something was not as usual: the source is stepped, and what lies on the edges goes on.
    pub fn back_off(&mut self) {
        self.left = 1;
    }

    /// The worker has nothing to do, or somebody else has the thread: what is being measured is begun anew.
    pub fn reset(&mut self) {
        if matches!(self.now, Now::Alone { .. } | Now::Wave { .. }) {
            self.now = Now::Fresh;
        }
    }

    fn found(&mut self, now_ns: u64, is_better: bool) {
        let is_same = self.is_better == is_better;
        self.holds_ns = if is_same { (2 * self.holds_ns).min(LONGEST_NS) } else { SHORTEST_NS };
        self.is_better = is_better;
        self.now = Now::Known { until_ns: now_ns + self.holds_ns };
    }
}
