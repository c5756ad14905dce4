//! The arithmetic of response times: pure functions of nanoseconds.

/// More messages than this behind one another, or rounds until the answer stands: then there is none.
const MOST: u64 = 10_000;

/// Messages that come again and again, and the work that each brings to a thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Stream {
    /// From one message to the next, at least.
    pub period_ns: f64,
    /// How much later than its nominal time a message may come.
    pub jitter_ns: f64,
    /// Work of every so many messages: `(1, 500.0)` is 500 ns of each, `(4, 2000.0)` another 2 µs of every fourth.
    pub work: Vec<(u64, f64)>,
}

impl Stream {
    /// Every message brings the same.
    #[must_use]
    pub fn even(period_ns: f64, work_ns: f64) -> Self {
        Stream { period_ns, jitter_ns: 0.0, work: vec![(1, work_ns)] }
    }

    /// The most work that so many messages in a row bring.
    fn of(&self, messages: u64) -> f64 {
        self.work.iter().map(|(every, work_ns)| messages.div_ceil(*every) as f64 * work_ns).sum()
    }

    /// The most work that comes within a time.
    fn within(&self, time_ns: f64) -> f64 {
        self.of(((time_ns + self.jitter_ns) / self.period_ns).ceil().max(0.0) as u64)
    }

    /// Share of a core that it needs in the long run.
    #[must_use]
    pub fn utilisation(&self) -> f64 {
        self.work.iter().map(|(every, work_ns)| work_ns / (*every as f64 * self.period_ns)).sum()
    }
}

/// What a thread is given to work with: after `delay_ns` at the most, `rate` of each nanosecond.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Supply {
    /// How long it may be given nothing.
    pub delay_ns: f64,
    /// From 0 to 1.
    pub rate: f64,
}

impl Supply {
    /// A whole core.
    pub const CORE: Supply = Supply { delay_ns: 0.0, rate: 1.0 };

    /// A thread under `SCHED_DEADLINE`: so much in each period, at its begin in one and at its end in the next.
    #[must_use]
    pub fn server(runtime_ns: f64, period_ns: f64) -> Self {
        Supply { delay_ns: 2.0 * (period_ns - runtime_ns), rate: runtime_ns / period_ns }
    }

    fn time_for(self, work_ns: f64) -> f64 {
        self.delay_ns + work_ns / self.rate
    }
}

/// From the nominal time of a message of `own` to the end of its work, at most, where all of `others` may go first. `None` when
/// there is no such time: together they ask for more than there is.
///
/// The busy period begins with a message of each at once and as late as it may be; the `q`-th message of `own` in it is done at
/// the smallest `w` with `w = supply(own(q + 1) + Σ other(w))`, and was due at `q` periods less the jitter.
#[must_use]
pub fn response_ns(own: &Stream, others: &[Stream], supply: Supply) -> Option<f64> {
    let all = others.iter().map(Stream::utilisation).sum::<f64>() + own.utilisation();
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
                // `Err` is the answer: it stands.
                if next_ns > before_ns { Ok(next_ns) } else { Err(before_ns.max(next_ns)) }
            })
            .err()?;
        let due_ns = q as f64 * own.period_ns;
        worst_ns = worst_ns.max(done_ns + own.jitter_ns - due_ns);
        // The next message comes after all of this: the busy period is over.
        if done_ns + own.jitter_ns <= due_ns + own.period_ns {
            return Some(worst_ns);
        }
    }
    None
}
