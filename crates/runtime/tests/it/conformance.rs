//! What every scheduler must do: random graphs (fan-out, ordered fan-in, rate changes, joins, cycles, tags,
//! mixed quanta and capacities) give byte for byte what a plain sequential reference gives, however they are
//! scheduled, however workers wait, and however long steps take.

#![allow(clippy::disallowed_macros, reason = "a test says what it skips")]

use crate::reference;
use crate::spec::Spec;
use crate::splitmix::Random;
use crate::watchdog::watched;
use onbeat_runtime::{ClockKind, Idle, Options, Policy, Pool, Scheduler, Share};
use onbeat_trace::Record;

fn greedy() -> Options {
    Options::default()
}

fn pinned(workers: usize, idle: Idle) -> Options {
    Options { scheduler: Scheduler::Pinned, workers: Some(workers), idle, ..Options::default() }
}

fn event(workers: usize, idle: Idle, share: Share) -> Options {
    Options { scheduler: Scheduler::Event, workers: Some(workers), idle, share, ..Options::default() }
}

fn replicated(workers: usize, idle: Idle) -> Options {
    Options { scheduler: Scheduler::Replicated, workers: Some(workers), idle, ..Options::default() }
}

/// Every operator in one of two pools, or in none, by turns.
fn custom(spec: &Spec, policy: Option<Policy>, cores: [Option<usize>; 2]) -> Options {
    let (graph, _) = spec.build(|_| (4096, 4));
    let names: Vec<String> = graph.operators().map(str::to_string).collect();
    let every = |begin: usize| names.iter().skip(begin).step_by(3).cloned();
    let mut pools = vec![Pool::new("one").operators(every(0)), Pool::new("two").operators(every(1))];
    for (pool, core) in pools.iter_mut().zip(cores) {
        pool.cores = core.into_iter().collect();
        pool.policy = policy;
    }
    // The other one has workers that share.
    if cores[1].is_none() {
        pools[1].workers = Some(2);
    }
    pools.retain(|pool| !pool.operators.is_empty());
    Options { scheduler: Scheduler::Custom, pools, policy, ..Options::default() }
}

/// Two cores, and FIFO on them. Says so if not.
fn fifo() -> Option<Policy> {
    let policy = Policy::Fifo(10);
    let online = onbeat_os::CoreSet::online().unwrap_or_default();
    if !(online.contains(0) && online.contains(1)) {
        eprintln!("skipped: workers under FIFO on two cores: there is one");
        return None;
    }
    let set = move || policy.set(onbeat_os::policy::PolicyFlags::default());
    let tried = onbeat_os::thread::spawn("tries", set).unwrap().join().unwrap();
    tried.map_err(|error| eprintln!("skipped: workers under FIFO: {error}")).ok().map(|()| policy)
}

/// Whether the kernel takes a part of each second back from real-time threads: else whatever goes wrong here
/// takes the machine. On kernels with a fair server (debugfs) it is that one that does it, where it has run
/// time.
fn throttling() -> Result<(), String> {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default().trim().parse::<i64>().ok();
    let runtime_us = read("/proc/sys/kernel/sched_rt_runtime_us");
    let period_us = read("/proc/sys/kernel/sched_rt_period_us").unwrap_or(1_000_000);
    if !runtime_us.is_some_and(|runtime_us| (0..period_us).contains(&runtime_us)) {
        return Err(format!(
            "kernel.sched_rt_runtime_us is {runtime_us:?} of {period_us}: throttling is off"
        ));
    }
    for core in [0, 1] {
        let file = format!("/sys/kernel/debug/sched/fair_server/cpu{core}/runtime");
        if read(&file) == Some(0) {
            return Err(format!("{file} is 0: throttling is off"));
        }
    }
    Ok(())
}

/// With throttling on, and idle workers that park: a worker that spun for ever would keep the others from
/// their core.
#[test]
fn real_time_workers_give_the_same() {
    watched(600, || {
        let Some(policy) = fifo() else { return };
        if let Err(why) = throttling() {
            return eprintln!("skipped: workers under FIFO: {why}");
        }
        let check_all =
            |what: &str, spec: &Spec, clock: ClockKind, size: fn(&mut Random) -> (usize, usize)| {
                for (name, options) in real_time(spec, policy) {
                    let what = format!("{what}, {name} under {policy}");
                    let record = check(&what, spec, &Options { clock, ..options }, size);
                    let workers = record.threads.iter().filter(|thread| thread.purpose == "steps operators");
                    for worker in workers {
                        assert_eq!(worker.policy.as_deref(), Some("f:10"), "{what}: {worker:?}");
                    }
                }
            };
        for seed in 4000..4040 {
            check_all(&format!("seed {seed}"), &Spec::random(seed), ClockKind::Real, mixed);
        }
        for seed in 4040..4046 {
            check_all(&format!("seed {seed}, slow"), &Spec::random(seed).slowed(), ClockKind::Real, mixed);
        }
        for seed in 4050..4060 {
            check_all(&format!("seed {seed}, virtual"), &Spec::random(seed), ClockKind::Manual, mixed);
        }
        for seed in [3, 14, 15] {
            let what = |size: &str| format!("seed {seed}, {size} quanta and edges");
            check_all(&what("small"), &Spec::random(seed), ClockKind::Real, |_| (4 << 10, 1));
            check_all(&what("large"), &Spec::random(seed), ClockKind::Real, |_| (64 << 10, 64));
        }
    });
}

/// All ways to run a graph in which idle workers park, under a policy; two workers are on two cores.
fn real_time(spec: &Spec, policy: Policy) -> Vec<(String, Options)> {
    let on_cores = |options: Options| match options.workers {
        Some(2) => Options { cores: vec![0, 1], workers: None, ..options },
        _ => options,
    };
    let parks = schedulers().into_iter().filter(|(_, options)| options.idle == Idle::Park);
    let mut all: Vec<_> =
        parks.map(|(name, options)| (name, on_cores(Options { policy: Some(policy), ..options }))).collect();
    all.push(("custom".to_string(), custom(spec, Some(policy), [Some(0), Some(1)])));
    all.push(("custom, one shared".to_string(), custom(spec, Some(policy), [Some(0), None])));
    all
}

#[test]
fn pools_give_the_same() {
    watched(300, || {
        for seed in 5000..5060 {
            let spec = Spec::random(seed);
            check(&format!("seed {seed}, custom"), &spec, &custom(&spec, None, [None, None]), mixed);
            let manual = Options { clock: ClockKind::Manual, ..custom(&spec, None, [None, None]) };
            check(&format!("seed {seed}, custom, virtual"), &spec, &manual, mixed);
        }
    });
}

/// All ways to run a graph, each with a name. (The graph with operators, `crates/operators/tests/it/adsb.rs`,
/// has a table of its own.)
fn schedulers() -> Vec<(String, Options)> {
    let mut all = vec![("greedy".to_string(), greedy())];
    for idle in [Idle::Park, Idle::Spin, Idle::SpinFor(20_000), Idle::Early(50_000)] {
        for workers in [1, 2] {
            all.push((format!("pinned {workers}, {idle}"), pinned(workers, idle)));
        }
        all.push((format!("replicated 2, {idle}"), replicated(2, idle)));
        all.push((format!("event 1, {idle}"), event(1, idle, Share::Heavy)));
        for (how, share) in [("heavy", Share::Heavy), ("always", Share::Always)] {
            all.push((format!("event 2, {idle}, shares {how}"), event(2, idle, share)));
        }
    }
    // More workers than most machines for tests have cores.
    all.push(("pinned 5, park".to_string(), pinned(5, Idle::Park)));
    all.push(("replicated 5, park".to_string(), replicated(5, Idle::Park)));
    all.push(("event 5, park".to_string(), event(5, Idle::Park, Share::Always)));
    all
}

fn check(
    what: &str,
    spec: &Spec,
    options: &Options,
    size: impl FnMut(&mut Random) -> (usize, usize),
) -> Record {
    let expected = reference::evaluate(spec);
    let (graph, results) = spec.build(size);
    let record = graph.run(options).unwrap_or_else(|error| panic!("{what}: {error}\n{spec:#?}"));
    assert_eq!(record.result.lost, 0, "{what}");
    for (node, (result, expected)) in results.iter().zip(&expected).enumerate() {
        let result = result.lock().unwrap();
        let same = result.same_as(expected);
        assert!(same, "{what}: node {node} differs: {}\n{spec:#?}", result.difference(expected));
    }
    record
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
