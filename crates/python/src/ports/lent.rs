//! A chunk that a step may write to.

use super::PortError;
use crate::array::{ChunkOwner, NumpySample, array, is_kept};
use onbeat::{Chunk, Info};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A chunk of the operator alone, from the time at which it has it until it is sent. Meanwhile a step has an
/// array over its samples.
pub struct LentChunk<T: NumpySample> {
    chunk: Option<Chunk<T>>,
    owner: Option<Py<ChunkOwner>>,
}

impl<T: NumpySample> Default for LentChunk<T> {
    fn default() -> Self {
        LentChunk { chunk: None, owner: None }
    }
}

impl<T: NumpySample> LentChunk<T> {
    /// Takes the chunk for the next step.
    pub fn set(&mut self, chunk: Option<Chunk<T>>) {
        self.chunk = chunk;
    }

    /// Room of the chunk, in samples.
    pub fn capacity(&self) -> Option<usize> {
        self.chunk.as_ref().map(Chunk::capacity)
    }

    /// Number of samples in the chunk, and its head.
    pub fn info(&self) -> Option<(usize, &Info)> {
        self.chunk.as_ref().map(|chunk| (chunk.len(), chunk.info()))
    }

    /// Makes an array over the first samples, as many as `dims` says.
    pub fn lend<'py>(&mut self, py: Python<'py>, dims: &[usize]) -> PyResult<Bound<'py, PyAny>> {
        let owner = ChunkOwner::new(py, None)?;
        let chunk = self.chunk.as_mut().and_then(Chunk::edit_unique);
        let samples = chunk.ok_or_else(|| PyValueError::new_err("there is no chunk to write to"))?;
        let samples = samples[..dims.iter().product()].as_mut_ptr();
        self.owner = Some(owner.clone().unbind());
        // SAFETY: the chunk is this operator's alone and stays in `self.chunk`, which nothing touches until
        // the array is back. If somebody keeps the array, the owner gets the chunk (`revoke`).
        let made = unsafe { array(owner, samples.cast_const(), dims, true)? };
        Ok(made.into_any())
    }

    /// Takes the array back after a step that failed.
    pub fn revoke(&mut self, argument: &Bound<'_, PyAny>) {
        let chunk = self.chunk.take();
        if let (Some(owner), Some(chunk), true) = (self.owner.take(), chunk, is_kept(argument)) {
            owner.get().keep(Box::new(chunk));
        }
    }

    /// Takes the array of this port back, an output or the port of an operator that works in place, and
    /// returns the chunk.
    ///
    /// # Errors
    /// If the step has kept the array.
    pub fn take(
        &mut self,
        argument: &Bound<'_, PyAny>,
        what: &str,
        port: &str,
    ) -> Result<Option<Chunk<T>>, PortError> {
        if is_kept(argument) {
            self.revoke(argument);
            return Err(PyValueError::new_err(format!(
                "the array of {what} `{port}` is used after the step: its samples now belong to the next operator; \
                 keep a copy instead (`{port}.copy()`)"
            ))
            .into());
        }
        self.owner = None;
        Ok(self.chunk.take())
    }
}
