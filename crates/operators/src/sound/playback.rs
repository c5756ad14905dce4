//! Samples on their way to a loudspeaker. `summary` has notes of corrections, and those at the end.

mod summary;

use super::device::SoundDevice;
use super::samples::pack;
use super::servo::ClockServo;
use super::stretch::ClockStretch;
use super::timeline::{FramePlacement, Timeline};
use crate::format::Lost;
use crate::streams::real_ns;
use onbeat_os::sound::{SoundCode, SoundSettings, SoundState};
use onbeat_runtime::{Context, Error};

// Units and reasons of losses.
const FRAMES: &str = "frames";
const GAP: &str = "the sound card played silence because it had no samples (xrun); a limit on the path tells why, and \
                   more `delay` bridges more";
const LATE: &str = "came after their time in the sound card and were not played; a limit on the path tells why, and \
                    more `delay` bridges more";
const APART: &str = "not played because the clocks of the source and the sound card had come apart: `adapt = true` keeps \
                     them in step";
const AWAY: &str = "not played while the device was away";
const NOT_PLAYED: &str = "not played when the run ended";
/// Notes of single underruns; later ones are only counted.
const NOTED: u64 = 20;
/// Frames that come too early by this time at least, in seconds, are put right at once: others were lost
/// before they came here.
const JUMP_S: f64 = 0.01;
/// Chunks in succession that have waited for a device that was full, until it is known to set the pace.
const WAITED: u32 = 8;

/// When the device is started, unless it plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begun {
    /// When all samples are in it that have a time, or it is full.
    IfFull,
    /// Now.
    Now,
}

/// State of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CardState {
    /// It has no samples.
    Not,
    /// It has some, and was not started. The first of them had this due time.
    Soon(Option<u64>),
    Yes,
}

/// A gap in what is heard.
#[derive(Debug, Clone, Copy)]
struct Silence {
    /// The time at which the last sample before it has been heard, on CLOCK_MONOTONIC.
    since_ns: u64,
    /// Frames that came too late for it.
    dropped: u64,
    /// Whether the device ran dry; it was away otherwise.
    is_underrun: bool,
}

/// Samples for a device, and what has become of those before them.
pub(super) struct Playback {
    settings: SoundSettings,
    timeline: Timeline,
    has_clock: bool,
    /// Controller and resampler, if clocks are kept in step.
    adapting: Option<(ClockServo, ClockStretch)>,
    state: CardState,
    /// Chunks in succession that have waited for the device, which was full.
    waited: u32,
    /// Frames in the device's format, and the number of bytes that it has.
    bytes: Vec<u8>,
    done: usize,
    /// Frames written since the device was prepared.
    written: u64,
    /// When the last sample that was written will have been heard, on CLOCK_MONOTONIC.
    end_ns: u64,
    gap: Option<Silence>,
    underruns: u64,
    /// Frames of the longest gap.
    longest: u64,
    corrected: u64,
    /// Frames of silence that corrections have inserted.
    inserted: u64,
    /// Corrections in succession.
    in_row: u32,
    lost: Lost,
}

impl Playback {
    /// Without a clock, samples are played as they come.
    pub fn new(
        settings: SoundSettings,
        delay_s: Option<f64>,
        is_adapting: bool,
        has_clock: bool,
    ) -> Result<Self, Error> {
        let rate_hz = f64::from(settings.rate_hz);
        let ahead_s = delay_s.unwrap_or(f64::from(settings.buffer) / rate_hz / 2.0);
        let buffer_s = f64::from(settings.buffer) / rate_hz;
        // A drift is put right before the buffer is full or empty.
        let drift_s = (buffer_s - ahead_s).min(ahead_s).max(buffer_s / 8.0) / 2.0;
        let ns = |time_s: f64| (time_s * 1e9) as u64;
        let adapting = (is_adapting && has_clock).then(|| ClockStretch::new(settings.channels as usize));
        let adapting = adapting.transpose()?.map(|stretch| (ClockServo::default(), stretch));
        Ok(Playback {
            settings,
            timeline: Timeline::new(rate_hz, ns(ahead_s), ns(JUMP_S.max(ahead_s / 2.0)), ns(drift_s)),
            has_clock,
            waited: 0,
            adapting,
            state: CardState::Not,
            bytes: Vec::with_capacity(2 * settings.buffer as usize * settings.frame_bytes()),
            done: 0,
            written: 0,
            end_ns: 0,
            gap: None,
            underruns: 0,
            longest: 0,
            corrected: 0,
            inserted: 0,
            in_row: 0,
            lost: Lost::default(),
        })
    }

    pub fn settings(&self) -> &SoundSettings {
        &self.settings
    }

    pub fn rate_hz(&self) -> f64 {
        f64::from(self.settings.rate_hz)
    }

    pub fn has_clock(&self) -> bool {
        self.has_clock
    }

    /// Whether the device sets the pace, or nobody does.
    pub fn is_paced(&self) -> bool {
        !self.has_clock || self.waited >= WAITED
    }

    /// There is no delay to keep any more.
    fn forget(&mut self) {
        self.waited = WAITED;
        self.timeline.forget();
        if let Some((servo, _)) = &mut self.adapting {
            *servo = ClockServo::default();
        }
    }

    /// The next chunk has come. `has_waited`: it was there before the device, which was full, had taken the
    /// last one.
    pub fn come(&mut self, has_waited: bool) {
        if self.is_paced() {
            return;
        }
        self.waited = if has_waited { self.waited + 1 } else { 0 };
        if self.is_paced() {
            self.forget();
        }
    }

    /// Whether the device has no samples.
    pub fn is_idle(&self) -> bool {
        self.state == CardState::Not
    }

    fn after(&self, time_ns: u64, frames: i64) -> u64 {
        time_ns.saturating_add_signed((frames as f64 * 1e9 / self.rate_hz()).round() as i64)
    }

    fn frames_in(&self, ns: u64) -> u64 {
        (ns as f64 * self.rate_hz() / 1e9).round() as u64
    }

    /// Frames that are not in the device.
    fn pending(&self) -> u64 {
        ((self.bytes.len() - self.done) / self.settings.frame_bytes().max(1)) as u64
    }

    /// Places the next frames, with this due time on CLOCK_MONOTONIC. All before them are in the device.
    pub fn place(
        &mut self,
        count: u64,
        due_ns: Option<u64>,
        device: &mut SoundDevice,
        cx: &mut Context,
    ) -> Result<FramePlacement, Error> {
        if let CardState::Soon(_) = self.state {
            return Ok(FramePlacement::default());
        }
        let due_ns = due_ns.filter(|_| !self.is_paced());
        let (status, at_ns) = device.status()?;
        if status.state == SoundState::Gone {
            return Err(device.gone("the kernel says so"));
        }
        if self.state == CardState::Yes && status.state != SoundState::Running {
            self.stopped(device)?;
        }
        if self.state == CardState::Not {
            let placement = self.timeline.begin(count, due_ns, real_ns());
            self.drop_late(placement.dropped, LATE, cx);
            if placement.dropped < count {
                self.state = CardState::Soon(due_ns);
            }
            return Ok(placement);
        }
        self.end_ns = self.after(at_ns, status.delay);
        let end_ns = self.after(self.end_ns, count as i64);
        let Some((due_ns, error_ns)) = due_ns
            .filter(|_| self.waited == 0)
            .and_then(|due_ns| Some((due_ns, self.timeline.error_ns(due_ns, end_ns)?)))
        else {
            due_ns.into_iter().for_each(|due_ns| self.timeline.set(due_ns, end_ns));
            return Ok(FramePlacement::default());
        };
        let placement = self.timeline.follow(count, error_ns);
        if placement == FramePlacement::default() {
            let span_s = count as f64 / self.rate_hz();
            if let Some((servo, _)) = &mut self.adapting {
                servo.take(error_ns as f64 / 1e9, span_s);
            }
            self.in_row = 0;
            return Ok(placement);
        }
        self.in_row += 1;
        if self.in_row > WAITED {
            self.forget();
            cx.note("the delay that the device tells makes no sense: samples are played as they come");
            return Ok(FramePlacement::default());
        }
        if let Some((servo, _)) = &mut self.adapting {
            servo.set_again();
        }
        self.count_correction(placement, due_ns, error_ns, cx);
        Ok(placement)
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.done = 0;
    }

    /// Appends silence.
    pub fn silence(&mut self, frames: u64) {
        self.make_room();
        let bytes = self.bytes.len() + frames as usize * self.settings.frame_bytes();
        self.bytes.resize(bytes, 0);
    }

    /// Appends what the resampler still holds, after the last frames.
    pub fn append_rest(&mut self) -> Result<(), Error> {
        let held = self.adapting.as_ref().map_or(0, |(_, stretch)| stretch.held_frames());
        let silence = vec![0.0; held * self.settings.channels as usize];
        if held == 0 { Ok(()) } else { self.append(&silence) }
    }

    fn make_room(&mut self) {
        if self.done == self.bytes.len() {
            self.clear();
        }
    }

    /// Appends frames.
    pub fn append(&mut self, frames: &[f32]) -> Result<(), Error> {
        self.make_room();
        let Playback { adapting, bytes, lost, settings, .. } = self;
        let frames = match adapting {
            Some((servo, stretch)) => stretch.process(frames, servo.correction())?,
            None => frames,
        };
        let code = settings.code.unwrap_or(SoundCode::S16);
        let from = bytes.len();
        bytes.resize(from + frames.len() * code.bytes(), 0);
        pack(code, frames, &mut bytes[from..], lost);
        Ok(())
    }

    /// Gives the device what it has room for, and starts it. Returns whether it has all.
    pub fn flush(&mut self, begun: Begun, device: &mut SoundDevice, cx: &mut Context) -> Result<bool, Error> {
        let mut is_full = false;
        while self.done < self.bytes.len() && !is_full {
            match device.card()?.write(&self.bytes[self.done..]) {
                Ok(0) => is_full = true,
                Ok(count) => {
                    self.done += count * self.settings.frame_bytes();
                    self.written += count as u64;
                    self.end_ns = self.after(self.end_ns, count as i64);
                }
                Err(error) if error.is_later() => is_full = true,
                Err(error) if error.is_xrun() || error.is_suspended() => {
                    self.drop_late(self.pending(), LATE, cx);
                    self.stopped(device)?;
                    return Ok(true);
                }
                Err(error) => return Err(device.gone(&error)),
            }
        }
        if let CardState::Soon(due_ns) = self.state
            && self.written > 0
            && (is_full || due_ns.is_some() || begun == Begun::Now)
        {
            self.begin(due_ns, device, cx)?;
        }
        Ok(!is_full)
    }

    /// Starts the device.
    fn begin(
        &mut self,
        due_ns: Option<u64>,
        device: &mut SoundDevice,
        cx: &mut Context,
    ) -> Result<(), Error> {
        device.card()?.start().map_err(|error| device.gone(&error))?;
        let now_ns = real_ns();
        self.end_ns = self.after(now_ns, self.written as i64);
        self.state = CardState::Yes;
        if let Some(due_ns) = due_ns {
            self.timeline.set(due_ns, self.after(self.end_ns, self.pending() as i64));
        }
        self.count_gap(now_ns, cx);
        Ok(())
    }

    /// Counts a gap that ends now, or soon.
    fn count_gap(&mut self, now_ns: u64, cx: &mut Context) {
        let Some(Silence { since_ns, dropped, is_underrun }) = self.gap.take() else { return };
        let frames = self.frames_in(now_ns.saturating_sub(since_ns));
        // Those that came too late are counted.
        let reason = if is_underrun { GAP } else { AWAY };
        cx.lose(frames.saturating_sub(dropped), FRAMES, reason);
        if !is_underrun {
            return;
        }
        self.longest = self.longest.max(frames);
        if self.underruns <= NOTED {
            let at_ns = cx.from_monotonic_ns(since_ns);
            let at_s = at_ns.map_or(0.0, |at_ns| at_ns.saturating_sub(cx.start_ns()) as f64 / 1e9);
            let ms = frames as f64 * 1e3 / self.rate_hz();
            cx.note(format!("underrun at {at_s:.3} s: {ms:.2} ms of silence ({frames} frames)"));
        }
    }

    /// The device has run dry, or the machine slept.
    fn stopped(&mut self, device: &mut SoundDevice) -> Result<(), Error> {
        device.card()?.prepare().map_err(|error| device.gone(&error))?;
        let had_played = self.state == CardState::Yes;
        (self.state, self.written, self.waited) = (CardState::Not, 0, 0);
        self.clear();
        if had_played && self.gap.is_none() {
            self.underruns += 1;
            self.gap = Some(Silence { since_ns: self.end_ns, dropped: 0, is_underrun: true });
        }
        Ok(())
    }

    fn drop_late(&mut self, count: u64, reason: &'static str, cx: &mut Context) {
        cx.lose(count, FRAMES, reason);
        if let Some(gap) = &mut self.gap {
            gap.dropped += count;
        }
    }

    /// Counts frames that came while the device was away.
    pub fn drop_away(&mut self, count: u64, cx: &mut Context) {
        self.drop_late(count, AWAY, cx);
    }

    /// The device is away from now on.
    pub fn device_went(&mut self, cx: &mut Context) {
        let now_ns = real_ns();
        if self.state == CardState::Yes {
            self.gap = Some(Silence { since_ns: now_ns.min(self.end_ns), dropped: 0, is_underrun: false });
        }
        self.drop_late(self.pending(), AWAY, cx);
        self.clear();
        (self.state, self.written) = (CardState::Not, 0);
    }

    /// The device is open again, with these settings.
    pub fn device_is_back(&mut self, settings: SoundSettings) {
        self.settings = settings;
    }

    /// Does not wait for the device any longer.
    pub fn give_up(&mut self, cx: &mut Context) {
        cx.lose(self.pending(), FRAMES, NOT_PLAYED);
        self.clear();
    }
}
