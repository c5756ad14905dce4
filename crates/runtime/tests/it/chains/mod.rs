//! Neighbours that change chunks in place run as one step, with the same results as single steps.

mod ends;

use crate::watchdog::watched;
use onbeat_runtime::{
    Change, Chunk, Context, Error, Graph, InPlace, Input, Map, OnError, Operator, Options, Output, Ports,
    Restart, Scheduler, Step, Value, tried,
};
use onbeat_trace::record::OperatorState;
use std::sync::{Arc, Mutex};

const CHUNKS: u64 = 500;
const SAMPLES: u64 = 100;

/// Sends chunks whose samples are their own numbers.
struct Numbers {
    out: Output<Chunk<f64>>,
    sent: u64,
    limit: u64,
}

impl Operator for Numbers {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.sent == self.limit {
            return Ok(Step::Done);
        }
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        chunk.truncate(SAMPLES as usize);
        let begin = self.sent * SAMPLES;
        for (sample, n) in chunk.edit_unique().expect("it is new").iter_mut().zip(begin..) {
            *sample = n as f64;
        }
        chunk.info_mut().start = begin;
        cx.set_time(self.sent, None);
        self.sent += 1;
        self.out.push(cx, chunk)?;
        Ok(Step::Again)
    }
}

#[derive(Clone)]
struct Add {
    x: f64,
    /// Panics in the call that begins with this sample.
    panics_at: Option<f64>,
}

impl Map for Add {
    type Sample = f64;
    fn map(&mut self, samples: &mut [f64]) {
        assert!(self.panics_at.is_none_or(|at| samples[0].floor() != at), "not this one");
        samples.iter_mut().for_each(|sample| *sample += self.x);
    }
    fn settable(&self) -> &'static [&'static str] {
        &["x"]
    }
    fn change(&self, name: &str, value: &Value) -> Result<Change<Self>, Error> {
        let x: f64 = value.read(name)?;
        tried(self, move |it| {
            it.x = x;
            Ok(())
        })
    }
}

type Taken = Arc<Mutex<Vec<(u64, Vec<f64>)>>>;

struct Sink {
    input: Input<Chunk<f64>>,
    taken: Taken,
    slow: bool,
}

impl Operator for Sink {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(chunk) = self.input.pop(cx) {
            if self.slow {
                std::thread::sleep(std::time::Duration::from_micros(20));
            }
            self.taken.lock().unwrap().push((cx.stamp().time_ns, chunk.to_vec()));
        }
        Ok(Step::Wait)
    }
}

/// A source of numbers, one operator per entry of `adds`, and a sink.
fn chain(adds: Vec<Add>, slow: bool, limit: u64) -> (Graph, Taken) {
    let mut graph = Graph::new("chain");
    let taken = Taken::default();
    graph.add("numbers", Numbers { out: Output::default(), sent: 0, limit });
    let mut last = "numbers".to_string();
    for (at, add) in adds.into_iter().enumerate() {
        let name = format!("add{at}");
        graph.add(&name, InPlace::new(add));
        let _ = graph.connect_names(format!("{last}.out"), format!("{name}.in")).capacity(1 + at % 3);
        last = name;
    }
    graph.add("sink", Sink { input: Input::default(), taken: Arc::clone(&taken), slow });
    graph.connect_names(format!("{last}.out"), "sink.in");
    (graph, taken)
}

fn quarter() -> Add {
    Add { x: 0.25, panics_at: None }
}

fn names(plan: &onbeat_runtime::Plan) -> Vec<Vec<&str>> {
    plan.runs
        .iter()
        .map(|run| run.iter().map(|&number| plan.operators[number].name.as_str()).collect())
        .collect()
}

#[test]
fn the_plan_says_what_is_one_step() {
    let (mut graph, _) = chain(vec![quarter(); 4], false, 1);
    assert_eq!(names(&graph.plan(&Options::default()).unwrap()), [["add0", "add1", "add2", "add3"]]);
    graph.path("numbers", "add1", None);
    assert_eq!(names(&graph.plan(&Options::default()).unwrap()), [["add2", "add3"]]);
    let pinned = Options { scheduler: Scheduler::Pinned, workers: Some(2), ..Options::default() };
    let (graph, _) = chain(vec![quarter(); 5], false, 1);
    let plan = graph.plan(&pinned).unwrap();
    assert_eq!(names(&plan), [vec!["add0", "add1", "add2"], vec!["add3", "add4"]]);
    assert!(plan.to_string().contains("as one step: add3, add4"), "{plan}");
}

#[test]
fn what_comes_out_is_the_same_and_so_is_the_record() {
    watched(60, || {
        for (workers, slow) in [(1, false), (2, false), (2, true)] {
            for adds in [2, 3, 7] {
                let (graph, taken) = chain(vec![quarter(); adds], slow, CHUNKS);
                let scheduler = if workers == 1 { Scheduler::Greedy } else { Scheduler::Pinned };
                let options = Options { scheduler, workers: Some(workers), ..Options::default() };
                let record = graph.run(&options).unwrap();
                let taken = taken.lock().unwrap();
                for (n, (time_ns, samples)) in taken.iter().enumerate() {
                    assert_eq!(*time_ns, n as u64);
                    let first = (n as u64 * SAMPLES) as f64 + 0.25 * adds as f64;
                    assert!(samples.iter().enumerate().all(|(at, sample)| *sample == first + at as f64));
                }
                assert_eq!(taken.len() as u64, CHUNKS);
                for edge in &record.edges {
                    assert_eq!((edge.sent, edge.received), (CHUNKS, CHUNKS), "{edge:?}");
                }
                for operator in &record.operators {
                    assert!(
                        (CHUNKS..CHUNKS + 3).contains(&operator.steps) || operator.name == "sink",
                        "{operator:?}"
                    );
                    assert!(operator.timed_steps > 0 && operator.step.count == operator.timed_steps);
                    assert_eq!(operator.state, OperatorState::Done);
                }
            }
        }
    });
}

#[test]
fn one_that_fails_is_named() {
    watched(60, || {
        for at in [0u64, 1, 250] {
            let mut adds = vec![quarter(); 4];
            adds[2].panics_at = Some((at * SAMPLES) as f64);
            let (graph, taken) = chain(adds, false, CHUNKS);
            let error = graph.run(&Options::default()).unwrap_err();
            assert!(error.to_string().starts_with("operator `add2`: panicked: not this one"), "{error}");
            assert_eq!(taken.lock().unwrap().len() as u64, at);
            let onbeat_runtime::RunError::Failed(record) = error else { panic!("it failed") };
            let steps: Vec<u64> = record.operators[1..5].iter().map(|operator| operator.steps).collect();
            assert_eq!(steps, [at + 1, at + 1, at + 1, at], "those up to it were stepped");
        }
    });
}

#[test]
fn a_parameter_changes_at_its_sample() {
    watched(60, || {
        let (graph, taken) = chain(vec![quarter(); 3], false, u64::MAX);
        let run = graph.start(&Options::default()).unwrap();
        while taken.lock().unwrap().len() < 10 {
            std::thread::yield_now();
        }
        run.pause_operator("add1").unwrap();
        let before = taken.lock().unwrap().len();
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(taken.lock().unwrap().len(), before, "all three rest");
        let at = (before as u64 + 100) * SAMPLES + 7;
        run.set("add1", "x", 1000.25, Some(at)).unwrap();
        run.resume_operator("add1").unwrap();
        while taken.lock().unwrap().len() < before + 200 {
            std::thread::yield_now();
        }
        run.stop();
        run.wait().unwrap();
        let taken = taken.lock().unwrap();
        for (n, sample) in taken.iter().flat_map(|(_, samples)| samples).enumerate() {
            let more = if n as u64 >= at { 1000.0 } else { 0.0 };
            assert_eq!(*sample, n as f64 + 0.75 + more, "sample {n}");
        }
    });
}

#[test]
fn what_a_panic_took_counts_for_the_samples_that_follow() {
    watched(60, || {
        // With the very first chunk.
        let mut graph = Graph::new("first");
        let numbers = graph.add("numbers", Numbers { out: Output::default(), sent: 0, limit: u64::MAX });
        let add = graph.add("add", InPlace::new(Add { panics_at: Some(0.0), ..quarter() }));
        let taken = Taken::default();
        let sink = Sink { input: Input::default(), taken: Arc::clone(&taken), slow: false };
        let sink = graph.add("sink", sink);
        let _ = graph.connect(numbers, |o| &o.out, add, |o| &o.input);
        let _ = graph.connect(add, |o| &o.out, sink, |o| &o.input);
        graph.on_error(add, OnError::Restart(Restart { delay_ns: 1_000, ..Restart::default() }));
        let run = graph.start(&Options::default()).unwrap();
        let count = || taken.lock().unwrap().len();
        while count() < 10 {
            std::thread::yield_now();
        }
        run.pause_operator("add").unwrap();
        let before = count();
        let at = (before as u64 + 100) * SAMPLES + 7;
        run.set("add", "x", 1000.25, Some(at)).unwrap();
        run.resume_operator("add").unwrap();
        while count() < before + 200 {
            std::thread::yield_now();
        }
        run.stop();
        run.wait().unwrap();
        let taken = taken.lock().unwrap();
        for (n, sample) in (SAMPLES..).zip(taken.iter().flat_map(|(_, samples)| samples)) {
            let more = if n >= at { 1000.0 } else { 0.0 };
            assert_eq!(*sample, n as f64 + 0.25 + more, "sample {n}");
        }
    });
}

#[test]
fn one_that_is_left_out_ends_the_others() {
    watched(60, || {
        let mut graph = Graph::new("isolated");
        let numbers = graph.add("numbers", Numbers { out: Output::default(), sent: 0, limit: CHUNKS });
        let taken = Taken::default();
        let first = graph.add("first", InPlace::new(quarter()));
        let fails = Add { panics_at: Some((100 * SAMPLES) as f64), ..quarter() };
        let second = graph.add("second", InPlace::new(fails.clone()));
        let third = graph.add("third", InPlace::new(quarter()));
        let sink =
            graph.add("sink", Sink { input: Input::default(), taken: Arc::clone(&taken), slow: false });
        let _ = graph.connect(numbers, |o| &o.out, first, |o| &o.input);
        let _ = graph.connect(first, |o| &o.out, second, |o| &o.input);
        let _ = graph.connect(second, |o| &o.out, third, |o| &o.input);
        let _ = graph.connect(third, |o| &o.out, sink, |o| &o.input);
        graph.on_error(second, OnError::Isolate);
        let record = graph.run(&Options::default()).unwrap();
        assert_eq!(taken.lock().unwrap().len(), 100);
        assert_eq!(record.operators[2].state, OperatorState::Isolated);

        let mut graph = Graph::new("restarted");
        let numbers = graph.add("numbers", Numbers { out: Output::default(), sent: 0, limit: CHUNKS });
        let taken = Taken::default();
        let first = graph.add("first", InPlace::new(quarter()));
        let second = graph.add("second", InPlace::new(fails));
        let third = graph.add("third", InPlace::new(quarter()));
        let sink =
            graph.add("sink", Sink { input: Input::default(), taken: Arc::clone(&taken), slow: false });
        let _ = graph.connect(numbers, |o| &o.out, first, |o| &o.input);
        let _ = graph.connect(first, |o| &o.out, second, |o| &o.input);
        let _ = graph.connect(second, |o| &o.out, third, |o| &o.input);
        let _ = graph.connect(third, |o| &o.out, sink, |o| &o.input);
        graph.on_error(second, OnError::Restart(Restart::default()));
        let record = graph.run(&Options::default()).unwrap();
        assert_eq!(taken.lock().unwrap().len() as u64, CHUNKS - 1, "what it had taken is lost");
        assert_eq!(record.operators[2].restarts, 1);
        assert_eq!(record.result.lost, 0);
    });
}
