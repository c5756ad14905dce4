//! Phase-shift keying.

use super::driver::{BitDriver, Demodulator, FilteredDemodulator};
use super::period;
use super::pulse::matched_taps;
use crate::dsp::FirDecimator;
use crate::phase_loops::{CostasDetector, LoopGains, PhaseTracker};
use crate::symbols::{ClockSettings, Strobe, SymbolClock, TimingDetector};
use num_complex::Complex;
use onbeat_runtime::{Chunk, Context, Ending, Error, Hertz, Input, Kernel, Operator, Output, Step, operator};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_4, SQRT_2};

/// Most of the carrier's offset that the loop follows, as a share of the symbol rate, per phase.
const RANGE: f64 = 0.2;

/// Until it has locked, the carrier's loop is this much wider, up to that share of the symbol rate.
const SEARCH: f64 = 4.0;
const WIDEST: f64 = 0.1;

/// Share of a new symbol in the mean power.
const LEVEL_SHARE: f64 = 1.0 / 64.0;

/// Demodulates a PSK signal: matched filter, symbol clock, Costas loop, bits.
///
#[doc = include_str!("../about/psk_demod.md")]
#[derive(Operator)]
#[operator(
    name = "psk.demod",
    summary = "bits of a PSK signal: BPSK, QPSK, differential",
    about = include_str!("../about/psk_demod.md"),
    prepare = Self::prepare,
)]
pub struct PskDemod {
    /// I/Q samples with the signal around 0 Hz.
    pub input: Input<Chunk<Complex<f32>>>,
    /// Soft bits, 1 or 2 for each symbol; a magnitude of 1 is usual.
    #[port(fresh)]
    pub out: Output<Chunk<f32>>,
    /// Symbols per second, at most a third of the sample rate.
    #[parameter(above = 0, example = "1200 Hz")]
    symbol_rate: Hertz,
    /// Number of phases: 2 or 4.
    #[parameter(default = 2)]
    order: u32,
    /// Roll-off of the sender's pulses, with the root of a raised cosine; 0 for pulses that are as long as a
    /// symbol.
    #[parameter(default = 0.35, min = 0, max = 1)]
    roll_off: f64,
    /// Whether the bits are in the change from one symbol to the next.
    #[parameter(default = false)]
    differential: bool,
    /// Noise bandwidth of the carrier's loop, as a share of the symbol rate: smaller is steadier, larger
    /// locks faster. Until it has locked, it is 4 times as wide.
    #[parameter(default = 0.01, above = 0, max = 0.1)]
    carrier_bandwidth: f64,
    /// Noise bandwidth of the clock's loop, as a share of the symbol rate.
    #[parameter(default = 0.01, above = 0, max = 0.1)]
    clock_bandwidth: f64,
    driver: BitDriver<PskCore>,
}

impl PskDemod {
    fn prepare(&mut self) -> Result<(), Error> {
        match self.order {
            2 | 4 => Ok(()),
            order => Err(Error::new(format!("`order` is {order}: it must be 2 or 4"))),
        }
    }

    fn settings(&self) -> PskSettings {
        PskSettings {
            symbol_hz: self.symbol_rate.0,
            order: self.order,
            roll_off: self.roll_off,
            is_differential: self.differential,
            carrier_bandwidth: self.carrier_bandwidth,
            clock_bandwidth: self.clock_bandwidth,
        }
    }
}

#[derive(Clone, Copy)]
struct PskSettings {
    symbol_hz: f64,
    order: u32,
    roll_off: f64,
    is_differential: bool,
    carrier_bandwidth: f64,
    clock_bandwidth: f64,
}

impl PskSettings {
    fn bits_hz(&self) -> f64 {
        self.symbol_hz * f64::from(self.order / 2)
    }

    fn chain(&self, rate_hz: f64) -> Result<FilteredDemodulator<PskCore>, Error> {
        let period = period(rate_hz, self.symbol_hz)?;
        let mut filter = FirDecimator::with_taps(1, &matched_taps(period, self.roll_off))?;
        filter.start(rate_hz)?;
        let clock = ClockSettings {
            detector: TimingDetector::Gardner,
            period,
            bandwidth: self.clock_bandwidth,
            deviation: 0.01,
        };
        let search = (SEARCH * self.carrier_bandwidth).min(WIDEST);
        let gains =
            [search, self.carrier_bandwidth].map(|bandwidth| LoopGains::new(bandwidth, FRAC_1_SQRT_2));
        let demodulator = PskCore {
            clock: SymbolClock::new(clock),
            tracker: PhaseTracker::new(gains[0], 0.0, RANGE / f64::from(self.order)),
            detector: CostasDetector::new(self.order, search),
            gains,
            is_locked: false,
            order: self.order,
            is_differential: self.is_differential,
            last: Complex::new(0.0, 0.0),
            power: 0.0,
            symbols: 0,
            locked: 0,
            symbol_hz: self.symbol_hz,
        };
        let behind = Strobe::<Complex<f32>>::BEHIND as usize;
        Ok(FilteredDemodulator { filter, demodulator, bits_hz: self.bits_hz(), behind })
    }
}

#[operator]
impl Operator for PskDemod {
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

/// Behind the matched filter.
struct PskCore {
    clock: SymbolClock<Complex<f32>>,
    tracker: PhaseTracker,
    detector: CostasDetector,
    /// Gains of the loop before and while it is locked.
    gains: [LoopGains; 2],
    is_locked: bool,
    order: u32,
    is_differential: bool,
    last: Complex<f64>,
    power: f64,
    symbols: u64,
    locked: u64,
    symbol_hz: f64,
}

impl PskCore {
    fn push(&mut self, x: Complex<f32>, bits: &mut Vec<f32>) {
        let Some(strobe) = self.clock.push(x) else { return };
        let x = Complex::new(f64::from(strobe.value.re), f64::from(strobe.value.im));
        let turned = x * self.tracker.reference().conj();
        let (error, is_locked) = self.detector.push(turned);
        self.tracker.advance(error);
        if is_locked != std::mem::replace(&mut self.is_locked, is_locked) {
            self.tracker.set_gains(self.gains[usize::from(is_locked)]);
        }
        self.symbols += 1;
        self.locked += u64::from(is_locked);
        let power = turned.norm_sqr();
        let share = LEVEL_SHARE.max(1.0 / self.symbols as f64);
        self.power += (power - self.power) * share;
        let mut symbol = if self.power > 1e-60 { turned / self.power.sqrt() } else { Complex::new(0.0, 0.0) };
        if self.is_differential {
            let before = std::mem::replace(&mut self.last, symbol);
            symbol *= before.conj();
            if self.order == 4 {
                symbol *= Complex::from_polar(1.0, FRAC_PI_4);
            }
        }
        if self.order == 2 {
            bits.push(symbol.re as f32);
        } else {
            bits.extend([symbol.re, symbol.im].map(|part| (part * SQRT_2) as f32));
        }
    }
}

impl Demodulator for PskCore {
    fn take(&mut self, samples: &[Complex<f32>], bits: &mut Vec<f32>) {
        samples.iter().for_each(|x| self.push(*x, bits));
    }

    fn note(&self) -> Option<String> {
        let percent = 100.0 * self.locked as f64 / self.symbols.max(1) as f64;
        let carrier_hz = self.tracker.frequency() * self.symbol_hz;
        (self.symbols > 0).then(|| {
            format!(
                "{} symbols, {percent:.1} % of them while the carrier was locked; at the end it was at {carrier_hz:.1} Hz",
                self.symbols
            )
        })
    }
}
