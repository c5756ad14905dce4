//! A source of ticks.

use onbeat_runtime::{
    Context, Ending, Error, Folders, Kind, Operator, Output, Overrun, Pace, Period, Ports, Rate, Step, Ticker,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Ticks: tick `k` is due at `k` periods after the start of the run, and is the number `k`.
///
/// Where the run goes as fast as it can (`pace = "fast"`), ticks come without waiting.
pub struct Timer {
    /// The numbers of the ticks.
    pub out: Output<u64>,
    ticker: Ticker,
    period_ns: u64,
    count: u64,
    sent: u64,
}

impl Timer {
    /// `count` ticks with a period in nanoseconds; `None` for without end.
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
            cx.note(format!("of {ticks} ticks, {late} came more than a period late, {out} were left out"));
        }
        Ok(())
    }
}

/// A periodic timer.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// From one tick to the next.
    period: Period,
    /// So many ticks; without it, without end.
    #[serde(default)]
    count: Option<u64>,
    /// What happens when a tick comes more than a period late. `skip`: those whose time has passed are left out.
    /// `catch_up`: they come late. `min_gap`: all later ones are moved. `stop`: the run fails.
    #[serde(default)]
    overrun: Overrun,
}

pub(crate) fn kind() -> Kind {
    Kind::new("timer", "ticks with a period", "period = \"10 ms\"", |p: &Parameters, _: &Folders| {
        let period_ns = p.period.0.as_ns().ok_or_else(|| {
            Error::new(format!("`period` is {}: it must be from 1 ns to 584 years", p.period.0))
        })?;
        Timer::new(period_ns, p.count, p.overrun)
    })
}
