//! Frequency demodulation.

use std::f64::consts::TAU;

use num_complex::Complex;
use onbeat_runtime::{Change, Error, FiniteMemory, Hertz, Kernel, Progress, Value, tried};
use pulp::{Simd, WithSimd};

use super::not_finite;
use super::phase::angle;
use crate::check;
use crate::vectors::Vectors;

/// Samples per round of the inner loops; their angles stay in the L1 cache.
const BLOCK: usize = 256;

#[doc = include_str!("../about/quad_demod.md")]
#[derive(Debug, Clone)]
pub struct QuadDemod {
    vectors: Vectors,
    deviation_hz: f64,
    /// Sample rate; 0 before it is known.
    rate_hz: f64,
    scale: f32,
    /// Inputs seen, counted up to 2.
    seen: u8,
    /// Outputs that `finish` still has to send.
    owed: u8,
    last: Complex<f32>,
    not_finite: u64,
    /// `not_finite` before the samples that another worker counts.
    counted: u64,
    /// The last three turns, then room for those of one round.
    turns: [f32; 3 + BLOCK],
}

impl QuadDemod {
    /// Creates a demodulator for a peak deviation in hertz.
    ///
    /// # Errors
    /// When `deviation_hz` is not a finite number above 0.
    pub fn new(deviation_hz: f64) -> Result<Self, Error> {
        check::positive("deviation", deviation_hz)?;
        Ok(QuadDemod {
            vectors: Vectors::new(),
            deviation_hz,
            rate_hz: 0.0,
            scale: 0.0,
            seen: 0,
            owed: 0,
            last: Complex::new(0.0, 0.0),
            not_finite: 0,
            counted: 0,
            turns: [0.0; 3 + BLOCK],
        })
    }

    fn deviate(&mut self, deviation_hz: f64) -> Result<(), Error> {
        check::positive("deviation", deviation_hz)?;
        if self.rate_hz > 0.0 {
            let fix = "a wider signal needs a higher rate";
            check::below_half("deviation", deviation_hz, self.rate_hz, "sample", fix)?;
            self.scale = (self.rate_hz / (TAU * deviation_hz) / 12.0) as f32;
        }
        self.deviation_hz = deviation_hz;
        Ok(())
    }

    /// Takes the first two inputs, for which there is no output yet.
    fn prime(&mut self, x: Complex<f32>) {
        self.not_finite += u64::from(!x.is_finite());
        if self.seen == 1 {
            self.turns[..3].fill(turn(self.last, x));
        }
        self.last = x;
        self.seen += 1;
        self.owed = self.seen;
    }

    /// Computes outputs from new turns, which are stored after the last three.
    #[inline(always)]
    fn combine(&mut self, output: &mut [f32]) {
        let count = output.len();
        let d = &self.turns[..count + 3];
        for (n, y) in output.iter_mut().enumerate() {
            *y = (7.0 * (d[n + 1] + d[n + 2]) - (d[n] + d[n + 3])) * self.scale;
        }
        self.turns.copy_within(count..count + 3, 0);
    }

    /// Demodulates equally many samples, of which at least two have come before.
    #[inline(always)]
    fn demodulate(&mut self, input: &[Complex<f32>], output: &mut [f32]) {
        for (input, output) in input.chunks(BLOCK).zip(output.chunks_mut(BLOCK)) {
            let turns = &mut self.turns[3..3 + input.len()];
            turns[0] = turn(self.last, input[0]);
            for ((d, from), to) in turns[1..].iter_mut().zip(input).zip(&input[1..]) {
                *d = turn(*from, *to);
            }
            self.last = input[input.len() - 1];
            self.not_finite += u64::from(input.iter().map(|x| u32::from(!x.is_finite())).sum::<u32>());
            self.combine(output);
        }
    }
}

/// The angle from one sample to the next, in radians.
#[inline(always)]
fn turn(from: Complex<f32>, to: Complex<f32>) -> f32 {
    angle(to.re * from.re + to.im * from.im, to.im * from.re - to.re * from.im)
}

/// The loop, compiled for the processor's vectors.
struct DemodLoop<'d> {
    demod: &'d mut QuadDemod,
    input: &'d [Complex<f32>],
    output: &'d mut [f32],
}

impl WithSimd for DemodLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        self.demod.demodulate(self.input, self.output);
    }
}

impl Kernel for QuadDemod {
    type In = Complex<f32>;
    type Out = f32;

    fn start(&mut self, rate_hz: f64) -> Result<(), Error> {
        check::rate(rate_hz)?;
        self.rate_hz = rate_hz;
        self.deviate(self.deviation_hz)?;
        (self.seen, self.owed) = (0, 0);
        self.turns = [0.0; 3 + BLOCK];
        Ok(())
    }

    fn process(&mut self, input: &[Complex<f32>], output: &mut [f32]) -> Progress {
        let mut consumed = 0;
        while self.seen < 2 && consumed < input.len() {
            self.prime(input[consumed]);
            consumed += 1;
        }
        let count = (input.len() - consumed).min(output.len());
        let (input, output) = (&input[consumed..consumed + count], &mut output[..count]);
        self.vectors.run(DemodLoop { demod: self, input, output });
        Progress { consumed: consumed + count, produced: count }
    }

    fn finish(&mut self, output: &mut [f32]) -> usize {
        let count = output.len().min(self.owed.into());
        for y in &mut output[..count] {
            self.turns[3] = self.turns[2];
            self.combine(std::slice::from_mut(y));
        }
        self.owed -= count as u8;
        count
    }

    fn note(&self) -> Option<String> {
        not_finite(self.not_finite, "counted as 0")
    }

    fn settable(&self) -> &'static [&'static str] {
        &["deviation"]
    }

    fn change(&self, name: &str, value: &Value) -> Result<Change<Self>, Error> {
        let Hertz(deviation_hz) = value.read(name)?;
        tried(self, move |it| it.deviate(deviation_hz))
    }

    fn replica(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn finite(&mut self) -> Option<&mut dyn FiniteMemory> {
        Some(self)
    }
}

impl FiniteMemory for QuadDemod {
    fn memory(&self) -> usize {
        4
    }

    fn resume(&mut self, _: u64) {
        (self.seen, self.owed) = (0, 0);
        self.counted = self.not_finite;
    }

    fn begin(&mut self) {
        self.not_finite = self.counted;
    }
}
