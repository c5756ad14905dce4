//! Typed ports: the fields through which an operator receives and sends.

use crate::base::error::Error;
use crate::operator::chunk::{Chunk, Sample};
use crate::operator::context::Context;
use crate::operator::link::{InLink, OutLink};
use crate::operator::message::{Message, Stamp};

/// An input port for messages of type `M`. A field of an operator, made by `Default`.
///
/// ```
/// use onbeat_runtime::{Context, Input};
/// fn take_all(input: &mut Input<u64>, cx: &mut Context) -> u64 {
///     let mut sum = 0;
///     while let Some(x) = input.pop(cx) {
///         sum += x;
///     }
///     sum
/// }
/// ```
pub struct Input<M: Message> {
    pub(crate) index: usize,
    pub(crate) link: InLink<M>,
}

impl<M: Message> Default for Input<M> {
    fn default() -> Self {
        Input { index: usize::MAX, link: InLink::Open }
    }
}

impl<M: Message> Input<M> {
    /// Makes another port on the same ends of edges.
    pub(crate) fn share(&self) -> Self {
        Input { index: self.index, link: self.link.clone() }
    }

    /// Takes the next message, if there is one. Its stamp and keys become those of the messages that this
    /// step pushes.
    #[inline(always)]
    pub fn pop(&mut self, cx: &mut Context) -> Option<M> {
        if let InLink::Direct(edge) = &self.link { edge.pop_direct(cx) } else { self.pop_many(cx) }
    }

    #[inline(never)]
    fn pop_many(&mut self, cx: &mut Context) -> Option<M> {
        match &mut self.link {
            InLink::Direct(edge) => edge.pop_direct(cx),
            InLink::Turn(_) if cx.replicas.visible == 0 => None,
            InLink::Turn(edge) => {
                cx.replicas.visible -= 1;
                edge.pop_direct(cx)
            }
            InLink::Many(many) => many.pop_checked(self.index, cx),
            InLink::Open => None,
        }
    }

    /// Takes the next message like [`pop`](Input::pop), with its own stamp. In a step that takes from several
    /// inputs, the context has the oldest stamp.
    ///
    /// For operators that align several streams: a step that [pops](Input::pop) chunks of several inputs and
    /// sends something fails if the chunks are not of the same samples.
    pub fn pop_stamped(&mut self, cx: &mut Context) -> Option<(M, Stamp)> {
        if let InLink::Many(many) = &mut self.link {
            return many.pop(self.index, cx).map(|message| (message, cx.joining.own));
        }
        let message = self.pop(cx)?;
        Some((message, cx.stamp))
    }

    /// Tells the engine that the operator still holds data from this input: its next step does not wait for
    /// this input. An operator that joins two streams calls this for the input of which it holds a part,
    /// before it returns [`Step::Wait`](crate::Step::Wait).
    pub fn keep(&self, cx: &mut Context) {
        self.link.keep(cx);
    }

    /// Whether no more messages will come: all producers have ended and every message was taken. True if the
    /// port is not connected. An operator is stepped at least once after its inputs have ended.
    pub fn is_ended(&self, cx: &Context) -> bool {
        self.link.is_ended(cx)
    }

    /// Whether all producers have ended. Messages may still be queued. True if the port is not connected.
    pub fn is_closed(&self, cx: &Context) -> bool {
        self.link.is_closed(cx)
    }

    /// Returns the number of queued messages.
    pub fn len(&self, cx: &Context) -> usize {
        self.link.len(cx)
    }

    /// Whether no message is queued.
    pub fn is_empty(&self, cx: &Context) -> bool {
        self.len(cx) == 0
    }

    /// Whether an edge leads here.
    pub fn is_connected(&self) -> bool {
        !matches!(self.link, InLink::Open)
    }
}

/// An output port for messages of type `M`. Each message goes to every connected edge. A field of an
/// operator, made by `Default`.
///
/// An operator is stepped only when each of its outputs has room for one message. Before a step pushes more
/// than one message, it should check [`room`](Output::room).
///
/// ```
/// use onbeat_runtime::{Context, Error, Output};
/// fn burst(out: &mut Output<u64>, cx: &mut Context) -> Result<(), Error> {
///     for n in 0..out.room(cx).min(8) as u64 {
///         out.push(cx, n)?;
///     }
///     Ok(())
/// }
/// ```
pub struct Output<M: Message> {
    pub(crate) index: usize,
    pub(crate) link: OutLink<M>,
}

impl<M: Message> Default for Output<M> {
    fn default() -> Self {
        Output { index: usize::MAX, link: OutLink::Open }
    }
}

impl<M: Message> Output<M> {
    /// Makes another port on the same ends of edges.
    pub(crate) fn share(&self) -> Self {
        Output { index: self.index, link: self.link.clone() }
    }

    /// Sends a message, with the stamp and keys of the message in hand.
    ///
    /// # Errors
    /// If a full edge has the rule to wait (see [`room`](Output::room)) or to fail, or if a chunk is larger
    /// than the quantum of an edge.
    #[inline(always)]
    pub fn push(&mut self, cx: &mut Context, message: M) -> Result<(), Error> {
        if let OutLink::Direct(edge, to) = &self.link {
            edge.push_direct(cx, *to, message)
        } else {
            self.push_many(cx, message)
        }
    }

    #[inline(never)]
    fn push_many(&mut self, cx: &mut Context, message: M) -> Result<(), Error> {
        if self.index == usize::MAX {
            return Err(Error::new(
                "it pushes to an output that its `ports` does not name: add a line `p.output(\"...\", &mut self....)`",
            ));
        }
        self.link.push_many(cx, message)
    }

    /// Returns the number of messages for which every edge has room; `usize::MAX` if no edge can refuse one.
    pub fn room(&self, cx: &Context) -> usize {
        self.link.room(cx)
    }

    /// Reads the state of edges to other workers. [`room`](Output::room) uses the state as of the last call.
    pub(crate) fn poll_room(&self, cx: &mut Context) {
        self.link.poll_room(cx);
    }

    /// Returns the worker's numbers of the edges that begin here.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.link.numbers()
    }

    /// Whether an edge begins here.
    pub fn is_connected(&self) -> bool {
        !matches!(self.link, OutLink::Open)
    }
}

impl<T: Sample> Output<Chunk<T>> {
    /// Takes a chunk to fill, of the largest size that the edges of this port allow. Its samples have
    /// arbitrary values. `None` if the chunk store is empty: return [`Step::Wait`](crate::Step::Wait), and
    /// the step is repeated when chunks are back.
    #[inline]
    pub fn chunk(&self, cx: &mut Context) -> Option<Chunk<T>> {
        cx.new_chunk(self.link.quantum())
    }
}
