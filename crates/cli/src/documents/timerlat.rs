//! Timer latency: rows, histograms and analysis of a late wake-up as in rtla.

use super::noise::{bucket_rows, clock, histogram_lines, went_on};
use super::table::{Cell, Column, Table, Unit};
use super::{Document, time};
use crate::arguments::timerlat::{StackFormat, TimerArguments, TimerlatHistArguments};
use onbeat_noise::Backend;
use onbeat_noise::analysis::{Analysis, LatencyStep, StepKind};
use onbeat_noise::record::LinearHistogram;
use onbeat_noise::timerlat::{CpuLatency, LatencyRecord, Series};

/// Returns the results, as histograms if `hist` is given, else as rows.
pub fn timerlat(
    record: &LatencyRecord,
    arguments: &TimerArguments,
    hist: Option<&TimerlatHistArguments>,
) -> Document {
    let mut head = match hist {
        _ if arguments.aa_only.is_some() => Vec::new(),
        Some(hist) => hist_lines(record, hist),
        None => top_lines(&record.cpus, record.duration_ns, arguments.nano),
    };
    if let Some(stopped) = &record.stopped {
        let (value, limit) = (time(stopped.value_ns), time(stopped.limit_ns));
        head.push(format!(
            "timerlat hit stop: CPU {}: {} was {value}, above {limit}",
            stopped.cpu, stopped.what
        ));
    }
    if record.hits > 0 {
        head.push(went_on(record.hits));
    }
    let mut tail = Vec::new();
    if arguments.dump_tasks && record.stopped.is_some() {
        tail.push("Tasks on the measured CPUs when the limit was hit:".to_owned());
        tail.extend(
            record
                .tasks
                .iter()
                .map(|task| format!("  CPU {:3}  {}:{}", task.cpu, printable(&task.name), task.pid)),
        );
        if record.tasks.is_empty() {
            tail.push("  unknown: no tracepoints available".to_owned());
        }
    }
    if !arguments.no_aa {
        let hit = record.cpus.iter().filter_map(|cpu| cpu.stopped_by.as_ref());
        for analysis in hit {
            tail.push(format!("## CPU {} hit stop, analyzing it ##", analysis.wake.cpu));
            tail.extend(analysis_lines(analysis, arguments.stack_format));
        }
        if record.stopped.is_none() {
            let worst = record.cpus.iter().filter_map(|cpu| cpu.samples.first());
            if let Some(worst) = worst.max_by_key(|analysis| analysis.wake.user_latency_ns()) {
                tail.push(format!(
                    "## CPU {} was the latest, {:.6} s after boot ##",
                    worst.wake.cpu,
                    worst.wake.due_ns as f64 / 1e9
                ));
                tail.extend(analysis_lines(worst, arguments.stack_format));
            }
        }
    }
    let source = match record.source.backend {
        Backend::Ftrace => "the kernel's tracepoints (ftrace)",
        Backend::Perf => "the kernel's tracepoints (perf)",
        Backend::Tracer => "the kernel's timerlat tracer",
        Backend::Proc | Backend::Auto => "/proc (run-queue wait only)",
    };
    tail.push(format!("causes from {source}: {}", record.source.why));
    let tables = vec![cpus(&record.cpus), samples(&record.cpus), buckets(&record.cpus)];
    Document { head, tables, tail, json: serde_json::to_value(record).expect("a record is plain data") }
}

/// Returns notes that matter for reading the numbers.
pub fn timerlat_notes(record: &LatencyRecord) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(fix) = &record.source.fix {
        lines.push(format!(
            "note: latencies of interrupts and threads, and names of causes, are missing: {}",
            record.source.why
        ));
        lines.push(format!("  fix: {fix}"));
    }
    lines.extend(record.notes.iter().map(|note| format!("note: {note}")));
    lines
}

fn top_lines(cpus: &[CpuLatency], duration_ns: u64, nano: bool) -> Vec<String> {
    let (unit, factor) = if nano { ("ns", 1) } else { ("us", 1000) };
    let kinds =
        ["IRQ", "Thread", "Ret user"].map(|kind| format!("{:^40}", format!("{kind} Timer Latency ({unit})")));
    let columns = " |      cur       min       avg       max".repeat(3);
    let mut lines = vec![
        format!("{:37}Timer Latency", ""),
        format!("{:<15}|{}", clock(duration_ns), kinds.join("|")).trim_end().to_owned(),
        format!("CPU COUNT     {columns}"),
    ];
    let cell = |value: Option<u64>| value.map_or("-".to_owned(), |ns| (ns / factor).to_string());
    let group = |series: &Series, shows_last: bool| {
        let is_there = series.histogram.count > 0;
        let of = |ns: u64| cell(is_there.then_some(ns));
        let last = if shows_last { of(series.last_ns) } else { String::new() };
        let histogram = &series.histogram;
        let (min, avg, max) = (of(histogram.min_ns), of(histogram.mean_ns()), of(histogram.max_ns));
        format!("| {last:>8} {min:>9} {avg:>9} {max:>9} ")
    };
    for cpu in cpus {
        let groups: String = [&cpu.irq, &cpu.thread, &cpu.user].map(|series| group(series, true)).concat();
        lines.push(format!("{:3} #{:<10}{groups}", cpu.cpu, cpu.count).trim_end().to_owned());
    }
    let rule = "-".repeat(40);
    lines.push(format!("{}|{rule}|{rule}|{rule}", "-".repeat(15)));
    let (count, lost) =
        cpus.iter().fold((0, 0), |(count, lost), cpu| (count + cpu.count, lost + cpu.events_lost));
    let groups: String = all(cpus).each_ref().map(|series| group(series, false)).concat();
    lines.push(format!("{:<15}{groups}", format!("ALL #{count} e{lost}")).trim_end().to_owned());
    lines
}

/// Adds up the series of all CPUs: interrupt, thread, return to user space.
pub(super) fn all(cpus: &[CpuLatency]) -> [Series; 3] {
    [0, 1, 2].map(|kind| {
        let mut all = Series::default();
        let series = cpus.iter().map(|cpu| [&cpu.irq, &cpu.thread, &cpu.user][kind]);
        series.for_each(|series| join(&mut all, series));
        all
    })
}

fn join(all: &mut Series, series: &Series) {
    let (sum, one) = (&mut all.histogram, &series.histogram);
    if one.count == 0 {
        return;
    }
    sum.min_ns = if sum.count == 0 { one.min_ns } else { sum.min_ns.min(one.min_ns) };
    sum.count += one.count;
    sum.sum_ns += one.sum_ns;
    sum.max_ns = sum.max_ns.max(one.max_ns);
}

fn hist_lines(record: &LatencyRecord, hist: &TimerlatHistArguments) -> Vec<String> {
    let mut columns: Vec<(String, &LinearHistogram)> = Vec::new();
    for cpu in &record.cpus {
        for (name, series, is_off) in [
            ("IRQ", &cpu.irq, hist.no_irq),
            ("Thr", &cpu.thread, hist.no_thread),
            ("Usr", &cpu.user, hist.no_user),
        ] {
            if !is_off && series.histogram.count > 0 {
                columns.push((format!("{name}-{:03}", cpu.cpu), &series.histogram));
            }
        }
    }
    histogram_lines("ONBEAT timerlat histogram", record.duration_ns, &hist.shape, &columns)
}

/// Formats an analysis as rtla does: each step in us and in per cent of the total.
fn analysis_lines(analysis: &Analysis, format: StackFormat) -> Vec<String> {
    let all_ns = analysis.wake.user_latency_ns();
    let us = |ns: u64| format!("{:>14.2} us", ns as f64 / 1e3);
    let percent = |ns: u64| format!("({:.2} %)", 100.0 * ns as f64 / all_ns.max(1) as f64);
    let mut lines = Vec::new();
    let mut last = None;
    for step in &analysis.steps {
        let label = label(step);
        let is_single = !takes_names(step.what);
        if is_single {
            let name = if step.what == StepKind::IdleExit { "(exit from idle)" } else { &step.name };
            lines.push(format!("  {label:<28}{:>24}{} {}", printable(name), us(step.ns), percent(step.ns)));
        } else {
            if last != Some(step.what) {
                let sum =
                    analysis.steps.iter().filter(|other| other.what == step.what).map(|other| other.ns).sum();
                lines.push(format!("  {label:<28}{:24}{} {}", "", us(sum), percent(sum)));
            }
            let pid =
                if step.what == StepKind::BlockingThread { format!(":{}", step.pid) } else { String::new() };
            let times = if step.count > 1 { format!(" ({} x)", step.count) } else { String::new() };
            let name = format!("{}{pid}{times}", printable(&step.name));
            lines.push(format!("  {:<12}{name:<40}{}", "", us(step.ns)));
        }
        last = Some(step.what);
        if matches!(step.what, StepKind::IdleExit | StepKind::HandlerDelay)
            && let Some(irq_ns) = analysis.wake.irq_latency_ns()
        {
            lines.push(format!("  {:<52}{}", "IRQ latency:", us(irq_ns)));
        }
    }
    let frames = frames(&analysis.stack, format);
    if !frames.is_empty() {
        lines.push("  Blocking thread stack trace".to_owned());
        lines.extend(frames.iter().map(|frame| format!("                -> {}", printable(frame))));
    }
    lines.push("-".repeat(72));
    let doubtful = if analysis.is_doubtful { "; records are missing there" } else { "" };
    lines.push(format!("  {:<52}{} (100%{doubtful})", "Thread latency, to its own code:", us(all_ns)));
    lines
}

fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Returns the frames of a stack. `format` decides about those without a name.
fn frames(stack: &[String], format: StackFormat) -> Vec<&String> {
    let has_name = |frame: &&String| !frame.starts_with("0x");
    match format {
        StackFormat::Full => stack.iter().collect(),
        StackFormat::Skip => stack.iter().filter(has_name).collect(),
        StackFormat::Truncate => stack.iter().take_while(has_name).collect(),
    }
}

fn takes_names(what: StepKind) -> bool {
    matches!(
        what,
        StepKind::BlockingThread | StepKind::Nmi | StepKind::Irq | StepKind::Softirq | StepKind::PreviousIrq
    )
}

pub(super) fn label(step: &LatencyStep) -> &'static str {
    match step.what {
        StepKind::PreviousIrq => "Previous IRQ interference:",
        StepKind::IdleExit | StepKind::HandlerDelay => "IRQ handler delay:",
        StepKind::TimerIrq => "Timer IRQ duration:",
        StepKind::BlockingThread => "Blocking thread:",
        StepKind::Nmi => "Blocking NMI:",
        StepKind::Irq => "IRQ interference:",
        StepKind::Softirq => "Softirq interference:",
        StepKind::Switch => "Wake-up and switch:",
        StepKind::Return => "Return to the program:",
        StepKind::RunQueue => "Other threads:",
        StepKind::Unexplained => "Unexplained:",
    }
}

/// Returns the figures of each CPU, for programs. The text has them in rtla's format.
fn cpus(cpus: &[CpuLatency]) -> Table {
    let rows = cpus.iter().flat_map(|cpu| {
        [("irq", &cpu.irq), ("thread", &cpu.thread), ("user", &cpu.user)].map(|(kind, series)| {
            let summary = &series.summary;
            vec![
                Cell::Number(u64::from(cpu.cpu)),
                kind.into(),
                summary.count.into(),
                summary.min_ns.into(),
                Cell::Decimal(summary.mean_ns),
                summary.median_ns.into(),
                summary.p90_ns.into(),
                summary.p99_ns.into(),
                summary.p99_9_ns.into(),
                summary.max_ns.into(),
            ]
        })
    });
    let names =
        ["cpu", "kind", "count", "min_ns", "mean_ns", "median_ns", "p90_ns", "p99_ns", "p99_9_ns", "max_ns"];
    Table { columns: names.map(|name| Column::new(name, "", Unit::Count)).into(), rows: rows.collect() }
}

/// Returns the steps of the latest wake-ups, for programs.
fn samples(cpus: &[CpuLatency]) -> Table {
    let all = cpus.iter().flat_map(|cpu| &cpu.samples);
    let rows = all.flat_map(|analysis| {
        analysis.steps.iter().map(|step| {
            let what = serde_json::to_value(step.what).expect("a word");
            vec![
                Cell::Number(u64::from(analysis.wake.cpu)),
                analysis.wake.due_ns.into(),
                what.as_str().unwrap_or_default().into(),
                Cell::Text(step.name.clone()),
                step.count.into(),
                step.ns.into(),
            ]
        })
    });
    let names = ["cpu", "due_ns", "step", "name", "count", "ns"];
    Table { columns: names.map(|name| Column::new(name, "", Unit::Count)).into(), rows: rows.collect() }
}

fn buckets(cpus: &[CpuLatency]) -> Table {
    let rows = cpus.iter().flat_map(|cpu| {
        [("irq", &cpu.irq), ("thread", &cpu.thread), ("user", &cpu.user)]
            .map(|(kind, series)| bucket_rows(format!("{kind}-{:03}", cpu.cpu).into(), &series.histogram))
            .concat()
    });
    let names = ["series", "from_ns", "to_ns", "count"];
    Table { columns: names.map(|name| Column::new(name, "", Unit::Count)).into(), rows: rows.collect() }
}
