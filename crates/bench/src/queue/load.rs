//! Throughput: producers at full speed.

use super::design::Design;
use super::model::{Model, ModelKind};
use super::place::{self, ThreadCores};
use crate::BenchError;
use onbeat::work_queue::{Item, Owned, Shared, Turn};
use onbeat::{Idle, WorkQueue};
use onbeat_os::{Usage, clock};
use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::cell::RefCell;
use std::sync::{Barrier, mpsc};
use std::time::Duration;

/// Items scheduled with one access, by the designs that can.
pub const BATCH: usize = 16;

/// Common work of all items of a run: each adds one.
pub struct ItemWork {
    total: u64,
    ran: CachePadded<AtomicU64>,
    /// Voluntary switches of the worker at the first item.
    switches: AtomicU64,
    end_ns: AtomicU64,
}

impl ItemWork {
    /// Creates a counter that is never freed, because items of all kinds refer to it.
    pub fn leak(total: usize) -> &'static ItemWork {
        Box::leak(Box::new(ItemWork {
            total: total as u64,
            ran: CachePadded::default(),
            switches: AtomicU64::new(0),
            end_ns: AtomicU64::new(0),
        }))
    }

    /// Makes one locked add.
    #[inline(always)]
    pub fn add(&self) {
        let before = self.ran.fetch_add(1, Relaxed);
        if before == 0 {
            self.switches.store(voluntary(), Relaxed);
        }
        if before + 1 == self.total {
            self.finish();
        }
    }

    #[cold]
    fn finish(&self) {
        let now_ns = clock::monotonic_ns();
        self.switches.store(voluntary() - self.switches.load(Relaxed), Relaxed);
        // Release, partner: the Acquire in `wait`.
        self.end_ns.store(now_ns, Release);
    }

    /// Sleeps until all items have run. Returns the time of the last.
    fn wait(&self) -> u64 {
        loop {
            match self.end_ns.load(Acquire) {
                0 => std::thread::sleep(Duration::from_micros(200)),
                end_ns => return end_ns,
            }
        }
    }
}

fn voluntary() -> u64 {
    Usage::of_thread().map_or(0, |usage| usage.voluntary_switches)
}

/// Figures of one run.
#[derive(Debug, Clone, Copy)]
pub struct LoadFigures {
    /// Time per item.
    pub ns: f64,
    /// CPU time of all threads per item.
    pub cpu_ns: f64,
    /// Number of sleeps of the worker per item.
    pub sleeps: f64,
}

/// Runs all producers from a common start; `produce` gets the producer's number.
fn drive(
    work: &ItemWork,
    producers: usize,
    produce: impl Fn(usize) + Sync,
) -> Result<LoadFigures, BenchError> {
    let start = Barrier::new(producers + 1);
    let refused = |error| BenchError::System { what: "thread for a producer", error };
    let (mut begin_ns, mut cpu_ns) = (0, 0);
    std::thread::scope(|scope| {
        // If a thread cannot be started, the others would wait at the barrier for ever.
        let threads: Vec<_> = (0..producers)
            .map(|me| {
                let (start, produce) = (&start, &produce);
                let body = move || {
                    start.wait();
                    produce(me);
                };
                std::thread::Builder::new().name(format!("producer-{me}")).spawn_scoped(scope, body)
            })
            .collect();
        let missing = threads.iter().filter(|thread| thread.is_err()).count();
        (begin_ns, cpu_ns) = (clock::monotonic_ns(), clock::process_cpu_ns());
        for _ in 0..missing {
            // Stands in for the missing producer.
            let (start, produce) = (&start, &produce);
            scope.spawn(move || {
                start.wait();
                produce(usize::MAX);
            });
        }
        start.wait();
        threads.into_iter().find_map(Result::err).map_or(Ok(()), |error| Err(refused(error)))
    })?;
    let end_ns = work.wait();
    let items = work.total as f64;
    Ok(LoadFigures {
        ns: (end_ns - begin_ns) as f64 / items,
        cpu_ns: (clock::process_cpu_ns() - cpu_ns) as f64 / items,
        sleeps: work.switches.load(Relaxed) as f64 / items,
    })
}

thread_local! {
    /// Owned items that have run: freeing an item costs more than running it.
    #[expect(clippy::vec_box, reason = "the boxes are kept as they arrive")]
    static KEPT: RefCell<Vec<Box<Owned<&'static ItemWork>>>> = const { RefCell::new(Vec::new()) };
}

fn keep(item: Box<Owned<&'static ItemWork>>, _: &Turn<'_>) {
    item.add();
    KEPT.with_borrow_mut(|kept| kept.push(item));
}

fn queue(is_fifo: bool, idle: Idle, place: &ThreadCores) -> Result<WorkQueue, BenchError> {
    let settings = WorkQueue::named("bench-queue").idle(idle);
    let settings = if is_fifo { settings.fifo() } else { settings };
    let settings = match place.worker() {
        Some(cores) => settings.cores(cores),
        None => settings,
    };
    settings.start().map_err(|error| BenchError::Settings(error.to_string()))
}

/// Runs `design` with `producers`, each with its share of `items`.
pub fn run(
    design: Design,
    items: usize,
    producers: usize,
    place: &ThreadCores,
) -> Result<LoadFigures, BenchError> {
    let _away = place.go_to_producers();
    let each = items / producers;
    let work = ItemWork::leak(each * producers);
    let fifo = design == Design::Fifo;
    match design {
        Design::Before => model(ModelKind::Before, work, each, producers, place),
        Design::After => model(ModelKind::After, work, each, producers, place),
        Design::Slots | Design::SlotsSpin | Design::Fifo | Design::Many => {
            let idle = if design == Design::SlotsSpin { Idle::Spin } else { Idle::Park };
            let queue = queue(fifo, idle, place)?;
            let items: Vec<Vec<_>> = (0..producers)
                .map(|_| (0..each).map(|_| Item::new(move |_: &Turn| work.add())).collect())
                .collect();
            let driven = queue.scope(|scope| {
                drive(work, producers, |me| {
                    if design == Design::Many {
                        for batch in items[me].chunks(BATCH) {
                            scope.schedule_many(batch);
                        }
                    } else {
                        for item in &items[me] {
                            scope.schedule(item);
                        }
                    }
                })
            });
            driven.map_err(|error| BenchError::Settings(error.to_string()))?
        }
        Design::Shared => {
            let queue = queue(false, Idle::Park, place)?;
            let items: Vec<Vec<_>> = (0..producers)
                .map(|_| (0..each).map(|_| Shared::new(move |_: &Turn| work.add())).collect())
                .collect();
            drive(work, producers, |me| {
                for item in &items[me] {
                    queue.schedule(item);
                }
            })
        }
        Design::Owned | Design::OwnedMany => owned(design, work, each, producers, place),
        Design::StdMpsc => {
            let (send, receive) = mpsc::channel::<ChannelMessage>();
            channel(
                work,
                (each, producers),
                place,
                send,
                move || receive.recv().ok(),
                |send, message| send.send(message).is_ok(),
            )
        }
        Design::Crossbeam => {
            let (send, receive) = crossbeam_channel::unbounded::<ChannelMessage>();
            channel(
                work,
                (each, producers),
                place,
                send,
                move || receive.recv().ok(),
                |send, message| send.send(message).is_ok(),
            )
        }
    }
}

fn model(
    kind: ModelKind,
    work: &'static ItemWork,
    each: usize,
    producers: usize,
    place: &ThreadCores,
) -> Result<LoadFigures, BenchError> {
    let cores = place.worker();
    let prepare = move || place::go(cores.as_ref());
    let model = Model::start(kind, each * producers, move |_| work.add(), prepare)
        .map_err(|error| BenchError::System { what: "thread for a worker", error })?;
    drive(work, producers, |me| {
        for item in me * each..(me + 1) * each {
            model.schedule(item);
        }
    })
}

fn owned(
    design: Design,
    work: &'static ItemWork,
    each: usize,
    producers: usize,
    place: &ThreadCores,
) -> Result<LoadFigures, BenchError> {
    let queue = queue(false, Idle::Park, place)?;
    // Reserve room for all items before the clock runs.
    let room = each * producers;
    let reserve = Owned::new(room, |room, _| KEPT.with_borrow_mut(|kept| kept.reserve(**room)));
    let sent = queue.schedule_owned(reserve).is_ok();
    debug_assert!(sent, "the queue runs");
    let _ = queue.flush();
    let items: Vec<_> = (0..producers)
        .map(|_| std::sync::Mutex::new((0..each).map(|_| Owned::new(work, keep)).collect::<Vec<_>>()))
        .collect();
    let taken = drive(work, producers, |me| {
        let mine = std::mem::take(&mut *items[me].lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        if design == Design::Owned {
            for item in mine {
                // The queue runs until the end of this function.
                let _ = queue.schedule_owned(item);
            }
        } else {
            let mut mine = mine.into_iter().peekable();
            while mine.peek().is_some() {
                let _ = queue.schedule_owned_many(mine.by_ref().take(BATCH));
            }
        }
    });
    let _ = queue.stop();
    taken
}

/// A function and its argument, as in an item.
type ChannelMessage = (fn(&ItemWork), &'static ItemWork);

fn channel<S: Clone + Send + Sync>(
    work: &'static ItemWork,
    (each, producers): (usize, usize),
    place: &ThreadCores,
    send: S,
    receive: impl Fn() -> Option<ChannelMessage> + Send + 'static,
    put: impl Fn(&S, ChannelMessage) -> bool + Sync,
) -> Result<LoadFigures, BenchError> {
    let cores = place.worker();
    let worker = onbeat_os::thread::spawn("channel", move || {
        place::go(cores.as_ref());
        while let Some((run, work)) = receive() {
            run(work);
        }
    });
    let worker = worker.map_err(|error| BenchError::System { what: "thread for a worker", error })?;
    let run: fn(&ItemWork) = std::hint::black_box(ItemWork::add);
    let taken = drive(work, producers, |_| {
        let send = send.clone();
        for _ in 0..each {
            put(&send, (run, work));
        }
    });
    drop(send);
    let _ = worker.join();
    taken
}
