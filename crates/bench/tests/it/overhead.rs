//! The bench itself, with counts so small that its figures mean nothing: presence, form and notes of the
//! figures.

use crate::stops::StopsAfter;
use crate::watchdog::watched;
use onbeat_bench::overhead::{
    self, Method, Overhead, OverheadCase, OverheadPeer, OverheadSettings, SchedulerVariant,
};
use onbeat_bench::{BenchError, Unwatched};
use onbeat_runtime::Idle;
use serde_json::Value;

fn tiny() -> OverheadSettings {
    OverheadSettings { iterations: Some(40), warm_up: 3, runs: 2, ..OverheadSettings::default() }
}

fn run(settings: OverheadSettings) -> Overhead {
    watched(move || overhead::run(&settings, &mut Unwatched)).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_case_runs_under_every_scheduler_or_the_notes_say_why_not() {
    for idle in [Idle::Park, Idle::Spin, Idle::SpinFor(20_000)] {
        let found = run(OverheadSettings { idle, ..tiny() });
        for recipe in ["greedy", "event1", "event2", "event2_shared", "pinned2"] {
            let reason = format!("{recipe}: not available: ");
            let refused = found.result.notes.iter().any(|note| note.starts_with(&reason));
            assert!(!(refused && matches!(recipe, "greedy" | "pinned2")), "{:?}", found.result.notes);
            for case in OverheadCase::ALL {
                for kind in
                    ["steady", "process", "start", "stop", "switches.voluntary", "switches.involuntary"]
                {
                    let name = format!("{kind}.{recipe}.{}", case.name());
                    let figure = found.result.figures.get(&name);
                    assert_eq!(figure.is_none(), refused, "{name}: {:?}", found.result.notes);
                    let Some(figure) = figure else { continue };
                    let is_time = !kind.starts_with("switches");
                    assert!(
                        figure.runs == 2 && figure.min <= figure.value && figure.value <= figure.max,
                        "{name}"
                    );
                    assert!(figure.min >= 0.0 && (figure.min > 0.0 || !is_time), "{name}: {figure:?}");
                    assert_eq!(figure.unit, if is_time { "ns" } else { "1/iteration" });
                    assert_eq!(found.result.raw[&name].as_array().map(Vec::len), Some(2), "{name}");
                }
            }
        }
        for case in OverheadCase::ALL {
            for threads in ["one_thread", "two_threads"] {
                let name = format!("bare.{threads}.{}", case.name());
                assert!(found.result.value(&name).is_some_and(|ns| ns >= 0.0), "{name}");
            }
        }
    }
}

#[test]
fn the_break_even_follows_from_what_a_step_costs() {
    let found = run(OverheadSettings {
        cases: vec![OverheadCase::Chain4],
        schedulers: vec![SchedulerVariant::Greedy, SchedulerVariant::Pinned],
        ..tiny()
    });
    // Under `pinned` two steps follow one another, and the other two run in parallel.
    for (recipe, steps) in [("greedy", 4.0), ("pinned2", 2.0)] {
        let of = |name: &str| found.result.value(name).unwrap_or_else(|| panic!("{name}"));
        let step_ns = of(&format!("steady.{recipe}.chain_4")) / steps;
        for (share, times) in [("p50", 1.0), ("p5", 19.0), ("p1", 99.0)] {
            let operator_ns = of(&format!("break_even.{recipe}.chain_4.{share}"));
            assert!((operator_ns / (step_ns * times) - 1.0).abs() < 1e-9, "{recipe} {share}: {operator_ns}");
        }
    }
    for share in ["p50", "p5", "p1"] {
        let name = format!("loaded.greedy.chain_4.{share}");
        assert!(found.result.value(&format!("{name}.operator")).is_some_and(|ns| ns > 0.0), "{name}");
        assert!(found.result.value(&format!("{name}.share")).is_some_and(|share| share <= 100.0), "{name}");
    }
}

#[test]
fn a_method_gives_its_own_figures_only() {
    for (method, there, not_there) in
        [(Method::Process, "process", "steady"), (Method::Steady, "steady", "process")]
    {
        let found = run(OverheadSettings {
            method,
            cases: vec![OverheadCase::TxRx],
            schedulers: vec![SchedulerVariant::Greedy],
            ..tiny()
        });
        assert!(found.result.value(&format!("{there}.greedy.tx_rx")).is_some());
        assert!(found.result.value(&format!("{not_there}.greedy.tx_rx")).is_none());
        assert!(found.result.value("start.greedy.tx_rx").is_some(), "known in both");
    }
}

/// Replaces values by their types, and removes the machine's own facts.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), shape(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) => items.first().map(shape).into_iter().collect::<Vec<_>>().into(),
        Value::Number(_) => "number".into(),
        Value::String(_) => "text".into(),
        Value::Bool(_) => "yes or no".into(),
        Value::Null => "nothing".into(),
    }
}

/// A change here changes the format that others parse.
#[test]
fn the_form_of_the_json_is_pinned() {
    let settings = OverheadSettings {
        cases: vec![OverheadCase::TxRx],
        schedulers: vec![SchedulerVariant::Greedy, SchedulerVariant::Pinned],
        workers: vec![2],
        ..tiny()
    };
    let mut found = run(settings).result;
    // Figures that depend on the machine.
    found.machine = onbeat_trace::Machine::default();
    found.parameters.insert("placed".to_owned(), "which cores".into());
    found.notes = vec!["one".to_owned()];
    for figures in ["futex.greedy.tx_rx", "futex.pinned2.tx_rx", "machine.others"] {
        found.figures.remove(figures);
        found.raw.shift_remove(figures);
    }
    let mut form = shape(&serde_json::to_value(&found).expect("plain data"));
    form["machine"] = "the facts of the machine".into();
    insta::assert_snapshot!(format!("{form:#}"));
}

#[test]
fn the_picture_is_well_formed_and_has_every_scheduler() {
    let svg = run(tiny()).to_svg();
    let document = roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{error}\n{svg}"));
    let texts: Vec<&str> = document
        .descendants()
        .filter(|node| node.has_tag_name("text"))
        .filter_map(|node| node.text())
        .collect();
    for text in
        ["greedy", "pinned2", "Tx → Rx", "ns per iteration (logarithmic)", "the same without an engine"]
    {
        assert!(texts.contains(&text), "{text}: {texts:?}");
    }
}

#[test]
fn a_stop_leaves_what_was_measured_until_then() {
    let stop_after = |looks: usize| {
        let settings = OverheadSettings {
            cases: vec![OverheadCase::TxRx],
            schedulers: vec![SchedulerVariant::Greedy],
            runs: 50,
            ..tiny()
        };
        watched(move || overhead::run(&settings, &mut StopsAfter::looks(looks)))
    };
    for looks in [0, 1, 2] {
        assert!(matches!(stop_after(looks), Err(BenchError::Stopped)), "{looks}");
    }
    // One poll before counting, then two in each round: the limit and the case.
    let found = stop_after(1 + 2 * 7).expect("seven rounds");
    assert_eq!(found.result.figures["steady.greedy.tx_rx"].runs, 7);
    assert!(
        found.result.notes.iter().any(|note| note == "stopped in round 8 of 50"),
        "{:?}",
        found.result.notes
    );
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let cases: [(OverheadSettings, &str); 5] = [
        (OverheadSettings { iterations: Some(0), ..tiny() }, "1 or more"),
        (OverheadSettings { warm_up: 0, ..tiny() }, "1 or more"),
        (OverheadSettings { runs: 0, ..tiny() }, "1 or more"),
        (OverheadSettings { cases: vec![], ..tiny() }, "nothing can be measured"),
        (
            OverheadSettings { schedulers: vec![SchedulerVariant::Pinned], cores: vec![0], ..tiny() },
            "--cores names 1",
        ),
    ];
    for (settings, text) in cases {
        let error = watched(move || overhead::run(&settings, &mut Unwatched)).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn a_peer_that_is_not_there_is_said_with_how_to_get_it() {
    for (python, why) in
        [("/no/such/python", "No such file"), ("/bin/false", "the process ended without output")]
    {
        let peer = Some(OverheadPeer { python: python.into(), iterations: 10 });
        let found = run(OverheadSettings {
            peer,
            cases: vec![OverheadCase::TxRx],
            schedulers: vec![SchedulerVariant::Greedy],
            ..tiny()
        });
        let note = found.result.notes.iter().find(|note| note.starts_with("holoscan: not available: "));
        let note = note.unwrap_or_else(|| panic!("{:?}", found.result.notes));
        assert!(note.contains(why) && note.contains("pip install") && note.contains(python), "{note}");
        assert!(found.result.value("steady.greedy.tx_rx").is_some(), "the rest is still measured");
    }
}
