//! The cost of explaining late messages: the same chain with and without it, in turn, on one core.
//!
//! There are two chains. In the chain of the radio benchmark, steps follow so closely that only a sample of
//! them is timed: its loss is a user's loss. In the long chain every step is timed, at intervals at which
//! each clock reading has its full cost: its loss per clock reading is the cost of a reading.

use crate::others::Others;
use crate::{BenchError, BenchWatch, common};
use onbeat_operators::{NullSink, NullSource, dsp::Saxpy};
use onbeat_os::CoreSet;
use onbeat_report::{BenchResult, bench::Machine};
use onbeat_runtime::{Chunk, Explain, Graph, InPlace, Options, Scheduler};
use onbeat_trace::Record;
use serde_json::json;

/// Settings of the bench.
#[derive(Debug, Clone)]
pub struct ExplainSettings {
    /// Numbers of saxpy operators, one chain each.
    pub kernels: Vec<usize>,
    /// Chunk size in bytes.
    pub quantum: usize,
    /// How often each chain is run with and without explaining.
    pub pairs: usize,
    /// Duration of each run, in seconds.
    pub seconds: f64,
}

impl Default for ExplainSettings {
    fn default() -> Self {
        ExplainSettings { kernels: vec![3, 6], quantum: 16 << 10, pairs: 41, seconds: 0.05 }
    }
}

/// A chain to measure.
#[derive(Debug, Clone, Copy)]
enum ExplainChain {
    /// The chain of the radio benchmark, with this many saxpy operators.
    Saxpy(usize),
    /// A chain with one operator that computes long enough for each step to be timed.
    Long,
}

/// Duration of a step of the long chain. Its three operators are stepped at slightly longer intervals than
/// the recorder requires to time all of them.
const LONG_NS: u64 = 5_000;

/// Clock readings of the long chain per message: a step that begins where the previous one ended needs no
/// reading of its own.
const STAMPS: f64 = 4.0;

/// Shortest and longest duration of a run.
const SHORTEST_SECONDS: f64 = 0.001;
const LONGEST_SECONDS: f64 = 3600.0;

/// Runs the bench.
///
/// # Errors
/// [`BenchError`]: invalid settings, a failed run, or a stop before the first pair was complete.
pub fn run(settings: &ExplainSettings, watch: &mut dyn BenchWatch) -> Result<BenchResult, BenchError> {
    if settings.pairs == 0
        || settings.kernels.contains(&0)
        || !(SHORTEST_SECONDS..=LONGEST_SECONDS).contains(&settings.seconds)
    {
        let text = format!(
            "pairs and kernels must be 1 or more, and seconds from {SHORTEST_SECONDS} to {LONGEST_SECONDS}: \
             they are {}, {:?} and {}",
            settings.pairs, settings.kernels, settings.seconds
        );
        return Err(BenchError::Settings(text));
    }
    let chains: Vec<ExplainChain> =
        settings.kernels.iter().map(|&it| ExplainChain::Saxpy(it)).chain([ExplainChain::Long]).collect();
    let mut result = BenchResult::new("explain", Machine::read());
    let (core, house) = cores()?;
    result.parameters = common::parameters(json!({
        "kernels": settings.kernels,
        "quantum_bytes": settings.quantum,
        "pairs": settings.pairs,
        "seconds": settings.seconds,
        "core": core,
    }));
    let mut found: Vec<Pairs> = chains.iter().map(|_| Pairs::default()).collect();
    let others = Others::watch();
    'pairs: for pair in 0..settings.pairs {
        for (at, (chain, found)) in chains.iter().zip(&mut found).enumerate() {
            if watch.is_stopped() {
                if pair == 0 {
                    return Err(BenchError::Stopped);
                }
                result.notes.push(format!("stopped in pair {} of {}", pair + 1, settings.pairs));
                break 'pairs;
            }
            let text = format!("pair {} of {}: {}", pair + 1, settings.pairs, chain.name());
            watch.at(pair * chains.len() + at, settings.pairs * chains.len(), &text);
            // The first run may find the machine in another state than the second, so the order alternates.
            let order = if pair % 2 == 0 { [Explain::Off, Explain::On] } else { [Explain::On, Explain::Off] };
            for explain in order {
                let record = once(*chain, explain, settings, core, &house)?;
                found.take(explain, &record);
            }
        }
    }
    for (chain, found) in chains.iter().zip(&found) {
        found.enter(*chain, &mut result);
    }
    common::doubts(&mut result, others.share(0), common::AGAIN);
    Ok(result)
}

/// The core to measure, and the cores for everything else.
fn cores() -> Result<(usize, Vec<usize>), BenchError> {
    let allowed =
        CoreSet::allowed().map_err(|error| BenchError::System { what: "cores of this process", error })?;
    let all: Vec<usize> = allowed.iter().collect();
    let (&core, house) = all.split_last().ok_or_else(|| BenchError::Nothing("no core".to_owned()))?;
    Ok((core, house.to_vec()))
}

/// Results of one chain, pair by pair.
#[derive(Debug, Default)]
struct Pairs {
    off: Vec<f64>,
    on: Vec<f64>,
    /// Allocations of the worker with explaining.
    allocations: u64,
    sampled: Vec<String>,
    source: String,
    unread: u64,
}

impl Pairs {
    fn take(&mut self, explain: Explain, record: &Record) {
        let chunks = record.edges.last().map_or(0, |edge| edge.received);
        let rate = chunks as f64 * 1e9 / record.result.duration_ns.max(1) as f64;
        if explain == Explain::Off {
            self.off.push(rate);
            return;
        }
        self.on.push(rate);
        self.allocations += record.threads.iter().filter_map(|thread| thread.allocations).sum::<u64>();
        if let Some(explained) = &record.explained {
            self.sampled.clone_from(&explained.sampled);
            self.source.clone_from(&explained.source);
            self.unread += explained.unread;
        }
    }

    fn enter(&self, chain: ExplainChain, result: &mut BenchResult) {
        let name = chain.name();
        let pairs = || self.off.iter().zip(&self.on);
        let cost: Vec<f64> = pairs().map(|(off, on)| (1.0 - on / off) * 100.0).collect();
        result.add(&format!("{name}.off"), &self.off, "1/s");
        result.add(&format!("{name}.on"), &self.on, "1/s");
        result.add(&format!("{name}.cost"), &cost, "%");
        if matches!(chain, ExplainChain::Long) {
            let stamp: Vec<f64> = pairs().map(|(off, on)| (1e9 / on - 1e9 / off) / STAMPS).collect();
            result.add("stamp", &stamp, "ns");
        }
        result.add(&format!("{name}.allocations"), &[self.allocations as f64], "");
        let sampled = match self.sampled.as_slice() {
            [] => "every step was timed".to_owned(),
            names => format!("one step in {} was timed", names.join(", ")),
        };
        let lost = match self.unread {
            0 => String::new(),
            steps => format!("; {steps} steps were not read in time"),
        };
        result.notes.push(format!("{name}: {sampled}; kernel events from {}{lost}", self.source));
    }
}

impl ExplainChain {
    fn name(self) -> String {
        match self {
            ExplainChain::Saxpy(kernels) => format!("saxpy.m{kernels}"),
            ExplainChain::Long => "long".to_owned(),
        }
    }

    fn graph(self) -> Result<Graph, onbeat_runtime::Error> {
        let mut graph = Graph::new("explain");
        match self {
            ExplainChain::Saxpy(kernels) => {
                graph.add("source", NullSource::<f32>::new(None));
                let mut last = "source".to_owned();
                for number in 1..=kernels {
                    let name = format!("saxpy{number}");
                    let (a, b) = std::hint::black_box((1.0, 0.0));
                    graph.add(&*name, InPlace::new(Saxpy::new(a, b)?));
                    graph.connect_names(&*last, &*name);
                    last = name;
                }
                graph.add("sink", NullSink::<Chunk<f32>>::default());
                graph.connect_names(last, "sink");
            }
            ExplainChain::Long => {
                let rounds = rounds(LONG_NS);
                let source = graph.source("source", || Some(1u64));
                let work = graph.map("work", move |number: u64| calculate(number, rounds));
                let sink = graph.sink("sink", |number: u64| _ = std::hint::black_box(number));
                graph.connect(source, |s| &s.out, work, |w| &w.input);
                graph.connect(work, |w| &w.out, sink, |s| &s.input);
            }
        }
        Ok(graph)
    }
}

fn calculate(number: u64, rounds: u64) -> u64 {
    (0..rounds)
        .fold(number, |x, _| std::hint::black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1)))
}

/// Rounds of arithmetic that take about `ns` on this machine; determined once.
fn rounds(ns: u64) -> u64 {
    static FOUND: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    const TRIED: u64 = 100_000;
    *FOUND.get_or_init(|| {
        let took_ns = (0..20).map(|_| {
            let begin_ns = onbeat_os::clock::monotonic_ns();
            std::hint::black_box(calculate(1, TRIED));
            onbeat_os::clock::monotonic_ns() - begin_ns
        });
        TRIED * ns / took_ns.min().unwrap_or(1).max(1)
    })
}

fn once(
    chain: ExplainChain,
    explain: Explain,
    settings: &ExplainSettings,
    core: usize,
    house: &[usize],
) -> Result<Record, BenchError> {
    let failed = |reason: String| BenchError::Scenario { name: chain.name(), reason };
    let graph = chain.graph().map_err(|error| failed(error.to_string()))?;
    let options = Options {
        scheduler: Scheduler::Greedy,
        cores: vec![core],
        house_keeping: house.to_vec(),
        quantum: settings.quantum,
        duration_ns: Some((settings.seconds * 1e9) as u64),
        explain,
        ..Options::default()
    };
    let plan = graph.plan(&options).map_err(|error| failed(error.to_string()))?;
    let evidence = onbeat::evidence(&plan);
    let run = graph.start_explained(plan, evidence).map_err(|error| failed(error.to_string()))?;
    run.wait().map_err(|error| failed(error.to_string()))
}
