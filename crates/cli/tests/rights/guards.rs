//! Before a run, settings that would hang the machine are refused, and likely mistakes are pointed out.

use super::harness::Place;
use super::{place, shown};
use std::fs;
use std::process::Command;

/// Hides texts that are specific to this machine.
fn planned(place: &Place, arguments: &[&str]) -> String {
    let mut all = vec!["run", "pools.toml"];
    all.extend(arguments);
    let isolated = onbeat_os::CoreSet::isolated();
    let named =
        if isolated.is_empty() { "none is isolated".to_string() } else { format!("isolated are {isolated}") };
    shown(&place.onbeat(&all)).replace(&named, "ISOLATED")
}

fn is_isolated(core: usize) -> bool {
    onbeat_os::CoreSet::isolated().contains(core)
}

#[test]
fn who_spins_for_ever_needs_a_core_of_its_own() {
    if is_isolated(0) {
        return eprintln!("skipped: core 0 is isolated");
    }
    let place = place();
    let on_core = ["--set", "pool.radio.policy=f:5", "--set", "pool.radio.cores=[0]"];
    let mut all = String::new();
    for (idle, policy) in [("spin", "f:5"), ("spin", "r:5")] {
        let idle = format!("pool.radio.idle={idle}");
        let policy = format!("pool.radio.policy={policy}");
        all += &planned(&place, &["--set", &idle, "--set", &policy]);
        all += &planned(&place, &["--set", &idle, "--set", &policy, "--set", "pool.radio.cores=[0]"]);
    }
    insta::assert_snapshot!("spins_for_ever", all);
    // It is run where somebody insists (three messages do not take long), where it sleeps after a while, and
    // without priority.
    for (idle, more) in [
        ("spin", &["--force"][..]),
        ("spin:20us", &[]),
        ("park", &[]),
        ("spin", &["--set", "pool.radio.policy=o:0"]),
    ] {
        let idle = format!("pool.radio.idle={idle}");
        let arguments: Vec<&str> = ["--set", &idle].iter().chain(&on_core).chain(more).copied().collect();
        let said = planned(&place, &arguments);
        assert!(said.starts_with("exit status Some(0)"), "{idle} {more:?}: {said}");
    }
}

#[test]
fn the_first_core_is_pointed_out() {
    let place = place();
    let note =
        "note: pool `radio` runs under f:5 on core 0, where most machines handle interrupts and keep house";
    for (policy, core, is_noted) in [("f:5", "0", true), ("f:5", "1", false), ("o:0", "0", false)] {
        if core == "1" && !onbeat_os::CoreSet::online().expect("cores").contains(1) {
            eprintln!("skipped: it has one core");
            continue;
        }
        let (policy, core) = (format!("pool.radio.policy={policy}"), format!("pool.radio.cores=[{core}]"));
        let said = planned(&place, &["--set", &policy, "--set", &core]);
        assert!(said.starts_with("exit status Some(0)"), "{said}");
        assert_eq!(said.contains(note), is_noted, "{policy} {core}: {said}");
    }
}

/// For kernels with prioritised interrupt threads, as with `threadirqs`.
#[test]
fn a_priority_above_an_interrupt_is_pointed_out() {
    let place = place();
    let above = place.onbeat(&["run", "pools.toml", "--set", "pool.radio.policy=f:98"]).stderr;
    let threads = onbeat_os::interrupts::threads();
    let below: Vec<_> = threads.iter().filter(|thread| (1..98).contains(&thread.priority)).collect();
    assert_eq!(above.contains("above that of interrupt threads on its cores"), !below.is_empty(), "{above}");
    match below.first() {
        Some(thread) => assert!(above.contains(&thread.name), "{above}"),
        None => eprintln!("skipped: with such a thread: this kernel has none with a real-time priority"),
    }
}

#[test]
fn locked_pages_that_move_are_pointed_out() {
    let place = place();
    let moves =
        fs::read_to_string("/proc/sys/vm/compact_unevictable_allowed").is_ok_and(|text| text.trim() != "0");
    for (policy, is_noted) in [("f:5", moves), ("o:0", false)] {
        let policy = format!("pool.radio.policy={policy}");
        let said = place.onbeat(&["run", "pools.toml", "--set", &policy, "--set", "lock_memory=true"]).stderr;
        assert_eq!(said.contains("note: the kernel may move locked pages"), is_noted, "{said}");
    }
}

#[test]
fn a_plan_says_all_this_without_a_run() {
    let place = place();
    let setting = ["--set", "pool.radio.policy=f:5", "--set", "pool.radio.cores=[0]"];
    let plan = Command::new(env!("CARGO_BIN_EXE_onbeat"))
        .args(["plan", "pools.toml"])
        .args(setting)
        .current_dir(place.path(""))
        .output()
        .expect("the command");
    let said = String::from_utf8_lossy(&plan.stdout);
    assert!(said.contains("on core 0, where most machines"), "{plan:?}");
}
