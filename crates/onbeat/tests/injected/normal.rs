//! Normal threads on the core of a normal worker: they share it, and the worker may get a backlog.

use crate::alone;
use crate::pipeline::{Injector, Log, PERIOD_NS, compute, every, options, run, run_with};
use crate::preempted::Elsewhen;
use crate::score::{Expected, Score, inside, score_backlog};
use onbeat::operators::Timer;
use onbeat::trace::{CauseClass, Evidence};
use onbeat::{Graph, Options, Overrun, Pool, Record};
use onbeat_os::clock::monotonic_ns;
use std::ops::Range;

const THREADS: Expected = Expected { class: CauseClass::Preempted, name: "injector" };

/// Number of messages.
const MESSAGES: u64 = 300;

/// A pipeline whose operator computes for `cpu_ns` of its thread's time.
fn loaded(cpu_ns: u64, limit_ns: u64) -> Graph {
    let mut graph = Graph::new("loaded");
    let timer = Timer::new(PERIOD_NS, Some(MESSAGES), Overrun::CatchUp);
    let beat = graph.add("beat", timer.expect("a period"));
    let work = graph.map("work", move |number: u64| {
        compute(cpu_ns);
        number
    });
    let end = graph.sink("end", |_: u64| ());
    graph.connect(beat, |b| &b.out, work, |w| &w.input);
    graph.connect(work, |w| &w.out, end, |e| &e.input);
    graph.deadline(end, limit_ns);
    graph
}

/// Keeps the core busy, and notes when it had it: as long as its clock does not jump.
fn occupy(log: &Log, ns: u64) {
    let begin_ns = monotonic_ns();
    let (mut from_ns, mut last_ns) = (begin_ns, begin_ns);
    while last_ns < begin_ns + ns {
        let now_ns = monotonic_ns();
        if now_ns > last_ns + 50_000 {
            log.span(from_ns..last_ns);
            from_ns = now_ns;
        }
        last_ns = now_ns;
    }
    log.span(from_ns..last_ns);
}

/// A thread that always wants the core.
fn spinner(name: &str, policy: &str, log: &Log) -> Injector {
    let noted = log.clone();
    Injector::start(name, 1, policy, move || occupy(&noted, 100_000_000))
}

fn backlog(what: &str, cpu_ns: u64, logs: &[Log], (record, start_ns): &(Record, u64)) -> Score {
    let truth: Vec<Range<u64>> = logs.iter().flat_map(Log::all).collect();
    score_backlog(what, record, *start_ns, (&truth, cpu_ns), THREADS)
}

#[test]
fn a_normal_thread_that_now_and_then_has_the_core() {
    alone(|| {
        let log = Log::default();
        let noted = log.clone();
        let injector = Injector::start("injector", 1, "o:0", move || {
            every(63_000_000);
            occupy(&noted, 12_000_000);
        });
        let result = run(loaded(3_000_000, 4_500_000), &options("o:0"));
        drop(injector);
        backlog("a normal thread", 3_000_000, &[log], &result).is_good();
    });
}

#[test]
fn what_the_kernel_did_at_another_time_explains_no_wait_for_a_normal_thread() {
    alone(|| {
        let log = Log::default();
        let noted = log.clone();
        let injector = Injector::start("injector", 1, "o:0", move || {
            every(63_000_000);
            occupy(&noted, 12_000_000);
        });
        let change = |evidence: Box<dyn Evidence>| -> Box<dyn Evidence> { Box::new(Elsewhen(evidence)) };
        let result = run_with(loaded(3_000_000, 4_500_000), &options("o:0"), change);
        drop(injector);
        let score = backlog("a normal thread elsewhen", 3_000_000, &[log], &result);
        // The thread wants the core for a sixth of the time.
        assert!(score.misses >= 5 && score.named * 100 <= score.misses * 45, "{score:?}");
    });
}

#[test]
fn a_normal_thread_and_a_backlog_that_grows() {
    alone(|| {
        let log = Log::default();
        let injector = spinner("injector", "o:0", &log);
        let result = run(loaded(6_000_000, 9_000_000), &options("o:0"));
        drop(injector);
        assert!(result.0.misses_total > 200, "there is a backlog: {}", result.0.misses_total);
        backlog("a backlog", 6_000_000, &[log], &result).is_good();
    });
}

#[test]
fn several_normal_threads_and_a_backlog() {
    alone(|| {
        let logs = [Log::default(), Log::default(), Log::default()];
        let names = ["injector-a", "injector-b", "injector-c"];
        let injectors: Vec<Injector> =
            names.iter().zip(&logs).map(|(name, log)| spinner(name, "o:0", log)).collect();
        let result = run(loaded(4_000_000, 9_000_000), &options("o:0"));
        drop(injectors);
        backlog("several threads", 4_000_000, &logs, &result).is_good();
        are_shared(&names, &logs, &result);
    });
}

/// The causes of a run give threads their shares in proportion to the time that they had the core.
fn are_shared(names: &[&str], logs: &[Log], (record, start_ns): &(Record, u64)) {
    let lost_ns = |name: &&str| {
        let causes = record.causes.iter().filter(|cause| cause.name == **name);
        causes.map(|cause| cause.lost_ns).sum::<u64>() as f64
    };
    let end_ns = record.misses.last().map_or(0, |miss| miss.time_ns) + start_ns;
    let had_ns = |log: &Log| inside(&log.all(), &(*start_ns..end_ns)) as f64;
    let (lost, had): (Vec<f64>, Vec<f64>) =
        (names.iter().map(lost_ns).collect(), logs.iter().map(had_ns).collect());
    let (all_lost, all_had) = (lost.iter().sum::<f64>(), had.iter().sum::<f64>());
    for ((name, lost), had) in names.iter().zip(&lost).zip(&had) {
        let (lost, had) = (lost / all_lost, had / all_had);
        assert!((lost - had).abs() <= 0.2 * had, "{name}: {lost:.3} of the causes, {had:.3} of the time");
    }
}

#[test]
fn a_nice_thread() {
    alone(|| {
        let log = Log::default();
        let injector = spinner("injector", "o:5", &log);
        let result = run(loaded(5_000_000, 7_000_000), &options("o:0"));
        drop(injector);
        backlog("a nice thread", 5_000_000, &[log], &result).is_good();
    });
}

#[test]
fn a_worker_that_is_nice_and_gets_a_backlog() {
    alone(|| {
        let log = Log::default();
        let injector = spinner("injector", "o:0", &log);
        let result = run(loaded(4_000_000, 9_000_000), &options("o:3"));
        drop(injector);
        backlog("a nice worker", 4_000_000, &[log], &result).is_good();
    });
}

#[test]
fn a_normal_thread_and_a_real_time_thread() {
    alone(|| {
        let logs = [Log::default(), Log::default()];
        let names = ["injector-fair", "injector-fifo"];
        let fair = spinner(names[0], "o:0", &logs[0]);
        let noted = logs[1].clone();
        let fifo = Injector::start(names[1], 1, "f:50", move || {
            every(33_000_000);
            occupy(&noted, 3_000_000);
        });
        let result = run(loaded(5_000_000, 9_000_000), &options("o:0"));
        drop((fair, fifo));
        backlog("a mixture", 5_000_000, &logs, &result).is_good();
        are_shared(&names, &logs, &result);
    });
}

#[test]
fn a_pool_of_the_same_run() {
    alone(|| {
        let log = Log::default();
        let noted = log.clone();
        let mut graph = loaded(4_000_000, 6_000_000);
        let timer = Timer::new(PERIOD_NS, Some(MESSAGES), Overrun::Skip).expect("a period");
        let beat = graph.add("other-beat", timer);
        let other = graph.sink("other", move |_: u64| occupy(&noted, 4_000_000));
        graph.connect(beat, |b| &b.out, other, |o| &o.input);
        let mut options: Options = options("o:0");
        let policy = "o:0".parse().expect("a policy");
        let pool = Pool::new("rival").cores([1]).policy(policy).operators(["other-beat", "other"]);
        options.pools.push(pool);
        let (record, start_ns) = run(graph, &options);
        let expected = Expected { class: CauseClass::Preempted, name: "rival" };
        let truth = log.all();
        score_backlog("a rival pool", &record, start_ns, (&truth, 4_000_000), expected).is_good();
    });
}
