//! Noise of a machine: rows and histograms as in rtla, plus the causes by name.

use super::table::{Cell, Column, Table, Unit};
use super::{Document, counted, time};
use crate::arguments::noise::ShapeArguments;
use onbeat::trace::span::Class;
use onbeat_noise::record::{CLASSES, LinearHistogram};
use onbeat_noise::{Backend, CpuNoise, GapVerdict, NoiseRecord};

/// Layout of the text.
#[derive(Clone, Copy)]
pub enum NoiseView<'a> {
    Top,
    Hist(&'a ShapeArguments),
}

pub fn noise(record: &NoiseRecord, view: NoiseView<'_>) -> Document {
    let mut head = match view {
        NoiseView::Top => top_lines(&record.cpus, record.duration_ns),
        NoiseView::Hist(shape) => {
            let columns: Vec<(String, &LinearHistogram)> =
                record.cpus.iter().map(|cpu| (format!("CPU-{:03}", cpu.cpu), &cpu.histogram)).collect();
            histogram_lines("ONBEAT noise histogram", record.duration_ns, shape, &columns)
        }
    };
    if let Some(stopped) = &record.stopped {
        head.push(String::new());
        head.push(format!(
            "stopped: CPU {}: {} was {}, above the limit of {}",
            stopped.cpu,
            stopped.what,
            time(stopped.value_ns),
            time(stopped.limit_ns)
        ));
    }
    if record.hits > 0 {
        head.push(String::new());
        head.push(went_on(record.hits));
    }
    let mut tail = sample_lines(&record.cpus);
    tail.push(source_line(record));
    let tables = vec![parts(&record.cpus), causes(&record.cpus), cpus(&record.cpus), buckets(&record.cpus)];
    let json = serde_json::to_value(record).expect("a record is plain data");
    Document { head, tables, tail, json }
}

/// Returns notes that matter for reading the numbers.
pub fn noise_notes(record: &NoiseRecord) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(fix) = &record.source.fix {
        lines.push(format!("note: causes have classes but no names: {}", record.source.why));
        lines.push(format!("  fix: {fix}"));
    }
    lines.extend(record.notes.iter().map(|note| format!("note: {note}")));
    lines
}

/// Returns the line about limits that did not end the measurement.
pub(super) fn went_on(hits: u64) -> String {
    format!("a limit was exceeded and the measurement continued: {}", counted(hits, "time"))
}

pub fn elapsed(elapsed_ns: u64, duration_ns: Option<u64>) -> String {
    match duration_ns {
        Some(duration_ns) => format!("{} of {}", time(elapsed_ns), time(duration_ns)),
        None => format!("{}, until Ctrl-C", time(elapsed_ns)),
    }
}

/// Formats a time as `0 00:00:08`.
pub(super) fn clock(ns: u64) -> String {
    let s = ns / 1_000_000_000;
    format!("{:3} {:02}:{:02}:{:02}", s / 86_400, s / 3_600 % 24, s / 60 % 60, s % 60)
}

fn top_lines(cpus: &[CpuNoise], duration_ns: u64) -> Vec<String> {
    let us = |ns: u64| ns / 1000;
    let mut lines = vec![
        format!("{:42}Operating System Noise", ""),
        format!("duration: {} | time is in us", clock(duration_ns)),
        "CPU Period       Runtime        Noise  % CPU Aval   Max Noise   Max Single          HW          NMI          IRQ      Softirq       Thread"
            .to_owned(),
    ];
    for cpu in cpus {
        let [hardware, nmi, irq, softirq, thread] = CLASSES.map(|class| cpu.parts.of(class).count);
        lines.push(format!(
            "{:3} #{:<6} {:>12} {:>12}   {:>9.5} {:>11} {:>12} {hardware:>11} {nmi:>12} {irq:>12} {softirq:>12} {thread:>12}",
            cpu.cpu,
            cpu.periods,
            us(cpu.runtime_ns),
            us(cpu.noise_ns),
            100.0 * cpu.available(),
            us(cpu.max_noise_ns),
            us(cpu.max_single_ns),
        ));
    }
    lines
}

/// Formats a histogram as rtla does: a row per non-empty bucket, a column per series.
pub(super) fn histogram_lines(
    title: &str,
    duration_ns: u64,
    shape: &ShapeArguments,
    columns: &[(String, &LinearHistogram)],
) -> Vec<String> {
    let mut lines = Vec::new();
    let index = |text: &str| if shape.no_index { String::new() } else { format!("{text:<6}") };
    if !shape.no_header {
        lines.push(format!("# {title}"));
        lines.push("# Time unit is microseconds (us)".to_owned());
        lines.push(format!("# Duration: {}", clock(duration_ns)));
        let heads: String = columns.iter().map(|(name, _)| format!("{name:>9} ")).collect();
        lines.push((index("Index") + &heads).trim_end().to_owned());
    }
    let mut row = |label: String, value: &dyn Fn(&LinearHistogram) -> u64| {
        let cells: String = columns.iter().map(|(_, buckets)| format!("{:>9} ", value(buckets))).collect();
        lines.push((index(&label) + &cells).trim_end().to_owned());
    };
    let entries = columns.iter().map(|(_, buckets)| buckets.counts.len()).max().unwrap_or(0);
    for at in 0..entries {
        let count = |buckets: &LinearHistogram| buckets.counts.get(at).copied().unwrap_or(0);
        if shape.with_zeros || columns.iter().any(|(_, buckets)| count(buckets) > 0) {
            row(bucket_label(at as u64 * shape.bucket_size), &count);
        }
    }
    if !shape.no_summary {
        row("over:".to_owned(), &|buckets| buckets.over);
        row("count:".to_owned(), &|buckets| buckets.count);
        row("min:".to_owned(), &|buckets| buckets.min_ns / 1000);
        row("avg:".to_owned(), &|buckets| buckets.mean_ns() / 1000);
        row("max:".to_owned(), &|buckets| buckets.max_ns / 1000);
    }
    lines
}

fn bucket_label(ns: u64) -> String {
    if ns.is_multiple_of(1000) { (ns / 1000).to_string() } else { format!("{:.3}", ns as f64 / 1e3) }
}

pub(super) fn class(class: Class) -> &'static str {
    match class {
        Class::Hardware => "hardware",
        Class::Nmi => "nmi",
        Class::Irq => "irq",
        Class::Softirq => "softirq",
        Class::Thread => "thread",
        Class::Wakeup => "wake-up",
        Class::Migration => "migration",
        Class::PageFault => "page fault",
    }
}

/// Returns the noise of each core by class. The shares of a row add up to 100 %.
fn parts(cpus: &[CpuNoise]) -> Table {
    let share = |part: u64, cpu: &CpuNoise| Cell::Share(part as f64 / cpu.noise_ns.max(1) as f64);
    let rows = cpus.iter().map(|cpu| {
        let mut row = vec![Cell::Text(format!("CPU {}", cpu.cpu)), Cell::Number(cpu.noise_ns)];
        row.extend(CLASSES.iter().map(|class| share(cpu.parts.of(*class).ns, cpu)));
        row.extend([share(cpu.parts.unexplained_ns, cpu), cpu.doubtful.into(), cpu.steal_ns.into()]);
        row
    });
    Table {
        columns: vec![
            Column::new("cpu", "noise of", Unit::Text),
            Column::new("noise_ns", "noise", Unit::Micros),
            Column::new("hardware_share", "hardware", Unit::Percent),
            Column::new("nmi_share", "NMI", Unit::Percent),
            Column::new("irq_share", "IRQ", Unit::Percent),
            Column::new("softirq_share", "softirq", Unit::Percent),
            Column::new("thread_share", "thread", Unit::Percent),
            Column::new("unexplained_share", "unexplained", Unit::Percent),
            Column::new("doubtful", "doubtful gaps", Unit::Count).optional().alarm(),
            Column::new("steal_ns", "steal clock", Unit::Millis).optional(),
        ],
        rows: rows.collect(),
    }
}

/// Row of the table of causes. The times of a core's rows add up to its noise.
pub(super) struct CauseRow<'c> {
    pub cpu: &'c CpuNoise,
    pub name: &'c str,
    pub class: &'static str,
    pub total_ns: u64,
    /// Number of occurrences, and the longest one, if known.
    pub count: Option<u64>,
    pub max_ns: Option<u64>,
}

/// Returns the causes, named and unnamed, the largest first.
pub(super) fn rows(cpus: &[CpuNoise]) -> Vec<CauseRow<'_>> {
    let mut rows = Vec::new();
    for cpu in cpus {
        rows.extend(cpu.causes.iter().map(|cause| CauseRow {
            cpu,
            name: &cause.name,
            class: class(cause.class),
            total_ns: cause.total_ns,
            count: Some(cause.count),
            max_ns: Some(cause.max_ns),
        }));
        let hardware = cpu.parts.hardware;
        for (name, class, total_ns, count) in [
            ("(no event recorded)", "hardware", hardware.ns, Some(hardware.count)),
            ("(outside of events)", "unexplained", cpu.parts.unexplained_ns, None),
        ] {
            if total_ns > 0 {
                rows.push(CauseRow { cpu, name, class, total_ns, count, max_ns: None });
            }
        }
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
    rows
}

fn causes(cpus: &[CpuNoise]) -> Table {
    let rows = rows(cpus).into_iter().map(|row| {
        vec![
            row.name.into(),
            row.class.into(),
            u64::from(row.cpu.cpu).into(),
            row.count.into(),
            row.total_ns.into(),
            Cell::Share(row.total_ns as f64 / row.cpu.noise_ns.max(1) as f64),
            row.count.map(|count| row.total_ns / count.max(1)).into(),
            row.max_ns.into(),
        ]
    });
    Table {
        columns: vec![
            Column::new("cause", "cause", Unit::Text),
            Column::new("class", "class", Unit::Text),
            Column::new("cpu", "CPU", Unit::Count),
            Column::new("count", "count", Unit::Count),
            Column::new("total_ns", "total", Unit::Micros),
            Column::new("share", "of its noise", Unit::Percent),
            Column::new("mean_ns", "mean", Unit::Micros),
            Column::new("max_ns", "max", Unit::Micros),
        ],
        rows: rows.collect(),
    }
}

/// Returns the figures of each CPU, for programs. The text has them in rtla's format.
fn cpus(cpus: &[CpuNoise]) -> Table {
    let rows = cpus.iter().map(|cpu| {
        let mut row: Vec<Cell> = vec![u64::from(cpu.cpu).into(), cpu.periods.into(), cpu.runtime_ns.into()];
        row.extend([cpu.noise_ns.into(), Cell::Share(cpu.available()), cpu.max_noise_ns.into()]);
        row.push(cpu.max_single_ns.into());
        row.extend(CLASSES.iter().map(|class| Cell::from(cpu.parts.of(*class).count)));
        row.extend(CLASSES.iter().map(|class| Cell::from(cpu.parts.of(*class).ns)));
        row.push(cpu.parts.unexplained_ns.into());
        row
    });
    let names = [
        "cpu",
        "periods",
        "runtime_ns",
        "noise_ns",
        "available",
        "max_noise_ns",
        "max_single_ns",
        "hardware",
        "nmi",
        "irq",
        "softirq",
        "thread",
        "hardware_ns",
        "nmi_ns",
        "irq_ns",
        "softirq_ns",
        "thread_ns",
        "unexplained_ns",
    ];
    Table { columns: names.map(|name| Column::new(name, "", Unit::Count)).into(), rows: rows.collect() }
}

/// Returns the non-empty buckets, for programs. The last one can lack an end.
fn buckets(cpus: &[CpuNoise]) -> Table {
    let rows = cpus.iter().flat_map(|cpu| bucket_rows(u64::from(cpu.cpu).into(), &cpu.histogram));
    let names = ["cpu", "from_ns", "to_ns", "count"];
    Table { columns: names.map(|name| Column::new(name, "", Unit::Count)).into(), rows: rows.collect() }
}

pub(super) fn bucket_rows(label: Cell, histogram: &LinearHistogram) -> Vec<Vec<Cell>> {
    let width_ns = histogram.bucket_ns;
    let counts = histogram.counts.iter().enumerate().filter(|(_, count)| **count > 0);
    let mut rows: Vec<Vec<Cell>> = counts
        .map(|(at, count)| {
            let from_ns = at as u64 * width_ns;
            vec![label.clone(), from_ns.into(), (from_ns + width_ns).into(), (*count).into()]
        })
        .collect();
    if histogram.over > 0 {
        let from_ns = histogram.counts.len() as u64 * width_ns;
        rows.push(vec![label, from_ns.into(), Cell::Nothing, histogram.over.into()]);
    }
    rows
}

/// Returns lines about the longest gaps and their causes.
fn sample_lines(cpus: &[CpuNoise]) -> Vec<String> {
    let mut lines = Vec::new();
    for cpu in cpus {
        if cpu.samples.is_empty() {
            continue;
        }
        lines.push(format!("longest gaps of CPU {}, by seconds since boot:", cpu.cpu));
        lines.extend(cpu.samples.iter().take(20).map(|verdict| format!("  {}", verdict_line(verdict))));
    }
    lines
}

/// Formats a gap: `12.345678 s: 322.1 µs, 2 interferences: injector:1234 303.0 µs, local_timer 12.1 µs,
/// unexplained 7.0 µs`
pub(super) fn verdict_line(verdict: &GapVerdict) -> String {
    let mut parts = by_name(verdict);
    if verdict.hardware_ns > 0 {
        parts.push(format!("hardware or hypervisor {}", time(verdict.hardware_ns)));
    }
    if verdict.unexplained_ns > 0 {
        parts.push(format!("unexplained {}", time(verdict.unexplained_ns)));
    }
    let doubtful = if verdict.is_doubtful { " (records are missing there)" } else { "" };
    format!(
        "{:.6} s: {}, {}: {}{doubtful}",
        verdict.gap.start_ns as f64 / 1e9,
        time(verdict.gap.duration_ns()),
        counted(verdict.interferences.len() as u64, "interference"),
        parts.join(", ")
    )
}

/// Adds up interferences of the same name. Returns the largest first.
fn by_name(verdict: &GapVerdict) -> Vec<String> {
    const SHOWN: usize = 8;
    let mut names: Vec<(String, u64, u64)> = Vec::new();
    for interference in &verdict.interferences {
        let pid = if interference.pid > 0 { format!(":{}", interference.pid) } else { String::new() };
        let name = format!("{}{pid}", interference.name);
        match names.iter_mut().find(|(known, ..)| *known == name) {
            Some((_, count, ns)) => (*count, *ns) = (*count + 1, *ns + interference.duration_ns),
            None => names.push((name, 1, interference.duration_ns)),
        }
    }
    names.sort_by_key(|(_, _, ns)| std::cmp::Reverse(*ns));
    let part = |(name, count, ns): &(String, u64, u64)| {
        let times = if *count > 1 { format!(" ({count} x)") } else { String::new() };
        format!("{name}{times} {}", time(*ns))
    };
    let mut parts: Vec<String> = names.iter().take(SHOWN).map(part).collect();
    if let Some(rest) = names.get(SHOWN..).filter(|rest| !rest.is_empty()) {
        parts.push(format!("{} more {}", rest.len(), time(rest.iter().map(|(.., ns)| ns).sum())));
    }
    parts
}

fn source_line(record: &NoiseRecord) -> String {
    let source = match record.source.backend {
        Backend::Ftrace => "the kernel's tracepoints (ftrace)",
        Backend::Perf => "the kernel's tracepoints (perf)",
        Backend::Tracer => "the kernel's osnoise tracer",
        Backend::Proc | Backend::Auto => "/proc (classes only)",
    };
    format!("causes from {source}: {}", record.source.why)
}
