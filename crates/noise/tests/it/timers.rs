//! Short measurements of timers on this machine: the sums are right.

#![allow(clippy::disallowed_macros, reason = "a test says what it skips")]

use onbeat_noise::timerlat::{CpuLatency, LatencyRecord, LatencySettings, measure};
use onbeat_noise::{Backend, Observer};
use onbeat_os::{CoreSet, thread};

/// Stops after this number of calls.
struct Looks(u32);

impl Observer<CpuLatency> for Looks {
    fn at(&mut self, _: &dyn Fn() -> Vec<CpuLatency>, _: u64) {
        self.0 = self.0.saturating_sub(1);
    }
    fn is_stopped(&self) -> bool {
        self.0 == 0
    }
}

fn short(backend: Backend) -> LatencySettings {
    let cpus = CoreSet::from_cores(thread::cores().unwrap().iter().take(1)).unwrap();
    LatencySettings { cpus: Some(cpus), backend, policy: None, ..LatencySettings::default() }
}

fn measured(settings: &LatencySettings) -> Option<LatencyRecord> {
    measure(settings, &mut Looks(6)).inspect_err(|error| eprintln!("skipped: {error}")).ok()
}

#[test]
fn every_step_of_a_latency_is_accounted_for() {
    for backend in [Backend::Proc, Backend::Perf, Backend::Ftrace] {
        let Some(record) = measured(&short(backend)) else { continue };
        let cpu = &record.cpus[0];
        assert!(cpu.count >= 10 && cpu.user.summary.count == cpu.count, "{record:?}");
        assert_eq!(cpu.user.histogram.count, cpu.count);
        assert_eq!(cpu.samples.len(), 5);
        for analysis in &cpu.samples {
            let sum: u64 = analysis.steps.iter().map(|step| step.ns).sum();
            assert_eq!(sum, analysis.wake.user_latency_ns());
            let in_order = [analysis.wake.irq_latency_ns(), analysis.wake.thread_latency_ns()];
            assert!(in_order.iter().flatten().all(|ns| *ns <= analysis.wake.user_latency_ns()));
        }
        assert_eq!(cpu.samples[0].wake.user_latency_ns(), cpu.user.summary.max_ns);
        match backend {
            Backend::Perf | Backend::Ftrace => {
                assert!(cpu.thread.summary.count > 0, "switches are seen everywhere: {cpu:?}");
            }
            _ => assert_eq!((cpu.irq.summary.count, cpu.thread.summary.count), (0, 0)),
        }
    }
}

#[test]
fn the_first_late_one_ends_it_and_is_analysed() {
    let settings = LatencySettings { stop_thread_ns: Some(1), ..short(Backend::Auto) };
    let Some(record) = measured(&settings) else { return };
    let stopped = record.stopped.expect("no timer wakes a thread within a nanosecond");
    let analysis = record.cpus[0].stopped_by.as_ref().expect("the wake-up that ended it");
    assert_eq!((stopped.value_ns, stopped.limit_ns), (analysis.wake.user_latency_ns(), 1));
}

#[test]
fn what_cannot_be_is_refused() {
    for (settings, part) in [
        (LatencySettings { period_ns: 9_999, ..short(Backend::Proc) }, "below the 10 us"),
        (
            LatencySettings { cpus: Some("8191".parse().unwrap()), ..short(Backend::Proc) },
            "CPU 8191 does not exist",
        ),
    ] {
        let error = measure(&settings, &mut Looks(1)).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}
