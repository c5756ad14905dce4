//! Both ends of an edge inside one worker: the plain case in a few instructions, all other cases out of line.

use crate::context::{Context, NONE};
use crate::error::Error;
use crate::message::{KEYED, Keys, Message, Stamp};
use crate::ports::Merge;
use onbeat_queue::{Full, Owner, Ring};
use onbeat_trace::record::WhenFull;
use std::any::Any;
use std::sync::Arc;

/// What the plan says of one edge, as its two ends need to know it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EdgeSpec {
    /// Its place in the plan, which is also its place in the context's edge states.
    pub number: u32,
    pub from: u32,
    pub to: u32,
    pub capacity: u32,
    pub when_full: WhenFull,
    /// Messages in it at which its producer waits; `u32::MAX` where it never does.
    pub waits_at: u32,
    /// Bytes that a chunk on it may have; `u32::MAX` for other messages.
    pub quantum: u32,
    /// Whether the consumer waits for this edge along with others, so that its emptiness is an unmet condition.
    pub counted: bool,
}

/// One edge whose ends share a worker.
pub(crate) struct Edge<M> {
    ring: Ring<M, Stamp>,
    spec: EdgeSpec,
}

/// What the engine sees of an edge without knowing its type.
pub(crate) trait Probe: Send + Sync {
    fn len(&self, owner: &Owner) -> usize;
    fn sent(&self, owner: &Owner) -> u64;
    fn taken(&self, owner: &Owner) -> u64;
    fn deepest(&self, owner: &Owner) -> u32;
    /// Throws away what is inside and says how many that were.
    fn clear(&self, owner: &mut Owner) -> u64;
}

impl<M: Message> Probe for Edge<M> {
    fn len(&self, owner: &Owner) -> usize {
        self.ring.len(owner)
    }
    fn sent(&self, owner: &Owner) -> u64 {
        self.ring.sent(owner)
    }
    fn taken(&self, owner: &Owner) -> u64 {
        self.ring.taken(owner)
    }
    fn deepest(&self, owner: &Owner) -> u32 {
        self.ring.deepest(owner)
    }
    fn clear(&self, owner: &mut Owner) -> u64 {
        std::iter::from_fn(|| self.ring.pop(owner)).count() as u64
    }
}

/// Both typed ends of a new edge and its probe. The ends are `Arc<Edge<M>>` for the M of the ports.
pub(crate) struct Ends {
    pub out: Box<dyn Any + Send>,
    pub input: Box<dyn Any + Send>,
    pub probe: Arc<dyn Probe>,
}

pub(crate) type MakeEdge = fn(&Owner, EdgeSpec) -> Ends;
pub(crate) type MakeOutLink = fn(Vec<Box<dyn Any + Send>>) -> Box<dyn Any + Send>;
pub(crate) type MakeInLink = fn(Vec<Box<dyn Any + Send>>, Option<Merge>, bool) -> Box<dyn Any + Send>;

pub(crate) fn make_edge<M: Message>(owner: &Owner, spec: EdgeSpec) -> Ends {
    let edge = Arc::new(Edge::<M> { ring: Ring::new(owner, spec.capacity as usize), spec });
    Ends { out: Box::new(Arc::clone(&edge)), input: Box::new(Arc::clone(&edge)), probe: edge }
}

/// The producer's end of a port.
pub(crate) enum OutLink<M> {
    /// Not connected: messages go nowhere.
    Open,
    /// One edge that waits when full, to an operator with no other input: its number is here too, because the way from
    /// one operator to the next is a chain of dependent loads, and this makes it one shorter.
    Direct(Arc<Edge<M>>, u32),
    /// Any number of edges of any kind.
    Many(Box<[Arc<Edge<M>>]>),
}

/// The consumer's end of a port.
pub(crate) enum InLink<M> {
    /// Not connected: nothing comes.
    Open,
    /// The only edge into this operator.
    Direct(Arc<Edge<M>>),
    /// Any number of edges, into an operator with any number of ports.
    Many(Box<ManyIn<M>>),
}

pub(crate) struct ManyIn<M> {
    edges: Box<[Arc<Edge<M>>]>,
    merge: Merge,
    /// Where the next look for an arrival begins.
    turn: usize,
}

/// Typed links of one port, made from the ends of its edges.
pub(crate) fn out_link<M: Message>(ends: Vec<Box<dyn Any + Send>>) -> Box<dyn Any + Send> {
    let edges = typed::<M>(ends);
    let direct = |edge: &Edge<M>| edge.spec.when_full == WhenFull::Wait && !edge.spec.counted;
    Box::new(match <[_; 1]>::try_from(edges) {
        Ok([edge]) if direct(&edge) => {
            let to = edge.spec.to;
            OutLink::Direct(edge, to)
        }
        Ok([edge]) => OutLink::Many([edge].into()),
        Err(edges) => OutLink::Many(edges.into()),
    })
}

/// As [`out_link`]; `alone` says that this is the only edge into its operator.
pub(crate) fn in_link<M: Message>(
    ends: Vec<Box<dyn Any + Send>>,
    merge: Option<Merge>,
    alone: bool,
) -> Box<dyn Any + Send> {
    let merge = merge.unwrap_or_default();
    let edges = typed::<M>(ends);
    Box::new(match <[_; 1]>::try_from(edges) {
        Ok([edge]) if alone => InLink::Direct(edge),
        Ok([edge]) => InLink::Many(Box::new(ManyIn { edges: [edge].into(), merge, turn: 0 })),
        Err(edges) => InLink::Many(Box::new(ManyIn { edges: edges.into(), merge, turn: 0 })),
    })
}

fn typed<M: Message>(ends: Vec<Box<dyn Any + Send>>) -> Vec<Arc<Edge<M>>> {
    ends.into_iter()
        .map(|end| *end.downcast().expect("the graph has compared the types of both ports"))
        .collect()
}

impl<M: Message> Edge<M> {
    /// The plain case of a push: see [`OutLink::Direct`].
    #[inline(always)]
    pub fn push_direct(&self, cx: &mut Context, to: u32, message: M) -> Result<(), Error> {
        if M::SAMPLE_BYTES.is_some() && message.chunk_bytes() > self.spec.quantum as usize {
            return Err(cx.over_quantum(self.spec.number, message.chunk_bytes()));
        }
        if cx.keys.is_some() {
            self.send_keys(cx);
        }
        match self.ring.push(&mut cx.owner, message, &cx.stamp) {
            Ok(before) => {
                if before + 1 == self.spec.waits_at {
                    cx.unmeet(self.spec.from);
                }
                cx.carried = self.spec.number;
                cx.wake(to);
                Ok(())
            }
            Err(_) => Err(cx.no_room(self.spec.number)),
        }
    }

    /// The plain case of a pop: see [`InLink::Direct`].
    #[inline(always)]
    pub fn pop_direct(&self, cx: &mut Context) -> Option<M> {
        let (message, before) = self.ring.pop(&mut cx.owner)?;
        if before == 1 && cx.carried == self.spec.number {
            // Followed at once: stamp and keys are in place.
            cx.popped = 1;
            if self.spec.waits_at == 1 {
                cx.meet(self.spec.from);
            }
        } else {
            self.popped_later(cx, before);
        }
        Some(message)
    }

    /// What a pop has to do when something else came between the push and it.
    #[inline(never)]
    fn popped_later(&self, cx: &mut Context, before: u32) {
        if cx.popped != 0 {
            cx.keep_earlier(cx.stamp);
        }
        cx.popped = 1;
        cx.carried = NONE;
        cx.stamp = self.ring.side(&cx.owner);
        if cx.keys.is_some() || cx.stamp.origin & KEYED != 0 {
            cx.keys = self.receive_keys(cx);
        }
        if before == self.spec.waits_at {
            cx.meet(self.spec.from);
        }
        if before > 1 {
            cx.ready.set(self.spec.to);
        }
    }

    /// Leaves the keys of the next message with the edge. They are rare, so they do not lie in the queue.
    #[cold]
    fn send_keys(&self, cx: &mut Context) {
        let number = self.ring.sent(&cx.owner);
        let keys = cx.keys.clone().map(|keys| (number, keys));
        cx.stamp.origin |= KEYED;
        let kept = &mut cx.edges[self.spec.number as usize].keys;
        let taken = self.ring.taken(&cx.owner);
        while kept.front().is_some_and(|&(number, _)| number < taken) {
            kept.pop_front();
        }
        // A message that was refused leaves its keys under the number of the next one.
        if kept.back().is_some_and(|&(last, _)| last == number) {
            kept.pop_back();
        }
        kept.extend(keys);
    }

    /// The keys of the message that was taken last, whose stamp is in place.
    #[cold]
    fn receive_keys(&self, cx: &mut Context) -> Option<Arc<Keys>> {
        let keyed = cx.stamp.origin & KEYED != 0;
        cx.stamp.origin &= !KEYED;
        let number = self.ring.taken(&cx.owner) - 1;
        let kept = &mut cx.edges[self.spec.number as usize].keys;
        while kept.front().is_some_and(|&(front, _)| front < number) {
            kept.pop_front();
        }
        let found = kept.front().is_some_and(|&(front, _)| front == number);
        if keyed && found { kept.pop_front().map(|(_, keys)| keys) } else { None }
    }

    /// A push on an edge of any kind.
    pub fn push(&self, cx: &mut Context, message: M) -> Result<(), Error> {
        let EdgeSpec { number, from, to, waits_at, when_full, quantum, counted, .. } = self.spec;
        if message.chunk_bytes() > quantum as usize {
            return Err(cx.over_quantum(number, message.chunk_bytes()));
        }
        cx.wake(to);
        let state = &mut cx.edges[number as usize];
        if state.gone {
            state.unread += 1;
            return Ok(());
        }
        if when_full == WhenFull::Latest {
            cx.edges[number as usize].dropped += self.empty(cx);
        }
        if cx.keys.is_some() {
            self.send_keys(cx);
        }
        match self.ring.push(&mut cx.owner, message, &cx.stamp) {
            Ok(before) => {
                if counted && before == 0 && !cx.edges[number as usize].kept {
                    cx.meet(to);
                }
                if before + 1 == waits_at {
                    cx.unmeet(from);
                }
                Ok(())
            }
            Err(Full(message)) => match when_full {
                WhenFull::DropNewest => {
                    cx.edges[number as usize].dropped += 1;
                    cx.edges[number as usize].refused += 1;
                    Ok(())
                }
                WhenFull::DropOldest => {
                    drop(self.ring.pop(&mut cx.owner));
                    cx.edges[number as usize].dropped += 1;
                    self.ring
                        .push(&mut cx.owner, message, &cx.stamp)
                        .map(|_| ())
                        .map_err(|_| cx.no_room(number))
                }
                WhenFull::Wait | WhenFull::Latest | WhenFull::Error => Err(cx.no_room(number)),
            },
        }
    }

    /// Throws away what is queued, for `latest`.
    fn empty(&self, cx: &mut Context) -> u64 {
        let dropped = self.clear(&mut cx.owner);
        if dropped > 0 && self.spec.counted && !cx.edges[self.spec.number as usize].kept {
            cx.unmeet(self.spec.to);
        }
        dropped
    }

    /// A pop from an edge of any kind.
    fn pop(&self, cx: &mut Context) -> Option<M> {
        let (message, before) = self.ring.pop(&mut cx.owner)?;
        if before == self.spec.waits_at {
            cx.meet(self.spec.from);
        }
        let state = &cx.edges[self.spec.number as usize];
        if before == 1 && self.spec.counted && !state.closed && !state.kept {
            cx.unmeet(self.spec.to);
        }
        Some(message)
    }

    /// Lets the consumer's next step come without a message here.
    pub fn keep(&self, cx: &mut Context) {
        let state = &mut cx.edges[self.spec.number as usize];
        if self.spec.counted && !state.kept && !state.closed {
            state.kept = true;
            cx.kept.push(self.spec.number);
            if self.ring.is_empty(&cx.owner) {
                cx.meet(self.spec.to);
            }
        }
    }

    fn is_ended(&self, cx: &Context) -> bool {
        cx.edges[self.spec.number as usize].closed && self.ring.is_empty(&cx.owner)
    }
}

impl<M: Message> OutLink<M> {
    /// Pushes to every edge of this port.
    #[inline(never)]
    pub fn push_many(&self, cx: &mut Context, message: M) -> Result<(), Error> {
        let edges = match self {
            OutLink::Open => return Ok(()),
            OutLink::Direct(edge, _) => std::slice::from_ref(edge),
            OutLink::Many(edges) => edges,
        };
        let Some((last, others)) = edges.split_last() else { return Ok(()) };
        for edge in others {
            edge.push(cx, message.clone())?;
        }
        last.push(cx, message)
    }

    /// Messages for which there is room on every edge that waits.
    pub fn room(&self, cx: &Context) -> usize {
        let room = |edge: &Edge<M>| match edge.spec.when_full {
            WhenFull::Wait | WhenFull::Error if !cx.edges[edge.spec.number as usize].gone => {
                edge.ring.capacity() - edge.ring.len(&cx.owner)
            }
            _ => usize::MAX,
        };
        match self {
            OutLink::Open => usize::MAX,
            OutLink::Direct(edge, _) => room(edge),
            OutLink::Many(edges) => edges.iter().map(|edge| room(edge)).min().unwrap_or(usize::MAX),
        }
    }

    /// Bytes that a chunk from this port may have.
    pub fn quantum(&self) -> Option<u32> {
        match self {
            OutLink::Open => None,
            OutLink::Direct(edge, _) => Some(edge.spec.quantum),
            OutLink::Many(edges) => edges.iter().map(|edge| edge.spec.quantum).min(),
        }
    }
}

impl<M: Message> InLink<M> {
    /// Whether all edges are closed and empty.
    pub fn is_ended(&self, cx: &Context) -> bool {
        match self {
            InLink::Open => true,
            InLink::Direct(edge) => edge.is_ended(cx),
            InLink::Many(many) => many.edges.iter().all(|edge| edge.is_ended(cx)),
        }
    }

    /// See [`Edge::keep`].
    pub fn keep(&self, cx: &mut Context) {
        if let InLink::Many(many) = self {
            many.edges.iter().for_each(|edge| edge.keep(cx));
        }
    }

    /// Messages waiting.
    pub fn len(&self, cx: &Context) -> usize {
        match self {
            InLink::Open => 0,
            InLink::Direct(edge) => edge.ring.len(&cx.owner),
            InLink::Many(many) => many.edges.iter().map(|edge| edge.ring.len(&cx.owner)).sum(),
        }
    }
}

impl<M: Message> ManyIn<M> {
    /// The next message of this port, in the order that the port asked for.
    pub fn pop(&mut self, port: usize, cx: &mut Context) -> Option<M> {
        let at = match (self.edges.len(), self.merge) {
            (1, _) => Some(0),
            (_, Merge::Ordered) => self.earliest(cx),
            (_, Merge::Arrival) => self.next_arrival(cx),
        }?;
        let edge = Arc::clone(&self.edges[at]);
        let message = edge.pop(cx)?;
        let before = (cx.stamp, cx.keys.take());
        cx.stamp = edge.ring.side(&cx.owner);
        let keys = if cx.stamp.origin & KEYED != 0 { edge.receive_keys(cx) } else { None };
        cx.join(port, before, keys);
        if self.edges.iter().any(|edge| !edge.ring.is_empty(&cx.owner)) {
            cx.ready.set(self.edges[at].spec.to);
        }
        Some(message)
    }

    /// The edge whose next message has the lowest (source time, origin, edge); none while an open edge is empty,
    /// because what comes there may be earlier.
    fn earliest(&self, cx: &Context) -> Option<usize> {
        let mut best = None;
        for (at, edge) in self.edges.iter().enumerate() {
            match edge.ring.peek(&cx.owner, |stamp| (stamp.time_ns, stamp.sequence(), at)) {
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
        let at = (0..edges)
            .map(|step| (self.turn + step) % edges)
            .find(|&at| !self.edges[at].ring.is_empty(&cx.owner))?;
        self.turn = at + 1;
        Some(at)
    }
}
