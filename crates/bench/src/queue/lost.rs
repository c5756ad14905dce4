//! A search for lost events: an item is scheduled just as the worker takes it off its list.
//!
//! The producer writes a number, schedules an item, and goes on. A call that finds the item pending relies on
//! the coming run to see the number. When the queue is idle, the last number of each item must have been
//! seen.

use super::model::{Model, ModelKind};
use crate::BenchError;
use onbeat::work_queue::{Item, Turn};
use onbeat::{Idle, WorkQueue};
use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// Result of one design.
#[derive(Debug, Clone)]
pub struct LostEvents {
    pub name: &'static str,
    pub rounds: u64,
    pub lost: u64,
    /// How often its list was corrupted.
    pub corrupted: u64,
}

const ITEMS: usize = 4;
const BURST: u64 = 12;

/// Per item: the last number that the producer wrote, and the last that a run has seen.
#[derive(Default)]
struct Events {
    written: [CachePadded<AtomicU64>; ITEMS],
    seen: [CachePadded<AtomicU64>; ITEMS],
}

impl Events {
    // Relaxed throughout: the queue must make the numbers visible, without any other help.
    #[inline]
    fn run(&self, item: usize) {
        self.seen[item].store(self.written[item].load(Relaxed), Relaxed);
    }

    /// Makes this many rounds. Returns the number of lost events. `settle` returns when nothing is pending.
    fn rounds(&self, rounds: u64, schedule: impl Fn(usize), settle: impl Fn()) -> u64 {
        let mut dice = 0x9e37_79b9_7f4a_7c15_u64;
        let (mut written, mut lost, mut made) = ([0; ITEMS], 0, 0);
        while made < rounds {
            for _ in 0..BURST {
                dice ^= dice << 13;
                dice ^= dice >> 7;
                dice ^= dice << 17;
                let item = dice as usize % ITEMS;
                written[item] += 1;
                self.written[item].store(written[item], Relaxed);
                schedule(item);
                made += 1;
            }
            let unseen = || (0..ITEMS).filter(|&item| self.seen[item].load(Relaxed) < written[item]).count();
            // Wait while the worker is busy: this keeps producer and worker close together.
            let mut polls = 0;
            while unseen() > 0 && polls < 200 {
                polls += 1;
                std::hint::spin_loop();
            }
            if unseen() > 0 {
                settle();
                lost += unseen() as u64;
            }
        }
        lost
    }
}

/// Makes this many rounds with each model and each variant of the work queue.
pub fn all(rounds: u64) -> Result<Vec<LostEvents>, BenchError> {
    let mut found = Vec::new();
    for (name, kind) in [("model_before", ModelKind::Before), ("model_after", ModelKind::After)] {
        let events = Arc::new(Events::default());
        let run = {
            let events = events.clone();
            move |item| events.run(item)
        };
        let model = Model::start(kind, ITEMS, run, || ());
        let model = model.map_err(|error| BenchError::System { what: "thread for a worker", error })?;
        let schedule = |item| {
            model.schedule(item);
        };
        let lost = events.rounds(rounds, schedule, || model.settle());
        found.push(LostEvents { name, rounds, lost, corrupted: model.corrupted() });
    }
    for (name, idle, is_fifo) in
        [("onbeat", Idle::Park, false), ("onbeat_spin", Idle::Spin, false), ("onbeat_fifo", Idle::Park, true)]
    {
        let settings = WorkQueue::named("bench-queue").idle(idle);
        let settings = if is_fifo { settings.fifo() } else { settings };
        let failed = |error: onbeat::work_queue::WorkQueueError| BenchError::Settings(error.to_string());
        let queue = settings.start().map_err(failed)?;
        let events = Events::default();
        let items: Vec<_> = (0..ITEMS)
            .map(|item| {
                Item::new({
                    let events = &events;
                    move |_: &Turn<'_>| events.run(item)
                })
            })
            .collect();
        let lost = queue.scope(|scope| {
            let schedule = |item: usize| {
                scope.schedule(&items[item]);
            };
            events.rounds(rounds, schedule, || {
                // This thread is not the worker, so the call cannot fail.
                let _ = queue.flush();
            })
        });
        found.push(LostEvents { name, rounds, lost: lost.map_err(failed)?, corrupted: 0 });
    }
    Ok(found)
}
