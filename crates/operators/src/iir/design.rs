//! Digital filters from analogue ones.
//!
//! The transformations are those of Parks and Burrus, *Digital Filter Design* (1987), chapter 7: the
//! frequencies are prewarped, the low-pass becomes the wanted response, and the bilinear transform makes it
//! digital. Poles and zeros stay apart until each section has its own.

use super::prototype::Prototype;
use crate::equalizer::BiquadWeights;
use num_complex::Complex;
use std::f64::consts::PI;

/// Response of a filter, with its edges in cycles per sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum IirShape {
    LowPass(f64),
    HighPass(f64),
    BandPass(f64, f64),
    BandStop(f64, f64),
}

/// Poles of a section.
#[derive(Debug, Clone, Copy)]
enum Poles {
    /// One of a conjugate pair.
    Pair(Complex<f64>),
    Real(f64, f64),
    One(f64),
}

/// Zeros of the whole filter. All real ones are at 1 or −1.
#[derive(Debug, Default)]
struct Zeros {
    /// One of each conjugate pair.
    pairs: Vec<Complex<f64>>,
    at_one: usize,
    at_minus_one: usize,
}

/// Analogue frequency for a digital one.
fn warped(cycles: f64) -> f64 {
    (PI * cycles).tan()
}

fn bilinear(s: Complex<f64>) -> Complex<f64> {
    (1.0 + s) / (1.0 - s)
}

fn bilinear_real(s: f64) -> f64 {
    (1.0 + s) / (1.0 - s)
}

/// Both solutions for s of `s² − 2 half s + product = 0`.
fn solutions(half: Complex<f64>, product: f64) -> [Complex<f64>; 2] {
    let root = (half * half - product).sqrt();
    // The larger one first; the other follows from the product without loss of digits.
    let larger = if (half + root).norm() > (half - root).norm() { half + root } else { half - root };
    [larger, product / larger]
}

/// Computes the sections of a filter.
pub(super) fn sections(prototype: &Prototype, shape: IirShape) -> Vec<BiquadWeights> {
    let order = 2 * prototype.poles.len() + usize::from(prototype.real_pole.is_some());
    // Zeros at infinity of the prototype.
    let open = order - 2 * prototype.zeros.len();
    let (poles, zeros, at) = match shape {
        IirShape::LowPass(edge) => {
            let w = warped(edge);
            let poles = single(prototype, |p| bilinear(p * w), |p| bilinear_real(p * w));
            let pairs = prototype.zeros.iter().map(|z| bilinear(z * w)).collect();
            (poles, Zeros { pairs, at_one: 0, at_minus_one: open }, 0.0)
        }
        IirShape::HighPass(edge) => {
            let w = warped(edge);
            let poles = single(prototype, |p| bilinear(w / p), |p| bilinear_real(w / p));
            let pairs = prototype.zeros.iter().map(|z| bilinear(w / z)).collect();
            (poles, Zeros { pairs, at_one: open, at_minus_one: 0 }, 0.5)
        }
        IirShape::BandPass(low, high) => {
            let [low, high] = [warped(low), warped(high)];
            let (half_width, product) = ((high - low) / 2.0, low * high);
            let both = |s: Complex<f64>| solutions(s * half_width, product);
            let zeros = Zeros {
                pairs: prototype.zeros.iter().flat_map(|z| both(*z)).map(bilinear).collect(),
                at_one: open,
                at_minus_one: open,
            };
            (double(prototype, both), zeros, product.sqrt().atan() / PI)
        }
        IirShape::BandStop(low, high) => {
            let [low, high] = [warped(low), warped(high)];
            let (half_width, product) = ((high - low) / 2.0, low * high);
            let both = |s: Complex<f64>| solutions(half_width / s, product);
            let mut pairs: Vec<_> = prototype.zeros.iter().flat_map(|z| both(*z)).map(bilinear).collect();
            pairs.extend((0..open).map(|_| bilinear(Complex::new(0.0, product.sqrt()))));
            (double(prototype, both), Zeros { pairs, at_one: 0, at_minus_one: 0 }, 0.0)
        }
    };
    paired(poles, zeros, at, prototype.gain)
}

/// Poles of a response with as many poles as the prototype.
fn single(
    prototype: &Prototype,
    pair: impl Fn(Complex<f64>) -> Complex<f64>,
    real: impl Fn(f64) -> f64,
) -> Vec<Poles> {
    let pairs = prototype.poles.iter().map(|pole| Poles::Pair(pair(*pole)));
    pairs.chain(prototype.real_pole.map(|pole| Poles::One(real(pole)))).collect()
}

/// Poles of a response with two poles for each of the prototype.
fn double(prototype: &Prototype, both: impl Fn(Complex<f64>) -> [Complex<f64>; 2]) -> Vec<Poles> {
    let pairs = prototype.poles.iter().flat_map(|pole| both(*pole)).map(|pole| Poles::Pair(bilinear(pole)));
    let of_real = prototype.real_pole.map(|pole| {
        let [one, other] = both(Complex::new(pole, 0.0));
        if one.im == 0.0 {
            Poles::Real(bilinear_real(one.re), bilinear_real(other.re))
        } else {
            Poles::Pair(bilinear(one))
        }
    });
    pairs.chain(of_real).collect()
}

/// Gives each section its zeros, and the gain 1 at the frequency `at`; the first one has the gain of the
/// filter.
fn paired(mut poles: Vec<Poles>, mut zeros: Zeros, at: f64, gain: f64) -> Vec<BiquadWeights> {
    // The closest to the circle chooses first, so that its resonance meets the nearest zero.
    poles.sort_by(|one, other| other.radius().total_cmp(&one.radius()));
    let turn = Complex::from_polar(1.0, -2.0 * PI * at);
    let section = |(number, poles): (usize, Poles)| {
        let (a, b) = (poles.weights(), zeros.choose(poles));
        let value = |[zero, one, two]: [f64; 3]| zero + turn * (one + turn * two);
        let size = (value(b) / value([1.0, a[0], a[1]])).norm();
        let scale = if number == 0 { gain } else { 1.0 } / size;
        BiquadWeights { b: b.map(|b| b * scale), a }
    };
    // Small resonances first: no section overflows what the next one takes away.
    let mut sections: Vec<_> = poles.into_iter().enumerate().map(section).collect();
    sections.reverse();
    sections
}

impl Poles {
    fn radius(&self) -> f64 {
        match self {
            Poles::Pair(pole) => pole.norm(),
            Poles::Real(one, other) => one.abs().max(other.abs()),
            Poles::One(pole) => pole.abs(),
        }
    }

    /// Weights of the last two outputs.
    fn weights(&self) -> [f64; 2] {
        match self {
            Poles::Pair(pole) => [-2.0 * pole.re, pole.norm_sqr()],
            Poles::Real(one, other) => [-(one + other), one * other],
            Poles::One(pole) => [-pole, 0.0],
        }
    }
}

impl Zeros {
    /// Takes the zeros of a section: as many as it has poles.
    fn choose(&mut self, poles: Poles) -> [f64; 3] {
        let pole = match poles {
            Poles::Pair(pole) => Complex::new(pole.re, pole.im.abs()),
            Poles::Real(one, other) => Complex::new((one + other) / 2.0, 0.0),
            Poles::One(_) => {
                let zero = self.real();
                return [1.0, -zero, 0.0];
            }
        };
        let distance = |zero: &Complex<f64>| (Complex::new(zero.re, zero.im.abs()) - pole).norm();
        let nearest = (0..self.pairs.len())
            .min_by(|one, other| distance(&self.pairs[*one]).total_cmp(&distance(&self.pairs[*other])));
        if let Some(nearest) = nearest {
            let zero = self.pairs.swap_remove(nearest);
            // On the circle exactly, so that the notch is complete.
            return [1.0, -2.0 * zero.re / zero.norm(), 1.0];
        }
        let (one, other) = (self.real(), self.real());
        [1.0, -(one + other), one * other]
    }

    /// Takes a real zero: from both places in turn.
    fn real(&mut self) -> f64 {
        if self.at_one > self.at_minus_one {
            self.at_one -= 1;
            1.0
        } else {
            self.at_minus_one = self.at_minus_one.saturating_sub(1);
            -1.0
        }
    }
}
