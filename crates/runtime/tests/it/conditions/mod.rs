//! What operators may wait for, each condition in the ways in which it can and cannot hold, under every
//! scheduler; and conditions that can never hold, refused by the plan.

mod descriptors;
mod inputs;
mod never;
mod outside;
mod room;
mod time;
mod waits;

use onbeat_runtime::{
    ClockKind, Context, Error, Graph, Handle, Idle, Input, Operator, Options, Output, Ports, Scheduler,
    Share, Step,
};
use std::sync::{Arc, Mutex};

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
