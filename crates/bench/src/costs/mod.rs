//! Costs of the engine and of hand-overs between cores on this machine, measured with the engine itself in
//! short runs.
//!
//! The module `cache` stores them for later use.

mod cache;

pub use cache::{CachedCosts, cached, forget, save};

use crate::model::MachineCosts;
use crate::others::Others;
use crate::{BenchError, BenchWatch};
use onbeat_operators::dsp::Saxpy;
use onbeat_operators::{Load, LoadWork, NullSink, NullSource};
use onbeat_os::{CoreSet, Parker, clock, thread};
use onbeat_queue::sync::atomic::{AtomicU64, Ordering};
use onbeat_runtime::{Chunk, Graph, Idle, InPlace, Options, Scheduler};
use onbeat_trace::Record;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Number of measurements of each cost; the median counts.
const ROUNDS: usize = 5;

/// Duration of each run.
const RUN_NS: u64 = 30_000_000;

/// Sizes of chunks sent to another core.
const SMALL: usize = 4 << 10;
const LARGE: usize = 64 << 10;

/// Measured costs.
#[derive(Debug, Clone, Copy)]
pub struct MeasuredCosts {
    /// Costs in nanoseconds.
    pub costs: MachineCosts,
    /// Share of the machine used by others during the measurement: 0 to 1. A large share makes the costs
    /// unreliable.
    pub others: Option<f64>,
}

/// Measures the costs, in about a second.
///
/// # Errors
/// [`BenchError`]: a failed run, or a stop.
pub fn measure(watch: &mut dyn BenchWatch) -> Result<MeasuredCosts, BenchError> {
    let others = Others::watch();
    let cores: Vec<usize> =
        CoreSet::allowed().map(|cores| cores.iter().take(2).collect()).unwrap_or_default();
    let mut all = Vec::new();
    for round in 0..ROUNDS {
        watch.at(round, ROUNDS, "costs of this machine");
        if watch.is_stopped() {
            return Err(BenchError::Stopped);
        }
        all.push(once(&cores)?);
    }
    let median = |of: fn(&MachineCosts) -> f64| {
        let mut values: Vec<f64> = all.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2].max(0.0)
    };
    let costs = MachineCosts {
        hop_ns: median(|costs| costs.hop_ns),
        shared_hop_ns: median(|costs| costs.shared_hop_ns),
        hand_over_ns: median(|costs| costs.hand_over_ns),
        hand_over_per_kib_ns: median(|costs| costs.hand_over_per_kib_ns),
        wake_call_ns: median(|costs| costs.wake_call_ns),
        wake_ns: median(|costs| costs.wake_ns),
        clock_ns: median(|costs| costs.clock_ns),
    };
    Ok(MeasuredCosts { costs, others: others.share(0) })
}

fn once(cores: &[usize]) -> Result<MachineCosts, BenchError> {
    let one = &cores[..cores.len().min(1)];
    let empty = run(Scheduler::Greedy, one, SMALL, 0)?;
    let iteration_ns = per_message_ns(&empty);
    let step_ns =
        |record: &Record| record.operators.iter().map(|operator| operator.step.mean_ns).sum::<f64>();
    let hop_ns = iteration_ns / empty.operators.len() as f64;
    // The measured time of an empty step minus its real time: the clock reading.
    let clock_ns = (step_ns(&empty) / empty.operators.len() as f64 - hop_ns).max(0.0);
    let mut costs = MachineCosts {
        hop_ns,
        shared_hop_ns: hop_ns,
        hand_over_ns: 0.0,
        hand_over_per_kib_ns: 0.0,
        wake_call_ns: 0.0,
        wake_ns: 0.0,
        clock_ns,
    };
    if cores.len() < 2 {
        return Ok(costs);
    }
    let shared = run(Scheduler::Event, cores, SMALL, 0)?;
    costs.shared_hop_ns = per_message_ns(&shared) / shared.operators.len() as f64;
    // Two saxpy operators on one core and on two: the time above half is the hand-over.
    let way_ns = |quantum| -> Result<f64, BenchError> {
        let alone_ns = per_message_ns(&run(Scheduler::Greedy, one, quantum, 2)?);
        Ok(per_message_ns(&run(Scheduler::Pinned, cores, quantum, 2)?) - alone_ns / 2.0)
    };
    let (small_ns, large_ns) = (way_ns(SMALL)?, way_ns(LARGE)?);
    let kib = |bytes: usize| bytes as f64 / 1024.0;
    costs.hand_over_per_kib_ns = ((large_ns - small_ns) / (kib(LARGE) - kib(SMALL))).max(0.0);
    costs.hand_over_ns = (small_ns - costs.hand_over_per_kib_ns * kib(SMALL)).max(small_ns * 0.1).max(0.0);
    (costs.wake_call_ns, costs.wake_ns) = wake_up(cores)?;
    Ok(costs)
}

/// Runs a source, `kernels` saxpy operators and a sink. With 0 kernels, an operator without work replaces
/// them, so that the samples are not touched.
fn run(scheduler: Scheduler, cores: &[usize], quantum: usize, kernels: usize) -> Result<Record, BenchError> {
    let failed = |reason: String| BenchError::Scenario { name: format!("costs of {scheduler}"), reason };
    let mut graph = Graph::new("costs");
    graph.add("source", NullSource::<f32>::new(None));
    let mut last = "source".to_owned();
    for number in 0..kernels.max(1) {
        let name = format!("operator{number}");
        if kernels == 0 {
            graph.add(&*name, Load::<Chunk<f32>>::new(LoadWork::Rounds(0)));
        } else {
            let saxpy = Saxpy::new(1.0, 0.0).map_err(|error| failed(error.to_string()))?;
            graph.add(&*name, InPlace::new(saxpy));
        }
        graph.connect_names(&*last, &*name);
        last = name;
    }
    graph.add("sink", NullSink::<Chunk<f32>>::default());
    graph.connect_names(last, "sink");
    let options = Options {
        scheduler,
        cores: cores.to_vec(),
        idle: Idle::Spin,
        quantum,
        duration_ns: Some(RUN_NS),
        ..Options::default()
    };
    graph.run(&options).map_err(|error| failed(error.to_string()))
}

fn per_message_ns(record: &Record) -> f64 {
    let received = record.edges.last().map_or(1, |edge| edge.received.max(1));
    record.result.duration_ns as f64 / received as f64
}

/// Cost of waking a sleeping thread: on the waking side, and until the thread runs. Medians of several
/// attempts.
fn wake_up(cores: &[usize]) -> Result<(f64, f64), BenchError> {
    const TIMES: usize = 40;
    /// Time after which the thread certainly sleeps.
    const SLEEPS_NS: u64 = 300_000;
    let begun = Arc::new(AtomicU64::new(0));
    let (there, core) = (Arc::clone(&begun), cores[1]);
    let (send, receive) = std::sync::mpsc::channel();
    let sleeper = thread::spawn("onbeat-sleeper", move || {
        pin(core);
        let parker = Parker::new();
        // If the requesting side is gone, there is no need to wake it.
        if send.send(parker.unparker()).is_err() {
            return;
        }
        for _ in 0..TIMES {
            parker.park();
            // Release, partner: the Acquire below.
            there.store(clock::monotonic_ns(), Ordering::Release);
        }
    })
    .map_err(|error| BenchError::System { what: "cannot start a thread", error })?;
    let core = cores[0];
    let waker = thread::spawn("onbeat-waker", move || {
        pin(core);
        let (mut calls, mut wakes) = (Vec::new(), Vec::new());
        let Ok(unparker) = receive.recv() else { return (0.0, 0.0) };
        for _ in 0..TIMES {
            clock::sleep_until(clock::monotonic_ns() + SLEEPS_NS);
            begun.store(0, Ordering::Relaxed);
            let before_ns = clock::monotonic_ns();
            unparker.unpark();
            calls.push(clock::monotonic_ns() - before_ns);
            // Acquire: partner is the Release above.
            let mut ran_ns = begun.load(Ordering::Acquire);
            while ran_ns == 0 {
                std::hint::spin_loop();
                ran_ns = begun.load(Ordering::Acquire);
            }
            wakes.push(ran_ns.saturating_sub(before_ns));
        }
        calls.sort_unstable();
        wakes.sort_unstable();
        (calls[TIMES / 2] as f64, wakes[TIMES / 2] as f64)
    })
    .map_err(|error| BenchError::System { what: "cannot start a thread", error })?;
    let taken = join(waker);
    join(sleeper);
    Ok(taken)
}

fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn pin(core: usize) {
    if let Ok(core) = CoreSet::from_cores([core]) {
        // If the kernel refuses, it places the thread itself.
        let _refused = thread::set_cores(&core);
    }
}
