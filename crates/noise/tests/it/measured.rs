//! Short measurements on this machine: nothing is said of how long anything takes, only that the sums are
//! right.

#![allow(clippy::disallowed_macros, reason = "a test says what it skips")]

use onbeat_noise::record::NoiseRecord;
use onbeat_noise::{Backend, CpuNoise, NoiseError, NoiseSettings, Observer, measure};
use onbeat_os::{CoreSet, thread};

/// Stops after this number of calls.
struct Looks(u32);

impl Observer<CpuNoise> for Looks {
    fn at(&mut self, so_far: &dyn Fn() -> Vec<CpuNoise>, _: u64) {
        self.0 = self.0.saturating_sub(1);
        sums_are_right(&so_far());
    }
    fn is_stopped(&self) -> bool {
        self.0 == 0
    }
}

fn sums_are_right(cpus: &[CpuNoise]) {
    for cpu in cpus.iter().filter(|cpu| cpu.gaps_dropped == 0) {
        assert_eq!(cpu.parts.sum_ns(), cpu.noise_ns, "{cpu:?}");
        assert_eq!(cpu.histogram.sum_ns, cpu.noise_ns);
        assert_eq!(cpu.histogram.counts.iter().sum::<u64>() + cpu.histogram.over, cpu.histogram.count);
        assert_eq!(cpu.histogram.max_ns, cpu.max_single_ns);
        for class in onbeat_noise::record::CLASSES {
            let named: u64 =
                cpu.causes.iter().filter(|cause| cause.class == class).map(|cause| cause.total_ns).sum();
            let expected = if class == onbeat_trace::Class::Hardware { 0 } else { cpu.parts.of(class).ns };
            assert_eq!(named, expected, "{class:?}");
        }
        for verdict in &cpu.samples {
            let named: u64 = verdict.interferences.iter().map(|i| i.duration_ns).sum();
            assert_eq!(named + verdict.hardware_ns + verdict.unexplained_ns, verdict.gap.duration_ns());
        }
        assert!(cpu.samples.is_sorted_by_key(|verdict| std::cmp::Reverse(verdict.gap.duration_ns())));
    }
}

fn one_cpu() -> CoreSet {
    CoreSet::from_cores(thread::cores().unwrap().iter().take(1)).unwrap()
}

fn short(backend: Backend) -> NoiseSettings {
    NoiseSettings {
        cpus: Some(one_cpu()),
        backend,
        period_ns: 50_000_000,
        runtime_ns: 40_000_000,
        ..NoiseSettings::default()
    }
}

fn measured(settings: &NoiseSettings) -> Option<NoiseRecord> {
    match measure(settings, &mut Looks(6)) {
        Ok(record) => {
            sums_are_right(&record.cpus);
            Some(record)
        }
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

#[test]
fn every_backend_accounts_for_all_noise() {
    for backend in [Backend::Proc, Backend::Perf, Backend::Ftrace, Backend::Auto] {
        let Some(record) = measured(&short(backend)) else { continue };
        assert_eq!(record.cpus.len(), 1);
        assert!(record.cpus[0].periods >= 2 && record.cpus[0].looks > 0 && record.cpus[0].runtime_ns > 0);
        assert!(record.cpus[0].runtime_ns < record.duration_ns, "the thread sleeps between periods");
        assert!(backend == Backend::Auto || record.source.backend == backend);
        assert_eq!(record.stopped, None);
    }
}

#[test]
fn the_first_gap_over_the_limit_ends_it() {
    let settings = NoiseSettings { stop_single_ns: Some(1), threshold_ns: 1, ..short(Backend::Auto) };
    let Some(record) = measured(&settings) else { return };
    let stopped = record.stopped.expect("two clock reads are more than 1 ns apart");
    assert!(stopped.value_ns > 1 && stopped.limit_ns == 1 && stopped.what == "one gap");
}

#[test]
fn a_record_survives_json() {
    let Some(mut record) = measured(&short(Backend::Auto)) else { return };
    record.name = "here".into();
    let again = NoiseRecord::from_json(&record.to_json()).unwrap();
    assert_eq!(again.to_json(), record.to_json());
    for (text, part) in [
        ("{", "not JSON"),
        ("{\"schema\":\"onbeat.record\"}", "its schema is \"onbeat.record\", not \"onbeat.noise\""),
        ("{\"schema\":\"onbeat.noise\",\"version\":9}", "version 9"),
        ("{\"schema\":\"onbeat.noise\",\"version\":1}", "missing field"),
    ] {
        let error = NoiseRecord::from_json(text).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    for (settings, part) in [
        (
            NoiseSettings { runtime_ns: 2, period_ns: 1, ..NoiseSettings::default() },
            "does not fit in a period",
        ),
        (NoiseSettings { runtime_ns: 0, ..NoiseSettings::default() }, "measure nothing"),
        (NoiseSettings { threshold_ns: 0, ..NoiseSettings::default() }, "threshold of 0"),
        (NoiseSettings { threshold_ns: u64::MAX, ..NoiseSettings::default() }, "is above the run time"),
        (
            NoiseSettings { policy: Some("f:99".parse().unwrap()), ..NoiseSettings::default() },
            "take f:98 or less",
        ),
        (
            NoiseSettings { cpus: Some("8191".parse().unwrap()), ..NoiseSettings::default() },
            "CPU 8191 does not exist",
        ),
    ] {
        let error: NoiseError = measure(&settings, &mut Looks(1)).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
}
