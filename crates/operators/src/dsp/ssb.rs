//! Single-sideband demodulation.

use super::fir::FirMethod;
use super::fir_bands::BandEdges;
use super::polyphase::Polyphase;
use super::tap_filter::Taps;
use num_complex::Complex;
use onbeat_runtime::{Decibels, Error, FiniteMemory, Hertz, Kernel, Operator, Progress, operator};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Samples that are split into their parts at a time.
const ROUND: usize = 1024;

/// Side of the carrier on which a sound was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Sideband {
    /// Above the carrier.
    #[default]
    Upper,
    /// Below the carrier, with its frequencies mirrored.
    Lower,
}

#[doc = include_str!("../about/ssb_demod.md")]
#[derive(Debug, Clone, Operator)]
#[operator(name = "ssb.demod", summary = "single-sideband demodulation", prepare = Self::prepare)]
pub struct SsbDemod {
    /// Sideband of the signal: `upper` or `lower`.
    #[parameter(default)]
    sideband: Sideband,
    /// Lower edge of the sound, at least half of `transition`: the amplitude there is halved.
    #[parameter(default = "300 Hz", above = 0)]
    low: Hertz,
    /// Upper edge of the sound.
    #[parameter(default = "2700 Hz", above = 0)]
    high: Hertz,
    /// Width of the transitions around both edges; narrower ones cost more computation.
    #[parameter(default = "200 Hz", above = 0)]
    transition: Hertz,
    /// Attenuation of the other sideband and of all that is outside of the band.
    #[parameter(default = "60 dB", min = "20 dB", max = "120 dB")]
    attenuation: Decibels,
    /// How to compute: `direct`, each output at once; `fft`, faster for long filters, but each output waits
    /// for its block of up to 16 times as many samples as the filter has taps; `auto`, whichever is faster.
    #[parameter(default)]
    method: FirMethod,
    parts: Option<Box<SsbFilters>>,
}

/// Filters of the real and of the imaginary parts, whose difference is the output.
#[derive(Debug, Clone)]
struct SsbFilters {
    filters: [Polyphase<f32>; 2],
    inputs: [[f32; ROUND]; 2],
    imaginary: [f32; ROUND],
}

impl SsbFilters {
    fn new(taps: &Taps, method: FirMethod) -> Self {
        SsbFilters {
            filters: [method.filter(&taps.re, 1), method.filter(&taps.im, 1)],
            inputs: [[0.0; ROUND]; 2],
            imaginary: [0.0; ROUND],
        }
    }

    /// Processes at most one round.
    fn round(&mut self, input: &[Complex<f32>], output: &mut [f32]) -> Progress {
        let (count, room) = (input.len().min(ROUND), output.len().min(ROUND));
        let [re, im] = &mut self.inputs;
        for ((re, im), x) in re.iter_mut().zip(im).zip(input) {
            (*re, *im) = (x.re, x.im);
        }
        let [re, im] = &mut self.filters;
        // Both have equally many taps, so they take and give equally many samples.
        let done = re.process(&self.inputs[0][..count], &mut output[..room]);
        im.process(&self.inputs[1][..count], &mut self.imaginary[..room]);
        self.subtract(&mut output[..done.produced]);
        done
    }

    fn subtract(&self, output: &mut [f32]) {
        output.iter_mut().zip(&self.imaginary).for_each(|(y, of_imaginary)| *y -= of_imaginary);
    }
}

impl SsbDemod {
    fn prepare(&mut self) -> Result<(), Error> {
        let edges = self.edges();
        edges.check()?;
        // The band must end before 0 Hz, where the other sideband begins.
        BandEdges { is_one_sided: false, ..edges }.check()
    }

    /// The band of the upper sideband.
    fn edges(&self) -> BandEdges {
        BandEdges {
            low: self.low.0,
            high: self.high.0,
            transition: self.transition.0,
            attenuation_db: self.attenuation.0,
            is_one_sided: true,
        }
    }
}

#[operator]
impl Kernel for SsbDemod {
    type In = Complex<f32>;
    type Out = f32;

    fn start(&mut self, rate_hz: f64) -> Result<(), Error> {
        let mut taps = self.edges().pass(rate_hz)?;
        if self.sideband == Sideband::Lower {
            taps.im.iter_mut().for_each(|tap| *tap = -*tap);
        }
        self.parts = Some(Box::new(SsbFilters::new(&taps, self.method)));
        Ok(())
    }

    fn process(&mut self, input: &[Complex<f32>], output: &mut [f32]) -> Progress {
        let mut done = Progress { consumed: 0, produced: 0 };
        let Some(parts) = &mut self.parts else { return done };
        loop {
            let (input, output) = (&input[done.consumed..], &mut output[done.produced..]);
            let now = parts.round(input, output);
            done.consumed += now.consumed;
            done.produced += now.produced;
            if now.produced == output.len() || (now.consumed == input.len() && now.produced < ROUND) {
                return done;
            }
        }
    }

    fn finish(&mut self, output: &mut [f32]) -> usize {
        let Some(parts) = &mut self.parts else { return 0 };
        let room = output.len().min(ROUND);
        let [re, im] = &mut parts.filters;
        let count = re.finish(&mut output[..room]).min(im.finish(&mut parts.imaginary[..room]));
        parts.subtract(&mut output[..count]);
        count
    }

    fn replica(&self) -> Option<Self> {
        // Blocks are counted from the start of the stream.
        (self.method == FirMethod::Direct).then(|| self.clone())
    }

    fn finite(&mut self) -> Option<&mut dyn FiniteMemory> {
        if self.method == FirMethod::Direct { Some(self) } else { None }
    }
}

impl FiniteMemory for SsbDemod {
    fn memory(&self) -> usize {
        self.parts.as_ref().and_then(|parts| parts.filters[0].memory()).unwrap_or(0)
    }

    fn resume(&mut self, _: u64) {
        if let Some(parts) = &mut self.parts {
            parts.filters.iter_mut().for_each(Polyphase::resume);
        }
    }
}
