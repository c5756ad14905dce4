//! The samples of a recording.

use crate::dsp::{cf32_le_to_complex, ci8_to_complex, ci16_le_to_complex, cu8_to_complex};
use num_complex::Complex;
use onbeat_runtime::Error;
use sha2::{Digest, Sha512};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

/// Bytes per read of the file.
const BUFFER: usize = 64 << 10;
/// Bytes that are unpacked in one go; a whole number of samples of every type.
const SCRATCH: usize = 4 << 10;

/// How a sample is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Datatype {
    Ci8,
    Cu8,
    Ci16Le,
    Cf32Le,
}

impl Datatype {
    /// By the name that SigMF has for it; the error is for a person.
    pub fn named(name: &str) -> Result<Self, String> {
        Ok(match name {
            "ci8" => Datatype::Ci8,
            "cu8" => Datatype::Cu8,
            "ci16_le" => Datatype::Ci16Le,
            "cf32_le" => Datatype::Cf32Le,
            _ => {
                return Err(format!(
                    "`core:datatype` is `{name}`, which is not supported: supported are ci8, cu8, ci16_le and cf32_le"
                ));
            }
        })
    }

    fn name(self) -> &'static str {
        match self {
            Datatype::Ci8 => "ci8",
            Datatype::Cu8 => "cu8",
            Datatype::Ci16Le => "ci16_le",
            Datatype::Cf32Le => "cf32_le",
        }
    }

    /// Of one complex sample.
    fn bytes(self) -> usize {
        match self {
            Datatype::Ci8 | Datatype::Cu8 => 2,
            Datatype::Ci16Le => 4,
            Datatype::Cf32Le => 8,
        }
    }

    /// `bytes` is as long as `samples` needs.
    fn unpack(self, bytes: &[u8], samples: &mut [Complex<f32>]) {
        let count = match self {
            Datatype::Ci8 => ci8_to_complex(bytemuck::cast_slice(bytes), samples),
            Datatype::Cu8 => cu8_to_complex(bytemuck::cast_slice(bytes), samples),
            Datatype::Ci16Le => ci16_le_to_complex(bytemuck::cast_slice(bytes), samples),
            Datatype::Cf32Le => cf32_le_to_complex(bytemuck::cast_slice(bytes), samples),
        };
        debug_assert_eq!(count, samples.len());
    }
}

/// An open data file.
pub(super) struct Data {
    /// Samples in it when it was opened.
    pub samples: u64,
    file: BufReader<File>,
    path: PathBuf,
    datatype: Datatype,
    scratch: Box<[u8]>,
}

impl Data {
    pub fn open(path: PathBuf, datatype: Datatype) -> Result<Self, Error> {
        let file = File::open(&path).map_err(|error| cannot("open", &path, error))?;
        let found = file.metadata().map_err(|error| cannot("open", &path, error))?;
        let (name, bytes, size) = (path.display(), found.len(), datatype.bytes() as u64);
        if !found.is_file() {
            return Err(Error::new(format!("cannot open {name}: it is no file")));
        }
        if bytes == 0 {
            return Err(Error::new(format!("{name} is empty: there are no samples to play")));
        }
        if !bytes.is_multiple_of(size) {
            return Err(Error::new(format!(
                "{name} has {bytes} bytes, which is no whole number of samples: one of {} has {size} bytes; the file is \
                 truncated, or its datatype is another one",
                datatype.name()
            )));
        }
        let (samples, file) = (bytes / size, BufReader::with_capacity(BUFFER, file));
        Ok(Data { samples, file, path, datatype, scratch: vec![0; SCRATCH].into() })
    }

    /// Compares the whole file with its checksum, if there is one.
    pub fn verify(&mut self, sha512: Option<&str>) -> Result<(), Error> {
        let Some(expected) = sha512 else { return Ok(()) };
        let mut hash = Sha512::new();
        io::copy(&mut self.file, &mut HashWriter(&mut hash))
            .map_err(|error| cannot("read", &self.path, error))?;
        let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        if !found.eq_ignore_ascii_case(expected) {
            return Err(Error::new(format!(
                "{}: the data do not match their checksum `core:sha512`: they are truncated or changed; get them anew, \
                 or play them as they are with `verify = false`",
                self.path.display()
            )));
        }
        self.rewind()
    }

    /// Fills `samples` with the next ones of the file, which must have as many.
    pub fn read(&mut self, samples: &mut [Complex<f32>]) -> Result<(), Error> {
        let size = self.datatype.bytes();
        for samples in samples.chunks_mut(SCRATCH / size) {
            let bytes = &mut self.scratch[..samples.len() * size];
            self.file.read_exact(bytes).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => Error::new(format!(
                    "{} became shorter while it was played: it had {} samples at the start",
                    self.path.display(),
                    self.samples
                )),
                _ => cannot("read", &self.path, error),
            })?;
            self.datatype.unpack(bytes, samples);
        }
        Ok(())
    }

    /// Goes back to the first sample.
    pub fn rewind(&mut self) -> Result<(), Error> {
        self.file.rewind().map_err(|error| cannot("read", &self.path, error))
    }
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

fn cannot(what: &str, path: &Path, error: io::Error) -> Error {
    Error::with_source(format!("cannot {what} {}", path.display()), error)
}
