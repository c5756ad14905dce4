//! Every check can reach each of its results.

use crate::made::{Content, KERNEL, Made, thread};
use crate::{case, fixtures, granted, measured, pipeline, refused};
use onbeat_host::{Causes, MachineCase, Measurements, Severity, State, checks, examine};
use onbeat_trace::{Cause, CauseClass, CauseFix};
use std::collections::{BTreeMap, BTreeSet};

/// Checks that inform and never judge.
const NEVER_BAD: [&str; 4] = ["shared-caches", "mitigations", "rtkit", "slices"];

fn cases() -> Vec<MachineCase> {
    let with = |made: &mut Made, more: &str| {
        made.and(more);
        case(made, "2-3")
    };
    let record = |faults: u64| Some(Causes { table: None, faults: Some(faults) });
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
        // A machine without files.
        case(&Made::default(), ""),
        MachineCase { tried: granted(), ..case(&fixtures::tuned(), "2-3") },
        MachineCase {
            tried: granted(),
            measured: measured(1),
            pipeline: Some(pipeline(2, "f:80")),
            causes: record(0),
            ..case(&fixtures::tuned(), "2-3")
        },
        MachineCase {
            tried: refused(),
            measured: measured(10),
            pipeline: Some(pipeline(2, "f:80")),
            causes: record(7),
            ..case(&bare(), "2-3")
        },
        MachineCase { pipeline: Some(spins), tried: granted(), ..case(&low, "2-3") },
        MachineCase {
            pipeline: Some(short),
            measured: measured(10),
            tried: granted(),
            ..case(&bare(), "2-3")
        },
        MachineCase { measured: measured(1), tried: granted(), ..case(&fixtures::cloud(), "2-3") },
        MachineCase { measured: measured(10), tried: refused(), ..case(&fixtures::container(), "1-2") },
        MachineCase { measured: Measurements::not("not asked for"), tried: granted(), ..case(&guest, "") },
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
        // The kernel config file has another content.
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
        // Only the cores that were asked for are known.
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
    let causes = Causes {
        table: Some(vec![
            cause(CauseClass::Irq, "eth0", 12_500_000),
            cause(CauseClass::PageFault, "", 40_000_000),
        ]),
        faults: None,
    };
    let bare = case(&fixtures::bare_metal(), "2-3");
    let case = MachineCase { causes: Some(causes), tried: granted(), ..bare };
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
    for finding in &report.findings {
        assert_eq!(finding.lost_ms.is_some(), CauseFix::by(finding.id).next().is_some(), "{}", finding.id);
    }
}

fn cause(class: CauseClass, name: &str, lost_ns: u64) -> Cause {
    let finding = class.finding(name).map(str::to_owned);
    Cause { class, name: name.to_owned(), misses: 1, lost_ns, finding }
}

#[test]
fn time_is_summed_by_class_and_name() {
    let table = vec![
        cause(CauseClass::Irq, "eth0", 2_000_000),
        cause(CauseClass::Irq, "local_timer", 500_000),
        cause(CauseClass::Preempted, "kdamond.0", 7_500_000),
        cause(CauseClass::Softirq, "NET_RX", 250_000),
        cause(CauseClass::RtThrottling, "fair server", u64::MAX),
        cause(CauseClass::RtThrottling, "", u64::MAX),
    ];
    let causes = Causes { table: Some(table), faults: None };
    let most = u64::MAX as f64 / 1e6;
    for (finding, lost_ms) in [
        ("nohz-full", Some(0.5)),
        ("device-interrupts", Some(2.75)),
        ("irqaffinity", Some(2.75)),
        ("packet-steering", Some(0.25)),
        ("damon", Some(7.5)),
        ("isolcpus", Some(7.5)),
        ("compaction", Some(0.0)),
        ("fair-server", Some(most)),
        ("rt-throttling", Some(most)),
        ("command-line", None),
    ] {
        assert_eq!(causes.lost_ms(finding), lost_ms, "{finding}");
    }
    assert_eq!(Causes::default().lost_ms("damon"), None);
}

#[test]
fn the_fix_of_a_cause_is_a_check_and_has_its_cost() {
    for row in CauseFix::all() {
        let mut findings: Vec<&str> = row.findings().collect();
        assert!(!findings.is_empty(), "{row:?}");
        findings.sort_unstable();
        assert!(findings.windows(2).all(|two| two[0] != two[1]), "{row:?}: one is there twice");
        // With and without a name, as many as a class has.
        for name in row.names.iter().copied().chain(row.names.is_empty().then_some("")) {
            let usual = cause(row.class, name, 1_000_000);
            // Among some rows, the policies of the threads choose.
            let is_usual = row.covers(&usual);
            let first = if is_usual { row.class.finding(name) } else { row.findings().next() };
            let made = Cause { finding: first.map(str::to_owned), ..usual };
            let causes = Causes { table: Some(vec![made]), faults: None };
            for finding in row.findings().chain(first) {
                assert!(checks::named(finding).is_some(), "{row:?}: no check is called {finding}");
                assert_eq!(causes.lost_ms(finding), Some(1.0), "{finding} of {:?} {name}", row.class);
            }
        }
    }
}

#[test]
fn the_policies_of_threads_choose_the_fix() {
    let class = CauseClass::Preempted;
    let lost = |policy: &str, is_worker_real_time: bool| {
        let finding = class.finding_of_thread("python3", Some(policy), is_worker_real_time);
        let cause = Cause { finding: finding.map(str::to_owned), ..cause(class, "python3", 1_000_000) };
        let causes = Causes { table: Some(vec![cause]), faults: None };
        let costs = |id: &&str| causes.lost_ms(id) == Some(1.0);
        (finding.unwrap(), ["isolcpus", "preemption-model", "rivals"].into_iter().filter(costs).collect())
    };
    let all: Vec<(&str, Vec<&str>)> =
        vec![lost("f:90", true), lost("d", false), lost("o:0", true), lost("o:-5", false)];
    // No kernel keeps a higher priority from the core, and a normal thread holds up a real-time one only
    // while it is in the kernel.
    let expected = [
        ("rivals", vec!["rivals"]),
        ("rivals", vec!["rivals"]),
        ("preemption-model", vec!["isolcpus", "preemption-model"]),
        ("isolcpus", vec!["isolcpus"]),
    ];
    assert_eq!(all, expected);
    // A thread whose name has a fix keeps it.
    assert_eq!(class.finding_of_thread("kdamond.0", Some("o:0"), true), Some("damon"));
    assert_eq!(class.finding_of_thread("ksoftirqd/1", Some("o:0"), true), class.finding("ksoftirqd/1"));
    assert_eq!(CauseClass::Irq.finding_of_thread("eth0", None, true), Some("device-interrupts"));
}

/// What a check says of a machine.
fn said(case: &MachineCase, id: &str) -> (State, String) {
    let report = examine(case);
    let finding = report.findings.iter().find(|finding| finding.id == id).unwrap();
    (finding.state, finding.evidence.clone())
}

#[test]
fn a_machine_booted_from_an_image_of_a_container_is_none() {
    let mut made = fixtures::bare_metal();
    made.and(".dockerenv x");
    let (_, text) = said(&case(&made, "2-3"), "container");
    assert!(text.contains("docker"), "{text}");
    made.and("proc/2/comm kthreadd");
    let (_, text) = said(&case(&made, "2-3"), "container");
    assert!(!text.contains("docker"), "{text}");
}

#[test]
fn a_file_system_that_is_not_mounted_is_said() {
    let mut made = fixtures::bare_metal();
    made.without("sys/kernel/debug").and("sys/kernel/debug/");
    let (state, text) = said(&case(&made, "2-3"), "fair-server");
    assert_eq!(state, State::Unknown);
    assert!(text.ends_with("debugfs is not mounted: mount -t debugfs none /sys/kernel/debug"), "{text}");
}

#[test]
fn workers_of_a_core_are_counted() {
    let mut crowded = pipeline(2, "f:80");
    crowded.workers = vec![crowded.workers[0].clone(); 5];
    let case = MachineCase { pipeline: Some(crowded), ..case(&fixtures::bare_metal(), "2-3") };
    let (_, text) = said(&case, "pipeline-cores");
    assert!(text.contains("core 2 has 5 real-time workers"), "{text}");
}

#[test]
fn options_that_the_kernel_does_not_know_are_critical() {
    let mut made = fixtures::bare_metal();
    let config: String = (0..50).map(|number| format!("CONFIG_OPTION_{number}=y\\n")).collect();
    made.and(&format!("boot/config-6.12.1-amd64 {config}# CONFIG_NO_HZ_FULL is not set"));
    let severity = |made: &Made, id: &str| {
        let report = examine(&case(made, "2-3"));
        let finding = report.findings.iter().find(|finding| finding.id == id).unwrap();
        (finding.severity, finding.evidence.clone())
    };
    let (mild, _) = severity(&made, "nohz-full");
    assert!(mild < Severity::Critical, "nobody trusts in it");
    made.and("proc/cmdline nohz_full=2-3 rcu_nocbs=2-3");
    for (id, option) in [("nohz-full", "nohz_full=2-3"), ("rcu-nocbs", "rcu_nocbs=2-3")] {
        let (severity, text) = severity(&made, id);
        assert_eq!(severity, Severity::Critical, "{text}");
        assert!(text.starts_with(&format!("{option} has no effect")), "{text}");
    }
}

#[test]
fn rcu_nocbs_beside_nohz_full_is_no_finding() {
    let mut made = fixtures::tuned();
    made.and("proc/cmdline isolcpus=2-3 nohz_full=2-3 rcu_nocbs=2-3\nsys/devices/system/cpu/nohz_full 2-3");
    assert_eq!(said(&case(&made, "2-3"), "rcu-nocbs").0, State::Good);
}

#[test]
fn the_fair_server_is_named_for_ticks_on_tickless_cores() {
    let mut made = fixtures::bare_metal();
    made.and("sys/devices/system/cpu/nohz_full 2-3");
    made.and("sys/kernel/debug/sched/fair_server/cpu{2,3}/runtime 50000000");
    made.and("sys/kernel/debug/sched/fair_server/cpu{2,3}/period 1000000000");
    let (_, text) = said(&case(&made, "2-3"), "fair-server");
    assert!(text.ends_with("the kernel ticks on 2-3, in spite of nohz_full="), "{text}");
}

#[test]
fn a_governor_that_the_board_lacks_is_not_proposed() {
    let mut made = fixtures::bare_metal();
    made.and("sys/devices/system/cpu/cpu{0-15}/cpufreq/scaling_available_governors powersave schedutil");
    let report = examine(&case(&made, "2-3"));
    let finding = report.findings.iter().find(|finding| finding.id == "governor").unwrap();
    assert!(
        finding.evidence.contains("lack the governor `performance`: there are powersave schedutil"),
        "{finding:?}"
    );
    let fixes = format!("{:?}", finding.fixes);
    assert!(!fixes.contains("scaling_governor"), "{fixes}");
    made.and("sys/devices/system/cpu/cpu{0-15}/cpufreq/scaling_available_governors powersave performance");
    let report = examine(&case(&made, "2-3"));
    let finding = report.findings.iter().find(|finding| finding.id == "governor").unwrap();
    assert!(format!("{:?}", finding.fixes).contains("scaling_governor"), "{finding:?}");
}
