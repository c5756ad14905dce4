//! Ports for samples.

use super::lent::LentChunk;
use super::{Inlet, OutHead, Outlet, PortError, dims};
use crate::array::{ChunkOwner, NumpySample, array, is_kept};
use onbeat::{Chunk, Context, Info, Input, Output, Ports, Stamp};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// Samples in hand.
enum Held<T: NumpySample> {
    Chunk(Chunk<T>),
    /// The rest of one chunk with the next one, for a step that needs more samples than the rest has.
    Joined(Arc<Vec<T>>, Info),
}

impl<T: NumpySample> Held<T> {
    fn samples(&self) -> &[T] {
        match self {
            Held::Chunk(chunk) => chunk,
            Held::Joined(samples, _) => samples,
        }
    }

    fn info(&self) -> &Info {
        match self {
            Held::Chunk(chunk) => chunk.info(),
            Held::Joined(_, info) => info,
        }
    }

    /// Makes another reference, for an array.
    fn share(&self) -> Box<dyn std::any::Any + Send> {
        match self {
            Held::Chunk(chunk) => Box::new(chunk.clone()),
            Held::Joined(samples, _) => Box::new(Arc::clone(samples)),
        }
    }
}

/// An input for samples. The step gets a read-only array.
pub struct ChunkInlet<T: NumpySample> {
    input: Input<Chunk<T>>,
    held: Option<Held<T>>,
    /// Number of samples in hand that are used up.
    at: usize,
    /// Whether the samples in hand are too few for the step.
    is_starving: bool,
    stamp: Stamp,
}

impl<T: NumpySample> Default for ChunkInlet<T> {
    fn default() -> Self {
        ChunkInlet { input: Input::default(), held: None, at: 0, is_starving: false, stamp: Stamp::default() }
    }
}

impl<T: NumpySample> ChunkInlet<T> {
    fn left(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.samples().len() - self.at)
    }

    /// Appends a chunk to the samples in hand.
    fn join(&mut self, next: Chunk<T>) {
        let Some(held) = self.held.take() else {
            self.held = Some(Held::Chunk(next));
            return;
        };
        let mut samples = held.samples()[self.at..].to_vec();
        let before = samples.len();
        samples.extend_from_slice(&next);
        let mut info = held.info().clone();
        info.shape = [0; 3];
        info.start += self.at as u64;
        info.tags.retain_mut(|tag| {
            let is_left = tag.offset >= self.at;
            tag.offset = tag.offset.saturating_sub(self.at);
            is_left
        });
        info.tags.extend(
            next.tags().iter().cloned().map(|tag| onbeat::Tag { offset: tag.offset + before, ..tag }),
        );
        self.held = Some(Held::Joined(Arc::new(samples), info));
    }
}

impl<T: NumpySample> Inlet for ChunkInlet<T> {
    fn declare(&mut self, name: &str, p: &mut Ports<'_>) {
        p.input(name, &mut self.input).holds(2);
    }

    fn fetch(&mut self, cx: &mut Context) -> usize {
        if (self.left() == 0 || self.is_starving)
            && let Some((next, stamp)) = self.input.pop_stamped(cx)
        {
            self.stamp = stamp;
            if self.left() == 0 {
                self.held = Some(Held::Chunk(next));
            } else {
                self.join(next);
            }
            (self.at, self.is_starving) = (0, false);
        }
        if self.is_starving { 0 } else { self.left() }
    }

    fn is_ended(&self, cx: &Context) -> bool {
        self.input.is_ended(cx)
    }

    fn info(&self) -> Option<(&Info, usize)> {
        self.held.as_ref().map(|held| (held.info(), self.at))
    }

    fn stamp(&self) -> Stamp {
        self.stamp
    }

    fn lend<'py>(&mut self, py: Python<'py>, count: usize) -> PyResult<Bound<'py, PyAny>> {
        let Some(held) = &self.held else { return Ok(py.None().into_bound(py)) };
        let owner = ChunkOwner::new(py, Some(held.share()))?;
        let samples = &held.samples()[self.at..self.at + count];
        let shape = if count == held.samples().len() { held.info().shape } else { [0; 3] };
        // SAFETY: the owner has a reference to the samples, which are therefore shared: nobody writes to
        // them.
        let made = unsafe { array(owner, samples.as_ptr(), &dims(shape, count), false)? };
        Ok(made.into_any())
    }

    fn take_back(&mut self, argument: &Bound<'_, PyAny>, used: usize, name: &str) -> PyResult<()> {
        if is_kept(argument) && !crate::array::may_be_kept(argument)? {
            return Err(PyValueError::new_err(format!(
                "the array of input `{name}` is used after the step: copy it (`{name}.copy()`), or say \
                 `onbeat.keep({name})` to keep the chunk itself"
            )));
        }
        self.at += used;
        if self.left() == 0 {
            (self.held, self.at) = (None, 0);
        }
        Ok(())
    }

    fn starve(&mut self) {
        self.is_starving = true;
    }

    fn hold(&self, cx: &mut Context) -> bool {
        let holds = self.left() > 0 && !self.is_starving;
        if holds {
            self.input.keep(cx);
        }
        holds
    }
}

/// An output for samples. The step gets a writable array.
pub struct ChunkOutlet<T: NumpySample> {
    output: Output<Chunk<T>>,
    lent: LentChunk<T>,
    sent: u64,
}

impl<T: NumpySample> Default for ChunkOutlet<T> {
    fn default() -> Self {
        ChunkOutlet { output: Output::default(), lent: LentChunk::default(), sent: 0 }
    }
}

impl<T: NumpySample> Outlet for ChunkOutlet<T> {
    fn declare(&mut self, name: &str, p: &mut Ports<'_>) {
        p.output(name, &mut self.output).fresh();
    }

    fn open(&mut self, cx: &mut Context) -> Option<usize> {
        self.lent.set(self.output.chunk(cx));
        self.lent.capacity()
    }

    fn has_samples(&self) -> bool {
        true
    }

    fn lend<'py>(&mut self, py: Python<'py>, count: usize, shape: [u32; 3]) -> PyResult<Bound<'py, PyAny>> {
        self.lent.lend(py, &dims(shape, count))
    }

    fn revoke(&mut self, argument: &Bound<'_, PyAny>) {
        self.lent.revoke(argument);
    }

    fn send(
        &mut self,
        cx: &mut Context,
        argument: &Bound<'_, PyAny>,
        made: usize,
        head: &OutHead,
        name: &str,
    ) -> Result<(), PortError> {
        let chunk = self.lent.take(argument, "output", name)?;
        let Some(mut chunk) = chunk.filter(|_| made > 0) else { return Ok(()) };
        chunk.truncate(made);
        let info = chunk.info_mut();
        (info.start, info.rate_hz, info.shape) = (self.sent, head.rate_hz, head.shape);
        info.tags.extend(head.tags.iter().filter(|tag| tag.offset < made).cloned());
        self.sent += made as u64;
        self.output.push(cx, chunk)?;
        Ok(())
    }
}
