//! Predictions for a graph, and its runs under each scheduler: properties that hold on any machine.

use crate::watchdog::watched;
use onbeat_bench::model::{GraphLoad, MachineCosts};
use onbeat_bench::{BenchError, Maker, Unwatched, costs, pipeline, shapes};
use onbeat_operators::{Load, LoadWork, NullSink, NullSource};
use onbeat_runtime::{Chunk, Graph, Options, Pace, Scheduler};

const COSTS: MachineCosts = MachineCosts {
    hop_ns: 8.0,
    shared_hop_ns: 25.0,
    hand_over_ns: 150.0,
    hand_over_per_kib_ns: 110.0,
    wake_call_ns: 3_000.0,
    wake_ns: 30_000.0,
    clock_ns: 15.0,
};

/// A source, a load and a sink.
struct Three {
    rate_hz: Option<f64>,
}

impl Maker for Three {
    fn make(&mut self) -> Result<(Graph, Options), String> {
        let mut graph = Graph::new("three");
        let mut source = NullSource::<f32>::new(None).size(256).map_err(|error| error.to_string())?;
        if let Some(rate_hz) = self.rate_hz {
            source = source.rate(rate_hz, Pace::Real).map_err(|error| error.to_string())?;
        }
        graph.add("source", source);
        graph.add("load", Load::<Chunk<f32>>::new(LoadWork::Rounds(2_000)));
        graph.add("sink", NullSink::<Chunk<f32>>::default());
        graph.connect_names("source", "load");
        graph.connect_names("load", "sink");
        Ok((graph, Options { workers: Some(2), ..Options::default() }))
    }
}

fn tiny() -> pipeline::PipelineSettings {
    pipeline::PipelineSettings { seconds: 0.01, rounds: 2, ..pipeline::PipelineSettings::default() }
}

#[test]
fn a_graph_runs_under_each_scheduler_that_can() {
    let found = watched(|| pipeline::run(&mut Three { rate_hz: None }, &tiny(), &mut Unwatched)).unwrap();
    assert!(found.schedulers.starts_with(&[Scheduler::Greedy, Scheduler::Event, Scheduler::Pinned]));
    for scheduler in &found.schedulers {
        for what in ["rate", "latency.p50", "latency.p99", "cpu", "idle"] {
            let name = format!("pipeline.{scheduler}.{what}");
            assert!(found.result.figures.get(&name).is_some_and(|figure| figure.runs == 2), "{name}");
        }
    }
    assert_eq!(found.result.value("pipeline.greedy.times_first"), Some(1.0));
    assert_eq!(found.result.parameters["counted"], "source.out → load.in");
    let notes = found.result.notes.join("\n");
    assert!(notes.contains("load takes") && notes.contains("of the work"), "{notes}");
}

#[test]
fn who_sets_the_pace_is_said() {
    let found = watched(|| {
        let settings = pipeline::PipelineSettings { seconds: 0.2, ..tiny() };
        pipeline::run(&mut Three { rate_hz: Some(51_200.0) }, &settings, &mut Unwatched)
    })
    .unwrap();
    let notes = found.result.notes.join("\n");
    assert!(notes.contains("something else sets the pace"), "{notes}");
    let rate = found.result.value("pipeline.greedy.rate").unwrap();
    assert!((100.0..=300.0).contains(&rate), "200 chunks per second: {rate}");
}

#[test]
fn advice_names_one_of_those_that_it_expects_something_of() {
    let advised =
        watched(|| pipeline::advised(&mut Three { rate_hz: None }, &COSTS, 0.06, &mut Unwatched)).unwrap();
    let GraphLoad { operators, edges, rate, .. } = &advised.workload;
    assert_eq!(operators.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["source", "load", "sink"]);
    assert!(operators[1].step_ns > operators[0].step_ns && operators[0].is_source);
    assert!((operators[1].steps - 1.0).abs() < 0.1 && edges.len() == 2 && *rate > 0.0);
    assert!(advised.expected.iter().all(|one| one.prediction.rate > 0.0 && one.prediction.latency_ns > 0.0));
    assert_eq!(advised.expected[0].scheduler, Scheduler::Greedy);
    assert!(advised.advice.chosen < advised.expected.len() && !advised.advice.why.is_empty());
    // One worker: the measured and the predicted rate are equal.
    let ratio = advised.expected[0].prediction.rate / rate;
    assert!((0.95..1.05).contains(&ratio), "{ratio}");
}

struct Broken;

impl Maker for Broken {
    fn make(&mut self) -> Result<(Graph, Options), String> {
        Err("the file is gone".to_owned())
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let none = pipeline::PipelineSettings { rounds: 0, ..tiny() };
    for (settings, text) in [(none, "rounds must be 1 or more"), (tiny(), "the file is gone")] {
        let error = pipeline::run(&mut Broken, &settings, &mut Unwatched).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    let error = pipeline::advised(&mut Broken, &COSTS, f64::NAN, &mut Unwatched).unwrap_err().to_string();
    assert!(error.contains("it must be from 0.001 to 600"), "{error}");
    let settings = shapes::ShapesSettings { shapes: 0, ..shapes::ShapesSettings::default() };
    assert!(matches!(shapes::run(&settings, &COSTS, &mut Unwatched), Err(BenchError::Settings(_))));
}

#[test]
fn drawn_graphs_are_tried_under_each_scheduler() {
    let settings =
        shapes::ShapesSettings { shapes: 2, seconds: 0.02, rounds: 2, ..shapes::ShapesSettings::default() };
    let found = watched(move || shapes::run(&settings, &COSTS, &mut Unwatched)).unwrap();
    assert_eq!(found.shapes.len(), 2);
    for tried in &found.shapes {
        assert!(tried.under.iter().all(|(_, expected, measured)| *expected > 0.0 && *measured > 0.0));
        assert!(tried.of_fastest() <= 1.0 && tried.error().is_finite() && !tried.text.is_empty());
    }
    assert!(found.result.value("advice.within_5_percent") <= Some(2.0));
}

#[test]
fn costs_are_measured_kept_and_thrown_away() {
    let measured = watched(|| costs::measure(&mut Unwatched)).unwrap().costs;
    assert!(measured.hop_ns > 0.0 && measured.hop_ns < 1e6, "{measured:?}");
    let folder = std::env::temp_dir().join(format!("onbeat-costs-{}", std::process::id()));
    assert_eq!(costs::cached(&folder), None);
    let file = costs::save(&folder, measured).unwrap();
    // JSON keeps all digits but the last.
    let is_same = |kept: MachineCosts| (kept.hop_ns / measured.hop_ns - 1.0).abs() < 1e-9;
    assert!(costs::cached(&folder).is_some_and(is_same), "{measured:?}");
    // An entry of another machine, or a broken one, counts as missing.
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"version\": \"", "\"version\": \"9")).unwrap();
    assert_eq!(costs::cached(&folder), None);
    std::fs::write(&file, "{").unwrap();
    assert_eq!(costs::cached(&folder), None);
    costs::forget(&folder).unwrap();
    costs::forget(&folder).unwrap();
    assert!(!file.exists());
    std::fs::remove_dir(&folder).unwrap();
}
