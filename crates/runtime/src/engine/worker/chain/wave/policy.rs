//! Wave policy: tries from time to time whether waves of a chain are worth it, and takes the faster way.

/// Passes from one reading of the clock to the next while the worker goes alone: at first.
const FIRST_PASSES: u32 = 64;

/// Passes from one reading of the clock to the next while the worker goes alone: at most.
const MOST_PASSES: u32 = 1024;

/// Time for which either way is tried, in nanoseconds.
const TRIAL_NS: u64 = 100_000;

/// Time for which a trial waits for other threads, in nanoseconds.
const PATIENCE_NS: u64 = 2_000_000;

/// Time for which a result is used at first, in nanoseconds. Trials are repeated as the host, its load and
/// the operators change.
const SHORTEST_NS: u64 = 1_000_000;

/// Time for which a result is used at most, in nanoseconds.
const LONGEST_NS: u64 = 64_000_000;

/// Waves are used if a message takes at most this part of its time without waves. A smaller gain may be
/// chance, and costs a core.
const WORTH: f64 = 0.95;

/// Time for which a wave is open, in nanoseconds. Other parts wait for the worker that long. To open and
/// close a wave costs about 1 % of this time.
const WAVE_NS: f64 = 200_000.0;

/// Least number of messages of the worker in a wave: near its end, threads run out of messages.
const FEWEST: u64 = 32;

/// Time from one reading of the clock to the next in a wave, in nanoseconds.
const CHECK_NS: f64 = 20_000.0;

/// Wave policy of one chain.
#[derive(Debug)]
pub(crate) struct WavePolicy {
    phase: Phase,
    /// Passes until the clock is read again.
    left: u32,
    /// Whether waves were faster in the last trial.
    is_better: bool,
    /// Whether no thread helped in the last wave.
    is_lonely: bool,
    /// Time for which the last result is used.
    holds_ns: u64,
    /// Time from one message to the next without waves; 0 while unknown.
    alone_ns: f64,
    /// Time per message of this thread in a wave; 0 while unknown.
    own_ns: f64,
    /// Number of stages.
    count: usize,
    /// By operator of the chain, ends included: its stage.
    stages: Vec<usize>,
}

/// What the policy does at present.
#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Begins a trial.
    Fresh,
    /// Measures passes without waves since this time, from this number of messages on.
    Alone { since_ns: u64, messages: u64 },
    /// Measures waves since this time: time spent in waves with help, and messages in these.
    Wave { since_ns: u64, spent_ns: u64, messages: u64 },
    /// Uses the result until this time.
    Known { until_ns: u64 },
}

/// Way of the next messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaveChoice {
    /// Passes of this worker alone.
    Alone,
    /// A wave.
    Wave {
        /// Most messages that this worker carries.
        most: u64,
        /// Whether to wake other threads.
        calls: bool,
        /// Most messages from one reading of the clock to the next.
        between: u64,
    },
}

impl WavePolicy {
    /// A policy for this number of threads, and of operators in the chain, ends included.
    pub fn new(threads: usize, operators: usize) -> Self {
        WavePolicy {
            count: super::stage_count(threads, operators),
            stages: Vec::with_capacity(operators),
            phase: Phase::Fresh,
            left: 0,
            is_better: false,
            is_lonely: true,
            holds_ns: SHORTEST_NS,
            alone_ns: 0.0,
            own_ns: 0.0,
        }
    }

    /// Whether the next pass needs no wave and no reading of the clock. Counts the pass.
    #[inline(always)]
    pub fn goes_alone(&mut self) -> bool {
        let goes_alone = self.left > 0;
        self.left -= u32::from(goes_alone);
        goes_alone
    }

    /// Number of passes until the clock is read again.
    #[inline(always)]
    pub fn passes_alone(&self) -> u32 {
        self.left
    }

    /// Counts further passes without a wave.
    #[inline(always)]
    pub fn count_alone(&mut self, passes: u32) {
        self.left = self.left.saturating_sub(passes);
    }

    /// By operator of the chain, ends included: its stage.
    pub fn stages(&self) -> &[usize] {
        &self.stages
    }

    /// Cuts the chain into stages of about the same time, unless that was done: each operator goes to the
    /// stage that its middle is in.
    pub fn cut(&mut self, costs_ns: impl Iterator<Item = u64> + Clone) {
        if !self.stages.is_empty() {
            return;
        }
        // An operator that was never timed counts, too.
        let costs = costs_ns.map(|cost_ns| cost_ns.max(1));
        let total: u64 = costs.clone().sum();
        let mut before = 0;
        for cost in costs {
            let middle = (2 * before + cost) as f64 / (2 * total) as f64;
            self.stages.push(((middle * self.count as f64) as usize).min(self.count - 1));
            before += cost;
        }
        // The source is at the first station, even if it takes most of the time.
        let first = self.stages.first().copied().unwrap_or(0);
        self.stages.iter_mut().for_each(|stage| *stage -= first);
    }

    /// Chooses the way of the next messages, given the number of messages so far.
    pub fn choose(&mut self, now_ns: u64, messages: u64) -> WaveChoice {
        // As many passes as a trial takes, if that is known.
        let in_trial = (TRIAL_NS as f64 / self.alone_ns.max(1.0)) as u32;
        self.left = if self.alone_ns > 0.0 { in_trial.clamp(1, MOST_PASSES) } else { FIRST_PASSES };
        match self.phase {
            Phase::Fresh => self.phase = Phase::Alone { since_ns: now_ns, messages },
            Phase::Alone { since_ns, messages: before } => {
                let spent_ns = now_ns.saturating_sub(since_ns);
                if spent_ns >= TRIAL_NS && messages > before {
                    self.alone_ns = spent_ns as f64 / (messages - before) as f64;
                    self.stages.clear();
                    self.phase = Phase::Wave { since_ns: now_ns, spent_ns: 0, messages: 0 };
                    return self.wave();
                }
            }
            Phase::Wave { .. } => return self.wave(),
            Phase::Known { until_ns } if now_ns >= until_ns => {
                self.phase = Phase::Alone { since_ns: now_ns, messages };
            }
            Phase::Known { .. } if self.is_better => return self.wave(),
            Phase::Known { .. } => {}
        }
        WaveChoice::Alone
    }

    /// A wave as long as [`WAVE_NS`].
    fn wave(&self) -> WaveChoice {
        let own_ns = if self.own_ns > 0.0 { self.own_ns } else { 2.0 * self.alone_ns };
        let within = |time_ns: f64| (time_ns / own_ns.max(1.0)) as u64;
        WaveChoice::Wave {
            most: within(WAVE_NS).max(FEWEST),
            calls: self.is_lonely,
            between: within(CHECK_NS),
        }
    }

    /// Notes the times of a wave, its messages, and how many of these other threads have carried.
    pub fn wave_ended(&mut self, begin_ns: u64, end_ns: u64, whole: u64, by_others: u64) {
        let spent_here_ns = end_ns.saturating_sub(begin_ns);
        if whole > by_others {
            self.own_ns = spent_here_ns as f64 / (whole - by_others) as f64;
        }
        self.is_lonely = by_others == 0;
        // The next wave opens at once, but a source with other work gets a step first.
        self.left = 0;
        let Phase::Wave { since_ns, spent_ns, messages } = self.phase else { return };
        let (spent_ns, messages) =
            if by_others > 0 { (spent_ns + spent_here_ns, messages + whole) } else { (spent_ns, messages) };
        self.phase = Phase::Wave { since_ns, spent_ns, messages };
        if spent_ns >= TRIAL_NS {
            self.use_result(end_ns, (spent_ns as f64) < WORTH * self.alone_ns * messages as f64);
        } else if end_ns.saturating_sub(since_ns) > PATIENCE_NS {
            self.use_result(end_ns, false);
        }
    }

    /// Makes the next pass without a wave, after an unusual one: the source is stepped, and queued messages
    /// continue.
    pub fn back_off(&mut self) {
        self.left = 1;
    }

    /// Starts a measurement again, because the worker had nothing to do, or another part had the thread.
    pub fn reset(&mut self) {
        if matches!(self.phase, Phase::Alone { .. } | Phase::Wave { .. }) {
            self.phase = Phase::Fresh;
        }
    }

    /// Uses the result of a trial for some time, longer if it was the same as before.
    fn use_result(&mut self, now_ns: u64, is_better: bool) {
        let is_same = self.is_better == is_better;
        self.holds_ns = if is_same { (2 * self.holds_ns).min(LONGEST_NS) } else { SHORTEST_NS };
        self.is_better = is_better;
        self.phase = Phase::Known { until_ns: now_ns + self.holds_ns };
    }
}
