//! Chunks that go from a source to a sink in one step: nobody can tell but by the time it takes. The same chain of operators that are
//! stepped one by one stands beside it.

mod watchdog;

use onbeat_runtime::{
    Chunk, ClockKind, Context, Error, Graph, InPlace, Input, Map, OnError, Operator, Options, Output, Ports,
    Restart, RunError, Scheduler, Step,
};
use onbeat_trace::record::Record;
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use watchdog::watched;

const SAMPLES: usize = 16;

/// What a step of the source does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Sends,
    /// In one step if there is room for both.
    SendsTwo,
    /// Says that it goes on, and sends nothing.
    Idles,
    /// Sends, and is to be stepped again a microsecond later.
    SendsAndRests,
    Rests,
    /// Sends its last one.
    SendsAndEnds,
    Ends,
    Fails,
    FailsBehind,
    Panics,
}

/// What a step of the sink does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    One,
    /// Leaves it lying.
    None,
    Two,
    /// And wants another step, message or not.
    OneAndMore,
    OneAndRests,
    Last,
    Fails,
    Panics,
}

struct Source {
    out: Output<Chunk<f64>>,
    script: Vec<Does>,
    at: usize,
    sent: u64,
    /// The first of two is sent.
    is_half: bool,
    /// Its messages have due times, so each of them is followed.
    is_due: bool,
}

impl Source {
    fn send(&mut self, cx: &mut Context, with_key: bool) -> Result<bool, Error> {
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(false) };
        chunk.truncate(SAMPLES);
        chunk.edit_unique().expect("it is new").fill(self.sent as f64);
        cx.set_time(self.sent, self.is_due.then_some(cx.now_ns()));
        if with_key || self.sent.is_multiple_of(5) {
            cx.set_key("n", self.sent as i64);
        }
        self.sent += 1;
        self.out.push(cx, chunk)?;
        Ok(true)
    }
}

impl Operator for Source {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(&does) = self.script.get(self.at) else { return Ok(Step::Done) };
        let soon_ns = cx.now_ns() + 1_000;
        let sends = !matches!(does, Does::Idles | Does::Rests | Does::Ends | Does::Fails | Does::Panics);
        if sends && !self.send(cx, does == Does::SendsTwo)? {
            return Ok(Step::Wait);
        }
        if does == Does::SendsTwo && !self.is_half && (self.out.room(cx) == 0 || !self.send(cx, true)?) {
            self.is_half = true;
            return Ok(Step::Again);
        }
        self.is_half = false;
        self.at += 1;
        match does {
            Does::Sends | Does::SendsTwo | Does::Idles => Ok(Step::Again),
            Does::SendsAndRests | Does::Rests => Ok(cx.until(soon_ns)),
            Does::SendsAndEnds | Does::Ends => Ok(Step::Done),
            Does::Fails | Does::FailsBehind => Err(Error::new("the source has had enough")),
            Does::Panics => panic!("the source fell over"),
        }
    }
    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        Ok(())
    }
}

type Taken = Arc<Mutex<Vec<(u64, Option<i64>, f64)>>>;

struct Sink {
    input: Input<Chunk<f64>>,
    script: Vec<Takes>,
    at: usize,
    taken: Taken,
}

impl Sink {
    fn take(&mut self, cx: &mut Context) {
        let Some(chunk) = self.input.pop(cx) else { return };
        assert!(chunk.iter().all(|sample| *sample == chunk[0]));
        let key = cx.key("n").map(|n| n.to_string().parse().unwrap());
        self.taken.lock().unwrap().push((cx.stamp().time_ns, key, chunk[0]));
    }
}

impl Operator for Sink {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input).holds(2);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.input.is_empty(cx) {
            return Ok(Step::Wait);
        }
        let takes = self.script.get(self.at).copied().unwrap_or(Takes::One);
        self.at += 1;
        match takes {
            Takes::None => return Ok(Step::Wait),
            Takes::Fails => return Err(Error::new("the sink is full")),
            Takes::Panics => panic!("the sink fell over"),
            Takes::Two => self.take(cx),
            _ => {}
        }
        self.take(cx);
        let soon_ns = cx.now_ns() + 700;
        Ok(match takes {
            Takes::OneAndMore => Step::Again,
            Takes::OneAndRests => cx.until(soon_ns),
            Takes::Last => Step::Done,
            _ => Step::Wait,
        })
    }
    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        Ok(())
    }
}

/// Adds a quarter, and panics at the message with this number.
#[derive(Clone)]
struct Add(Option<u64>);

impl Add {
    fn add(&self, samples: &mut [f64]) {
        assert!(self.0.is_none_or(|at| samples[0].floor() as u64 != at), "not this one");
        samples.iter_mut().for_each(|sample| *sample += 0.25);
    }
}

impl Map for Add {
    type Sample = f64;
    fn map(&mut self, samples: &mut [f64]) {
        self.add(samples);
    }
}

/// The same, stepped by itself.
struct Alone {
    input: Input<Chunk<f64>>,
    out: Output<Chunk<f64>>,
    add: Add,
}

impl Operator for Alone {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(mut chunk) = self.input.pop(cx) {
            self.add.add(chunk.edit(cx)?);
            self.out.push(cx, chunk)?;
        }
        Ok(Step::Wait)
    }
    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        Ok(())
    }
}

#[derive(Debug, Clone)]
struct Case {
    source: Vec<Does>,
    sink: Vec<Takes>,
    /// By operator that adds: where it panics.
    adds: Vec<Option<u64>>,
    capacities: Vec<usize>,
    /// By operator, and what is done when it fails.
    on_error: Vec<OnError>,
    /// Another source and sink on the same worker.
    has_company: bool,
    has_path: bool,
    /// After which the sources are told to end.
    duration_ns: Option<u64>,
}

fn graph(case: &Case, in_one_step: bool) -> (Graph, Taken) {
    let mut graph = Graph::new("chain");
    let taken = Taken::default();
    if case.has_company {
        let script = vec![Does::Sends; 20];
        graph.add(
            "other",
            Source { out: Output::default(), script, at: 0, sent: 0, is_half: false, is_due: false },
        );
        let taken = Taken::default();
        graph.add("others", Sink { input: Input::default(), script: Vec::new(), at: 0, taken });
        graph.connect_names("other.out", "others.in");
    }
    let on_error = |at: usize| case.on_error.get(at).copied().unwrap_or_default();
    let mut names = vec!["source".to_string()];
    let (script, is_due) = (case.source.clone(), case.has_path);
    let source = Source { out: Output::default(), script, at: 0, sent: 0, is_half: false, is_due };
    let source = graph.add("source", source);
    graph.on_error(source, on_error(0));
    for (at, panics_at) in case.adds.iter().enumerate() {
        let (name, add) = (format!("add{at}"), Add(*panics_at));
        if in_one_step {
            let add = graph.add(&name, InPlace::new(add));
            graph.on_error(add, on_error(1 + at));
        } else {
            let add = graph.add(&name, Alone { input: Input::default(), out: Output::default(), add });
            graph.on_error(add, on_error(1 + at));
        }
        names.push(name);
    }
    let script = case.sink.clone();
    let sink = Sink { input: Input::default(), script, at: 0, taken: Arc::clone(&taken) };
    let sink = graph.add("sink", sink);
    graph.on_error(sink, on_error(1 + case.adds.len()));
    names.push("sink".to_string());
    // What the sink leaves lying does not fill the edge to it: before one that is full a run takes nothing in, and operators by
    // themselves do.
    let left = case.sink.iter().filter(|takes| **takes == Takes::None).count();
    let last = case.adds.len();
    for (at, (pair, capacity)) in names.windows(2).zip(&case.capacities).enumerate() {
        let capacity = if at == last { capacity + left } else { *capacity };
        let _ = graph.connect_names(format!("{}.out", pair[0]), format!("{}.in", pair[1])).capacity(capacity);
    }
    if case.has_path {
        graph.path("source", "sink", None);
    }
    (graph, taken)
}

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
    /// What nobody takes may lie before a run, and would lie between its operators else; so a source comes to its own failures earlier
    /// or later.
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
        prop::collection::vec(prop::option::weighted(0.1, 0u64..40), 1..5),
        prop::collection::vec(1usize..5, 6),
        prop::collection::vec(on_error(), 6),
        (any::<bool>(), any::<bool>(), prop::option::weighted(0.3, 1u64..20_000)),
    )
        .prop_map(|(source, sink, adds, capacities, on_error, (has_company, has_path, duration_ns))| {
            Case { source, sink, adds, capacities, on_error, has_company, has_path, duration_ns }
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
            // While one of them is started anew, a run takes nothing more in, and operators by themselves do: there are more or fewer
            // on their way when all of it ends.
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
fn whichever_is_paused_all_rest() {
    watched(60, || {
        for name in ["source", "add0", "sink"] {
            let case = Case {
                source: vec![Does::Sends; 20_000_000],
                sink: Vec::new(),
                adds: vec![None; 2],
                capacities: vec![2; 3],
                on_error: Vec::new(),
                has_company: false,
                has_path: false,
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
