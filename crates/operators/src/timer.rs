//! A source of periodic ticks.

use onbeat_runtime::{
    Context, Ending, Error, Folders, Kind, Operator, Output, Overrun, Pace, Period, Ports, Rate, Step, Ticker,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Periodic ticks. Tick `k` is the number `k`, due `k` periods after the start of the run.
///
/// If the run goes as fast as possible (`pace = "fast"`), ticks are sent without waiting.
pub struct Timer {
    /// The tick numbers.
    pub out: Output<u64>,
    ticker: Ticker,
    period_ns: u64,
    count: u64,
    sent: u64,
}

impl Timer {
    /// Sends `count` ticks with a period in nanoseconds; `None` sends without end.
    ///
    /// # Errors
    /// When the period is 0.
    pub fn new(period_ns: u64, count: Option<u64>, overrun: Overrun) -> Result<Self, Error> {
        let ticker = Ticker::new(period_ns, overrun)?;
        Ok(Timer { out: Output::default(), ticker, period_ns, count: count.unwrap_or(u64::MAX), sent: 0 })
    }
}

impl Operator for Timer {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        if self.count < u64::MAX {
            cx.set_length_ns(self.count.saturating_mul(self.period_ns));
        }
        Ok(())
    }

    fn rate(&self, pace: Option<Pace>) -> Option<Rate> {
        (pace != Some(Pace::Fast)).then_some(Rate::Period(self.period_ns))
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.ticker.number() >= self.count {
            return Ok(Step::Done);
        }
        if let Some(wait) = self.ticker.wait(cx)? {
            return Ok(wait);
        }
        self.out.push(cx, self.ticker.number())?;
        self.ticker.next(cx);
        self.sent += 1;
        Ok(if self.ticker.number() >= self.count { Step::Done } else { Step::Again })
    }

    fn stop(&mut self, cx: &mut Context, _: Ending) -> Result<(), Error> {
        if self.ticker.late() > 0 {
            let ticks = self.ticker.number().min(self.count);
            let (late, out) = (self.ticker.late(), ticks - self.sent);
            let were = |count: u64| if count == 1 { "was" } else { "were" };
            cx.note(format!(
                "of {ticks} ticks, {late} {} more than one period late and {out} {} skipped",
                were(late),
                were(out)
            ));
        }
        Ok(())
    }
}

/// A periodic timer.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TimerParameters {
    /// Time between two ticks.
    period: Period,
    /// How many ticks to send; without it, the timer never ends.
    #[serde(default)]
    count: Option<u64>,
    /// Action when a tick is more than one period late. `skip`: drop the overdue ticks. `catch_up`: send them
    /// late. `min_gap`: shift all later ticks. `stop`: fail the run.
    #[serde(default)]
    overrun: Overrun,
}

pub(crate) fn kind() -> Kind {
    Kind::new(
        "timer",
        "sends ticks with a fixed period",
        "period = \"10 ms\"",
        |p: &TimerParameters, _: &Folders| {
            let period_ns = p.period.0.as_ns().ok_or_else(|| {
                Error::new(format!("`period` is {}: it must be from 1 ns to 584 years", p.period.0))
            })?;
            Timer::new(period_ns, p.count, p.overrun)
        },
    )
}
