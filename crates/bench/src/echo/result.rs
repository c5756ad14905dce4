//! Figures of the echoes.

use super::messages::EchoLoop;
use super::settings::EchoWait;
use super::trial::{EchoCase, EchoFinding, SilenceCounts};
use onbeat_report::BenchResult;

/// One measurement with all of its rounds.
#[derive(Debug)]
pub(super) struct EchoRow {
    pub case: EchoCase,
    pub kind: EchoLoop,
    pub wait: EchoWait,
    /// Whether a second of silence follows.
    pub is_silent: bool,
    pub found: Vec<EchoFinding>,
}

impl EchoRow {
    /// Name in figures.
    pub fn name(&self) -> String {
        format!("{}.{}.{}", self.case.name(), self.wait.name(), self.kind.name())
    }

    /// The value of each round.
    fn each(&self, of: impl Fn(&EchoFinding) -> Option<f64>) -> Vec<f64> {
        self.found.iter().map(|found| of(found).unwrap_or(f64::NAN)).collect()
    }

    /// A quantile of the round trips in each round.
    fn trips(&self, share: f64) -> Vec<f64> {
        self.each(|found| quantile(found.trips.trips_ns.iter().map(|&ns| ns as f64), share))
    }

    /// What the client and the way to the server cost in each round: the median of round trips without the
    /// time for which the stamped loop had the message.
    fn own(&self) -> Vec<f64> {
        self.each(|found| {
            let pairs = found.trips.trips_ns.iter().zip(&found.report.held_ns);
            // Without a pair for each there is no telling which belong together.
            let is_whole = found.trips.trips_ns.len() == found.report.held_ns.len();
            let own = pairs.map(|(&trip_ns, &held_ns)| trip_ns as f64 - held_ns as f64);
            quantile(own, 0.5).filter(|_| is_whole)
        })
    }
}

/// Quantiles in the figures.
const QUANTILES: [(&str, f64); 2] = [("p50", 0.5), ("p99", 0.99)];

/// Returns the smallest value that is not below this share of the values.
fn quantile(values: impl Iterator<Item = f64>, share: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// Enters all figures.
pub(super) fn enter(rows: &[EchoRow], result: &mut BenchResult) {
    for row in rows {
        let name = row.name();
        for (figure, share) in QUANTILES {
            result.add(&format!("{name}.{figure}"), &row.trips(share), "ns");
        }
        result.add(&format!("{name}.echoes"), &row.each(|it| Some(it.trips.trips_ns.len() as f64)), "1");
        result.add(&format!("{name}.lost"), &row.each(|it| Some(it.trips.lost as f64)), "1");
        result.add(&format!("{name}.wrong"), &row.each(|it| Some(it.trips.wrong as f64)), "1");
        let silence = |of: fn(&SilenceCounts) -> u64| {
            row.each(|found| found.silence.as_ref().map(|counts| of(counts) as f64))
        };
        let transport = row.case.transport.name();
        if row.is_silent {
            result.add(&format!("silence.{transport}.workers"), &silence(|it| it.workers), "1/s");
            result.add(&format!("silence.{transport}.process"), &silence(|it| it.process), "1/s");
        }
        if row.kind == EchoLoop::Onbeat {
            let of =
                |kind| rows.iter().find(|it| it.kind == kind && (it.case, it.wait) == (row.case, row.wait));
            if let (Some(bare), Some(stamped)) = (of(EchoLoop::Bare), of(EchoLoop::Stamped)) {
                compare(row, bare, stamped, result);
            }
        }
    }
}

/// A pipeline next to the bare loop, and its record next to what the client saw, within each round.
fn compare(ours: &EchoRow, bare: &EchoRow, stamped: &EchoRow, result: &mut BenchResult) {
    let case = format!("{}.{}", ours.case.name(), ours.wait.name());
    let recorded = ours.each(|found| found.report.latency.as_ref().map(|latency| latency.count as f64));
    result.add(&format!("{case}.recorded"), &recorded, "1");
    let own = stamped.own();
    result.add(&format!("{case}.own"), &own, "ns");
    for (figure, share) in QUANTILES {
        let (trips, bare) = (ours.trips(share), bare.trips(share));
        let ratio: Vec<f64> = trips.iter().zip(&bare).map(|(ours, bare)| ours / bare).collect();
        result.add(&format!("{case}.ratio.{figure}"), &ratio, "x");
        let recorded = ours.each(|found| {
            let latency = found.report.latency.as_ref().filter(|latency| latency.count > 0)?;
            Some(if share < 0.9 { latency.median_ns } else { latency.p99_ns } as f64)
        });
        let seen: Vec<f64> = trips.iter().zip(&own).map(|(trip, own)| trip - own).collect();
        let off: Vec<f64> = recorded.iter().zip(&seen).map(|(recorded, seen)| recorded - seen).collect();
        result.add(&format!("{case}.record.{figure}"), &recorded, "ns");
        result.add(&format!("{case}.seen.{figure}"), &seen, "ns");
        result.add(&format!("{case}.off.{figure}"), &off, "ns");
    }
}
