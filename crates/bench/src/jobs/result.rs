//! Converts measurements to figures.

use super::case::{JobCase, JobSide};
use super::kind::kind;
use super::rounds::{JobMeasurement, JobRounds, MeasuredCase};
use super::settings::{Job, JobsSettings};
use super::{JobRow, JobsResults};
use crate::common;
use onbeat_report::{BenchResult, bench::Machine};
use serde_json::{Map, Value, json};

const RATE: &str = "Msamples/s";

pub(super) fn result(settings: &JobsSettings, rounds: JobRounds) -> JobsResults {
    let mut result = BenchResult::new("jobs", Machine::read());
    result.parameters = parameters(settings, &rounds);
    let mut rows = Vec::new();
    for (case, taken) in &rounds.cases {
        let (name, kind) = (case.name(), kind(case.job));
        let of = |what: fn(&JobMeasurement) -> f64| -> Vec<f64> { taken.iter().map(what).collect() };
        let rates = of(|taken| taken.rate);
        let scaled = |factor: f64| -> Vec<f64> { rates.iter().map(|rate| rate * factor).collect() };
        result.add(&format!("{name}.rate"), &scaled(1e-6), RATE);
        result.add(&format!("{name}.real_time"), &scaled(1.0 / kind.rate_hz), "x");
        result.add(&format!("{name}.quality"), &of(|taken| taken.quality), kind.quality.1);
        let is_peer = matches!(case.side, JobSide::Peer(_));
        if !is_peer {
            result.add(&format!("{name}.same"), &of(|taken| f64::from(u8::from(taken.is_same))), "of 1");
        }
        let is_bare = |other: &JobCase| other.job == case.job && matches!(other.side, JobSide::Bare);
        if let Some((_, bare)) = rounds.cases.iter().find(|(other, _)| is_bare(other)) {
            // The limit is that of all cores together.
            let factor = 100.0 / case.cores as f64;
            let limits = bare.iter().map(|bare| bare.rate);
            let shares: Vec<f64> =
                rates.iter().zip(limits).map(|(rate, limit)| factor * rate / limit).collect();
            result.add(&format!("{name}.of_bare"), &shares, "%");
        }
        if matches!(case.side, JobSide::Onbeat(_))
            && let Some(best) = best_peer(&rounds.cases, case)
        {
            let times: Vec<f64> = rates.iter().zip(&best).map(|(ours, theirs)| ours / theirs).collect();
            result.add(&format!("{name}.times_best_peer"), &times, "x");
        }
        rows.push(JobRow { case: case.clone(), name });
    }
    result.notes = rounds.notes;
    common::doubts(&mut result, rounds.others, common::AGAIN);
    JobsResults { result, rows }
}

/// Best rate of a peer at the same job on as many cores, per round; none without a peer.
fn best_peer(cases: &[MeasuredCase], of: &JobCase) -> Option<Vec<f64>> {
    let is_alike = |case: &JobCase| {
        case.job == of.job && case.cores == of.cores && matches!(case.side, JobSide::Peer(_))
    };
    let mut best: Option<Vec<f64>> = None;
    for (_, taken) in cases.iter().filter(|(case, _)| is_alike(case)) {
        // `max` prefers a number to NaN.
        let rates = taken.iter().map(|taken| taken.rate);
        best = Some(match best {
            None => rates.collect(),
            Some(best) => best.into_iter().zip(rates).map(|(a, b)| a.max(b)).collect(),
        });
    }
    best
}

fn parameters(settings: &JobsSettings, rounds: &JobRounds) -> Map<String, Value> {
    let mut peers: Vec<Value> = Vec::new();
    for (case, _) in &rounds.cases {
        if let JobSide::Peer(peer) = &case.side {
            let peer = json!({
                "name": peer.peer, "version": peer.version, "variant": peer.variant, "how": peer.how,
            });
            if !peers.contains(&peer) {
                peers.push(peer);
            }
        }
    }
    let job = |(job, input): &(Job, super::kind::JobInput)| {
        let kind = kind(*job);
        let (quality, unit) = kind.quality;
        json!({
            "name": job.name(), "about": kind.about, "samples": input.samples, "rate_hz": kind.rate_hz,
            "quality": quality, "unit": unit, "pipeline": kind.pipeline,
        })
    };
    common::parameters(json!({
        "jobs": rounds.inputs.iter().map(job).collect::<Vec<Value>>(),
        "cores": settings.cores,
        "on": rounds.on,
        "seconds": settings.seconds,
        "rounds": settings.rounds,
        "peers": peers,
    }))
}
