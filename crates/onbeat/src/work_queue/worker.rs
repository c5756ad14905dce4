//! The thread of a work queue.

use super::{WorkQueueError, WorkQueueSettings, lock};
use crate::Idle;
use crate::trace::record::Obtained;
use onbeat_os::policy::PolicyFlags;
use onbeat_os::rights::{self, Rights};
use onbeat_os::{Parker, Policy, Unparker, clock, stack_node, thread};
use onbeat_queue::sync::atomic::{AtomicU32, Ordering};
use onbeat_queue::{Owner, QueueCore, Sleeper};
use std::any::Any;
use std::io;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Waker of the thread of a queue, or of a thread that waits for the queue.
#[derive(Debug)]
pub struct QueueWaker {
    unparker: Unparker,
    /// Core of the thread that woke it last. Relaxed, since it is only a hint.
    core: AtomicU32,
}

impl QueueWaker {
    pub(super) fn new(unparker: Unparker) -> Self {
        QueueWaker { unparker, core: AtomicU32::new(u32::MAX) }
    }
}

impl Sleeper for QueueWaker {
    fn wake(&self) {
        self.core.store(thread::current_core() as u32, Ordering::Relaxed);
        self.unparker.unpark();
    }
}

/// State that the thread uses, and leaves for the next thread.
pub(super) struct Rest {
    pub owner: Owner,
    parker: Parker,
}

impl Rest {
    pub fn new() -> Self {
        Rest { owner: Owner::new(), parker: Parker::new() }
    }

    pub fn waker(&self) -> QueueWaker {
        QueueWaker::new(self.parker.unparker())
    }
}

/// Panics of callbacks since the last start: their number, and the first message.
#[derive(Default)]
pub(super) struct Panics(Mutex<Option<(u64, String)>>);

impl Panics {
    #[cold]
    fn add(&self, thrown: &(dyn Any + Send)) {
        let mut found = lock(&self.0);
        let text = || {
            let text = thrown.downcast_ref::<&str>().map(|text| (*text).to_owned());
            text.or_else(|| thrown.downcast_ref::<String>().cloned())
        };
        found.get_or_insert_with(|| (0, text().unwrap_or("a panic without a message".to_owned()))).0 += 1;
    }

    pub fn take(&self) -> Option<(u64, String)> {
        lock(&self.0).take()
    }

    pub fn count(&self) -> u64 {
        lock(&self.0).as_ref().map_or(0, |found| found.0)
    }
}

/// Starts the thread, and waits until its settings are applied.
pub(super) fn start(
    settings: &WorkQueueSettings,
    queue: &Arc<QueueCore<QueueWaker>>,
    rest: &Arc<Mutex<Option<Rest>>>,
    panics: &Arc<Panics>,
) -> Result<(JoinHandle<()>, Vec<Obtained>), WorkQueueError> {
    let system = |error| WorkQueueError::System { queue: settings.name.clone(), error };
    let (ready, is_ready) = mpsc::channel();
    let body = {
        let (settings, queue, rest, panics) = (settings.clone(), queue.clone(), rest.clone(), panics.clone());
        move || {
            let prepared = prepare(&settings);
            let is_good = prepared.is_ok();
            let Some(mut own) = lock(&rest).take().filter(|_| is_good) else {
                let _ = ready.send(prepared);
                return;
            };
            queue.open(&mut own.owner);
            let _ = ready.send(prepared);
            work(&settings, &queue, &mut own, &panics);
            *lock(&rest) = Some(own);
        }
    };
    let handle = thread::spawn(&settings.name, body).map_err(system)?;
    let answer = is_ready.recv().unwrap_or_else(|_| {
        Err(system(io::Error::other("its thread ended before it started to work; please report this")))
    });
    match answer {
        Ok(obtained) => Ok((handle, obtained)),
        Err(error) => {
            // The thread has ended or is about to.
            let _ = handle.join();
            Err(error)
        }
    }
}

/// Size of the stack that is touched, for callbacks of usual depth.
const STACK_BYTES: usize = 256 << 10;

/// Applies the settings on the new thread.
fn prepare(settings: &WorkQueueSettings) -> Result<Vec<Obtained>, WorkQueueError> {
    let queue = || settings.name.clone();
    let mut obtained = Vec::new();
    if let Some(cores) = &settings.cores {
        thread::set_cores(cores).map_err(|error| WorkQueueError::System { queue: queue(), error })?;
        let there = thread::cores().map_err(|error| WorkQueueError::System { queue: queue(), error })?;
        let reason = (there != *cores)
            .then(|| "the others are offline, or not in the cpuset of this process".to_owned());
        obtained.push(setting("cores", cores.to_string(), there.to_string(), reason));
    }
    if let Some(node) = settings.node {
        obtained.push(place_stack(node));
    }
    // The policy comes last, so that the steps before do not run with real-time priority.
    if let Some(policy) = settings.policy {
        obtained.push(set_policy(policy));
    }
    let refused = obtained.iter().find(|setting| setting.asked != setting.obtained);
    match refused.filter(|_| settings.is_strict) {
        Some(Obtained { what, asked, obtained, reason }) => Err(WorkQueueError::Refused {
            queue: queue(),
            what: what.clone(),
            asked: asked.clone(),
            obtained: obtained.clone(),
            reason: reason.clone().unwrap_or_default(),
        }),
        None => Ok(obtained),
    }
}

fn setting(what: &str, asked: String, obtained: String, reason: Option<String>) -> Obtained {
    Obtained { what: what.to_owned(), asked, obtained, reason }
}

fn place_stack(node: usize) -> Obtained {
    let asked = format!("node {node}");
    match stack_node::place_stack(node, STACK_BYTES) {
        Ok(elsewhere) if elsewhere <= 20.0 => setting("stack", asked.clone(), asked, None),
        Ok(elsewhere) => {
            let reason = format!("{elsewhere:.0} % of its pages are on other nodes: the node is full");
            setting("stack", asked, "in part".to_owned(), Some(reason))
        }
        Err(error) => {
            let nodes = onbeat_os::memory::nodes();
            let reason = format!("{error}; the machine has the memory nodes {nodes:?}");
            setting("stack", asked, "anywhere".to_owned(), Some(reason))
        }
    }
}

fn set_policy(policy: Policy) -> Obtained {
    let reason = policy.set(PolicyFlags::default()).err().map(|error| {
        rights::explain(&policy, error.raw_os_error().unwrap_or(0), &Rights::read()).to_string()
    });
    let there = Policy::of_this_thread().map_or("unknown".to_owned(), |(policy, _)| policy.to_string());
    setting("policy", policy.to_string(), there, reason)
}

/// Time for which a worker that parks polls for more items, after a wake-up and when the queue is empty. A
/// wake-up costs the waker and the worker a few microseconds each. In a burst, the second item arrives when
/// the call that sent the first wake-up returns. Without this time, the worker can fall asleep four times in
/// a burst of 32 items; with it, once.
const FIRST_NS: u64 = 7_000;
/// Time of each further poll: by then, the items of a burst are at most a few cache lines apart.
const NEXT_NS: u64 = 1_000;

/// Decides whether polling before falling asleep pays. If items arrive one by one, or a whole burst in one
/// pass, the first poll is in vain and costs as much as the wake-up that it should save.
struct Linger {
    /// Number of vain first polls until they are skipped.
    patience: u32,
    /// Whether more items arrived since the wake-up.
    has_paid: bool,
    /// Whether the waking thread ran on the worker's core, so that it cannot continue while the worker polls.
    shares_core: bool,
}

impl Linger {
    const PATIENCE: u32 = 8;

    fn time_ns(&self) -> Option<u64> {
        match (self.has_paid, self.patience) {
            (true, _) => Some(NEXT_NS),
            (false, 0) => None,
            (false, _) => Some(FIRST_NS),
        }
    }
}

/// Number of consecutive short passes after which the worker waits for about 0.4 µs before each further one.
/// At that point it is as fast as the producers. Taking items one by one from an active producer costs both
/// sides a cache line per item: 16 to 20 ns instead of 7.
const PASSES: u32 = 2;
/// Number of items below which a pass is short.
const FEW: usize = 256;
/// Spin hints of that wait.
const MOMENT: usize = 24;

/// Runs items and waits for more, until the queue closes.
fn work(settings: &WorkQueueSettings, queue: &QueueCore<QueueWaker>, own: &mut Rest, panics: &Panics) {
    let Rest { owner, parker } = own;
    let mut panicked = |thrown: Box<dyn Any + Send>| panics.add(&*thrown);
    let mut linger = Linger { patience: Linger::PATIENCE, has_paid: false, shares_core: false };
    let mut passes = 0u32;
    loop {
        let ran = queue.drain(owner, &mut panicked);
        if queue.is_close_asked() {
            queue.close(owner, &mut panicked);
            return;
        }
        if ran > 0 {
            passes = if ran < FEW { passes.saturating_add(1) } else { 0 };
            if passes > PASSES {
                (0..MOMENT).for_each(|_| std::hint::spin_loop());
            }
            continue;
        }
        passes = 0;
        // The worker is still awake, so a thread that schedules now does not pay for a wake-up.
        let parks = matches!(settings.idle, Idle::Park | Idle::Early(_));
        let linger_ns = linger.time_ns().filter(|_| parks && !linger.shares_core);
        if parks && linger.shares_core {
            // Lets the waking thread continue, which costs a fraction of a sleep. If nothing arrives, the
            // worker then sleeps without polling.
            std::thread::yield_now();
        }
        let idle = linger_ns.map_or(settings.idle, Idle::SpinFor);
        if !queue.is_empty() || idle.spin(u64::MAX, || !queue.is_empty(), clock::monotonic_ns) {
            (linger.has_paid, linger.patience) = (true, Linger::PATIENCE);
            continue;
        }
        if idle != Idle::Spin && queue.sleep(owner) {
            if linger_ns == Some(FIRST_NS) {
                linger.patience -= 1;
            }
            let asleep_ns = clock::monotonic_ns();
            while !queue.is_woken(owner) {
                parker.park();
            }
            queue.wake_up(owner);
            if linger_ns.is_none() && clock::monotonic_ns() - asleep_ns < FIRST_NS {
                linger.patience = Linger::PATIENCE;
            }
            linger.has_paid = false;
            linger.shares_core =
                queue.sleeper().core.load(Ordering::Relaxed) == thread::current_core() as u32;
        }
    }
}
