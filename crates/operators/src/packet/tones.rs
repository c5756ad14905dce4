//! Two tones and how strong each of them is.

use crate::check;
use crate::dsp::{FirDecimator, Shift, not_finite};
use num_complex::Complex;
use onbeat_runtime::{Error, Hertz, Kernel, Map, Operator, Progress, operator};

/// Samples of a round.
const BLOCK: usize = 256;

/// Frequencies of a frequency-shift keyed signal, in hertz.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tones {
    pub mark_hz: f64,
    pub space_hz: f64,
    /// Symbols per second.
    pub symbol_hz: f64,
}

impl Tones {
    /// Checks the tones, and that a sample rate suffices for them.
    pub fn check(&self, rate_hz: f64) -> Result<(), Error> {
        check::rate(rate_hz)?;
        let Tones { mark_hz, space_hz, symbol_hz } = *self;
        check_length("symbol_rate", symbol_hz, rate_hz)?;
        let needed_hz = (2.0 * mark_hz.max(space_hz) + symbol_hz).max(4.0 * symbol_hz);
        if rate_hz >= needed_hz {
            return Ok(());
        }
        Err(Error::new(format!(
            "the sample rate of its input is {rate_hz} Hz: tones of {mark_hz} Hz and {space_hz} Hz at {symbol_hz} \
             symbols per second need at least {needed_hz} Hz; use the audio before it was resampled"
        )))
    }
}

/// Most samples of a symbol.
const MOST_LENGTH: f64 = 16_384.0;

/// Checks that symbols are not too long for a filter of their length.
pub(crate) fn check_length(name: &str, symbol_hz: f64, rate_hz: f64) -> Result<(), Error> {
    if rate_hz / symbol_hz <= MOST_LENGTH {
        return Ok(());
    }
    Err(Error::new(format!(
        "`{name}` is {symbol_hz}: at {rate_hz} samples per second a symbol would have {:.0} samples, and {MOST_LENGTH} is \
         the limit; resample the input to a lower rate",
        rate_hz / symbol_hz
    )))
}

/// Taps of the mean over `length` samples, which need not be a whole number. Their sum is `sum`.
pub(crate) fn mean_taps(length: f64, sum: f64) -> Vec<f32> {
    let half = ((length - 1.0) / 2.0).ceil().max(0.0) as usize;
    let inner = (2 * half).saturating_sub(1) as f64;
    let end = if half == 0 { length } else { (length - inner) / 2.0 };
    let mut taps = vec![(sum / length) as f32; 2 * half + 1];
    for at in [0, 2 * half] {
        taps[at] = (end * sum / length) as f32;
    }
    taps
}

/// Correlates with one tone over the length of a symbol.
#[derive(Debug, Clone)]
struct ToneFilter {
    shift: Shift,
    window: FirDecimator<Complex<f32>>,
    moved: [Complex<f32>; BLOCK],
    /// The correlations of a round.
    found: [Complex<f32>; BLOCK],
}

impl ToneFilter {
    fn new(tone_hz: f64, taps: &[f32], factor: u32, rate_hz: f64) -> Result<Self, Error> {
        let mut shift = Shift::new(-tone_hz)?;
        shift.start(rate_hz)?;
        let mut window = FirDecimator::with_taps(factor, taps)?;
        window.start(rate_hz)?;
        let zeros = [Complex::default(); BLOCK];
        Ok(ToneFilter { shift, window, moved: zeros, found: zeros })
    }

    fn process(&mut self, input: &[f32]) -> usize {
        let moved = &mut self.moved[..input.len()];
        moved.iter_mut().zip(input).for_each(|(y, x)| *y = Complex::new(*x, 0.0));
        self.shift.map(moved);
        self.window.process(moved, &mut self.found).produced
    }
}

/// Correlates with two tones: output `k` is that of a window of one symbol around input `k * factor`. A tone
/// of amplitude 1 gives a magnitude of 1.
#[derive(Debug, Clone)]
pub(crate) struct TonePair {
    mark: ToneFilter,
    space: ToneFilter,
}

impl TonePair {
    pub fn new(tones: Tones, rate_hz: f64, factor: u32) -> Result<Self, Error> {
        tones.check(rate_hz)?;
        let taps = mean_taps(rate_hz / tones.symbol_hz, 2.0);
        let filter = |tone_hz| ToneFilter::new(tone_hz, &taps, factor, rate_hz);
        Ok(TonePair { mark: filter(tones.mark_hz)?, space: filter(tones.space_hz)? })
    }

    /// The most samples that [`TonePair::process`] takes at once.
    pub const MOST: usize = BLOCK;

    /// Takes samples, which must be finite, and returns the correlations with both tones.
    pub fn process(&mut self, input: &[f32]) -> (&[Complex<f32>], &[Complex<f32>]) {
        let counts = (self.mark.process(input), self.space.process(input));
        (&self.mark.found[..counts.0], &self.space.found[..counts.1])
    }

    /// Returns the correlations that looked ahead beyond the end; called until there are none.
    pub fn finish(&mut self) -> (&[Complex<f32>], &[Complex<f32>]) {
        let finish = |tone: &mut ToneFilter| tone.window.finish(&mut tone.found);
        let counts = (finish(&mut self.mark), finish(&mut self.space));
        (&self.mark.found[..counts.0], &self.space.found[..counts.1])
    }
}

/// Demodulates a signal that is keyed between two tones.
///
#[doc = include_str!("../about/afsk_demod.md")]
#[derive(Clone, Operator)]
#[operator(name = "afsk.demod", summary = "which of two tones is stronger", prepare = Self::prepare)]
pub struct AfskDemod {
    /// Frequency of the tone for 1 (mark).
    #[parameter(default = "1200 Hz", above = 0)]
    mark: Hertz,
    /// Frequency of the tone for 0 (space).
    #[parameter(default = "2200 Hz", above = 0)]
    space: Hertz,
    /// Symbols per second: the window has the length of one symbol.
    #[parameter(default = "1200 Hz", above = 0)]
    symbol_rate: Hertz,
    /// Gain of the space tone, for audio whose treble is too weak (above 0) or too strong (below 0).
    #[parameter(default = "0 dB", min = "-40 dB", max = "40 dB")]
    space_gain: onbeat_runtime::Decibels,
    pair: Option<TonePair>,
    gain: f32,
    /// Outputs that did not fit, from `next` on.
    waiting: Vec<f32>,
    next: usize,
    not_finite: u64,
}

impl AfskDemod {
    fn prepare(&mut self) -> Result<(), Error> {
        self.gain = 10f64.powf(self.space_gain.0 / 20.0) as f32;
        Ok(())
    }

    fn tones(&self) -> Tones {
        Tones { mark_hz: self.mark.0, space_hz: self.space.0, symbol_hz: self.symbol_rate.0 }
    }

    /// Copies outputs that wait, and returns their number.
    fn drain(&mut self, output: &mut [f32]) -> usize {
        let waiting = &self.waiting[self.next..];
        let count = waiting.len().min(output.len());
        output[..count].copy_from_slice(&waiting[..count]);
        self.next += count;
        count
    }
}

fn differences(mark: &[Complex<f32>], space: &[Complex<f32>], gain: f32, waiting: &mut Vec<f32>) {
    waiting.clear();
    waiting.extend(mark.iter().zip(space).map(|(mark, space)| mark.norm() - gain * space.norm()));
}

#[operator]
impl Kernel for AfskDemod {
    type In = f32;
    type Out = f32;

    fn start(&mut self, rate_hz: f64) -> Result<(), Error> {
        self.pair = Some(TonePair::new(self.tones(), rate_hz, 1)?);
        self.waiting = Vec::with_capacity(BLOCK);
        (self.next, self.not_finite) = (0, 0);
        Ok(())
    }

    fn process(&mut self, input: &[f32], output: &mut [f32]) -> Progress {
        let mut progress = Progress { consumed: 0, produced: 0 };
        let mut block = [0.0; BLOCK];
        loop {
            progress.produced += self.drain(&mut output[progress.produced..]);
            let rest = &input[progress.consumed..];
            let count = rest.len().min(BLOCK);
            if count == 0 || self.next < self.waiting.len() {
                return progress;
            }
            for (to, from) in block.iter_mut().zip(&rest[..count]) {
                self.not_finite += u64::from(!from.is_finite());
                *to = if from.is_finite() { *from } else { 0.0 };
            }
            let Some(pair) = &mut self.pair else { return progress };
            let (mark, space) = pair.process(&block[..count]);
            differences(mark, space, self.gain, &mut self.waiting);
            self.next = 0;
            progress.consumed += count;
        }
    }

    fn finish(&mut self, output: &mut [f32]) -> usize {
        if self.next == self.waiting.len() {
            let Some(pair) = &mut self.pair else { return 0 };
            let (mark, space) = pair.finish();
            differences(mark, space, self.gain, &mut self.waiting);
            self.next = 0;
        }
        self.drain(output)
    }

    fn note(&self) -> Option<String> {
        not_finite(self.not_finite, "counted as 0")
    }
}
