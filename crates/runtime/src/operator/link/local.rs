//! An edge whose ends share a worker: a plain ring, and what the engine counts beside it.

use super::{EdgeSpec, Initial, Probe};
use crate::base::error::Error;
use crate::operator::context::{Context, NONE};
use crate::operator::message::{KEYED, Keys, Message, Stamp};
use onbeat_queue::{Full, Owner, Ring};
use onbeat_trace::record::WhenFull;
use std::sync::Arc;

/// One edge whose ends share a worker.
pub(crate) struct Edge<M> {
    pub ring: Ring<M, Stamp>,
    pub spec: EdgeSpec,
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
    fn begin_with(&self, cx: &mut Context, message: Initial) -> Result<(), Error> {
        let message = message.message(cx, self.spec.quantum)?;
        self.push(cx, message)
    }
}

impl<M: Message> Edge<M> {
    pub fn new(owner: &Owner, spec: EdgeSpec) -> Self {
        Edge { ring: Ring::new(owner, spec.capacity as usize), spec }
    }

    /// The plain case of a push: see [`OutLink::Direct`](super::OutLink::Direct).
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
                cx.stamped_edge = self.spec.number;
                cx.wake(to);
                Ok(())
            }
            Err(_) => Err(cx.no_room(self.spec.number)),
        }
    }

    /// The plain case of a pop: see [`InLink::Direct`](super::InLink::Direct).
    #[inline(always)]
    pub fn pop_direct(&self, cx: &mut Context) -> Option<M> {
        let (message, before) = self.ring.pop(&mut cx.owner)?;
        if before == 1 && cx.stamped_edge == self.spec.number {
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
        cx.stamped_edge = NONE;
        cx.stamp = self.ring.side(&cx.owner);
        let keyed = cx.stamp.origin & KEYED != 0;
        if cx.keys.is_some() || keyed {
            cx.stamp.origin &= !KEYED;
            cx.keys = self.receive_keys(cx, keyed);
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

    /// The keys of the message that was taken last; `keyed` is what its stamp says.
    #[cold]
    pub fn receive_keys(&self, cx: &mut Context, keyed: bool) -> Option<Arc<Keys>> {
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
    pub fn pop(&self, cx: &mut Context) -> Option<M> {
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

    pub fn is_ended(&self, cx: &Context) -> bool {
        self.is_closed(cx) && self.ring.is_empty(&cx.owner)
    }

    pub fn is_closed(&self, cx: &Context) -> bool {
        cx.edges[self.spec.number as usize].closed
    }
}
