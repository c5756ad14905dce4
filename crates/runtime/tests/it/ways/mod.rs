//! The ways in which a graph may be run.

use onbeat_runtime::{ClockKind, Idle, Options, Scheduler, Share};

/// Every way to run a graph that is worth a difference here.
pub fn ways() -> Vec<(String, Options)> {
    let event = Options { scheduler: Scheduler::Event, share: Share::Always, ..Options::default() };
    let pinned = Options { scheduler: Scheduler::Pinned, ..Options::default() };
    let mut ways = Vec::new();
    for clock in [ClockKind::Real, ClockKind::Manual] {
        for (name, options) in [
            ("greedy", Options::default()),
            ("pinned 2", Options { workers: Some(2), ..pinned.clone() }),
            ("pinned 2, spin", Options { workers: Some(2), idle: Idle::SpinFor(20_000), ..pinned.clone() }),
            ("event 1", Options { workers: Some(1), ..event.clone() }),
            ("event 2", Options { workers: Some(2), ..event.clone() }),
        ] {
            ways.push((format!("{name}, {clock}"), Options { clock, ..options }));
        }
    }
    ways
}
