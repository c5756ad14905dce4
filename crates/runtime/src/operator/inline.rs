//! Operators that the engine can run together with their neighbours, without the queues between them.

use super::Operator;
use super::chunk::{Chunk, Info, Sample};
use super::context::Context;
use super::message::Message;
use super::port::{Input, Output};
use crate::base::error::Error;
use std::fmt;

/// Optional shortcuts of an [`Operator`] that handles chunks.
///
/// The engine uses them where such operators are neighbours on one worker: a chunk then goes from one to the
/// next without being queued. [`Operator::step`] has to do the same work, because the engine falls back to it
/// whenever anything is out of the ordinary. [`Operator::inline`] gives access to them.
///
/// [`InPlace`](crate::InPlace) and [`Stream`](crate::Stream) implement this trait for their kernels. A source
/// or sink of your own implements one method of it:
///
/// ```
/// use onbeat_runtime::{Chunk, Context, Error, Info, Inline, Operator, Output, Ports};
/// use onbeat_runtime::{Sample, Shortcut, Step};
///
/// /// Counts samples, without end.
/// #[derive(Default)]
/// struct Ramp { out: Output<Chunk<u64>>, next: u64 }
///
/// impl Operator for Ramp {
///     fn ports(&mut self, p: &mut Ports) {
///         p.output("out", &mut self.out);
///     }
///     fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
///         let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
///         let (samples, info) = chunk.parts().expect("a new chunk is not shared");
///         self.count(samples, info);
///         self.out.push(cx, chunk)?;
///         Ok(Step::Again)
///     }
///     fn inline(&mut self) -> Option<&mut dyn Inline> {
///         Some(self)
///     }
/// }
///
/// impl Inline for Ramp {
///     fn shortcut(&self) -> Shortcut {
///         Shortcut::Fill(self.out.chunks())
///     }
///     fn fill(&mut self, _: &mut Context, samples: &mut [u8], info: &mut Info) -> bool {
///         self.count(u64::samples_mut(samples), info);
///         true
///     }
/// }
///
/// impl Ramp {
///     fn count(&mut self, samples: &mut [u64], info: &mut Info) {
///         info.start = self.next;
///         for sample in samples {
///             *sample = self.next;
///             self.next += 1;
///         }
///     }
/// }
/// ```
pub trait Inline: Operator {
    /// Which of the methods below does the work of a step, and at which ports.
    fn shortcut(&self) -> Shortcut;

    /// For [`Shortcut::Fill`]: makes the next message of a source in this chunk.
    ///
    /// The chunk is as [`Output::chunk`] gives it; `samples` are its bytes (see [`Sample::samples_mut`]). The
    /// call stands for a step that takes a chunk, fills all of it, pushes it under the stamp of this step and
    /// returns [`Step::Again`](crate::Step::Again). Returns `false`, with nothing done, if that step would do
    /// anything else: the last message, an error, a message that is not due yet. The engine then calls
    /// `step`. The method sends nothing and takes no chunk.
    fn fill(&mut self, cx: &mut Context, samples: &mut [u8], info: &mut Info) -> bool {
        let _ = (cx, samples, info);
        false
    }

    /// For [`Shortcut::Edit`]: changes the samples of a chunk, given as bytes.
    ///
    /// # Errors
    /// As those of [`Operator::step`].
    fn edit(&mut self, samples: &mut [u8], info: &Info) -> Result<(), Error> {
        let _ = (samples, info);
        Err(Error::new("it changes no chunks in place"))
    }

    /// For [`Shortcut::Edit`]: like [`edit`](Self::edit), when another core had the operator before.
    ///
    /// # Errors
    /// As those of [`Operator::step`].
    fn edit_migrated(&mut self, samples: &mut [u8], info: &Info) -> Result<(), Error> {
        self.edit(samples, info)
    }

    /// For [`Shortcut::Edit`]: requests the cache lines that [`edit_migrated`](Self::edit_migrated) is going
    /// to need.
    fn prefetch(&self) {}

    /// For [`Shortcut::Rewrite`]: writes as many other samples as there are in `from`, and leaves those as
    /// they are.
    ///
    /// # Errors
    /// As those of [`Operator::step`].
    fn rewrite(&mut self, from: &[u8], to: &mut [u8], info: &mut Info) -> Result<(), Error> {
        let _ = (from, to, info);
        Err(Error::new("it writes no other chunks"))
    }

    /// For [`Shortcut::Drain`]: reads a chunk, while its stamp and keys are in the context.
    ///
    /// `samples` are the bytes of the chunk (see [`Sample::samples`]). The call stands for a step that takes
    /// the chunk, drops it and returns [`Step::Wait`](crate::Step::Wait). Returns `false`, with nothing done,
    /// if that step would do anything else (keep the chunk, or fail). The engine then calls `step`. The chunk
    /// is not queued, so [`Input::len`] does not count it, and it is lost if the method panics.
    fn drain(&mut self, cx: &mut Context, samples: &[u8], info: &Info) -> bool {
        let _ = (cx, samples, info);
        false
    }
}

/// What an operator does with chunks in a chain of neighbours: see [`Inline`].
#[derive(Debug)]
pub enum Shortcut {
    /// A source: [`Inline::fill`].
    Fill(ChunkOutput),
    /// Changes samples in place: [`Inline::edit`].
    Edit(ChunkInput, ChunkOutput),
    /// Has no state and writes other chunks of the same sample type: [`Inline::rewrite`].
    Rewrite(ChunkInput, ChunkOutput),
    /// A sink: [`Inline::drain`].
    Drain(InputEdge),
}

/// A [`Shortcut`] without its ports, for the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Fill,
    Edit,
    Rewrite,
    Drain,
}

impl Role {
    pub fn of(operator: &mut dyn Operator) -> Option<Self> {
        Some(match operator.inline()?.shortcut() {
            Shortcut::Fill(_) => Role::Fill,
            Shortcut::Edit(..) => Role::Edit,
            Shortcut::Rewrite(..) => Role::Rewrite,
            Shortcut::Drain(_) => Role::Drain,
        })
    }

    /// Whether chunks pass through the operator.
    pub fn is_inside(self) -> bool {
        matches!(self, Role::Edit | Role::Rewrite)
    }
}

/// An edge that waits when full and leads to nobody else, with both ends on one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DirectEdge {
    /// As the worker numbers it.
    pub number: u32,
    /// Bytes that a chunk on it may have.
    pub quantum: u32,
}

/// The edge at an input, made by [`Input::edge`].
#[derive(Debug)]
pub struct InputEdge(pub(crate) Option<DirectEdge>);

/// An [`Input`] for chunks of any sample type, made by [`Input::chunks`].
pub struct ChunkInput(pub(crate) Box<dyn TakeChunk>);

/// An [`Output`] for chunks of any sample type, made by [`Output::chunks`].
pub struct ChunkOutput(pub(crate) Box<dyn SendChunk>);

/// An input, its samples as bytes.
pub(crate) trait TakeChunk: Send {
    fn pop(&mut self, cx: &mut Context) -> Option<Chunk<u8>>;
    fn is_empty(&self, cx: &Context) -> bool;
    fn direct(&self) -> Option<DirectEdge>;
}

/// An output, its samples as bytes.
pub(crate) trait SendChunk: Send {
    fn push(&mut self, cx: &mut Context, chunk: Chunk<u8>) -> Result<(), Error>;
    fn chunk_if_free(&self, cx: &Context) -> Option<Chunk<u8>>;
    /// Whether a direct edge begins here that nothing is queued on.
    fn is_clear(&self, cx: &Context) -> bool;
    fn room(&self, cx: &Context) -> usize;
    fn direct(&self) -> Option<DirectEdge>;
}

impl<T: Sample> TakeChunk for Input<Chunk<T>> {
    fn pop(&mut self, cx: &mut Context) -> Option<Chunk<u8>> {
        Input::pop(self, cx).map(Chunk::cast)
    }

    fn is_empty(&self, cx: &Context) -> bool {
        Input::is_empty(self, cx)
    }

    fn direct(&self) -> Option<DirectEdge> {
        self.link.direct()
    }
}

impl<T: Sample> SendChunk for Output<Chunk<T>> {
    fn push(&mut self, cx: &mut Context, chunk: Chunk<u8>) -> Result<(), Error> {
        Output::push(self, cx, chunk.cast::<T>())
    }

    fn chunk_if_free(&self, cx: &Context) -> Option<Chunk<u8>> {
        cx.chunk_if_free::<T>(self.link.quantum()).map(Chunk::cast)
    }

    fn is_clear(&self, cx: &Context) -> bool {
        self.link.is_clear(cx)
    }

    fn room(&self, cx: &Context) -> usize {
        Output::room(self, cx)
    }

    fn direct(&self) -> Option<DirectEdge> {
        self.link.direct()
    }
}

impl<M: Message> Input<M> {
    /// The edge that leads here, for [`Shortcut::Drain`].
    pub fn edge(&self) -> InputEdge {
        InputEdge(self.link.direct())
    }
}

impl<T: Sample> Input<Chunk<T>> {
    /// This input for [`Shortcut`].
    pub fn chunks(&self) -> ChunkInput {
        ChunkInput(Box::new(self.share()))
    }
}

impl<T: Sample> Output<Chunk<T>> {
    /// This output for [`Shortcut`].
    pub fn chunks(&self) -> ChunkOutput {
        ChunkOutput(Box::new(self.share()))
    }
}

impl fmt::Debug for ChunkInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChunkInput({:?})", self.0.direct())
    }
}

impl fmt::Debug for ChunkOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChunkOutput({:?})", self.0.direct())
    }
}
