//! Samples from a radio.

use super::RadioError;
use super::link::{RadioLink, RadioOpening};
use super::setup::{RadioSetup, RadioUse};
use super::stamps::{RadioStamps, StampNews};
use crate::check;
use crate::streams::{RateWatch, TunerGain, real_ns, time_ns, usual};
use num_complex::Complex;
use onbeat_runtime::{
    Chunk, Context, Declared, Ending, Error, Hertz, Operator, Output, Pace, Rate, Seconds, Step, Tag, Value,
    operator,
};
use std::collections::BTreeMap;

// Units and reasons of losses.
const SAMPLES: &str = "samples";
const OVERFLOWS: &str = "overflows";
const OVERFLOW: &str = "the radio's buffer was full (overflow), counted by time stamps: they were not taken in time; a \
                        limit on the path tells why";
const GAP: &str = "missing by the time stamps of the radio, whose driver did not report an overflow: its connection or \
                   its server was too slow";
const UNCOUNTED: &str = "the radio's buffer was full, and its driver does not say how many samples were lost; a limit \
                         on the path tells why";
const DAMAGES: &str = "damaged blocks";
const DAMAGED: &str =
    "the driver reported damage on the way from the device, and does not say of how many samples";
const AWAY: &str = "not received while the device was away; their number is by the time until it was back";
const SHORT: &str = "fewer came than the sample rate promises, which is an estimate: the device, its connection or this \
                     pipeline was too slow";
/// Notes of single gaps; later ones are only counted.
const NOTED: u64 = 20;

#[doc = include_str!("../about/soapy_source.md")]
#[derive(Operator)]
#[operator(
    name = "soapy.source",
    summary = "receives samples from a radio (SoapySDR)",
    about = include_str!("../about/soapy_source.md"),
    prepare = Self::prepare,
)]
pub struct SoapySource {
    /// The samples.
    out: Output<Chunk<Complex<f32>>>,
    /// SoapySDR's arguments of the device: pairs of key and value. `SoapySDRUtil --find` lists devices.
    #[parameter(example = "driver=rtlsdr")]
    device: String,
    /// Channel of the device, counted from 0.
    #[parameter(default)]
    channel: u32,
    /// Name of the antenna. Without it, the driver's choice.
    #[parameter]
    antenna: Option<String>,
    /// Centre frequency.
    #[parameter(settable, example = "100 MHz")]
    frequency: Hertz,
    /// Samples per second. It cannot change during a run: filters are made for one rate.
    #[parameter(example = "2.4 MS/s")]
    sample_rate: Hertz,
    /// Width of the analogue filter. Without it, the driver's choice.
    #[parameter(settable)]
    bandwidth: Option<Hertz>,
    /// Gain of all elements together: `"auto"`, or decibels. Without it, the driver's choice.
    #[parameter(settable)]
    gain: Option<TunerGain>,
    /// Gain of each element in decibels, such as `{ LNA = 20, VGA = 16 }`, instead of `gain`.
    #[parameter(default)]
    gains: BTreeMap<String, f64>,
    /// Correction of the device's crystal in parts per million. Without it, the driver's setting stays.
    #[parameter(settable)]
    ppm: Option<f64>,
    /// Settings that only this driver has, such as `{ biastee = "true" }`; `SoapySDRUtil --probe` lists them.
    #[parameter(default)]
    settings: BTreeMap<String, String>,
    /// SoapySDR's arguments of the stream, such as `bufflen=65536`; `SoapySDRUtil --probe` lists them.
    #[parameter(default)]
    stream: String,
    /// Time from one look at the driver to the next while it has no samples.
    #[parameter(default = "2 ms")]
    period: Seconds,
    /// How long to wait for samples; with `on_error = "restart"`, also for a device that went away.
    #[parameter(default = usual())]
    patience: Seconds,
    link: Option<RadioLink>,
    period_ns: u64,
    rate_hz: f64,
    stamps: Option<RadioStamps>,
    watch: RateWatch,
    /// Index of the next sample, lost ones included.
    position: u64,
    /// When the last sample was at the antenna, on CLOCK_MONOTONIC.
    last_ns: Option<u64>,
    /// When samples came last, or the stream began.
    heard_ns: u64,
    /// Whether the device was away since the last sample.
    was_away: bool,
    /// Overflows since the last sample.
    overflows: u64,
    tags_frequency: bool,
    gaps: u64,
}

impl SoapySource {
    /// Checks the parameters.
    fn prepare(&mut self) -> Result<(), Error> {
        let setup = self.setup();
        setup.check()?;
        check::within("period", self.period.0, 50e-6, 1.0, "2 ms is usual")?;
        self.period_ns = time_ns("period", self.period)?;
        let patience_ns = time_ns("patience", self.patience)?;
        match &mut self.link {
            // A change during the run: `set` makes it in the device, too.
            Some(_) => {}
            None => self.link = Some(RadioLink::new(setup, patience_ns)),
        }
        Ok(())
    }

    fn setup(&self) -> RadioSetup {
        RadioSetup {
            way: RadioUse::Receive,
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
    fn begin(&mut self, rate_hz: f64) {
        self.rate_hz = rate_hz;
        self.stamps = Some(RadioStamps::new(rate_hz));
        self.heard_ns = real_ns();
        self.watch = RateWatch::new(rate_hz, self.heard_ns);
        (self.overflows, self.tags_frequency) = (0, true);
    }

    /// Counts lost samples before the next one, and notes the first of such gaps.
    fn lost(&mut self, count: u64, reason: &'static str, cx: &mut Context) {
        cx.lose(count, SAMPLES, reason);
        self.gaps += 1;
        if self.gaps <= NOTED {
            let (at_s, ms) = (self.position as f64 / self.rate_hz, count as f64 * 1e3 / self.rate_hz);
            let what = match reason {
                OVERFLOW => "overflow",
                AWAY => "device away",
                _ => "gap",
            };
            cx.note(format!("{what} at {at_s:.6} s: {count} samples ({ms:.3} ms) were lost"));
        }
        self.position += count;
    }

    /// Counts what is missing before samples that were read, by their stamp.
    fn count_missing(
        &mut self,
        time_ns: Option<i64>,
        count: u64,
        now_ns: u64,
        cx: &mut Context,
    ) -> Result<(), Error> {
        let Some(stamps) = &mut self.stamps else { return Ok(()) };
        let news = stamps.take(time_ns, count, now_ns);
        let overflows = std::mem::take(&mut self.overflows);
        match news {
            StampNews::Missing(lost) if !self.was_away => {
                self.lost(lost, if overflows > 0 { OVERFLOW } else { GAP }, cx);
                return Ok(());
            }
            StampNews::Set => cx.note_odd(format!(
                "the clock of {} was set before sample {}: what was lost at that time is not counted",
                self.device, self.position
            ))?,
            StampNews::Unsteady => cx.note_odd(format!(
                "the time stamps of {} go back, so they are not those of its samples: they are not used",
                self.device
            ))?,
            StampNews::Missing(_) | StampNews::Follows => {}
        }
        cx.lose(overflows, OVERFLOWS, UNCOUNTED);
        Ok(())
    }

    /// Counts the samples of a time without the device, which ends at the first new one.
    fn count_away(&mut self, first_ns: u64, cx: &mut Context) {
        if let Some(last_ns) = self.last_ns {
            let away_s = first_ns.saturating_sub(last_ns) as f64 * 1e-9;
            self.lost((away_s * self.rate_hz).round() as u64, AWAY, cx);
        }
    }

    /// Sends samples that were read.
    fn pass(
        &mut self,
        mut chunk: Chunk<Complex<f32>>,
        count: usize,
        time_ns: Option<i64>,
        cx: &mut Context,
    ) -> Result<(), Error> {
        let now_ns = real_ns();
        self.heard_ns = now_ns;
        self.count_missing(time_ns, count as u64, now_ns, cx)?;
        let last_ns = self.stamps.as_mut().and_then(|stamps| stamps.due_ns(now_ns)).unwrap_or(now_ns);
        if std::mem::take(&mut self.was_away) {
            self.count_away(last_ns.saturating_sub((count as f64 * 1e9 / self.rate_hz) as u64), cx);
        }
        self.last_ns = Some(last_ns);
        if !self.stamps.as_ref().is_some_and(RadioStamps::are_used) {
            self.watch.arrive(now_ns, count);
        }
        chunk.truncate(count);
        let info = chunk.info_mut();
        (info.start, info.rate_hz) = (self.position, self.rate_hz);
        if std::mem::take(&mut self.tags_frequency) {
            let value = self.frequency.0.into();
            info.tags.push(Tag { offset: 0, key: "core:frequency".into(), value });
        }
        let time_ns = (self.position as f64 * 1e9 / self.rate_hz) as u64;
        let due_ns = cx.from_monotonic_ns(last_ns).unwrap_or_else(|| cx.now_ns());
        cx.set_time(time_ns, Some(due_ns.clamp(cx.start_ns().min(cx.now_ns()), cx.now_ns())));
        self.position += count as u64;
        self.out.push(cx, chunk)
    }

    /// Handles what a read gave instead of samples.
    fn without_samples(&mut self, error: &RadioError, cx: &mut Context) -> Result<Step, Error> {
        if error.is_later() {
            return self.wait(cx);
        }
        if error.is_overflow() {
            (self.overflows, self.heard_ns) = (self.overflows + 1, real_ns());
        } else if error.is_damage() || error.is_late() {
            cx.lose(1, DAMAGES, DAMAGED);
        } else {
            return Err(self.link()?.gone(error));
        }
        // It is news: some drivers report it again and again, and this must not go without an end.
        self.wait(cx)
    }

    /// Waits for samples, unless the patience is used up.
    fn wait(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let patience_ns = self.link()?.patience_ns();
        if real_ns() >= self.heard_ns.saturating_add(patience_ns) {
            return Err(self
                .link()?
                .gone(format_args!("it sent no samples for {} s", patience_ns as f64 / 1e9)));
        }
        Ok(cx.look_again_in(self.period_ns))
    }
}

#[operator]
impl Operator for SoapySource {
    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        let rate_hz = self.link()?.start(cx)?;
        self.begin(rate_hz);
        Ok(())
    }

    fn restart(&mut self, cx: &mut Context) -> Result<(), Error> {
        cx.lose(std::mem::take(&mut self.overflows), OVERFLOWS, UNCOUNTED);
        self.was_away = true;
        self.link()?.restart();
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        self.link.as_ref().map_or(Ok(()), RadioLink::look)
    }

    fn rate(&self, _: Option<Pace>) -> Option<Rate> {
        let bytes = size_of::<Complex<f32>>();
        Some(Rate::Samples { rate_hz: self.sample_rate.0, chunk: None, bytes })
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        match self.link()?.open(cx)? {
            RadioOpening::Open => {}
            RadioOpening::Away(step) => return Ok(step),
            RadioOpening::Back(rate_hz) => self.begin(rate_hz),
        }
        let Some(mut chunk) = self.out.chunk(cx) else {
            // The device is not silent: nothing is read.
            self.heard_ns = real_ns();
            return Ok(Step::Wait);
        };
        let Some(samples) = chunk.edit_unique() else { return Ok(Step::Wait) };
        let read = self.link()?.stream()?.read(bytemuck::cast_slice_mut(samples));
        match read {
            Ok(read) if read.count > 0 => {
                self.pass(chunk, read.count, read.time_ns, cx)?;
                self.overflows += u64::from(read.is_cut);
                Ok(Step::Again)
            }
            Ok(_) => self.wait(cx),
            Err(error) => {
                drop(chunk);
                self.without_samples(&error, cx)
            }
        }
    }

    fn set(&mut self, cx: &mut Context, name: &str, value: &Value) -> Result<(), Error> {
        let before = (self.frequency, self.bandwidth, self.gain, self.ppm);
        self.set_parameter(name, value)?;
        let setup = self.setup();
        match self.link()?.change(setup, name) {
            Ok(note) => {
                self.tags_frequency |= name == "frequency";
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
        cx.lose(std::mem::take(&mut self.overflows), OVERFLOWS, UNCOUNTED);
        if let Some(short) = std::mem::take(&mut self.watch).shortage() {
            cx.lose(short.samples, SAMPLES, SHORT);
            cx.note(format!(
                "in {:.1} s about {} samples ({:.1} %) fewer came than the sample rate promises; this is an estimate, \
                 because the driver gives no time stamps",
                short.over_s, short.samples, short.percent
            ));
        }
        if std::mem::take(&mut self.was_away) {
            let stopped_ns = cx.stopped_for_ns().unwrap_or(0);
            self.count_away(real_ns().saturating_sub(stopped_ns), cx);
        }
        let more = std::mem::take(&mut self.gaps).saturating_sub(NOTED);
        if more > 0 {
            cx.note(format!("{more} more gaps"));
        }
        self.link()?.stop();
        Ok(())
    }
}
