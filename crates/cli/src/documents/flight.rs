//! Steps and kernel events around a late message, line by line.

use onbeat::trace::{Class, KernelEvent, Span};
use onbeat::{LateMessage, Plan};
use std::fmt::Write;

/// Time shown before the message was due, and after it ended.
const AROUND_NS: u64 = 1_000_000;

/// Returns lines in time order, in microseconds from the due time of the message.
pub fn lines(
    late: &LateMessage,
    plan: &Plan,
    start_ns: u64,
    spans: &[Span],
    events: &[KernelEvent],
) -> String {
    let end_ns = start_ns + late.time_ns;
    let of_message = |span: &&Span| span.sequence == late.sequence && span.end_ns <= end_ns + AROUND_NS;
    let due = spans.iter().filter(of_message).map(|span| span.due_ns).filter(|&ns| ns != Span::NO_DUE).max();
    let due_ns = due.unwrap_or(end_ns - late.late_ns);
    let window = due_ns.saturating_sub(AROUND_NS)..end_ns + AROUND_NS;
    let mut all: Vec<(u64, String)> = Vec::new();
    for span in spans.iter().filter(|span| span.end_ns >= window.start && span.start_ns < window.end) {
        let operator = plan.operators.get(span.operator as usize).map_or("?", |operator| &operator.name);
        let worker = plan.workers.get(span.worker as usize).map_or("?", |worker| &worker.name);
        let us = (span.end_ns - span.start_ns) as f64 / 1e3;
        all.push((
            span.start_ns,
            format!("{worker:<16} step of {operator}, message {}: {us:.3} µs", span.sequence),
        ));
    }
    for event in events.iter().filter(|event| window.contains(&event.start_ns)) {
        let us = event.duration_ns as f64 / 1e3;
        let KernelEvent { cpu, name, pid, .. } = event;
        let what = match event.class {
            Class::Thread => format!("thread {name} ({pid})"),
            Class::Irq => format!("IRQ {name}"),
            Class::Softirq => format!("softirq {name}"),
            Class::Nmi => format!("NMI {name}"),
            Class::Hardware => "hardware or hypervisor".to_owned(),
            Class::Wakeup => format!("wake-up of {name} ({pid})"),
            Class::Migration => format!("migration of {name} ({pid}) to this core"),
            Class::PageFault => format!("page fault of {name} ({pid})"),
        };
        all.push((event.start_ns, format!("{:<16} {what}: {us:.3} µs", format!("core {cpu}"))));
    }
    all.sort();
    let mut text = format!("# {}\n# times in µs from the due time of the message\n", late.verdict.sentence);
    for (at_ns, line) in all {
        let us = (i128::from(at_ns) - i128::from(due_ns)) as f64 / 1e3;
        writeln!(text, "{us:>12.3}  {line}").expect("a string takes all");
    }
    text
}
