//! Actions on late messages, and the findings of the doctor from their record.

use super::harness::Place;
use super::host::machine;
use onbeat::Record;
use onbeat::trace::cause::{Cause, CauseClass};
use std::collections::BTreeSet;
use std::fs;

#[test]
fn actions_are_done_and_end_the_run() {
    let place = Place::new();
    let shell = "shell,command=echo late, twice > said";
    let answer = place.onbeat(&["run", "late.toml", "--on-miss", shell, "--on-miss", "trace,file=trace.txt"]);
    assert_eq!(answer.status, Some(2), "{answer:#?}");
    assert!(answer.stdout.contains("which ended the run (--on-miss)"), "{}", answer.stdout);
    assert_eq!(fs::read_to_string(place.path("said")).expect("the command ran"), "late, twice\n");
    let trace = fs::read_to_string(place.path("trace.txt")).expect("a trace");
    assert!(trace.starts_with("# message ") && trace.contains("step of end"), "{trace}");
    let text = fs::read_to_string(place.path("out/always-late.record.json")).expect("a record");
    assert_eq!(Record::from_json(&text).expect("a record").result.exit_status, 2);
}

#[test]
fn a_run_goes_on_where_that_is_said() {
    let answer = Place::new().onbeat(&["run", "late.toml", "--on-miss", "continue"]);
    assert_eq!(answer.status, Some(0), "{answer:#?}");
    assert!(answer.stdout.contains("5 messages later than the limit"), "{}", answer.stdout);
    assert!(!answer.stdout.contains("later than the deadline"), "{}", answer.stdout);
}

#[test]
fn late_messages_and_late_steps_are_apart() {
    let arguments = ["run", "late.toml", "--on-miss", "continue", "--set", "end.deadline=1 ns"];
    let answer = Place::new().onbeat(&arguments);
    assert_eq!(answer.status, Some(0), "{answer:#?}");
    for line in ["5 messages later than the limit", "5 steps later than the deadline"] {
        assert!(answer.stdout.contains(line), "{line}: {}", answer.stdout);
    }
}

#[test]
fn actions_that_cannot_be_are_refused() {
    for (arguments, part) in [
        (&["run", "count.toml", "--on-miss", "continue"][..], "no message of this pipeline can be late"),
        (
            &["run", "late.toml", "--on-miss", "continue", "--set", "explain=off"],
            "no message of this pipeline",
        ),
        (&["run", "late.toml", "--on-miss", "panic"], "write trace[,file=FILE]"),
        (&["run", "late.toml", "--on-miss", "signal,num=9,pid=1"], "the PID above 1"),
        (&["run", "late.toml", "--on-miss", "trace,file=no/x.txt"], "no/x.txt: cannot be written"),
        (&["run", "late.toml", "--on-miss", "shell,command=exit 3"], "`exit 3`: exit status: 3"),
    ] {
        let answer = Place::new().onbeat(arguments);
        assert_eq!(answer.status, Some(1), "{arguments:?}: {answer:#?}");
        assert!(answer.stderr.contains(part), "{arguments:?}: {answer:#?}");
    }
}

/// All classes of causes, and names with their own findings.
const CAUSES: &[(CauseClass, &str)] = &[
    (CauseClass::Preempted, "kdamond.0"),
    (CauseClass::Preempted, "kcompactd0"),
    (CauseClass::Preempted, "ksmd"),
    (CauseClass::Preempted, "kswapd0"),
    (CauseClass::Preempted, "kworker/1:2"),
    (CauseClass::Preempted, "cc1"),
    (CauseClass::RunQueueWait, ""),
    (CauseClass::Migration, "core 0 → 1"),
    (CauseClass::Irq, "local_timer"),
    (CauseClass::Irq, "eth0"),
    (CauseClass::Softirq, "RCU"),
    (CauseClass::Softirq, "NET_RX"),
    (CauseClass::Nmi, ""),
    (CauseClass::PageFault, "demod"),
    (CauseClass::RtThrottling, "fair server"),
    (CauseClass::RtThrottling, "rt-throttle"),
    (CauseClass::TimerLate, ""),
    (CauseClass::SocketWait, "rx"),
    (CauseClass::Hardware, ""),
];

#[test]
fn every_cause_leads_to_a_check_of_the_doctor() {
    let listed = Place::new().onbeat(&["doctor", "--list"]).stdout;
    let words: BTreeSet<&str> = listed.split_whitespace().collect();
    let lost: Vec<_> = CAUSES
        .iter()
        .filter(|(class, name)| class.finding(name).is_none_or(|finding| !words.contains(finding)))
        .collect();
    assert!(lost.is_empty(), "{lost:?} in\n{listed}");
}

#[test]
fn the_record_of_a_run_ranks_what_the_doctor_finds() {
    let place = Place::new();
    place.onbeat(&["run", "late.toml", "--record", "run.json", "-q"]);
    let mut record =
        Record::from_json(&fs::read_to_string(place.path("run.json")).expect("it")).expect("one");
    assert!(
        record.explained.as_ref().is_some_and(|explained| explained.misses == 5),
        "{:?}",
        record.explained
    );
    let lost_ns: u64 = record.causes.iter().map(|cause| cause.lost_ns).sum();
    assert_eq!(lost_ns, record.misses.iter().map(|miss| miss.late_ns).sum::<u64>(), "{:?}", record.causes);
    // What the machine did to this run nobody can know: two causes are put in.
    let cause = |class: CauseClass, name: &str, lost_ns| Cause {
        class,
        name: name.to_owned(),
        misses: 1,
        lost_ns,
        finding: class.finding(name).map(str::to_owned),
    };
    record.causes =
        vec![cause(CauseClass::Irq, "eth0", 2_500_000), cause(CauseClass::Preempted, "cc1", 40_250_000)];
    record.write(place.path("run.json")).expect("a file");
    let root = machine(&place);
    let answer = place.onbeat(&["doctor", "--root", root.to_str().expect("a path"), "--record", "run.json"]);
    let text = answer.stdout.replace("\n          ", " ");
    let place_of = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part} in {text}"));
    assert!(
        place_of("[added 40.2 ms of lateness in this run]")
            < place_of("[added 2.5 ms of lateness in this run]"),
        "{text}"
    );
}
