//! A source of consecutive numbers.

use crate::check;
use crate::format::real;
use onbeat_runtime::{
    Context, Error, Folders, Hertz, Kind, Operator, Output, Pace, Pacer, Ports, Rate, Step,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Counts: 0, 1, 2, and so on.
pub struct Counter {
    /// The numbers.
    pub out: Output<u64>,
    start: u64,
    count: u64,
    rate_hz: f64,
    pacer: Pacer,
    sent: u64,
}

impl Counter {
    /// Sends `count` numbers from 0, as fast as the consumer takes them; `None` counts without end.
    pub fn new(count: Option<u64>) -> Self {
        Counter {
            out: Output::default(),
            start: 0,
            count: count.unwrap_or(u64::MAX),
            rate_hz: 0.0,
            pacer: Pacer::new(0.0, Pace::Fast),
            sent: 0,
        }
    }

    /// Sets the first number. The largest number is followed by 0.
    pub fn start_at(mut self, start: u64) -> Self {
        self.start = start;
        self
    }

    /// Sets the number of messages per second. The first is due at once.
    ///
    /// # Errors
    /// When the rate is not a finite number above 0.
    pub fn rate(mut self, rate_hz: f64, pace: Pace) -> Result<Self, Error> {
        check::positive("rate", rate_hz)?;
        self.rate_hz = rate_hz;
        self.pacer = Pacer::new(rate_hz, pace);
        Ok(self)
    }
}

impl Operator for Counter {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        if self.rate_hz > 0.0 && self.count < u64::MAX {
            cx.set_length_ns(self.pacer.time_ns(self.count));
        }
        Ok(())
    }

    fn rate(&self, pace: Option<Pace>) -> Option<Rate> {
        self.pacer.kept_hz(pace).map(|rate_hz| Rate::Period((1e9 / rate_hz) as u64))
    }

    #[inline]
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.sent == self.count {
            return Ok(Step::Done);
        }
        if self.rate_hz > 0.0
            && let Some(wait) = self.pacer.wait(cx, self.sent, self.sent)
        {
            return Ok(wait);
        }
        self.out.push(cx, self.start.wrapping_add(self.sent))?;
        self.sent += 1;
        Ok(if self.sent == self.count { Step::Done } else { Step::Again })
    }
}

/// A count.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CounterParameters {
    /// How many numbers to send; without it, the counter never ends.
    #[serde(default)]
    count: Option<u64>,
    /// The first number.
    #[serde(default)]
    start: u64,
    /// Numbers per second, the first one at once; without it, numbers are sent as fast as possible.
    #[serde(default)]
    rate: Option<Hertz>,
    /// Used if `rate` is set. `real`: a number is sent when it is due. `fast`: as soon as there is room.
    #[serde(default = "real")]
    pace: Pace,
}

pub(crate) fn kind() -> Kind {
    Kind::new("counter", "sends consecutive numbers", "count = 1000", |p: &CounterParameters, _: &Folders| {
        let counter = Counter::new(p.count).start_at(p.start);
        match p.rate {
            Some(Hertz(rate_hz)) => counter.rate(rate_hz, p.pace),
            None => Ok(counter),
        }
    })
}
