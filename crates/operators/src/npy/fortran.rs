//! Arrays whose first axis is the fastest in the file: time is, and so all of one frame is scattered.

use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;

/// Returns a file in memory with the same samples, of `size` bytes each, the last axis fastest. `begin` is
/// the first byte of the samples.
pub(super) fn in_order(file: &File, begin: u64, size: usize, shape: &[u64]) -> io::Result<File> {
    let too_large = || io::Error::new(io::ErrorKind::OutOfMemory, "it does not fit into memory");
    let shape: Vec<usize> =
        shape.iter().map(|axis| usize::try_from(*axis)).collect::<Result<_, _>>().map_err(|_| too_large())?;
    let samples = shape.iter().try_fold(size, |all, axis| all.checked_mul(*axis)).ok_or_else(too_large)?;
    let mut all = Vec::new();
    all.try_reserve_exact(samples).map_err(|_| too_large())?;
    all.resize(samples, 0);
    file.read_exact_at(&mut all, begin)?;
    // Distance in the file, in samples, between two neighbours on each axis.
    let strides: Vec<usize> =
        shape.iter().scan(1, |stride, axis| Some(std::mem::replace(stride, *stride * axis))).collect();
    let ordered = File::from(memfd_create("onbeat-npy", MemfdFlags::CLOEXEC)?);
    let mut out = BufWriter::with_capacity(1 << 20, &ordered);
    let mut at = vec![0; shape.len()];
    loop {
        let from = at.iter().zip(&strides).map(|(index, stride)| index * stride).sum::<usize>() * size;
        out.write_all(&all[from..from + size])?;
        // The next index, the last axis first.
        let Some(axis) = (0..shape.len()).rev().find(|&axis| at[axis] + 1 < shape[axis]) else { break };
        at[axis] += 1;
        at[axis + 1..].fill(0);
    }
    out.flush()?;
    drop(out);
    Ok(ordered)
}
