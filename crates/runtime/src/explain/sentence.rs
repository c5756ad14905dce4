//! A verdict in words.

use crate::base::wording::time;
use onbeat_trace::CauseClass;
use onbeat_trace::cause::Part;
use std::cmp::Reverse;

/// Largest number of parts that a sentence names. The others are summed up.
const NAMED: usize = 3;

/// Detail of a wait for a message of another source that was not due earlier.
pub(super) const DUE_LATER: &str = "due later";

/// Writes a verdict as a sentence, such as "message 8121 of iq → audio was 412 µs late: demod was kept off
/// core 1 for 391 µs by kworker/1:2 (o:0), ...; 7 µs unexplained".
///
/// `what` is the operator or the path with the limit.
#[must_use]
pub fn sentence(what: &str, sequence: u64, late_ns: u64, parts: &[Part]) -> String {
    let mut text = format!("message {sequence} of {what} was {} late", time(late_ns));
    let all_ns: u64 = parts.iter().map(|part| part.took_ns).sum();
    let (unexplained, named): (Vec<Part>, Vec<Part>) =
        together(parts).into_iter().partition(|part| part.class == CauseClass::Unexplained);
    let worth = |part: &&Part| part.took_ns.saturating_mul(100) >= all_ns;
    let shown: Vec<&Part> = named.iter().filter(worth).take(NAMED).collect();
    let phrases: Vec<String> = shown.iter().map(|part| phrase(part)).collect();
    if !phrases.is_empty() {
        text += &format!(": {}", phrases.join(", "));
    }
    let count = named.len() - shown.len();
    let others_ns: u64 = named.iter().map(|part| part.took_ns).sum::<u64>()
        - shown.iter().map(|part| part.took_ns).sum::<u64>();
    if others_ns > 0 {
        let causes = if count == 1 { "another cause" } else { "others" };
        text += &format!(", {} by {causes}", time(others_ns));
    }
    let is_over = shown.first().is_some_and(|part| part.class == CauseClass::OwnCompute) && shown.len() == 1;
    if is_over {
        text += "; no interference was found";
    }
    let rest_ns: u64 = unexplained.iter().map(|part| part.took_ns).sum();
    if rest_ns >= 1000 || phrases.is_empty() {
        text += &format!("; {} unexplained", time(rest_ns));
    }
    text
}

/// Sums up the parts of one class and one name.
fn together(parts: &[Part]) -> Vec<Part> {
    let mut all: Vec<Part> = Vec::new();
    for part in parts {
        match all.iter_mut().find(|known| (known.class, &known.name) == (part.class, &part.name)) {
            Some(known) => known.took_ns += part.took_ns,
            None => all.push(part.clone()),
        }
    }
    all.sort_by_key(|part| Reverse(part.took_ns));
    all
}

pub(super) fn phrase(part: &Part) -> String {
    let Part { class, name, operator, core, detail, took_ns, .. } = part;
    let took = time(*took_ns);
    let operator = operator.as_deref().unwrap_or("it");
    let in_brackets = detail.as_ref().map_or(String::new(), |detail| format!(" ({detail})"));
    let core = core.map_or("its core".to_owned(), |core| format!("core {core}"));
    match class {
        CauseClass::Preempted => format!("{operator} was kept off {core} for {took} by {name}{in_brackets}"),
        CauseClass::Irq => format!("IRQ {name} took {took}"),
        CauseClass::Softirq => format!("softirq {name} took {took}"),
        CauseClass::Nmi => format!("NMIs took {took}"),
        CauseClass::QueueWait => {
            format!("{operator} waited {took} for its turn while the worker was in {name}")
        }
        CauseClass::DownstreamFull => {
            format!("{operator} was held for {took} by the full edge {name}{in_brackets}")
        }
        CauseClass::InputLate if detail.as_deref() == Some(DUE_LATER) => {
            format!("it waited {took} for a message of {name}, which was due that much later")
        }
        CauseClass::InputLate => format!("source {name} waited {took} for its data{in_brackets}"),
        CauseClass::OwnCompute if detail.as_deref() == Some("as usual") => {
            format!("{name} computed for {took} as usual, and the limit leaves no more")
        }
        CauseClass::OwnCompute => {
            format!("{name} computed {took}{}", detail.as_ref().map_or(String::new(), |d| format!(" {d}")))
        }
        CauseClass::RunQueueWait if name.is_empty() => format!("{operator} waited {took} for {core}"),
        CauseClass::RunQueueWait => format!("{operator} waited {took} for {core} ({name})"),
        CauseClass::PageFault => format!("page faults of {name} took about {took}{in_brackets}"),
        CauseClass::SystemCall => format!("{name} was blocked in the kernel for {took}{in_brackets}"),
        CauseClass::Lock => format!("{operator} waited {took} for the thread {name}"),
        CauseClass::GilWait => format!("{operator} waited {took} for the Python lock, which {name} had"),
        CauseClass::OtherNode => {
            // "radio, preempted: stress", if its record was asked.
            let node = if detail.is_some() { name.split(", ").next().unwrap_or(name) } else { name };
            let why = detail.as_ref().map_or(String::new(), |detail| format!(" ({detail})"));
            format!("it left {node} {took} after it was due there{why}")
        }
        CauseClass::Network => format!("link {name} took {took}{in_brackets}"),
        CauseClass::Stopped => format!("the process was stopped for {took}"),
        CauseClass::Migration => format!("{operator} waited {took} for a move between cores ({name})"),
        CauseClass::RtThrottling => {
            format!("{operator} was kept off {core} for {took} by real-time throttling ({name})")
        }
        CauseClass::DeadlineBudget => {
            format!("{operator} was kept off {core} for {took}: its deadline budget was used up{in_brackets}")
        }
        CauseClass::SocketWait => format!("what {name} took had been in its socket for {took}{in_brackets}"),
        CauseClass::TimerLate => format!("the worker woke {took} after its time"),
        CauseClass::Hardware => format!("hardware or hypervisor took {took}"),
        CauseClass::Unexplained => format!("{took} unexplained"),
    }
}
