//! Samples to a sound card.

use super::SoundSetup;
use super::device::{SoundDevice, SoundOpening};
use super::playback::{Begun, Playback};
use super::stretch::BLOCK;
use crate::lanes::{channel_inputs, one_or_all, show_inputs};
use crate::streams::{is_over, over_at_ns};
use onbeat_os::sound::{SoundState, SoundUse};
use onbeat_runtime::{Aligned, Chunk, Context, Ending, Error, Input, Operator, Ports, Step};

/// Time from one look whether all has been heard to the next, at the end, at least.
const LOOK_NS: u64 = 1_000_000;

#[doc = include_str!("../about/audio_sink.md")]
pub struct AudioSink {
    /// Samples of the only channel.
    pub input: Input<Chunk<f32>>,
    /// With several channels, one input each: `in0`, `in1`, ... instead of `in`.
    pub inputs: Vec<Input<Chunk<f32>>>,
    streams: Aligned<f32>,
    device: SoundDevice,
    playback: Option<Playback>,
    delay_s: Option<f64>,
    is_adapting: bool,
    has_noted: bool,
    /// Whether the device was full, and whether a chunk was taken in part.
    has_waited: bool,
    has_rest: bool,
    /// Whether all samples were taken, and silence follows.
    is_finishing: bool,
}

impl AudioSink {
    /// Plays on a device.
    ///
    /// # Errors
    /// If there are no channels, or more than 64.
    pub fn new(setup: SoundSetup) -> Result<Self, Error> {
        Ok(AudioSink {
            input: Input::default(),
            inputs: channel_inputs(setup.channels)?,
            streams: Aligned::new(setup.channels as usize),
            device: SoundDevice::new(setup, SoundUse::Play),
            playback: None,
            delay_s: None,
            is_adapting: false,
            has_noted: false,
            has_waited: false,
            has_rest: false,
            is_finishing: false,
        })
    }

    /// Sets the silence before the first sample, in seconds; without it, half of the device's buffer.
    pub fn delay(mut self, delay_s: f64) -> Self {
        self.delay_s = Some(delay_s);
        self
    }

    /// Lets it resample so that the delay stays the same.
    pub fn adapt(mut self, is_adapting: bool) -> Self {
        self.is_adapting = is_adapting;
        self
    }

    /// Drops samples of a live source while the device is away; others wait.
    fn discard(&mut self, cx: &mut Context) -> Result<(), Error> {
        let inputs = one_or_all(&mut self.input, &mut self.inputs);
        while let Some(count) = self.streams.take(inputs, cx)? {
            if self.streams.stamp().due_ns().is_none() {
                break;
            }
            self.streams.consume(count);
            if let Some(playback) = &mut self.playback {
                playback.drop_away(count as u64, cx);
            }
        }
        Ok(())
    }

    /// Takes the next samples, and gives them their place.
    fn place(&mut self, count: usize, cx: &mut Context) -> Result<(), Error> {
        let Some(playback) = &mut self.playback else { return Ok(()) };
        let rate_hz = self.streams.rate_hz();
        if rate_hz != playback.rate_hz() {
            return Err(wrong_rate(rate_hz, playback.rate_hz()));
        }
        // A chunk is due when its last sample is.
        let rest = count.saturating_sub(BLOCK);
        let count = count - rest;
        let rest_ns = (rest as f64 * 1e9 / rate_hz) as u64;
        let due_ns = self.streams.stamp().due_ns().and_then(|due_ns| cx.to_monotonic_ns(due_ns));
        let due_ns = due_ns.map(|due_ns| due_ns.saturating_sub(rest_ns));
        self.has_rest = rest > 0;
        let is_paced = playback.is_paced() || due_ns.is_none();
        let has_clock = playback.has_clock();
        let is_noted =
            if has_clock { self.is_adapting && is_paced } else { self.is_adapting || due_ns.is_some() };
        if is_noted && !std::mem::replace(&mut self.has_noted, true) {
            let without =
                "has no clock: samples are played as they come, and `delay` and `adapt` have no effect";
            cx.note(if has_clock {
                "`adapt` has no effect on samples that come as fast as there is room".to_string()
            } else {
                format!("{} {without}", self.device.name())
            });
        }
        let placement = playback.place(count as u64, due_ns, &mut self.device, cx)?;
        let dropped = placement.dropped as usize;
        self.streams.consume(dropped);
        if dropped < count {
            playback.silence(placement.silence);
            self.streams.frames(count - dropped, |frames| playback.append(frames))?;
            self.streams.consume(count - dropped);
        }
        Ok(())
    }

    /// Waits until all has been heard.
    fn finish(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(playback) = &mut self.playback else { return Ok(Step::Done) };
        let is_first = !std::mem::replace(&mut self.is_finishing, true);
        if is_first && !playback.is_idle() {
            playback.append_rest()?;
            // Behind the last sample the device would repeat old ones.
            playback.silence(u64::from(playback.settings().period));
        }
        if !playback.flush(Begun::Now, &mut self.device, cx)? {
            return self.wait(cx);
        }
        let Some(playback) = &self.playback else { return Ok(Step::Done) };
        let (status, _) = self.device.status()?;
        let left = status.delay - i64::from(playback.settings().period);
        if status.state != SoundState::Running || left <= 0 || is_over(cx, self.device.setup.patience_ns) {
            return Ok(Step::Done);
        }
        let left_ns = (left as f64 * 1e9 / playback.rate_hz()) as u64;
        Ok(cx.look_again_in(left_ns.max(LOOK_NS)))
    }

    /// Waits for room in the device.
    fn wait(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let patience_ns = self.device.setup.patience_ns;
        if is_over(cx, patience_ns) {
            if let Some(playback) = &mut self.playback {
                playback.give_up(cx);
            }
            return Ok(Step::Again);
        }
        self.has_waited = true;
        let until_ns = over_at_ns(cx, patience_ns);
        self.device.wait(Some(until_ns), cx)
    }
}

fn wrong_rate(rate_hz: f64, device_hz: f64) -> Error {
    Error::new(format!(
        "its samples have {rate_hz} Hz and the sound card plays {device_hz} Hz: set `sample_rate` to the samples' rate, or \
         put a `resample` before it with `rate = {device_hz}`"
    ))
}

impl Operator for AudioSink {
    fn ports(&mut self, p: &mut Ports) {
        show_inputs(p, &mut self.input, &mut self.inputs);
    }

    fn check(&self) -> Result<(), Error> {
        self.device.look()
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        let settings = self.device.start(cx)?;
        let has_clock = self.device.card()?.has_clock();
        self.playback = Some(Playback::new(settings, self.delay_s, self.is_adapting, has_clock)?);
        Ok(())
    }

    fn restart(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.device.restart();
        if let Some(playback) = &mut self.playback {
            playback.device_went(cx);
        }
        Ok(())
    }

    fn needs_one_rate(&self) -> bool {
        true
    }

    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        let device_hz = f64::from(self.device.setup.rate_hz);
        if rate_hz == device_hz { Ok(None) } else { Err(wrong_rate(rate_hz, device_hz)) }
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        match self.device.open(cx)? {
            SoundOpening::Open => {}
            SoundOpening::Away(step) => {
                self.discard(cx)?;
                return Ok(step);
            }
            SoundOpening::Back => {
                let settings = *self.device.card()?.settings();
                if let Some(playback) = &mut self.playback {
                    playback.device_is_back(settings);
                }
            }
        }
        if self.is_finishing {
            return self.finish(cx);
        }
        let Some(playback) = &mut self.playback else { return Ok(Step::Done) };
        if !playback.flush(Begun::IfFull, &mut self.device, cx)? {
            return self.wait(cx);
        }
        let has_waited = std::mem::take(&mut self.has_waited);
        let inputs = one_or_all(&mut self.input, &mut self.inputs);
        let Some(count) = self.streams.take(inputs, cx)? else {
            return match self.streams.wait(inputs, cx) {
                Step::Done => self.finish(cx),
                step => Ok(step),
            };
        };
        if !self.has_rest {
            playback.come(has_waited);
        }
        self.place(count, cx)?;
        let Some(playback) = &mut self.playback else { return Ok(Step::Done) };
        if !playback.flush(Begun::IfFull, &mut self.device, cx)? {
            return self.wait(cx);
        }
        Ok(self.streams.rest())
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.device.stop();
        if let Some(playback) = self.playback.take() {
            playback.sum_up(ending, &self.device.setup.device, cx);
        }
        self.is_finishing = false;
        Ok(())
    }
}
