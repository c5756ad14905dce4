//! Throughput and latency under one scheduler.

use super::{EdgeLoad, GraphLoad, MachineCosts};

/// Placement of operators on workers, as a plan defines it.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkerLayout {
    /// One worker steps everything.
    One,
    /// Worker of each operator; all workers run in parallel.
    Split(Vec<usize>),
    /// All workers step whatever is ready. Operators that take longer than `heavy_ns` are shared between
    /// them.
    Shared {
        /// Number of workers.
        workers: usize,
        /// Step time above which sharing pays.
        heavy_ns: f64,
        /// Whether the graph is a single chain through which workers can carry chunks, one after another.
        waves: bool,
    },
    /// Each worker has copies of a stretch of operators and carries messages through all of them.
    Replicated {
        /// Number of workers.
        workers: usize,
        /// Whether each worker has a copy, by operator.
        copied: Vec<bool>,
        /// How the order is kept.
        ends: StretchEnds,
    },
}

/// Ends of a replicated stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StretchEnds {
    /// Copies: their order is not kept.
    Copies,
    /// A source and a sink that migrate between workers.
    Turns,
    /// Operators on the first worker that distribute messages and collect them again.
    Rest,
}

/// Most chunks that a worker carries at once in a wave, and most bytes of these: the engine's values.
const WAVE_CHUNKS: f64 = 8.0;
const WAVE_BYTES: f64 = 32768.0;

/// Predicted performance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Iterations per second if no source limits the rate.
    pub rate: f64,
    /// Time from a source's message to the end of the last step that follows from it, if the sources leave
    /// time between messages.
    pub latency_ns: f64,
}

/// Predicts the performance of a graph. `parks` says whether idle workers sleep and must be woken.
#[must_use]
pub fn predict(workload: &GraphLoad, layout: &WorkerLayout, costs: &MachineCosts, parks: bool) -> Prediction {
    let path_ns = workload.longest_path_ns();
    let to_sleeper_ns = if parks { costs.wake_ns } else { costs.hand_over_ns };
    let (iteration_ns, latency_ns) = match layout {
        WorkerLayout::One => (workload.with_hop(workload.hop_ns).iter().sum(), path_ns),
        WorkerLayout::Split(worker_of) => {
            let crossings = crossings(workload, worker_of);
            (split(workload, worker_of, costs, parks), path_ns + crossings * to_sleeper_ns)
        }
        WorkerLayout::Shared { workers, waves: true, .. } => (waves(workload, *workers, costs), path_ns),
        WorkerLayout::Shared { workers, heavy_ns, waves: false } => {
            let heavy = workload.operators.iter().filter(|operator| operator.step_ns > *heavy_ns).count();
            let ways = if *workers > 1 { heavy.saturating_sub(1) as f64 } else { 0.0 };
            (shared(workload, *workers, *heavy_ns, costs, parks), path_ns + ways * to_sleeper_ns)
        }
        WorkerLayout::Replicated { workers, copied, ends } => {
            let ways = if *ends == StretchEnds::Rest { 2.0 } else { 0.0 };
            (replicated(workload, *workers, copied, *ends, costs), path_ns + ways * to_sleeper_ns)
        }
    };
    Prediction { rate: 1e9 / iteration_ns, latency_ns }
}

/// Number of edges between workers.
fn crossings(workload: &GraphLoad, worker_of: &[usize]) -> f64 {
    workload.edges.iter().filter(|edge| worker_of[edge.from] != worker_of[edge.to]).count() as f64
}

/// Cost per iteration of the busiest worker, which sets the pace.
fn split(workload: &GraphLoad, worker_of: &[usize], costs: &MachineCosts, parks: bool) -> f64 {
    let workers = worker_of.iter().max().map_or(1, |last| last + 1);
    let mut busy_ns = vec![0.0; workers];
    for (at, ns) in workload.with_hop(workload.hop_ns).into_iter().enumerate() {
        busy_ns[worker_of[at]] += ns;
    }
    let work_ns = busy_ns.clone();
    for edge in &workload.edges {
        let (from, to) = (worker_of[edge.from], worker_of[edge.to]);
        if from == to {
            continue;
        }
        // Both sides wait for cache lines: the consumer for the message, the producer for its returned
        // buffer.
        let hand_over_ns = edge.messages * costs.hand_over(edge.bytes);
        busy_ns[from] += hand_over_ns;
        busy_ns[to] += hand_over_ns;
        if parks {
            // The worker with less work sleeps. The consumer is woken by each message, the producer when half
            // of the edge is free again.
            let (calls, waker) = if work_ns[to] < work_ns[from] {
                (edge.messages, from)
            } else {
                (edge.messages / (edge.capacity / 2.0).max(1.0), to)
            };
            busy_ns[waker] += calls * costs.wake_call_ns;
        }
    }
    busy_ns.into_iter().fold(0.0, f64::max)
}

/// Cost of moments in which all ready operators are taken by other workers. Measured with the random graphs
/// of `bench plan`: 0 to 6 %.
const WAITS: f64 = 1.02;

/// Heavy operators go to any free worker, and each is stepped by one worker at a time. Light ones stay with
/// the operator before them.
fn shared(workload: &GraphLoad, workers: usize, heavy_ns: f64, costs: &MachineCosts, parks: bool) -> f64 {
    if workers == 1 {
        return workload.with_hop(workload.hop_ns).iter().sum();
    }
    let with_hop = workload.with_hop(costs.shared_hop_ns);
    let all_ns: f64 = with_hop.iter().sum();
    let is_heavy = |at: &usize| workload.operators[*at].step_ns > heavy_ns;
    let heavy: Vec<usize> = (0..with_hop.len()).filter(is_heavy).collect();
    if heavy.len() < 2 {
        return all_ns;
    }
    let into = |at: usize| -> f64 {
        let edges = workload.edges.iter().filter(|edge| edge.to == at);
        edges.map(|edge| edge.messages * costs.hand_over(edge.bytes)).sum()
    };
    let calls_ns = if parks { costs.wake_call_ns } else { 0.0 };
    let moved_ns: f64 =
        heavy.iter().map(|&at| into(at) + workload.operators[at].steps * calls_ns / workers as f64).sum();
    let most_ns = heavy.iter().map(|&at| with_hop[at] + into(at)).fold(0.0, f64::max);
    ((all_ns + moved_ns) / workers.min(heavy.len()) as f64 * WAITS).max(most_ns)
}

/// Chunks stay on their core, and operators move between cores a few chunks at a time. If one worker alone is
/// faster, it works alone.
fn waves(workload: &GraphLoad, workers: usize, costs: &MachineCosts) -> f64 {
    let with_hop = workload.with_hop(workload.hop_ns);
    let alone_ns: f64 = with_hop.iter().sum();
    let bytes = workload.edges.iter().map(|edge| edge.bytes).fold(1.0, f64::max);
    let capacity = workload.edges.iter().map(|edge| edge.capacity).fold(f64::INFINITY, f64::min);
    let (most, n) = (WAVE_CHUNKS.min(capacity / workers as f64), workers as f64);
    let chunks = (WAVE_BYTES / bytes).floor().clamp(1.0, most.max(1.0));
    // In each stage, the cache lines of its operators come from another core.
    let stages = (n + 1.0).min(with_hop.len() as f64);
    let together_ns = (alone_ns + stages * costs.hand_over_ns / chunks) / n;
    let most_ns = with_hop.iter().fold(0.0, |most: f64, ns| most.max(*ns)) + costs.hand_over_ns / chunks;
    together_ns.max(most_ns).min(alone_ns)
}

/// All workers share the copied operators; serial operators run on one worker at a time.
fn replicated(
    workload: &GraphLoad,
    workers: usize,
    copied: &[bool],
    ends: StretchEnds,
    costs: &MachineCosts,
) -> f64 {
    let with_hop = workload.with_hop(workload.hop_ns);
    let all_ns: f64 = with_hop.iter().sum();
    let n = workers as f64;
    match ends {
        StretchEnds::Copies => all_ns / n,
        StretchEnds::Turns => {
            let is_end = |at: usize| {
                workload.operators[at].is_source || workload.edges.iter().all(|edge| edge.from != at)
            };
            // The state of an end comes from the core that had it before.
            let turn = |at: usize| with_hop[at] + workload.operators[at].steps * costs.hand_over_ns;
            let turns: Vec<f64> = (0..with_hop.len()).filter(|&at| is_end(at)).map(turn).collect();
            let ways_ns = turns.len() as f64 * costs.hand_over_ns;
            ((all_ns + ways_ns) / n).max(turns.into_iter().fold(0.0, f64::max))
        }
        StretchEnds::Rest => {
            let of_copies = with_hop.iter().zip(copied).filter(|(_, copied)| **copied);
            let lanes_ns: f64 = of_copies.map(|(ns, _)| ns).sum();
            let (mut ways_ns, mut handing_ns) = (0.0, 0.0);
            for edge in workload.edges.iter().filter(|edge| !is_inside(workload, copied, edge)) {
                let way_ns = edge.messages * costs.hand_over(edge.bytes);
                if copied[edge.to] {
                    ways_ns += way_ns;
                    // The distributing operator reads how much the other workers have taken.
                    handing_ns += edge.messages * (workload.hop_ns + costs.hand_over_ns);
                }
                // Messages of several copies are collected once.
                let is_first = workload.edges.iter().find(|other| other.from == edge.from) == Some(edge);
                if copied[edge.from] && is_first {
                    ways_ns += way_ns;
                    handing_ns += edge.messages * workload.hop_ns;
                }
            }
            rest_and_lanes(all_ns - lanes_ns + handing_ns, lanes_ns, ways_ns, n - 1.0)
        }
    }
}

/// Whether an edge joins two neighbours in one stretch. If several copies send to one operator, or one sends
/// to several, the first worker is in between.
fn is_inside(workload: &GraphLoad, copied: &[bool], edge: &EdgeLoad) -> bool {
    let count =
        |meets: &dyn Fn(&EdgeLoad) -> bool| workload.edges.iter().filter(|other| meets(other)).count();
    let is_only = count(&|other| other.from == edge.from) == 1 && count(&|other| other.to == edge.to) == 1;
    copied[edge.from] && copied[edge.to] && is_only
}

/// The first worker does the rest of the graph, and the share of the lanes that the other workers leave.
fn rest_and_lanes(rest_ns: f64, lanes_ns: f64, ways_ns: f64, others: f64) -> f64 {
    // Time of the other workers and of the first worker, if this part of the lanes' messages goes to the
    // others.
    let theirs = |part: f64| part * (lanes_ns + ways_ns) / others;
    let own = |part: f64| rest_ns + (1.0 - part) * lanes_ns + part * ways_ns;
    if others < 1.0 {
        return own(0.0);
    }
    // The part at which both take the same time.
    let part = (own(0.0) / (theirs(1.0) + lanes_ns - ways_ns).max(f64::MIN_POSITIVE)).min(1.0);
    own(part).max(theirs(part))
}

#[cfg(test)]
mod tests {
    use super::super::OperatorLoad;
    use super::*;

    const COSTS: MachineCosts = MachineCosts {
        hop_ns: 5.0,
        shared_hop_ns: 20.0,
        hand_over_ns: 100.0,
        hand_over_per_kib_ns: 100.0,
        wake_call_ns: 2_000.0,
        wake_ns: 30_000.0,
        clock_ns: 20.0,
    };

    /// A chain with these step times and chunks of 16 KiB.
    fn chain(steps_ns: &[f64]) -> GraphLoad {
        let operator = |(at, &step_ns): (usize, &f64)| OperatorLoad {
            name: format!("o{at}"),
            steps: 1.0,
            step_ns,
            is_source: at == 0,
        };
        let edge = |to: usize| EdgeLoad { from: to - 1, to, messages: 1.0, bytes: 16384.0, capacity: 4.0 };
        GraphLoad {
            operators: steps_ns.iter().enumerate().map(operator).collect(),
            edges: (1..steps_ns.len()).map(edge).collect(),
            hop_ns: 5.0,
            ..GraphLoad::default()
        }
    }

    fn iteration_ns(workload: &GraphLoad, layout: &WorkerLayout, parks: bool) -> f64 {
        1e9 / predict(workload, layout, &COSTS, parks).rate
    }

    #[test]
    fn each_layout_has_its_bottleneck() {
        let light = chain(&[0.0, 100.0, 100.0, 0.0]);
        let heavy = chain(&[0.0, 50_000.0, 50_000.0, 0.0]);
        let mixed = chain(&[0.0, 50_000.0, 50_000.0, 50_000.0]);
        let serial = chain(&[0.0, 5_000.0, 5_000.0, 100_000.0]);
        let split = WorkerLayout::Split(vec![0, 0, 1, 1]);
        let shared = WorkerLayout::Shared { workers: 2, heavy_ns: 5_000.0, waves: false };
        let waves = WorkerLayout::Shared { workers: 2, heavy_ns: 5_000.0, waves: true };
        let replicated =
            |ends| WorkerLayout::Replicated { workers: 2, copied: vec![false, true, true, false], ends };
        // Source, a → (b → sink | c → sink).
        let mut fork = chain(&[0.0, 50_000.0, 50_000.0, 50_000.0, 0.0, 0.0]);
        for (edge, ends) in fork.edges.iter_mut().zip([(0, 1), (1, 2), (1, 3), (2, 4), (3, 5)]) {
            (edge.from, edge.to) = ends;
        }
        let branches = WorkerLayout::Replicated {
            workers: 2,
            copied: vec![false, true, true, true, false, false],
            ends: StretchEnds::Rest,
        };
        // There is no other worker to hand over to.
        let alone = WorkerLayout::Replicated {
            workers: 1,
            copied: vec![false, true, true, false],
            ends: StretchEnds::Rest,
        };
        for (workload, layout, parks, wanted_ns) in [
            (&light, &WorkerLayout::One, true, 220.0),
            // 110 for each half, 1700 for 16 KiB.
            (&light, &split, false, 1_810.0),
            (&light, &shared, true, 280.0),
            // 220 and three stages for each other chunk, shared by two; alone it would be 220.
            (&light, &waves, true, 185.0),
            // 50 005 in one stage, and half of a hand-over.
            (&heavy, &waves, true, 50_085.0),
            (&light, &replicated(StretchEnds::Copies), false, 110.0),
            // Two turns of 105 are less than half of 420.
            (&light, &replicated(StretchEnds::Turns), false, 210.0),
            // The other worker takes 3610 for each message it gets, with two hand-overs of 1700. The first
            // one takes 120, plus 210 for each message it keeps or 3400 for each it hands over. 33 of 42 go
            // to the other.
            (&light, &replicated(StretchEnds::Rest), false, 2_836.4),
            (&heavy, &WorkerLayout::One, true, 100_020.0),
            (&heavy, &split, false, 51_710.0),
            (&heavy, &replicated(StretchEnds::Copies), false, 50_010.0),
            (&heavy, &replicated(StretchEnds::Rest), false, 51_766.8),
            // 150 020 in total; the first worker has half of it and hands over three quarters of the lanes.
            (&mixed, &replicated(StretchEnds::Rest), false, 77_617.0),
            (&mixed, &alone, false, 150_130.0),
            // Three stretches, six hand-overs: 160 215 for the other worker's messages, which are 0.5012 of
            // all.
            (&fork, &branches, false, 80_291.7),
            // The rest alone takes longer than the lanes, which all go to the other worker.
            (&serial, &replicated(StretchEnds::Rest), false, 103_520.0),
        ] {
            let found_ns = iteration_ns(workload, layout, parks);
            assert!((found_ns - wanted_ns).abs() < 1.0, "{layout:?}: {found_ns}, not {wanted_ns}");
        }
        assert!(iteration_ns(&heavy, &split, true) > iteration_ns(&heavy, &split, false));
        assert!(iteration_ns(&heavy, &shared, false) < 60_000.0);
    }

    #[test]
    fn latency_has_the_ways_between_workers() {
        let workload = chain(&[0.0, 100.0, 100.0, 0.0]);
        let latency_ns = |layout: &WorkerLayout, parks| predict(&workload, layout, &COSTS, parks).latency_ns;
        assert!((latency_ns(&WorkerLayout::One, true) - 220.0).abs() < 1.0);
        let split = WorkerLayout::Split(vec![0, 0, 1, 1]);
        assert!((latency_ns(&split, true) - 30_220.0).abs() < 1.0);
        assert!((latency_ns(&split, false) - 320.0).abs() < 1.0);
    }

    #[test]
    fn a_cycle_ends() {
        let mut workload = chain(&[0.0, 100.0, 100.0]);
        workload.edges.push(EdgeLoad { from: 2, to: 1, messages: 1.0, bytes: 0.0, capacity: 4.0 });
        assert!(predict(&workload, &WorkerLayout::One, &COSTS, true).latency_ns < 1_000.0);
    }
}
