//! What every scheduler must do: random graphs (fan-out, ordered fan-in, rate changes, joins, cycles, tags, mixed quanta and
//! capacities) give byte for byte what a plain sequential reference gives, however they are scheduled, however workers
//! wait, and however long steps take.

#[path = "random/operators.rs"]
mod operators;
#[path = "random/reference.rs"]
mod reference;
#[path = "random/spec.rs"]
mod spec;
#[path = "random/splitmix.rs"]
mod splitmix;
mod watchdog;

use onbeat_runtime::{ClockKind, Idle, Options, Scheduler, Share};
use spec::Spec;
use splitmix::Random;
use watchdog::watched;

fn greedy() -> Options {
    Options::default()
}

fn pinned(workers: usize, idle: Idle) -> Options {
    Options { scheduler: Scheduler::Pinned, workers: Some(workers), idle, ..Options::default() }
}

fn event(workers: usize, idle: Idle, share: Share) -> Options {
    Options { scheduler: Scheduler::Event, workers: Some(workers), idle, share, ..Options::default() }
}

/// All ways to run a graph, each with a name. (The graph with operators, `crates/operators/tests/adsb.rs`, has a table
/// of its own.)
fn schedulers() -> Vec<(String, Options)> {
    let mut all = vec![("greedy".to_string(), greedy())];
    for idle in [Idle::Park, Idle::Spin, Idle::SpinFor(20_000)] {
        for workers in [1, 2] {
            all.push((format!("pinned {workers}, {idle}"), pinned(workers, idle)));
        }
        all.push((format!("event 1, {idle}"), event(1, idle, Share::Heavy)));
        for (how, share) in [("heavy", Share::Heavy), ("always", Share::Always)] {
            all.push((format!("event 2, {idle}, shares {how}"), event(2, idle, share)));
        }
    }
    // More workers than most machines for tests have cores.
    all.push(("pinned 5, park".to_string(), pinned(5, Idle::Park)));
    all.push(("event 5, park".to_string(), event(5, Idle::Park, Share::Always)));
    all
}

fn check(what: &str, spec: &Spec, options: &Options, size: impl FnMut(&mut Random) -> (usize, usize)) {
    let expected = reference::evaluate(spec);
    let (graph, results) = spec.build(size);
    let record = graph.run(options).unwrap_or_else(|error| panic!("{what}: {error}\n{spec:#?}"));
    assert_eq!(record.result.lost, 0, "{what}");
    for (node, (result, expected)) in results.iter().zip(&expected).enumerate() {
        let result = result.lock().unwrap();
        assert!(result.same_as(expected), "{what}: node {node} differs\n{spec:#?}");
    }
}

/// Quanta of 4 to 64 KiB and capacities of 1 to 64, for each edge its own.
fn mixed(random: &mut Random) -> (usize, usize) {
    (4096 << random.below(5), 1 + random.below(64) as usize)
}

#[test]
fn a_thousand_random_graphs_equal_the_reference() {
    watched(300, || {
        for seed in 0..1000 {
            let options = Options { clock: ClockKind::Manual, ..greedy() };
            check(&format!("seed {seed}"), &Spec::random(seed), &options, mixed);
        }
    });
}

#[test]
fn every_scheduler_gives_the_same() {
    watched(300, || {
        for seed in 1000..1060 {
            for (name, options) in schedulers() {
                check(&format!("seed {seed}, {name}"), &Spec::random(seed), &options, mixed);
            }
        }
    });
}

#[test]
fn steps_may_take_any_time() {
    watched(300, || {
        for seed in 2000..2012 {
            for (name, options) in schedulers() {
                let spec = Spec::random(seed).slowed();
                check(&format!("seed {seed}, {name}, slow"), &spec, &options, mixed);
            }
        }
    });
}

#[test]
fn virtual_time_changes_nothing() {
    watched(300, || {
        for seed in 3000..3050 {
            let options = Options { clock: ClockKind::Manual, ..pinned(2, Idle::Park) };
            check(&format!("seed {seed}"), &Spec::random(seed), &options, mixed);
        }
    });
}

#[test]
fn quanta_and_capacities_change_nothing() {
    watched(300, || {
        for seed in [3, 14, 15, 92, 65, 35] {
            for quantum in [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10] {
                for capacity in [1, 2, 3, 4, 7, 16, 64] {
                    for options in [greedy(), pinned(2, Idle::Park), pinned(2, Idle::SpinFor(20_000))] {
                        let what = format!(
                            "seed {seed}, {}, {}, quantum {quantum}, capacity {capacity}",
                            options.scheduler, options.idle
                        );
                        check(&what, &Spec::random(seed), &options, |_| (quantum, capacity));
                    }
                }
            }
        }
    });
}
