//! A picture of the run for whoever asks for one. It is painted only then: a part that is asked copies its counters here
//! between two steps, so that watching costs nothing while nobody watches.

use super::recent::Shown;
use crate::base::slot::PartSlot;
use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// What every part has painted last.
pub(crate) struct Board {
    /// How often a picture was asked for.
    asked: AtomicU64,
    pub parts: Box<[Arc<PartSlot>]>,
    /// By operator of the plan.
    pub operators: Box<[CachePadded<OperatorSlot>]>,
    /// By edge of the plan.
    pub edges: Box<[CachePadded<EdgeSlot>]>,
    /// By path of the plan.
    pub paths: Box<[PathSlot]>,
    /// Parts that are not over.
    open: AtomicU32,
}

/// Fields are Relaxed: [`Board::answer`] publishes them.
#[derive(Default)]
pub(crate) struct OperatorSlot {
    pub steps: AtomicU64,
    /// Time in them.
    pub busy_ns: AtomicU64,
    /// Steps that ended after the deadline.
    pub late: AtomicU64,
    doing: AtomicU64,
    /// What its conditions wait for, in words. Set before the first step.
    conditions: OnceLock<Vec<String>>,
}

/// The two ends of an edge may lie with different parts.
#[derive(Default)]
pub(crate) struct EdgeSlot {
    /// Messages that its producer has sent.
    pub sent: AtomicU64,
    /// Those of them that its consumer has to take, and those that it has taken; where both ends are here: what is in it, and 0.
    pub put: AtomicU64,
    pub taken: AtomicU64,
    pub dropped: AtomicU64,
}

/// What a path has measured.
#[derive(Default)]
pub(crate) struct PathSlot {
    pub latency: Shown,
    pub misses: AtomicU64,
}

/// What an operator does at the moment. Edges are those of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Doing {
    #[default]
    NotStarted,
    /// It has work, and its turn comes.
    Ready,
    AwaitsMessage(u32),
    AwaitsRoom(u32),
    AwaitsTime,
    AwaitsChunk,
    /// One of those that it has beside the usual ones, by its place among them.
    AwaitsCondition(u32),
    /// Something that its step did not say.
    Awaits,
    Paused,
    /// It has failed, and is started anew in a while.
    Restarts,
    Done,
    /// It has failed, and the run goes on without it.
    Isolated,
}

impl Doing {
    const WORDS: [Doing; 12] = [
        Doing::NotStarted,
        Doing::Ready,
        Doing::AwaitsMessage(0),
        Doing::AwaitsRoom(0),
        Doing::AwaitsTime,
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

    /// What the condition at this place waits for.
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
            asked: AtomicU64::new(0),
            parts: (0..parts).map(|_| Arc::default()).collect(),
            operators: (0..operators).map(|_| CachePadded::default()).collect(),
            edges: (0..edges).map(|_| CachePadded::default()).collect(),
            paths: (0..paths).map(|_| PathSlot::default()).collect(),
            open: AtomicU32::new(parts as u32),
        }
    }

    /// Asks all parts, which the caller wakes then. Gives the number of the picture.
    pub fn ask(&self) -> u64 {
        let picture = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        (0..self.parts.len()).for_each(|part| self.call(part));
        picture
    }

    /// As [`ask`](Board::ask), of one part.
    pub fn ask_one(&self, part: usize) -> u64 {
        let picture = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        self.call(part);
        picture
    }

    /// Something is asked of this part, which the caller wakes then.
    pub fn call(&self, part: usize) {
        self.parts[part].answers.called.store(true, Ordering::Relaxed);
    }

    /// The part looks at what is asked of it.
    pub fn hear(&self, part: usize) {
        self.parts[part].answers.called.store(false, Ordering::Relaxed);
    }

    #[inline]
    pub fn is_called(&self, part: usize) -> bool {
        self.parts[part].answers.called.load(Ordering::Relaxed)
    }

    /// The picture that this part still has to paint.
    pub fn is_asked(&self, part: usize) -> Option<u64> {
        let asked = self.asked.load(Ordering::Relaxed);
        (asked > self.parts[part].answers.answered.load(Ordering::Relaxed)).then_some(asked)
    }

    /// The part has painted.
    pub fn answer(&self, part: usize, picture: u64) {
        // Release, partner: `has_answered`.
        // It may have been closed meanwhile by somebody who has given it up.
        let _ =
            self.parts[part].answers.answered.fetch_update(Ordering::Release, Ordering::Relaxed, |last| {
                (last != u64::MAX).then_some(picture)
            });
    }

    /// The part has painted for the last time, or will never again.
    pub fn close(&self, part: usize) {
        // AcqRel, partner: `has_answered`.
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

    pub fn has_answered(&self, part: usize, picture: u64) -> bool {
        // Acquire, partner: `answer`.
        self.parts[part].answers.answered.load(Ordering::Acquire) >= picture
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_operator_does_is_one_word() {
        for word in Doing::WORDS.into_iter().chain([Doing::AwaitsMessage(7), Doing::AwaitsRoom(u32::MAX)]) {
            assert_eq!(Doing::unpack(word.pack()), word);
        }
    }
}
