//! Rows of a stream operator's output: whole ones only.

use super::Stream;
use crate::Error;
use crate::operator::kernel::{Kernel, Ratio};

/// Returns the part of a new chunk for whole rows.
#[inline]
pub(super) fn whole_rows<T>(output: &mut [T], row: usize) -> Result<&mut [T], Error> {
    let room = output.len();
    match row {
        1 => Ok(output),
        row if row <= room => Ok(&mut output[..room - room % row]),
        row => Err(Error::new(format!(
            "a row of its output has {row} samples, and the quantum of its edge has room for {room}: give the edge from `out` \
             `quantum = {}` or more",
            row * size_of::<T>()
        ))),
    }
}

impl<K: Kernel> Stream<K> {
    /// Number of the output sample at the instant of an input sample. If there is none, or no row begins with
    /// it, of the next one.
    pub(super) fn output_at(&self, sample: u64) -> u64 {
        let Ratio { up, down } = self.kernel.ratio();
        let at = (u128::from(sample) * u128::from(up)).div_ceil(u128::from(down)) as u64;
        at.next_multiple_of(self.kernel.row() as u64)
    }
}
