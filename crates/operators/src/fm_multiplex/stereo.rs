//! Left and right of a stereo station.

use super::pilot::PilotLoop;
use crate::check;
use crate::dsp::{FirDecimator, LowPass, not_finite};
use crate::found::time_ns;
use num_complex::Complex;
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Hertz, Input, Kernel, Operator, Output, Stamp, Step, operator,
};
use std::collections::VecDeque;

/// Lowest sample rate: the difference of left and right reaches up to 53 kHz.
const LEAST_HZ: f64 = 108e3;

/// Rate of the outputs, at least, unless a factor is given.
const SOUND_HZ: f64 = 44e3;

/// Samples of a round.
const BLOCK: usize = 256;

/// Largest sample: louder ones would spoil the means for too long.
const LOUDEST: f32 = 1e6;

/// Makes left and right of the multiplex of an FM station.
///
#[doc = include_str!("../about/fm_stereo.md")]
#[derive(Operator)]
#[operator(name = "fm.stereo", summary = "left and right of an FM station's multiplex")]
pub struct FmStereo {
    /// The multiplex: the output of an FM demodulator, not filtered.
    pub input: Input<Chunk<f32>>,
    /// Left, without de-emphasis.
    #[port(fresh)]
    pub left: Output<Chunk<f32>>,
    /// Right, without de-emphasis.
    #[port(fresh)]
    pub right: Output<Chunk<f32>>,
    /// 1 when a pilot comes, 0 when it goes.
    #[port(optional)]
    pub pilot: Output<f64>,
    /// Decimation: every `factor`-th sample is sent. Without it, the largest one that leaves at least 44 kHz.
    #[parameter(min = 1, max = 4096)]
    factor: Option<u32>,
    /// Noise bandwidth of the loop that follows the pilot.
    #[parameter(default = "10 Hz", min = "0.1 Hz", max = "100 Hz")]
    bandwidth: Hertz,
    /// Whether left and right are both the sum, even with a pilot: less noise from a weak station.
    #[parameter(default = false)]
    mono: bool,
    stage: Option<StereoStage>,
    rate_hz: f64,
    /// The chunk in hand, and how much of it is used up.
    held: Option<(Chunk<f32>, usize)>,
    stamp: Stamp,
    sent: u64,
    is_ending: bool,
}

/// The decoder, once the sample rate is known.
struct StereoStage {
    pilot: PilotLoop,
    is_mono: bool,
    /// Filters the sum as the real part and the difference as the imaginary part.
    filter: FirDecimator<Complex<f32>>,
    factor: u32,
    /// Sums and differences that the filter has not taken yet, from `next` on.
    waiting: Vec<Complex<f32>>,
    next: usize,
    /// Changes of the pilot that were not sent, each with its position in the stream.
    changes: VecDeque<(u64, bool)>,
    was_locked: bool,
    taken: u64,
    in_stereo: u64,
    not_finite: u64,
}

impl StereoStage {
    fn new(factor: Option<u32>, bandwidth: Hertz, is_mono: bool, rate_hz: f64) -> Result<Self, Error> {
        let factor = check_rate(factor, rate_hz)?;
        // The pilot is stopped.
        let low_pass = LowPass { cutoff_hz: 17e3, transition_hz: 4e3, attenuation_db: 80.0 };
        let mut filter = FirDecimator::new(factor, low_pass)?;
        filter.start(rate_hz)?;
        Ok(StereoStage {
            pilot: PilotLoop::new(bandwidth.0, rate_hz)?,
            is_mono,
            filter,
            factor,
            waiting: Vec::with_capacity(BLOCK),
            next: 0,
            changes: VecDeque::new(),
            was_locked: false,
            taken: 0,
            in_stereo: 0,
            not_finite: 0,
        })
    }

    /// Takes at most a block, and returns how many samples that were.
    fn take(&mut self, samples: &[f32]) -> usize {
        let count = samples.len().min(BLOCK);
        self.waiting.clear();
        self.next = 0;
        for x in &samples[..count] {
            self.not_finite += u64::from(!x.is_finite());
            let x = if x.is_finite() { x.clamp(-LOUDEST, LOUDEST) } else { 0.0 };
            let (reference, blend) = self.pilot.push(x);
            // The pilot is a sine and the reference a cosine in phase with it, so the subcarrier, a sine of
            // twice the pilot's angle, is minus the sine of twice the reference's.
            let subcarrier = -2.0 * reference.re * reference.im;
            let difference = if self.is_mono { 0.0 } else { 2.0 * subcarrier * x * blend };
            self.waiting.push(Complex::new(x, difference));
            let is_locked = self.pilot.is_locked();
            if is_locked != std::mem::replace(&mut self.was_locked, is_locked) {
                self.changes.push_back((self.taken, is_locked));
            }
            self.in_stereo += u64::from(is_locked);
            self.taken += 1;
        }
        count
    }

    /// Filters, and writes left and right. Returns how many were written.
    fn give(&mut self, is_end: bool, left: &mut [f32], right: &mut [f32]) -> usize {
        let mut filtered = [Complex::new(0.0, 0.0); BLOCK];
        let room = left.len().min(right.len()).min(BLOCK);
        let count = if self.next < self.waiting.len() {
            let done = self.filter.process(&self.waiting[self.next..], &mut filtered[..room]);
            self.next += done.consumed;
            done.produced
        } else if is_end {
            self.filter.finish(&mut filtered[..room])
        } else {
            0
        };
        for ((left, right), x) in left.iter_mut().zip(right).zip(&filtered[..count]) {
            (*left, *right) = (x.re + x.im, x.re - x.im);
        }
        count
    }
}

/// Checks the sample rate, and returns the factor.
fn check_rate(factor: Option<u32>, rate_hz: f64) -> Result<u32, Error> {
    check::rate(rate_hz)?;
    if rate_hz < LEAST_HZ {
        return Err(Error::new(format!(
            "the sample rate of its input is {rate_hz} Hz: a stereo multiplex needs at least {LEAST_HZ} Hz; \
             demodulate at a higher rate, and do not filter the result"
        )));
    }
    let auto = (rate_hz / SOUND_HZ).floor().clamp(1.0, 4096.0) as u32;
    let factor = factor.unwrap_or(auto);
    let most = (rate_hz / 38e3).floor();
    if f64::from(factor) <= most {
        return Ok(factor);
    }
    Err(Error::new(format!(
        "`factor` is {factor}: it must be at most {most}, so that sound up to 15 kHz and the filter's transition up to 19 \
         kHz remain; leave it out, or use `resample` behind"
    )))
}

impl FmStereo {
    fn begin(&mut self, rate_hz: f64) -> Result<(), Error> {
        if self.stage.is_none() {
            self.stage = Some(StereoStage::new(self.factor, self.bandwidth, self.mono, rate_hz)?);
            self.rate_hz = rate_hz;
        }
        if self.rate_hz == rate_hz {
            return Ok(());
        }
        Err(Error::new(format!(
            "the sample rate of its input changed from {} Hz to {rate_hz} Hz: resample before merging streams",
            self.rate_hz
        )))
    }

    /// Fills a chunk for each side, as far as there are samples. Returns whether there were chunks.
    fn send(&mut self, cx: &mut Context) -> Result<bool, Error> {
        let Some(stage) = &mut self.stage else { return Ok(true) };
        let (Some(mut left), Some(mut right)) = (self.left.chunk(cx), self.right.chunk(cx)) else {
            return Ok(false);
        };
        let (to_left, to_right) =
            (left.edit_unique().unwrap_or_default(), right.edit_unique().unwrap_or_default());
        let room = to_left.len().min(to_right.len());
        let mut count = 0;
        while count < room {
            let now = stage.give(self.is_ending, &mut to_left[count..], &mut to_right[count..]);
            count += now;
            if now > 0 || stage.next < stage.waiting.len() {
                continue;
            }
            let Some((chunk, used)) = &mut self.held else { break };
            *used += stage.take(&chunk[*used..]);
            if *used == chunk.len() {
                self.held = None;
            }
        }
        self.is_ending &= count > 0;
        if count > 0 {
            cx.set_stamp(self.stamp);
            let rate_hz = self.rate_hz / f64::from(stage.factor);
            for (output, mut chunk) in [(&mut self.left, left), (&mut self.right, right)] {
                chunk.truncate(count);
                let info = chunk.info_mut();
                (info.start, info.rate_hz) = (self.sent, rate_hz);
                output.push(cx, chunk)?;
            }
            self.sent += count as u64;
        }
        Ok(true)
    }

    /// Sends changes of the pilot. Returns whether all were sent.
    fn send_changes(&mut self, cx: &mut Context) -> Result<bool, Error> {
        let Some(stage) = &mut self.stage else { return Ok(true) };
        if !self.pilot.is_connected() {
            stage.changes.clear();
        }
        while let Some(&(position, is_locked)) = stage.changes.front() {
            if self.pilot.room(cx) == 0 {
                return Ok(false);
            }
            let mut stamp = self.stamp;
            stamp.time_ns = time_ns(position, self.rate_hz);
            cx.set_stamp(stamp);
            self.pilot.push(cx, f64::from(u8::from(is_locked)))?;
            stage.changes.pop_front();
        }
        Ok(true)
    }
}

#[operator]
impl Operator for FmStereo {
    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        let factor = check_rate(self.factor, rate_hz)?;
        Ok(Some(rate_hz / f64::from(factor)))
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        (self.stage, self.held, self.sent, self.is_ending) = (None, None, 0, false);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if !self.send_changes(cx)? {
            return Ok(Step::Again);
        }
        let has_more = |stage: &StereoStage| stage.next < stage.waiting.len();
        let is_working = self.held.is_some() || self.is_ending || self.stage.as_ref().is_some_and(has_more);
        if !is_working {
            if let Some(chunk) = self.input.pop(cx) {
                self.begin(chunk.rate_hz())?;
                self.stamp = cx.stamp();
                self.held = (!chunk.is_empty()).then_some((chunk, 0));
            } else if self.input.is_ended(cx) && self.stage.is_some() {
                self.is_ending = true;
                self.stamp = self.stamp.without_due();
            } else {
                return Ok(Step::Wait);
            }
        }
        let was_ending = self.is_ending;
        if !self.send(cx)? {
            return Ok(Step::Wait);
        }
        if was_ending && !self.is_ending {
            return Ok(if self.send_changes(cx)? { Step::Done } else { Step::Again });
        }
        let is_idle =
            self.held.is_none() && !self.stage.as_ref().is_some_and(has_more) && self.send_changes(cx)?;
        Ok(if is_idle && !self.input.is_ended(cx) { Step::Wait } else { Step::Again })
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        let Some(stage) = self.stage.as_ref().filter(|stage| ending != Ending::Failed && stage.taken > 0)
        else {
            return Ok(());
        };
        let percent = 100.0 * stage.in_stereo as f64 / stage.taken as f64;
        let (hertz, amplitude) = (stage.pilot.frequency_hz(), stage.pilot.amplitude());
        cx.note(match stage.in_stereo {
            0 => "no pilot: left and right are the same".to_string(),
            _ => format!(
                "a pilot for {percent:.1} % of the time, at {hertz:.2} Hz with an amplitude of {amplitude:.4}"
            ),
        });
        if let Some(note) = not_finite(stage.not_finite, "counted as 0") {
            cx.note(note);
        }
        Ok(())
    }
}
