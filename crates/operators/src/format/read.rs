//! Samples out of a file.

use super::coding::{Coding, FileSample};
use super::open::{cannot, open};
use onbeat_runtime::{Error, FileUse};
use sha2::{Digest, Sha512};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Bytes per read of the file.
const BUFFER: usize = 64 << 10;
/// Bytes that are unpacked in one go, at least one frame.
const SCRATCH: usize = 4 << 10;
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
pub(crate) struct SampleFile {
    /// Samples of the chosen channel.
    pub samples: u64,
    /// Samples read that were not finite.
    pub not_finite: u64,
    file: BufReader<File>,
    path: PathBuf,
    layout: Layout,
    /// Where the samples begin, in bytes.
    begin: u64,
    scratch: Box<[u8]>,
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
        let scratch = vec![0; (SCRATCH / frame).max(1) * frame].into();
        let file = BufReader::with_capacity(BUFFER, file);
        let mut file = SampleFile { samples, not_finite: 0, file, path, layout, begin, scratch, _use: used };
        file.rewind()?;
        Ok(file)
    }

    /// Compares the whole file with its checksum, if there is one.
    pub fn verify(&mut self, sha512: Option<&str>) -> Result<(), Error> {
        let Some(expected) = sha512 else { return Ok(()) };
        let mut hash = Sha512::new();
        self.file.rewind().map_err(|error| cannot("read", &self.path, error))?;
        io::copy(&mut self.file, &mut HashWriter(&mut hash))
            .map_err(|error| cannot("read", &self.path, error))?;
        if !hex(&hash.finalize()).eq_ignore_ascii_case(expected) {
            return Err(Error::new(format!(
                "{}: the data do not match their checksum `core:sha512`: they are truncated or changed; get them anew, \
                 or play them as they are with `verify = false`",
                self.path.display()
            )));
        }
        self.rewind()
    }

    /// Fills `samples` with the next ones, of which there must be as many.
    pub fn read<T: FileSample>(&mut self, samples: &mut [T]) -> Result<(), Error> {
        debug_assert_eq!(T::PARTS, self.layout.parts);
        let (frame, sample) = (self.layout.frame_bytes(), self.layout.sample_bytes());
        let first = sample * self.layout.channel as usize;
        for samples in samples.chunks_mut(self.scratch.len() / frame) {
            let bytes = &mut self.scratch[..samples.len() * frame];
            self.file.read_exact(bytes).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => Error::new(format!(
                    "{} became shorter while it was played: it had {} samples at the start",
                    self.path.display(),
                    self.samples
                )),
                _ => cannot("read", &self.path, error),
            })?;
            if self.layout.channels > 1 {
                for at in 0..samples.len() {
                    let from = at * frame + first;
                    bytes.copy_within(from..from + sample, at * sample);
                }
            }
            let numbers: &mut [f32] = bytemuck::cast_slice_mut(samples);
            self.layout.coding.unpack(&bytes[..numbers.len() / T::PARTS * sample], numbers);
            self.not_finite += self.layout.coding.not_finite(numbers);
        }
        Ok(())
    }

    /// Goes back to the first sample.
    pub fn rewind(&mut self) -> Result<(), Error> {
        self.file
            .seek(SeekFrom::Start(self.begin))
            .map(|_| ())
            .map_err(|error| cannot("read", &self.path, error))
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

/// Takes bytes into a hash.
struct HashWriter<'h>(&'h mut Sha512);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
