//! What is shown while noise and late wake-ups are measured: a row per CPU as rtla has it, and what was the cause so far.

use super::noise::{clock, rows};
use super::timerlat::{all, label};
use super::{LiveColumn, LiveTable, LiveView};
use onbeat_noise::CpuNoise;
use onbeat_noise::record::CLASSES;
use onbeat_noise::timerlat::{CpuLatency, Series};

/// Rows, and the largest causes so far.
pub fn noise_screen(cpus: &[CpuNoise], elapsed_ns: u64) -> LiveView {
    let number = LiveColumn::number;
    let us = |ns: u64| (ns / 1000).to_string();
    let row = |cpu: &CpuNoise| {
        let mut row =
            vec![cpu.cpu.to_string(), format!("#{}", cpu.periods), us(cpu.runtime_ns), us(cpu.noise_ns)];
        row.push(format!("{:.5}", 100.0 * cpu.available()));
        row.extend([us(cpu.max_noise_ns), us(cpu.max_single_ns)]);
        row.extend(CLASSES.map(|class| cpu.parts.of(class).count.to_string()));
        row
    };
    let columns = vec![
        number("CPU", 0),
        number("Period", 7),
        number("Runtime", 9),
        number("Noise", 5),
        number("% CPU Aval", 0),
        number("Max Noise", 8),
        number("Max Single", 0),
        number("HW", 3),
        number("NMI", 6),
        number("IRQ", 3),
        number("Softirq", 3),
        number("Thread", 3),
    ];
    let per_cpu = LiveTable { columns, rows: cpus.iter().map(row).collect() };
    let columns = vec![
        number("CPU", 0),
        LiveColumn::text("class", 3),
        LiveColumn::text("cause", 0),
        number("count", 2),
        number("total us", 1),
        number("% of its noise", 0),
        number("max us", 4),
    ];
    let causes = rows(cpus).into_iter().map(|row| {
        vec![
            row.cpu.cpu.to_string(),
            row.class.to_owned(),
            row.name.to_owned(),
            row.count.map_or("-".to_owned(), |count| count.to_string()),
            tenths_us(row.total_ns),
            format!("{:.2}", 100.0 * row.total_ns as f64 / row.cpu.noise_ns.max(1) as f64),
            row.max_ns.map_or("-".to_owned(), tenths_us),
        ]
    });
    let causes = LiveTable { columns, rows: causes.collect() };
    LiveView {
        title: format!(
            "Operating System Noise   duration: {} | time is in us",
            clock(elapsed_ns).trim_start()
        ),
        tables: vec![per_cpu, causes],
        lines: Vec::new(),
    }
}

/// Rows, and why the latest wake-up so far was late.
pub fn timerlat_screen(cpus: &[CpuLatency], elapsed_ns: u64, nano: bool) -> LiveView {
    let (unit, factor) = if nano { ("ns", 1) } else { ("us", 1000) };
    let mut columns = vec![LiveColumn::number("CPU", 0), LiveColumn::number("COUNT", 3)];
    for titles in [
        [("IRQ cur", 6), ("IRQ min", 7), ("IRQ avg", 4), ("IRQ max", 1)],
        [("Thr cur", 6), ("Thr min", 7), ("Thr avg", 4), ("Thr max", 1)],
        [("Usr cur", 2), ("Usr min", 5), ("Usr avg", 0), ("Usr max", 0)],
    ] {
        columns.extend(titles.map(|(title, rank)| LiveColumn::number(title, rank)));
    }
    let series = |row: &mut Vec<String>, series: &Series, has_last: bool| {
        let histogram = &series.histogram;
        let cell = |ns: u64| if histogram.count > 0 { (ns / factor).to_string() } else { "-".to_owned() };
        row.push(if has_last { cell(series.last_ns) } else { String::new() });
        row.extend([histogram.min_ns, histogram.mean_ns(), histogram.max_ns].map(cell));
    };
    let mut rows: Vec<Vec<String>> = Vec::new();
    for cpu in cpus {
        let mut row = vec![cpu.cpu.to_string(), format!("#{}", cpu.count)];
        [&cpu.irq, &cpu.thread, &cpu.user].into_iter().for_each(|kind| series(&mut row, kind, true));
        rows.push(row);
    }
    let (count, lost) =
        cpus.iter().fold((0, 0), |(count, lost), cpu| (count + cpu.count, lost + cpu.events_lost));
    let mut row = vec!["ALL".to_owned(), format!("#{count} e{lost}")];
    all(cpus).iter().for_each(|kind| series(&mut row, kind, false));
    rows.push(row);
    let per_cpu = LiveTable { columns, rows };
    let worst = cpus.iter().filter_map(|cpu| cpu.samples.first());
    let worst = worst.max_by_key(|analysis| analysis.wake.user_latency_ns());
    let steps = worst.iter().flat_map(|analysis| {
        let all_ns = analysis.wake.user_latency_ns().max(1);
        analysis.steps.iter().map(move |step| {
            vec![
                analysis.wake.cpu.to_string(),
                label(step).trim_end_matches(':').to_owned(),
                step.name.clone(),
                step.count.to_string(),
                tenths_us(step.ns),
                format!("{:.1}", 100.0 * step.ns as f64 / all_ns as f64),
            ]
        })
    });
    let columns = vec![
        LiveColumn::number("CPU", 0),
        LiveColumn::text("the latest so far was due to", 0),
        LiveColumn::text("name", 1),
        LiveColumn::number("count", 2),
        LiveColumn::number("us", 0),
        LiveColumn::number("%", 0),
    ];
    let steps = LiveTable { columns, rows: steps.collect() };
    LiveView {
        title: format!("Timer Latency   duration: {} | time is in {unit}", clock(elapsed_ns).trim_start()),
        tables: vec![per_cpu, steps],
        lines: Vec::new(),
    }
}

fn tenths_us(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e3)
}
