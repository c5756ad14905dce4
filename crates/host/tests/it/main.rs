//! Findings on made-up machines.

mod applied;
mod fixtures;
mod hostile;
mod made;
mod states;
mod tuned;

use made::Made;
use onbeat_host::finding::in_words;
use onbeat_host::measured::{Measurements, NoiseSummary, StolenTime, WakeLatency};
use onbeat_host::tried::{Attempt, AttemptRefusal, Attempts};
use onbeat_host::{Fact, Facts, MachineCase, PipelineNeeds, Report, State, WorkerNeeds, examine};
use std::fmt::Write;

pub(crate) fn case(made: &Made, cpus: &str) -> MachineCase {
    let mut case = MachineCase { facts: Facts::read(made), ..MachineCase::default() };
    let asked = cpus.parse().ok();
    case.choose_cpus(asked.as_ref());
    case
}

pub(crate) fn granted() -> Attempts {
    let ok = || Fact::Known(Ok(()));
    Attempts {
        fifo: ok(),
        round_robin: ok(),
        priority: 80,
        deadline: ok(),
        affinity: ok(),
        lock: ok(),
        perf: ok(),
        tracefs: ok(),
        dma_latency: ok(),
    }
}

pub(crate) fn refused() -> Attempts {
    let no = || -> Attempt {
        Fact::Known(Err(AttemptRefusal { why: "EPERM".to_owned(), fix: "ask root".to_owned() }))
    };
    Attempts {
        fifo: no(),
        round_robin: no(),
        priority: 80,
        deadline: no(),
        affinity: no(),
        lock: no(),
        perf: no(),
        tracefs: no(),
        dma_latency: no(),
    }
}

pub(crate) fn measured(worse: u64) -> Measurements {
    let wake =
        |us: u64| Fact::Known(WakeLatency { median_ns: us * 1000, p99_ns: us * 2000, max_ns: us * 3000 });
    Measurements {
        clock_read_ns: Fact::Known(22.0 * worse as f64),
        wake: wake(4 * worse),
        wake_awake: wake(4),
        steal: Fact::Known(StolenTime { stolen_ns: (worse - 1) * 1_000_000, of_ns: 1_000_000_000 }),
        interrupts: Fact::Known(vec![(1, vec![("LOC".to_owned(), 250)])]),
        noise: Fact::Known(NoiseSummary {
            runtime_ns: 5_000_000_000,
            noise_ns: 1_000_000 * worse,
            max_single_ns: 20_000 * worse,
            hardware_ns: 300_000,
            causes: Vec::new(),
            is_named: true,
        }),
        smi: Fact::Known(worse - 1),
    }
}

pub(crate) fn pipeline(core: usize, policy: &str) -> PipelineNeeds {
    PipelineNeeds {
        name: "radio".to_owned(),
        file: "/srv/radio.toml".to_owned(),
        workers: vec![WorkerNeeds {
            name: "radio".to_owned(),
            core: Some(core),
            policy: policy.parse().ok(),
            spins: false,
            never_sleeps: false,
        }],
        lock_memory: true,
        dma_latency_us: Some(0),
        shortest_ns: Some(8_000_000),
        shortest_of: "the limit of a → b".to_owned(),
        ..PipelineNeeds::default()
    }
}

/// Formats a report: one line per finding, good ones at the end.
pub(crate) fn told(report: &Report) -> String {
    let mut text = format!("cores {} ({}): {}\n", report.cpus, report.why_cpus, report.verdict());
    for finding in &report.findings {
        let state = match finding.state {
            State::Bad => format!("{:?}", finding.severity),
            other => format!("{other:?}"),
        };
        writeln!(text, "{state:8} {}: {}", finding.id, finding.evidence).unwrap();
        for fix in in_words(&finding.fixes) {
            writeln!(text, "         fix: {fix}").unwrap();
        }
    }
    text
}

#[test]
fn what_is_found_on_six_machines() {
    let machines = [
        ("bare_metal", case(&fixtures::bare_metal(), "2-3"), granted()),
        ("tuned", case(&fixtures::tuned(), "2-3"), granted()),
        ("jetson", case(&fixtures::jetson(), "4-5"), refused()),
        ("container", case(&fixtures::container(), "1-2"), refused()),
        ("cloud", case(&fixtures::cloud(), "2-3"), granted()),
        ("small", case(&fixtures::small(), ""), granted()),
    ];
    for (name, case, tried) in machines {
        let case = MachineCase { tried, ..case };
        insta::assert_snapshot!(name, told(&examine(&case)));
    }
}
