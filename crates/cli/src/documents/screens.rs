//! Live views of noise and timer latency: a row per CPU as in rtla, and the causes so far.

use super::live::{LiveTable, LiveView, or_dash};
use super::noise::{clock, rows};
use super::timerlat::{all, label};
use onbeat_noise::CpuNoise;
use onbeat_noise::record::CLASSES;
use onbeat_noise::timerlat::{CpuLatency, Series};

/// Returns the rows per CPU, and the largest causes so far.
pub fn noise_screen(cpus: &[CpuNoise], elapsed_ns: u64) -> LiveView {
    let us = |ns: u64| (ns / 1000).to_string();
    let mut per_cpu = LiveTable::of(cpus)
        .number("CPU", 0, |cpu| cpu.cpu.to_string())
        .number("Period", 7, |cpu| format!("#{}", cpu.periods))
        .number("Runtime", 9, |cpu| us(cpu.runtime_ns))
        .number("Noise", 5, |cpu| us(cpu.noise_ns))
        .number("% CPU Aval", 0, |cpu| format!("{:.5}", 100.0 * cpu.available()))
        .number("Max Noise", 8, |cpu| us(cpu.max_noise_ns))
        .number("Max Single", 0, |cpu| us(cpu.max_single_ns));
    let titles = [("HW", 3), ("NMI", 6), ("IRQ", 3), ("Softirq", 3), ("Thread", 3)];
    for ((title, rank), class) in titles.into_iter().zip(CLASSES) {
        per_cpu = per_cpu.number(title, rank, |cpu| cpu.parts.of(class).count.to_string());
    }
    let causes = LiveTable::of(rows(cpus))
        .number("CPU", 0, |row| row.cpu.cpu.to_string())
        .text("class", 3, |row| row.class.to_owned())
        .text("cause", 0, |row| row.name.to_owned())
        .number("count", 2, |row| or_dash(row.count, |count| count.to_string()))
        .number("total us", 1, |row| tenths_us(row.total_ns))
        .number("% of its noise", 0, |row| {
            format!("{:.2}", 100.0 * row.total_ns as f64 / row.cpu.noise_ns.max(1) as f64)
        })
        .number("max us", 4, |row| or_dash(row.max_ns, tenths_us));
    view("Operating System Noise", elapsed_ns, "us", [per_cpu.build(), causes.build()])
}

/// Row of one core or of all cores.
struct Latency<'l> {
    cpu: String,
    count: String,
    kinds: [&'l Series; 3],
    has_last: bool,
}

/// Returns the rows per CPU, and the causes of the latest wake-up so far.
pub fn timerlat_screen(cpus: &[CpuLatency], elapsed_ns: u64, nano: bool) -> LiveView {
    let (unit, factor) = if nano { ("ns", 1) } else { ("us", 1000) };
    let one = |cpu| {
        let CpuLatency { cpu, count, irq, thread, user, .. }: &CpuLatency = cpu;
        let kinds = [irq, thread, user];
        Latency { cpu: cpu.to_string(), count: format!("#{count}"), kinds, has_last: true }
    };
    let (count, lost) =
        cpus.iter().fold((0, 0), |(count, lost), cpu| (count + cpu.count, lost + cpu.events_lost));
    let kinds = all(cpus);
    let count = format!("#{count} e{lost}");
    let sum = Latency { cpu: "ALL".to_owned(), count, kinds: kinds.each_ref(), has_last: false };
    let mut per_cpu = LiveTable::of(cpus.iter().map(one).chain([sum]))
        .number("CPU", 0, |row| row.cpu.clone())
        .number("COUNT", 3, |row| row.count.clone());
    for (kind, titles) in [
        [("IRQ cur", 6), ("IRQ min", 7), ("IRQ avg", 4), ("IRQ max", 1)],
        [("Thr cur", 6), ("Thr min", 7), ("Thr avg", 4), ("Thr max", 1)],
        [("Usr cur", 2), ("Usr min", 5), ("Usr avg", 0), ("Usr max", 0)],
    ]
    .into_iter()
    .enumerate()
    {
        let values: [fn(&Series) -> u64; 4] = [
            |series: &Series| series.last_ns,
            |series: &Series| series.histogram.min_ns,
            |series: &Series| series.histogram.mean_ns(),
            |series: &Series| series.histogram.max_ns,
        ];
        for (which, ((title, rank), value)) in titles.into_iter().zip(values).enumerate() {
            per_cpu = per_cpu.number(title, rank, |row| {
                let series = row.kinds[kind];
                let ns = (series.histogram.count > 0).then(|| value(series));
                if which == 0 && !row.has_last {
                    String::new()
                } else {
                    or_dash(ns, |ns| (ns / factor).to_string())
                }
            });
        }
    }
    let worst = cpus.iter().filter_map(|cpu| cpu.samples.first());
    let worst = worst.max_by_key(|analysis| analysis.wake.user_latency_ns());
    let steps = worst.iter().flat_map(|analysis| analysis.steps.iter().map(move |step| (*analysis, step)));
    let steps = LiveTable::of(steps)
        .number("CPU", 0, |(analysis, _)| analysis.wake.cpu.to_string())
        .text("the latest so far was due to", 0, |(_, step)| label(step).trim_end_matches(':').to_owned())
        .text("name", 1, |(_, step)| step.name.clone())
        .number("count", 2, |(_, step)| step.count.to_string())
        .number("us", 0, |(_, step)| tenths_us(step.ns))
        .number("%", 0, |(analysis, step)| {
            format!("{:.1}", 100.0 * step.ns as f64 / analysis.wake.user_latency_ns().max(1) as f64)
        });
    view("Timer Latency", elapsed_ns, unit, [per_cpu.build(), steps.build()])
}

fn view(what: &str, elapsed_ns: u64, unit: &str, tables: [LiveTable; 2]) -> LiveView {
    let title = format!("{what}   duration: {} | time is in {unit}", clock(elapsed_ns).trim_start());
    LiveView { title, tables: tables.into(), lines: Vec::new() }
}

fn tenths_us(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e3)
}
