//! Items that live as long as a scope.

use super::turn::offer;
use super::{Item, OnWorker, QueueCore, Turn};
use crate::list::{Poller, Sleeper};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::planted;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A scope, in which items that do not live for ever can be scheduled: see [`QueueCore::scope`].
pub struct Scope<'scope, 'env: 'scope, S: Sleeper> {
    queue: &'scope QueueCore<S>,
    /// Whether the scope has ended.
    gate: AtomicBool,
    /// Neither lifetime may be shortened: both are promises to the code that schedules.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'scope, S: Sleeper> Scope<'scope, '_, S> {
    /// As [`QueueCore::schedule`], for an item that outlives the scope.
    #[inline]
    pub fn schedule<F: Fn(&Turn<'_>) + Sync>(&'scope self, item: &'scope Item<F>) -> bool {
        // Acquire, partner: the Release at the end of the scope.
        if self.gate.load(Ordering::Acquire) {
            return false;
        }
        let list = &self.queue.list;
        // SAFETY: the item stays until the scope ends, which waits for all its runs; `F` may be called from
        // any thread.
        unsafe { offer(list, self.queue.slot(), item.node(), || item.set_gate(&self.gate)) }
    }

    /// As [`QueueCore::schedule_many`], for items that outlive the scope.
    pub fn schedule_many<F>(&'scope self, items: impl IntoIterator<Item = &'scope Item<F>>) -> usize
    where
        F: Fn(&Turn<'_>) + Sync + 'scope,
    {
        if self.gate.load(Ordering::Acquire) {
            return 0;
        }
        self.queue.schedule_chain(items, |item| Item::node(item), |item| item.set_gate(&self.gate))
    }
}

impl<S: Sleeper> QueueCore<S> {
    /// Calls `act` with a scope, in which items can be scheduled that live only until the scope ends: in a
    /// local variable, or borrowed from one. The end waits as [`flush`](Self::flush) does, whether `act`
    /// returns or panics. From then on no item of the scope is pending or runs, and a callback that asks for
    /// another run is refused.
    ///
    /// # Errors
    /// [`OnWorker`] in a callback of this queue; then `act` is not called.
    ///
    /// ```
    /// # use onbeat_queue::{QueueCore, Item, Owner, Sleeper};
    /// # use std::sync::Arc;
    /// # use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    /// # struct Nobody;
    /// # impl Sleeper for Nobody { fn wake(&self) {} }
    /// let mut owner = Owner::new();
    /// let queue = Arc::new(QueueCore::new(&owner, 1, Nobody));
    /// # let over = Arc::new(AtomicBool::new(false));
    /// # let worker = std::thread::spawn({
    /// #     let (queue, over) = (queue.clone(), over.clone());
    /// #     move || while !over.load(Ordering::Acquire) { queue.drain(&mut owner, &mut |_| ()); }
    /// # });
    /// let runs = AtomicU32::new(0);
    /// let item = Item::new(|_| { runs.fetch_add(1, Ordering::Relaxed); });
    /// // A worker drains the queue meanwhile.
    /// queue.scope(Nobody, std::thread::yield_now, |scope| assert!(scope.schedule(&item)))?;
    /// assert_eq!(runs.into_inner(), 1);
    /// # over.store(true, Ordering::Release);
    /// # worker.join().unwrap();
    /// # Ok::<(), onbeat_queue::OnWorker>(())
    /// ```
    pub fn scope<'env, W: Sleeper + 'static, R>(
        &'env self,
        waker: W,
        wait: impl FnMut(),
        act: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env, S>) -> R,
    ) -> Result<R, OnWorker> {
        if self.is_running_here() {
            return Err(OnWorker);
        }
        let scope = Scope { queue: self, gate: AtomicBool::new(false), scope: PhantomData, env: PhantomData };
        let result = catch_unwind(AssertUnwindSafe(|| act(&scope)));
        // Release, partner: the Acquire of `schedule` and `again`. A callback that missed it has pushed
        // before the worker sees the second sentinel of the flush; other threads of the scope have ended.
        if !planted("a scope that stays open") {
            scope.gate.store(true, Ordering::Release);
        }
        // Unwinding is caught here: `wait` belongs to the caller and can panic.
        let flushed = catch_unwind(AssertUnwindSafe(|| self.flush(waker, wait)));
        if flushed.is_err() {
            // The items may go only when they have run, also after a panic.
            let again = self.flush(Poller, crate::sync::yield_now);
            debug_assert!(again.is_ok(), "it was not the worker before");
        }
        match (result, flushed) {
            (Ok(result), Ok(flushed)) => flushed.map(|()| result),
            (Err(thrown), _) | (_, Err(thrown)) => resume_unwind(thrown),
        }
    }
}

impl<S: Sleeper> fmt::Debug for Scope<'_, '_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scope")
    }
}
