//! How threads of a pool wait, and who watches its alarms and descriptors: a thread that has nothing else to
//! do, if there is one. Threads at work look now and then.

use super::{ThreadPool, with_thread};
use crate::base::descriptors::Descriptors;
use crate::base::idle::Idle;
use crate::engine::team::WaitPlace;
use onbeat_os::Parker;
use onbeat_queue::sync::atomic::Ordering;
use std::cell::Cell;
use std::sync::Arc;

impl<P> ThreadPool<P> {
    /// Notifies the operators whose descriptors are ready, unless a thread has looked a short time ago.
    pub fn look_at_descriptors(&self, real_ns: impl Fn() -> u64) {
        if let Some(descriptors) = self.descriptors.get() {
            descriptors.look_at(real_ns);
        }
    }

    /// Waits for a part to run, a wave, a descriptor or an alarm.
    pub fn rest(&self, thread: usize, idle: Idle, parker: &Parker, now_ns: impl Fn() -> u64) {
        // Acquire pairs with the Release below: watches follow each other.
        let watched = self.used_descriptors();
        let watched = watched.filter(|descriptors| !descriptors.is_watched.swap(true, Ordering::Acquire));
        let at = WaitPlace { parker, descriptors: watched.map(|descriptors| &**descriptors) };
        self.rest_at(thread, idle, &at, now_ns);
        if let Some(descriptors) = watched {
            descriptors.is_watched.store(false, Ordering::Release);
        }
    }

    /// Waits for a part to run, a wave or an alarm, and for descriptors if this thread watches them.
    fn rest_at(&self, thread: usize, idle: Idle, at: &WaitPlace<'_>, now_ns: impl Fn() -> u64) {
        // This thread has just left a wave that is open now, so it waits for the next one.
        let is_new = Cell::new(self.open_wave().is_none());
        let has_work = || {
            let is_open = self.open_wave().is_some();
            is_new.set(is_new.get() || !is_open);
            // A look at descriptors may have woken a part, which this thread keeps.
            is_open && is_new.get() || self.has_parts() || self.others_wait()
        };
        // The thread that watched may have found work: then this one comes again, and watches.
        let lacks_watch = || at.descriptors.is_none() && self.needs_watch();
        if idle.spin_at(at, u64::MAX, || has_work() || self.has_due(&now_ns) || lacks_watch(), &now_ns)
            || !self.tasks.begin_park(thread)
        {
            return;
        }
        if lacks_watch() {
            self.tasks.end_park(thread);
            return;
        }
        with_thread(|thread| thread.counts.parked += 1);
        let alarm_ns = self.tasks.parked_until_ns(thread);
        if !self.is_over() {
            let _ = idle.park_until(at, alarm_ns, has_work, &now_ns);
        }
        self.tasks.end_park(thread);
    }

    /// Wakes parts whose alarms are due.
    pub fn fire_alarms(&self, now_ns: impl Fn() -> u64) {
        if self.tasks.next_alarm_ns() != u64::MAX {
            self.tasks.take_due(now_ns(), |part| self.wake(part));
        }
    }

    /// Wakes a parked thread, if there is one, to watch alarms and descriptors while this thread is in a long
    /// step.
    pub fn leave_watch_to_others(&self, thread: usize) {
        let for_alarms = self.tasks.watch_alarms(thread);
        let sleeper = for_alarms.or_else(|| self.watcher_for_descriptors(thread));
        if let Some(sleeper) = sleeper {
            self.unparkers[sleeper].unpark();
        }
    }

    /// Whether there are descriptors that no thread watches. Asked by a thread that has announced that it
    /// parks, with a fence after that; partner: the fence in `TaskPool::take_sleeper`.
    fn needs_watch(&self) -> bool {
        self.used_descriptors().is_some_and(|descriptors| !descriptors.is_watched.load(Ordering::Relaxed))
    }

    /// A parked thread that the caller wakes so that it watches the descriptors, if no thread does.
    fn watcher_for_descriptors(&self, thread: usize) -> Option<usize> {
        self.needs_watch().then(|| self.tasks.take_sleeper(thread)).flatten()
    }

    fn used_descriptors(&self) -> Option<&Arc<Descriptors>> {
        self.descriptors.get().filter(|descriptors| descriptors.poll().is_some())
    }
}
