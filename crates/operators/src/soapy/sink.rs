//! Samples to a radio.

use super::RadioError;
use super::buffer::RadioBuffer;
use super::link::{RadioLink, RadioOpening};
use super::setup::{RadioSetup, RadioUse};
use crate::check;
use crate::streams::{TunerGain, is_over, real_ns, time_ns, usual};
use num_complex::Complex;
use onbeat_runtime::{
    Chunk, Context, Declared, Ending, Error, Hertz, Input, Operator, Seconds, Step, Value, operator,
};
use std::collections::BTreeMap;

// Units and reasons of losses.
const SAMPLES: &str = "samples";
const UNDERFLOWS: &str = "underflows";
const UNDERFLOW: &str = "the radio had no samples to transmit: they came too late, or in another rhythm; a limit on the \
                         path tells why";
const LATES: &str = "late bursts";
const LATE: &str = "the radio got them after their time and did not transmit them";
const AWAY: &str = "not transmitted while the device was away";
const NOT_TAKEN: &str = "the radio did not take them within `patience`";
const NOT_SENT: &str = "not transmitted when the run ended";
/// Notes of single underflows; later ones are only counted.
const NOTED: u64 = 20;
/// Waits of chunks for room, until the radio is known to set the pace; counted up to this.
const MOST_WAITS: u32 = 16;
/// Most news that a step takes.
const NEWS: usize = 64;

#[doc = include_str!("../about/soapy_sink.md")]
#[derive(Operator)]
#[operator(
    name = "soapy.sink",
    summary = "transmits samples with a radio (SoapySDR)",
    about = include_str!("../about/soapy_sink.md"),
    prepare = Self::prepare,
)]
pub struct SoapySink {
    /// The samples.
    input: Input<Chunk<Complex<f32>>>,
    /// SoapySDR's arguments of the device: pairs of key and value. `SoapySDRUtil --find` lists devices. With
    /// the same text as in a `soapy.source`, it is the same device.
    #[parameter(example = "driver=lime")]
    device: String,
    /// Channel of the device, counted from 0.
    #[parameter(default)]
    channel: u32,
    /// Name of the antenna. Without it, the driver's choice.
    #[parameter]
    antenna: Option<String>,
    /// Centre frequency.
    #[parameter(settable, example = "433.92 MHz")]
    frequency: Hertz,
    /// Samples per second: the rate of the samples that come.
    #[parameter(example = "1 MS/s")]
    sample_rate: Hertz,
    /// Width of the analogue filter. Without it, the driver's choice.
    #[parameter(settable)]
    bandwidth: Option<Hertz>,
    /// Gain of all elements together in decibels, or `"auto"`. Without it, the driver's choice.
    #[parameter(settable)]
    gain: Option<TunerGain>,
    /// Gain of each element in decibels, such as `{ PAD = 30 }`, instead of `gain`.
    #[parameter(default)]
    gains: BTreeMap<String, f64>,
    /// Correction of the device's crystal in parts per million. Without it, the driver's setting stays.
    #[parameter(settable)]
    ppm: Option<f64>,
    /// Settings that only this driver has; `SoapySDRUtil --probe` lists them.
    #[parameter(default)]
    settings: BTreeMap<String, String>,
    /// SoapySDR's arguments of the stream; `SoapySDRUtil --probe` lists them.
    #[parameter(default)]
    stream: String,
    /// Time from one attempt to the next while the driver has no room.
    #[parameter(default = "1 ms")]
    period: Seconds,
    /// How long to wait for the radio to take samples, also at the end; with `on_error = "restart"`, also for
    /// a device that went away.
    #[parameter(default = usual())]
    patience: Seconds,
    link: Option<RadioLink>,
    period_ns: u64,
    waiting: RadioBuffer,
    /// Whether they have a due time. Some of those of a file have one, too.
    has_due: bool,
    /// How often chunks have waited for room of late, and whether this one has.
    waits: u32,
    has_waited: bool,
    rate_hz: f64,
    /// Since when samples were written without a pause, on CLOCK_MONOTONIC, and how many.
    burst: Option<(u64, u64)>,
    /// When it took samples last, or had none to take.
    taken_ns: u64,
    /// Samples at once between driver and device.
    block: u64,
    /// Whether the driver tells of underflows.
    has_status: bool,
    /// Whether the end was written, and whether the driver has reported the end.
    is_ending: bool,
    has_ended: bool,
    has_given_up: bool,
    written: u64,
    underflows: u64,
}

impl SoapySink {
    /// Checks the parameters.
    fn prepare(&mut self) -> Result<(), Error> {
        let setup = self.setup();
        setup.check()?;
        check::within("period", self.period.0, 50e-6, 1.0, "1 ms is usual")?;
        self.period_ns = time_ns("period", self.period)?;
        let patience_ns = time_ns("patience", self.patience)?;
        self.link.get_or_insert_with(|| RadioLink::new(setup, patience_ns));
        Ok(())
    }

    fn setup(&self) -> RadioSetup {
        RadioSetup {
            way: RadioUse::Transmit,
            device: self.device.clone(),
            channel: self.channel,
            antenna: self.antenna.clone(),
            rate_hz: self.sample_rate.0,
            frequency_hz: self.frequency.0,
            bandwidth_hz: self.bandwidth.map(|Hertz(hz)| hz),
            gain: self.gain,
            gains: self.gains.clone(),
            ppm: self.ppm,
            settings: self.settings.clone(),
            stream: self.stream.clone(),
        }
    }

    fn link(&mut self) -> Result<&mut RadioLink, Error> {
        self.link.as_mut().ok_or_else(|| Error::new("the operator was not prepared"))
    }

    /// Begins a stream with this rate in hertz.
    fn begin(&mut self, rate_hz: f64) -> Result<(), Error> {
        self.rate_hz = rate_hz;
        self.block = self.link()?.stream()?.block() as u64;
        (self.burst, self.has_status, self.has_ended) = (None, true, false);
        self.taken_ns = real_ns();
        Ok(())
    }

    /// Takes what the driver tells of samples that were written.
    fn take_news(&mut self, cx: &mut Context) -> Result<(), Error> {
        for _ in 0..NEWS {
            if !self.has_status {
                break;
            }
            match self.link()?.stream()?.status() {
                Ok(is_end) => self.has_ended |= is_end && self.is_ending,
                Err(error) if error.is_later() => break,
                Err(error) if error.is_unsupported() => self.has_status = false,
                Err(error) if error.is_underflow() => self.count_underflow(cx),
                Err(error) if error.is_late() => cx.lose(1, LATES, LATE),
                Err(error) => return Err(self.link()?.gone(error)),
            }
        }
        Ok(())
    }

    fn count_underflow(&mut self, cx: &mut Context) {
        // After the end there are none to come.
        if self.is_ending {
            return;
        }
        cx.lose(1, UNDERFLOWS, UNDERFLOW);
        (self.underflows, self.burst) = (self.underflows + 1, None);
        if self.underflows <= NOTED {
            let at_s = self.written as f64 / self.rate_hz;
            cx.note(format!("underflow: the radio had no samples, at the latest after {at_s:.6} s of them"));
        }
    }

    /// Takes the next chunk; `false` if there is none.
    fn fill(&mut self, cx: &mut Context) -> Result<bool, Error> {
        let Some(chunk) = self.input.pop(cx) else { return Ok(false) };
        let rate_hz = chunk.info().rate_hz;
        if rate_hz != self.sample_rate.0 {
            return Err(wrong_rate(rate_hz, self.sample_rate.0));
        }
        self.has_due = cx.stamp().due_ns().is_some();
        let has_waited = std::mem::take(&mut self.has_waited);
        self.waits = if has_waited { (self.waits + 2).min(MOST_WAITS) } else { self.waits.saturating_sub(1) };
        self.waiting.fill(&chunk);
        self.taken_ns = real_ns();
        Ok(true)
    }

    /// Writes samples. Returns the result of the step unless all were written.
    fn write(&mut self, cx: &mut Context) -> Result<Option<Step>, Error> {
        while !self.waiting.rest().is_empty() {
            let Some(link) = &mut self.link else { return Ok(Some(Step::Done)) };
            match link.stream()?.write(self.waiting.rest(), self.is_ending) {
                Ok(0) => return self.wait(cx).map(Some),
                Ok(count) => {
                    self.waiting.wrote(count);
                    self.taken_ns = real_ns();
                    self.written += count as u64;
                    let (_, since) = self.burst.get_or_insert((self.taken_ns, 0));
                    *since += count as u64;
                }
                Err(error) => return self.not_written(&error, cx),
            }
        }
        Ok(None)
    }

    fn not_written(&mut self, error: &RadioError, cx: &mut Context) -> Result<Option<Step>, Error> {
        if error.is_later() {
            return self.wait(cx).map(Some);
        }
        if error.is_underflow() {
            self.count_underflow(cx);
            return self.wait(cx).map(Some);
        }
        if error.is_late() {
            cx.lose(1, LATES, LATE);
            return self.wait(cx).map(Some);
        }
        Err(self.link()?.gone(error))
    }

    /// Waits for room, unless the patience is used up.
    fn wait(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let patience_ns = self.link()?.patience_ns();
        if is_over(cx, patience_ns) {
            return Ok(self.give_up(cx));
        }
        if real_ns() >= self.taken_ns.saturating_add(patience_ns) {
            let s = patience_ns as f64 / 1e9;
            return Err(self.link()?.gone(format_args!("it took no samples for {s} s")));
        }
        self.has_waited = true;
        Ok(cx.look_again_in(self.period_ns))
    }

    /// Counts the rest as lost, also what is still to come.
    fn give_up(&mut self, cx: &mut Context) -> Step {
        self.has_given_up = true;
        let rest = self.waiting.drop_rest();
        // The one at the end is not of the stream.
        cx.lose(if self.is_ending { 0 } else { rest }, SAMPLES, NOT_TAKEN);
        while let Some(chunk) = self.input.pop(cx) {
            cx.lose(chunk.len() as u64, SAMPLES, NOT_TAKEN);
        }
        if self.input.is_ended(cx) { Step::Done } else { Step::Wait }
    }

    /// Drops samples of a live source while the device is away; others wait.
    fn discard(&mut self, step: Step, cx: &mut Context) -> Result<Step, Error> {
        if is_over(cx, self.link()?.patience_ns()) {
            return Ok(self.give_up(cx));
        }
        loop {
            if !self.waiting.rest().is_empty() {
                // A source that the radio has kept waiting can wait.
                if !self.has_due || self.waits >= MOST_WAITS / 2 {
                    break;
                }
                cx.lose(self.waiting.drop_rest(), SAMPLES, AWAY);
            }
            if !self.fill(cx)? {
                break;
            }
        }
        Ok(step)
    }

    /// Ends the burst, and waits until all is transmitted.
    fn finish(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if !std::mem::replace(&mut self.is_ending, true) && self.written > 0 {
            // The end is said with a sample: not every driver takes it without.
            self.waiting.fill(&[Complex::default()]);
        }
        if let Some(step) = self.write(cx)? {
            return Ok(step);
        }
        let Some((begun_ns, count)) = self.burst else { return Ok(Step::Done) };
        // The driver takes samples before the device does, by a block at least.
        let length_ns = ((count + self.block) as f64 * 1e9 / self.rate_hz) as u64;
        let left_ns = begun_ns.saturating_add(length_ns).saturating_sub(real_ns());
        if self.has_ended || left_ns == 0 || is_over(cx, self.link()?.patience_ns()) {
            return Ok(Step::Done);
        }
        Ok(cx.look_again_in(left_ns.min(self.period_ns)))
    }
}

fn wrong_rate(rate_hz: f64, device_hz: f64) -> Error {
    Error::new(format!(
        "its samples have {rate_hz} Hz and the radio transmits {device_hz} Hz: set `sample_rate` to the samples' rate, or \
         put a `resample.complex` before it with `rate = {device_hz}`"
    ))
}

#[operator]
impl Operator for SoapySink {
    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        let rate_hz = self.link()?.start(cx)?;
        self.begin(rate_hz)
    }

    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        self.link()?.restart();
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        self.link.as_ref().map_or(Ok(()), RadioLink::look)
    }

    fn needs_one_rate(&self) -> bool {
        true
    }

    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        let device_hz = self.sample_rate.0;
        if rate_hz == device_hz { Ok(None) } else { Err(wrong_rate(rate_hz, device_hz)) }
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.has_given_up {
            return Ok(self.give_up(cx));
        }
        match self.link()?.open(cx)? {
            RadioOpening::Open => {}
            RadioOpening::Away(step) => return self.discard(step, cx),
            RadioOpening::Back(rate_hz) => self.begin(rate_hz)?,
        }
        self.take_news(cx)?;
        if self.is_ending {
            return self.finish(cx);
        }
        if let Some(step) = self.write(cx)? {
            return Ok(step);
        }
        if !self.fill(cx)? {
            return if self.input.is_ended(cx) { self.finish(cx) } else { Ok(Step::Wait) };
        }
        match self.write(cx)? {
            Some(step) => Ok(step),
            None if self.input.is_empty(cx) && !self.input.is_ended(cx) => Ok(Step::Wait),
            None => Ok(Step::Again),
        }
    }

    fn set(&mut self, cx: &mut Context, name: &str, value: &Value) -> Result<(), Error> {
        let before = (self.frequency, self.bandwidth, self.gain, self.ppm);
        self.set_parameter(name, value)?;
        let setup = self.setup();
        match self.link()?.change(setup, name) {
            Ok(note) => {
                note.into_iter().for_each(|text| cx.note(text));
                Ok(())
            }
            Err(error) => {
                (self.frequency, self.bandwidth, self.gain, self.ppm) = before;
                Err(error)
            }
        }
    }

    fn stop(&mut self, cx: &mut Context, _: Ending) -> Result<(), Error> {
        let rest = self.waiting.drop_rest();
        cx.lose(if self.is_ending { 0 } else { rest }, SAMPLES, NOT_SENT);
        let more = std::mem::take(&mut self.underflows).saturating_sub(NOTED);
        if more > 0 {
            cx.note(format!("{more} more underflows"));
        }
        self.waiting.sum_up(cx);
        self.link()?.stop();
        (self.is_ending, self.has_given_up, self.written) = (false, false, 0);
        Ok(())
    }
}
