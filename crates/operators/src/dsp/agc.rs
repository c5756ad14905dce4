//! Automatic gain control.

use num_complex::Complex;
use onbeat_runtime::{Change, Decibels, Error, Map, Sample, Seconds, Value, tried};

use super::not_finite;
use crate::check;

/// Factor between the two means from which the level follows the quick one: 1 dB.
const APART: f32 = 1.122;

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

#[doc = include_str!("../about/agc.md")]
#[derive(Debug, Clone)]
pub struct Agc<T: GainSample> {
    attack_s: f64,
    decay_s: f64,
    target: f32,
    most: f32,
    /// Sample rate; 0 before it is known.
    rate_hz: f64,
    /// Weights of a new sample in the mean over the shorter time constant, and in that over the longer one.
    short: f32,
    long: f32,
    /// Factor from the quick mean to the level beyond which it is drawn along: below 1 if rises are quick.
    apart: f32,
    /// Mean over the shorter time constant, and level; `None` before the first sample, which sets both.
    means: Option<[f32; 2]>,
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
        let (rate_hz, means) = (0.0, None);
        Ok(Agc {
            attack_s,
            decay_s,
            target,
            most,
            rate_hz,
            short: 0.0,
            long: 0.0,
            apart: 1.0,
            means,
            not_finite: 0,
            sample,
        })
    }

    fn follow(&mut self) {
        let part = |tau_s: f64| -(-1.0 / (self.rate_hz * tau_s)).exp_m1() as f32;
        self.short = part(self.attack_s.min(self.decay_s));
        self.long = part(self.attack_s.max(self.decay_s));
        self.apart = if self.attack_s <= self.decay_s { 1.0 / APART } else { APART };
    }

    /// The level after a sample of this size.
    #[inline(always)]
    fn level(&mut self, size: f32) -> f32 {
        let [quick, level] = self.means.get_or_insert([size; 2]);
        *quick += (size - *quick) * self.short;
        let far = *quick * self.apart;
        let is_far = if self.apart < 1.0 { far > *level } else { far < *level };
        let draw = if is_far { (*quick - *level) * self.short } else { 0.0 };
        *level += (size - *level) * self.long + draw;
        *level
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
        self.means = None;
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
            let level = self.level(size);
            let gain = if level * self.most > self.target { self.target / level } else { self.most };
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

    /// Noise, a sine and a square wave, with the defaults' constants: each comes to the target.
    #[test]
    fn every_waveform_comes_to_the_target() {
        let mut dice = 1u64;
        let mut noise = || {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (dice >> 40) as f32 / (1 << 23) as f32 - 1.0
        };
        let noise: Vec<f32> = (0..96_000).map(|_| noise()).collect();
        let square: Vec<f32> = (0..96_000).map(|n| if n % 100 < 20 { 0.9 } else { -0.1 }).collect();
        for (attack_s, decay_s) in [(0.01, 0.2), (0.01, 0.05), (0.2, 0.01), (0.05, 0.05)] {
            for (name, samples) in
                [("sine", tone(0.02, 96_000)), ("noise", noise.clone()), ("square", square.clone())]
            {
                let mut agc = Agc::<f32>::new(attack_s, decay_s, 0.25, 1e4).unwrap();
                agc.start(48e3).unwrap();
                let mut samples = samples;
                agc.map(&mut samples);
                let end = mean(&samples[72_000..]);
                assert!((end / 0.25 - 1.0).abs() < 0.015, "{name}, {attack_s}, {decay_s}: {end}");
            }
        }
    }

    #[test]
    fn it_follows_a_step_with_its_time_constants() {
        let level = |agc: &mut Agc<f32>, size: f32, count: usize| {
            let mut samples = vec![size; count];
            agc.map(&mut samples);
            size / samples[count - 1]
        };
        let mut agc = Agc::<f32>::new(0.01, 0.1, 1.0, 1e6).unwrap();
        agc.start(10e3).unwrap();
        level(&mut agc, 1.0, 1000);
        // A step up by a factor of ten: two means in a row make 1 - 2/e of the way in one attack time, and
        // the slow one makes a tenth of what is left.
        let up = level(&mut agc, 10.0, 100);
        assert!((3.4..4.1).contains(&up), "{up}");
        let up = level(&mut agc, 10.0, 400);
        assert!(up > 8.7, "after five attack times: {up}");
        assert!((level(&mut agc, 10.0, 8000) - 10.0).abs() < 0.01);
        // A step down: one mean, 1 - 1/e of the way after one decay time.
        let down = level(&mut agc, 1.0, 1000);
        assert!((down - (1.0 + 9.0 * (-1.0f32).exp())).abs() < 0.05, "{down}");
        // With the constants the other way round, rises are slow and falls quick.
        let mut agc = Agc::<f32>::new(0.1, 0.01, 1.0, 1e6).unwrap();
        agc.start(10e3).unwrap();
        level(&mut agc, 1.0, 1000);
        let up = level(&mut agc, 10.0, 1000);
        assert!((up - (10.0 - 9.0 * (-1.0f32).exp())).abs() < 0.05, "{up}");
        level(&mut agc, 10.0, 10_000);
        let down = level(&mut agc, 1.0, 100);
        assert!((6.9..7.7).contains(&down), "{down}");
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
