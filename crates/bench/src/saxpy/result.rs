//! Converts rates to figures.

use super::case::ChainShape;
use super::rounds::SaxpyRounds;
use super::settings::{Mode, SaxpySettings, Whose};
use super::{PeerRow, SaxpyResults, SaxpyRow};
use crate::common;
use onbeat_report::{BenchResult, bench::Machine};
use serde_json::{Map, Value, json};

const RATE: &str = "Gsamples/s";

pub(super) fn result(settings: &SaxpySettings, rounds: SaxpyRounds) -> SaxpyResults {
    let mut result = BenchResult::new("saxpy", Machine::read());
    result.parameters = parameters(settings, &rounds);
    let limits = rounds.limits();
    for (limit, rates) in &limits {
        result.add(&format!("{}.rate", limit.name()), &giga(rates), RATE);
    }
    let mut rows = Vec::new();
    for (case, taken) in &rounds.ours {
        let name = case.name();
        let rates: Vec<f64> = taken.iter().map(|taken| taken.rate).collect();
        result.add(&format!("{name}.rate"), &giga(&rates), RATE);
        let mut compare = |what: &str, with: Vec<f64>, factor: f64| {
            result.add(&format!("{name}.{what}"), &percent(&rates, &with, factor), "%");
        };
        let ChainShape { cores, kernels, .. } = case.shape;
        // The fair line: the sum of what all cores would process alone.
        compare("share", taken.iter().map(|taken| taken.kernel).collect(), kernels as f64 / cores as f64);
        compare("of_bare", taken.iter().filter_map(|taken| taken.limit).collect(), 1.0);
        if case.mode != Mode::Greedy {
            compare(
                "of_one_core",
                taken.iter().filter_map(|taken| taken.one_core).collect(),
                1.0 / cores as f64,
            );
        }
        let best = rounds.best_peer(case);
        if let Some(best) = best.filter(|best| best.iter().all(|rate| *rate > 0.0)) {
            let times: Vec<f64> = rates.iter().zip(&best).map(|(ours, theirs)| ours / theirs).collect();
            result.add(&format!("{name}.times_best_peer"), &times, "x");
        }
        rows.push(SaxpyRow { case: *case, limit: format!("{}.rate", case.limit().name()), name });
    }
    let mut peers = Vec::new();
    for (peer, taken) in &rounds.peers {
        let name = format!("peer.{}", peer.name());
        let rates: Vec<f64> = taken.iter().map(|taken| taken.rate).collect();
        let kernel: Vec<f64> = taken.iter().map(|taken| taken.kernel).collect();
        result.add(&format!("{name}.rate"), &giga(&rates), RATE);
        let factor = peer.kernels as f64 / peer.cores as f64;
        result.add(&format!("{name}.share"), &percent(&rates, &kernel, factor), "%");
        peers.push(PeerRow { peer: peer.clone(), name });
    }
    let (again, still) = rounds.again;
    result.add("machine.again", &[again as f64], "measurements");
    result.add("machine.disturbed", &[still as f64], "measurements");
    result.notes = rounds.notes;
    if still > 0 {
        let all = settings.rounds * (rounds.ours.len() + rounds.peers.len());
        result.notes.push(format!(
            "{still} of {all} measurements were made on a disturbed machine, even after repetition: --again \
             N repeats them up to N times"
        ));
    }
    common::doubts(&mut result, rounds.others, common::AGAIN);
    SaxpyResults { result, rows, peers }
}

fn giga(rates: &[f64]) -> Vec<f64> {
    rates.iter().map(|rate| rate / 1e9).collect()
}

/// Ratios are taken within each round, so that changes of the machine cancel out.
fn percent(rates: &[f64], of: &[f64], factor: f64) -> Vec<f64> {
    rates.iter().zip(of).map(|(rate, of)| 100.0 * rate * factor / of).collect()
}

fn parameters(settings: &SaxpySettings, rounds: &SaxpyRounds) -> Map<String, Value> {
    let names = |names: Vec<&'static str>| Value::from(names);
    common::parameters(json!({
        "cores": settings.cores,
        "on": rounds.on,
        "kernels": settings.kernels,
        "quanta": settings.quanta,
        "modes": names(settings.modes.iter().map(|mode| mode.name()).collect()),
        "forms": names(settings.forms.iter().map(|form| form.name()).collect()),
        "operators": names(settings.operators.iter().map(|whose| Whose::name(*whose)).collect()),
        "buffers": settings.buffers,
        "idle": settings.idle.to_string(),
        "seconds": settings.seconds,
        "rounds": settings.rounds,
        "again": settings.again,
        "peers": rounds.peers.iter().map(|(peer, _)| json!({
            "name": peer.peer, "version": peer.version, "variant": peer.variant, "how": peer.how,
        })).fold(Vec::new(), |mut all: Vec<Value>, peer| {
            if !all.contains(&peer) { all.push(peer) }
            all
        }),
    }))
}
