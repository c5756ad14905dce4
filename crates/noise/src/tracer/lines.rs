//! Lines of the kernel's tracers.

use crate::attribute::Gap;
use onbeat_trace::{Class, KernelEvent};

/// Content of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TracerLine {
    /// A kernel event.
    Event(KernelEvent),
    /// A gap that the kernel's thread found.
    Gap(Gap),
    /// A period of the kernel's thread is over.
    Period {
        /// The core.
        cpu: u32,
        /// Time spent measuring.
        runtime_ns: u64,
        /// Noise in that time.
        noise_ns: u64,
    },
    /// Lateness of a timer.
    Latency {
        /// The core.
        cpu: u32,
        /// Where the lateness was seen.
        context: LineContext,
        /// The lateness.
        latency_ns: u64,
        /// Time at which the line was written, within a microsecond.
        time_ns: u64,
        /// Name and id of the thread that had the core then.
        task: (String, i32),
    },
    /// Start of a stack, whose frames follow, the innermost first.
    Stack {
        /// The core.
        cpu: u32,
    },
    /// A frame of a stack.
    Frame(String),
    /// Lines for which there was no room.
    Lost {
        /// The core.
        cpu: u32,
        /// Number of lines.
        count: u64,
    },
}

/// Where a timer's lateness was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineContext {
    /// In the timer's interrupt handler.
    Irq,
    /// In the woken thread, still in the kernel.
    Thread,
    /// In the woken thread's own code.
    User,
}

/// Parses a line; `None` for any other kind of line.
///
/// ```
/// use onbeat_noise::tracer::{TracerLine, line};
/// let text = "  <idle>-0  [002] dn.h2..   108.978143: \
///     irq_noise: local_timer:236 start 108.978059283 duration 80583 ns";
/// let Some(TracerLine::Event(event)) = line(text) else { panic!("an event") };
/// assert_eq!((event.cpu, event.name.as_str()), (2, "local_timer"));
/// assert_eq!((event.start_ns, event.duration_ns), (108_978_059_283, 80_583));
/// ```
#[must_use]
pub fn line(text: &str) -> Option<TracerLine> {
    if let Some(frame) = text.strip_prefix(" => ") {
        return Some(TracerLine::Frame(frame.trim_end().to_owned()));
    }
    if let Some(lost) = text.strip_prefix("CPU:") {
        return lost_events(lost);
    }
    let LineHead { task, cpu, time_ns, body } = head(text)?;
    if body.trim() == "<stack trace>" {
        return Some(TracerLine::Stack { cpu });
    }
    if let Some(rest) = body.strip_prefix('#') {
        return latency(rest, cpu, time_ns, task);
    }
    if let Some(rest) = body.strip_prefix("sample_threshold: ") {
        let (start_ns, duration_ns) = span(rest)?;
        return Some(TracerLine::Gap(Gap { cpu, start_ns, end_ns: start_ns.checked_add(duration_ns)? }));
    }
    let classes = [
        ("thread_noise: ", Class::Thread),
        ("softirq_noise: ", Class::Softirq),
        ("irq_noise: ", Class::Irq),
        ("nmi_noise: ", Class::Nmi),
    ];
    for (word, class) in classes {
        let Some(rest) = body.trim_start().strip_prefix(word) else { continue };
        let rest = rest.trim_start();
        let (start_ns, duration_ns) = span(rest)?;
        // `NAME:NUMBER start ...`; an NMI has no name.
        let who = rest.split("start ").next()?.trim();
        let (name, number) = who.rsplit_once(':').unwrap_or((who, "0"));
        let name = if class == Class::Nmi && name.is_empty() { "nmi" } else { name };
        let pid = if class == Class::Thread { number.parse().ok()? } else { 0 };
        return Some(TracerLine::Event(KernelEvent {
            cpu,
            start_ns,
            duration_ns,
            class,
            name: name.to_owned(),
            pid,
            priority: 0,
            depth: 0,
        }));
    }
    period(cpu, body)
}

/// Start of every line.
struct LineHead<'l> {
    task: (String, i32),
    cpu: u32,
    time_ns: u64,
    body: &'l str,
}

/// `          <idle>-0       [002] d..h1..   108.978075: ...`
fn head(text: &str) -> Option<LineHead<'_>> {
    // The task may contain anything; the core is the last number in brackets before the time.
    let (head, body) = text.split_once(": ")?;
    let open = head.rfind('[')?;
    let cpu: u32 = head[open + 1..].split(']').next()?.parse().ok()?;
    let task = head[..open].trim();
    let (name, pid) = task.rsplit_once('-').unwrap_or((task, "0"));
    let time_ns = moment(head.rsplit(char::is_whitespace).next()?).unwrap_or(0);
    Some(LineHead {
        task: (name.to_owned(), pid.trim().parse().unwrap_or(0)),
        cpu,
        time_ns,
        body: body.trim_start(),
    })
}

/// Time at which a line was written; `None` if it has none.
pub(crate) fn time_ns(text: &str) -> Option<u64> {
    head(text).map(|head| head.time_ns).filter(|time_ns| *time_ns > 0)
}

/// `108.978075`
fn moment(text: &str) -> Option<u64> {
    let (seconds, rest) = text.split_once('.')?;
    let us: u64 = (rest.len() == 6).then(|| rest.parse().ok()).flatten()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(us * 1000)
}

/// `1569  context thread timer_latency    406060 ns`, after the `#`
fn latency(rest: &str, cpu: u32, time_ns: u64, task: (String, i32)) -> Option<TracerLine> {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let [_, "context", context, "timer_latency", ns, "ns"] = words[..] else { return None };
    let context = match context {
        "irq" => LineContext::Irq,
        "thread" => LineContext::Thread,
        "user-ret" => LineContext::User,
        _ => return None,
    };
    Some(TracerLine::Latency { cpu, context, latency_ns: ns.parse().ok()?, time_ns, task })
}

/// `1 [LOST 5 EVENTS]`
fn lost_events(text: &str) -> Option<TracerLine> {
    let (cpu, rest) = text.split_once(" [LOST ")?;
    Some(TracerLine::Lost { cpu: cpu.parse().ok()?, count: rest.strip_suffix(" EVENTS]")?.parse().ok()? })
}

/// `start 80.685660050 duration 9290114 ns`
fn span(text: &str) -> Option<(u64, u64)> {
    let mut words = text.rsplit("start ").next()?.split_whitespace();
    let (seconds, rest) = words.next()?.split_once('.')?;
    let rest: u64 = (rest.len() == 9).then(|| rest.parse().ok()).flatten()?;
    let start_ns = seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(rest)?;
    (words.next()? == "duration").then_some(())?;
    Some((start_ns, words.next()?.parse().ok()?))
}

/// Run time and noise in microseconds, the available part with five digits, and counts.
fn period(cpu: u32, body: &str) -> Option<TracerLine> {
    let words: Vec<&str> = body.split_whitespace().collect();
    let is_share = words.get(2).is_some_and(|share| share.contains('.') && share.parse::<f64>().is_ok());
    if words.len() < 6 || !is_share {
        return None;
    }
    let ns = |word: &str| word.parse::<u64>().ok()?.checked_mul(1000);
    Some(TracerLine::Period { cpu, runtime_ns: ns(words[0])?, noise_ns: ns(words[1])? })
}
