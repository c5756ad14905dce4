//! Folder for the inputs and results of a bench, and comparison of files.

use crate::BenchError;
use num_complex::Complex;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use std::{env, process};

/// Temporary folder, removed on drop.
#[derive(Debug)]
pub(super) struct JobFolder(PathBuf);

impl JobFolder {
    pub fn make() -> Result<JobFolder, BenchError> {
        let of = |number: u32| env::temp_dir().join(format!("onbeat-jobs-{}-{number}", process::id()));
        // It must be new: others can write to the parent folder and prepare one of this name.
        let mut made = Err(io::ErrorKind::AlreadyExists.into());
        for number in 0..100 {
            made = fs::DirBuilder::new().mode(0o700).create(of(number)).map(|()| JobFolder(of(number)));
            if !made.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
                break;
            }
        }
        made.map_err(|error| {
            let temp = env::temp_dir();
            BenchError::Settings(format!(
                "{}: cannot create a folder for inputs and results: {error}; set TMPDIR to a writable folder",
                temp.display()
            ))
        })
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for JobFolder {
    fn drop(&mut self) {
        // Anything that remains is in the folder for temporary files.
        let _left = fs::remove_dir_all(&self.0);
    }
}

/// Adds the file to an error's text.
pub(super) fn at(path: &Path) -> impl Fn(io::Error) -> String {
    move |error| format!("{}: {error}", path.display())
}

/// Whether two files have the same bytes.
pub(super) fn is_same(one: &Path, other: &Path) -> Result<bool, String> {
    let open = |path: &Path| -> Result<(u64, BufReader<File>), String> {
        let file = File::open(path).map_err(at(path))?;
        Ok((file.metadata().map_err(at(path))?.len(), BufReader::with_capacity(1 << 16, file)))
    };
    let ((length, mut one_file), (other_length, mut other_file)) = (open(one)?, open(other)?);
    if length != other_length {
        return Ok(false);
    }
    let (mut a, mut b) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut left = length;
    while left > 0 {
        let count = left.min(a.len() as u64) as usize;
        one_file.read_exact(&mut a[..count]).map_err(at(one))?;
        other_file.read_exact(&mut b[..count]).map_err(at(other))?;
        if a[..count] != b[..count] {
            return Ok(false);
        }
        left -= count as u64;
    }
    Ok(true)
}

/// Reads a file of 32-bit floats, low byte first.
pub(super) fn read_floats(path: &Path) -> Result<Vec<f32>, String> {
    let bytes = fs::read(path).map_err(at(path))?;
    let floats = bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    Ok(floats.collect())
}

/// Reads complex samples of 32-bit floats from the middle of a file: `count` of them, from number `begin` on.
pub(super) fn read_complex(path: &Path, begin: usize, count: usize) -> Result<Vec<Complex<f32>>, String> {
    let mut samples = vec![Complex::default(); count];
    let bytes = bytemuck::cast_slice_mut::<Complex<f32>, u8>(&mut samples);
    let offset = begin * size_of::<Complex<f32>>();
    let read = File::open(path).and_then(|file| file.read_exact_at(bytes, offset as u64));
    read.map_err(at(path))?;
    // Little-endian, as all machines that onbeat supports.
    Ok(samples)
}
