//! All edges of one port.

use super::local::Edge;
use super::{AnyEdge, EdgeSpec};
use crate::base::error::Error;
use crate::operator::context::{Context, SampleSpan};
use crate::operator::inline::DirectEdge;
use crate::operator::message::{KEYED, Keys, Message, Stamp};
use crate::operator::ports::Merge;
use onbeat_trace::record::WhenFull;
use std::any::Any;
use std::sync::Arc;

/// The producer's end of a port.
#[derive(Clone)]
pub(crate) enum OutLink<M> {
    /// Not connected: messages are dropped.
    Open,
    /// One edge that waits when full, to an operator without other inputs. Its number is here too: the path
    /// from one operator to the next is a chain of dependent loads, and this makes it one load shorter.
    Direct(Arc<Edge<M>>, u32),
    /// Any number of edges of any kind.
    Many(Box<[AnyEdge<M>]>),
}

/// The consumer's end of a port.
#[derive(Clone)]
pub(crate) enum InLink<M> {
    /// Not connected: no message comes.
    Open,
    /// The only edge into this operator.
    Direct(Arc<Edge<M>>),
    /// The only edge into a migrating end during its turn, which takes one message of it.
    Turn(Arc<Edge<M>>),
    /// Any number of edges, into an operator with any number of ports.
    Many(Box<ManyIn<M>>),
}

#[derive(Clone)]
pub(crate) struct ManyIn<M> {
    edges: Box<[AnyEdge<M>]>,
    merge: Merge,
    /// Edge at which the next search for an arrival begins.
    turn: usize,
}

/// Typed links of one port, made from the ends of its edges.
pub(crate) fn out_link<M: Message>(ends: Vec<Box<dyn Any + Send>>) -> Box<dyn Any + Send> {
    let edges = typed::<M>(ends);
    Box::new(match edges.as_slice() {
        [AnyEdge::Local(edge)] if is_plain(edge) => OutLink::Direct(Arc::clone(edge), edge.spec.to),
        _ => OutLink::Many(edges.into()),
    })
}

/// Whether an edge is the only one into its consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alone {
    No,
    /// It is the only edge.
    Yes,
    /// It is the only edge, and the consumer is a migrating end that takes turns with it.
    Turns,
}

/// Makes the typed links of an input port; see [`out_link`].
pub(crate) fn in_link<M: Message>(
    ends: Vec<Box<dyn Any + Send>>,
    merge: Option<Merge>,
    alone: Alone,
) -> Box<dyn Any + Send> {
    let edges = typed::<M>(ends);
    Box::new(match edges.as_slice() {
        [AnyEdge::Local(edge)] if alone == Alone::Turns => InLink::Turn(Arc::clone(edge)),
        [AnyEdge::Local(edge)] if alone == Alone::Yes && !edge.spec.feedback => {
            InLink::Direct(Arc::clone(edge))
        }
        _ => {
            InLink::Many(Box::new(ManyIn { edges: edges.into(), merge: merge.unwrap_or_default(), turn: 0 }))
        }
    })
}

fn typed<M: Message>(ends: Vec<Box<dyn Any + Send>>) -> Vec<AnyEdge<M>> {
    ends.into_iter()
        .map(|end| *end.downcast().expect("the graph has compared the types of both ports"))
        .collect()
}

fn is_plain<M>(edge: &Edge<M>) -> bool {
    let EdgeSpec { when_full, counted, feedback, .. } = edge.spec;
    when_full == WhenFull::Wait && !counted && !feedback
}

impl<M: Message> AnyEdge<M> {
    fn push(&self, cx: &mut Context, message: M) -> Result<(), Error> {
        match self {
            AnyEdge::Local(edge) => edge.push(cx, message),
            AnyEdge::Cross(edge) => edge.push(cx, message),
        }
    }

    /// Returns the spec of the producer's end for outputs, of the consumer's end for inputs.
    fn spec(&self, input: bool) -> &EdgeSpec {
        match self {
            AnyEdge::Local(edge) => &edge.spec,
            AnyEdge::Cross(edge) if input => &edge.input,
            AnyEdge::Cross(edge) => &edge.out,
        }
    }

    fn room(&self, cx: &Context) -> usize {
        let spec = self.spec(false);
        match spec.when_full {
            WhenFull::Wait | WhenFull::Error if !cx.edges[spec.number as usize].gone => match self {
                AnyEdge::Local(edge) => edge.ring.capacity() - edge.ring.len(&cx.owner),
                AnyEdge::Cross(edge) => edge.room(cx),
            },
            _ => usize::MAX,
        }
    }

    /// Returns the number of messages that are visible to the consumer.
    fn len(&self, cx: &Context) -> usize {
        match self {
            AnyEdge::Local(edge) => edge.ring.len(&cx.owner),
            AnyEdge::Cross(edge) => edge.visible(&cx.owner),
        }
    }

    fn is_ended(&self, cx: &Context) -> bool {
        self.is_closed(cx) && self.len(cx) == 0
    }

    fn is_closed(&self, cx: &Context) -> bool {
        cx.edges[self.spec(true).number as usize].closed
    }

    fn keep(&self, cx: &mut Context) {
        let spec = self.spec(true);
        let empty = self.len(cx) == 0;
        let state = &mut cx.edges[spec.number as usize];
        if state.ended {
            cx.waiting.holds_rest = Some(spec.to);
        } else if spec.counted && !state.kept && !state.closed {
            state.kept = true;
            cx.waiting.kept.push(spec.number);
            if empty {
                cx.meet(spec.to);
            }
        }
    }

    /// Returns the stamp of the next message.
    fn peek(&self, cx: &mut Context) -> Option<Stamp> {
        match self {
            AnyEdge::Local(edge) => edge.ring.peek(&cx.owner, |stamp| *stamp),
            AnyEdge::Cross(edge) => edge.peek(&mut cx.owner),
        }
    }

    fn pop(&self, cx: &mut Context) -> Option<(M, Stamp, Option<Arc<Keys>>)> {
        match self {
            AnyEdge::Local(edge) => {
                let message = edge.pop(cx)?;
                let mut stamp = edge.ring.side(&cx.owner);
                let keys = if stamp.origin & KEYED != 0 { edge.receive_keys(cx, true) } else { None };
                stamp.origin &= !KEYED;
                Some((message, stamp, keys))
            }
            AnyEdge::Cross(edge) => edge.pop(cx),
        }
    }
}

impl<M: Message> OutLink<M> {
    /// Pushes to every edge of this port.
    #[inline(never)]
    pub fn push_many(&self, cx: &mut Context, message: M) -> Result<(), Error> {
        let edges = match self {
            OutLink::Open => return Ok(()),
            OutLink::Direct(edge, _) => return edge.push(cx, message),
            OutLink::Many(edges) => edges,
        };
        let Some((last, others)) = edges.split_last() else { return Ok(()) };
        for edge in others {
            edge.push(cx, message.clone())?;
        }
        last.push(cx, message)
    }

    /// Returns the edge if it is a direct one.
    pub fn direct(&self) -> Option<DirectEdge> {
        let OutLink::Direct(edge, _) = self else { return None };
        Some(DirectEdge { number: edge.spec.number, quantum: edge.spec.quantum })
    }

    /// Whether the port has a direct edge without queued messages.
    #[inline]
    pub fn is_clear(&self, cx: &Context) -> bool {
        matches!(self, OutLink::Direct(edge, _) if edge.ring.is_empty(&cx.owner))
    }

    /// Returns the number of messages for which every waiting edge has room.
    pub fn room(&self, cx: &Context) -> usize {
        match self {
            OutLink::Open => usize::MAX,
            OutLink::Direct(edge, _) => AnyEdge::Local(Arc::clone(edge)).room(cx),
            OutLink::Many(edges) => edges.iter().map(|edge| edge.room(cx)).min().unwrap_or(usize::MAX),
        }
    }

    /// Reads how many messages the workers at the other ends have taken. After it, [`room`](Self::room) is
    /// exact.
    pub fn poll_room(&self, cx: &mut Context) {
        if let OutLink::Many(edges) = self {
            for edge in edges {
                if let AnyEdge::Cross(edge) = edge {
                    edge.poll_room(cx);
                }
            }
        }
    }

    /// Returns the numbers of the edges on the producer's worker.
    pub fn numbers(&self) -> Vec<u32> {
        match self {
            OutLink::Open => Vec::new(),
            OutLink::Direct(edge, _) => vec![edge.spec.number],
            OutLink::Many(edges) => edges.iter().map(|edge| edge.spec(false).number).collect(),
        }
    }

    /// Returns the largest size of a chunk from this port, in bytes.
    pub fn quantum(&self) -> Option<u32> {
        match self {
            OutLink::Open => None,
            OutLink::Direct(edge, _) => Some(edge.spec.quantum),
            OutLink::Many(edges) => edges.iter().map(|edge| edge.spec(false).quantum).min(),
        }
    }
}

impl<M: Message> InLink<M> {
    /// Whether all edges are closed and empty.
    pub fn is_ended(&self, cx: &Context) -> bool {
        match self {
            InLink::Open => true,
            InLink::Direct(edge) => edge.is_ended(cx),
            InLink::Turn(edge) => cx.replicas.is_last && edge.is_ended(cx),
            InLink::Many(many) => many.edges.iter().all(|edge| edge.is_ended(cx)),
        }
    }

    /// Whether all edges are closed. They need not be empty.
    pub fn is_closed(&self, cx: &Context) -> bool {
        match self {
            InLink::Open => true,
            InLink::Direct(edge) => edge.is_closed(cx),
            InLink::Turn(edge) => cx.replicas.is_last && edge.is_closed(cx),
            InLink::Many(many) => many.edges.iter().all(|edge| edge.is_closed(cx)),
        }
    }

    /// Returns the edge if it is a direct one.
    pub fn direct(&self) -> Option<DirectEdge> {
        let InLink::Direct(edge) = self else { return None };
        Some(DirectEdge { number: edge.spec.number, quantum: edge.spec.quantum })
    }

    /// Allows the consumer's next step without a message from this port.
    pub fn keep(&self, cx: &mut Context) {
        if let InLink::Many(many) = self {
            many.edges.iter().for_each(|edge| edge.keep(cx));
        }
    }

    /// Returns the number of queued messages.
    pub fn len(&self, cx: &Context) -> usize {
        match self {
            InLink::Open => 0,
            InLink::Direct(edge) => edge.ring.len(&cx.owner),
            InLink::Turn(edge) => edge.ring.len(&cx.owner).min(cx.replicas.visible as usize),
            InLink::Many(many) => many.edges.iter().map(|edge| edge.len(cx)).sum(),
        }
    }
}

impl<M: Message> ManyIn<M> {
    /// [`pop`](Self::pop), for operators that do not align their streams themselves.
    pub fn pop_checked(&mut self, port: usize, cx: &mut Context) -> Option<M> {
        let message = self.pop(port, cx);
        let edge = self.edges[0].spec(true).number;
        match &message {
            Some(message) => {
                let span = message.span();
                cx.note_taken(
                    edge,
                    span.map(|(start, samples, rate_hz)| SampleSpan { start, samples, rate_hz }),
                );
            }
            None if self.edges.iter().all(|edge| edge.is_ended(cx)) => cx.note_ended(edge),
            None => {}
        }
        message
    }

    /// Takes the next message of this port, in the order of its [`Merge`].
    pub fn pop(&mut self, port: usize, cx: &mut Context) -> Option<M> {
        let at = match (self.edges.len(), self.merge) {
            (1, _) => Some(0),
            (_, Merge::Ordered) => self.earliest(cx),
            (_, Merge::Arrival) => self.next_arrival(cx),
        }?;
        let edge = &self.edges[at];
        let (message, stamp, keys) = edge.pop(cx)?;
        let before = (cx.stamp, cx.keys.take());
        cx.stamp = stamp;
        let spec = edge.spec(true);
        cx.join(port, before, keys, spec.feedback);
        if self.edges.iter().any(|edge| edge.len(cx) > 0) {
            cx.ready.set(spec.to);
        }
        Some(message)
    }

    /// Returns the edge whose next message has the lowest (source time, origin, edge). `None` if an open edge
    /// is empty, because an earlier message could still come there.
    fn earliest(&self, cx: &mut Context) -> Option<usize> {
        let mut best = None;
        for (at, edge) in self.edges.iter().enumerate() {
            match edge.peek(cx).map(|stamp| (stamp.time_ns, stamp.sequence(), at)) {
                Some(key) => {
                    if best.is_none_or(|best| key < best) {
                        best = Some(key);
                    }
                }
                None if edge.is_ended(cx) => {}
                None => return None,
            }
        }
        best.map(|(_, _, at)| at)
    }

    fn next_arrival(&mut self, cx: &Context) -> Option<usize> {
        let edges = self.edges.len();
        let at = (0..edges).map(|step| (self.turn + step) % edges).find(|&at| self.edges[at].len(cx) > 0)?;
        self.turn = at + 1;
        Some(at)
    }
}
