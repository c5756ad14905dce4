//! A made-up record in which every field has a value.

use onbeat_trace::cause::{Cause, CauseClass, Explained, Part, Verdict};
use onbeat_trace::machine::Tsc;
use onbeat_trace::record::*;
use onbeat_trace::{Buckets, CourseRecord, Machine, RegularityRecord, Summary};
use serde_json::json;

pub fn record() -> Record {
    Record {
        schema: SCHEMA.to_owned(),
        version: VERSION,
        name: "fm-receiver".to_owned(),
        build: Build {
            version: "0.1.0".to_owned(),
            profile: "release".to_owned(),
            target: "x86_64-unknown-linux-gnu".to_owned(),
        },
        started_unix_ns: 1_735_689_600_000_000_000,
        machine: machine(),
        config: json!({ "name": "fm-receiver", "scheduler": "pinned", "strict": false }),
        plan: PlanRecord {
            scheduler: Scheduler::Pinned,
            workers: vec![WorkerRecord {
                name: "worker-0".to_owned(),
                operators: vec!["iq".to_owned(), "audio".to_owned()],
            }],
            order: vec!["iq".to_owned(), "audio".to_owned()],
        },
        clock: ClockRecord { kind: ClockKind::Real, source: Some("tsc".to_owned()), read_ns: Some(18.5) },
        threads: vec![thread()],
        operators: vec![operator()],
        edges: vec![edge()],
        paths: vec![path()],
        stores: vec![StoreRecord {
            worker: "worker-0".to_owned(),
            quantum_bytes: 16_384,
            chunks: 16,
            in_use_max: 6,
            refused: 0,
            copies: 2,
        }],
        misses: vec![miss()],
        misses_total: 1,
        causes: vec![cause()],
        explained: Some(Explained {
            source: "perf".to_owned(),
            why: None,
            fix: None,
            exact: vec!["audio".to_owned()],
            sampled: Vec::new(),
            misses: 1,
            left_out: 0,
            spans: 1_000,
            unread: 0,
            lost: 0,
        }),
        changes: vec![change()],
        changes_total: 1,
        faults: vec![fault()],
        faults_total: 1,
        links: vec![link()],
        obtained: vec![obtained()],
        deadline_overruns: Some(3),
        notes: vec!["audio: 3 samples were clipped".to_owned()],
        result: RunResult {
            outcome: Outcome::Stopped,
            reason: "the time limit of 10 s".to_owned(),
            duration_ns: 10_000_000_000,
            lost: 0,
            exit_status: 0,
        },
    }
}

fn thread() -> ThreadRecord {
    ThreadRecord {
        name: "worker-0".to_owned(),
        purpose: "steps operators".to_owned(),
        tid: 4711,
        cpu_ns: 1_500_000_000,
        busy_ns: 1_400_000_000,
        idle_ns: 8_600_000_000,
        policy: Some("f:80".to_owned()),
        minor_faults: Some(2),
        major_faults: Some(0),
        allocations: Some(1),
        wake_late_max_ns: Some(61_000),
        sharing: Some(Sharing { taken: 4000, stolen: 12, woken: 3, parked: 90, helped: 7 }),
    }
}

fn edge() -> EdgeRecord {
    EdgeRecord {
        from: "iq.out".to_owned(),
        to: "audio.in".to_owned(),
        message: "Chunk<f32>".to_owned(),
        capacity: 4,
        when_full: WhenFull::DropOldest,
        quantum_bytes: Some(16_384),
        sent: 1_000,
        received: 996,
        dropped: 3,
        unread: 1,
        depth_max: 4,
        depth_mean: Some(0.25),
    }
}

fn path() -> PathRecord {
    PathRecord {
        from: "iq".to_owned(),
        to: "audio".to_owned(),
        max_latency_ns: Some(50_000_000),
        latency: summary(),
        misses: 1,
        worst_ns: Some(412_000),
        held_back_ns: 1_500,
        max_in_flight: Some(InFlightLimit::Messages(4)),
        in_flight_mean: Some(1.5),
        in_flight_most: Some(4),
        slowest: vec![SlowMessage {
            sequence: 17,
            time_ns: 900_000_000,
            latency_ns: 51_000_000,
            steps: vec![SlowStep { operator: "iq".to_owned(), begin_ns: 40_000, step_ns: 5_000 }],
        }],
        latencies_by_time: Some(buckets()),
        course: Some(course()),
        regularity: Some(RegularityRecord {
            period_ns: 10_000_000,
            early: buckets(),
            late: buckets(),
            course: Some(course()),
        }),
    }
}

fn miss() -> Miss {
    Miss {
        time_ns: 2_000_000_000,
        kind: MissKind::Path,
        name: "iq → audio".to_owned(),
        sequence: 200,
        value_ns: 50_700_000,
        limit_ns: 50_000_000,
        late_ns: 700_000,
        verdict: Some(Verdict {
            sentence: "message 200 of iq → audio was 700 µs late: audio was kept off core 1 for 690 µs by rcuc/1 (f:1); \
                       10 µs unexplained"
                .to_owned(),
            parts: vec![Part {
                class: CauseClass::Preempted,
                name: "rcuc/1".to_owned(),
                operator: Some("audio".to_owned()),
                core: Some(1),
                detail: Some("f:1".to_owned()),
                origin: Some(199),
                took_ns: 690_000,
                late_ns: 690_000,
            }],
        }),
    }
}

fn change() -> ChangeRecord {
    ChangeRecord {
        time_ns: 2_000_000_000,
        operator: "audio".to_owned(),
        what: ChangeKind::Set,
        parameter: Some("gain".to_owned()),
        value: Some(json!(0.5)),
        sample: Some(96_000),
    }
}

fn fault() -> FaultRecord {
    FaultRecord {
        time_ns: 3_000_000_000,
        operator: Some("audio".to_owned()),
        what: FaultKind::Error,
        text: "the sound card does not answer".to_owned(),
        then: FaultAction::Restarted,
        delay_ns: Some(100_000_000),
        stack: vec!["driver::read (driver.rs:12)".to_owned()],
    }
}

fn obtained() -> Obtained {
    Obtained {
        what: "policy of worker-0".to_owned(),
        asked: "f:80".to_owned(),
        obtained: "o:0".to_owned(),
        reason: Some("sched_setscheduler: not permitted; `ulimit -r 80` grants it".to_owned()),
    }
}

fn cause() -> Cause {
    Cause {
        class: CauseClass::Preempted,
        name: "rcuc/1".to_owned(),
        misses: 1,
        lost_ns: 690_000,
        finding: Some("isolcpus".to_owned()),
    }
}

fn operator() -> OperatorRecord {
    OperatorRecord {
        name: "audio".to_owned(),
        kind: "wav.sink".to_owned(),
        worker: "worker-0".to_owned(),
        steps: 1_000,
        timed_steps: 1_000,
        step: summary(),
        steps_by_time: Some(buckets()),
        busy_ns: 1_400_000_000,
        share: 0.14,
        deadline_ns: None,
        late: 0,
        copies: 2,
        restarts: 1,
        workers: 1,
        losses: vec![LossRecord {
            count: 3,
            unit: "datagrams".to_owned(),
            reason: "their numbers never came".to_owned(),
        }],
        measured: vec![MeasuredRecord {
            what: "clock difference".to_owned(),
            value: -12.5,
            unit: "ppm".to_owned(),
        }],
        state: OperatorState::NotStarted,
    }
}

fn buckets() -> Buckets {
    Buckets { up_to_ns: vec![1_000, 2_000], count: vec![900, 100] }
}

fn course() -> CourseRecord {
    CourseRecord {
        slot_ns: 1 << 25,
        count: vec![3, 2],
        min_ns: vec![900, 950],
        mean_ns: vec![1_000, 1_100],
        max_ns: vec![1_200, 1_500],
    }
}

fn summary() -> Summary {
    Summary {
        count: 1_000,
        min_ns: 900_000,
        mean_ns: 1_400_000.125,
        median_ns: 1_300_000,
        p90_ns: 1_600_000,
        p99_ns: 2_000_000,
        p99_9_ns: 40_000_000,
        max_ns: 50_700_000,
    }
}

fn machine() -> Machine {
    let some = |text: &str| Some(text.to_owned());
    Machine {
        cpu_model: some("Example CPU 9000"),
        cores_online: Some(4),
        cores_possible: Some(8),
        cores_isolated: some("2-3"),
        cores_nohz_full: some(""),
        smt: Some(false),
        l1d_bytes: Some(49_152),
        l2_bytes: Some(2_097_152),
        l3_bytes: None,
        tsc: Some(Tsc { constant: true, nonstop: true, reliable: false, known_frequency: true }),
        clock_source: some("tsc"),
        governor: None,
        virtualisation: some("kvm"),
        memory_bytes: Some(8_589_934_592),
        kernel: some("6.12.1"),
        preemption: some("PREEMPT_DYNAMIC (full)"),
        tainted: Some(0),
        kernel_parameters: Some(vec!["isolcpus=2-3".to_owned()]),
        distribution: some("Example Linux 12"),
    }
}

fn link() -> LinkRecord {
    LinkRecord {
        name: "iq→demod".into(),
        operator: "iq→demod".into(),
        peer: Some("desk:4711 at 192.168.0.8:7401".into()),
        messages: 1000,
        bytes: 16_384_000,
        repeated: 3,
        dropped: 2,
        dropped_before: Some(5),
        not_copied: 6,
        in_flight: 1,
        cuts: 1,
        cut_ns: 40_000_000,
        held_ns: 5_000_000,
        round_trip: Some(summary()),
        transit: Some(summary()),
        clock_ahead_ns: Some(-1_500_000),
        uncertainty_ns: Some(17_000),
        clock_drift_ppm: Some(0.5),
        clock_steps: 1,
    }
}
