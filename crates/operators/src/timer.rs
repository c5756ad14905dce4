//! A source of ticks.

use onbeat_runtime::{Context, Error, Folders, Kind, Operator, Output, Pace, Ports, Seconds, Step};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a timer does about ticks whose time has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overrun {
    /// The late tick comes, and the next one after it is the first that is not due yet. The numbers of those between
    /// are left out.
    #[default]
    Skip,
    /// Every tick comes, one after the other, until the timer is on time again.
    CatchUp,
}

/// Ticks: tick `k` is due at `k` periods after the start of the run, and is the number `k`.
///
/// The times are absolute, so a late tick does not make later ones late. Where the run goes as fast as it can
/// (`pace = "fast"`), ticks come without waiting.
pub struct Timer {
    /// The numbers of the ticks.
    pub out: Output<u64>,
    period_ns: u64,
    count: u64,
    overrun: Overrun,
    next: u64,
    skipped: u64,
}

impl Timer {
    /// `count` ticks with a period in nanoseconds; `None` for without end.
    ///
    /// # Errors
    /// When the period is 0.
    pub fn new(period_ns: u64, count: Option<u64>, overrun: Overrun) -> Result<Self, Error> {
        if period_ns == 0 {
            return Err(Error::new(
                "`period` is 0 ns: it must be 1 ns or more; leave a timer out to go without time",
            ));
        }
        let count = count.unwrap_or(u64::MAX);
        Ok(Timer { out: Output::default(), period_ns, count, overrun, next: 0, skipped: 0 })
    }

    fn time_ns(&self, tick: u64) -> u64 {
        tick.saturating_mul(self.period_ns)
    }

    /// After a tick: leaves out those whose time has passed.
    fn skip(&mut self, cx: &mut Context, elapsed_ns: u64) {
        let first_in_time = (elapsed_ns / self.period_ns + 1).min(self.count);
        if self.overrun == Overrun::CatchUp || first_in_time <= self.next {
            return;
        }
        if self.skipped == 0 {
            cx.note(format!(
                "was too late for tick {} and left it out: what follows takes longer than a period",
                self.next
            ));
        }
        self.skipped += first_in_time - self.next;
        self.next = first_in_time;
    }
}

impl Operator for Timer {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        if self.count < u64::MAX {
            cx.set_length_ns(self.time_ns(self.count));
        }
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.next == self.count {
            return Ok(Step::Done);
        }
        let timed = cx.pace(Pace::Real) == Pace::Real;
        let time_ns = self.time_ns(self.next);
        let due_ns = cx.start_ns().saturating_add(time_ns);
        let now_ns = cx.now_ns();
        if timed && now_ns < due_ns {
            return Ok(cx.until(due_ns));
        }
        cx.set_time(time_ns, timed.then_some(due_ns));
        self.out.push(cx, self.next)?;
        self.next += 1;
        if timed {
            self.skip(cx, now_ns - cx.start_ns());
        }
        if self.next < self.count {
            return Ok(Step::Again);
        }
        if self.skipped > 0 {
            cx.note(format!("{} of {} ticks were left out", self.skipped, self.count));
        }
        Ok(Step::Done)
    }
}

/// A periodic timer.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// From one tick to the next.
    period: Seconds,
    /// So many ticks; without it, without end.
    #[serde(default)]
    count: Option<u64>,
    /// What becomes of ticks whose time has passed. `skip`: they are left out. `catch_up`: they come late.
    #[serde(default)]
    overrun: Overrun,
}

pub(crate) fn kind() -> Kind {
    Kind::new("timer", "ticks with a period", "period = \"10 ms\"", |p: &Parameters, _: &Folders| {
        let period_ns = p.period.as_ns().ok_or_else(|| {
            Error::new(format!("`period` is {}: it must be from 1 ns to 584 years", p.period))
        })?;
        Timer::new(period_ns, p.count, p.overrun)
    })
}
