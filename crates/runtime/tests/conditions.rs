//! What operators may wait for, each condition in the ways in which it can and cannot hold, under every scheduler; and
//! conditions that can never hold, refused by the plan.

mod watchdog;

use onbeat_runtime::{
    Chunk, ClockKind, Condition, Context, Error, Event, Gate, Graph, Handle, Idle, Input, Operator, Options,
    Output, Overrun, Ports, RunError, Scheduler, Share, Step, Verdict, View, When,
};
use onbeat_trace::Record;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use watchdog::watched;

/// All of them, on the manual clock where time matters.
fn ways() -> Vec<Options> {
    let two =
        |scheduler, share, idle| Options { scheduler, share, idle, workers: Some(2), ..Options::default() };
    vec![
        Options::default(),
        two(Scheduler::Pinned, Share::Heavy, Idle::Park),
        two(Scheduler::Event, Share::Heavy, Idle::Park),
        two(Scheduler::Event, Share::Always, Idle::SpinFor(20_000)),
    ]
}

fn manual(options: &Options) -> Options {
    Options { clock: ClockKind::Manual, ..options.clone() }
}

/// What one step found: how many messages at each input, and when on the run's clock.
type Seen = Arc<Mutex<Vec<(Vec<usize>, u64)>>>;

/// Takes everything at each step, from two inputs, and notes how much it was.
struct Taker {
    a: Input<u64>,
    b: Input<u64>,
    seen: Seen,
}

impl Operator for Taker {
    fn ports(&mut self, p: &mut Ports) {
        p.input("a", &mut self.a);
        p.input("b", &mut self.b);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let mut count = |input: &mut Input<u64>| std::iter::from_fn(|| input.pop(cx)).count();
        let found = vec![count(&mut self.a), count(&mut self.b)];
        self.seen.lock().unwrap().push((found, cx.now_ns() - cx.start_ns()));
        Ok(Step::Wait)
    }
}

/// Sends numbers, each at its time in nanoseconds.
struct At {
    out: Output<u64>,
    times_ns: std::vec::IntoIter<u64>,
    next_ns: Option<u64>,
}

impl At {
    fn new(times_ns: &[u64]) -> Self {
        let mut times_ns = Vec::from(times_ns).into_iter();
        At { out: Output::default(), next_ns: times_ns.next(), times_ns }
    }
}

impl Operator for At {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(next_ns) = self.next_ns else { return Ok(Step::Done) };
        let due_ns = cx.start_ns() + next_ns;
        if cx.now_ns() < due_ns {
            return Ok(cx.until(due_ns));
        }
        self.out.push(cx, next_ns)?;
        self.next_ns = self.times_ns.next();
        Ok(if self.next_ns.is_some() { Step::Again } else { Step::Done })
    }
}

/// Two sources with their times, and the taker with its conditions.
fn two_inputs(a: &[u64], b: &[u64], when: impl FnOnce(&mut Graph, Handle<Taker>)) -> (Graph, Seen) {
    let seen = Seen::default();
    let mut graph = Graph::new("two inputs");
    let first = graph.add("first", At::new(a));
    let second = graph.add("second", At::new(b));
    let taker =
        graph.add("taker", Taker { a: Input::default(), b: Input::default(), seen: Arc::clone(&seen) });
    graph.connect(first, |s| &s.out, taker, |t| &t.a).capacity(8);
    graph.connect(second, |s| &s.out, taker, |t| &t.b).capacity(8);
    when(&mut graph, taker);
    (graph, seen)
}

/// Steps that found something.
fn found(seen: &Seen) -> Vec<(usize, usize, u64)> {
    let seen = seen.lock().unwrap();
    seen.iter().filter(|(found, _)| found.iter().sum::<usize>() > 0).map(|(f, t)| (f[0], f[1], *t)).collect()
}

#[test]
fn input_conditions() {
    type Case = (&'static str, fn() -> When, &'static [u64], &'static [u64], &'static [(usize, usize, u64)]);
    let table: [Case; 8] = [
        ("messages", || When::messages("a", 3), &[1, 2, 3, 4, 5], &[1], &[(3, 1, 3), (2, 0, 5)]),
        ("all", || When::all(["a", "b"]).least(2), &[1, 2, 9], &[5, 6], &[(2, 2, 6), (1, 0, 9)]),
        ("all of all", || When::all([]), &[1, 2], &[5, 6], &[(2, 1, 5), (0, 1, 6)]),
        ("any", || When::any(["a", "b"]), &[1, 7], &[4], &[(1, 0, 1), (0, 1, 4), (1, 0, 7)]),
        ("any of two", || When::any([]).least(2), &[1, 3], &[2, 4, 6], &[(2, 1, 3), (0, 2, 6)]),
        ("sum", || When::sum(["a", "b"], 3), &[1, 3, 5], &[2, 4], &[(2, 1, 3), (1, 1, 5)]),
        (
            "timeout",
            || When::all(["a", "b"]).timeout_ns(10),
            &[1, 15],
            &[25],
            &[(1, 0, 10), (1, 0, 20), (0, 1, 25)],
        ),
        ("any timeout", || When::any([]).least(3).timeout_ns(4), &[1, 9], &[2], &[(1, 1, 4), (1, 0, 9)]),
    ];
    watched(60, move || {
        for (what, when, a, b, expected) in &table {
            for options in ways().iter().map(manual) {
                let (graph, seen) = two_inputs(a, b, |graph, taker| graph.when(taker, when()));
                let record = graph.run(&options).unwrap();
                let name = format!("{what}, {:?} {:?}", options.scheduler, options.share);
                // With a timeout, steps without messages come as well; when one comes just as the time is up is not said.
                assert_eq!(found(&seen).len(), expected.len(), "{name}: {seen:?}");
                if !what.contains("timeout") {
                    assert_eq!(found(&seen), *expected, "{name}");
                }
                assert_eq!((record.result.lost, record.result.exit_status), (0, 0), "{name}");
                let sum =
                    |side: fn(&(usize, usize, u64)) -> usize| found(&seen).iter().map(side).sum::<usize>();
                assert_eq!((sum(|f| f.0), sum(|f| f.1)), (a.len(), b.len()), "{name}");
            }
        }
    });
}

#[test]
fn a_batch_is_full_or_late() {
    watched(60, || {
        for options in ways().iter().map(manual) {
            let when = |graph: &mut Graph, taker| {
                graph.when(taker, When::batch("a", 3, 100));
                graph.when(taker, When::any_of([When::messages("b", 1), When::messages("a", 1)]));
            };
            let (graph, seen) = two_inputs(&[1, 2, 3, 500, 550, 900], &[2000], when);
            graph.run(&options).unwrap();
            // Three at once; two that waited for 100 ns; one that the end of its source let through or its time.
            let found = found(&seen);
            assert_eq!(found[..2], [(3, 0, 3), (2, 0, 600)], "{:?}", options.scheduler);
            assert_eq!(found.iter().map(|step| step.0).sum::<usize>(), 6);
        }
    });
}

/// A sink that keeps what came and when.
fn keep(graph: &mut Graph, name: &str) -> Arc<Mutex<Vec<u64>>> {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&kept);
    graph.sink(name, move |x: u64| keep.lock().unwrap().push(x));
    kept
}

fn numbers(
    graph: &mut Graph,
    count: u64,
) -> Handle<onbeat_runtime::FnSource<u64, impl FnMut() -> Option<u64> + Send + use<>>> {
    let mut n = 0;
    graph.source("numbers", move || {
        n += 1;
        (n <= count).then_some(n)
    })
}

#[test]
fn a_count_ends_the_operator() {
    watched(60, || {
        for options in ways() {
            // A source, an operator in between, and one that would have more.
            let mut graph = Graph::new("count");
            let source = numbers(&mut graph, u64::MAX);
            let pass = graph.map("pass", |x: u64| x);
            let kept = keep(&mut graph, "end");
            graph.connect_names("numbers", "pass");
            graph.connect_names("pass", "end");
            graph.when(source, When::count(7));
            graph.when(pass, When::count(5));
            let record = graph.run(&options).unwrap();
            assert_eq!(*kept.lock().unwrap(), [1, 2, 3, 4, 5]);
            assert!(record.operators[0].steps <= 7);
            assert_eq!(record.result.exit_status, 0);
        }
    });
}

#[test]
fn a_gate_opens_and_closes() {
    watched(60, || {
        for options in ways() {
            let gate = Gate::new(false);
            let mut graph = Graph::new("gate");
            numbers(&mut graph, 3000);
            let pass = graph.map("pass", |x: u64| x);
            let kept = keep(&mut graph, "end");
            graph.connect_names("numbers", "pass");
            graph.connect_names("pass", "end");
            graph.when(pass, When::gate(&gate));
            let run = graph.start(&options).unwrap();
            std::thread::sleep(Duration::from_millis(5));
            assert_eq!(*kept.lock().unwrap(), [0u64; 0], "it is closed, and that is no dead-lock");
            for round in 0..200 {
                if round % 2 == 0 {
                    gate.open();
                } else {
                    gate.close();
                }
                std::thread::yield_now();
            }
            gate.open();
            let record = run.wait().unwrap();
            assert_eq!(kept.lock().unwrap().len(), 3000);
            assert_eq!(record.result.lost, 0);
        }
    });
}

#[test]
fn a_stop_opens_all_gates() {
    watched(60, || {
        for options in ways() {
            let gate = Gate::new(false);
            let mut graph = Graph::new("gate");
            numbers(&mut graph, u64::MAX);
            let pass = graph.map("pass", |x: u64| x);
            graph.connect_names("numbers", "pass");
            let kept = keep(&mut graph, "end");
            graph.connect_names("pass", "end");
            graph.when(pass, When::gate(&gate));
            let run = graph.start(&options).unwrap();
            std::thread::sleep(Duration::from_millis(5));
            run.stop();
            let record = run.wait().unwrap();
            assert_eq!(record.result.lost, 0);
            assert_eq!(kept.lock().unwrap().len(), record.edges[0].sent as usize);
        }
    });
}

#[test]
fn an_event_lets_one_step_pass() {
    watched(60, || {
        for options in ways() {
            let event = Event::new();
            let mut graph = Graph::new("event");
            let source = numbers(&mut graph, u64::MAX);
            let kept = keep(&mut graph, "end");
            graph.connect_names("numbers", "end");
            graph.when(source, When::event(&event));
            let run = graph.start(&options).unwrap();
            for round in 1..=20 {
                event.ring();
                while kept.lock().unwrap().len() < round {
                    std::thread::yield_now();
                }
            }
            std::thread::sleep(Duration::from_millis(2));
            assert_eq!(kept.lock().unwrap().len(), 20, "no ring, no step");
            event.ring();
            drop(event);
            // Nobody can ring it any more: the source is done.
            let record = run.wait().unwrap();
            assert_eq!((record.edges[0].received, record.result.exit_status), (21, 0));
        }
    });
}

/// Reads bytes from a pipe, as many as are there.
struct Pipe {
    reader: std::io::PipeReader,
    out: Output<u64>,
}

impl Operator for Pipe {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let mut bytes = [0; 16];
        // It would wait here for ever, were the condition wrong.
        let count = std::io::Read::read(&mut self.reader, &mut bytes)
            .map_err(|error| Error::new(error.to_string()))?;
        if count == 0 {
            return Ok(Step::Done);
        }
        self.out.push(cx, count as u64)?;
        Ok(Step::Again)
    }
}

#[test]
fn a_file_lets_its_reader_step() {
    watched(60, || {
        for options in ways() {
            let (reader, mut writer) = std::io::pipe().unwrap();
            let mut graph = Graph::new("pipe");
            let when = When::readable(reader.try_clone().unwrap());
            let pipe = graph.add("pipe", Pipe { reader, out: Output::default() });
            let kept = keep(&mut graph, "end");
            graph.connect_names("pipe", "end");
            graph.when(pipe, when);
            let run = graph.start(&options).unwrap();
            let mut sent = 0;
            for bytes in [1, 5, 16, 3] {
                std::io::Write::write_all(&mut writer, &vec![0; bytes]).unwrap();
                sent += bytes as u64;
                while kept.lock().unwrap().iter().sum::<u64>() < sent {
                    std::thread::yield_now();
                }
            }
            drop(writer);
            let record = run.wait().unwrap();
            assert_eq!(record.result.exit_status, 0);
            let watch = record.threads.iter().find(|thread| thread.name == "onbeat-events");
            assert!(watch.is_some(), "the thread is listed");
        }
    });
}

#[test]
fn a_period_spaces_steps() {
    watched(60, || {
        for options in ways().iter().map(manual) {
            let mut graph = Graph::new("period");
            let source = numbers(&mut graph, 5);
            let taker = Arc::new(Mutex::new(Vec::new()));
            let times = Arc::clone(&taker);
            graph.add("end", Times { input: Input::default(), times });
            graph.connect_names("numbers", "end");
            graph.when(source, When::period_ns(1000, Overrun::CatchUp));
            graph.run(&options).unwrap();
            // The message of tick k is due, and comes, k periods after the start.
            assert_eq!(
                *taker.lock().unwrap(),
                [(0, 0), (1000, 1000), (2000, 2000), (3000, 3000), (4000, 4000)]
            );
        }
    });
}

/// An hour and more in some milliseconds.
#[test]
fn a_clock_may_go_faster() {
    watched(60, || {
        for options in ways() {
            let options = Options { scale: 1e6, ..options };
            let mut graph = Graph::new("fast");
            let source = numbers(&mut graph, 5);
            let seen = Arc::new(Mutex::new(Vec::new()));
            graph.add("end", Times { input: Input::default(), times: Arc::clone(&seen) });
            graph.connect_names("numbers", "end");
            const PERIOD_NS: u64 = 1_000_000_000_000;
            graph.when(source, When::period_ns(PERIOD_NS, Overrun::CatchUp));
            let record = graph.run(&options).unwrap();
            for (tick, &(due_ns, at_ns)) in seen.lock().unwrap().iter().enumerate() {
                assert_eq!(due_ns, tick as u64 * PERIOD_NS);
                assert!(at_ns >= due_ns, "nothing comes before its time");
            }
            assert!(record.result.duration_ns >= 4 * PERIOD_NS);
        }
        for (scale, clock) in [
            (0.0, ClockKind::Real),
            (f64::NAN, ClockKind::Real),
            (2e6, ClockKind::Real),
            (2.0, ClockKind::Manual),
        ] {
            let mut graph = Graph::new("wrong");
            numbers(&mut graph, 1);
            graph.connect_names("numbers", "end");
            graph.sink("end", |_: u64| ());
            let error = graph.plan(&Options { scale, clock, ..Options::default() }).unwrap_err();
            assert!(error.to_string().contains("`scale`"), "{error}");
        }
    });
}

struct Times {
    input: Input<u64>,
    times: Arc<Mutex<Vec<(u64, u64)>>>,
}

impl Operator for Times {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.input.pop(cx).is_some() {
            let due_ns = cx.stamp().due_ns().expect("a period has due times") - cx.start_ns();
            self.times.lock().unwrap().push((due_ns, cx.now_ns() - cx.start_ns()));
        }
        Ok(Step::Wait)
    }
}

/// Sends as many as there is room for, which must be as many as it waits for.
struct Burst {
    input: Input<u64>,
    out: Output<u64>,
    bursts: Arc<Mutex<Vec<usize>>>,
}

impl Operator for Burst {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(x) = self.input.pop(cx) else { return Ok(Step::Wait) };
        self.bursts.lock().unwrap().push(self.out.room(cx));
        for _ in 0..3 {
            self.out.push(cx, x)?;
        }
        Ok(Step::Wait)
    }
}

#[test]
fn room_for_more_than_one() {
    watched(60, || {
        for options in ways() {
            let bursts = Arc::new(Mutex::new(Vec::new()));
            let mut graph = Graph::new("room");
            numbers(&mut graph, 500);
            let burst =
                Burst { input: Input::default(), out: Output::default(), bursts: Arc::clone(&bursts) };
            let burst = graph.add("burst", burst);
            let kept = keep(&mut graph, "end");
            graph.connect_names("numbers", "burst");
            graph.connect_names("burst", "end").capacity(4);
            graph.when(burst, When::room("out", 3));
            graph.run(&options).unwrap();
            assert!(bursts.lock().unwrap().iter().all(|&room| room >= 3));
            let expected: Vec<u64> = (1..=500).flat_map(|n| [n; 3]).collect();
            assert_eq!(*kept.lock().unwrap(), expected);
        }
    });
}

/// Fills three chunks per step.
struct Three {
    outs: [Output<Chunk<f32>>; 3],
    steps: u64,
    short: Arc<Mutex<u64>>,
}

impl Operator for Three {
    fn ports(&mut self, p: &mut Ports) {
        for (out, name) in self.outs.iter_mut().zip(["a", "b", "c"]) {
            p.output(name, out);
        }
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        for out in &mut self.outs {
            match out.chunk(cx) {
                Some(chunk) => out.push(cx, chunk)?,
                None => *self.short.lock().unwrap() += 1,
            }
        }
        self.steps += 1;
        Ok(if self.steps < 1000 { Step::Again } else { Step::Done })
    }
}

/// Keeps more chunks than it says, and gives them back by and by.
struct Miser {
    input: Input<Chunk<f32>>,
    kept: std::collections::VecDeque<Chunk<f32>>,
    most: usize,
    chunks: Arc<Mutex<u64>>,
}

impl Operator for Miser {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(chunk) = self.input.pop(cx) {
            *self.chunks.lock().unwrap() += 1;
            self.kept.push_back(chunk);
        }
        // Without this the store would run dry, and nobody could go on.
        if self.kept.len() > self.most {
            self.kept.pop_front();
        }
        Ok(Step::Wait)
    }
}

#[test]
fn chunk_room_waits_for_free_chunks() {
    watched(60, || {
        for options in ways() {
            let (short, chunks) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
            let mut graph = Graph::new("chunks");
            let three = Three { outs: Default::default(), steps: 0, short: Arc::clone(&short) };
            let three = graph.add("three", three);
            graph.when(three, When::chunk_room(3));
            for port in ["a", "b", "c"] {
                let (kept, chunks) = (Default::default(), Arc::clone(&chunks));
                let name = format!("miser_{port}");
                graph.add(name.clone(), Miser { input: Input::default(), kept, most: 5, chunks });
                graph.connect_names(format!("three.{port}"), name).capacity(2).quantum(1024);
            }
            graph.run(&options).unwrap();
            assert_eq!(
                (*short.lock().unwrap(), *chunks.lock().unwrap()),
                (0, 3000),
                "{:?}",
                options.scheduler
            );
        }
    });
}

/// Keeps to a rhythm that it is told from outside.
struct Own(Arc<Mutex<Option<onbeat_runtime::Waker>>>, u64);

impl Condition for Own {
    fn check(&mut self, view: &View<'_>) -> Result<Verdict, Error> {
        Ok(match view.messages("") {
            _ if view.inputs_are_waived() => Verdict::Holds,
            _ if view.steps() >= self.1 => Verdict::Waits,
            0 => Verdict::Waits,
            _ => Verdict::Holds,
        })
    }
    fn describe(&self) -> String {
        "a word from outside".to_string()
    }
    fn attach(&mut self, waker: &onbeat_runtime::Waker) {
        *self.0.lock().unwrap() = Some(waker.clone());
    }
}

#[test]
fn a_dead_lock_names_conditions() {
    watched(60, || {
        for options in ways() {
            let mut graph = Graph::new("own");
            numbers(&mut graph, 9);
            let pass = graph.map("pass", |x: u64| x);
            graph.connect_names("numbers", "pass");
            keep(&mut graph, "end");
            graph.connect_names("pass", "end");
            graph.when(pass, When::own(Own(Arc::default(), 2)));
            match graph.run(&options) {
                Err(RunError::Failed(record)) => {
                    let reason = record.result.reason;
                    assert!(reason.contains("pass waits for a word from outside"), "{reason}");
                }
                other => panic!("{other:?}"),
            }
        }
    });
}

#[test]
fn conditions_that_can_never_hold_are_refused() {
    let gate = Gate::new(true);
    let wrong: Vec<(When, &str)> = vec![
        (When::messages("a", 9), "it waits for 9 messages at a, where no more than 8 can lie"),
        (When::messages("a", 0), "it waits for 0 messages"),
        (When::messages("c", 1), "there is no input `c`"),
        (When::messages("", 1), "say which input it is about: a, b"),
        (When::sum([], 17), "it waits for 17 messages at a and b, where no more than 16 can lie"),
        (When::batch("b", 9, 1), "it waits for 9 messages at b"),
        (When::room("out", 1), "there is no output `out`"),
        (When::any_of([]), "`any_of` nothing never holds"),
        (When::any_of([When::gate(&gate), When::room("", 1)]), "`room` cannot be one of `any_of`"),
        (When::count(0), "a count of 0 steps"),
        (When::period_ns(0, Overrun::Skip), "a period of 0 ns"),
        (When::chunk_room(0), "0 free chunks are always there"),
        (When::chunk_room(1), "outputs with samples, and there are none"),
    ];
    for (when, text) in wrong {
        let (graph, _) = two_inputs(&[1], &[1], |graph, taker| graph.when(taker, when));
        let error = graph.plan(&Options::default()).unwrap_err().to_string();
        assert!(error.contains("a condition of operator `taker`") && error.contains(text), "{error}");
    }
}

/// Gates that open and close at random, and events, while everything runs: nothing is lost, and it ends.
#[test]
fn random_gates() {
    let seconds =
        std::env::var("ONBEAT_STRESS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let each = Duration::from_secs_f64(seconds / ways().len() as f64);
    watched(120 + seconds as u64, move || {
        for options in ways() {
            let record = gates_at_random(&options, each);
            for edge in &record.edges {
                assert_eq!(edge.sent, edge.received, "{edge:?}");
            }
            assert_eq!((record.result.lost, record.result.exit_status), (0, 0));
            assert!(record.edges[0].sent > 100);
        }
    });
}

fn gates_at_random(options: &Options, time: Duration) -> Record {
    let gates = [Gate::new(true), Gate::new(false)];
    let event = Event::new();
    let mut graph = Graph::new("gates");
    numbers(&mut graph, u64::MAX);
    let left = graph.map("left", |x: u64| x);
    let right = graph.map("right", |x: u64| x);
    let seen = Seen::default();
    let taker = Taker { a: Input::default(), b: Input::default(), seen: Arc::clone(&seen) };
    let taker = graph.add("taker", taker);
    let rung = graph.sink("rung", |_: u64| ());
    for (from, to) in [
        ("numbers", "left"),
        ("numbers", "right"),
        ("left", "taker.a"),
        ("right", "taker.b"),
        ("left", "rung"),
    ] {
        graph.connect_names(from, to);
    }
    graph.when(left, When::gate(&gates[0]));
    graph.when(right, When::gate(&gates[1]));
    graph.when(taker, When::any([]).least(2).timeout_ns(100_000));
    graph.when(rung, When::event(&event));
    let run = graph.start(options).unwrap();
    let end = std::time::Instant::now() + time;
    let mut random = 1u32;
    // A machine that has other things to do gets as long as it needs.
    while std::time::Instant::now() < end || seen.lock().unwrap().len() < 1000 {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        match random % 5 {
            0 | 1 => gates[random as usize / 8 % 2].open(),
            2 => gates[random as usize / 8 % 2].close(),
            3 => event.ring(),
            _ => std::thread::yield_now(),
        }
    }
    run.stop();
    run.wait().unwrap()
}
