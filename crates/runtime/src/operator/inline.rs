//! Shortcuts of operators in a chain: chunks pass from one operator to the next without a queue.

use super::Operator;
use super::chunk::{Chunk, Info, Sample};
use super::context::Context;
use super::message::Message;
use super::port::{Input, Output};
use crate::base::error::Error;
use std::fmt;

/// Optional shortcuts of an [`Operator`] that handles chunks.
///
/// If such operators are neighbours on one worker, the engine passes a chunk from one to the next without
/// queueing it. [`Operator::step`] must do the same work: the engine falls back to it in all unusual cases.
/// [`Operator::inline`] gives access to the shortcuts.
///
/// [`InPlace`](crate::InPlace) and [`Stream`](crate::Stream) implement this trait for their kernels. A
/// user-defined source or sink implements one method of it:
///
/// ```
/// use onbeat_runtime::{Chunk, Context, Error, Info, Inline, Operator, Output, Ports};
/// use onbeat_runtime::{Sample, Shortcut, Step};
///
/// /// Counts samples forever.
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
    /// Returns the method below that does the work of a step, and its ports.
    fn shortcut(&self) -> Shortcut;

    /// For [`Shortcut::Fill`]: writes the next message of a source into this chunk.
    ///
    /// The chunk is as [`Output::chunk`] returns it; `samples` are its bytes (see [`Sample::samples_mut`]).
    /// The call replaces a step that takes a chunk, fills all of it, pushes it under the stamp of this step
    /// and returns [`Step::Again`](crate::Step::Again). If that step would do anything else (the last
    /// message, an error, a message that is not due yet), the method must change nothing and return `false`.
    /// The engine then calls `step`. The method must not push messages or take chunks.
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

    /// For [`Shortcut::Edit`]: does the same as [`edit`](Self::edit), if the operator ran on another core
    /// before.
    ///
    /// # Errors
    /// As those of [`Operator::step`].
    fn edit_migrated(&mut self, samples: &mut [u8], info: &Info) -> Result<(), Error> {
        self.edit(samples, info)
    }

    /// For [`Shortcut::Edit`]: prefetches the cache lines that [`edit_migrated`](Self::edit_migrated) needs.
    fn prefetch(&self) {}

    /// For [`Shortcut::Rewrite`]: reads the samples in `from` and writes the same number of samples to `to`.
    ///
    /// # Errors
    /// As those of [`Operator::step`].
    fn rewrite(&mut self, from: &[u8], to: &mut [u8], info: &mut Info) -> Result<(), Error> {
        let _ = (from, to, info);
        Err(Error::new("it writes no other chunks"))
    }

    /// For [`Shortcut::Drain`]: reads a chunk. Its stamp and keys are in the context.
    ///
    /// `samples` are the bytes of the chunk (see [`Sample::samples`]). The call replaces a step that takes
    /// the chunk, drops it and returns [`Step::Wait`](crate::Step::Wait). If that step would do anything else
    /// (keep the chunk, or fail), the method must change nothing and return `false`. The engine then calls
    /// `step`. The chunk is not queued, so [`Input::len`] does not count it. If the method panics, the chunk
    /// is lost.
    fn drain(&mut self, cx: &mut Context, samples: &[u8], info: &Info) -> bool {
        let _ = (cx, samples, info);
        false
    }
}

/// Work of an operator on chunks in a chain; see [`Inline`].
#[derive(Debug)]
pub enum Shortcut {
    /// The operator is a source: [`Inline::fill`].
    Fill(ChunkOutput),
    /// The operator changes samples in place: [`Inline::edit`].
    Edit(ChunkInput, ChunkOutput),
    /// The operator has no state and writes to other chunks with the same sample type: [`Inline::rewrite`].
    Rewrite(ChunkInput, ChunkOutput),
    /// The operator is a sink: [`Inline::drain`].
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

/// An edge that waits when full, is the only edge of its output, and has both ends on one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DirectEdge {
    /// Number of the edge on its worker.
    pub number: u32,
    /// Largest size of a chunk on the edge, in bytes.
    pub quantum: u32,
}

/// The edge into an input, made by [`Input::edge`].
#[derive(Debug)]
pub struct InputEdge(pub(crate) Option<DirectEdge>);

/// An [`Input`] for chunks of any sample type, made by [`Input::chunks`].
pub struct ChunkInput(pub(crate) Box<dyn TakeChunk>);

/// An [`Output`] for chunks of any sample type, made by [`Output::chunks`].
pub struct ChunkOutput(pub(crate) Box<dyn SendChunk>);

/// An input whose samples are handled as bytes.
pub(crate) trait TakeChunk: Send {
    fn pop(&mut self, cx: &mut Context) -> Option<Chunk<u8>>;
    fn is_empty(&self, cx: &Context) -> bool;
    fn direct(&self) -> Option<DirectEdge>;
}

/// An output whose samples are handled as bytes.
pub(crate) trait SendChunk: Send {
    fn push(&mut self, cx: &mut Context, chunk: Chunk<u8>) -> Result<(), Error>;
    fn chunk_if_free(&self, cx: &Context) -> Option<Chunk<u8>>;
    /// Whether this is a direct edge without queued messages.
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
    /// Returns the edge into this input, for [`Shortcut::Drain`].
    pub fn edge(&self) -> InputEdge {
        InputEdge(self.link.direct())
    }
}

impl<T: Sample> Input<Chunk<T>> {
    /// Returns this input for a [`Shortcut`].
    pub fn chunks(&self) -> ChunkInput {
        ChunkInput(Box::new(self.share()))
    }
}

impl<T: Sample> Output<Chunk<T>> {
    /// Returns this output for a [`Shortcut`].
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
