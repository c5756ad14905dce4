//! Bursts of items, and the latency of a sleeping worker.

use super::design::Design;
use super::load::LoadFigures;
use super::model::{self, Model};
use super::place::{self, ThreadCores};
use super::settings::QueueSettings;
use crate::BenchError;
use onbeat::work_queue::{Shared, Turn};
use onbeat::{Idle, WorkQueue};
use onbeat_os::latency::DmaLatency;
use onbeat_os::policy::PolicyFlags;
use onbeat_os::{Policy, Usage, clock};
use onbeat_queue::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, PoisonError};

/// Queue whose worker sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SleepingQueue {
    Model(model::ModelKind),
    Ours(Idle),
    /// All items of a burst in one call.
    OursMany,
}

impl SleepingQueue {
    pub fn of(design: Design) -> Option<SleepingQueue> {
        match design {
            Design::Before => Some(SleepingQueue::Model(model::ModelKind::Before)),
            Design::After => Some(SleepingQueue::Model(model::ModelKind::After)),
            Design::Slots => Some(SleepingQueue::Ours(Idle::Park)),
            // For bursts, a worker that spins for a limited time replaces the spinning one.
            Design::SlotsSpin => Some(SleepingQueue::Ours(SPIN_FOR)),
            Design::Many => Some(SleepingQueue::OursMany),
            _ => None,
        }
    }
}

/// Longer than a burst, and shorter than the pause after it.
const SPIN_FOR: Idle = Idle::SpinFor(20_000);

type Run = Arc<dyn Fn(usize) + Send + Sync>;

type Item = Shared<Box<dyn Fn(&Turn<'_>) + Send + Sync>>;

/// A queue with its items.
#[expect(clippy::large_enum_variant, reason = "only one exists at a time")]
enum Queue {
    Model(Model<Box<dyn Fn(usize) + Send + Sync>>),
    Ours(WorkQueue, Vec<Item>),
}

/// Reason why the worker did not get a requested setting.
type RefusedSetting = Arc<Mutex<Option<String>>>;

impl Queue {
    fn start(
        kind: SleepingQueue,
        items: usize,
        policy: Option<Policy>,
        place: &ThreadCores,
        run: &Run,
    ) -> Result<(Queue, RefusedSetting), BenchError> {
        let refused: RefusedSetting = Arc::default();
        let system = |error| BenchError::System { what: "thread for a worker", error };
        let queue = match kind {
            SleepingQueue::Model(kind) => {
                let (own, reason, cores) = (run.clone(), refused.clone(), place.worker());
                let run: Box<dyn Fn(usize) + Send + Sync> = Box::new(move |item| own(item));
                let prepare = move || {
                    place::go(cores.as_ref());
                    let error = policy.and_then(|policy| policy.set(PolicyFlags::default()).err());
                    *reason.lock().unwrap_or_else(PoisonError::into_inner) =
                        error.map(|error| error.to_string());
                };
                Queue::Model(Model::start(kind, items, run, prepare).map_err(system)?)
            }
            SleepingQueue::Ours(_) | SleepingQueue::OursMany => {
                let idle = if let SleepingQueue::Ours(idle) = kind { idle } else { Idle::Park };
                // Spinning lasts only a fraction of a second.
                let settings = WorkQueue::named("bench-queue").idle(idle).spin_for_ever();
                let settings = match place.worker() {
                    Some(cores) => settings.cores(cores),
                    None => settings,
                };
                let settings = match policy {
                    Some(policy) => settings.policy(policy),
                    None => settings,
                };
                let queue = settings.start().map_err(|error| BenchError::Settings(error.to_string()))?;
                let reason = queue.obtained().into_iter().find_map(|setting| setting.reason);
                *refused.lock().unwrap_or_else(PoisonError::into_inner) = reason;
                let item = |at| {
                    let run = run.clone();
                    Shared::new(Box::new(move |_: &Turn<'_>| run(at)) as Box<dyn Fn(&Turn<'_>) + Send + Sync>)
                };
                Queue::Ours(queue, (0..items).map(item).collect())
            }
        };
        Ok((queue, refused))
    }

    #[inline]
    fn schedule(&self, item: usize) {
        match self {
            Queue::Model(model) => model.schedule(item),
            Queue::Ours(queue, items) => queue.schedule(&items[item]),
        };
    }

    /// Schedules all items: each separately, or all in one call.
    fn schedule_all(&self, kind: SleepingQueue) {
        match self {
            Queue::Ours(queue, items) if kind == SleepingQueue::OursMany => {
                queue.schedule_many(items);
            }
            Queue::Ours(_, items) => (0..items.len()).for_each(|item| self.schedule(item)),
            Queue::Model(model) => (0..model.items()).for_each(|item| self.schedule(item)),
        }
    }
}

/// Schedules bursts of items at a fixed period. Times are per item, `sleeps` is per burst.
pub fn bursts(
    kind: SleepingQueue,
    settings: &QueueSettings,
    place: &ThreadCores,
) -> Result<LoadFigures, BenchError> {
    let all = (settings.bursts * settings.burst_items) as u64;
    let (ran, switches) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let run: Run = {
        let (ran, switches) = (ran.clone(), switches.clone());
        Arc::new(move |_| {
            let before = ran.fetch_add(1, Release);
            if before == 0 {
                switches.store(voluntary(), Relaxed);
            }
            if before + 1 == all {
                // Between the first item and the last, the worker has slept once less than there are bursts.
                switches.store(voluntary() - switches.load(Relaxed) + 1, Relaxed);
            }
        })
    };
    let _away = place.go_to_producers();
    let (queue, _) = Queue::start(kind, settings.burst_items, None, place, &run)?;
    let (begin_ns, cpu_ns) = (clock::monotonic_ns(), clock::process_cpu_ns());
    for burst in 0..settings.bursts as u64 {
        clock::sleep_until(begin_ns + (burst + 1) * settings.burst_period_ns);
        // Items must not be pending from the previous burst. They only are if another program took the core.
        while ran.load(Acquire) < burst * settings.burst_items as u64 {
            clock::sleep_until(clock::monotonic_ns() + 50_000);
        }
        queue.schedule_all(kind);
    }
    while ran.load(Acquire) < all {
        clock::sleep_until(clock::monotonic_ns() + 50_000);
    }
    let (wall_ns, cpu_ns) = (clock::monotonic_ns() - begin_ns, clock::process_cpu_ns() - cpu_ns);
    // Stops the worker, so that its count is available.
    drop(queue);
    Ok(LoadFigures {
        ns: wall_ns as f64 / all as f64,
        cpu_ns: cpu_ns as f64 / all as f64,
        sleeps: switches.load(Relaxed) as f64 / settings.bursts as f64,
    })
}

fn voluntary() -> u64 {
    Usage::of_thread().map_or(0, |usage| usage.voluntary_switches)
}

/// Latencies with one way to wait.
#[derive(Debug, Clone)]
pub struct WakeLatencies {
    /// Name in figures.
    pub name: String,
    pub ns: Vec<f64>,
}

/// Measures each way to wait: from before the call of schedule to the first instruction of the callback.
pub fn latencies(
    settings: &QueueSettings,
    place: &ThreadCores,
    notes: &mut Vec<String>,
) -> Result<Vec<WakeLatencies>, BenchError> {
    let kinds = [
        ("model_before", SleepingQueue::Model(model::ModelKind::Before)),
        ("model_after", SleepingQueue::Model(model::ModelKind::After)),
        ("onbeat_park", SleepingQueue::Ours(Idle::Park)),
        ("onbeat_spin", SleepingQueue::Ours(Idle::Spin)),
    ];
    let mut all = Vec::new();
    for dma in ["dma_any", "dma_0"] {
        let held = match (dma, DmaLatency::hold(0)) {
            ("dma_0", Err(error)) => {
                notes.push(format!("dma latency 0: {error}"));
                continue;
            }
            ("dma_0", Ok(held)) => Some(held),
            _ => None,
        };
        for (name, policy) in [("plain", None), ("fifo", Some(Policy::Fifo(10)))] {
            // The ways to wait alternate, each measured in several parts.
            const PARTS: usize = 10;
            let mut found: Vec<WakeLatencies> = Vec::new();
            for _ in 0..PARTS {
                for (design, kind) in kinds {
                    let (ns, refused) = late(kind, policy, place, settings.latencies.div_ceil(PARTS))?;
                    if let Some(reason) = refused {
                        let note = format!("latency with policy f:10: {reason}");
                        if !notes.contains(&note) {
                            notes.push(note);
                        }
                        continue;
                    }
                    let name = format!("{name}.{dma}.{design}");
                    match found.iter_mut().find(|late| late.name == name) {
                        Some(late) => late.ns.extend(ns),
                        None => found.push(WakeLatencies { name, ns }),
                    }
                }
            }
            all.extend(found);
        }
        drop(held);
    }
    Ok(all)
}

fn late(
    kind: SleepingQueue,
    policy: Option<Policy>,
    place: &ThreadCores,
    attempts: usize,
) -> Result<(Vec<f64>, Option<String>), BenchError> {
    /// Long enough for the worker to sleep and for its core to idle.
    const PAUSE_NS: u64 = 300_000;
    let _away = place.go_to_producers();
    let at_ns = Arc::new(AtomicU64::new(0));
    let run: Run = {
        let at_ns = at_ns.clone();
        Arc::new(move |_| at_ns.store(clock::monotonic_ns(), Release))
    };
    let (queue, refused) = Queue::start(kind, 1, policy, place, &run)?;
    let mut found = Vec::with_capacity(attempts);
    for attempt in 0..attempts + 3 {
        clock::sleep_until(clock::monotonic_ns() + PAUSE_NS);
        at_ns.store(0, Relaxed);
        let begin_ns = clock::monotonic_ns();
        queue.schedule(0);
        let mut ran_ns = at_ns.load(Acquire);
        while ran_ns == 0 {
            clock::sleep_until(clock::monotonic_ns() + 20_000);
            ran_ns = at_ns.load(Acquire);
        }
        // The first measurements warm the caches.
        if attempt >= 3 {
            found.push(ran_ns.saturating_sub(begin_ns) as f64);
        }
    }
    drop(queue);
    let refused = refused.lock().unwrap_or_else(PoisonError::into_inner).take();
    Ok((found, refused))
}
