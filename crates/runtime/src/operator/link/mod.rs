//! Both ends of an edge: typed for the ports, untyped for the engine. The plain case is a few instructions,
//! all other cases are out of line.
//!
//! | file | edges |
//! |---|---|
//! | `local` | whose ends share a worker |
//! | `cross` | from worker to worker |
//! | `port` | all edges of one port |

mod cross;
mod ends;
mod local;
mod port;
mod spread;

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

/// What the plan says of one edge, as its two ends need to know it. Numbers are those of the worker whose end
/// it is.
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

/// What the engine sees of one end of an edge without knowing its type; of both ends where they share a
/// worker.
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
    /// At the consumer's end: throws away what is inside and says how many that were.
    fn clear(&self, owner: &mut Owner) -> u64;
    /// At the producer's end, before the first step: puts a message in.
    fn begin_with(&self, cx: &mut Context, message: Initial) -> Result<(), Error>;
    /// The other end, where that is on another worker.
    fn far(&self) -> Option<&dyn Far> {
        None
    }
}

/// What the ends of an edge between two workers have to tell each other.
pub(crate) trait Far {
    /// The producer is done.
    fn close(&self, owner: &mut Owner);
    /// The consumer is done.
    fn leave(&self, owner: &mut Owner);
    /// At the consumer's end: takes in view what has come. Says how many were in view before, how many are
    /// now, and whether no more will come.
    fn poll(&self, owner: &mut Owner) -> (usize, usize, bool);
    /// At the consumer's end: says that it looks by itself from now on, and need not be told of messages. (Of
    /// some kinds of edges it is told all the same.)
    fn decline_notifications(&self, owner: &Owner);
    /// At the consumer's end, where it looks by itself: whether a look would bring more in view, as a hint.
    fn has_come(&self, owner: &Owner) -> bool;
    /// At the consumer's end, where it looks by itself: asks to be told of the next message. False where one
    /// has come.
    fn wait_for_message(&self, owner: &mut Owner) -> bool;
    /// At the producer's end: whether the consumer has taken some since this end found it full, as a hint.
    fn has_gone(&self, owner: &Owner) -> bool;
    /// At the producer's end: whether the consumer has taken all that was sent.
    fn is_drained(&self, owner: &mut Owner) -> bool;
    /// At the producer's end: whether the consumer is done.
    fn is_left(&self, owner: &Owner) -> bool;
    /// At the producer's end, for one that found it full: whether there is room now. If not, it will be told
    /// when there is.
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

/// Where the two ends of an edge are.
pub(crate) enum EdgePlacement<'o> {
    /// On one worker.
    Local(&'o Owner, EdgeSpec),
    /// The producer's worker, then the consumer's: each with what it calls the edge, and how the other wakes
    /// it.
    Cross([(&'o Owner, EdgeSpec, Notifier); 2]),
}

/// Both typed ends of a new edge and its probe. The ends are an [`AnyEdge`] for the M of the ports.
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
