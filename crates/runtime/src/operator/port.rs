//! Typed ports: the fields through which an operator receives and sends.

use crate::base::error::Error;
use crate::operator::chunk::{Chunk, Sample};
use crate::operator::context::Context;
use crate::operator::link::{InLink, OutLink};
use crate::operator::message::{Message, Stamp};

/// Where messages of type `M` come in. A field of an operator, made by `Default`.
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
    /// Another one at the same ends.
    pub(crate) fn share(&self) -> Self {
        Input { index: self.index, link: self.link.clone() }
    }

    /// The next message, if there is one. Its stamp and keys are then in the context, and go out with what
    /// this step pushes.
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
            InLink::Many(many) => many.pop(self.index, cx),
            InLink::Open => None,
        }
    }

    /// As [`pop`](Input::pop), with the message's own stamp: in a step that takes from several inputs, the
    /// context has the older of both.
    pub fn pop_stamped(&mut self, cx: &mut Context) -> Option<(M, Stamp)> {
        let message = self.pop(cx)?;
        let stamp = if matches!(self.link, InLink::Many(_)) { cx.joining.own } else { cx.stamp };
        Some((message, stamp))
    }

    /// Says that the operator still has some of what came here: its next step does not wait for this input.
    /// An operator that joins two streams says so for the one of which it holds a part, before it returns
    /// [`Step::Wait`](crate::Step::Wait).
    pub fn keep(&self, cx: &mut Context) {
        self.link.keep(cx);
    }

    /// Whether no more will come: all producers have ended and everything was taken. True if nothing is
    /// connected.
    pub fn is_ended(&self, cx: &Context) -> bool {
        self.link.is_ended(cx)
    }

    /// Messages waiting.
    pub fn len(&self, cx: &Context) -> usize {
        self.link.len(cx)
    }

    /// Whether no message is waiting.
    pub fn is_empty(&self, cx: &Context) -> bool {
        self.len(cx) == 0
    }

    /// Whether an edge leads here.
    pub fn is_connected(&self) -> bool {
        !matches!(self.link, InLink::Open)
    }
}

/// Where messages of type `M` go out, to every edge that is connected here. A field of an operator, made by
/// `Default`.
///
/// An operator is stepped only when each of its outputs has room for one message; who wants to push more in
/// one step asks [`room`](Output::room).
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
    /// Another one at the same ends.
    pub(crate) fn share(&self) -> Self {
        Output { index: self.index, link: self.link.clone() }
    }

    /// Sends a message, with the stamp and keys that the context has.
    ///
    /// # Errors
    /// When an edge has no room and is to wait (see [`room`](Output::room)) or to fail, and when a chunk is
    /// larger than the quantum of an edge.
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

    /// Messages for which there is room on every edge; `usize::MAX` where no edge can refuse any.
    pub fn room(&self, cx: &Context) -> usize {
        self.link.room(cx)
    }

    /// Looks at edges to other workers: [`room`](Output::room) knows of these what this one has seen when it
    /// last looked.
    pub(crate) fn poll_room(&self, cx: &mut Context) {
        self.link.poll_room(cx);
    }

    /// The edges that begin here, as their worker numbers them.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.link.numbers()
    }

    /// Whether an edge begins here.
    pub fn is_connected(&self) -> bool {
        !matches!(self.link, OutLink::Open)
    }
}

impl<T: Sample> Output<Chunk<T>> {
    /// A chunk to fill, as large as this port's edges allow. Its samples are whatever was there before.
    /// `None` when the chunk store is empty: return [`Step::Wait`](crate::Step::Wait) and the step comes
    /// again when chunks are back.
    #[inline]
    pub fn chunk(&self, cx: &mut Context) -> Option<Chunk<T>> {
        cx.new_chunk(self.link.quantum())
    }
}
