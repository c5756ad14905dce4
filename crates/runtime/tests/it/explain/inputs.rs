//! Messages that wait for one of another source.

use onbeat_runtime::explain::{Case, EdgeFacts, OperatorFacts, ThreadFacts, explain, sentence};
use onbeat_trace::{CauseClass, Span};

const TICK: u32 = 0;
const SETPOINT: u32 = 1;
const CONTROLLER: u32 = 2;

/// A step of a message that was due, with its begin and its end.
fn step(operator: u32, sequence: u64, (due_ns, start_ns, end_ns): (u64, u64, u64)) -> Span {
    let (source, held_by) = (u32::from(operator == SETPOINT), Span::NONE);
    Span { operator, source, sequence, due_ns, start_ns, end_ns, held_by, ..Span::default() }
}

fn operators() -> [OperatorFacts; 3] {
    [("tick", 10), ("setpoint", 10), ("controller", 100)].map(|(name, usual_ns)| OperatorFacts {
        name: name.into(),
        is_source: name != "controller",
        usual_ns: Some(usual_ns),
        ..OperatorFacts::default()
    })
}

/// The parts of a tick that is due at 1000 and waits in a controller for a set-point, which comes at 9000.
fn parts(setpoint_due_ns: u64) -> Vec<(CauseClass, String, u64)> {
    let spans = [
        step(TICK, 0, (1000, 1000, 1010)),
        step(SETPOINT, 0, (setpoint_due_ns, 9000, 9010)),
        step(CONTROLLER, 0, (1000, 9010, 9110)),
    ];
    let operators = operators();
    let case = Case {
        due_ns: 1000,
        end_ns: 9110,
        limit_ns: 120,
        way: &spans[1..],
        spans: &spans,
        operators: &operators,
        threads: &[ThreadFacts { tid: 50, core: Some(1), ..ThreadFacts::default() }],
        is_complete: true,
        ..Case::default()
    };
    let parts = explain(&case);
    let text = sentence("tick → controller", 0, 7990, &parts);
    let says_so = text.contains("it waited 8 µs for a message of setpoint, which was due that much later");
    assert_eq!(says_so, setpoint_due_ns == 9000, "{text}");
    parts.into_iter().map(|part| (part.class, part.name, part.took_ns)).collect()
}

#[test]
fn a_message_that_was_due_later_is_named() {
    assert_eq!(parts(9000), [(CauseClass::InputLate, "setpoint".to_string(), 8000)]);
    // Part of the wait is that of a source that was late.
    let parts = parts(4000);
    assert_eq!(parts[0].1, "setpoint");
    assert!(parts.contains(&(CauseClass::InputLate, "setpoint".to_string(), 3000)), "{parts:?}");
    assert!(parts.iter().any(|(class, ..)| *class != CauseClass::InputLate), "{parts:?}");
}

/// The parts of a tick that is due at 1000 and is held back by the full edge to the controller, which takes
/// at 9010, when the set-point has come. `is_awaited`: whether the controller waits for set-points.
fn held_parts(setpoint_due_ns: u64, is_awaited: bool) -> Vec<(CauseClass, String, u64)> {
    let spans = [
        step(TICK, 0, (500, 500, 510)),
        step(SETPOINT, 0, (setpoint_due_ns, 9000, 9010)),
        step(CONTROLLER, 0, (500, 9010, 9020)),
        Span { held_by: 0, held_ns: 1000, ..step(TICK, 1, (1000, 9020, 9030)) },
        step(CONTROLLER, 1, (1000, 9030, 9130)),
    ];
    let operators = operators();
    let edges = [
        EdgeFacts {
            name: "tick.out → controller.value".into(),
            from: TICK,
            to: CONTROLLER,
            is_awaited: true,
        },
        EdgeFacts {
            name: "setpoint.out → controller.to".into(), from: SETPOINT, to: CONTROLLER, is_awaited
        },
    ];
    let case = Case {
        due_ns: 1000,
        end_ns: 9130,
        limit_ns: 120,
        way: &spans[3..],
        spans: &spans,
        operators: &operators,
        edges: &edges,
        threads: &[ThreadFacts { tid: 50, core: Some(1), ..ThreadFacts::default() }],
        is_complete: true,
        ..Case::default()
    };
    explain(&case).into_iter().map(|part| (part.class, part.name, part.took_ns)).collect()
}

#[test]
fn a_full_edge_is_followed_to_the_source_that_was_due_later() {
    let due_later = (CauseClass::InputLate, "setpoint".to_string());
    let of = |parts: &[(CauseClass, String, u64)], (class, name): &(CauseClass, String)| {
        let of_cause = parts.iter().filter(|part| part.0 == *class && (name.is_empty() || part.1 == *name));
        of_cause.map(|part| part.2).sum::<u64>()
    };
    let full = (CauseClass::DownstreamFull, String::new());
    let parts = held_parts(9000, true);
    assert_eq!((of(&parts, &due_later), of(&parts, &full)), (8000, 10), "{parts:?}");
    // A source that was late itself is the cause only until it was due.
    let parts = held_parts(4000, true);
    assert_eq!((of(&parts, &due_later), of(&parts, &full)), (3000, 5010), "{parts:?}");
    // Nobody waited for it: then the consumer did not take for reasons of its own.
    let parts = held_parts(9000, false);
    assert_eq!((of(&parts, &due_later), of(&parts, &full)), (0, 8010), "{parts:?}");
}
