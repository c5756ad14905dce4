//! Automatic gain control.

use num_complex::Complex;
use onbeat_runtime::{Change, Decibels, Error, Map, Sample, Seconds, Value, tried};

use super::not_finite;
use crate::check;

/// A sample with a magnitude that can be scaled.
pub trait GainSample: Sample {
    /// Its magnitude.
    fn size(self) -> f32;
    /// The sample times `gain`.
    fn times(self, gain: f32) -> Self;
}

impl GainSample for f32 {
    #[inline(always)]
    fn size(self) -> f32 {
        self.abs()
    }
    #[inline(always)]
    fn times(self, gain: f32) -> f32 {
        self * gain
    }
}

impl GainSample for Complex<f32> {
    #[inline(always)]
    fn size(self) -> f32 {
        (self.re * self.re + self.im * self.im).sqrt()
    }
    #[inline(always)]
    fn times(self, gain: f32) -> Self {
        self * gain
    }
}

/// Controls the gain so that the mean magnitude becomes `target`.
///
/// The level follows the magnitude, with one time constant while it rises and another while it falls. The
/// gain is `target / level`, at most `most`:
///
/// ```text
/// level += (|x| - level) * (1 - e^(-1 / (rate τ))),   τ = attack if |x| > level, else decay
/// y = x * min(target / level, most)
/// ```
///
/// With equal time constants, a steady signal reaches a mean magnitude of `target`. An attack shorter than
/// the decay keeps the level nearer to the peaks. A sample that is not finite is replaced by 0 and does not
/// change the level; a note gives the number of such samples at the end.
#[derive(Debug, Clone)]
pub struct Agc<T: GainSample> {
    attack_s: f64,
    decay_s: f64,
    target: f32,
    most: f32,
    /// Sample rate; 0 before it is known.
    rate_hz: f64,
    rise: f32,
    fall: f32,
    /// `None` before the first sample, which sets it.
    level: Option<f32>,
    not_finite: u64,
    sample: std::marker::PhantomData<T>,
}

impl<T: GainSample> Agc<T> {
    /// Creates a gain control with time constants in seconds; target and largest gain are factors, not
    /// decibels.
    ///
    /// # Errors
    /// When one of the four is not a finite number above 0.
    pub fn new(attack_s: f64, decay_s: f64, target: f64, most: f64) -> Result<Self, Error> {
        for (name, value) in [("attack", attack_s), ("decay", decay_s), ("target", target), ("most", most)] {
            check::positive(name, value)?;
        }
        let (target, most) = (target as f32, most as f32);
        let sample = std::marker::PhantomData;
        let (rate_hz, level) = (0.0, None);
        Ok(Agc {
            attack_s,
            decay_s,
            target,
            most,
            rate_hz,
            rise: 0.0,
            fall: 0.0,
            level,
            not_finite: 0,
            sample,
        })
    }

    /// Weights of a new sample in the level, rising and falling.
    fn follow(&mut self) {
        let part = |tau_s: f64| -(-1.0 / (self.rate_hz * tau_s)).exp_m1() as f32;
        (self.rise, self.fall) = (part(self.attack_s), part(self.decay_s));
    }

    fn set(&mut self, name: &str, value: f64) -> Result<(), Error> {
        check::positive(name, value)?;
        match name {
            "attack" => self.attack_s = value,
            "decay" => self.decay_s = value,
            "target" => self.target = value as f32,
            _ => self.most = value as f32,
        }
        if self.rate_hz > 0.0 {
            self.follow();
        }
        Ok(())
    }
}

impl<T: GainSample> Map for Agc<T> {
    type Sample = T;

    fn start(&mut self, rate_hz: f64) -> Result<(), Error> {
        check::rate(rate_hz)?;
        self.rate_hz = rate_hz;
        self.follow();
        self.level = None;
        Ok(())
    }

    fn map(&mut self, samples: &mut [T]) {
        for x in samples {
            let size = x.size();
            if !size.is_finite() {
                self.not_finite += 1;
                *x = T::zeroed();
                continue;
            }
            let level = self.level.get_or_insert(size);
            let part = if size > *level { self.rise } else { self.fall };
            *level += (size - *level) * part;
            let gain = if *level * self.most > self.target { self.target / *level } else { self.most };
            *x = x.times(gain);
        }
    }

    fn note(&self) -> Option<String> {
        not_finite(self.not_finite, "were replaced by 0")
    }

    fn settable(&self) -> &'static [&'static str] {
        &["target", "attack", "decay", "most"]
    }

    fn change(&self, name: &str, value: &Value) -> Result<Change<Self>, Error> {
        let value = match name {
            "target" => value.read(name)?,
            "most" => value.read::<Decibels>(name).map(|Decibels(db)| 10f64.powf(db / 20.0))?,
            _ => value.read::<Seconds>(name)?.0,
        };
        let name = name.to_string();
        tried(self, move |it| it.set(&name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(size: f32, count: usize) -> Vec<f32> {
        (0..count).map(|n| size * (n as f32 * 0.37).sin()).collect()
    }

    fn mean(samples: &[f32]) -> f32 {
        samples.iter().map(|x| x.abs()).sum::<f32>() / samples.len() as f32
    }

    #[test]
    fn every_level_comes_to_the_target() {
        for size in [1e-3, 0.1, 1.0, 30.0] {
            let mut agc = Agc::<f32>::new(0.01, 0.01, 0.25, 1e4).unwrap();
            agc.start(8000.0).unwrap();
            let mut samples = tone(size, 8000);
            agc.map(&mut samples);
            assert!((mean(&samples[4000..]) - 0.25).abs() < 0.01, "{size}: {}", mean(&samples[4000..]));
        }
        let mut agc = Agc::<Complex<f32>>::new(0.01, 0.1, 0.5, 1e4).unwrap();
        agc.start(8000.0).unwrap();
        let mut samples: Vec<_> = (0..8000).map(|n| Complex::from_polar(7.0f32, n as f32)).collect();
        agc.map(&mut samples);
        assert!(samples[4000..].iter().all(|x| (x.norm() - 0.5).abs() < 1e-3));
    }

    #[test]
    fn it_follows_a_step_with_its_time_constants() {
        let mut agc = Agc::<f32>::new(0.01, 0.1, 1.0, 1e6).unwrap();
        agc.start(10e3).unwrap();
        agc.map(&mut [1.0; 1000]);
        // A step up by a factor of ten: after one attack time the level has made 1 - 1/e of the way.
        let mut up = [10.0; 100];
        agc.map(&mut up);
        assert!((up[99] - 10.0 / (10.0 - 9.0 * (-1.0f32).exp())).abs() < 1e-3, "{}", up[99]);
        agc.map(&mut [10.0; 2000]);
        let mut down = [1.0; 1000];
        agc.map(&mut down);
        assert!((down[999] - 1.0 / (1.0 + 9.0 * (-1.0f32).exp())).abs() < 1e-3, "{}", down[999]);
    }

    #[test]
    fn silence_and_bad_samples_do_no_harm() {
        let mut agc = Agc::<f32>::new(0.01, 0.01, 1.0, 100.0).unwrap();
        agc.start(8000.0).unwrap();
        let mut samples = [0.0, 1e-6, f32::NAN, f32::INFINITY, 1e-6];
        agc.map(&mut samples);
        assert_eq!(samples[..4], [0.0, 1e-4, 0.0, 0.0]);
        assert!(samples[4].is_finite());
        assert_eq!(agc.note().unwrap(), "2 samples were not finite and were replaced by 0");
        assert!(Agc::<f32>::new(0.0, 1.0, 1.0, 1.0).unwrap_err().to_string().contains("`attack` is 0"));
    }
}
