//! Writes samples to a file.

use super::coding::{ArraySample, Coding, Lost};
use super::open::cannot;
use super::read::hex;
use crate::part::PartFile;
use onbeat_runtime::{Context, Error};
use sha2::{Digest, Sha512};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

/// Bytes per write to the file.
const BUFFER: usize = 64 << 10;

/// Writes samples to a file that gets its final name only once it is complete.
pub(crate) struct SampleWriter {
    /// Number of samples written.
    pub samples: u64,
    part: PartFile,
    file: File,
    coding: Coding,
    buffer: Box<[u8]>,
    filled: usize,
    hash: Option<Sha512>,
    lost: Lost,
}

impl SampleWriter {
    /// `hashed`: whether [`sha512`](SampleWriter::sha512) will be called.
    pub fn create(path: &Path, coding: Coding, hashed: bool) -> Result<Self, Error> {
        let part = PartFile::create(path)?;
        let file = part.handle()?;
        let buffer = vec![0; BUFFER].into();
        let hash = hashed.then(Sha512::new);
        Ok(SampleWriter { samples: 0, part, file, coding, buffer, filled: 0, hash, lost: Lost::default() })
    }

    /// Final name of the file.
    pub fn path(&self) -> &Path {
        self.part.target()
    }

    /// Writes samples.
    pub fn write<T: ArraySample>(&mut self, samples: &[T]) -> Result<(), Error> {
        if T::IS_BYTE {
            self.samples += samples.len() as u64;
            return self.write_bytes(bytemuck::cast_slice(samples));
        }
        let numbers: &[f32] = bytemuck::cast_slice(samples);
        let size = self.coding.number.bytes();
        let mut rest = numbers;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min((BUFFER - self.filled) / size));
            let end = self.filled + now.len() * size;
            self.coding.pack(now, &mut self.buffer[self.filled..end], &mut self.lost);
            self.filled = end;
            if BUFFER - self.filled < size {
                self.flush()?;
            }
            rest = later;
        }
        self.samples += samples.len() as u64;
        Ok(())
    }

    /// Writes bytes as they are: a header, or samples that are bytes.
    pub fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.flush()?;
        self.file.write_all(bytes).map_err(|error| cannot("write", self.part.target(), error))
    }

    /// Whether samples are in the buffer that are not in the file.
    pub fn is_buffered(&self) -> bool {
        self.filled > 0
    }

    /// Writes the buffer to the file.
    pub fn flush(&mut self) -> Result<(), Error> {
        let bytes = &self.buffer[..self.filled];
        self.filled = 0;
        if let Some(hash) = &mut self.hash {
            hash.update(bytes);
        }
        self.file.write_all(bytes).map_err(|error| cannot("write", self.part.target(), error))
    }

    /// Replaces bytes at the start of the file.
    pub fn rewrite_begin(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.flush()?;
        let written = self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.write_all(bytes));
        written.map_err(|error| cannot("write", self.part.target(), error))
    }

    /// Checksum of all bytes written, in hexadecimal digits.
    pub fn sha512(&mut self) -> Result<String, Error> {
        self.flush()?;
        Ok(self.hash.take().map_or(String::new(), |hash| hex(&hash.finalize())))
    }

    /// Completes the file and gives it its final name.
    pub fn finish(mut self, cx: &Context) -> Result<(), Error> {
        self.flush()?;
        self.part.finish(cx.sync_files())
    }

    /// Leaves the incomplete file after a failure, unless it has no samples.
    pub fn keep(mut self, cx: &mut Context) {
        if self.samples > 0 {
            // What cannot be written was lost by the failure; the rest is there.
            let _lost = self.flush();
            self.part.keep(cx);
        }
    }

    /// Notes the samples that were not written as they came.
    pub fn sum_up(&self, cx: &mut Context) {
        let Lost { clipped, not_finite } = self.lost;
        if clipped > 0 {
            cx.note(format!("{clipped} samples exceeded full scale and were clipped: reduce the gain"));
        }
        if not_finite > 0 {
            let how = if self.coding.number.is_float() { "unchanged" } else { "as 0" };
            cx.note(format!("{not_finite} numbers were not finite and were written {how}"));
        }
    }
}
