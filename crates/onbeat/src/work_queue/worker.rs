//! The thread of a work queue.

use super::{WorkQueueError, WorkQueueSettings, lock};
use crate::Idle;
use crate::trace::record::Obtained;
use onbeat_os::policy::PolicyFlags;
use onbeat_os::rights::{self, Rights};
use onbeat_os::{Parker, Policy, Unparker, clock, stack_node, thread};
use onbeat_queue::{Agenda, Owner, Sleeper};
use std::any::Any;
use std::io;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Wakes the thread of a queue, or one that waits for it.
#[derive(Debug)]
pub struct Waker(pub(super) Unparker);

impl Sleeper for Waker {
    fn wake(&self) {
        self.0.unpark();
    }
}

/// What the thread has, and leaves behind for the next one.
pub(super) struct Rest {
    pub owner: Owner,
    parker: Parker,
}

impl Rest {
    pub fn new() -> Self {
        Rest { owner: Owner::new(), parker: Parker::new() }
    }

    pub fn waker(&self) -> Waker {
        Waker(self.parker.unparker())
    }
}

/// Of callbacks, since the last start.
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
        found.get_or_insert_with(|| (0, text().unwrap_or("something that is no text".to_owned()))).0 += 1;
    }

    pub fn take(&self) -> Option<(u64, String)> {
        lock(&self.0).take()
    }

    pub fn count(&self) -> u64 {
        lock(&self.0).as_ref().map_or(0, |found| found.0)
    }
}

/// Starts the thread, and waits until it is as it was asked to be.
pub(super) fn start(
    settings: &WorkQueueSettings,
    agenda: &Arc<Agenda<Waker>>,
    rest: &Arc<Mutex<Option<Rest>>>,
    panics: &Arc<Panics>,
) -> Result<(JoinHandle<()>, Vec<Obtained>), WorkQueueError> {
    let system = |error| WorkQueueError::System { queue: settings.name.clone(), error };
    let (ready, is_ready) = mpsc::channel();
    let body = {
        let (settings, agenda, rest, panics) =
            (settings.clone(), agenda.clone(), rest.clone(), panics.clone());
        move || {
            let prepared = prepare(&settings);
            let is_good = prepared.is_ok();
            let Some(mut own) = lock(&rest).take().filter(|_| is_good) else {
                let _ = ready.send(prepared);
                return;
            };
            agenda.open(&mut own.owner);
            let _ = ready.send(prepared);
            work(&settings, &agenda, &mut own, &panics);
            *lock(&rest) = Some(own);
        }
    };
    let handle = thread::spawn(&settings.name, body).map_err(system)?;
    let answer = is_ready.recv().unwrap_or_else(|_| {
        Err(system(io::Error::other("its thread ended before it began to work; please report this")))
    });
    match answer {
        Ok(obtained) => Ok((handle, obtained)),
        Err(error) => {
            // It has ended, or is about to.
            let _ = handle.join();
            Err(error)
        }
    }
}

/// Stack that is brought in, for callbacks of usual depth.
const STACK_BYTES: usize = 256 << 10;

/// On the new thread.
fn prepare(settings: &WorkQueueSettings) -> Result<Vec<Obtained>, WorkQueueError> {
    let queue = || settings.name.clone();
    let mut obtained = Vec::new();
    if let Some(cores) = &settings.cores {
        thread::set_cores(cores).map_err(|error| WorkQueueError::System { queue: queue(), error })?;
        let there = thread::cores().map_err(|error| WorkQueueError::System { queue: queue(), error })?;
        let reason = (there != *cores)
            .then(|| "the others are offline, or not among the cores of this process (cpuset)".to_owned());
        obtained.push(setting("cores", cores.to_string(), there.to_string(), reason));
    }
    if let Some(node) = settings.node {
        obtained.push(place_stack(node));
    }
    // Last, so that what comes before does not count against a real-time thread.
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
            let reason = format!("{elsewhere:.0} % of its pages lie on other nodes: it has no room for them");
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

/// How long a worker that parks looks for more after its last item, where items come in bursts. To wake it costs the waker and
/// the worker a few microseconds each, and in a burst the second item comes before the first wake-up has returned: without
/// this the worker falls asleep four times in a burst of 32 items, with it once.
const LINGER_NS: u64 = 7_000;
/// So often it finds one item and no more after a wake-up before it stops lingering. Where items come one by one, to linger is waste, and the kernel wakes a
/// thread that uses its time less readily: 9 µs instead of 3 where it shares a core with its waker.
const PATIENCE: u32 = 8;

/// After a pass over so few items it waits for a moment, of about a tenth of a microsecond: to take items one by one from a
/// producer that is at it costs both sides a line of cache per item, 50 ns in place of 10.
const FEW: usize = 16;
const MOMENT: usize = 6;

/// Until it is asked to close: runs what there is, and waits for more.
fn work(settings: &WorkQueueSettings, agenda: &Agenda<Waker>, own: &mut Rest, panics: &Panics) {
    let Rest { owner, parker } = own;
    let mut panicked = |thrown: Box<dyn Any + Send>| panics.add(&*thrown);
    let mut patience = PATIENCE;
    let mut since_wake = 0;
    loop {
        let ran = agenda.drain(owner, &mut panicked);
        if agenda.is_close_asked() {
            agenda.close(owner, &mut panicked);
            return;
        }
        if ran > 0 {
            since_wake += ran;
            if ran < FEW {
                (0..MOMENT).for_each(|_| std::hint::spin_loop());
            }
            continue;
        }
        // Awake, so whoever schedules meanwhile does not pay for a wake-up.
        let lingers = settings.idle == Idle::Park && patience > 0;
        let idle = if lingers { Idle::SpinFor(LINGER_NS) } else { settings.idle };
        if idle.spin(u64::MAX, || !agenda.is_empty(), clock::monotonic_ns) {
            continue;
        }
        if idle != Idle::Spin && agenda.sleep(owner) {
            patience = if since_wake > 1 { PATIENCE } else { patience.saturating_sub(1) };
            since_wake = 0;
            let asleep_ns = clock::monotonic_ns();
            while !agenda.is_woken(owner) {
                parker.park();
            }
            agenda.wake_up(owner);
            if clock::monotonic_ns() - asleep_ns < LINGER_NS {
                patience = PATIENCE;
            }
        }
    }
}
