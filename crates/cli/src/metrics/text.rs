//! State of a run in the OpenMetrics text format.

use onbeat::{PathStatus, RunState, RunStatus};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType::{Counter, Gauge, Histogram, Info};
use prometheus_client::registry::{Registry, Unit};
use std::fmt;

/// Content type from the specification of the format.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Most causes that are listed: their names come from the whole machine and could be many.
const CAUSES: usize = 32;
const SECONDS: Option<&Unit> = Some(&Unit::Seconds);

/// Returns the text of all metrics. Those of a node have the label `part`, because several parts may run
/// there, also none.
pub fn text(runs: Vec<RunStatus>, of: MetricsOf) -> String {
    let mut registry = Registry::with_prefix("onbeat");
    registry.register_collector(Box::new(RunsCollector { runs, of }));
    let mut out = String::new();
    // Writing to a string cannot fail.
    text::encode(&mut out, &registry).unwrap_or_default();
    out
}

/// Whose metrics they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsOf {
    Run,
    Node,
}

#[derive(Debug)]
struct RunsCollector {
    runs: Vec<RunStatus>,
    of: MetricsOf,
}

type Labels<'a> = Vec<(&'static str, &'a str)>;

/// Encoder of one metric: its name, help text and unit.
struct Metric<'e, 'd> {
    encoder: &'e mut DescriptorEncoder<'d>,
    name: &'static str,
    help: &'static str,
    unit: Option<&'static Unit>,
}

impl Metric<'_, '_> {
    fn counters<'a, T: 'a>(self, all: &[(Labels<'a>, T)], value: impl Fn(&T) -> f64) -> fmt::Result {
        let mut metric = self.encoder.encode_descriptor(self.name, self.help, self.unit, Counter)?;
        for (labels, it) in all {
            metric
                .encode_family(&labels.as_slice())?
                .encode_counter::<NoLabelSet, f64, f64>(&value(it), None)?;
        }
        Ok(())
    }

    fn gauges<'a, T: 'a>(self, all: &[(Labels<'a>, T)], value: impl Fn(&T) -> f64) -> fmt::Result {
        let mut metric = self.encoder.encode_descriptor(self.name, self.help, self.unit, Gauge)?;
        for (labels, it) in all {
            metric.encode_family(&labels.as_slice())?.encode_gauge(&value(it))?;
        }
        Ok(())
    }
}

impl RunsCollector {
    /// What all runs have of something, each with its labels.
    fn all<'a, T: 'a, I: IntoIterator<Item = T>>(
        &'a self,
        items: impl Fn(&'a RunStatus) -> I,
        own: impl Fn(&T) -> Labels<'a>,
    ) -> Vec<(Labels<'a>, T)> {
        let of_run = |run: &'a RunStatus| {
            let part = (self.of == MetricsOf::Node).then_some(("part", run.name.as_str()));
            let labelled = |item: T| (part.into_iter().chain(own(&item)).collect(), item);
            items(run).into_iter().map(labelled).collect::<Vec<_>>()
        };
        self.runs.iter().flat_map(of_run).collect()
    }

    fn encode_runs(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut info = encoder.encode_descriptor("run", "pipeline and version of onbeat", None, Info)?;
        let version = env!("CARGO_PKG_VERSION");
        for (labels, _) in
            self.all(|run| [run], |run| vec![("pipeline", run.name.as_str()), ("version", version)])
        {
            info.encode_info(&labels.as_slice())?;
        }
        let states =
            [RunState::Starting, RunState::Running, RunState::Paused, RunState::Stopping, RunState::Ended];
        let all = self.all(|run| states.map(|one| (run, one)), |(_, one)| vec![("state", word(*one))]);
        let help = "1 for the current state of the run, 0 for the others";
        Metric { encoder, name: "run_state", help, unit: None }
            .gauges(&all, |(run, one)| f64::from(u8::from(run.state == *one)))?;
        let runs = self.all(|run| [run], |_| Vec::new());
        Metric { encoder, name: "run_elapsed", help: "time since the first step", unit: SECONDS }
            .gauges(&runs, |run| seconds(run.elapsed_ns))?;
        let help = "settings that were not obtained as requested";
        Metric { encoder, name: "settings_not_obtained", help, unit: None }
            .gauges(&runs, |run| run.obtained.iter().filter(|one| one.asked != one.obtained).count() as f64)
    }

    fn encode_operators(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let all = self.all(
            |run| &run.operators,
            |it| vec![("operator", it.name.as_str()), ("worker", it.worker.as_str())],
        );
        Metric { encoder, name: "operator_steps", help: "steps", unit: None }
            .counters(&all, |it| it.steps as f64)?;
        let help = "time in steps, extrapolated from the timed ones";
        Metric { encoder, name: "operator_busy", help, unit: SECONDS }
            .counters(&all, |it| seconds(it.busy_ns))?;
        let help = "steps that ended after the deadline";
        Metric { encoder, name: "operator_late", help, unit: None }.counters(&all, |it| it.late as f64)?;
        let help = "lost data (datagrams, bytes) that no setting permits to lose";
        Metric { encoder, name: "operator_lost", help, unit: None }.counters(&all, |it| it.lost as f64)
    }

    fn encode_edges(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let all = self.all(|run| &run.edges, |it| vec![("from", it.from.as_str()), ("to", it.to.as_str())]);
        Metric { encoder, name: "edge_sent_messages", help: "messages sent", unit: None }
            .counters(&all, |it| it.sent as f64)?;
        let help = "messages that the edge dropped by its when_full";
        Metric { encoder, name: "edge_dropped_messages", help, unit: None }
            .counters(&all, |it| it.dropped as f64)?;
        let help = "messages queued on the edge";
        Metric { encoder, name: "edge_depth_messages", help, unit: None }
            .gauges(&all, |it| it.depth as f64)?;
        let help = "messages that the edge can hold";
        Metric { encoder, name: "edge_capacity_messages", help, unit: None }
            .gauges(&all, |it| it.capacity as f64)
    }

    fn encode_paths(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let all = self.all(|run| &run.paths, |it| vec![("from", it.from.as_str()), ("to", it.to.as_str())]);
        let limited: Vec<_> =
            all.iter().filter_map(|(labels, it)| Some((labels.clone(), (*it, it.max_latency_ns?)))).collect();
        Metric { encoder, name: "path_limit", help: "max_latency of the path", unit: SECONDS }
            .gauges(&limited, |(_, ns)| seconds(*ns))?;
        Metric { encoder, name: "path_misses", help: "latencies above max_latency", unit: None }
            .counters(&limited, |(it, _)| it.misses as f64)?;
        let help = "from the due time of the source to the end of the sink's step";
        let mut latency = encoder.encode_descriptor("path_latency", help, SECONDS, Histogram)?;
        for (labels, path) in &all {
            let count = path.latency.total();
            let buckets = octaves(path);
            latency.encode_family(&labels.as_slice())?.encode_histogram::<NoLabelSet>(
                seconds(path.sum_ns),
                count,
                &buckets,
                None,
            )?;
        }
        Ok(())
    }

    fn encode_causes(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let all = self.all(
            |run| run.causes.iter().take(CAUSES),
            |it| vec![("class", it.class.word()), ("cause", it.name.as_str())],
        );
        let help = "misses with this main cause";
        Metric { encoder, name: "cause_misses", help, unit: None }.counters(&all, |it| it.misses as f64)?;
        let help = "share of this cause in the lateness of all misses";
        Metric { encoder, name: "cause_lateness", help, unit: SECONDS }
            .counters(&all, |it| seconds(it.lost_ns))
    }
}

impl Collector for RunsCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.encode_runs(&mut encoder)?;
        self.encode_operators(&mut encoder)?;
        self.encode_edges(&mut encoder)?;
        self.encode_paths(&mut encoder)?;
        self.encode_causes(&mut encoder)
    }
}

fn word(state: RunState) -> &'static str {
    match state {
        RunState::Starting => "starting",
        RunState::Running => "running",
        RunState::Paused => "paused",
        RunState::Stopping => "stopping",
        RunState::Ended => "ended",
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Returns the number of latencies up to each power of two from 1 µs to 137 s. The buckets of the run end
/// there too.
fn octaves(path: &PathStatus) -> Vec<(f64, u64)> {
    const FIRST: u32 = 10;
    const LAST: u32 = 37;
    let mut buckets: Vec<(f64, u64)> = (FIRST..=LAST).map(|octave| (seconds(1 << octave), 0)).collect();
    buckets.push((f64::INFINITY, 0));
    for (up_to_ns, count) in path.latency.iter() {
        let place = (FIRST..=LAST).position(|octave| up_to_ns <= 1 << octave).unwrap_or(buckets.len() - 1);
        buckets[place].1 += count;
    }
    buckets
}
