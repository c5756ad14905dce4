//! Work queue: a thread that runs items, which any thread can schedule.
//!
//! | file | contents |
//! |---|---|
//! | `settings` | settings of the thread |
//! | `worker` | the thread |
//! | `error` | errors |
//!
//! The lock-free part is [`onbeat_queue::QueueCore`].

mod error;
mod settings;
mod worker;

pub use error::WorkQueueError;
pub use onbeat_os::{CoreSet, Policy};
pub use onbeat_queue::{Item, Owned, Ready, Scope, Shared, Turn};
pub use settings::WorkQueueSettings;
pub use worker::QueueWaker;

use crate::trace::record::Obtained;
use onbeat_os::Parker;
use onbeat_queue::QueueCore;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use worker::{Panics, Rest};

/// Thread with a name, and the items that any thread schedules for it. It corresponds to a work queue of the
/// kernel.
///
/// - [`schedule`](WorkQueue::schedule) neither allocates nor blocks. It returns **true** if the call queued
///   the item, which then runs once. It returns **false** if the item is already pending on any queue, or if
///   this queue is stopped. If the item is already pending, its next run sees everything that the caller
///   wrote before: no event is lost.
/// - An item stops being pending just *before* its callback. So it can be scheduled again while it runs, also
///   by its own callback ([`Turn::again`]). The queue does not use the item any more: a callback can drop its
///   own item.
/// - One worker runs all items, those of one scheduling thread in their order. With
///   [`fifo`](WorkQueueSettings::fifo) there is one order for all threads.
/// - Only the first item that arrives while the worker sleeps wakes it. The worker then runs all items in one
///   pass.
///
/// # Ownership of a pending item
///
/// A queue that is not set up cannot be used: [`start`](WorkQueueSettings::start) returns the queue together
/// with its thread. A pending item cannot be moved or dropped, whichever kind it is:
///
/// | kind | scheduled with | while it is pending or runs |
/// |---|---|---|
/// | [`Item`] | `queue.schedule(&ITEM)`, a `&'static` | it lives for ever |
/// | [`Item`] | [`scope`](WorkQueue::scope), a reference | it is borrowed; the scope ends after its last run |
/// | [`Shared`] | `queue.schedule(&shared)` | the queue has a reference; the caller can drop its own |
/// | [`Owned`] | [`schedule_owned`](WorkQueue::schedule_owned) | the queue owns it; its callback gets it back |
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
/// Dropping a queue stops it.
pub struct WorkQueue {
    queue: Arc<QueueCore<QueueWaker>>,
    settings: WorkQueueSettings,
    /// Held while a thread is started or stopped. Callbacks can run in the meantime, and never take this
    /// lock.
    change: Mutex<()>,
    life: Mutex<Life>,
    /// State of the thread, while there is none.
    rest: Arc<Mutex<Option<Rest>>>,
    panics: Arc<Panics>,
}

struct Life {
    thread: Option<JoinHandle<()>>,
    obtained: Vec<Obtained>,
}

/// Locks a mutex, even if a holder panicked: holders only take or replace whole values.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WorkQueue {
    /// Returns the settings of a queue. Its thread will have this name, of at most 15 bytes.
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

    /// Starts a stopped queue with a new thread. Does nothing if it is running.
    ///
    /// # Errors
    /// Those of [`WorkQueueSettings::start`]; the queue then stays stopped.
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

    /// Schedules an item, from any thread: a `&'static` [`Item`], or a reference to a [`Shared`]. Returns
    /// false if the item is already pending on any queue, or if this queue is stopped.
    ///
    /// The next run sees everything that the caller did before, whichever call queued the item.
    #[inline]
    pub fn schedule(&self, item: impl Ready) -> bool {
        self.queue.schedule(item)
    }

    /// Schedules several items in their order, with one access to the queue. Returns the number of items
    /// queued, without those that were already pending.
    #[inline]
    pub fn schedule_many<R: Ready>(&self, items: impl IntoIterator<Item = R>) -> usize {
        self.queue.schedule_many(items)
    }

    /// Schedules an item and gives its ownership to the queue. Its callback gets it back.
    ///
    /// # Errors
    /// The item, if the queue is stopped.
    #[inline]
    pub fn schedule_owned<T: Send + 'static>(&self, item: Box<Owned<T>>) -> Result<(), Box<Owned<T>>> {
        self.queue.schedule_owned(item)
    }

    /// Schedules several items like [`schedule_owned`](WorkQueue::schedule_owned), in their order, with one
    /// access to the queue.
    ///
    /// # Errors
    /// The items, in their order, if the queue is stopped.
    #[inline]
    pub fn schedule_owned_many<T: Send + 'static>(
        &self,
        items: impl IntoIterator<Item = Box<Owned<T>>>,
    ) -> Result<usize, Vec<Box<Owned<T>>>> {
        self.queue.schedule_owned_many(items)
    }

    /// Waits until all items scheduled before have run, and all items that those runs schedule. Any number of
    /// threads can wait at once.
    ///
    /// # Errors
    /// [`WorkQueueError::OnWorker`] in a callback of this queue: it would wait for its own end.
    pub fn flush(&self) -> Result<(), WorkQueueError> {
        let parker = Parker::new();
        let flushed = self.queue.flush(QueueWaker::new(parker.unparker()), || parker.park());
        flushed.map_err(|_| self.on_worker("flush"))
    }

    /// Calls `act` with a scope, in which items can be scheduled that live only until its end. The end waits,
    /// as [`flush`](WorkQueue::flush) does. From then on, a callback cannot request another run.
    ///
    /// # Errors
    /// [`WorkQueueError::OnWorker`] in a callback of this queue; `act` is not called then.
    pub fn scope<'env, R>(
        &'env self,
        act: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env, QueueWaker>) -> R,
    ) -> Result<R, WorkQueueError> {
        let parker = Parker::new();
        let scoped = self.queue.scope(QueueWaker::new(parker.unparker()), || parker.park(), act);
        scoped.map_err(|_| self.on_worker("scope"))
    }

    /// Flushes the queue, refuses further items, and ends the thread. Every item for which `schedule`
    /// returned true has run. A second stop does nothing; [`start`](WorkQueue::start) starts the queue again.
    ///
    /// # Errors
    /// [`WorkQueueError::OnWorker`] in a callback of this queue, which then continues.
    /// [`WorkQueueError::Panicked`] if callbacks have panicked since the start; the queue is stopped
    /// nevertheless.
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
        // The worker catches panics of its callbacks, and does not panic itself.
        let joined = thread.join();
        match self.panics.take() {
            None if joined.is_ok() => Ok(()),
            found => {
                let (count, message) = found.unwrap_or((1, "the worker itself".to_owned()));
                Err(WorkQueueError::Panicked { queue: self.settings.name.clone(), count, message })
            }
        }
    }

    /// Whether the queue has a thread. Only a hint: another thread can stop or start it at any time.
    #[must_use]
    pub fn is_running(&self) -> bool {
        lock(&self.life).thread.is_some()
    }

    /// Whether no items are pending. Only a hint, but cheap.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns the number of panics of callbacks since the last start or stop.
    #[must_use]
    pub fn panics(&self) -> u64 {
        self.panics.count()
    }

    /// Returns each requested setting, what the machine granted, and the reason for a difference.
    #[must_use]
    pub fn obtained(&self) -> Vec<Obtained> {
        lock(&self.life).obtained.clone()
    }

    /// Returns the settings of the queue.
    #[must_use]
    pub fn settings(&self) -> &WorkQueueSettings {
        &self.settings
    }

    #[cold]
    fn on_worker(&self, what: &'static str) -> WorkQueueError {
        WorkQueueError::OnWorker { queue: self.settings.name.clone(), what }
    }
}

/// Stops the queue. In one of its own callbacks it cannot wait: the thread then runs the pending items and
/// ends on its own.
impl Drop for WorkQueue {
    fn drop(&mut self) {
        if self.queue.is_running_here() {
            self.queue.ask_to_close();
        } else {
            // The panic of a callback was already printed. `stop` returns its message.
            let _ = self.stop();
        }
    }
}

impl fmt::Debug for WorkQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WorkQueue({})", self.settings.name)
    }
}
