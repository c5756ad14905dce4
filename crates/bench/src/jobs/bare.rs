//! Kernels in a plain loop: the same work without an engine.

use super::folder::at;
use num_complex::Complex;
use onbeat_operators::dsp::cf32_le_to_complex;
use onbeat_runtime::{Error, Kernel};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// Complex samples per pass: 16 KiB, as much as an edge carries by default.
pub(super) const BLOCK: usize = 2048;

/// Room for the samples that a kernel sends at the end.
const TAIL: usize = 1024;

/// A kernel with the buffer for its results.
pub(super) struct KernelStage<K: Kernel> {
    kernel: K,
    results: Vec<K::Out>,
    /// Sample rate of the results, in hertz.
    pub rate_hz: f64,
    /// Most results of a pass.
    pub most: usize,
}

impl<K: Kernel> KernelStage<K> {
    /// Starts a kernel for a signal of this rate, in passes of at most `most` samples.
    pub fn new(mut kernel: K, rate_hz: f64, most: usize) -> Result<Self, Error> {
        kernel.start(rate_hz)?;
        let ratio = kernel.ratio();
        let (up, down) = (ratio.up as usize, ratio.down as usize);
        let most = (most * up).div_ceil(down) + TAIL;
        let rate_hz = rate_hz * up as f64 / down as f64;
        Ok(KernelStage { kernel, results: vec![bytemuck::Zeroable::zeroed(); most], rate_hz, most })
    }

    /// Processes a pass. Returns the results.
    pub fn take(&mut self, mut input: &[K::In]) -> &[K::Out] {
        let mut done = 0;
        while !input.is_empty() && done < self.results.len() {
            let progress = self.kernel.process(input, &mut self.results[done..]);
            input = &input[progress.consumed..];
            done += progress.produced;
        }
        &self.results[..done]
    }

    /// Returns some of the remaining results after the end of the input; nothing once there are none.
    pub fn finish(&mut self) -> &[K::Out] {
        let count = self.kernel.finish(&mut self.results);
        &self.results[..count]
    }
}

/// Reads a file of complex samples block by block.
pub(super) fn each_block(
    path: &Path,
    mut take: impl FnMut(&mut [Complex<f32>]) -> Result<(), String>,
) -> Result<(), String> {
    const SAMPLE: usize = size_of::<Complex<f32>>();
    let mut file = File::open(path).map_err(at(path))?;
    // Several blocks per system call, as the sources of pipelines do.
    let mut bytes = vec![0; 16 * BLOCK * SAMPLE];
    let mut samples = vec![Complex::default(); BLOCK];
    loop {
        let mut length = 0;
        while length < bytes.len() {
            match file.read(&mut bytes[length..]).map_err(at(path))? {
                0 => break,
                count => length += count,
            }
        }
        for block in bytes[..length].chunks(BLOCK * SAMPLE) {
            let count = cf32_le_to_complex(bytemuck::cast_slice(block), &mut samples);
            take(&mut samples[..count])?;
        }
        if length < bytes.len() {
            return Ok(());
        }
    }
}

/// Writes samples as 32-bit floats.
pub(super) fn write_floats(file: &mut impl Write, samples: &[f32], path: &Path) -> Result<(), String> {
    // Little-endian, as all machines that onbeat supports.
    file.write_all(bytemuck::cast_slice(samples)).map_err(at(path))
}
