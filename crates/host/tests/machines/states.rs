//! Every check can say all that it has to say.

use crate::made::{Content, KERNEL, Made, thread};
use crate::{case, fixtures, granted, measured, pipeline, refused};
use onbeat_host::{Case, Causes, Measured, State, checks, examine};
use std::collections::{BTreeMap, BTreeSet};

/// Those that tell something and judge nothing.
const NEVER_BAD: [&str; 4] = ["shared-caches", "mitigations", "rtkit", "slices"];

fn cases() -> Vec<Case> {
    let with = |made: &mut Made, more: &str| {
        made.and(more);
        case(made, "2-3")
    };
    let record = |faults: u64| {
        let text = format!(
            r#"{{"schema": "onbeat.record", "threads": [{{"policy": "f:80", "minor_faults": {faults}, "major_faults": 0}}]}}"#
        );
        Causes::from_json(&text).ok()
    };
    let bare = fixtures::bare_metal;
    let mut spins = pipeline(2, "f:80");
    spins.workers[0].never_sleeps = true;
    let mut low = fixtures::bare_metal();
    low.and(&thread(10, "ksoftirqd/0", KERNEL, 1, 1, "0"));
    let mut short = pipeline(2, "f:80");
    short.shortest_ns = Some(20_000);
    let mut guest = fixtures::small();
    guest.and("sys/kernel/debug/sched/preempt (none) voluntary full");
    let mut refuses = fixtures::bare_metal();
    for path in refuses.paths() {
        refuses.set(&path, Content::Denied);
    }
    vec![
        case(&refuses, "2-3"),
        // Nothing at all.
        case(&Made::default(), ""),
        Case { tried: granted(), ..case(&fixtures::tuned(), "2-3") },
        Case {
            tried: granted(),
            measured: measured(1),
            pipeline: Some(pipeline(2, "f:80")),
            causes: record(0),
            ..case(&fixtures::tuned(), "2-3")
        },
        Case {
            tried: refused(),
            measured: measured(10),
            pipeline: Some(pipeline(2, "f:80")),
            causes: record(7),
            ..case(&bare(), "2-3")
        },
        Case { pipeline: Some(spins), tried: granted(), ..case(&low, "2-3") },
        Case { pipeline: Some(short), measured: measured(10), tried: granted(), ..case(&bare(), "2-3") },
        Case { measured: measured(1), tried: granted(), ..case(&fixtures::cloud(), "2-3") },
        Case { measured: measured(10), tried: refused(), ..case(&fixtures::container(), "1-2") },
        Case { measured: Measured::not("not asked for"), tried: granted(), ..case(&guest, "") },
        case(&fixtures::jetson(), "4-5"),
        with(&mut bare(), "sys/kernel/security/lockdown none integrity [confidentiality]"),
        with(&mut bare(), "sys/kernel/tracing/current_tracer osnoise"),
        with(&mut bare(), "sys/kernel/sched_ext/state enabled\nsys/kernel/sched_ext/root/ops scx_rusty"),
        with(&mut bare(), "proc/cmdline isolcpus=0-15\nsys/devices/system/cpu/isolated 1-15"),
        with(&mut bare(), "proc/cmdline idle=poll"),
        with(&mut bare(), "sys/devices/system/clocksource/clocksource0/current_clocksource hpet"),
        with(&mut bare(), "proc/pressure/cpu some avg10=22.00 avg60=1 avg300=1 total=1"),
        with(&mut bare(), "proc/cmdline console=ttyS0"),
        with(
            &mut bare(),
            "proc/sys/vm/compaction_proactiveness 0\nproc/sys/vm/compact_unevictable_allowed 0",
        ),
        // The file of the kernel's options is no such file.
        with(&mut bare(), "boot/config-6.12.1-amd64 nothing"),
    ]
}

#[test]
fn every_check_is_seen_good_bad_and_unknown() {
    let mut seen: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for case in cases() {
        for finding in examine(&case).findings {
            assert!(!finding.evidence.is_empty(), "{}", finding.id);
            let state = match finding.state {
                State::Good => "good",
                State::Bad => "bad",
                State::Unknown => "unknown",
            };
            seen.entry(finding.id).or_default().insert(state);
        }
    }
    let missing: Vec<String> = checks::all()
        .flat_map(|check| ["good", "bad", "unknown"].map(|state| (check.id, state)))
        .filter(|(id, state)| !(seen[id].contains(state) || NEVER_BAD.contains(id) && *state == "bad"))
        .map(|(id, state)| format!("{id} is never {state}"))
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn a_machine_that_tells_nothing_has_no_bad_finding() {
    let nothing = case(&Made::default(), "");
    let mut refuses = fixtures::bare_metal();
    for path in refuses.paths() {
        refuses.set(&path, Content::Denied);
    }
    for case in [nothing, case(&refuses, "2-3")] {
        let report = examine(&case);
        let bad: Vec<&str> = report.bad(onbeat_host::Severity::Info).map(|finding| finding.id).collect();
        // Cores that were asked for are all that is known.
        assert!(bad.iter().all(|id| *id == "house-keeping"), "{bad:?}");
        let told = report.findings.iter().find(|finding| finding.id == "governor").unwrap();
        assert_eq!(told.state, State::Unknown);
    }
}

#[test]
fn texts_are_there_and_names_are_unique() {
    let mut ids = BTreeSet::new();
    for check in checks::all() {
        assert!(ids.insert(check.id), "{} is there twice", check.id);
        for text in [check.title, check.what, check.how, check.cost, check.skip] {
            assert!(!text.is_empty() && !text.contains("  "), "{}: {text:?}", check.id);
        }
        assert!(check.what.ends_with('.') && check.how.ends_with('.'), "{}", check.id);
    }
    assert!(ids.len() > 55, "{}", ids.len());
}

#[test]
fn findings_are_ranked_by_what_they_have_cost() {
    let text = r#"{"schema": "onbeat.record", "causes": [{"class": "irq", "name": "eth0", "lost_ms": 12.5},
        {"class": "page-fault", "lost_ms": 40}]}"#;
    let bare = case(&fixtures::bare_metal(), "2-3");
    let case = Case { causes: Causes::from_json(text).ok(), tried: granted(), ..bare };
    let report = examine(&case);
    let bad: Vec<_> = report
        .bad(onbeat_host::Severity::Info)
        .filter(|one| one.severity != onbeat_host::Severity::Critical)
        .collect();
    assert!(bad[0].lost_ms == Some(40.0), "{:?}", bad[0]);
    let lost: Vec<f64> = bad.iter().map(|finding| finding.lost_ms.unwrap_or(0.0)).collect();
    assert!(lost.is_sorted_by(|a, b| a >= b), "{lost:?}");
    let place = |id: &str| bad.iter().position(|finding| finding.id == id).unwrap();
    assert!(place("swap") < place("device-interrupts") && place("device-interrupts") < place("governor"));
    assert!(bad[place("governor")].cost_nothing() && !bad[place("swap")].cost_nothing());
    assert!(
        report
            .findings
            .iter()
            .all(|finding| finding.lost_ms.is_none() || !checks::named(finding.id).unwrap().mends.is_empty())
    );
}
