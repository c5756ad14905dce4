//! Chunks that go from a source to a sink in one step: nobody can tell but by the time it takes. The same
//! chain of operators that are stepped one by one stands beside it.

mod chain;

use crate::watchdog::watched;
use chain::{Case, Does, Takes, graph};
use onbeat_runtime::{ClockKind, OnError, Options, Restart, RunError, Scheduler};
use onbeat_trace::record::Record;
use proptest::prelude::*;

/// What the two have to agree in.
#[derive(Debug, PartialEq)]
struct Told {
    taken: Vec<(u64, Option<i64>, f64)>,
    how: String,
    /// By operator: state, restarts.
    operators: Vec<String>,
    /// By edge: sent, received, dropped, unread.
    edges: Vec<String>,
    faults: Vec<String>,
    /// Messages that were followed.
    path: u64,
}

fn run(case: &Case, in_one_step: bool) -> (Told, Record) {
    let (graph, taken) = graph(case, in_one_step);
    let options = Options {
        clock: ClockKind::Manual,
        duration_ns: case.duration_ns,
        scheduler: Scheduler::Greedy,
        ..Options::default()
    };
    let (how, record) = match graph.run(&options) {
        Ok(record) => ("ended".to_string(), record),
        Err(RunError::Failed(record)) => (record.result.reason.clone(), *record),
        Err(other) => panic!("{other}"),
    };
    let told = Told {
        taken: taken.lock().unwrap().clone(),
        how,
        operators: record
            .operators
            .iter()
            .map(|it| format!("{} {:?} {}", it.name, it.state, it.restarts))
            .collect(),
        edges: record
            .edges
            .iter()
            .map(|it| format!("{} {} {} {}", it.sent, it.received, it.dropped, it.unread))
            .collect(),
        faults: record.faults.iter().map(|it| format!("{:?} {}", it.operator, it.text)).collect(),
        path: record.paths.iter().filter(|_| case.has_path).map(|it| it.latency.count).sum(),
    };
    assert!(record.edges.iter().all(|it| it.sent == it.received + it.unread), "{:?}", record.edges);
    let is_all_read = record.edges.iter().all(|it| it.unread == 0);
    (told.without_way_of_standing_still(is_all_read), record)
}

impl Told {
    /// What nobody takes may lie before a run, and would lie between its operators else; so a source comes to
    /// its own failures earlier or later.
    fn without_way_of_standing_still(mut self, is_all_read: bool) -> Self {
        if self.how.starts_with("dead-lock") {
            self.how.truncate("dead-lock".len());
            self.operators.clear();
            self.faults.clear();
            self.edges.clear();
        }
        if !is_all_read {
            self.edges.clear();
        }
        self.faults.sort();
        self
    }
}

fn source_steps() -> impl Strategy<Value = Vec<Does>> {
    let does = prop_oneof![
        40 => Just(Does::Sends),
        4 => Just(Does::SendsTwo),
        3 => Just(Does::Idles),
        6 => Just(Does::SendsAndRests),
        3 => Just(Does::Rests),
        1 => Just(Does::Fails),
        1 => Just(Does::FailsBehind),
        1 => Just(Does::Panics),
    ];
    let last = prop_oneof![Just(Does::Ends), Just(Does::SendsAndEnds), Just(Does::Sends)];
    (prop::collection::vec(does, 0..60), last).prop_map(|(mut steps, last)| {
        steps.push(last);
        steps
    })
}

fn sink_steps() -> impl Strategy<Value = Vec<Takes>> {
    let takes = prop_oneof![
        60 => Just(Takes::One),
        3 => Just(Takes::None),
        3 => Just(Takes::Two),
        3 => Just(Takes::OneAndMore),
        4 => Just(Takes::OneAndRests),
        1 => Just(Takes::Last),
        1 => Just(Takes::Fails),
        1 => Just(Takes::Panics),
        1 => Just(Takes::PanicsBehind),
    ];
    prop::collection::vec(takes, 0..60)
}

fn on_error() -> impl Strategy<Value = OnError> {
    prop_oneof![
        2 => Just(OnError::Stop),
        1 => Just(OnError::Isolate),
        3 => Just(OnError::Restart(Restart { delay_ns: 2_000, ..Restart::default() })),
    ]
}

fn cases() -> impl Strategy<Value = Case> {
    (
        source_steps(),
        sink_steps(),
        (prop::collection::vec(prop::option::weighted(0.1, 0u64..40), 1..5), prop_oneof![Just(0), 0..16u8]),
        prop::collection::vec(1usize..5, 6),
        prop::collection::vec(on_error(), 6),
        (any::<bool>(), any::<bool>(), any::<(bool, bool)>(), prop::option::weighted(0.3, 1u64..20_000)),
    )
        .prop_map(|(source, sink, (adds, afresh), capacities, on_error, how)| {
            let (has_company, has_path, by_hand, duration_ns) = how;
            Case {
                source,
                sink,
                adds,
                afresh,
                capacities,
                on_error,
                has_company,
                has_path,
                by_hand,
                duration_ns,
            }
        })
}

proptest! {
    #[test]
    fn as_if_they_were_stepped_one_by_one(case in cases()) {
        let (told, record) = run(&case, true);
        let (expected, plain) = run(&case, false);
        let leaves_some = case.sink.iter().any(|takes| matches!(takes, Takes::None | Takes::Last));
        let leaves_out = expected.operators.iter().any(|it| it.contains("Isolated"));
        let ends_in_between =
            case.duration_ns.is_some() || leaves_some || leaves_out || expected.how != "ended";
        if ends_in_between && !plain.faults.is_empty() {
            // While an operator restarts, a chain takes nothing more in, and single operators do. So the
            // number of messages in flight at the end differs.
            prop_assert!(told.taken.iter().zip(&expected.taken).all(|(it, plain)| it == plain));
            return Ok(());
        }
        prop_assert_eq!(&told, &expected);
        // Of a step that failed the run it is not said how many came before it.
        let has_ended = told.how == "ended" && !told.edges.is_empty();
        for (it, plain) in record.operators.iter().zip(&plain.operators) {
            // Some are stepped once more, to see that an input has ended.
            prop_assert!(!has_ended || it.steps.abs_diff(plain.steps) <= 2, "{}: {} and {}", it.name, it.steps, plain.steps);
            prop_assert_eq!(it.timed_steps, it.step.count);
        }
    }
}

#[test]
fn no_chunk_overtakes_one_that_was_left_lying() {
    let restart = OnError::Restart(Restart { delay_ns: 2_000, ..Restart::default() });
    for by_hand in [(false, true), (true, false), (true, true)] {
        let case = Case {
            source: vec![Does::FailsBehind, Does::Sends, Does::Ends],
            sink: vec![Takes::None, Takes::One],
            adds: vec![None],
            afresh: 0,
            capacities: vec![1; 6],
            on_error: vec![restart],
            has_company: false,
            has_path: false,
            by_hand,
            duration_ns: None,
        };
        let (told, _) = run(&case, true);
        let (expected, _) = run(&case, false);
        let order = |told: &Told| told.taken.iter().map(|(time_ns, ..)| *time_ns).collect::<Vec<_>>();
        assert_eq!(order(&told), order(&expected), "{by_hand:?}");
    }
}

#[test]
fn whichever_is_paused_all_rest() {
    watched(60, || {
        let ways = [(false, 0), (true, 0), (false, 2), (true, 1)];
        let cases = ["source", "add0", "sink"].into_iter().flat_map(|name| ways.map(|way| (name, way)));
        for (name, (by_hand, afresh)) in cases {
            let case = Case {
                source: vec![Does::Sends; 20_000_000],
                sink: Vec::new(),
                adds: vec![None; 2],
                afresh,
                capacities: vec![2; 3],
                on_error: Vec::new(),
                has_company: false,
                has_path: false,
                by_hand: (by_hand, by_hand),
                duration_ns: None,
            };
            let (graph, taken) = graph(&case, true);
            let plan = graph.plan(&Options::default()).unwrap();
            assert_eq!(plan.passes, [[0, 1, 2, 3]]);
            let run = graph.start(&Options::default()).unwrap();
            let count = || taken.lock().unwrap().len();
            while count() < 1_000 {
                std::thread::yield_now();
            }
            run.pause_operator(name).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
            let before = count();
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert_eq!(count(), before, "{name} rests, and nobody goes round it");
            run.resume_operator(name).unwrap();
            while count() < before + 1_000 {
                std::thread::yield_now();
            }
            run.stop();
            let record = run.wait().unwrap();
            let taken = count() as u64;
            assert!(
                record.edges.iter().all(|it| (it.sent, it.received) == (taken, taken)),
                "{:?}",
                record.edges
            );
            assert!(record.operators.iter().all(|it| (taken..taken + 8).contains(&it.steps)), "{record:?}");
        }
    });
}
