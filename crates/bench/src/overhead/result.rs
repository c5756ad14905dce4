//! Converts runs to figures.

use super::break_even::{Loaded, SHARES, operator_ns};
use super::python::{PeerTimes, PythonCases};
use super::rounds::{Checks, OverheadRounds, Pair, process_iterations};
use super::settings::OverheadSettings;
use super::{Overhead, OverheadCase, OverheadRow, SchedulerVariant};
use crate::common;
use onbeat_report::{BenchResult, bench::Machine};
use onbeat_runtime::Options;
use serde_json::{Value, json};

pub(super) fn overhead(settings: &OverheadSettings, rounds: OverheadRounds) -> Overhead {
    let mut result = BenchResult::new("overhead", Machine::read());
    result.parameters = parameters(settings, &rounds);
    for limit in &rounds.limits {
        result.add(&limit.name(), &limit.runs, "ns");
    }
    result.add("bare.one_way", &rounds.one_way_ns, "ns");
    for pair in &rounds.pairs {
        add_pair(&mut result, pair, settings);
        let sides = [("python", &rounds.python, &pair.python), ("peer.holoscan", &rounds.peer, &pair.peer)];
        for (side, cases, taken) in sides {
            let Some(cases) = cases else { continue };
            let of = |value: fn(&PeerTimes) -> f64| taken.iter().map(value).collect::<Vec<_>>();
            let name = pair.name();
            if settings.method.has_process() {
                result.add(&format!("{side}.process.{name}"), &of(|taken| taken.process_ns), "ns");
            }
            if settings.method.has_steady() && cases.iterations > 1 {
                result.add(&format!("{side}.steady.{name}"), &of(|taken| taken.steady_ns), "ns");
            }
        }
    }
    for (case, taken) in &rounds.python_bare {
        result.add(&format!("python.bare.{}", case.name()), taken, "ns");
    }
    if let Some(checks) = &rounds.checks {
        add_checks(&mut result, checks, &rounds.pairs[checks.pair]);
    }
    result.notes = rounds.notes;
    for (name, cases) in [("onbeat", &rounds.python), ("Holoscan", &rounds.peer)] {
        let Some(cases) = cases else { continue };
        let (version, python) = cases.versions();
        let iterations = cases.iterations;
        result.notes.push(format!(
            "{name} {version}, operators in Python {python}: {iterations} iterations per run; process includes \
             its start and stop"
        ));
    }
    if rounds.peer.is_none() {
        result.notes.push(
            "to compare with Holoscan in the same call: --peer holoscan --python PATH (see \
             peers/holoscan/README.md)"
                .to_owned(),
        );
    }
    let below = |(_, loaded): &(_, Vec<Loaded>)| loaded.iter().any(|loaded| loaded.share < 0.0);
    if rounds.checks.as_ref().is_some_and(|checks| checks.loaded.iter().any(below)) {
        result.notes.push(
            "the engine took less time than the same calls without it: the machine varies more than the \
             engine costs; measure longer, or on a quiet machine"
                .to_owned(),
        );
    }
    common::doubts(&mut result, rounds.others, common::LEAST);
    let row = |pair: &Pair| OverheadRow {
        recipe: pair.recipe.name(),
        case: pair.case,
        limit: pair.limit.map(|limit| rounds.limits[limit].name()),
        steps: pair.steps,
    };
    Overhead { rows: rounds.pairs.iter().map(row).collect(), result }
}

fn parameters(settings: &OverheadSettings, rounds: &OverheadRounds) -> serde_json::Map<String, Value> {
    let names = |names: Vec<&'static str>| Value::from(names);
    let iterations: serde_json::Map<String, Value> =
        rounds.pairs.iter().map(|pair| (pair.name(), pair.iterations.into())).collect();
    let placed: serde_json::Map<String, Value> = rounds
        .pairs
        .iter()
        .map(|pair| {
            (pair.recipe.name(), json!({ "workers": pair.recipe.workers, "cores": pair.options.cores }))
        })
        .collect();
    let side = |name: &str, cases: &Option<PythonCases>| {
        cases.as_ref().map(|cases| {
            let (version, python) = cases.versions();
            json!({
                "name": name,
                "version": version,
                "language": format!("python {python}"),
                "iterations": cases.iterations,
                "warm_up": cases.warm_up(settings.warm_up),
            })
        })
    };
    common::parameters(json!({
        "cases": names(settings.cases.iter().map(|case| OverheadCase::name(*case)).collect()),
        "schedulers": names(settings.schedulers.iter().map(|kind| SchedulerVariant::name(*kind)).collect()),
        "workers": settings.workers,
        "cores": settings.cores,
        "placed": placed,
        "idle": settings.idle.to_string(),
        "capacity": Options::default().capacity,
        "method": settings.method.name(),
        "runs": settings.runs,
        "warm_up": settings.warm_up,
        "process_iterations": process_iterations(settings),
        "steady_iterations": iterations,
        "python": side("onbeat", &rounds.python),
        "peer": side("holoscan", &rounds.peer),
    }))
}

fn add_pair(result: &mut BenchResult, pair: &Pair, settings: &OverheadSettings) {
    let name = pair.name();
    let iterations = process_iterations(settings) as f64;
    let process = |value: fn(&super::measure::RunTimes) -> u64| -> Vec<f64> {
        pair.process.iter().map(|taken| value(taken) as f64).collect()
    };
    let walls: Vec<f64> = process(|taken| taken.wall_ns).iter().map(|wall_ns| wall_ns / iterations).collect();
    result.add(&format!("process.{name}"), &walls, "ns");
    // Both are part of every run, so they are known with either method.
    let outside = if pair.process.is_empty() { &pair.steady } else { &pair.process };
    let (start, stop): (Vec<f64>, Vec<f64>) =
        outside.iter().map(|taken| (taken.start_ns as f64, taken.stop_ns as f64)).unzip();
    result.add(&format!("start.{name}"), &start, "ns");
    result.add(&format!("stop.{name}"), &stop, "ns");
    let measured = pair.iterations as f64;
    let steady: Vec<f64> = pair.steady.iter().map(|taken| taken.steady_ns as f64 / measured).collect();
    result.add(&format!("steady.{name}"), &steady, "ns");
    for share in SHARES {
        let operator: Vec<f64> = steady.iter().map(|ns| operator_ns(ns / pair.steps, share.share)).collect();
        result.add(&format!("break_even.{name}.{}", share.name), &operator, "ns");
    }
    let counted: Vec<_> = pair.steady.iter().filter_map(|taken| taken.counted).collect();
    let switches = |of: fn(&onbeat_os::Usage) -> u64| -> Vec<f64> {
        counted.iter().map(|counted| of(&counted.usage) as f64 / measured).collect()
    };
    let unit = "1/iteration";
    result.add(&format!("switches.voluntary.{name}"), &switches(|usage| usage.voluntary_switches), unit);
    result.add(&format!("switches.involuntary.{name}"), &switches(|usage| usage.involuntary_switches), unit);
    if let Some(futex) = pair.counted.and_then(|counted| counted.futex) {
        result.add(&format!("futex.{name}"), &[futex as f64 / measured], unit);
    }
}

fn add_checks(result: &mut BenchResult, checks: &Checks, pair: &Pair) {
    for (share, loaded) in &checks.loaded {
        let name = format!("loaded.{}.{}", pair.name(), share.name);
        let operators: Vec<f64> = loaded.iter().map(|loaded| loaded.operator_ns).collect();
        let shares: Vec<f64> = loaded.iter().map(|loaded| loaded.share * 100.0).collect();
        result.add(&format!("{name}.operator"), &operators, "ns");
        result.add(&format!("{name}.share"), &shares, "%");
    }
}
