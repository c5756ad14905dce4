//! Samples out of a file.

use super::coding::{Coding, FileSample};
use super::open::{cannot, open};
use onbeat_runtime::{Error, FileUse};
use sha2::{Digest, Sha512};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes per read of the file, as many whole frames as they hold. Measured: with 16 KiB, samples of 8 bits are a quarter
/// slower; with 128 KiB nothing is faster, and the steps that read are twice as long.
const BUFFER: usize = 64 << 10;
/// Most channels of a file.
const MOST_CHANNELS: u64 = 1024;

/// How a file has its samples. A frame is one sample of each channel, one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub coding: Coding,
    /// Numbers in one sample.
    pub parts: usize,
    pub channels: u64,
    /// The one to read, from 0.
    pub channel: u64,
}

impl Layout {
    /// Of `channels`, the one that the user has chosen. Where there are several, one must be chosen.
    ///
    /// # Errors
    /// The text says what is wrong; the caller names the file.
    pub fn choose(coding: Coding, parts: usize, channels: u64, chosen: Option<u64>) -> Result<Self, Error> {
        if channels == 0 || channels > MOST_CHANNELS {
            return Err(Error::new(format!(
                "it has {channels} channels: there must be from 1 to {MOST_CHANNELS}"
            )));
        }
        let channel = match chosen {
            None if channels > 1 => {
                return Err(Error::new(format!(
                    "it has {channels} channels, and one can be read: choose it with `channel`, from 0 to {}",
                    channels - 1
                )));
            }
            Some(channel) if channel >= channels => {
                return Err(Error::new(format!(
                    "`channel` is {channel}: there are {channels}, counted from 0; choose one from 0 to {}",
                    channels - 1
                )));
            }
            chosen => chosen.unwrap_or(0),
        };
        Ok(Layout { coding, parts, channels, channel })
    }

    fn sample_bytes(&self) -> usize {
        self.coding.number.bytes() * self.parts
    }

    /// Bytes of one sample of each channel.
    pub fn frame_bytes(&self) -> usize {
        self.sample_bytes() * self.channels as usize
    }
}

/// An open file, of which a run of frames is read.
///
/// It is read and not mapped, so that a file that is cut short or overwritten meanwhile is an error and no signal:
/// `docs/adr/0009-recordings-are-read.md` has the figures.
pub(crate) struct SampleFile {
    /// Samples of the chosen channel.
    pub samples: u64,
    /// Samples read that were not finite.
    pub not_finite: u64,
    file: File,
    path: PathBuf,
    layout: Layout,
    /// Where the samples begin, where what was not read yet does, and where they end, in bytes.
    begin: u64,
    next: u64,
    end: u64,
    buffer: Box<[u8]>,
    /// What of the buffer was read and not unpacked, always whole frames.
    filled: Range<usize>,
    _use: FileUse,
}

impl SampleFile {
    /// A file that has nothing but samples. `named` is what the user calls one; `offset` samples are left out
    /// at the begin, and after `count` of them what follows is.
    pub fn open(
        path: PathBuf,
        named: &str,
        layout: Layout,
        offset: u64,
        count: Option<u64>,
    ) -> Result<Self, Error> {
        let (file, bytes, used) = open(&path)?;
        let (name, size) = (path.display(), layout.frame_bytes() as u64);
        if bytes == 0 {
            return Err(Error::new(format!("{name} is empty: there are no samples to play")));
        }
        // Who says how many samples to read need not mind what is behind them.
        if count.is_none() && !bytes.is_multiple_of(size) {
            let each =
                if layout.channels > 1 { format!(" of {} channels", layout.channels) } else { String::new() };
            return Err(Error::new(format!(
                "{name} has {bytes} bytes, which is no whole number of samples: one of {named}{each} has {size} bytes; \
                 the file is truncated, or its samples are of another type"
            )));
        }
        let all = bytes / size;
        if offset >= all {
            return Err(Error::new(format!(
                "`offset` is {offset}: {name} has {all} samples; leave out less than that"
            )));
        }
        let samples = count.unwrap_or(all - offset);
        if samples == 0 || samples > all - offset {
            return Err(Error::new(format!(
                "`count` is {samples}: it must be from 1 to {}; {name} has {all} samples, and `offset` is {offset}",
                all - offset
            )));
        }
        Self::at(file, used, path, layout, offset * size, samples)
    }

    /// A file with `samples` of each channel from byte `begin` on; the caller has compared that with its
    /// size.
    pub fn at(
        file: File,
        used: FileUse,
        path: PathBuf,
        layout: Layout,
        begin: u64,
        samples: u64,
    ) -> Result<Self, Error> {
        let frame = layout.frame_bytes();
        let buffer = vec![0; (BUFFER / frame).max(1) * frame].into();
        let end = samples.checked_mul(frame as u64).and_then(|bytes| begin.checked_add(bytes)).ok_or_else(
            || Error::new(format!("{}: {samples} samples are more than a file has", path.display())),
        )?;
        Ok(SampleFile {
            samples,
            not_finite: 0,
            file,
            path,
            layout,
            begin,
            next: begin,
            end,
            buffer,
            filled: 0..0,
            _use: used,
        })
    }

    /// Compares the whole file with its checksum, if there is one.
    pub fn verify(&mut self, sha512: Option<&str>) -> Result<(), Error> {
        let Some(expected) = sha512 else { return Ok(()) };
        let mut hash = Sha512::new();
        let mut at = 0;
        loop {
            let count = match self.file.read_at(&mut self.buffer, at) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(cannot("read", &self.path, error)),
            };
            hash.update(&self.buffer[..count]);
            at += count as u64;
        }
        self.rewind();
        if !hex(&hash.finalize()).eq_ignore_ascii_case(expected) {
            return Err(Error::new(format!(
                "{}: the data do not match their checksum `core:sha512`: they are truncated or changed; get them anew, \
                 or play them as they are with `verify = false`",
                self.path.display()
            )));
        }
        Ok(())
    }

    /// Fills `samples` with the next ones, of which there must be as many.
    pub fn read<T: FileSample>(&mut self, samples: &mut [T]) -> Result<(), Error> {
        debug_assert_eq!(T::PARTS, self.layout.parts);
        let (frame, sample) = (self.layout.frame_bytes(), self.layout.sample_bytes());
        let first = sample * self.layout.channel as usize;
        let mut rest = samples;
        while !rest.is_empty() {
            if self.filled.is_empty() {
                self.fill()?;
            }
            let count = rest.len().min(self.filled.len() / frame);
            let (now, later) = rest.split_at_mut(count);
            let bytes = &mut self.buffer[self.filled.start..][..count * frame];
            self.filled.start += bytes.len();
            if self.layout.channels > 1 {
                for at in 0..count {
                    let from = at * frame + first;
                    bytes.copy_within(from..from + sample, at * sample);
                }
            }
            let numbers: &mut [f32] = bytemuck::cast_slice_mut(now);
            self.layout.coding.unpack(&bytes[..count * sample], numbers);
            self.not_finite += self.layout.coding.not_finite(numbers);
            rest = later;
        }
        Ok(())
    }

    /// Reads the next frames into the buffer, which is used up.
    fn fill(&mut self) -> Result<(), Error> {
        let count = self.buffer.len().min(usize::try_from(self.end - self.next).unwrap_or(usize::MAX));
        debug_assert!(count > 0, "more is asked for than there are samples");
        self.file.read_exact_at(&mut self.buffer[..count], self.next).map_err(|error| {
            match error.kind() {
                io::ErrorKind::UnexpectedEof => Error::new(format!(
                    "{} became shorter while it was played: it had {} samples at the start",
                    self.path.display(),
                    self.samples
                )),
                _ => cannot("read", &self.path, error),
            }
        })?;
        self.next += count as u64;
        self.filled = 0..count;
        Ok(())
    }

    /// Goes back to the first sample.
    pub fn rewind(&mut self) {
        self.next = self.begin;
        self.filled = 0..0;
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// In hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
