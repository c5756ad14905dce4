//! Models of two kernel designs for comparison: a lock around a doubly linked list, and a semaphore.
//!
//! - *Before*: the semaphore counts items. Each schedule adds to the list under the lock and ups the
//!   semaphore, which has its own lock. The worker repeatedly downs it and takes one item off under the lock.
//! - *After*: the proposed change. Only the schedule that makes the number of waiting items one ups the
//!   semaphore. The worker takes the whole list under the lock and unlinks its items *without* the lock. The
//!   unlocked unlinking loses events: a producer that finds its item still linked returns, although the
//!   worker may already have read the callback's input.
//!
//! There are two differences from the kernel. The kernel does not preempt the holder of the lock; here it can
//! be preempted, so a waiting thread yields its core after a while. And the list has indices where the kernel
//! has pointers, because this crate has no unsafe code: one shift and one comparison more per access, on a
//! cache line that is needed anyway.

use onbeat_os::{Parker, Unparker};
use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::hint::{black_box, spin_loop};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// A spin lock like the kernel's.
#[derive(Default)]
struct SpinLock(AtomicBool);

impl SpinLock {
    #[inline]
    fn with<R>(&self, act: impl FnOnce() -> R) -> R {
        let mut polls = 0u32;
        while self.0.swap(true, Acquire) {
            while self.0.load(Relaxed) {
                polls += 1;
                if polls.is_multiple_of(100) {
                    std::thread::yield_now();
                } else {
                    spin_loop();
                }
            }
        }
        let result = act();
        self.0.store(false, Release);
        result
    }
}

/// A semaphore with a single waiter.
struct Semaphore {
    lock: SpinLock,
    // Protected by the lock.
    count: AtomicU64,
    is_waiting: AtomicBool,
    waiter: Unparker,
}

impl Semaphore {
    #[inline]
    fn up(&self) {
        let wake = self.lock.with(|| {
            let wake = self.is_waiting.load(Relaxed);
            if wake {
                // Handed over: the waiter owns the count when it wakes.
                self.is_waiting.store(false, Relaxed);
            } else {
                self.count.store(self.count.load(Relaxed) + 1, Relaxed);
            }
            wake
        });
        if wake {
            self.waiter.unpark();
        }
    }

    #[inline]
    fn down(&self, parker: &Parker) {
        let sleep = self.lock.with(|| {
            let count = self.count.load(Relaxed);
            if count == 0 {
                self.is_waiting.store(true, Relaxed);
            } else {
                self.count.store(count - 1, Relaxed);
            }
            count == 0
        });
        if sleep {
            parker.park();
        }
    }
}

/// 32 bytes, like two links, a function and its argument in the kernel.
#[repr(align(32))]
struct ModelNode<F> {
    next: AtomicU32,
    prev: AtomicU32,
    call: fn(&F, usize),
}

/// The design to model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelKind {
    /// The semaphore counts items.
    Before,
    /// One wake-up for all waiting items, and items are unlinked without a lock.
    After,
}

struct ModelInner<F> {
    kind: ModelKind,
    lock: CachePadded<SpinLock>,
    semaphore: CachePadded<Semaphore>,
    /// Number of waiting items, protected by the lock. *After* only.
    waiting: CachePadded<AtomicU64>,
    is_stopping: AtomicBool,
    /// Items, followed by the head of the queue and the head of the worker's own list.
    nodes: Box<[ModelNode<F>]>,
    run: F,
    corrupted: AtomicU64,
}

/// A queue with its worker and all its items.
pub struct Model<F: Fn(usize) + Send + Sync + 'static> {
    inner: Arc<ModelInner<F>>,
    thread: Option<JoinHandle<()>>,
}

impl<F: Fn(usize) + Send + Sync + 'static> ModelInner<F> {
    #[inline(always)]
    fn queue(&self) -> u32 {
        self.nodes.len() as u32 - 2
    }

    #[inline(always)]
    fn local(&self) -> u32 {
        self.nodes.len() as u32 - 1
    }

    #[inline(always)]
    fn at(&self, node: u32) -> &ModelNode<F> {
        &self.nodes[node as usize]
    }

    #[inline(always)]
    fn is_empty(&self, node: u32) -> bool {
        self.at(node).next.load(Relaxed) == node
    }

    fn init(&self, node: u32) {
        self.at(node).next.store(node, Relaxed);
        self.at(node).prev.store(node, Relaxed);
    }

    #[inline(always)]
    fn add_tail(&self, node: u32, head: u32) {
        let last = self.at(head).prev.load(Relaxed);
        self.at(head).prev.store(node, Relaxed);
        self.at(node).next.store(head, Relaxed);
        self.at(node).prev.store(last, Relaxed);
        self.at(last).next.store(node, Relaxed);
    }

    /// `list_del_init`: removes a node from its list and makes it a list of its own.
    #[inline(always)]
    fn unlink(&self, node: u32) {
        let (next, prev) = (self.at(node).next.load(Relaxed), self.at(node).prev.load(Relaxed));
        self.at(next).prev.store(prev, Relaxed);
        self.at(prev).next.store(next, Relaxed);
        self.at(node).next.store(node, Relaxed);
        self.at(node).prev.store(node, Relaxed);
    }

    #[inline]
    fn schedule(&self, item: usize) -> bool {
        let item = item as u32;
        let (queued, up) = self.lock.with(|| {
            if !self.is_empty(item) {
                return (false, false);
            }
            self.add_tail(item, self.queue());
            if self.kind == ModelKind::Before {
                return (true, true);
            }
            let waiting = self.waiting.load(Relaxed) + 1;
            self.waiting.store(waiting, Relaxed);
            (true, waiting == 1)
        });
        if up {
            self.semaphore.up();
        }
        queued
    }

    fn work(&self, parker: &Parker) {
        loop {
            self.semaphore.down(parker);
            if self.is_stopping.load(Relaxed) {
                return;
            }
            match self.kind {
                ModelKind::Before => self.one(),
                ModelKind::After => self.all(),
            }
        }
    }

    #[inline]
    fn one(&self) {
        let item = self.lock.with(|| {
            let item = self.at(self.queue()).next.load(Relaxed);
            (item != self.queue()).then(|| {
                self.unlink(item);
                item
            })
        });
        if let Some(item) = item {
            (self.at(item).call)(&self.run, item as usize);
        }
    }

    #[inline]
    fn all(&self) {
        let (queue, local) = (self.queue(), self.local());
        self.lock.with(|| {
            // `list_splice_init`.
            if !self.is_empty(queue) {
                let (first, last) = (self.at(queue).next.load(Relaxed), self.at(queue).prev.load(Relaxed));
                self.at(local).next.store(first, Relaxed);
                self.at(local).prev.store(last, Relaxed);
                self.at(first).prev.store(local, Relaxed);
                self.at(last).next.store(local, Relaxed);
                self.init(queue);
            }
            self.waiting.store(0, Relaxed);
        });
        let mut steps = 0;
        loop {
            let item = self.at(local).next.load(Relaxed);
            if item == local {
                return;
            }
            steps += 1;
            if steps > self.nodes.len() || item == queue {
                return self.reset();
            }
            self.unlink(item);
            (self.at(item).call)(&self.run, item as usize);
        }
    }

    /// Resets a corrupted list: the race did more than lose an event. A kernel could not continue here.
    #[cold]
    fn reset(&self) {
        self.corrupted.fetch_add(1, Relaxed);
        self.lock.with(|| (0..self.nodes.len() as u32).for_each(|node| self.init(node)));
    }
}

impl<F: Fn(usize) + Send + Sync + 'static> Model<F> {
    /// Starts a queue with this many items, numbered from 0; `run` gets the number of the item.
    pub fn start(
        kind: ModelKind,
        items: usize,
        run: F,
        prepare: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Self> {
        let parker = Parker::new();
        let semaphore = Semaphore {
            lock: SpinLock::default(),
            count: AtomicU64::new(0),
            is_waiting: AtomicBool::new(false),
            waiter: parker.unparker(),
        };
        // The compiler must not know which function the worker calls.
        let call: fn(&F, usize) = black_box(|run, item| run(item));
        let node = |at| ModelNode { next: AtomicU32::new(at), prev: AtomicU32::new(at), call };
        let inner = Arc::new(ModelInner {
            kind,
            lock: CachePadded::default(),
            semaphore: CachePadded::new(semaphore),
            waiting: CachePadded::default(),
            is_stopping: AtomicBool::new(false),
            nodes: (0..items as u32 + 2).map(node).collect(),
            run,
            corrupted: AtomicU64::new(0),
        });
        // The parker moves to its thread; two threads must not use it.
        let parker = Mutex::new(Some(parker));
        let thread = onbeat_os::thread::spawn("model", {
            let inner = inner.clone();
            move || {
                prepare();
                let parker = parker.into_inner().unwrap_or_else(PoisonError::into_inner);
                if let Some(parker) = parker {
                    inner.work(&parker);
                }
            }
        })?;
        Ok(Model { inner, thread: Some(thread) })
    }

    /// Number of items.
    pub fn items(&self) -> usize {
        self.inner.nodes.len() - 2
    }

    #[inline]
    pub fn schedule(&self, item: usize) -> bool {
        self.inner.schedule(item)
    }

    /// Waits until the worker sleeps with nothing to do.
    pub fn settle(&self) {
        let semaphore = &self.inner.semaphore;
        let mut polls = 0u32;
        while !semaphore.lock.with(|| semaphore.is_waiting.load(Relaxed)) {
            polls += 1;
            if polls.is_multiple_of(64) {
                std::thread::yield_now();
            }
            spin_loop();
        }
    }

    /// How often the list was corrupted.
    pub fn corrupted(&self) -> u64 {
        self.inner.corrupted.load(Relaxed)
    }
}

impl<F: Fn(usize) + Send + Sync + 'static> Drop for Model<F> {
    fn drop(&mut self) {
        self.settle();
        self.inner.is_stopping.store(true, Relaxed);
        self.inner.semaphore.up();
        if let Some(thread) = self.thread.take() {
            // A worker that panicked has reported it.
            let _ = thread.join();
        }
    }
}
