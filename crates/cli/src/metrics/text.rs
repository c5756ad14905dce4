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

/// Returns the text of all metrics.
pub fn text(status: RunStatus) -> String {
    let mut registry = Registry::with_prefix("onbeat");
    registry.register_collector(Box::new(StatusCollector(status)));
    let mut out = String::new();
    // Writing to a string cannot fail.
    text::encode(&mut out, &registry).unwrap_or_default();
    out
}

#[derive(Debug)]
struct StatusCollector(RunStatus);

type Labels<'a, const N: usize> = [(&'static str, &'a str); N];

/// Encoder of one metric: its name, help text and unit.
struct Metric<'e, 'd> {
    encoder: &'e mut DescriptorEncoder<'d>,
    name: &'static str,
    help: &'static str,
    unit: Option<&'static Unit>,
}

impl Metric<'_, '_> {
    fn counters<'a, const N: usize>(self, all: impl Iterator<Item = (Labels<'a, N>, f64)>) -> fmt::Result {
        let mut metric = self.encoder.encode_descriptor(self.name, self.help, self.unit, Counter)?;
        for (labels, value) in all {
            metric.encode_family(&labels)?.encode_counter::<NoLabelSet, f64, f64>(&value, None)?;
        }
        Ok(())
    }

    fn gauges<'a, const N: usize>(self, all: impl Iterator<Item = (Labels<'a, N>, f64)>) -> fmt::Result {
        let mut metric = self.encoder.encode_descriptor(self.name, self.help, self.unit, Gauge)?;
        for (labels, value) in all {
            metric.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }
}

impl Collector for StatusCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let status = &self.0;
        const SECONDS: Option<&Unit> = Some(&Unit::Seconds);
        let mut info = encoder.encode_descriptor("run", "pipeline and version of onbeat", None, Info)?;
        info.encode_info(&[("pipeline", status.name.as_str()), ("version", env!("CARGO_PKG_VERSION"))])?;
        macro_rules! metric {
            ($name:literal, $help:literal, $unit:expr) => {
                Metric { encoder: &mut encoder, name: $name, help: $help, unit: $unit }
            };
        }
        let state = |one: RunState| ([("state", word(one))], f64::from(u8::from(status.state == one)));
        let states =
            [RunState::Starting, RunState::Running, RunState::Paused, RunState::Stopping, RunState::Ended];
        metric!("run_state", "1 for the current state of the run, 0 for the others", None)
            .gauges(states.into_iter().map(state))?;
        let elapsed = std::iter::once(([("", ""); 0], seconds(status.elapsed_ns)));
        metric!("run_elapsed", "time since the first step", SECONDS).gauges(elapsed)?;
        let missing = status.obtained.iter().filter(|one| one.asked != one.obtained).count();
        let missing = std::iter::once(([("", ""); 0], missing as f64));
        metric!("settings_not_obtained", "settings that were not obtained as requested", None)
            .gauges(missing)?;

        let operators = || {
            status
                .operators
                .iter()
                .map(|it| ([("operator", it.name.as_str()), ("worker", it.worker.as_str())], it))
        };
        metric!("operator_steps", "steps", None)
            .counters(operators().map(|(labels, it)| (labels, it.steps as f64)))?;
        metric!("operator_busy", "time in steps, extrapolated from the timed ones", SECONDS)
            .counters(operators().map(|(labels, it)| (labels, seconds(it.busy_ns))))?;
        metric!("operator_late", "steps that ended after the deadline", None)
            .counters(operators().map(|(labels, it)| (labels, it.late as f64)))?;
        metric!("operator_lost", "lost data (datagrams, bytes) that no setting permits to lose", None)
            .counters(operators().map(|(labels, it)| (labels, it.lost as f64)))?;

        let edges =
            || status.edges.iter().map(|it| ([("from", it.from.as_str()), ("to", it.to.as_str())], it));
        metric!("edge_sent_messages", "messages sent", None)
            .counters(edges().map(|(labels, it)| (labels, it.sent as f64)))?;
        metric!("edge_dropped_messages", "messages that the edge dropped by its when_full", None)
            .counters(edges().map(|(labels, it)| (labels, it.dropped as f64)))?;
        metric!("edge_depth_messages", "messages queued on the edge", None)
            .gauges(edges().map(|(labels, it)| (labels, it.depth as f64)))?;
        metric!("edge_capacity_messages", "messages that the edge can hold", None)
            .gauges(edges().map(|(labels, it)| (labels, it.capacity as f64)))?;

        let paths =
            || status.paths.iter().map(|it| ([("from", it.from.as_str()), ("to", it.to.as_str())], it));
        let limited = || paths().filter_map(|(labels, it)| Some((labels, it, it.max_latency_ns?)));
        metric!("path_limit", "max_latency of the path", SECONDS)
            .gauges(limited().map(|(labels, _, ns)| (labels, seconds(ns))))?;
        metric!("path_misses", "latencies above max_latency", None)
            .counters(limited().map(|(labels, it, _)| (labels, it.misses as f64)))?;
        let help = "from the due time of the source to the end of the sink's step";
        let mut latency = encoder.encode_descriptor("path_latency", help, SECONDS, Histogram)?;
        for (labels, path) in paths() {
            let count = path.latency.total();
            let buckets = octaves(path);
            latency.encode_family(&labels)?.encode_histogram::<NoLabelSet>(
                seconds(path.sum_ns),
                count,
                &buckets,
                None,
            )?;
        }

        encode_causes(status, &mut encoder)
    }
}

fn encode_causes(status: &RunStatus, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let causes = || {
        let all = status.causes.iter().take(CAUSES);
        all.map(|it| ([("class", it.class.word()), ("cause", it.name.as_str())], it))
    };
    let help = "misses with this main cause";
    Metric { encoder, name: "cause_misses", help, unit: None }
        .counters(causes().map(|(labels, it)| (labels, it.misses as f64)))?;
    let help = "share of this cause in the lateness of all misses";
    Metric { encoder, name: "cause_lateness", help, unit: Some(&Unit::Seconds) }
        .counters(causes().map(|(labels, it)| (labels, seconds(it.lost_ns))))
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
