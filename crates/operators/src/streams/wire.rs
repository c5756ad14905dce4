//! Conversion between samples and bytes.

use crate::format::{Coding, FileSample, SampleFormat};
use onbeat_runtime::{Context, Error};
use std::marker::PhantomData;

/// Converts samples to bytes and back.
pub(crate) struct WireCodec<T> {
    coding: Coding,
    pub format: SampleFormat,
    lost: crate::format::Lost,
    samples: PhantomData<fn() -> T>,
}

/// The lossless format for samples with this many components.
fn lossless(parts: usize) -> SampleFormat {
    if parts == 2 { SampleFormat::Cf32Le } else { SampleFormat::Rf32Le }
}

impl<T: FileSample> WireCodec<T> {
    /// Uses floating point unless a format is given.
    pub fn new(format: Option<SampleFormat>) -> Result<Self, Error> {
        let format = format.unwrap_or(lossless(T::PARTS));
        if format.parts() != T::PARTS {
            let (are, fix) = if T::PARTS == 2 {
                ("real", "use the kind without `.complex`")
            } else {
                ("complex", "use the kind that ends in `.complex`")
            };
            let other = format.other_kind().name();
            return Err(Error::new(format!(
                "`format` is {}: its samples are {are}; {fix}, or the format {other}",
                format.name()
            )));
        }
        Ok(WireCodec {
            coding: format.coding(),
            format,
            lost: crate::format::Lost::default(),
            samples: PhantomData,
        })
    }

    /// Bytes per sample.
    pub fn bytes(&self) -> usize {
        self.coding.number.bytes() * T::PARTS
    }

    /// Unpacks `bytes`, whose length must match that of `samples`.
    pub fn unpack(&self, bytes: &[u8], samples: &mut [T]) {
        self.coding.unpack(bytes, bytemuck::cast_slice_mut(samples));
    }

    /// Appends samples to the bytes.
    pub fn pack(&mut self, samples: &[T], bytes: &mut Vec<u8>) {
        let begin = bytes.len();
        bytes.resize(begin + samples.len() * self.bytes(), 0);
        self.coding.pack(bytemuck::cast_slice(samples), &mut bytes[begin..], &mut self.lost);
    }

    /// Notes the samples that were not written as they came.
    pub fn sum_up(&mut self, cx: &mut Context) {
        let lost = std::mem::take(&mut self.lost);
        if lost.clipped > 0 {
            let name = self.format.name();
            cx.note(format!(
                "{} numbers were beyond the range of {name} and were clipped: reduce the gain",
                lost.clipped
            ));
        }
        if lost.not_finite > 0 {
            cx.note(format!("{} numbers were not finite", lost.not_finite));
        }
    }
}
