//! A loop for an unmodulated carrier.

use super::driver::{CarrierLoop, LoopDriver, LoopPoint, LoopPorts, LoopSample};
use super::{LockDetector, LoopGains, PhaseTracker};
use crate::check;
use crate::dsp::angle;
use num_complex::Complex;
use onbeat_runtime::{Chunk, Context, Ending, Error, Hertz, Input, Operator, Output, Step, operator};
use std::f64::consts::{FRAC_1_SQRT_2, TAU};

/// Bandwidth of the low-pass in front of the phase detector, in bandwidths of the loop.
const ARM: f64 = 10.0;

/// The lock is judged in windows of this many inverse bandwidths of the loop.
const JUDGED: f64 = 3.0;

/// Most bandwidth, as a share of the sample rate; of real samples, also as a share of the frequency.
pub(super) const MOST_BANDWIDTH: f64 = 0.1;

/// Range unless told, in bandwidths of the loop.
pub(super) const RANGE: f64 = 10.0;

/// Follows the phase of a carrier.
///
#[doc = include_str!("../about/pll.md")]
#[derive(Operator)]
#[operator(name = "pll", summary = "follows the phase of a carrier", prepare = Self::prepare)]
pub struct Pll<T: CarrierSample> {
    /// A carrier, and other signals and noise.
    pub input: Input<Chunk<T>>,
    /// The input, turned back by the phase of the reference: the carrier is at 0 Hz.
    #[port(optional, fresh)]
    pub out: Output<Chunk<Complex<f32>>>,
    /// The reference: a complex carrier of magnitude 1.
    #[port(optional, fresh)]
    pub reference: Output<Chunk<Complex<f32>>>,
    /// Frequency of the reference in hertz.
    #[port(name = "frequency", optional, fresh)]
    pub frequency_out: Output<Chunk<f32>>,
    /// Phase error in radians, above 0 if the carrier is ahead of the reference.
    #[port(optional, fresh)]
    pub error: Output<Chunk<f32>>,
    /// 1 when the loop locks, 0 when it loses the carrier.
    #[port(optional)]
    pub locked: Output<f64>,
    /// Nominal frequency of the carrier, where the loop begins.
    #[parameter(example = "19 kHz")]
    frequency: Hertz,
    /// Noise bandwidth of the loop, on one side: smaller is steadier, larger locks faster and follows faster
    /// changes. At most a tenth of the sample rate, and with real samples a tenth of `frequency`.
    #[parameter(default = "20 Hz", above = 0)]
    bandwidth: Hertz,
    /// Damping of the loop.
    #[parameter(default = FRAC_1_SQRT_2, min = 0.1, max = 10)]
    damping: f64,
    /// Largest distance from `frequency`; without it, 10 times `bandwidth`.
    #[parameter(min = 0)]
    range: Option<Hertz>,
    driver: LoopDriver<T, PllCore>,
}

/// Samples with a carrier: real or complex.
pub trait CarrierSample: LoopSample {
    /// Whether the carrier is at its negative frequency, too.
    const IS_REAL: bool;

    /// The sample as a complex one, with the amplitude of the carrier at its positive frequency.
    fn carrier(self) -> Complex<f64>;
}

impl CarrierSample for f32 {
    const IS_REAL: bool = true;

    fn carrier(self) -> Complex<f64> {
        Complex::new(2.0 * f64::from(self), 0.0)
    }
}

impl CarrierSample for Complex<f32> {
    const IS_REAL: bool = false;

    fn carrier(self) -> Complex<f64> {
        Complex::new(self.re.into(), self.im.into())
    }
}

/// Frequencies of a loop in hertz, checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoopBand {
    frequency_hz: f64,
    /// `None`: [`RANGE`] bandwidths, as far as the sample rate permits.
    range_hz: Option<f64>,
    pub bandwidth_hz: f64,
}

impl LoopBand {
    pub fn new(frequency: Hertz, range: Option<Hertz>, bandwidth: Hertz) -> Self {
        LoopBand {
            frequency_hz: frequency.0,
            range_hz: range.map(|range| range.0),
            bandwidth_hz: bandwidth.0,
        }
    }

    pub fn check(&self, rate_hz: f64) -> Result<(), Error> {
        check::rate(rate_hz)?;
        let LoopBand { frequency_hz, range_hz, bandwidth_hz } = *self;
        let fix = "use a smaller one, or a higher sample rate";
        check::within("bandwidth", bandwidth_hz, 0.0, MOST_BANDWIDTH * rate_hz, fix)?;
        check::below_half("frequency", frequency_hz, rate_hz, "sample", "use a higher sample rate")?;
        let most_hz = rate_hz / 2.0 - frequency_hz.abs();
        match range_hz {
            Some(range_hz) if range_hz > most_hz => Err(Error::new(format!(
                "`range` is {range_hz}: it must be at most {most_hz}, so that `frequency` stays within half of the \
                 sample rate; give a smaller `range`"
            ))),
            _ => Ok(()),
        }
    }

    pub fn tracker(&self, damping: f64, rate_hz: f64) -> PhaseTracker {
        let gains = LoopGains::new(self.bandwidth_hz / rate_hz, damping);
        let most_hz = rate_hz / 2.0 - self.frequency_hz.abs();
        let range_hz = self.range_hz.unwrap_or(most_hz.min(RANGE * self.bandwidth_hz));
        PhaseTracker::new(gains, self.frequency_hz / rate_hz, range_hz / rate_hz)
    }
}

impl<T: CarrierSample> Pll<T> {
    fn prepare(&mut self) -> Result<(), Error> {
        check::finite("frequency", self.frequency.0)?;
        if T::IS_REAL {
            check::positive("frequency", self.frequency.0)?;
            let fix = "real samples have a carrier at the negative frequency, too; use a smaller bandwidth";
            check::within("bandwidth", self.bandwidth.0, 0.0, MOST_BANDWIDTH * self.frequency.0, fix)?;
        }
        Ok(())
    }
}

/// The loop itself.
struct PllCore {
    tracker: PhaseTracker,
    lock: LockDetector,
    /// The input at the frequency of the reference, behind a low-pass.
    arm: Complex<f64>,
    arm_share: f64,
    rate_hz: f64,
}

impl PllCore {
    fn new(band: LoopBand, damping: f64, rate_hz: f64) -> Result<Self, Error> {
        band.check(rate_hz)?;
        let bandwidth = band.bandwidth_hz / rate_hz;
        Ok(PllCore {
            tracker: band.tracker(damping, rate_hz),
            lock: LockDetector::new(JUDGED / bandwidth, (0.7, 0.5)),
            arm: Complex::default(),
            arm_share: 1.0 - (-TAU * ARM * bandwidth).exp(),
            rate_hz,
        })
    }
}

/// Amplitudes below this count as 0, because numbers that are nearly 0 take long.
const SILENCE: f64 = 1e-30;

impl<T: CarrierSample> CarrierLoop<T> for PllCore {
    fn push(&mut self, x: T) -> LoopPoint {
        let reference = self.tracker.reference();
        let out = x.carrier() * reference.conj();
        self.arm += (out - self.arm) * self.arm_share;
        if self.arm.re.abs() + self.arm.im.abs() < SILENCE {
            self.arm = Complex::default();
        }
        let error = angle(self.arm.re as f32, self.arm.im as f32);
        let is_locked = self.lock.push(self.arm.re, self.arm.norm());
        let frequency_hz = (self.tracker.frequency() * self.rate_hz) as f32;
        self.tracker.advance(error.into());
        let single = |x: Complex<f64>| Complex::new(x.re as f32, x.im as f32);
        LoopPoint { out: single(out), reference: single(reference), frequency_hz, error, is_locked }
    }
}

#[operator]
impl<T: CarrierSample> Operator for Pll<T> {
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
        let damping = self.damping;
        let ports = LoopPorts {
            out: &mut self.out,
            reference: Some(&mut self.reference),
            frequency: &mut self.frequency_out,
            error: &mut self.error,
            locked: &mut self.locked,
        };
        let make = |rate_hz| PllCore::new(band, damping, rate_hz);
        self.driver.step(&mut self.input, ports, make, cx)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.driver.say(cx, ending);
        Ok(())
    }
}
