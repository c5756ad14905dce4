//! From a gap and kernel events to what took the time.

use onbeat_trace::{Class, KernelEvent};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// A stretch of time that a thread should have had and has not. In nanoseconds on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// On which core.
    pub cpu: u32,
    /// The last moment at which it is known to have run.
    pub start_ns: u64,
    /// The first one after that.
    pub end_ns: u64,
}

impl Gap {
    /// How long it is.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

/// What there is to know of the thread that had the gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapThread {
    /// Without a real-time policy: it shares its core.
    Fair,
    /// With one: no other thread runs before it but for a higher priority, or because the kernel lets others have a part.
    RealTime {
        /// Whether the kernel does that by a server (6.12 and later), and not by stopping all real-time threads.
        has_fair_server: bool,
    },
    /// One that never waits by itself, and slept in this gap all the same: the kernel let it wait for a page or a lock, or a signal stopped it.
    Asleep,
    /// It waited for a timer: an idle core is as it should be.
    Sleeper,
}

/// What took the time of a gap. Its parts sum to the gap, to the nanosecond.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapVerdict {
    /// Which gap.
    pub gap: Gap,
    /// What the kernel tells of it, by its begin.
    pub interferences: Vec<Interference>,
    /// The whole gap, where the kernel tells of nothing: the hypervisor, or firmware.
    pub hardware_ns: u64,
    /// What is left beside the events: the way into the kernel and out of it, and who knows what.
    pub unexplained_ns: u64,
    /// Whether records are missing there, so that more may be unexplained than is.
    pub is_doubtful: bool,
}

/// One event's part in a gap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interference {
    /// What kind.
    pub class: Class,
    /// Its name: of the interrupt, the softirq, the thread; `rt-throttle` for what is no thread at all.
    pub name: String,
    /// The thread's id; 0 where it is none.
    pub pid: i32,
    /// The thread's priority, as the kernel counts it.
    pub priority: i32,
    /// When it began, which may be before the gap.
    pub start_ns: u64,
    /// What it had of the gap, without what interrupted it.
    pub duration_ns: u64,
}

/// Threads from this priority on have no real-time policy.
const FAIR_PRIORITY: i32 = 100;

/// Who had the core in a gap.
///
/// The events are those of the gap's core, in any order; what lies outside of it is left out, and so is what happened to threads
/// and took no time. Each has its time without what
/// interrupted it, so they are laid out again one inside of the other: what begins before another has had all its time
/// interrupts it.
///
/// ```
/// use onbeat_noise::{Gap, GapThread, attribute};
/// use onbeat_trace::{Class, KernelEvent};
/// let event = |class, name: &str, start_ns, duration_ns| KernelEvent {
///     cpu: 0, start_ns, duration_ns, class, name: name.into(), pid: 0, priority: 0, depth: 0,
/// };
/// // A softirq of 20 ns with an interrupt of 5 ns in its middle.
/// let events = [event(Class::Irq, "local_timer", 120, 5), event(Class::Softirq, "RCU", 110, 20)];
/// let verdict = attribute(Gap { cpu: 0, start_ns: 100, end_ns: 150 }, &events, GapThread::Fair);
/// let parts: Vec<_> = verdict.interferences.iter().map(|i| (i.name.as_str(), i.duration_ns)).collect();
/// assert_eq!(parts, [("RCU", 20), ("local_timer", 5)]);
/// assert_eq!((verdict.hardware_ns, verdict.unexplained_ns), (0, 25));
/// ```
#[must_use]
pub fn attribute(gap: Gap, events: &[KernelEvent], own: GapThread) -> GapVerdict {
    let mut order: Vec<&KernelEvent> =
        events.iter().filter(|event| event.class.has_core() && event.start_ns <= gap.end_ns).collect();
    // Of two that begin at once the one that can be interrupted is the outer one.
    order.sort_by_key(|event| (event.start_ns, Reverse(event.class)));
    let parts = parts(gap, &order);
    let mut interferences = Vec::new();
    let mut rest_ns = gap.duration_ns();
    for (event, part_ns) in order.into_iter().zip(parts) {
        let is_point = event.duration_ns == 0 && event.start_ns >= gap.start_ns;
        if part_ns == 0 && !is_point {
            continue;
        }
        rest_ns -= part_ns;
        interferences.push(Interference {
            class: event.class,
            name: name(event, own),
            pid: event.pid,
            priority: event.priority,
            start_ns: event.start_ns,
            duration_ns: part_ns,
        });
    }
    let (hardware_ns, unexplained_ns) = if interferences.is_empty() { (rest_ns, 0) } else { (0, rest_ns) };
    GapVerdict { gap, interferences, hardware_ns, unexplained_ns, is_doubtful: false }
}

/// How much of the gap each event had. No moment is given to two.
fn parts(gap: Gap, order: &[&KernelEvent]) -> Vec<u64> {
    let mut parts = vec![0; order.len()];
    // Which event, and what it still has to have; the innermost last.
    let mut stack: Vec<(usize, u64)> = Vec::new();
    let mut now_ns = 0;
    let mut run = |at: usize, from_ns: u64, to_ns: u64| {
        let (from_ns, to_ns) = (from_ns.max(gap.start_ns), to_ns.min(gap.end_ns));
        parts[at] += to_ns.saturating_sub(from_ns);
    };
    let ends = order.iter().map(|event| event.start_ns).chain([gap.end_ns]);
    for (next, until_ns) in ends.enumerate() {
        while now_ns < until_ns
            && let Some((at, left_ns)) = stack.last_mut()
        {
            let step_ns = (*left_ns).min(until_ns - now_ns);
            run(*at, now_ns, now_ns + step_ns);
            now_ns += step_ns;
            *left_ns -= step_ns;
            if *left_ns == 0 {
                stack.pop();
            }
        }
        now_ns = now_ns.max(until_ns);
        if let Some(event) = order.get(next).filter(|event| event.duration_ns > 0) {
            stack.push((next, event.duration_ns));
        }
    }
    parts
}

fn name(event: &KernelEvent, own: GapThread) -> String {
    match own {
        _ if event.class != Class::Thread => event.name.clone(),
        GapThread::Asleep if event.pid == 0 => "asleep (page fault, lock or signal)".to_owned(),
        GapThread::Sleeper | GapThread::Asleep => event.name.clone(),
        // The core idles, though somebody could run.
        GapThread::Fair if event.pid == 0 => "throttled (cpu.max)".to_owned(),
        GapThread::RealTime { .. } if event.pid == 0 => "rt-throttle".to_owned(),
        GapThread::RealTime { has_fair_server } if event.priority >= FAIR_PRIORITY => {
            let by = if has_fair_server { "fair server" } else { "rt-throttle" };
            format!("{} ({by})", event.name)
        }
        _ => event.name.clone(),
    }
}
