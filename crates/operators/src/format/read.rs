//! Reads samples from a file.

use super::coding::{ArraySample, Coding};
use super::open::{OpenSource, cannot, open_source};
use super::pipe::{self, read_arrived};
use onbeat_runtime::{Chunk, Context, Ending, Error, FileUse, Step};
use sha2::{Digest, Sha512};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes per read of the file, rounded down to whole frames. Measured: with 16 KiB, reading 8-bit samples is
/// a quarter slower; with 128 KiB nothing is faster, and the steps that read take twice as long.
const BUFFER: usize = 64 << 10;
/// Bytes of one channel that are unpacked at once, a whole number of samples of any type.
const LANE: usize = 4 << 10;
/// Most channels of a file.
const MOST_CHANNELS: u64 = 1024;

/// Layout of the samples in a file. A frame is one sample of each channel, one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileLayout {
    pub coding: Coding,
    /// Numbers per sample.
    pub parts: usize,
    /// Channels of the file.
    pub channels: u64,
    /// First channel that is read, from 0, and number of channels read.
    pub first: u64,
    pub lanes: u64,
}

/// The user's settings for the channels of a file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Channels {
    /// Number of channels; all are read unless one is chosen.
    pub count: Option<u64>,
    /// The channel to read, from 0.
    pub chosen: Option<u64>,
}

impl Channels {
    /// Number of channels sent.
    pub fn lanes(self) -> u64 {
        if self.chosen.is_some() { 1 } else { self.count.unwrap_or(1) }
    }
}

impl FileLayout {
    /// Selects channels of a file that has `channels`. If it has several, the user must have set one of the
    /// two parameters.
    ///
    /// # Errors
    /// The text says what is wrong; the caller adds the file name.
    pub fn choose(coding: Coding, parts: usize, channels: u64, wanted: Channels) -> Result<Self, Error> {
        if channels == 0 || channels > MOST_CHANNELS {
            return Err(Error::new(format!(
                "it has {channels} channels: there must be from 1 to {MOST_CHANNELS}"
            )));
        }
        let last = channels - 1;
        match wanted {
            Channels { count: Some(count), .. } if count != channels => {
                Err(Error::new(format!("it has {channels} channels, but `channels` is {count}: correct it")))
            }
            Channels { chosen: Some(channel), .. } if channel > last => Err(Error::new(format!(
                "`channel` is {channel}: there are {channels}, counted from 0; choose one from 0 to {last}"
            ))),
            Channels { chosen: None, count: None } if channels > 1 => Err(Error::new(format!(
                "it has {channels} channels: choose one with `channel`, from 0 to {last}, or play all, each \
                 at its own output, with `channels = {channels}`"
            ))),
            Channels { chosen, .. } => {
                Ok(FileLayout { coding, parts, channels, first: chosen.unwrap_or(0), lanes: wanted.lanes() })
            }
        }
    }

    fn sample_bytes(&self) -> usize {
        self.coding.number.bytes() * self.parts
    }

    /// Bytes of one sample of each channel.
    pub fn frame_bytes(&self) -> usize {
        self.sample_bytes() * self.channels as usize
    }
}

/// An open file, of which a range of frames is read.
///
/// The file is read and not mapped, so that truncating or overwriting it during the run gives an error and
/// not a signal: `docs/adr/0009-recordings-are-read.md` has the figures.
pub(crate) struct SampleFile {
    /// Samples per channel.
    pub samples: u64,
    /// Samples read that were not finite.
    pub not_finite: u64,
    file: File,
    path: PathBuf,
    layout: FileLayout,
    /// The bytes that are samples, the piece that is read, and the first unread byte.
    pieces: Vec<Range<u64>>,
    piece: usize,
    next: u64,
    buffer: Box<[u8]>,
    /// Part of the buffer that was read but not unpacked, always whole frames.
    filled: Range<usize>,
    /// Buffer for the samples of one channel, if the file has several.
    lane: Box<[u8]>,
    /// For a pipe: bytes of an incomplete frame, after the filled part of the buffer.
    rest: Option<usize>,
    _use: FileUse,
}

impl SampleFile {
    /// Opens a headerless file of samples. `named` is the user's name for the sample format. The first
    /// `offset` samples are skipped, and `count` samples after them are played.
    pub fn open(
        path: PathBuf,
        named: &str,
        layout: FileLayout,
        offset: u64,
        count: Option<u64>,
    ) -> Result<Self, Error> {
        let OpenSource { file, bytes, used } = open_source(&path)?;
        let (name, size) = (path.display(), layout.frame_bytes() as u64);
        let Some(bytes) = bytes else {
            if offset > 0 {
                return Err(Error::new(format!(
                    "`offset` is {offset}: {name} is a pipe, which begins where it is"
                )));
            }
            let bytes = count.map_or(u64::MAX, |count| count.saturating_mul(size));
            return Self::pipe(file, used, path, layout, bytes);
        };
        if bytes == 0 {
            return Err(Error::new(format!("{name} is empty: there are no samples to play")));
        }
        // With a given number of samples, the bytes after them do not matter.
        if count.is_none() && !bytes.is_multiple_of(size) {
            let each =
                if layout.channels > 1 { format!(" of {} channels", layout.channels) } else { String::new() };
            return Err(Error::new(format!(
                "{name} has {bytes} bytes, which is not a whole number of samples: one of {named}{each} has \
                 {size} bytes; the file is truncated, or its samples are of another type"
            )));
        }
        let all = bytes / size;
        if offset >= all {
            return Err(Error::new(format!("`offset` is {offset}: {name} has {all} samples; skip fewer")));
        }
        let samples = count.unwrap_or(all - offset);
        if samples == 0 || samples > all - offset {
            return Err(Error::new(format!(
                "`count` is {samples}: it must be from 1 to {}; {name} has {all} samples, and `offset` is \
                 {offset}",
                all - offset
            )));
        }
        Self::at(file, used, path, layout, offset * size, samples)
    }

    /// Reads a file with `samples` per channel from byte `begin` on. The caller has compared this with the
    /// file's size.
    pub fn at(
        file: File,
        used: FileUse,
        path: PathBuf,
        layout: FileLayout,
        begin: u64,
        samples: u64,
    ) -> Result<Self, Error> {
        let frame = layout.frame_bytes();
        let end = samples.checked_mul(frame as u64).and_then(|bytes| begin.checked_add(bytes)).ok_or_else(
            || Error::new(format!("{}: {samples} samples are more than a file can hold", path.display())),
        )?;
        let all = begin..end;
        Ok(Self::pieces(file, used, path, layout, vec![all]))
    }

    /// Reads these bytes of a file one after the other: each has whole frames, and there is at least one.
    pub fn pieces(
        file: File,
        used: FileUse,
        path: PathBuf,
        layout: FileLayout,
        pieces: Vec<Range<u64>>,
    ) -> Self {
        let frame = layout.frame_bytes();
        let buffer = vec![0; (BUFFER / frame).max(1) * frame].into();
        let lane = vec![0; if layout.channels > 1 { LANE } else { 0 }].into();
        let bytes: u64 = pieces.iter().map(|piece| piece.end - piece.start).sum();
        SampleFile {
            samples: bytes / frame as u64,
            not_finite: 0,
            file,
            path,
            layout,
            next: pieces[0].start,
            pieces,
            piece: 0,
            buffer,
            filled: 0..0,
            lane,
            rest: None,
            _use: used,
        }
    }

    /// Reads what comes through a pipe, until it ends or `bytes` of samples have come.
    pub fn pipe(
        file: File,
        used: FileUse,
        path: PathBuf,
        layout: FileLayout,
        bytes: u64,
    ) -> Result<Self, Error> {
        let mut pipe = Self::at(file, used, path, layout, 0, 0)?;
        (pipe.samples, pipe.pieces[0].end, pipe.rest) = (u64::MAX, bytes, Some(0));
        Ok(pipe)
    }

    /// For a pipe, reads what has arrived. Returns what to do if no frame has.
    pub fn receive(&mut self, cx: &mut Context) -> Result<Option<Step>, Error> {
        let Some(rest) = self.rest.filter(|_| self.filled.is_empty()) else { return Ok(None) };
        self.buffer.copy_within(self.filled.end..self.filled.end + rest, 0);
        let most = usize::try_from(self.pieces[0].end - self.next)
            .unwrap_or(usize::MAX)
            .min(self.buffer.len() - rest);
        let arrived = match most {
            0 => Some(0),
            most => read_arrived(&self.file, &mut self.buffer[rest..rest + most])
                .map_err(|error| cannot("read", &self.path, error))?,
        };
        let frame = self.layout.frame_bytes();
        let have = rest + arrived.unwrap_or(0);
        self.next += arrived.unwrap_or(0) as u64;
        (self.filled, self.rest) = (0..have - have % frame, Some(have % frame));
        match arrived {
            None => cx.readable(&self.file).map(Some),
            Some(0) => {
                cx.lose(rest as u64, "bytes", "the pipe ended in the middle of a sample");
                self.rest = Some(0);
                Ok(Some(Step::Done))
            }
            Some(_) => Ok(self.filled.is_empty().then_some(Step::Again)),
        }
    }

    /// Frames that can be read now: all of a file, and of a pipe those that have arrived.
    pub fn ready(&self) -> u64 {
        if self.rest.is_some() { (self.filled.len() / self.layout.frame_bytes()) as u64 } else { u64::MAX }
    }

    /// Counts what is left in a pipe as lost, unless the run has ended at its sources' end.
    pub fn lose_unread(&self, ending: Ending, cx: &mut Context) {
        if let Some(rest) = self.rest.filter(|_| ending != Ending::Ended) {
            let unread = pipe::unread(&self.file) + (self.filled.len() + rest) as u64;
            cx.lose(unread, "bytes", "waited in a pipe when the run ended");
        }
    }

    /// Compares these bytes of the file with their checksum, if there is one.
    pub fn verify(&mut self, sha512: Option<&str>, bytes: Range<u64>) -> Result<(), Error> {
        let Some(expected) = sha512 else { return Ok(()) };
        let mut hash = Sha512::new();
        let mut at = bytes.start;
        loop {
            let most = self.buffer.len().min(usize::try_from(bytes.end - at).unwrap_or(usize::MAX));
            let count = match self.file.read_at(&mut self.buffer[..most], at) {
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
                "{}: the data do not match their checksum `core:sha512`: they are truncated or changed; \
                 fetch them again, or play them unchecked with `verify = false`",
                self.path.display()
            )));
        }
        Ok(())
    }

    /// Fills this range of the chunks, one chunk per channel, with the next samples. The file must have that
    /// many left.
    pub fn read<T: ArraySample>(&mut self, chunks: &mut [Chunk<T>], part: Range<usize>) -> Result<(), Error> {
        debug_assert_eq!((T::PARTS, chunks.len() as u64), (self.layout.parts, self.layout.lanes));
        let (frame, sample) = (self.layout.frame_bytes(), self.layout.sample_bytes());
        let mut at = part.start;
        while at < part.end {
            if self.filled.is_empty() {
                self.fill()?;
            }
            let most = if frame == sample { BUFFER } else { self.lane.len() / sample };
            let count = (part.end - at).min(self.filled.len() / frame).min(most);
            let bytes = &self.buffer[self.filled.start..][..count * frame];
            for (lane, chunk) in chunks.iter_mut().enumerate() {
                let samples = chunk.edit_unique().expect("a new chunk is not shared");
                let samples = &mut samples[at..at + count];
                let bytes = if frame == sample {
                    bytes
                } else {
                    let from = sample * (self.layout.first as usize + lane);
                    let to = self.lane.chunks_exact_mut(sample);
                    to.zip(bytes.chunks_exact(frame))
                        .for_each(|(to, all)| to.copy_from_slice(&all[from..from + sample]));
                    &self.lane[..count * sample]
                };
                if T::IS_BYTE {
                    bytemuck::cast_slice_mut(samples).copy_from_slice(bytes);
                    continue;
                }
                let numbers: &mut [f32] = bytemuck::cast_slice_mut(samples);
                self.layout.coding.unpack(bytes, numbers);
                self.not_finite += self.layout.coding.not_finite(numbers);
            }
            self.filled.start += count * frame;
            at += count;
        }
        Ok(())
    }

    /// Reads the next frames into the buffer, which must be used up.
    fn fill(&mut self) -> Result<(), Error> {
        if self.next == self.pieces[self.piece].end {
            self.piece += 1;
            self.next = self.pieces[self.piece].start;
        }
        let left = self.pieces[self.piece].end - self.next;
        let count = self.buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        debug_assert!(count > 0, "more is asked for than there are samples");
        self.file.read_exact_at(&mut self.buffer[..count], self.next).map_err(|error| {
            match error.kind() {
                io::ErrorKind::UnexpectedEof => Error::new(format!(
                    "{} was truncated during playback: it had {} samples at the start",
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
        self.piece = 0;
        self.next = self.pieces[0].start;
        self.filled = 0..0;
    }

    /// Number of channels that are read.
    pub fn lanes(&self) -> u64 {
        self.layout.lanes
    }

    /// First channel that is read.
    pub fn first(&self) -> u64 {
        self.layout.first
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Formats bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
