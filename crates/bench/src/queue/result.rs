//! Converts runs to figures.

use super::asleep::WakeLatencies;
use super::design::Design;
use super::load::{BATCH, LoadFigures};
use super::lost::LostEvents;
use super::settings::{Placement, QueueSettings};
use crate::common;
use onbeat_report::{BenchResult, bench::Machine};
use serde_json::json;

/// Measurements of each design, in the order of the rounds.
#[derive(Debug, Default)]
pub struct DesignTable(Vec<(Design, Vec<LoadFigures>)>);

impl DesignTable {
    pub fn add(&mut self, design: Design, taken: LoadFigures) {
        match self.0.iter_mut().find(|row| row.0 == design) {
            Some(row) => row.1.push(taken),
            None => self.0.push((design, vec![taken])),
        }
    }

    fn of(&self, design: Design) -> Option<&[LoadFigures]> {
        self.0.iter().find(|row| row.0 == design).map(|row| &*row.1)
    }
}

/// All measurements.
#[derive(Debug, Default)]
pub struct DesignRuns {
    pub single: DesignTable,
    pub multi: DesignTable,
    pub bursts: Vec<(Placement, DesignTable)>,
    pub latency: Vec<WakeLatencies>,
    pub lost: Vec<LostEvents>,
    pub others: Option<f64>,
    pub notes: Vec<String>,
}

/// Converts them to the common form of the benches.
pub fn result(settings: &QueueSettings, runs: DesignRuns) -> BenchResult {
    let mut result = BenchResult::new("queue", Machine::read());
    result.parameters = common::parameters(json!({
        "single": settings.single,
        "multi": settings.multi,
        "producers": settings.producers,
        "placement": settings.placement.name(),
        "repeats": settings.repeats,
        "lost_rounds": settings.lost_rounds,
        "latencies": settings.latencies,
        "bursts": settings.bursts,
        "burst_items": settings.burst_items,
        "burst_period_ns": settings.burst_period_ns,
        "batch": BATCH,
    }));
    add(&mut result, "single", &runs.single);
    add(&mut result, "multi", &runs.multi);
    for (placement, table) in &runs.bursts {
        add(&mut result, &format!("burst.{}", placement.name()), table);
    }
    for design in Design::ALL {
        if let Some(operations) = design.locked_operations() {
            result.add(&format!("locked.{}", design.name()), &[operations], "1/item");
        }
    }
    for late in &runs.latency {
        let mut sorted = late.ns.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| sorted.get(((sorted.len().max(1) - 1) as f64 * share) as usize).copied();
        for (name, share) in [("p50", 0.5), ("p99", 0.99), ("max", 1.0)] {
            if let Some(ns) = at(share) {
                result.add(&format!("latency.{}.{name}", late.name), &[ns], "ns");
            }
        }
    }
    for lost in &runs.lost {
        result.add(&format!("lost.{}.rounds", lost.name), &[lost.rounds as f64], "1");
        result.add(&format!("lost.{}.events", lost.name), &[lost.lost as f64], "1");
        if lost.corrupted > 0 {
            let LostEvents { name, corrupted, .. } = lost;
            result
                .notes
                .push(format!("{name}: its list was corrupted {corrupted} times and had to be reset"));
        }
    }
    common::doubts(&mut result, runs.others, common::LEAST);
    result.notes.extend(runs.notes);
    result
}

fn add(result: &mut BenchResult, case: &str, table: &DesignTable) {
    let is_burst = case.starts_with("burst");
    let name = |design: Design| match design {
        Design::SlotsSpin if is_burst => "onbeat_spin_20us",
        design => design.name(),
    };
    for (design, taken) in &table.0 {
        let runs = |value: fn(&LoadFigures) -> f64| -> Vec<f64> { taken.iter().map(value).collect() };
        let name = name(*design);
        if !is_burst {
            result.add(&format!("{case}.{name}"), &runs(|taken| taken.ns), "ns");
        }
        result.add(&format!("cpu.{case}.{name}"), &runs(|taken| taken.cpu_ns), "ns");
        let unit = if is_burst { "1/burst" } else { "1/item" };
        result.add(&format!("wakeups.{case}.{name}"), &runs(|taken| taken.sleeps), unit);
        // Ratios are taken within each round, because disturbances of the machine affect both sides.
        for (model, against) in [(Design::Before, "before"), (Design::After, "after")] {
            let Some(models) = table.of(model).filter(|_| *design != model && !is_burst) else { continue };
            let shares: Vec<f64> = taken.iter().zip(models).map(|(own, model)| own.ns / model.ns).collect();
            result.add(&format!("ratio.{case}.{against}.{name}"), &shares, "x");
            let factors: Vec<f64> = shares.iter().map(|share| 1.0 / share).collect();
            result.add(&format!("improvement.{case}.{against}.{name}"), &factors, "x");
        }
    }
}
