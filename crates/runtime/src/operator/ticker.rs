//! Time-keeping of periodic sources.

use crate::base::options::Pace;
use crate::base::wording;
use crate::{Context, Error, Step};
use serde::{Deserialize, Serialize};

/// Reaction of a periodic source to a tick so late that the next one is due as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overrun {
    /// The late tick comes. The next one is the first that is not due yet; the ticks between, and their
    /// numbers, are skipped.
    #[default]
    Skip,
    /// Every tick comes, one after the other, until the source is on time again.
    CatchUp,
    /// Ticks begin at least one period apart: a late tick delays all later ones.
    MinGap,
    /// The run fails.
    Stop,
}

/// Keeps the time of a periodic source, and stamps its ticks.
///
/// Tick `k` is due `k` periods after the start of the run. These times are absolute: a late tick does not
/// delay later ones, except under [`Overrun::MinGap`]. If the run's pace is fast, the source does not wait.
///
/// ```
/// use onbeat_runtime::{Context, Error, Output, Step, Ticker};
/// # struct Beat { out: Output<u64>, ticker: Ticker }
/// # impl Beat {
/// fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
///     if let Some(wait) = self.ticker.wait(cx)? {
///         return Ok(wait);
///     }
///     self.out.push(cx, self.ticker.number())?;
///     self.ticker.next(cx);
///     Ok(Step::Again)
/// }
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Ticker(Ticks);

impl Ticker {
    /// Makes a ticker with a tick every `period_ns` nanoseconds, from the start of the run on.
    ///
    /// # Errors
    /// If the period is 0.
    pub fn new(period_ns: u64, overrun: Overrun) -> Result<Self, Error> {
        Ticks::new(period_ns, overrun).map(Ticker)
    }

    /// Returns the number of the next tick.
    pub fn number(&self) -> u64 {
        self.0.number
    }

    /// Returns the number of ticks that came so late that the next one was due as well.
    pub fn late(&self) -> u64 {
        self.0.late
    }

    /// Returns the number of ticks that were skipped.
    pub fn skipped(&self) -> u64 {
        self.0.skipped
    }

    /// Returns the result for the source's step if the next tick is not due yet. If it is due, stamps the
    /// messages that are pushed next, and returns `None`.
    ///
    /// # Errors
    /// If the tick after it is due as well, under [`Overrun::Stop`]. The next tick is then the first that is
    /// not due yet: an operator that is restarted is on time again.
    pub fn wait(&mut self, cx: &mut Context) -> Result<Option<Step>, Error> {
        let real = cx.pace(Pace::Real) == Pace::Real;
        self.0.leave_out(cx.skips());
        let start_ns = cx.start_ns();
        let now_ns = real.then(|| cx.now_ns().saturating_sub(start_ns));
        match self.0.look(now_ns, &mut |note| cx.note(note))? {
            Some(due_ns) => Ok(Some(cx.until(start_ns.saturating_add(due_ns)))),
            None => {
                let due_ns = self.0.due_ns;
                cx.set_time(due_ns, real.then(|| start_ns.saturating_add(due_ns)));
                Ok(None)
            }
        }
    }

    /// Moves on to the next tick, after one was sent.
    pub fn next(&mut self, cx: &mut Context) {
        self.0.next(cx.pace(Pace::Real) == Pace::Fast);
    }
}

/// The ticks of one period. All times are nanoseconds since the start of the run.
#[derive(Debug, Clone)]
pub(crate) struct Ticks {
    period_ns: u64,
    overrun: Overrun,
    /// Number of the next tick.
    number: u64,
    /// Time at which it is due.
    due_ns: u64,
    /// Time at which it came.
    begun_ns: u64,
    late: u64,
    skipped: u64,
}

impl Ticks {
    pub fn new(period_ns: u64, overrun: Overrun) -> Result<Self, Error> {
        if period_ns == 0 {
            return Err(Error::new("`period` is 0 ns: it must be 1 ns or more"));
        }
        Ok(Ticks { period_ns, overrun, number: 0, due_ns: 0, begun_ns: 0, late: 0, skipped: 0 })
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Returns the time to wait for until the next tick; `None` if it is due. If `now_ns` is `None`, the
    /// source does not wait, and every tick is due.
    pub fn look(&mut self, now_ns: Option<u64>, note: &mut dyn FnMut(String)) -> Result<Option<u64>, Error> {
        let Some(now_ns) = now_ns else { return Ok(None) };
        if now_ns < self.due_ns {
            return Ok(Some(self.due_ns));
        }
        let late_ns = now_ns - self.due_ns;
        if late_ns >= self.period_ns {
            // Only texts allocate: a late tick does not.
            let late = || wording::time(late_ns);
            let number = self.number;
            if self.overrun == Overrun::Stop {
                // What failed can be restarted, and the tick would be late for ever.
                self.leave_out(late_ns / self.period_ns + 1);
                let (late, period) = (late(), wording::time(self.period_ns));
                return Err(Error::new(format!(
                    "tick {number} came {late} late, with a period of {period}: what follows it takes too long or waits for another \
                     input, or the worker was kept off its core (`overrun` says to stop)"
                )));
            }
            if self.late == 0 {
                let late = late();
                note(format!(
                    "tick {number} came {late} late, more than a period: what follows takes too long or waits for another input, or \
                     the worker was kept off its core"
                ));
            }
            self.late += 1;
        }
        self.begun_ns = now_ns;
        Ok(None)
    }

    /// Skips the next `count` ticks.
    pub fn leave_out(&mut self, count: u64) {
        if count > 0 {
            self.skipped += count;
            self.number = self.number.saturating_add(count);
            self.due_ns = self.due_ns.saturating_add(count.saturating_mul(self.period_ns));
        }
    }

    /// Moves on to the next tick; `fast` if the source does not wait.
    pub fn next(&mut self, fast: bool) {
        let passed = match self.overrun {
            Overrun::Skip if !fast => {
                (self.begun_ns.saturating_sub(self.due_ns) / self.period_ns).saturating_add(1)
            }
            _ => 1,
        };
        self.skipped += passed - 1;
        self.number = self.number.saturating_add(passed);
        self.due_ns = match self.overrun {
            Overrun::MinGap => self.due_ns.max(self.begun_ns).saturating_add(self.period_ns),
            _ => self.number.saturating_mul(self.period_ns),
        };
    }
}
