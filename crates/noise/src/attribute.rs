//! Attribution: from a gap and kernel events to the causes of the gap.

use onbeat_trace::{Class, KernelEvent};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// Stretch of time that a thread should have had and did not get. In nanoseconds on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The core.
    pub cpu: u32,
    /// Last time at which the thread is known to have run.
    pub start_ns: u64,
    /// First time at which it ran again.
    pub end_ns: u64,
}

impl Gap {
    /// Length of the gap.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

/// Kind of thread that had the gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapThread {
    /// A thread without a real-time policy: it shares its core.
    Fair,
    /// A real-time thread: it yields only to higher priorities, or when the kernel gives time to normal
    /// threads.
    RealTime {
        /// Whether the kernel does that with the fair server (6.12 and later), not by stopping all real-time
        /// threads.
        has_fair_server: bool,
    },
    /// A thread that never waits voluntarily, but slept in this gap: the kernel made it wait for a page or a
    /// lock, or a signal stopped it.
    Asleep,
    /// A thread that waited for a timer: an idle core is normal then.
    Sleeper,
}

/// Causes of a gap. The parts add up to the gap, to the nanosecond.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapVerdict {
    /// The gap.
    pub gap: Gap,
    /// Kernel events in the gap, by start time.
    pub interferences: Vec<Interference>,
    /// Whole gap, if it has no kernel event: the hypervisor, or firmware.
    pub hardware_ns: u64,
    /// Time besides the events: entry to the kernel, exit from it, and unknown causes.
    pub unexplained_ns: u64,
    /// Whether records are missing, so that the unexplained part may be too large.
    pub is_doubtful: bool,
}

/// Part of a gap that one event took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interference {
    /// Class of the event.
    pub class: Class,
    /// Name of the interrupt, softirq or thread; `rt-throttle` if no thread ran.
    pub name: String,
    /// Id of the thread; 0 if it is not a thread.
    pub pid: i32,
    /// Priority of the thread, on the kernel's scale.
    pub priority: i32,
    /// Start of the event, which may be before the gap.
    pub start_ns: u64,
    /// Its time in the gap, without what interrupted it.
    pub duration_ns: u64,
}

/// Priorities from this one on belong to threads without a real-time policy.
const FAIR_PRIORITY: i32 = 100;

/// Finds what had the core in a gap.
///
/// `events` are those of the gap's core, in any order. Events outside the gap, and thread events that take no
/// time, are left out. Each event's time excludes what interrupted it, so the events are nested again: an
/// event interrupts another one if it begins before the other has had all its time.
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
    // Of two events that begin at the same time, the one that can be interrupted is the outer one.
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

/// Returns how much of the gap each event had. No time is counted twice.
fn parts(gap: Gap, order: &[&KernelEvent]) -> Vec<u64> {
    let mut parts = vec![0; order.len()];
    // Running events with the time they still need; the innermost last.
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
        // The core is idle although a thread could run.
        GapThread::Fair if event.pid == 0 => "throttled (cpu.max)".to_owned(),
        GapThread::RealTime { .. } if event.pid == 0 => "rt-throttle".to_owned(),
        GapThread::RealTime { has_fair_server } if event.priority >= FAIR_PRIORITY => {
            let by = if has_fair_server { "fair server" } else { "rt-throttle" };
            format!("{} ({by})", event.name)
        }
        _ => event.name.clone(),
    }
}
