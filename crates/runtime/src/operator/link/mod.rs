//! Both ends of an edge: typed for the ports, untyped for the engine. The plain case is a few instructions,
//! all other cases are out of line.
//!
//! | file | edges |
//! |---|---|
//! | `local` | whose ends share a worker |
//! | `cross` | from worker to worker |
//! | `port` | all edges of one port |
//! | `spread`, `blocks`, `trial` | from one operator to its copies on several workers, and back in order |

mod blocks;
mod cross;
mod ends;
mod local;
mod port;
mod spread;
mod trial;

pub(crate) use cross::Notifier;
pub(crate) use ends::EdgeEnds;
pub(crate) use port::{Alone, InLink, OutLink, in_link, out_link};
pub(crate) use spread::{MakeSpread, SpreadSizes, make_spread, not_one_for_one};

use crate::base::error::Error;
use crate::operator::context::Context;
use crate::operator::message::{Message, Value};
use crate::operator::ports::Merge;
use cross::Cross;
use local::Edge;
use onbeat_queue::Owner;
use onbeat_trace::record::WhenFull;
use std::any::Any;
use std::sync::Arc;

/// Properties of an edge from the plan, for one of its ends. Numbers are those of the worker with this end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EdgeSpec {
    /// Its place in the worker's edge states.
    pub number: u32,
    /// [`NONE`](crate::operator::context::NONE) at the consumer's end of an edge from another worker.
    pub from: u32,
    /// [`NONE`](crate::operator::context::NONE) at the producer's end of an edge to another worker.
    pub to: u32,
    pub capacity: u32,
    pub when_full: WhenFull,
    /// Messages in it at which its producer waits; `u32::MAX` where it never does.
    pub waits_at: u32,
    /// Bytes that a chunk on it may have; `u32::MAX` for other messages.
    pub quantum: u32,
    /// Whether the consumer waits for this edge along with others, so that its emptiness is an unmet
    /// condition.
    pub counted: bool,
    /// Whether it closes a cycle: it has messages from the start, and its stamps yield to others.
    pub feedback: bool,
}

/// One end of an edge without its message type, for the engine; both ends if they are on one worker.
pub(crate) trait Probe: Send + Sync {
    /// Messages inside, as far as this end knows.
    fn len(&self, owner: &Owner) -> usize;
    /// Known at the producer's end.
    fn sent(&self, owner: &Owner) -> u64;
    /// Known at the consumer's end.
    fn taken(&self, owner: &Owner) -> u64;
    /// Known at the producer's end.
    fn deepest(&self, owner: &Owner) -> u32;
    /// Known at the consumer's end, where that is on another worker.
    fn most_visible(&self, owner: &Owner) -> u32 {
        let _ = owner;
        0
    }
    /// At the consumer's end: drops the queued messages, and returns their number.
    fn clear(&self, owner: &mut Owner) -> u64;
    /// At the producer's end, before the first step: puts a message in.
    fn begin_with(&self, cx: &mut Context, message: Initial) -> Result<(), Error>;
    /// Returns the other end if it is on another worker.
    fn far(&self) -> Option<&dyn Far> {
        None
    }
}

/// Communication between the ends of an edge from one worker to another.
pub(crate) trait Far {
    /// Tells the consumer that the producer is done.
    fn close(&self, owner: &mut Owner);
    /// Tells the producer that the consumer is done.
    fn leave(&self, owner: &mut Owner);
    /// At the consumer's end: makes new messages visible. Returns the number visible before, the number
    /// visible now, and whether no more will come.
    fn poll(&self, owner: &mut Owner) -> (usize, usize, bool);
    /// At the consumer's end: turns notifications of messages off, because the consumer polls from now on.
    /// Some kinds of edges still send them.
    fn decline_notifications(&self, owner: &Owner);
    /// At a polling consumer's end: whether a poll would make more messages visible, as a hint.
    fn has_come(&self, owner: &Owner) -> bool;
    /// At a polling consumer's end: turns notification of the next message on. Returns `false` if one has
    /// come.
    fn wait_for_message(&self, owner: &mut Owner) -> bool;
    /// At the producer's end: whether the consumer has taken messages since this end found the edge full, as
    /// a hint.
    fn has_gone(&self, owner: &Owner) -> bool;
    /// At the producer's end: whether the consumer has taken all messages.
    fn is_drained(&self, owner: &mut Owner) -> bool;
    /// At the producer's end: whether the consumer is done.
    fn is_left(&self, owner: &Owner) -> bool;
    /// At the producer's end, after it found the edge full: whether there is room now. If not, this end is
    /// notified when there is.
    fn has_room(&self, owner: &mut Owner) -> bool;
}

/// A message that an edge has from the start.
pub(crate) enum Initial {
    /// Of the edge's own type.
    Typed(Box<dyn Any + Send>),
    /// From a file: a number, or how many samples of 0.
    Value(Value),
}

impl Initial {
    pub fn message<M: Message>(self, cx: &mut Context, quantum: u32) -> Result<M, Error> {
        match self {
            Initial::Typed(message) => message.downcast().map(|message| *message).ok(),
            Initial::Value(value) => M::from_value(&value, cx, quantum),
        }
        .ok_or_else(|| Error::new("no chunk is left for the initial message of an edge"))
    }
}

/// Placement of the two ends of an edge.
pub(crate) enum EdgePlacement<'o> {
    /// On one worker.
    Local(&'o Owner, EdgeSpec),
    /// The producer's worker, then the consumer's: each with its own spec of the edge, and the notifier
    /// through which the other one wakes it.
    Cross([(&'o Owner, EdgeSpec, Notifier); 2]),
}

/// Both typed ends of a new edge and its probe. The ends are an [`AnyEdge`] for the ports' message type.
pub(crate) struct NewEdge {
    pub out: Box<dyn Any + Send>,
    pub input: Box<dyn Any + Send>,
    pub probe: Arc<dyn Probe>,
}

/// An edge of either kind.
pub(crate) enum AnyEdge<M> {
    Local(Arc<Edge<M>>),
    Cross(Arc<Cross<M>>),
}

impl<M> Clone for AnyEdge<M> {
    fn clone(&self) -> Self {
        match self {
            AnyEdge::Local(edge) => AnyEdge::Local(Arc::clone(edge)),
            AnyEdge::Cross(edge) => AnyEdge::Cross(Arc::clone(edge)),
        }
    }
}

pub(crate) type MakeEdge = fn(EdgePlacement<'_>) -> NewEdge;
pub(crate) type MakeOutLink = fn(Vec<Box<dyn Any + Send>>) -> Box<dyn Any + Send>;
pub(crate) type MakeInLink = fn(Vec<Box<dyn Any + Send>>, Option<Merge>, Alone) -> Box<dyn Any + Send>;

pub(crate) fn make_edge<M: Message>(placement: EdgePlacement<'_>) -> NewEdge {
    let (edge, probe): (AnyEdge<M>, Arc<dyn Probe>) = match placement {
        EdgePlacement::Local(owner, spec) => {
            let edge = Arc::new(Edge::new(owner, spec));
            (AnyEdge::Local(Arc::clone(&edge)), edge)
        }
        EdgePlacement::Cross(ends) => {
            let edge = Arc::new(Cross::new(ends));
            (AnyEdge::Cross(Arc::clone(&edge)), edge)
        }
    };
    NewEdge { out: Box::new(edge.clone()), input: Box::new(edge), probe }
}
