//! Threads of the workers: spawned first, then given their parts.

use crate::engine::control::Control;
use crate::operator::chunk::Info;
use crate::plan::Plan;
use crate::run::bind::{BoundPart, ThreadSeat};
use crate::run::life::{self, ThreadStart};
use crate::run::record::ThreadReport;
use crate::run::{RunError, rights};
use onbeat_queue::Seed;
use onbeat_trace::record::Obtained;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;

/// Spawned threads of the workers, by worker. Each waits for its [`ThreadStart`].
#[derive(Default)]
pub(super) struct Threads {
    pub handles: Vec<JoinHandle<ThreadReport>>,
    starts: Vec<SyncSender<ThreadStart>>,
    settings: Vec<Receiver<Vec<Obtained>>>,
}

impl Threads {
    /// Spawns one thread per worker.
    ///
    /// # Errors
    /// [`RunError::Begin`] if a thread cannot be started. The threads spawned before it end, because the
    /// senders that they wait for are dropped.
    pub fn spawn(plan: &Arc<Plan>, control: &Arc<Control>) -> Result<Self, RunError> {
        let mut threads = Threads::default();
        for worker in &plan.workers {
            let (start, wait) = mpsc::sync_channel::<ThreadStart>(1);
            let (plan, control) = (Arc::clone(plan), Arc::clone(control));
            let (report, settings) = mpsc::channel();
            threads.settings.push(settings);
            let departure = Departure { control, worker: threads.handles.len() };
            let main = move || match wait.recv() {
                Ok(start) => {
                    // The starting thread waits for this list, unless it has failed meanwhile.
                    let _ = report.send(rights::take(start.worker, &plan, &departure.control));
                    life::live(start, &plan, &departure.control)
                }
                // Another thread could not be started: the run does not begin.
                Err(mpsc::RecvError) => ThreadReport::default(),
            };
            let handle = onbeat_os::thread::spawn(&worker.name, main).map_err(|error| {
                RunError::Begin(format!("cannot start the thread `{}`: {error}", worker.name))
            })?;
            threads.handles.push(handle);
            threads.starts.push(start);
        }
        Ok(threads)
    }

    /// Gives each thread its parts, by worker. They begin at once.
    pub fn begin(&mut self, starts: Vec<ThreadStart>) {
        for (sender, start) in self.starts.drain(..).zip(starts) {
            // The thread waits for exactly this message.
            let _ = sender.send(start);
        }
    }

    /// Waits until each thread has applied its settings, and returns what they obtained, by worker.
    pub fn obtained(&mut self) -> impl Iterator<Item = Obtained> {
        self.settings.drain(..).flat_map(|settings| settings.recv().unwrap_or_default())
    }
}

/// Distributes the parts of each pool over its workers.
pub(super) fn distribute(
    plan: &Plan,
    seats: Vec<ThreadSeat>,
    parts: Vec<BoundPart>,
    seeds: Vec<Vec<Seed<Info>>>,
) -> Vec<ThreadStart> {
    let any_shares = seats.iter().any(|(_, pool)| pool.is_some());
    let mut starts: Vec<ThreadStart> = seats
        .into_iter()
        .enumerate()
        .map(|(worker, (parker, pool))| ThreadStart { worker, parker, pool, any_shares, parts: Vec::new() })
        .collect();
    let in_pool = |pool| plan.parts.iter().filter(|part| part.pool == pool).count();
    let counts: Vec<usize> = (0..plan.pools.len()).map(in_pool).collect();
    for ((part, seeds), at) in parts.into_iter().zip(seeds).zip(&plan.parts) {
        // Neighbours in the graph begin on one thread.
        let workers = &plan.pools[at.pool].workers;
        let worker = workers[part.place as usize * workers.len() / counts[at.pool]];
        starts[worker].parts.push((part, seeds));
    }
    starts
}

/// Guard of a worker's thread: leaves the barrier when the thread ends, by a panic too.
struct Departure {
    control: Arc<Control>,
    worker: usize,
}

impl Drop for Departure {
    fn drop(&mut self) {
        self.control.barrier.leave(self.worker);
    }
}
