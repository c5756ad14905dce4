//! The port of an operator that changes samples in the chunk that they are in.

use super::lent::LentChunk;
use super::{OutHead, PortError, dims};
use crate::array::NumpySample;
use onbeat::{Chunk, Context, Error, Info, Input, Output, Ports};
use pyo3::prelude::*;

/// An input and an output of the same name: the step gets a writable array of each chunk, which goes on.
pub trait InPlacePort: Send {
    fn declare(&mut self, name: &str, p: &mut Ports<'_>);

    /// Takes the next chunk. If another operator has it too, this one gets a copy. Returns whether there is
    /// one.
    ///
    /// # Errors
    /// If there is no room for a copy.
    fn fetch(&mut self, cx: &mut Context) -> Result<bool, Error>;

    /// Number of samples of the chunk, and its head.
    fn info(&self) -> Option<(usize, &Info)>;

    /// Makes the argument for a step.
    fn lend<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;

    /// Takes the argument back after a step that failed.
    fn revoke(&mut self, argument: &Bound<'_, PyAny>);

    /// Takes the argument back, and sends the first `made` samples of the chunk.
    ///
    /// # Errors
    /// If the step has kept the array, or if an edge refuses the message.
    fn send(
        &mut self,
        cx: &mut Context,
        argument: &Bound<'_, PyAny>,
        made: usize,
        head: OutHead,
        name: &str,
    ) -> Result<(), PortError>;
}

/// The port for one type of samples.
pub struct ChunkInPlace<T: NumpySample> {
    input: Input<Chunk<T>>,
    output: Output<Chunk<T>>,
    lent: LentChunk<T>,
}

impl<T: NumpySample> Default for ChunkInPlace<T> {
    fn default() -> Self {
        ChunkInPlace { input: Input::default(), output: Output::default(), lent: LentChunk::default() }
    }
}

impl<T: NumpySample> InPlacePort for ChunkInPlace<T> {
    fn declare(&mut self, name: &str, p: &mut Ports<'_>) {
        p.input(name, &mut self.input);
        p.output(name, &mut self.output);
    }

    fn fetch(&mut self, cx: &mut Context) -> Result<bool, Error> {
        let Some(mut chunk) = self.input.pop(cx) else { return Ok(false) };
        chunk.edit(cx)?;
        self.lent.set(Some(chunk));
        Ok(true)
    }

    fn info(&self) -> Option<(usize, &Info)> {
        self.lent.info()
    }

    fn lend<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let dims = self.lent.info().map_or(vec![0], |(samples, info)| dims(info.shape, samples));
        self.lent.lend(py, &dims)
    }

    fn revoke(&mut self, argument: &Bound<'_, PyAny>) {
        self.lent.revoke(argument);
    }

    fn send(
        &mut self,
        cx: &mut Context,
        argument: &Bound<'_, PyAny>,
        made: usize,
        head: OutHead,
        name: &str,
    ) -> Result<(), PortError> {
        let chunk = self.lent.take(argument, "port", name)?;
        let Some(mut chunk) = chunk.filter(|_| made > 0) else { return Ok(()) };
        if made < chunk.len() {
            chunk.truncate(made);
            chunk.info_mut().shape = [0; 3];
        }
        let info = chunk.info_mut();
        info.rate_hz = head.rate_hz;
        if !head.tags.is_empty() {
            info.tags.extend(head.tags.into_iter().filter(|tag| tag.offset < made));
            info.tags.sort_by_key(|tag| tag.offset);
        }
        self.output.push(cx, chunk)?;
        Ok(())
    }
}
