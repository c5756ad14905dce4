//! Arithmetic of response times: pure functions of nanoseconds.

/// Most messages in a busy period, and most rounds of the fixed-point iteration. Above that there is no
/// bound.
const MOST: u64 = 10_000;

/// Recurring messages, and the work that each brings to a thread.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadStream {
    /// Least time between two messages, in nanoseconds.
    pub period_ns: f64,
    /// Most delay of a message after its nominal time, in nanoseconds.
    pub jitter_ns: f64,
    /// Work in nanoseconds of every n-th message: `(1, 500.0)` is 500 ns for each message,
    /// `(4, 2000.0)` another 2 µs for every fourth.
    pub work: Vec<(u64, f64)>,
}

impl LoadStream {
    /// Makes a stream in which every message brings the same work.
    #[must_use]
    pub fn even(period_ns: f64, work_ns: f64) -> Self {
        LoadStream { period_ns, jitter_ns: 0.0, work: vec![(1, work_ns)] }
    }

    /// Most work that `messages` consecutive messages bring, in nanoseconds.
    fn of(&self, messages: u64) -> f64 {
        self.work.iter().map(|(every, work_ns)| messages.div_ceil(*every) as f64 * work_ns).sum()
    }

    /// Most work that arrives within a time, in nanoseconds.
    fn within(&self, time_ns: f64) -> f64 {
        self.of(((time_ns + self.jitter_ns) / self.period_ns).ceil().max(0.0) as u64)
    }

    /// Share of a core that the stream needs in the long run.
    #[must_use]
    pub fn utilisation(&self) -> f64 {
        self.work.iter().map(|(every, work_ns)| work_ns / (*every as f64 * self.period_ns)).sum()
    }
}

/// Computing time of a thread: after at most `delay_ns`, it gets `rate` of each nanosecond.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Supply {
    /// Longest time without any computing time, in nanoseconds.
    pub delay_ns: f64,
    /// Share of a core, from 0 to 1.
    pub rate: f64,
}

impl Supply {
    /// A whole core.
    pub const CORE: Supply = Supply { delay_ns: 0.0, rate: 1.0 };

    /// Supply of a thread under `SCHED_DEADLINE`, with `runtime_ns` in each period.
    /// In the worst case it runs at the begin of one period and at the end of the next.
    #[must_use]
    pub fn server(runtime_ns: f64, period_ns: f64) -> Self {
        Supply { delay_ns: 2.0 * (period_ns - runtime_ns), rate: runtime_ns / period_ns }
    }

    fn time_for(self, work_ns: f64) -> f64 {
        self.delay_ns + work_ns / self.rate
    }
}

/// Longest time from the nominal time of a message of `own` to the end of its work, if all `others` may go
/// first.
/// `None` if the streams together need more time than the supply has.
///
/// The busy period begins with a message of each stream at the same time, each as late as possible. The
/// `q`-th message of `own` is done at the smallest `w` with `w = supply(own(q + 1) + Σ other(w))`. Its due
/// time is `q` periods less the jitter.
#[must_use]
pub fn response_ns(own: &LoadStream, others: &[LoadStream], supply: Supply) -> Option<f64> {
    let all = others.iter().map(LoadStream::utilisation).sum::<f64>() + own.utilisation();
    if all >= supply.rate || supply.rate <= 0.0 || all.is_nan() {
        return None;
    }
    let mut worst_ns = 0f64;
    let mut done_ns = 0f64;
    for q in 0..MOST {
        done_ns = (0..MOST)
            .try_fold(done_ns, |before_ns, _| {
                let others_ns: f64 = others.iter().map(|other| other.within(before_ns.max(1.0))).sum();
                let next_ns = supply.time_for(own.of(q + 1) + others_ns);
                // `Err` is the fixed point.
                if next_ns > before_ns { Ok(next_ns) } else { Err(before_ns.max(next_ns)) }
            })
            .err()?;
        let due_ns = q as f64 * own.period_ns;
        worst_ns = worst_ns.max(done_ns + own.jitter_ns - due_ns);
        // The next message comes later: the busy period is over.
        if done_ns + own.jitter_ns <= due_ns + own.period_ns {
            return Some(worst_ns);
        }
    }
    None
}
