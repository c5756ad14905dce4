//! The work queue: a thread that runs what any thread schedules.
//!
//! | file | what |
//! |---|---|
//! | `settings` | how its thread is to be, before there is one |
//! | `worker` | what the thread does |
//! | `error` | what can go wrong |
//!
//! The lock-free part is [`onbeat_queue::QueueCore`].

mod error;
mod settings;
mod worker;

pub use error::WorkQueueError;
pub use onbeat_os::{CoreSet, Policy};
pub use onbeat_queue::{Item, Owned, Ready, Scope, Shared, Turn};
pub use settings::WorkQueueSettings;
pub use worker::Waker;

use crate::trace::record::Obtained;
use onbeat_os::Parker;
use onbeat_queue::QueueCore;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use worker::{Panics, Rest};

/// A thread with a name, and the items that any thread schedules for it: what a work queue of the kernel is.
///
/// - [`schedule`](WorkQueue::schedule) neither allocates, blocks nor waits for anybody. **True**: queued by
///   this call; it runs once for it. **False**: pending already, here or on any other queue, or this queue is
///   stopped. When an item is pending already, its coming run sees all that the caller wrote before: no event
///   is lost.
/// - Pending ends just *before* the callback, so an item may be scheduled again while it runs, by itself as
///   well ([`Turn::again`]), and the queue is done with it: a callback may drop its own item.
/// - One worker runs everything: what one thread has scheduled, in that order. With
///   [`fifo`](WorkQueueSettings::fifo) there is one order for all threads.
/// - The worker is woken by the first item that comes while it sleeps, and by no other; it runs all there is
///   in one pass.
///
/// # Who has an item while it is pending
///
/// A queue that was not set up cannot be scheduled on, for there is none: [`start`](WorkQueueSettings::start)
/// gives it with its thread. And an item that is pending cannot be moved or dropped behind the queue's back,
/// whichever kind it is:
///
/// | kind | scheduled by | while it is pending or runs |
/// |---|---|---|
/// | [`Item`] | `queue.schedule(&ITEM)`, a `&'static` | it lives for ever |
/// | [`Item`] | [`scope`](WorkQueue::scope), a plain reference | it is borrowed, and the scope does not end before its last run |
/// | [`Shared`] | `queue.schedule(&shared)` | the queue has a share: the caller may drop the last other one at any time, the run takes place all the same |
/// | [`Owned`] | [`schedule_owned`](WorkQueue::schedule_owned) | it is the queue's; its callback gets it back |
///
/// ```
/// use onbeat::WorkQueue;
/// use onbeat::work_queue::{Item, Owned, Shared};
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// let queue = WorkQueue::named("sums").start()?;
/// let sum = AtomicU32::new(0);
/// let item = Item::new(|turn| {
///     if sum.fetch_add(1, Ordering::Relaxed) < 9 {
///         assert!(turn.again());
///     }
/// });
/// queue.scope(|scope| {
///     assert!(scope.schedule(&item));
///     while sum.load(Ordering::Relaxed) < 10 {
///         std::thread::yield_now();
///     }
/// })?;
/// queue.schedule_owned(Owned::new(vec![1, 2, 3], |numbers, _| assert_eq!(numbers.len(), 3))).unwrap();
/// queue.flush()?;
/// queue.stop()?;
/// assert!(!queue.schedule(&Shared::new(|_| ())), "it is stopped");
/// # Ok::<(), onbeat::work_queue::WorkQueueError>(())
/// ```
///
/// To drop a queue is to stop it.
pub struct WorkQueue {
    queue: Arc<QueueCore<Waker>>,
    settings: WorkQueueSettings,
    /// Held while a thread is started or stopped. Callbacks may run meanwhile, and never take it.
    change: Mutex<()>,
    life: Mutex<Life>,
    /// What the thread needs, while there is none.
    rest: Arc<Mutex<Option<Rest>>>,
    panics: Arc<Panics>,
}

struct Life {
    thread: Option<JoinHandle<()>>,
    obtained: Vec<Obtained>,
}

/// Without what a holder of the lock that has panicked was about to do: it only takes and puts whole values.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WorkQueue {
    /// The settings of a queue whose thread has this name, of 15 bytes at most;
    /// [`start`](WorkQueueSettings::start) starts it.
    #[must_use]
    pub fn named(name: impl Into<String>) -> WorkQueueSettings {
        WorkQueueSettings::new(name.into())
    }

    fn start_with(settings: WorkQueueSettings) -> Result<Self, WorkQueueError> {
        let rest = Rest::new();
        let slots = if settings.is_fifo { 1 } else { settings::SLOTS };
        let queue = Arc::new(QueueCore::new(&rest.owner, slots, rest.waker()));
        let queue = WorkQueue {
            queue,
            settings,
            change: Mutex::new(()),
            life: Mutex::new(Life { thread: None, obtained: Vec::new() }),
            rest: Arc::new(Mutex::new(Some(rest))),
            panics: Arc::default(),
        };
        queue.start()?;
        Ok(queue)
    }

    /// Starts a queue that was stopped, with a new thread. Nothing happens to one that runs.
    ///
    /// # Errors
    /// As [`WorkQueueSettings::start`]; it is stopped then.
    pub fn start(&self) -> Result<(), WorkQueueError> {
        if self.queue.is_running_here() {
            return Ok(());
        }
        let _change = lock(&self.change);
        if !self.is_running() {
            let (thread, obtained) = worker::start(&self.settings, &self.queue, &self.rest, &self.panics)?;
            *lock(&self.life) = Life { thread: Some(thread), obtained };
        }
        Ok(())
    }

    /// Schedules an item, from any thread: a `&'static` [`Item`], or a reference to a [`Shared`]. False when
    /// it is pending already, on any queue, or this queue is stopped.
    ///
    /// Everything that the caller did before is visible to the run that follows, whosever call it was that
    /// queued it.
    #[inline]
    pub fn schedule(&self, item: impl Ready) -> bool {
        self.queue.schedule(item)
    }

    /// Schedules several items with one access to the queue, in their order, and says how many were queued:
    /// those that are pending already are left out.
    #[inline]
    pub fn schedule_many<R: Ready>(&self, items: impl IntoIterator<Item = R>) -> usize {
        self.queue.schedule_many(items)
    }

    /// Schedules an item for good: its callback gets it.
    ///
    /// # Errors
    /// The item, when the queue is stopped.
    #[inline]
    pub fn schedule_owned<T: Send + 'static>(&self, item: Box<Owned<T>>) -> Result<(), Box<Owned<T>>> {
        self.queue.schedule_owned(item)
    }

    /// As [`schedule_owned`](WorkQueue::schedule_owned) for several, with one access to the queue, in their
    /// order.
    ///
    /// # Errors
    /// The items, in their order, when the queue is stopped.
    #[inline]
    pub fn schedule_owned_many<T: Send + 'static>(
        &self,
        items: impl IntoIterator<Item = Box<Owned<T>>>,
    ) -> Result<usize, Vec<Box<Owned<T>>>> {
        self.queue.schedule_owned_many(items)
    }

    /// Waits until everything has run that was scheduled before, and everything that those runs schedule. Any
    /// number of threads may do so at once.
    ///
    /// # Errors
    /// [`WorkQueueError::OnWorker`] in a callback of this queue: it would wait for itself.
    pub fn flush(&self) -> Result<(), WorkQueueError> {
        let parker = Parker::new();
        let flushed = self.queue.flush(Waker::new(parker.unparker()), || parker.park());
        flushed.map_err(|_| self.on_worker("flush"))
    }

    /// Calls `act` with a scope, in which items may be scheduled that live only until it ends. The end waits,
    /// as [`flush`](WorkQueue::flush) does; a callback that asks for another run from then on is refused.
    ///
    /// # Errors
    /// [`WorkQueueError::OnWorker`] in a callback of this queue; `act` is not called then.
    pub fn scope<'env, R>(
        &'env self,
        act: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env, Waker>) -> R,
    ) -> Result<R, WorkQueueError> {
        let parker = Parker::new();
        let scoped = self.queue.scope(Waker::new(parker.unparker()), || parker.park(), act);
        scoped.map_err(|_| self.on_worker("scope"))
    }

    /// Flushes, refuses everything from then on, and ends the thread. Every true that was given has had its
    /// run. A second stop does nothing; [`start`](WorkQueue::start) goes on.
    ///
    /// # Errors
    /// [`WorkQueueError::OnWorker`] in a callback of this queue; it goes on then.
    /// [`WorkQueueError::Panicked`] when callbacks have panicked since the start; it is stopped all the same.
    pub fn stop(&self) -> Result<(), WorkQueueError> {
        if self.queue.is_running_here() {
            return Err(self.on_worker("stop"));
        }
        let _change = lock(&self.change);
        if !self.is_running() {
            return Ok(());
        }
        self.flush()?;
        self.queue.ask_to_close();
        let Some(thread) = lock(&self.life).thread.take() else { return Ok(()) };
        // The worker catches what its callbacks throw, and has nothing of its own to throw.
        let joined = thread.join();
        match self.panics.take() {
            None if joined.is_ok() => Ok(()),
            found => {
                let (count, message) = found.unwrap_or((1, "the worker itself".to_owned()));
                Err(WorkQueueError::Panicked { queue: self.settings.name.clone(), count, message })
            }
        }
    }

    /// Whether it has a thread. A hint: another thread may stop or start it at any time.
    #[must_use]
    pub fn is_running(&self) -> bool {
        lock(&self.life).thread.is_some()
    }

    /// Whether nothing waits to be run. A hint, and cheap.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// How often callbacks have panicked since the last start or stop.
    #[must_use]
    pub fn panics(&self) -> u64 {
        self.panics.count()
    }

    /// Each setting that was asked for, with what the machine gave for it and why.
    #[must_use]
    pub fn obtained(&self) -> Vec<Obtained> {
        lock(&self.life).obtained.clone()
    }

    /// How it is set up.
    #[must_use]
    pub fn settings(&self) -> &WorkQueueSettings {
        &self.settings
    }

    #[cold]
    fn on_worker(&self, what: &'static str) -> WorkQueueError {
        WorkQueueError::OnWorker { queue: self.settings.name.clone(), what }
    }
}

/// Stops it. In a callback of its own it cannot wait: then the thread runs what was promised and ends by
/// itself.
impl Drop for WorkQueue {
    fn drop(&mut self) {
        if self.queue.is_running_here() {
            self.queue.ask_to_close();
        } else {
            // A panic of a callback was printed when it happened; who wants to know more calls `stop`.
            let _ = self.stop();
        }
    }
}

impl fmt::Debug for WorkQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WorkQueue({})", self.settings.name)
    }
}
