//! Frequency-shift keying.

use super::driver::{BitDriver, Demodulator, FilteredDemodulator};
use super::{BLOCK, period};
use crate::dsp::{FirDecimator, LowPass, angle};
use crate::packet::mean_taps;
use crate::symbols::{ClockSettings, Strobe, SymbolClock, TimingDetector};
use num_complex::Complex;
use onbeat_runtime::{Chunk, Context, Ending, Error, Hertz, Input, Kernel, Operator, Output, Step, operator};
use std::f32::consts::TAU;

/// Share of an error of the middle by which it is corrected at each symbol.
const OFFSET_SHARE: f32 = 1.0 / 16.0;

/// Symbols after which a highest or lowest frequency is forgotten.
const MEMORY: f64 = 32.0;

/// Most of the offset, as a share of the deviation.
const MOST_OFFSET: f32 = 0.75;

/// Largest frequency over the deviation. Where the amplitude is near 0, the phase jumps by whole turns, which
/// would outweigh a symbol.
const LIMIT: f32 = 1.0 + MOST_OFFSET;

/// Demodulates an FSK signal: channel filter, discriminator, mean over a symbol, symbol clock, bits.
///
#[doc = include_str!("../about/fsk_demod.md")]
#[derive(Operator)]
#[operator(
    name = "fsk.demod",
    summary = "bits of an FSK signal: 2 or 4 frequencies, GFSK, MSK",
    about = include_str!("../about/fsk_demod.md"),
    prepare = Self::prepare,
)]
pub struct FskDemod {
    /// I/Q samples with the signal around 0 Hz.
    pub input: Input<Chunk<Complex<f32>>>,
    /// Soft bits, 1 or 2 for each symbol; a magnitude of 1 is usual.
    #[port(fresh)]
    pub out: Output<Chunk<f32>>,
    /// Symbols per second, at most a third of the sample rate.
    #[parameter(above = 0, example = "9600 Hz")]
    symbol_rate: Hertz,
    /// Distance of the outermost frequencies from the middle.
    #[parameter(above = 0, example = "4.8 kHz")]
    deviation: Hertz,
    /// Number of frequencies: 2 or 4.
    #[parameter(default = 2)]
    levels: u32,
    /// Noise bandwidth of the clock's loop, as a share of the symbol rate: smaller is steadier, larger locks
    /// faster.
    #[parameter(default = 0.02, above = 0, max = 0.2)]
    clock_bandwidth: f64,
    driver: BitDriver<FskCore>,
}

impl FskDemod {
    fn prepare(&mut self) -> Result<(), Error> {
        match self.levels {
            2 | 4 => Ok(()),
            levels => Err(Error::new(format!("`levels` is {levels}: it must be 2 or 4"))),
        }
    }

    fn settings(&self) -> FskSettings {
        let (Hertz(symbol_hz), Hertz(deviation_hz)) = (self.symbol_rate, self.deviation);
        FskSettings { symbol_hz, deviation_hz, levels: self.levels, clock_bandwidth: self.clock_bandwidth }
    }
}

#[derive(Clone, Copy)]
struct FskSettings {
    symbol_hz: f64,
    deviation_hz: f64,
    levels: u32,
    clock_bandwidth: f64,
}

impl FskSettings {
    fn bits_hz(&self) -> f64 {
        self.symbol_hz * f64::from(self.levels / 2)
    }

    fn chain(&self, rate_hz: f64) -> Result<FilteredDemodulator<FskCore>, Error> {
        let FskSettings { symbol_hz, deviation_hz, .. } = *self;
        let period = period(rate_hz, symbol_hz)?;
        // Both outermost frequencies, with half of the main lobe of a symbol on each side.
        let cutoff_hz = deviation_hz + symbol_hz / 2.0;
        if cutoff_hz > 0.45 * rate_hz {
            return Err(Error::new(format!(
                "a sample rate of {rate_hz} Hz is too low for a `deviation` of {deviation_hz} Hz: it must be at least {} Hz; \
                 resample the input to a higher rate",
                cutoff_hz / 0.45
            )));
        }
        let low_pass =
            LowPass { cutoff_hz, transition_hz: symbol_hz.min(0.1 * rate_hz), attenuation_db: 50.0 };
        let mut filter = FirDecimator::new(1, low_pass)?;
        filter.start(rate_hz)?;
        let mut mean = FirDecimator::with_taps(1, &mean_taps(period, 1.0))?;
        mean.start(rate_hz)?;
        let clock = ClockSettings {
            detector: TimingDetector::Gardner,
            period,
            bandwidth: self.clock_bandwidth,
            deviation: 0.01,
        };
        let demodulator = FskCore {
            last: Complex::new(0.0, 0.0),
            scale: (rate_hz / deviation_hz) as f32 / TAU,
            mean,
            middle: MiddleFrequency::new(self.levels, period),
            clock: SymbolClock::new(clock),
            symbols: 0,
            deviation_hz,
        };
        let behind = Strobe::<f32>::BEHIND as usize + period.ceil() as usize;
        Ok(FilteredDemodulator { filter, demodulator, bits_hz: self.bits_hz(), behind })
    }
}

#[operator]
impl Operator for FskDemod {
    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        self.settings().chain(rate_hz)?;
        Ok(Some(self.settings().bits_hz()))
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.driver = BitDriver::default();
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let settings = self.settings();
        self.driver.step(&mut self.input, &mut self.out, |rate_hz| settings.chain(rate_hz), cx)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.driver.say(cx, ending);
        Ok(())
    }
}

/// Behind the channel filter.
struct FskCore {
    last: Complex<f32>,
    /// From the phase between two samples to the frequency over the deviation.
    scale: f32,
    mean: FirDecimator<f32>,
    middle: MiddleFrequency,
    clock: SymbolClock,
    symbols: u64,
    deviation_hz: f64,
}

/// The middle of the sender's frequencies. Frequencies are over the deviation.
enum MiddleFrequency {
    /// Of two: between the highest and the lowest one of late. Decisions would mislead it while the clock is
    /// wrong.
    Between {
        highest: f32,
        lowest: f32,
        /// Shares by which they go to a frequency beyond them, and back to the middle.
        rise: f32,
        fall: f32,
    },
    /// Of four, whose outermost ones are rare: corrected by the distance of each symbol from the nearest one.
    ByDecisions(f32),
}

impl MiddleFrequency {
    fn new(levels: u32, period: f64) -> Self {
        if levels == 4 {
            return MiddleFrequency::ByDecisions(0.0);
        }
        let (rise, fall) = ((2.0 / period) as f32, (1.0 / (MEMORY * period)) as f32);
        MiddleFrequency::Between { highest: 0.0, lowest: 0.0, rise, fall }
    }

    fn now(&self) -> f32 {
        let middle = match self {
            MiddleFrequency::Between { highest, lowest, .. } => f32::midpoint(*highest, *lowest),
            MiddleFrequency::ByDecisions(middle) => *middle,
        };
        middle.clamp(-MOST_OFFSET, MOST_OFFSET)
    }

    /// Takes the frequency at a sample.
    fn follow(&mut self, frequency: f32) {
        let MiddleFrequency::Between { highest, lowest, rise, fall } = self else { return };
        let middle = f32::midpoint(*highest, *lowest);
        let share = |is_beyond: bool| if is_beyond { (frequency, *rise) } else { (middle, *fall) };
        let (high, low) = (share(frequency > *highest), share(frequency < *lowest));
        *highest += (high.0 - *highest) * high.1;
        *lowest += (low.0 - *lowest) * low.1;
    }

    /// Takes a symbol, whose frequency is that from the middle.
    fn decide(&mut self, symbol: f32) {
        let MiddleFrequency::ByDecisions(middle) = self else { return };
        let size: f32 = if symbol.abs() < 2.0 / 3.0 { 1.0 / 3.0 } else { 1.0 };
        let corrected = *middle + (symbol - size.copysign(symbol)) * OFFSET_SHARE;
        *middle = corrected.clamp(-MOST_OFFSET, MOST_OFFSET);
    }
}

impl FskCore {
    /// Takes the mean frequency over the symbol around a sample.
    fn push(&mut self, frequency: f32, bits: &mut Vec<f32>) {
        self.middle.follow(frequency);
        let Some(strobe) = self.clock.push(frequency - self.middle.now()) else { return };
        self.symbols += 1;
        let symbol = strobe.value;
        match self.middle {
            MiddleFrequency::Between { .. } => bits.push(symbol),
            MiddleFrequency::ByDecisions(_) => bits.extend([-symbol, symbol.abs() * 1.5 - 1.0]),
        }
        self.middle.decide(symbol);
    }
}

impl Demodulator for FskCore {
    fn take(&mut self, samples: &[Complex<f32>], bits: &mut Vec<f32>) {
        let (mut frequencies, mut smooth) = ([0.0; BLOCK], [0.0; BLOCK]);
        for (frequency, x) in frequencies.iter_mut().zip(samples) {
            let step = x * std::mem::replace(&mut self.last, *x).conj();
            *frequency = (angle(step.re, step.im) * self.scale).clamp(-LIMIT, LIMIT);
        }
        let made = self.mean.process(&frequencies[..samples.len()], &mut smooth).produced;
        smooth[..made].iter().for_each(|frequency| self.push(*frequency, bits));
    }

    fn note(&self) -> Option<String> {
        let offset_hz = f64::from(self.middle.now()) * self.deviation_hz;
        (self.symbols > 0).then(|| format!("{} symbols, at the end around {offset_hz:.0} Hz", self.symbols))
    }
}
