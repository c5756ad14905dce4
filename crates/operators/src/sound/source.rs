//! Samples from a sound card.

use super::SoundSetup;
use super::device::{SoundDevice, SoundOpening};
use super::samples::unpack;
use crate::check;
use crate::lanes::{channel_outputs, one_or_all, show_outputs};
use crate::streams::real_ns;
use onbeat_os::sound::{SoundCode, SoundSettings, SoundState, SoundStatus, SoundUse};
use onbeat_runtime::{Chunk, Context, Ending, Error, Operator, Output, Pace, Ports, Rate, Step};

// Units and reasons of losses.
const FRAMES: &str = "frames";
const OVERRUN: &str = "the sound card's buffer was full (xrun): they were not taken in time; a limit on the path tells \
                       why, and more `periods` bridge more";
const STOPPED: &str = "the sound card stopped because its buffer was full (xrun): they were not taken in time; a limit \
                       on the path tells why, and more `periods` bridge more";
const AWAY: &str = "not captured while the device was away";
const ASLEEP: &str = "not captured while the machine slept";
/// Waits in succession without samples, until their time counts: below a quarter of a period each, the device
/// says that it is ready and is not, and is looked at by time.
const WAITS: u32 = 8;
/// Time from one such look to the next, at least.
const LOOK_NS: u64 = 1_000_000;
/// Notes of single overruns; later ones are only counted.
const NOTED: u64 = 20;

#[doc = include_str!("../about/audio_source.md")]
pub struct AudioSource {
    /// Samples of the only channel.
    pub out: Output<Chunk<f32>>,
    /// With several channels, one output each: `out0`, `out1`, ... instead of `out`.
    pub outputs: Vec<Output<Chunk<f32>>>,
    device: SoundDevice,
    channel: Option<usize>,
    settings: SoundSettings,
    chunks: Vec<Chunk<f32>>,
    /// A period as the device has it, and as samples.
    bytes: Vec<u8>,
    frames: Vec<f32>,
    is_started: bool,
    /// Frames read since the device was started.
    taken: u64,
    /// Number of the next frame, lost ones included.
    position: u64,
    /// The time at which the frame before it had passed the converter, on CLOCK_MONOTONIC.
    last_ns: Option<u64>,
    /// Why frames are missing before the next one.
    gap: Option<&'static str>,
    xruns: u64,
    /// Frames of the longest overrun.
    longest: u64,
    /// When the last samples came, and waits since then or since `waits_ns`, on CLOCK_MONOTONIC.
    heard_ns: u64,
    waits: u32,
    waits_ns: u64,
}

impl AudioSource {
    /// Captures all channels of a device.
    ///
    /// # Errors
    /// If there are no channels, or more than 64.
    pub fn new(setup: SoundSetup) -> Result<Self, Error> {
        let outputs = channel_outputs(setup.channels)?;
        let (rate_hz, channels) = (setup.rate_hz, setup.channels as u32);
        Ok(AudioSource {
            out: Output::default(),
            outputs,
            device: SoundDevice::new(setup, SoundUse::Capture),
            channel: None,
            settings: SoundSettings { rate_hz, channels, code: None, period: 0, buffer: 0 },
            chunks: Vec::new(),
            bytes: Vec::new(),
            frames: Vec::new(),
            is_started: false,
            taken: 0,
            position: 0,
            last_ns: None,
            gap: None,
            xruns: 0,
            longest: 0,
            heard_ns: 0,
            waits: 0,
            waits_ns: 0,
        })
    }

    /// Selects the only channel to send, counted from 0.
    ///
    /// # Errors
    /// If the device has no such channel.
    pub fn channel(mut self, channel: u64) -> Result<Self, Error> {
        let last = self.device.setup.channels as f64 - 1.0;
        check::within(
            "channel",
            channel as f64,
            0.0,
            last,
            "`channels` is their number, and the first is 0",
        )?;
        self.channel = Some(channel as usize);
        self.outputs.clear();
        Ok(self)
    }

    fn rate_hz(&self) -> f64 {
        f64::from(self.settings.rate_hz)
    }

    fn ns(&self, frames: f64) -> i64 {
        (frames * 1e9 / self.rate_hz()).round() as i64
    }

    /// Starts the device, also after it has stopped.
    fn begin(&mut self, reason: Option<&'static str>) -> Result<(), Error> {
        if self.is_started {
            self.gap = reason.or(self.gap);
            self.device.card()?.prepare().map_err(|error| self.device.gone(&error))?;
        }
        (self.is_started, self.taken) = (true, 0);
        (self.heard_ns, self.waits) = (real_ns(), 0);
        self.device.card()?.start().map_err(|error| self.device.gone(&error))
    }

    /// Counts frames that were overwritten, and passes over them. Returns whether there were any.
    fn skip_overwritten(&mut self, status: &SoundStatus, cx: &mut Context) -> Result<bool, Error> {
        let over = status.available.saturating_sub(u64::from(self.settings.buffer));
        if over == 0 {
            return Ok(false);
        }
        // The device goes on meanwhile: some more. Then whole periods are read again when they end.
        let period = u64::from(self.settings.period);
        let wanted = (self.taken + over + period / 4).next_multiple_of(period) - self.taken;
        let mut skipped = 0;
        while skipped < wanted {
            let count = (wanted - skipped).min(period) as usize;
            let bytes = &mut self.bytes[..count * self.settings.frame_bytes()];
            match self.device.card()?.read(bytes) {
                Ok(count) => skipped += count as u64,
                Err(error) if error.is_later() => break,
                Err(error) if error.is_xrun() => break,
                Err(error) => return Err(self.device.gone(&error)),
            }
        }
        self.taken += skipped;
        self.lost(skipped, OVERRUN, cx);
        Ok(skipped > 0)
    }

    /// Whether frames that were read may have been overwritten meanwhile: the buffer was nearly full before.
    fn was_overwritten(&mut self, count: usize, before: &SoundStatus) -> Result<bool, Error> {
        let buffer = u64::from(self.settings.buffer);
        if before.available <= buffer / 2 {
            return Ok(false);
        }
        let (after, _) = self.device.status()?;
        // A plugin without a clock is as full as before.
        let has_clock = after.available != before.available;
        Ok(has_clock && after.available + count as u64 > buffer)
    }

    /// Counts lost frames, and notes the first of such events.
    fn lost(&mut self, count: u64, reason: &'static str, cx: &mut Context) {
        cx.lose(count, FRAMES, reason);
        if [OVERRUN, STOPPED].contains(&reason) {
            self.xruns += 1;
            self.longest = self.longest.max(count);
            if self.xruns <= NOTED {
                let (at_s, ms) = (self.position as f64 / self.rate_hz(), count as f64 * 1e3 / self.rate_hz());
                cx.note(format!("overrun at {at_s:.3} s: {count} frames ({ms:.2} ms) were lost"));
            }
        }
        self.position += count;
    }

    /// Counts the frames of a gap, by the time from the last frame before it to the first one after it.
    fn count_gap(&mut self, first_ns: u64, cx: &mut Context) {
        if let Some(reason) = self.gap.take() {
            let gap_ns = self.last_ns.map_or(0, |last_ns| first_ns.saturating_sub(last_ns));
            self.lost((gap_ns as f64 * self.rate_hz() / 1e9).round() as u64, reason, cx);
        }
    }

    /// Reads frames and sends them. Returns `false` if the device has stopped.
    fn send(
        &mut self,
        count: usize,
        status: &SoundStatus,
        at_ns: u64,
        cx: &mut Context,
    ) -> Result<bool, Error> {
        let bytes = &mut self.bytes[..count * self.settings.frame_bytes()];
        let count = match self.device.card()?.read(bytes) {
            Ok(count) => count,
            Err(error) if error.is_later() || error.is_xrun() || error.is_suspended() => 0,
            Err(error) => return Err(self.device.gone(&error)),
        };
        if count == 0 {
            self.chunks.clear();
            return Ok(false);
        }
        self.taken += count as u64;
        (self.heard_ns, self.waits) = (at_ns, 0);
        if self.was_overwritten(count, status)? {
            self.chunks.clear();
            self.lost(count as u64, OVERRUN, cx);
            return Ok(true);
        }
        let first_ns = at_ns.saturating_add_signed(-self.ns(status.delay as f64));
        self.count_gap(first_ns, cx);
        let channels = self.settings.channels as usize;
        let (bytes, frames) =
            (&self.bytes[..count * self.settings.frame_bytes()], &mut self.frames[..count * channels]);
        unpack(self.settings.code.unwrap_or(SoundCode::S16), bytes, frames);
        let outputs = one_or_all(&mut self.out, &mut self.outputs);
        let first = self.channel.unwrap_or(0);
        let rate_hz = f64::from(self.settings.rate_hz);
        for (lane, chunk) in self.chunks.iter_mut().enumerate() {
            let samples = self.frames[first + lane..].iter().step_by(channels);
            chunk.edit(cx)?.iter_mut().zip(samples).for_each(|(y, x)| *y = *x);
            chunk.truncate(count);
            (chunk.info_mut().start, chunk.info_mut().rate_hz) = (self.position, rate_hz);
        }
        let last_ns = first_ns.saturating_add((count as f64 * 1e9 / rate_hz) as u64);
        self.last_ns = Some(last_ns);
        let due_ns = cx.from_monotonic_ns(last_ns).unwrap_or_else(|| cx.now_ns());
        cx.set_time((self.position as f64 * 1e9 / rate_hz) as u64, Some(due_ns));
        self.position += count as u64;
        for (output, chunk) in outputs.iter_mut().zip(self.chunks.drain(..)) {
            output.push(cx, chunk)?;
        }
        Ok(true)
    }

    /// Returns a position like this one, with what has to be moved through plugins before it counts.
    fn look_again(&mut self, before: (SoundStatus, u64)) -> Result<(SoundStatus, u64), Error> {
        // The next status tells why there are none.
        let available = self.device.card()?.available().unwrap_or(0);
        if available <= before.0.available {
            return Ok(before);
        }
        let (status, at_ns) = self.device.status()?;
        Ok((SoundStatus { available: status.available.max(available), ..status }, at_ns))
    }

    /// Waits for samples.
    fn wait(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.waits == 0 {
            self.waits_ns = real_ns();
        }
        self.waits += 1;
        if self.waits <= WAITS {
            return self.device.wait(None, cx);
        }
        let (now_ns, period_ns) = (real_ns(), self.ns(f64::from(self.settings.period)).unsigned_abs());
        let is_spinning = now_ns.saturating_sub(self.waits_ns) < u64::from(WAITS) * period_ns / 4;
        self.waits = 0;
        if !is_spinning {
            return self.device.wait(None, cx);
        }
        let patience_ns = self.device.setup.patience_ns;
        if now_ns.saturating_sub(self.heard_ns) >= patience_ns {
            let why = format!("it sent no samples for {} s", patience_ns as f64 / 1e9);
            return Err(self.device.gone(why));
        }
        Ok(cx.look_again_in((period_ns / 2).max(LOOK_NS)))
    }

    /// Takes a chunk for each output; `false` if there is no room.
    fn take_chunks(&mut self, cx: &mut Context) -> bool {
        self.chunks.clear();
        for output in one_or_all(&mut self.out, &mut self.outputs) {
            let Some(chunk) = output.chunk(cx) else {
                self.chunks.clear();
                return false;
            };
            self.chunks.push(chunk);
        }
        true
    }
}

impl Operator for AudioSource {
    fn ports(&mut self, p: &mut Ports) {
        show_outputs(p, &mut self.out, &mut self.outputs);
    }

    fn check(&self) -> Result<(), Error> {
        self.device.look()
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.settings = self.device.start(cx)?;
        self.prepare();
        Ok(())
    }

    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        self.device.restart();
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        match self.device.open(cx)? {
            SoundOpening::Open => {}
            SoundOpening::Away(step) => return Ok(step),
            SoundOpening::Back => {
                self.settings = *self.device.card()?.settings();
                self.prepare();
                self.is_started = false;
                self.gap = Some(AWAY);
            }
        }
        if !self.is_started {
            self.begin(None)?;
        }
        if !self.take_chunks(cx) {
            return Ok(Step::Wait);
        }
        let (mut status, mut at_ns) = self.device.status()?;
        match status.state {
            SoundState::Running => {}
            SoundState::Gone => return Err(self.device.gone("the kernel says so")),
            state => {
                self.chunks.clear();
                let reason = if state == SoundState::Suspended { ASLEEP } else { STOPPED };
                self.begin(Some(reason))?;
                return Ok(Step::Again);
            }
        }
        if self.skip_overwritten(&status, cx)? {
            (status, at_ns) = self.device.status()?;
        }
        let room = self.chunks.iter().map(Chunk::capacity).min().unwrap_or(0);
        let count = room.min(self.settings.period as usize);
        if status.available < count as u64 {
            (status, at_ns) = self.look_again((status, at_ns))?;
        }
        if status.available < count as u64 {
            self.chunks.clear();
            return self.wait(cx);
        }
        self.send(count, &status, at_ns, cx)?;
        Ok(Step::Again)
    }

    fn rate(&self, _: Option<Pace>) -> Option<Rate> {
        let setup = &self.device.setup;
        let chunk = (setup.period_s * f64::from(setup.rate_hz)).round() as u64;
        Some(Rate::Samples { rate_hz: f64::from(setup.rate_hz), chunk: Some(chunk), bytes: size_of::<f32>() })
    }

    fn sample_rate(&self) -> Option<f64> {
        Some(f64::from(self.device.setup.rate_hz))
    }

    fn stop(&mut self, cx: &mut Context, _: Ending) -> Result<(), Error> {
        self.chunks.clear();
        self.device.stop();
        if self.xruns > 0 {
            let ms = self.longest as f64 * 1e3 / self.rate_hz();
            cx.note(format!(
                "{} overruns of the sound card's buffer (xruns); the longest lost {} frames ({ms:.2} ms)",
                self.xruns, self.longest
            ));
        }
        (self.xruns, self.longest) = (0, 0);
        Ok(())
    }
}

impl AudioSource {
    /// Makes buffers for the settings in force.
    fn prepare(&mut self) {
        let SoundSettings { period, channels, .. } = self.settings;
        self.frames.resize(period as usize * channels as usize, 0.0);
        self.bytes.resize(period as usize * self.settings.frame_bytes(), 0);
        self.chunks.reserve(channels as usize);
    }
}
