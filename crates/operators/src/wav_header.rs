//! The header of a WAV file: RIFF, RIFX (high byte first), RF64 and BW64 (longer than 4 GiB).
//!
//! Written by hand, because recorders in the field write headers that the crates refuse: lengths of 0 or
//! 0xFFFFFFFF (recorder killed, or output to a pipe), chunks in any order, 64-bit lengths.
//! `docs/adr/0035-own-wav-reader.md` has the comparison.

use crate::format::{Coding, Number};
use std::io::{self, Read};

/// Longest chunk that is looked into, and most bytes before the samples.
const MOST_CHUNK: u64 = 1 << 20;
const MOST_HEADER: u64 = 256 << 20;

/// What the header says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WavHeader {
    pub coding: Coding,
    pub channels: u64,
    /// Frames per second. It may be 0.
    pub rate_hz: u32,
    /// First byte of the samples.
    pub begin: u64,
    /// Bytes of samples; `None` if the header does not say.
    pub length: Option<u64>,
    pub radio: RadioChunk,
}

/// What radio programs add in a chunk `auxi`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RadioChunk {
    /// Centre frequency; 0 if there is none.
    pub frequency_hz: u32,
    /// Start of the recording.
    pub datetime: Option<String>,
}

impl RadioChunk {
    fn read(body: &[u8]) -> Self {
        let word = |at: usize| body.get(at..at + 2).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]));
        let [year, month, _, day, hour, minute, second, ms] = std::array::from_fn(|at| word(2 * at));
        let datetime = (year > 0)
            .then(|| format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z"));
        let frequency_hz = u32::from(word(32)) | u32::from(word(34)) << 16;
        RadioChunk { frequency_hz, datetime }
    }

    /// Looks for the chunk behind the samples. `at` is the first byte after them.
    pub fn after(file: &mut (impl Read + io::Seek), at: u64) -> Option<Self> {
        file.seek(io::SeekFrom::Start(at)).ok()?;
        let mut scan = ChunkScan { file, at: 0, is_high_first: false };
        loop {
            let (id, size) = scan.chunk().ok()?;
            if id == *b"auxi" {
                return Some(RadioChunk::read(&scan.body(size).ok()?));
            }
            scan.skip(size + size % 2).ok()?;
        }
    }
}

impl WavHeader {
    /// Reads a header up to the first sample. `whole` is the length of the file, if it is known. The error is
    /// for users; the caller adds the file name.
    pub fn read(file: &mut impl Read, whole: Option<u64>) -> Result<Self, String> {
        let mut scan = ChunkScan { file, at: 0, is_high_first: false };
        let cut = |error: io::Error| format!("its WAV header cannot be read: {error}");
        let begin: [u8; 4] = scan.array().map_err(cut)?;
        scan.is_high_first = begin == *b"RIFX";
        if !matches!(&begin, b"RIFF" | b"RIFX" | b"RF64" | b"BW64") {
            let text = begin.escape_ascii();
            return Err(format!("it is not a WAV file: it begins with `{text}`, and not with `RIFF`"));
        }
        let riff = u64::from(scan.number().map_err(cut)?);
        if scan.array().map_err(cut)? != *b"WAVE" {
            return Err("it is a RIFF file, but no WAV file: its type is not `WAVE`".into());
        }
        let (mut format, mut long, mut radio) = (None, None, RadioChunk::default());
        let no_data = |error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => "it has no samples: there is no `data` chunk".to_string(),
            _ => cut(error),
        };
        let length = loop {
            let (id, size) = scan.chunk().map_err(no_data)?;
            match &id {
                b"data" => break size,
                b"fmt " => {
                    format = Some(WavFormatChunk::read(&scan.body(size).map_err(cut)?, scan.is_high_first)?);
                }
                b"ds64" => {
                    let body = scan.body(size).map_err(cut)?;
                    long = body.get(8..16).map(|b| u64::from_le_bytes(b.try_into().expect("eight bytes")));
                }
                b"auxi" => radio = RadioChunk::read(&scan.body(size).map_err(cut)?),
                _ => scan.skip(size + size % 2).map_err(no_data)?,
            }
        };
        let Some(WavFormatChunk { coding, channels, rate_hz }) = format else {
            return Err("its samples come before their format (`fmt ` chunk)".into());
        };
        let length = match (length, long) {
            (0xFFFF_FFFF, Some(long)) => Some(long).filter(|long| !matches!(*long, 0 | u64::MAX)),
            (0xFFFF_FFFF, None) => None,
            // Left by a recorder that was killed, unless the rest of the header knows of no samples either.
            (0, _) if whole != Some(riff + 8) => None,
            (length, _) => Some(length),
        };
        Ok(WavHeader { coding, channels, rate_hz, begin: scan.at, length, radio })
    }
}

/// The chunk `fmt `.
struct WavFormatChunk {
    coding: Coding,
    channels: u64,
    rate_hz: u32,
}

impl WavFormatChunk {
    fn read(body: &[u8], is_high_first: bool) -> Result<Self, String> {
        if body.len() < 16 {
            return Err(format!("its `fmt ` chunk has {} bytes: it needs at least 16", body.len()));
        }
        let word = |at: usize| {
            let bytes = [body[at], body[at + 1]];
            if is_high_first { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
        };
        let (low, high) = if is_high_first { (6, 4) } else { (4, 6) };
        let rate_hz = u32::from(word(low)) | u32::from(word(high)) << 16;
        let (channels, block, bits) = (word(2), word(12), word(14));
        if channels == 0 {
            return Err("its header says that it has no channels".into());
        }
        // The extensible form has the type in the first bytes of a longer name.
        let tag = if word(0) == 0xFFFE && body.len() >= 26 { word(24) } else { word(0) };
        let by_bits = bits.div_ceil(8);
        let by_block = if block % channels == 0 { block / channels } else { 0 };
        let size = if by_block >= by_bits && by_block <= 8 { by_block } else { by_bits };
        let coding = match (tag, size, bits) {
            (1, 1, 1..) => Coding::new(Number::U8, 128.0, 128.0),
            (1, 2, 1..) => Coding::I16,
            (1, 3, 1..) => Coding::I24,
            (1, 4, 1..) => Coding::I32,
            (3, 2, _) => Coding::plain(Number::F16),
            (3, 4, _) => Coding::F32,
            (3, 8, _) => Coding::plain(Number::F64),
            (6, 1, _) => Coding::new(Number::ALaw, 0.0, 32768.0),
            (7, 1, _) => Coding::new(Number::MuLaw, 0.0, 32768.0),
            _ => {
                return Err(format!(
                    "its samples are of type {tag} with {bits} bits in {size} bytes, which is not supported: supported \
                     are integers of 8 to 32 bits, floating point, A-law and µ-law; convert it, for example with \
                     `ffmpeg -i IN -c:a pcm_s16le OUT.wav`"
                ));
            }
        };
        let coding = if is_high_first { coding.high_first() } else { coding };
        Ok(WavFormatChunk { coding, channels: channels.into(), rate_hz })
    }
}

/// Reads a header from its begin to its end.
struct ChunkScan<'f, R> {
    file: &'f mut R,
    at: u64,
    is_high_first: bool,
}

impl<R: Read> ChunkScan<'_, R> {
    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes)?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn number(&mut self) -> io::Result<u32> {
        let bytes = self.array()?;
        Ok(if self.is_high_first { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// Name and length of the next chunk.
    fn chunk(&mut self) -> io::Result<([u8; 4], u64)> {
        Ok((self.array()?, u64::from(self.number()?)))
    }

    /// The contents of a chunk, with the byte after them that fills an odd length.
    fn body(&mut self, size: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; size.min(MOST_CHUNK) as usize];
        self.file.read_exact(&mut bytes)?;
        self.at += bytes.len() as u64;
        self.skip(size - bytes.len() as u64 + size % 2)?;
        Ok(bytes)
    }

    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        if self.at + bytes > MOST_HEADER {
            let text = format!("it has more than {} MiB before its samples", MOST_HEADER >> 20);
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let skipped = io::copy(&mut self.file.take(bytes), &mut io::sink())?;
        self.at += skipped;
        if skipped < bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}
