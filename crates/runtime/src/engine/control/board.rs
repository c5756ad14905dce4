//! Snapshots of the run for threads that watch it. A part copies its counters to the board between two steps,
//! and only on request, so a run that is not watched has no cost.

use super::recent::SharedLatencies;
use crate::base::slot::PartSlot;
use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Latest snapshot of each part.
pub(crate) struct Board {
    /// Number of snapshots requested.
    requested: AtomicU64,
    pub parts: Box<[Arc<PartSlot>]>,
    /// By operator of the plan.
    pub operators: Box<[CachePadded<OperatorSlot>]>,
    /// By edge of the plan.
    pub edges: Box<[CachePadded<EdgeSlot>]>,
    /// By path of the plan.
    pub paths: Box<[PathSlot]>,
    /// Number of parts that are not over.
    open: AtomicU32,
}

/// Fields are Relaxed: [`Board::answer`] publishes them.
#[derive(Default)]
pub(crate) struct OperatorSlot {
    pub steps: AtomicU64,
    /// Time in these steps.
    pub busy_ns: AtomicU64,
    /// Steps that ended after the deadline.
    pub late: AtomicU64,
    /// Data lost although no setting permits a loss.
    pub lost: AtomicU64,
    /// Whether the operator has waited for a descriptor.
    pub awaits_descriptors: AtomicBool,
    doing: AtomicU64,
    /// Conditions of the operator in words. Set before the first step.
    conditions: OnceLock<Vec<String>>,
}

/// Counters of an edge, whose two ends can belong to different parts.
#[derive(Default)]
pub(crate) struct EdgeSlot {
    /// Messages that its producer has sent.
    pub sent: AtomicU64,
    /// Messages for the consumer; within one part: messages queued.
    pub put: AtomicU64,
    /// Messages that the consumer has taken; within one part: 0.
    pub taken: AtomicU64,
    pub dropped: AtomicU64,
}

/// Measurements of a path.
#[derive(Default)]
pub(crate) struct PathSlot {
    pub latency: SharedLatencies,
    pub misses: AtomicU64,
}

/// Present state of an operator. Edges have their numbers in the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Doing {
    #[default]
    NotStarted,
    /// The operator has work, and will be stepped.
    Ready,
    AwaitsMessage(u32),
    AwaitsRoom(u32),
    AwaitsTime,
    AwaitsDescriptor,
    AwaitsChunk,
    /// Waits for one of its conditions beyond messages and room, by place among these.
    AwaitsCondition(u32),
    /// Waits for something that its step did not say.
    Awaits,
    Paused,
    /// Has failed, and will be restarted after a delay.
    Restarts,
    Done,
    /// Has failed; the run continues without the operator.
    Isolated,
}

impl Doing {
    const WORDS: [Doing; 13] = [
        Doing::NotStarted,
        Doing::Ready,
        Doing::AwaitsMessage(0),
        Doing::AwaitsRoom(0),
        Doing::AwaitsTime,
        Doing::AwaitsDescriptor,
        Doing::AwaitsChunk,
        Doing::AwaitsCondition(0),
        Doing::Awaits,
        Doing::Paused,
        Doing::Restarts,
        Doing::Done,
        Doing::Isolated,
    ];

    fn pack(self) -> u64 {
        let edge = match self {
            Doing::AwaitsMessage(edge) | Doing::AwaitsRoom(edge) => edge,
            Doing::AwaitsCondition(place) => place,
            _ => 0,
        };
        let same = |word: &Doing| std::mem::discriminant(word) == std::mem::discriminant(&self);
        let word = Self::WORDS.iter().position(same).unwrap_or(0);
        (word as u64) << 32 | u64::from(edge)
    }

    fn unpack(word: u64) -> Self {
        let edge = word as u32;
        match Self::WORDS.get((word >> 32) as usize).copied().unwrap_or_default() {
            Doing::AwaitsMessage(_) => Doing::AwaitsMessage(edge),
            Doing::AwaitsRoom(_) => Doing::AwaitsRoom(edge),
            Doing::AwaitsCondition(_) => Doing::AwaitsCondition(edge),
            other => other,
        }
    }
}

impl OperatorSlot {
    pub fn set(&self, steps: u64, doing: Doing) {
        self.steps.store(steps, Ordering::Relaxed);
        self.doing.store(doing.pack(), Ordering::Relaxed);
    }

    pub fn set_conditions(&self, texts: Vec<String>) {
        // Each part is bound once.
        let _ = self.conditions.set(texts);
    }

    /// Text of the condition at this place.
    pub fn condition(&self, place: u32) -> String {
        let text = self.conditions.get().and_then(|texts| texts.get(place as usize));
        text.cloned().unwrap_or_else(|| "its conditions (`when`)".to_string())
    }

    pub fn doing(&self) -> Doing {
        Doing::unpack(self.doing.load(Ordering::Relaxed))
    }
}

impl Board {
    pub fn new(parts: usize, operators: usize, edges: usize, paths: usize) -> Self {
        Board {
            requested: AtomicU64::new(0),
            parts: (0..parts).map(|_| Arc::default()).collect(),
            operators: (0..operators).map(|_| CachePadded::default()).collect(),
            edges: (0..edges).map(|_| CachePadded::default()).collect(),
            paths: (0..paths).map(|_| PathSlot::default()).collect(),
            open: AtomicU32::new(parts as u32),
        }
    }

    /// Requests a snapshot of all parts, which the caller wakes afterwards. Returns its number.
    pub fn request(&self) -> u64 {
        let snapshot = self.requested.fetch_add(1, Ordering::Relaxed) + 1;
        (0..self.parts.len()).for_each(|part| self.call(part));
        snapshot
    }

    /// Like [`request`](Board::request), for one part.
    pub fn request_one(&self, part: usize) -> u64 {
        let snapshot = self.requested.fetch_add(1, Ordering::Relaxed) + 1;
        self.call(part);
        snapshot
    }

    /// Flags a request to this part, which the caller wakes afterwards.
    pub fn call(&self, part: usize) {
        self.parts[part].answers.called.store(true, Ordering::Relaxed);
    }

    /// Clears that flag. By the part, before it reads requests.
    pub fn take_call(&self, part: usize) {
        self.parts[part].answers.called.store(false, Ordering::Relaxed);
    }

    /// Whether a request to this part is flagged.
    #[inline]
    pub fn is_called(&self, part: usize) -> bool {
        self.parts[part].answers.called.load(Ordering::Relaxed)
    }

    /// Number of the snapshot that this part has not published yet.
    pub fn requested(&self, part: usize) -> Option<u64> {
        let requested = self.requested.load(Ordering::Relaxed);
        (requested > self.parts[part].answers.answered.load(Ordering::Relaxed)).then_some(requested)
    }

    /// Notes that the part has published a snapshot.
    pub fn answer(&self, part: usize, snapshot: u64) {
        // Release: pairs with the Acquire in `has_answered`. The part may have been given up and closed
        // meanwhile.
        let _ =
            self.parts[part].answers.answered.fetch_update(Ordering::Release, Ordering::Relaxed, |last| {
                (last != u64::MAX).then_some(snapshot)
            });
    }

    /// Notes that the part will publish no more snapshots.
    pub fn close(&self, part: usize) {
        // AcqRel: the Release pairs with the Acquire in `has_answered`.
        if self.parts[part].answers.answered.swap(u64::MAX, Ordering::AcqRel) != u64::MAX {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub fn is_part_closed(&self, part: usize) -> bool {
        self.has_answered(part, u64::MAX)
    }

    /// Whether all parts are over.
    pub fn is_closed(&self) -> bool {
        self.open.load(Ordering::Relaxed) == 0
    }

    /// Whether the part has published this snapshot or a later one.
    pub fn has_answered(&self, part: usize, snapshot: u64) -> bool {
        // Acquire: pairs with the Release in `answer` and `close`.
        self.parts[part].answers.answered.load(Ordering::Acquire) >= snapshot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_an_operator_is_one_word() {
        for word in Doing::WORDS.into_iter().chain([Doing::AwaitsMessage(7), Doing::AwaitsRoom(u32::MAX)]) {
            assert_eq!(Doing::unpack(word.pack()), word);
        }
    }
}
