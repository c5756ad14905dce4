//! An edge from one worker to another: a lock-free ring, and a notifier on each side.
//!
//! Each end acts only on values that it has read itself. The consumer sees a message only after its worker
//! was notified ([`Far::poll`]). The producer sees room only after its worker was notified
//! ([`Far::has_room`]). So the conditions of a worker's operators change only at well-defined moments, as
//! with an edge inside one worker. No change is lost: each push notifies the consumer, and a pop that makes
//! room for a waiting producer notifies the producer. A notification that is still pending is not repeated.
//!
//! Each notification costs both sides accesses to cache lines that the other one writes. So a producer that
//! is awake polls for room, and a consumer that spins polls for messages. Both ask for notifications before
//! they park.

use super::{EdgeSpec, Far, Initial, Probe};
use crate::base::error::Error;
use crate::base::quiescence::WorkerInbox;
use crate::operator::context::Context;
use crate::operator::message::{KEYED, Keys, Message, Stamp};
use onbeat_queue::{Full, Lossy, Owner, Spsc};
use onbeat_trace::record::WhenFull;
use std::sync::Arc;

/// Notifies another worker of a change of one of its edges.
#[derive(Clone)]
pub(crate) struct Notifier {
    pub inbox: Arc<WorkerInbox>,
    /// Head of the inbox to which the notifying worker pushes.
    pub slot: usize,
    /// Item that is put into the inbox.
    pub item: u32,
}

impl Notifier {
    pub fn notify(&self) {
        // `false`: an earlier notification is still pending. The inbox guarantees that the worker handles it
        // after this call, and then sees everything done before the call.
        self.inbox.schedule(self.slot, self.item);
    }
}

/// One edge from worker to worker.
pub(crate) struct Cross<M> {
    ring: CrossRing<M>,
    /// Spec with the numbers of the producer's worker.
    pub out: EdgeSpec,
    /// Spec with the numbers of the consumer's worker.
    pub input: EdgeSpec,
    /// At the consumer's worker.
    data: Notifier,
    /// At the producer's worker.
    room: Notifier,
}

enum CrossRing<M> {
    /// Refuses when full.
    Strict(Spsc<Envelope<M>>),
    /// Replaces the oldest when full.
    Lossy(Lossy<Envelope<M>>),
}

struct Envelope<M> {
    message: M,
    stamp: Stamp,
    keys: Option<Arc<Keys>>,
}

impl<M: Message> Cross<M> {
    pub fn new([(producer, out, room), (consumer, input, data)]: [(&Owner, EdgeSpec, Notifier); 2]) -> Self {
        let capacity = out.capacity as usize;
        let ring = match out.when_full {
            WhenFull::Wait | WhenFull::Error | WhenFull::DropNewest => {
                CrossRing::Strict(Spsc::new(producer, consumer, capacity))
            }
            WhenFull::DropOldest => CrossRing::Lossy(Lossy::new(producer, consumer, capacity)),
            WhenFull::Latest => CrossRing::Lossy(Lossy::new(producer, consumer, 1)),
        };
        Cross { ring, out, input, data, room }
    }

    /// On the producer's worker.
    pub fn push(&self, cx: &mut Context, message: M) -> Result<(), Error> {
        let EdgeSpec { number, from, waits_at, when_full, quantum, .. } = self.out;
        if message.chunk_bytes() > quantum as usize {
            return Err(cx.over_quantum(number, message.chunk_bytes()));
        }
        let state = &mut cx.edges[number as usize];
        if state.gone {
            state.unread += 1;
            return Ok(());
        }
        cx.sent_away = true;
        let stamp = Stamp { origin: cx.stamp.origin & !KEYED, ..cx.stamp };
        let item = Envelope { message, stamp, keys: cx.keys.clone() };
        let must_tell = match &self.ring {
            CrossRing::Lossy(ring) => {
                let replaced = ring.push(&mut cx.owner, item);
                state.dropped += u64::from(replaced.is_some());
                true
            }
            CrossRing::Strict(ring) => match ring.push(&mut cx.owner, item) {
                Ok(before) => {
                    let filled = before + 1 >= waits_at && !state.waiting;
                    if filled && ring.room(&mut cx.owner) < self.room_wanted() {
                        state.waiting = true;
                        cx.waiting.full.push(number);
                        cx.unmeet(from);
                    }
                    ring.must_notify(&cx.owner)
                }
                Err(Full(_)) if when_full == WhenFull::DropNewest => {
                    // The known room may be old: the ring has checked again before it refused.
                    state.dropped += 1;
                    state.refused += 1;
                    return Ok(());
                }
                Err(Full(_)) => return Err(cx.no_room(number)),
            },
        };
        if must_tell {
            self.data.notify();
        }
        Ok(())
    }

    /// Messages for which its producer wants room before it is stepped.
    fn room_wanted(&self) -> usize {
        (self.out.capacity + 1).saturating_sub(self.out.waits_at) as usize
    }

    /// On the producer's worker: number of messages for which there was room at the last poll.
    pub fn room(&self, cx: &Context) -> usize {
        match &self.ring {
            CrossRing::Strict(ring) => ring.room_known(&cx.owner),
            CrossRing::Lossy(_) => usize::MAX,
        }
    }

    /// On the producer's worker: [`room`](Self::room) is exact after it.
    pub fn poll_room(&self, cx: &mut Context) {
        if let CrossRing::Strict(ring) = &self.ring {
            ring.room(&mut cx.owner);
        }
    }

    /// On the consumer's worker.
    pub fn visible(&self, consumer: &Owner) -> usize {
        match &self.ring {
            CrossRing::Strict(ring) => ring.len(consumer),
            CrossRing::Lossy(ring) => ring.len(consumer),
        }
    }

    /// On the consumer's worker.
    pub fn peek(&self, consumer: &mut Owner) -> Option<Stamp> {
        match &self.ring {
            CrossRing::Strict(ring) => ring.peek(consumer, |item| item.stamp),
            CrossRing::Lossy(ring) => ring.peek(consumer, |item| item.stamp),
        }
    }

    fn take(&self, consumer: &mut Owner) -> Option<Envelope<M>> {
        match &self.ring {
            CrossRing::Strict(ring) => {
                let item = ring.pop(consumer)?;
                if ring.release(consumer) {
                    self.room.notify();
                }
                Some(item)
            }
            CrossRing::Lossy(ring) => ring.pop(consumer),
        }
    }

    /// On the consumer's worker.
    pub fn pop(&self, cx: &mut Context) -> Option<(M, Stamp, Option<Arc<Keys>>)> {
        if self.visible(&cx.owner) == 0 {
            return None;
        }
        let item = self.take(&mut cx.owner)?;
        item.message.fetch(self.input.quantum as usize);
        let state = &cx.edges[self.input.number as usize];
        if self.input.counted && !state.closed && !state.kept && self.visible(&cx.owner) == 0 {
            cx.unmeet(self.input.to);
        }
        Some((item.message, item.stamp, item.keys))
    }
}

impl<M: Message> Probe for Cross<M> {
    fn len(&self, owner: &Owner) -> usize {
        self.visible(owner)
    }

    fn sent(&self, owner: &Owner) -> u64 {
        match &self.ring {
            CrossRing::Strict(ring) => ring.sent(owner),
            CrossRing::Lossy(ring) => ring.sent(owner),
        }
    }

    fn taken(&self, owner: &Owner) -> u64 {
        match &self.ring {
            CrossRing::Strict(ring) => ring.taken(owner),
            CrossRing::Lossy(ring) => ring.taken(owner),
        }
    }

    fn deepest(&self, owner: &Owner) -> u32 {
        match &self.ring {
            CrossRing::Strict(ring) => ring.deepest(owner),
            CrossRing::Lossy(ring) => ring.deepest(owner),
        }
    }

    fn most_visible(&self, owner: &Owner) -> u32 {
        match &self.ring {
            CrossRing::Strict(ring) => ring.most_visible(owner),
            CrossRing::Lossy(_) => 0,
        }
    }

    fn clear(&self, owner: &mut Owner) -> u64 {
        std::iter::from_fn(|| self.take(owner)).count() as u64
    }

    fn begin_with(&self, cx: &mut Context, message: Initial) -> Result<(), Error> {
        let message = message.message(cx, self.out.quantum)?;
        self.push(cx, message)
    }

    fn far(&self) -> Option<&dyn Far> {
        Some(self)
    }
}

impl<M: Message> Far for Cross<M> {
    fn close(&self, owner: &mut Owner) {
        match &self.ring {
            CrossRing::Strict(ring) => ring.close(owner),
            CrossRing::Lossy(ring) => ring.close(owner),
        }
        self.data.notify();
    }

    fn leave(&self, owner: &mut Owner) {
        match &self.ring {
            CrossRing::Strict(ring) => ring.leave(owner),
            CrossRing::Lossy(ring) => ring.leave(owner),
        }
        self.room.notify();
    }

    fn poll(&self, owner: &mut Owner) -> (usize, usize, bool) {
        let before = self.visible(owner);
        // In this order: messages that were sent before the end are visible after it.
        match &self.ring {
            CrossRing::Strict(ring) => {
                let closed = ring.is_closed(owner);
                (before, ring.poll(owner), closed)
            }
            CrossRing::Lossy(ring) => {
                let closed = ring.is_closed(owner);
                (before, ring.poll(owner), closed)
            }
        }
    }

    fn decline_notifications(&self, owner: &Owner) {
        if let CrossRing::Strict(ring) = &self.ring {
            ring.decline_notifications(owner);
        }
    }

    fn has_come(&self, owner: &Owner) -> bool {
        match &self.ring {
            CrossRing::Strict(ring) => ring.has_come(owner),
            CrossRing::Lossy(_) => false,
        }
    }

    fn wait_for_message(&self, owner: &mut Owner) -> bool {
        match &self.ring {
            CrossRing::Strict(ring) => ring.wait_for_item(owner),
            CrossRing::Lossy(_) => true,
        }
    }

    fn has_gone(&self, owner: &Owner) -> bool {
        match &self.ring {
            CrossRing::Strict(ring) => ring.has_gone(owner),
            CrossRing::Lossy(_) => false,
        }
    }

    fn is_drained(&self, owner: &mut Owner) -> bool {
        match &self.ring {
            CrossRing::Strict(ring) => ring.room(owner) >= self.out.capacity as usize,
            CrossRing::Lossy(_) => false,
        }
    }

    fn is_left(&self, owner: &Owner) -> bool {
        match &self.ring {
            CrossRing::Strict(ring) => ring.is_left(owner),
            CrossRing::Lossy(ring) => ring.is_left(owner),
        }
    }

    fn has_room(&self, owner: &mut Owner) -> bool {
        match &self.ring {
            CrossRing::Strict(ring) => !ring.wait_for_room(owner, self.room_wanted()),
            CrossRing::Lossy(_) => true,
        }
    }
}
