//! One line of the tracer.

use crate::attribute::Gap;
use onbeat_trace::{Class, KernelEvent};

/// What a line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// Something had a core.
    Event(KernelEvent),
    /// The kernel's thread has found something missing.
    Gap(Gap),
    /// One of its periods is over.
    Period {
        /// On which core.
        cpu: u32,
        /// How long it looked.
        runtime_ns: u64,
        /// What was taken of it.
        noise_ns: u64,
    },
}

/// Reads a line; `None` for one that says something else.
///
/// ```
/// use onbeat_noise::tracer::{Line, line};
/// let text = "  <idle>-0  [002] dn.h2..   108.978143: irq_noise: local_timer:236 start 108.978059283 duration 80583 ns";
/// let Some(Line::Event(event)) = line(text) else { panic!("an event") };
/// assert_eq!((event.cpu, event.name.as_str(), event.start_ns, event.duration_ns), (2, "local_timer", 108_978_059_283, 80_583));
/// ```
#[must_use]
pub fn line(text: &str) -> Option<Line> {
    // The task may hold anything; the core is the first number in brackets before the time.
    let (head, body) = text.split_once(": ")?;
    let open = head.rfind('[')?;
    let cpu: u32 = head[open + 1..].split(']').next()?.parse().ok()?;
    if let Some(rest) = body.strip_prefix("sample_threshold: ") {
        let (start_ns, duration_ns) = span(rest)?;
        return Some(Line::Gap(Gap { cpu, start_ns, end_ns: start_ns.checked_add(duration_ns)? }));
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
        return Some(Line::Event(KernelEvent {
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
fn period(cpu: u32, body: &str) -> Option<Line> {
    let words: Vec<&str> = body.split_whitespace().collect();
    let is_share = words.get(2).is_some_and(|share| share.contains('.') && share.parse::<f64>().is_ok());
    if words.len() < 6 || !is_share {
        return None;
    }
    let ns = |word: &str| word.parse::<u64>().ok()?.checked_mul(1000);
    Some(Line::Period { cpu, runtime_ns: ns(words[0])?, noise_ns: ns(words[1])? })
}
