//! Kernel events and gaps as lines, in the format of rtla's traces.

use crate::attribute::Gap;
use crate::record::{CpuNoise, NoiseRecord};
use onbeat_trace::{Class, KernelEvent};
use std::fmt::Write;

/// Formats the kept events and gaps, sorted by their ends; threads as `thread_noise: NAME:PID start S
/// duration N ns`. `more` lines are merged in by their times, in their order.
#[must_use]
pub fn lines(events: &[KernelEvent], record: Option<&NoiseRecord>, more: &[(u64, String)]) -> String {
    let mut all: Vec<(u64, String)> = events.iter().map(event).collect();
    let cpus = record.iter().flat_map(|record| &record.cpus);
    all.extend(cpus.flat_map(gaps).map(|(gap, interferences)| {
        let text = format!(
            "{} sample_threshold: start {} duration {} ns interference {interferences}",
            head("onbeat", 0, gap.cpu, gap.end_ns),
            seconds(gap.start_ns),
            gap.duration_ns(),
        );
        (gap.end_ns, text)
    }));
    all.sort();
    all.extend_from_slice(more);
    all.sort_by_key(|(time_ns, _)| *time_ns);
    all.into_iter().map(|(_, line)| line + "\n").collect()
}

/// Returns the last gaps, and the longest gaps that are not among them.
fn gaps(cpu: &CpuNoise) -> Vec<(Gap, usize)> {
    let mut gaps = cpu.last_gaps.clone();
    let first_ns = gaps.first().map_or(u64::MAX, |(gap, _)| gap.start_ns);
    let longest = cpu.samples.iter().filter(|verdict| verdict.gap.start_ns < first_ns);
    gaps.extend(longest.map(|verdict| (verdict.gap, verdict.interferences.len())));
    gaps
}

fn event(event: &KernelEvent) -> (u64, String) {
    let end_ns = event.start_ns + event.duration_ns;
    let (kind, id) = match event.class {
        Class::Thread => ("thread_noise", format!(":{}", event.pid)),
        Class::Softirq => ("softirq_noise", String::new()),
        Class::Irq => ("irq_noise", String::new()),
        Class::Nmi | Class::Hardware => ("nmi_noise", String::new()),
        Class::Wakeup => ("sched_wakeup", format!(":{}", event.pid)),
        Class::Migration => ("sched_migrate_task", format!(":{}", event.pid)),
        Class::PageFault => ("page_fault", format!(":{}", event.pid)),
    };
    let name: String = event.name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut text =
        head(if event.class == Class::Thread { &name } else { "..." }, event.pid, event.cpu, end_ns);
    write!(text, " {kind}: {name}{id} start {} duration {} ns", seconds(event.start_ns), event.duration_ns)
        .expect("a string takes all");
    (end_ns, text)
}

fn head(task: &str, pid: i32, cpu: u32, time_ns: u64) -> String {
    format!("{task:>16}-{pid:<7} [{cpu:03}] ....... {:12.6}:", time_ns as f64 / 1e9)
}

fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}
