//! A loop for a carrier that is modulated away.

use super::driver::{CarrierLoop, LoopDriver, LoopPoint, LoopPorts};
use super::pll::LoopBand;
use super::{LockDetector, PhaseTracker};
use crate::check;
use num_complex::Complex;
use onbeat_runtime::{Chunk, Context, Ending, Error, Hertz, Input, Operator, Output, Step, operator};
use std::f64::consts::{FRAC_1_SQRT_2, PI, TAU};

/// Mean power over this many inverse bandwidths of the loop.
const LEVEL: f64 = 0.5;

/// The lock is judged in windows of this many inverse bandwidths of the loop.
const JUDGED: f64 = 4.0;

/// Most weight of a sample in the phase error.
const MOST_WEIGHT: f64 = 4.0;

/// Follows the phase of a PSK signal, whose carrier is suppressed.
///
#[doc = include_str!("../about/costas.md")]
#[derive(Operator)]
#[operator(name = "costas", summary = "follows the phase of a PSK signal", prepare = Self::prepare)]
pub struct Costas {
    /// A PSK signal around `frequency`, behind its matched filter.
    pub input: Input<Chunk<Complex<f32>>>,
    /// The signal at 0 Hz, with its symbols at the angles of `order`.
    #[port(optional, fresh)]
    pub out: Output<Chunk<Complex<f32>>>,
    /// Frequency of the carrier in hertz.
    #[port(name = "frequency", optional, fresh)]
    pub frequency_out: Output<Chunk<f32>>,
    /// Phase error in radians, above 0 if the signal is ahead of the reference.
    #[port(optional, fresh)]
    pub error: Output<Chunk<f32>>,
    /// 1 when the loop locks, 0 when it loses the signal.
    #[port(optional)]
    pub locked: Output<f64>,
    /// Number of phases: 2 (symbols at 0° and 180°), 4 (at 45°, 135°, ...) or 8 (at 22.5°, 67.5°, ...).
    #[parameter(default = 2)]
    order: u32,
    /// Nominal frequency of the carrier, where the loop begins.
    #[parameter(default = "0 Hz")]
    frequency: Hertz,
    /// Noise bandwidth of the loop, on one side: smaller is steadier, larger locks faster and follows faster
    /// changes. At most a tenth of the sample rate; a hundredth of the symbol rate suits most signals.
    #[parameter(above = 0, example = "20 Hz")]
    bandwidth: Hertz,
    /// Damping of the loop.
    #[parameter(default = FRAC_1_SQRT_2, min = 0.1, max = 10)]
    damping: f64,
    /// Largest distance from `frequency`; without it, 10 times `bandwidth`.
    #[parameter(min = 0)]
    range: Option<Hertz>,
    driver: LoopDriver<Complex<f32>, CostasCore>,
}

impl Costas {
    fn prepare(&mut self) -> Result<(), Error> {
        check::finite("frequency", self.frequency.0)?;
        if [2, 4, 8].contains(&self.order) {
            return Ok(());
        }
        Err(Error::new(format!("`order` is {}: it must be 2, 4 or 8", self.order)))
    }
}

/// Measures how far a sample is from the nearest phase of the constellation.
#[derive(Debug, Clone)]
pub(crate) struct CostasDetector {
    order: f64,
    /// Angle of the first symbol.
    first: f64,
    /// Mean power, and the share of a new sample in it.
    power: f64,
    share: f64,
    lock: LockDetector,
}

impl CostasDetector {
    /// A detector for this number of phases, and this bandwidth as a share of the sample rate.
    pub fn new(order: u32, bandwidth: f64) -> Self {
        CostasDetector {
            order: order.into(),
            first: if order == 2 { 0.0 } else { PI / f64::from(order) },
            power: 0.0,
            share: (bandwidth / LEVEL).min(1.0),
            lock: LockDetector::new(JUDGED / bandwidth, (0.3, 0.15)),
        }
    }

    /// Takes a sample that was turned back by the reference. Returns the phase error in radians, and whether
    /// the loop is locked.
    pub fn push(&mut self, x: Complex<f64>) -> (f64, bool) {
        let power = x.norm_sqr();
        self.power += (power - self.power) * self.share;
        if self.power < 1e-60 {
            self.power = 0.0;
            return (0.0, self.lock.push(0.0, 0.0));
        }
        let angle = f64::from(crate::dsp::angle(x.re as f32, x.im as f32)) - self.first;
        let nearest = (angle * self.order / TAU).round() * TAU / self.order;
        let error = angle - nearest;
        let is_locked = self.lock.push(power * (self.order * error).cos(), power);
        (error * (power / self.power).min(MOST_WEIGHT), is_locked)
    }
}

/// The loop itself.
struct CostasCore {
    tracker: PhaseTracker,
    detector: CostasDetector,
    rate_hz: f64,
}

impl CarrierLoop<Complex<f32>> for CostasCore {
    fn push(&mut self, x: Complex<f32>) -> LoopPoint {
        let reference = self.tracker.reference();
        let turned = Complex::new(f64::from(x.re), f64::from(x.im)) * reference.conj();
        let (error, is_locked) = self.detector.push(turned);
        let frequency_hz = (self.tracker.frequency() * self.rate_hz) as f32;
        self.tracker.advance(error);
        let single = |x: Complex<f64>| Complex::new(x.re as f32, x.im as f32);
        let (out, reference) = (single(turned), single(reference));
        LoopPoint { out, reference, frequency_hz, error: error as f32, is_locked }
    }
}

#[operator]
impl Operator for Costas {
    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        LoopBand::new(self.frequency, self.range, self.bandwidth).check(rate_hz)?;
        Ok(Some(rate_hz))
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.driver = LoopDriver::default();
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let band = LoopBand::new(self.frequency, self.range, self.bandwidth);
        let (order, damping) = (self.order, self.damping);
        let ports = LoopPorts {
            out: &mut self.out,
            reference: None,
            frequency: &mut self.frequency_out,
            error: &mut self.error,
            locked: &mut self.locked,
        };
        let make = |rate_hz| {
            band.check(rate_hz)?;
            let detector = CostasDetector::new(order, band.bandwidth_hz / rate_hz);
            Ok(CostasCore { tracker: band.tracker(damping, rate_hz), detector, rate_hz })
        };
        self.driver.step(&mut self.input, ports, make, cx)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.driver.say(cx, ending);
        Ok(())
    }
}
