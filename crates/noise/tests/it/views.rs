//! Views of a record.

use onbeat_noise::attribute::{Gap, GapVerdict, Interference};
use onbeat_noise::project::project;
use onbeat_noise::record::{CpuNoise, NoiseRecord, RecordedSettings, SCHEMA, VERSION};
use onbeat_noise::source::{Backend, Chosen};
use onbeat_noise::text;
use onbeat_trace::{Class, KernelEvent, Machine};

/// One core that looked for 10 s and lost these gaps of it: length and how many.
fn record(lengths: &[(u64, u64)]) -> NoiseRecord {
    let noise_ns = lengths.iter().map(|(ns, count)| ns * count).sum();
    let cpu =
        CpuNoise { runtime_ns: 10_000_000_000, noise_ns, lengths: lengths.to_vec(), ..CpuNoise::default() };
    NoiseRecord {
        schema: SCHEMA.into(),
        version: VERSION,
        name: "made".into(),
        started_unix_ns: 0,
        begin_ns: 0,
        duration_ns: 10_000_000_000,
        machine: Machine::default(),
        settings: RecordedSettings::default(),
        source: Chosen { backend: Backend::Perf, why: String::new(), fix: None, missing: Vec::new() },
        stopped: None,
        hits: 0,
        notes: Vec::new(),
        cpus: vec![cpu],
        events: Vec::new(),
        lines: Vec::new(),
    }
}

#[test]
fn one_node_loses_what_was_measured() {
    // 1000 gaps of 100 µs in 10 s: 1 % of the time, 1.01 % on top of the work.
    let found = project(&record(&[(100_000, 1000)]), 1_000_000, &[1]);
    assert!((found[0].slow_down - 0.0101).abs() < 0.0004, "{found:?}");
}

#[test]
fn many_nodes_wait_for_the_slowest() {
    let noise = record(&[(10_000, 10_000), (1_000_000, 10)]);
    let found = project(&noise, 1_000_000, &[1, 16, 1024, 65_536]);
    assert!(found.is_sorted_by(|a, b| a.slow_down < b.slow_down), "{found:?}");
    // With this number of nodes, one of them always has the long gap.
    assert!(found[3].slow_down > 1.0, "{found:?}");
    assert_eq!(found, project(&noise, 1_000_000, &[1, 16, 1024, 65_536]), "the same every time");
}

#[test]
fn without_noise_nothing_is_lost() {
    assert_eq!(project(&record(&[]), 1_000_000, &[1, 1024])[1].slow_down, 0.0);
    assert!(project(&record(&[(5, 1)]), 0, &[1]).is_empty());
    assert!(project(&NoiseRecord { cpus: Vec::new(), ..record(&[]) }, 1_000_000, &[1]).is_empty());
}

#[test]
fn events_are_written_as_rtla_does() {
    let event = |class, name: &str, pid, start_ns, duration_ns| KernelEvent {
        cpu: 2,
        start_ns,
        duration_ns,
        class,
        name: name.into(),
        pid,
        priority: 0,
        depth: 0,
    };
    let events = [
        event(Class::Thread, "make\u{1b}", 7, 1_000_000_000, 500_000),
        event(Class::Irq, "local_timer", 0, 1_000_000_100, 5_000),
    ];
    let mut record = record(&[]);
    let interferences = vec![Interference {
        class: Class::Thread,
        name: "make".into(),
        pid: 7,
        priority: 120,
        start_ns: 1_000_000_000,
        duration_ns: 500_000,
    }];
    let gap = Gap { cpu: 2, start_ns: 999_999_000, end_ns: 1_000_600_000 };
    record.cpus[0].samples =
        vec![GapVerdict { gap, interferences, hardware_ns: 0, unexplained_ns: 101_000, is_doubtful: false }];
    let expected = "             ...-0       [002] .......     1.000005: irq_noise: local_timer start 1.000000100 duration 5000 ns
           make -7       [002] .......     1.000500: thread_noise: make :7 start 1.000000000 duration 500000 ns
          onbeat-0       [002] .......     1.000600: sample_threshold: start 0.999999000 duration 601000 ns interference 1
";
    assert_eq!(text::lines(&events, Some(&record), &[]), expected);
    // Gaps that came later are there as well, and lines of others between them.
    record.cpus[0].last_gaps = vec![(Gap { cpu: 2, start_ns: 2_000_000_000, end_ns: 2_000_007_000 }, 0)];
    let lines = text::lines(&events, Some(&record), &[(1_500_000_000, "another".into())]);
    let more = "another\n          onbeat-0       [002] .......     2.000007: sample_threshold: start 2.000000000 duration 7000 ns interference 0\n";
    assert_eq!(lines, format!("{expected}{more}"));
}
