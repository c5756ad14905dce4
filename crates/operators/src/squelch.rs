//! Mutes a stream while it has no signal.

use crate::check;
use crate::dsp::GainSample;
use num_complex::Complex;
use onbeat_runtime::{
    Chunk, Context, Decibels, Error, Folders, Input, Kind, Operator, Output, Ports, Registry, Seconds, Step,
    Tag, Value,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Treatment of samples while a squelch is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Closed {
    /// Samples become 0.
    #[default]
    Mute,
    /// Samples are dropped, and the stream gets shorter.
    Gate,
}

#[doc = include_str!("about/squelch.md")]
pub struct Squelch<T: GainSample> {
    /// Samples in.
    pub input: Input<Chunk<T>>,
    /// Samples that were passed on.
    pub out: Output<Chunk<T>>,
    open: f64,
    close: f64,
    tau_s: f64,
    closed: Closed,
    /// Weight of a new sample in the power.
    part: f64,
    rate_hz: Option<f64>,
    power: f64,
    is_open: bool,
    received: u64,
    sent: u64,
    not_finite: u64,
}

impl<T: GainSample> Squelch<T> {
    /// Creates a squelch that opens above `open_db` and closes below `close_db`. The power has a time
    /// constant of `tau_s` seconds.
    ///
    /// # Errors
    /// When `close_db` is above `open_db`, a number is not finite, or `tau_s` is not above 0.
    pub fn new(open_db: f64, close_db: f64, tau_s: f64, closed: Closed) -> Result<Self, Error> {
        check::finite("open", open_db)?;
        check::within("close", close_db, -1e3, open_db, "it must not be above `open`")?;
        check::positive("tau", tau_s)?;
        let power = |db: f64| 10f64.powf(db / 10.0);
        Ok(Squelch {
            input: Input::default(),
            out: Output::default(),
            open: power(open_db),
            close: power(close_db),
            tau_s,
            closed,
            part: 0.0,
            rate_hz: None,
            power: 0.0,
            is_open: false,
            received: 0,
            sent: 0,
            not_finite: 0,
        })
    }

    fn check_rate(&mut self, rate_hz: f64) -> Result<(), Error> {
        match self.rate_hz {
            Some(known_hz) if known_hz == rate_hz => Ok(()),
            Some(known_hz) => Err(Error::new(format!(
                "the sample rate of its input changed from {known_hz} Hz to {rate_hz} Hz: resample before merging \
                 streams"
            ))),
            None => {
                check::rate(rate_hz)?;
                self.rate_hz = Some(rate_hz);
                self.part = -(-1.0 / (rate_hz * self.tau_s)).exp_m1();
                Ok(())
            }
        }
    }

    /// Whether a sample is passed on.
    fn passes(&mut self, x: &mut T) -> bool {
        let mut size = f64::from(x.size());
        if !size.is_finite() {
            self.not_finite += 1;
            (*x, size) = (T::zeroed(), 0.0);
        }
        self.power += (size * size - self.power) * self.part;
        let limit = if self.is_open { self.close } else { self.open };
        self.power >= limit
    }

    /// Processes the samples of a chunk and moves those that are passed on to its start. Returns their number
    /// and their tags.
    fn filter(&mut self, samples: &mut [T], tags: &[Tag]) -> (usize, Vec<Tag>) {
        let mut kept = 0;
        let (mut new, mut old) = (Vec::new(), tags.iter().peekable());
        for at in 0..samples.len() {
            let mut x = samples[at];
            let passes = self.passes(&mut x);
            let goes_on = passes || self.closed == Closed::Mute;
            if passes != std::mem::replace(&mut self.is_open, passes) && goes_on {
                let value = match self.closed {
                    Closed::Mute => passes.into(),
                    Closed::Gate => ((self.received + at as u64) as i64).into(),
                };
                new.push(Tag { offset: kept, key: "squelch".into(), value });
            }
            while let Some(tag) = old.next_if(|tag| tag.offset == at) {
                if goes_on {
                    new.push(Tag { offset: kept, ..tag.clone() });
                }
            }
            if goes_on {
                samples[kept] = if passes { x } else { T::zeroed() };
                kept += 1;
            }
        }
        self.received += samples.len() as u64;
        (kept, new)
    }
}

impl<T: GainSample> Operator for Squelch<T> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }

    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        Ok(Some(rate_hz))
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(mut chunk) = self.input.pop(cx) {
            self.check_rate(chunk.rate_hz())?;
            chunk.edit(cx)?;
            let tags = std::mem::take(&mut chunk.info_mut().tags);
            let (kept, tags) = self.filter(chunk.edit(cx)?, &tags);
            if kept > 0 {
                chunk.truncate(kept);
                let info = chunk.info_mut();
                (info.start, info.tags) = (self.sent, tags);
                self.sent += kept as u64;
                self.out.push(cx, chunk)?;
            }
        }
        if self.input.is_ended(cx) && self.not_finite > 0 {
            let count = std::mem::take(&mut self.not_finite);
            cx.note(format!("{count} samples were not finite and were replaced by 0"));
        }
        Ok(Step::Wait)
    }

    fn settable(&self) -> &'static [&'static str] {
        &["open", "close", "tau"]
    }

    fn set(&mut self, _: &mut Context, name: &str, value: &Value) -> Result<(), Error> {
        let (mut open_db, mut close_db, mut tau_s) = (decibels(self.open), decibels(self.close), self.tau_s);
        match name {
            "open" => open_db = value.read::<Decibels>(name)?.0,
            "close" => close_db = value.read::<Decibels>(name)?.0,
            _ => tau_s = value.read::<Seconds>(name)?.0,
        }
        let Squelch { open, close, tau_s, .. } = Squelch::<T>::new(open_db, close_db, tau_s, self.closed)?;
        (self.open, self.close, self.tau_s) = (open, close, tau_s);
        if let Some(rate_hz) = self.rate_hz {
            self.part = -(-1.0 / (rate_hz * tau_s)).exp_m1();
        }
        Ok(())
    }
}

fn decibels(power: f64) -> f64 {
    10.0 * power.log10()
}

/// A squelch.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SquelchParameters {
    /// Opening threshold: power, in dB of full scale, above which samples pass.
    open: Decibels,
    /// Closing threshold: power below which it closes again; without it, 3 dB below `open`.
    #[serde(default)]
    close: Option<Decibels>,
    /// Time constant of the power measurement.
    #[serde(default = "ten_ms")]
    tau: Seconds,
    /// Treatment of samples while closed. `mute`: replaced by 0. `gate`: dropped.
    #[serde(default)]
    closed: Closed,
}

fn ten_ms() -> Seconds {
    Seconds(0.01)
}

fn make<T: GainSample>(p: &SquelchParameters, _: &Folders) -> Result<Squelch<T>, Error> {
    let close_db = p.close.map_or(p.open.0 - 3.0, |db| db.0);
    Squelch::new(p.open.0, close_db, p.tau.0, p.closed)
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let text = "passes a signal on while it is strong enough";
    registry.add(
        Kind::new("squelch", text, "open = \"-30 dB\"", make::<f32>).about(include_str!("about/squelch.md")),
    );
    registry.add(Kind::new("squelch.complex", text, "open = \"-30 dB\"", make::<Complex<f32>>));
}
