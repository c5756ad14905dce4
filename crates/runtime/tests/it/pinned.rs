//! Assignment of operators to workers under `pinned`: on plans alone, without threads.

use crate::splitmix::Random;
use onbeat_runtime::{Graph, GraphError, Options, Plan, Scheduler};

fn pinned(workers: usize) -> Options {
    Options { scheduler: Scheduler::Pinned, workers: Some(workers), ..Options::default() }
}

/// A source, `kernels` operators in a chain, a sink.
fn chain(kernels: usize) -> Graph {
    let mut graph = Graph::new("chain");
    graph.source("source", || Some(1u64));
    let mut last = "source".to_string();
    for number in 0..kernels {
        let name = format!("k{number}");
        graph.map(&name, |x: u64| x + 1);
        graph.connect_names(last, &name);
        last = name;
    }
    graph.sink("sink", |_: u64| ());
    graph.connect_names(last, "sink");
    graph
}

/// How many kernels each worker has.
fn shares(plan: &Plan) -> Vec<usize> {
    let kernels = |names: &[String]| names.iter().filter(|name| name.starts_with('k')).count();
    plan.workers.iter().map(|worker| kernels(&worker.operators)).collect()
}

/// The allocation of the published pipeline benchmarks, for N = 1 to 4 cores and M = N to 3 N kernels of
/// equal cost.
#[test]
fn equal_costs_give_the_published_allocation() {
    let table = [
        (1, 1, vec![1]),
        (1, 2, vec![2]),
        (1, 3, vec![3]),
        (2, 2, vec![1, 1]),
        (2, 3, vec![2, 1]),
        (2, 4, vec![2, 2]),
        (2, 5, vec![3, 2]),
        (2, 6, vec![3, 3]),
        (3, 3, vec![1, 1, 1]),
        (3, 4, vec![2, 1, 1]),
        (3, 5, vec![2, 2, 1]),
        (3, 6, vec![2, 2, 2]),
        (3, 7, vec![3, 2, 2]),
        (3, 8, vec![3, 3, 2]),
        (3, 9, vec![3, 3, 3]),
        (4, 4, vec![1, 1, 1, 1]),
        (4, 5, vec![2, 1, 1, 1]),
        (4, 6, vec![2, 2, 1, 1]),
        (4, 7, vec![2, 2, 2, 1]),
        (4, 8, vec![2, 2, 2, 2]),
        (4, 9, vec![3, 2, 2, 2]),
        (4, 10, vec![3, 3, 2, 2]),
        (4, 11, vec![3, 3, 3, 2]),
        (4, 12, vec![3, 3, 3, 3]),
    ];
    for (workers, kernels, expected) in table {
        let plan = chain(kernels).plan(&pinned(workers)).unwrap();
        assert_eq!(shares(&plan), expected, "{kernels} kernels on {workers} workers");
        assert_eq!(plan.workers[0].operators[0], "source");
        assert_eq!(plan.workers[workers - 1].operators.last().unwrap(), "sink");
        assert!(plan.obtained.is_empty());
        let crossings = plan.edges.iter().filter(|edge| edge.queue == "spsc ring").count();
        assert_eq!(crossings, workers - 1);
    }
}

#[test]
fn costs_that_are_stated_move_the_cuts() {
    let mut graph = Graph::new("costs");
    let source = graph.source("source", || Some(1u64));
    let light = graph.map("light", |x: u64| x);
    let heavy = graph.map("heavy", |x: u64| x);
    let last = graph.map("last", |x: u64| x);
    let sink = graph.sink("sink", |_: u64| ());
    graph.connect(source, |s| &s.out, light, |k| &k.input);
    graph.connect(light, |s| &s.out, heavy, |k| &k.input);
    graph.connect(heavy, |s| &s.out, last, |k| &k.input);
    graph.connect(last, |s| &s.out, sink, |k| &k.input);
    assert_eq!(graph.plan(&pinned(2)).unwrap().workers[0].operators, ["source", "light", "heavy"]);
    graph.cost(heavy, 100_000);
    assert_eq!(graph.plan(&pinned(2)).unwrap().workers[0].operators, ["source", "light", "heavy"]);
    graph.cost(light, 50_000);
    graph.cost(last, 1_000);
    assert_eq!(graph.plan(&pinned(2)).unwrap().workers[0].operators, ["source", "light"]);
    // A measured cost goes before a stated one.
    let costs = [("light", 1.0), ("heavy", 1.0), ("last", 9.0), ("source", 0.5), ("sink", 0.5)];
    let costs = costs.into_iter().map(|(name, cost)| (name.to_string(), cost)).collect();
    let plan = graph.plan(&Options { costs, ..pinned(2) }).unwrap();
    assert_eq!(plan.workers[0].operators, ["source", "light", "heavy"]);
}

/// The least maximum over all contiguous cuts, by trying all of them.
fn best_cut(costs: &[u64], parts: usize) -> u64 {
    if parts == 1 {
        return costs.iter().sum();
    }
    let cut = |at: usize| costs[..at].iter().sum::<u64>().max(best_cut(&costs[at..], parts - 1));
    (1..=costs.len() - (parts - 1)).map(cut).min().unwrap()
}

#[test]
fn no_contiguous_cut_has_a_smaller_maximum() {
    let mut random = Random(1);
    let mut next = |limit: u64| 1 + random.below(limit);
    for round in 0..300 {
        let costs: Vec<u64> = (0..2 + next(9)).map(|_| next(50)).collect();
        let workers = (next(4) as usize).min(costs.len());
        let graph = chain(costs.len());
        let named = costs.iter().enumerate().map(|(number, &cost)| (format!("k{number}"), cost as f64));
        let plan = graph.plan(&Options { costs: named.collect(), ..pinned(workers) }).unwrap();
        assert_eq!(plan.workers.len(), workers);
        let of = |name: &String| {
            name.strip_prefix('k').map_or(0, |number| costs[number.parse::<usize>().unwrap()])
        };
        let most =
            plan.workers.iter().map(|worker| worker.operators.iter().map(of).sum::<u64>()).max().unwrap();
        assert_eq!(most, best_cut(&costs, workers), "round {round}: {costs:?} on {workers}");
    }
}

#[test]
fn fewer_operators_than_workers_is_said() {
    let plan = chain(1).plan(&pinned(8)).unwrap();
    assert_eq!(plan.workers.len(), 3);
    assert_eq!((plan.obtained[0].asked.as_str(), plan.obtained[0].obtained.as_str()), ("8", "3"));
    let strict = chain(1).plan(&Options { strict: true, ..pinned(8) });
    assert!(matches!(strict, Err(GraphError::Strict(_))), "{strict:?}");
}

#[test]
fn cores_that_cannot_be_are_refused() {
    let plan = |cores: &[usize], scheduler, workers| {
        let options = Options { scheduler, cores: cores.to_vec(), workers, ..Options::default() };
        chain(4).plan(&options).unwrap_err().to_string()
    };
    for (error, expected) in [
        (plan(&[0, 8000], Scheduler::Pinned, None), "there is no core 8000 on this machine"),
        (plan(&[0, 0], Scheduler::Pinned, None), "core 0 is named twice"),
        (plan(&[], Scheduler::Pinned, Some(0)), "`workers` is 0"),
        (plan(&[0], Scheduler::Pinned, Some(2)), "2 workers on 1 cores"),
        (plan(&[], Scheduler::Greedy, Some(2)), "`greedy` has one worker, not 2"),
    ] {
        assert!(error.contains(expected), "{error}");
    }
}

/// Runs for real: each worker is on its core, and says so.
#[test]
#[allow(clippy::disallowed_macros, reason = "a test says that it was skipped")]
fn workers_are_where_the_plan_says() {
    let allowed = onbeat_os::CoreSet::allowed().unwrap();
    let cores: Vec<usize> = allowed.iter().take(2).collect();
    if cores.len() < 2 {
        println!("skipped: this process may use one core only");
        return;
    }
    let mut graph = Graph::new("cores");
    let mut left = 100u64;
    let source = graph.source("source", move || {
        left = left.checked_sub(1)?;
        Some(onbeat_os::thread::current_core())
    });
    let expected = cores.clone();
    let check = graph.map("check", move |core: usize| {
        assert_eq!((core, onbeat_os::thread::current_core()), (expected[0], expected[0]));
        core
    });
    let expected = cores.clone();
    let sink = graph.sink("sink", move |core: usize| {
        assert_eq!((core, onbeat_os::thread::current_core()), (expected[0], expected[1]));
    });
    graph.connect(source, |s| &s.out, check, |c| &c.input);
    graph.connect(check, |c| &c.out, sink, |s| &s.input);
    graph.cost(sink, 1000);
    let record = graph.run(&Options { scheduler: Scheduler::Pinned, cores, ..Options::default() }).unwrap();
    let obtained: Vec<_> = record.obtained.iter().map(|o| (o.asked == o.obtained, o.what.as_str())).collect();
    assert_eq!(obtained, [(true, "cores of onbeat-w0"), (true, "cores of onbeat-w1")]);
    let threads: Vec<_> = record.threads.iter().map(|thread| thread.name.as_str()).collect();
    assert_eq!(threads, ["onbeat-w0", "onbeat-w1", "onbeat-watch"]);
}
