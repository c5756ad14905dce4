//! Comparison of noise records, and projection of one to many nodes.

use super::noise::class;
use super::table::{Cell, Column, Table, Unit};
use super::{Document, time};
use onbeat_noise::project::Projection;
use onbeat_noise::{CpuNoise, NoiseRecord};
use onbeat_report::plot::{Axis, Bar, Bars, Group, Line, Lines, Sheet, Style};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

/// Returns the noise in per cent of the time: mean, minimum and maximum of the cores.
fn shares(record: &NoiseRecord) -> (f64, f64, f64) {
    let shares: Vec<f64> = record.cpus.iter().map(|cpu| 100.0 * (1.0 - cpu.available())).collect();
    let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
    let (least, most) = shares
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(least, most), share| (least.min(*share), most.max(*share)));
    (mean, least.min(most), most)
}

/// Returns a quantile of the lengths of all gaps.
fn quantile_ns(record: &NoiseRecord, quantile: f64) -> u64 {
    let mut lengths: Vec<(u64, u64)> =
        record.cpus.iter().flat_map(|cpu| cpu.lengths.iter().copied()).collect();
    lengths.sort_unstable();
    let all: u64 = lengths.iter().map(|(_, count)| count).sum();
    let mut seen = 0;
    for (ns, count) in &lengths {
        seen += count;
        if seen as f64 >= quantile * all as f64 {
            return *ns;
        }
    }
    0
}

pub fn noise_compared(records: &[NoiseRecord], plot: Option<&Path>) -> Document {
    let rows = records.iter().map(|record| {
        let (mean, least, most) = shares(record);
        let gaps: u64 = record.cpus.iter().map(|cpu| cpu.histogram.count).sum();
        let runtime_ns: u64 = record.cpus.iter().map(|cpu| cpu.runtime_ns).sum();
        let longest = record.cpus.iter().map(|cpu| cpu.max_single_ns).max().unwrap_or(0);
        vec![
            Cell::Text(record.name.clone()),
            Cell::Share(mean / 100.0),
            Cell::Share(least / 100.0),
            Cell::Share(most / 100.0),
            Cell::Decimal(gaps as f64 * 1e9 / runtime_ns.max(1) as f64),
            quantile_ns(record, 0.5).into(),
            quantile_ns(record, 0.99).into(),
            longest.into(),
            Cell::Text(largest(record)),
        ]
    });
    let table = Table {
        columns: vec![
            Column::new("set_up", "setup", Unit::Text),
            Column::new("mean_share", "noise", Unit::Percent),
            Column::new("min_share", "minimum", Unit::Percent),
            Column::new("max_share", "maximum", Unit::Percent),
            Column::new("gaps_per_s", "gaps per s", Unit::Factor),
            Column::new("median_ns", "median gap", Unit::Micros),
            Column::new("p99_ns", "99 %", Unit::Micros),
            Column::new("max_ns", "longest", Unit::Micros),
            Column::new("cause", "largest cause", Unit::Text),
        ],
        rows: rows.collect(),
    };
    let head = vec!["noise compared: mean, minimum and maximum over the CPUs of each setup".to_owned()];
    let tail = plot.map(|path| format!("plot written to {}", path.display())).into_iter().collect();
    let json = json!({ "records": records });
    Document { head, tables: vec![table], tail, json }
}

fn largest(record: &NoiseRecord) -> String {
    let causes = record.cpus.iter().flat_map(|cpu| &cpu.causes);
    let rest: u64 = record.cpus.iter().map(|cpu| cpu.parts.hardware.ns).sum();
    match causes.max_by_key(|cause| cause.total_ns) {
        Some(cause) if cause.total_ns >= rest => format!("{} ({})", cause.name, class(cause.class)),
        _ if rest > 0 => "hardware or hypervisor".to_owned(),
        _ => "unexplained".to_owned(),
    }
}

/// Draws the two plots of the published experiment: the share of noise, and the lengths of the gaps.
pub fn noise_figures(records: &[NoiseRecord]) -> Sheet {
    let bars = records.iter().map(|record| {
        let (value, min, max) = shares(record);
        Bar { label: record.name.clone(), value, min, max, limit: None }
    });
    let bars = Bars {
        title: "Noise: mean of the CPUs, with the least and the most".into(),
        axis: Axis::linear("% of the time taken"),
        groups: vec![Group { name: "setup".into(), bars: bars.collect() }],
        limit: String::new(),
    };
    // Zooms to the range of the quietest setup, so that it is visible, too.
    let zoom_ns =
        records.iter().map(|record| quantile_ns(record, 0.95)).filter(|ns| *ns > 0).min().unwrap_or(0);
    let machine = records.first().map_or(String::new(), |record| {
        let cpu = record.machine.cpu_model.as_deref().unwrap_or("unknown processor");
        format!("{cpu}, kernel {}", record.machine.kernel.as_deref().unwrap_or("unknown"))
    });
    Sheet::new("Operating system noise")
        .line(machine)
        .bars(bars)
        .lines(lengths("All gaps by their length", records, Axis::log("us"), u64::MAX))
        .lines(lengths(&format!("Gaps up to {}", time(zoom_ns)), records, Axis::linear("us"), zoom_ns))
}

/// Returns one line per core and setup. Lines of one setup have the same colour.
fn lengths(title: &str, records: &[NoiseRecord], x: Axis, most_ns: u64) -> Lines {
    let line = |colour: usize, record: &NoiseRecord, cpu: &CpuNoise| Line {
        name: format!("{}, CPU {}", record.name, cpu.cpu),
        colour,
        style: if cpu.cpu.is_multiple_of(2) { Style::Curve } else { Style::Dashed },
        points: points(cpu, most_ns),
    };
    let lines = records
        .iter()
        .enumerate()
        .flat_map(|(colour, record)| record.cpus.iter().map(move |cpu| line(colour, record, cpu)));
    Lines { title: title.into(), x, y: Axis::log("gaps"), lines: lines.collect(), limits: Vec::new() }
}

/// Returns the number of gaps in classes of 10 % width. Empty classes next to them are 0, so that the line
/// does not cross unmeasured ranges.
fn points(cpu: &CpuNoise, most_ns: u64) -> Vec<(f64, f64)> {
    let class_of = |ns: u64| ((ns.max(1) as f64).ln() / 1.1f64.ln()) as i32;
    let middle_us = |class: i32| 1.1f64.powf(f64::from(class) + 0.5) / 1e3;
    let mut classes: BTreeMap<i32, u64> = BTreeMap::new();
    for &(ns, count) in cpu.lengths.iter().filter(|(ns, _)| *ns <= most_ns) {
        *classes.entry(class_of(ns)).or_insert(0) += count;
        for beside in [class_of(ns) - 1, class_of(ns) + 1] {
            classes.entry(beside).or_insert(0);
        }
    }
    classes.into_iter().map(|(class, count)| (middle_us(class), count as f64)).collect()
}

pub fn noise_projected(record: &NoiseRecord, step_ns: u64, found: &[Projection]) -> Document {
    let rows = found
        .iter()
        .map(|one| vec![one.nodes.into(), Cell::Decimal(one.step_ns), Cell::Share(one.slow_down)]);
    let table = Table {
        columns: vec![
            Column::new("nodes", "nodes", Unit::Count),
            Column::new("step_ns", "a step takes", Unit::Micros),
            Column::new("slow_down", "longer by", Unit::Percent),
        ],
        rows: rows.collect(),
    };
    let (seconds, steps) = (record.duration_ns as f64 / 1e9, record.duration_ns / step_ns.max(1));
    let head = vec![format!(
        "{}: steps of {} on nodes with this noise, each waiting for the slowest",
        record.name,
        time(step_ns)
    )];
    let steps = steps * record.cpus.len() as u64;
    let mut tail = vec![format!("resampled from {seconds:.0} s: gaps at random times, independent nodes")];
    if found.iter().any(|one| one.nodes > steps) {
        tail.push(format!(
            "more nodes than the {steps} measured steps: the slowest node can be slower than any measured one; measure longer"
        ));
    }
    let json = json!({ "name": record.name, "step_ns": step_ns, "projections": found });
    Document { head, tables: vec![table], tail, json }
}
