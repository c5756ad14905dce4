//! Samples on their way to a transmitter.

use num_complex::Complex;
use onbeat_runtime::Context;

/// Samples of the last chunk, within full scale, and how many of them were written.
#[derive(Debug, Default)]
pub(super) struct RadioBuffer {
    samples: Vec<Complex<f32>>,
    done: usize,
    clipped: u64,
    not_finite: u64,
}

impl RadioBuffer {
    /// Takes other samples. Parts beyond full scale are clipped: some drivers convert to integers without a
    /// look.
    pub fn fill(&mut self, samples: &[Complex<f32>]) {
        self.samples.clear();
        self.done = 0;
        for sample in samples {
            let is_finite = sample.re.is_finite() && sample.im.is_finite();
            let kept = Complex::new(sample.re.clamp(-1.0, 1.0), sample.im.clamp(-1.0, 1.0));
            self.not_finite += u64::from(!is_finite);
            self.clipped += u64::from(is_finite && kept != *sample);
            self.samples.push(if is_finite { kept } else { Complex::default() });
        }
    }

    /// Those that were not written.
    pub fn rest(&self) -> &[[f32; 2]] {
        bytemuck::cast_slice(&self.samples[self.done..])
    }

    /// Takes note that this many were written.
    pub fn wrote(&mut self, count: usize) {
        self.done = (self.done + count).min(self.samples.len());
    }

    /// Drops those that were not written, and returns their number.
    pub fn drop_rest(&mut self) -> u64 {
        let count = self.rest().len() as u64;
        self.done = self.samples.len();
        count
    }

    /// Notes what was changed, at the end of the run.
    pub fn sum_up(&mut self, cx: &mut Context) {
        let (clipped, not_finite) = (std::mem::take(&mut self.clipped), std::mem::take(&mut self.not_finite));
        if clipped > 0 {
            cx.note(format!(
                "{clipped} samples were beyond full scale and were clipped: put a `gain.complex` before it"
            ));
        }
        if not_finite > 0 {
            cx.note(format!("{not_finite} samples were not finite and were transmitted as 0"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_stay_within_full_scale() {
        let mut buffer = RadioBuffer::default();
        let pair = |re, im| Complex::new(re, im);
        buffer.fill(&[pair(0.5, -1.0), pair(1.5, -7.0), pair(f32::NAN, 1.0), pair(0.0, f32::INFINITY)]);
        assert_eq!(buffer.rest(), [[0.5, -1.0], [1.0, -1.0], [0.0, 0.0], [0.0, 0.0]]);
        assert_eq!((buffer.clipped, buffer.not_finite), (1, 2));
        buffer.wrote(3);
        assert_eq!(buffer.rest(), [[0.0, 0.0]]);
        assert_eq!((buffer.drop_rest(), buffer.drop_rest()), (1, 0));
    }
}
