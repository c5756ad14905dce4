//! The pipeline: a beat, an operator that works, an end. What the operator does beside is the case's.

use onbeat::operators::Timer;
use onbeat::prelude::*;
use onbeat::trace::Evidence;
use onbeat::{Graph, Options, Overrun, Pool, Record, Scheduler, Ticker};
use onbeat_os::clock::monotonic_ns;
use onbeat_os::policy::PolicyFlags;
use onbeat_os::{CoreSet, Policy, clock, thread};
use onbeat_queue::sync::atomic::{AtomicBool, Ordering};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub const PERIOD_NS: u64 = 10_000_000;
/// Number of messages, so large that one wrong verdict is less than the allowed 5 %.
pub const BEATS: u64 = 500;
/// Computing time of the operator per message.
pub const WORK_NS: u64 = 300_000;

/// Stretches of time that were noted while it ran.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<Vec<Range<u64>>>>);

impl Log {
    fn list(&self) -> MutexGuard<'_, Vec<Range<u64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how long something took.
    pub fn note<T>(&self, what: impl FnOnce() -> T) -> T {
        let begin_ns = monotonic_ns();
        let result = what();
        self.span(begin_ns..monotonic_ns());
        result
    }

    pub fn all(&self) -> Vec<Range<u64>> {
        self.list().clone()
    }

    /// Notes that something was there.
    pub fn span(&self, at: Range<u64>) {
        self.list().push(at);
    }

    /// Notes that something took the `ns` until now.
    pub fn last(&self, ns: u64) {
        let now_ns = monotonic_ns();
        self.span(now_ns - ns..now_ns);
    }

    /// Notes that something begins then, of which the end is not known.
    pub fn ring(&self, at_ns: u64) {
        self.span(at_ns..at_ns);
    }

    /// What begins within a message's time has all of it that is beyond `usual_ns`.
    pub fn rung(&self, record: &Record, start_ns: u64, usual_ns: u64) -> Vec<Range<u64>> {
        let begins = self.all();
        let one = |miss: &onbeat::trace::record::Miss| {
            let end_ns = start_ns + miss.time_ns;
            let due_ns = end_ns - miss.value_ns;
            // When a message is due is what the case has guessed, and it may have been early.
            let near = due_ns - PERIOD_NS / 4..end_ns;
            let at_ns = begins.iter().map(|at| at.start).find(|ns| near.contains(ns))?;
            let ns = miss.value_ns.saturating_sub(usual_ns);
            Some(at_ns.min(end_ns - ns)..at_ns.min(end_ns - ns) + ns)
        };
        record.misses.iter().filter_map(one).collect()
    }
}

pub fn busy(ns: u64) {
    let begin_ns = monotonic_ns();
    while monotonic_ns() < begin_ns + ns {
        std::hint::spin_loop();
    }
}

/// Runs rounds of arithmetic. An interrupted thread needs longer.
pub fn calculate(rounds: u64) {
    (0..rounds)
        .fold(1u64, |x, _| std::hint::black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1)));
}

/// Returns the number of rounds that take about `ns` on this machine.
pub fn rounds(ns: u64) -> u64 {
    const TRIED: u64 = 100_000;
    let took_ns = (0..20).map(|_| {
        let begin_ns = monotonic_ns();
        calculate(TRIED);
        monotonic_ns() - begin_ns
    });
    TRIED * ns / took_ns.min().unwrap_or(1).max(1)
}

/// Computes for `ns` of its own time, without interruptions.
pub fn compute(ns: u64) {
    let begin_ns = clock::thread_cpu_ns();
    while clock::thread_cpu_ns() < begin_ns + ns {
        std::hint::spin_loop();
    }
}

/// Returns for how long the thread computed: what a hypervisor takes meanwhile does not count.
pub fn computed_ns(what: impl FnOnce()) -> u64 {
    let begin_ns = clock::thread_cpu_ns();
    what();
    clock::thread_cpu_ns() - begin_ns
}

/// Returns a pipeline whose messages must reach its end within `limit_ns`.
pub fn graph(limit_ns: u64, mut work: impl FnMut(u64) + Send + 'static) -> Graph {
    let rounds = rounds(WORK_NS);
    graph_of(limit_ns, move |number| {
        calculate(rounds);
        work(number);
    })
}

/// As [`graph`], with nothing that the operator does beside.
pub fn graph_of(limit_ns: u64, mut work: impl FnMut(u64) + Send + 'static) -> Graph {
    let mut graph = Graph::new("injected");
    let beat = graph.add("beat", Timer::new(PERIOD_NS, Some(BEATS), Overrun::Skip).expect("a period"));
    let work = graph.map("work", move |number: u64| {
        work(number);
        number
    });
    let end = graph.sink("end", |_: u64| ());
    graph.connect(beat, |b| &b.out, work, |w| &w.input);
    graph.connect(work, |w| &w.out, end, |e| &e.input);
    graph.deadline(end, limit_ns);
    graph
}

pub fn options(policy: &str) -> Options {
    let pool = Pool::new("worker")
        .cores([1])
        .policy(policy.parse().expect("a policy"))
        .operators(["beat", "work", "end"]);
    Options {
        scheduler: Scheduler::Custom,
        pools: vec![pool],
        house_keeping: vec![0],
        lock_memory: false,
        pace: Some(onbeat::Pace::Real),
        ..Options::default()
    }
}

/// Runs the pipeline. Returns the record and the start time.
pub fn run(graph: Graph, options: &Options) -> (Record, u64) {
    run_with(graph, options, |evidence| evidence)
}

pub fn run_with(
    graph: Graph,
    options: &Options,
    change: impl FnOnce(Box<dyn Evidence>) -> Box<dyn Evidence>,
) -> (Record, u64) {
    let plan = graph.plan(options).expect("a plan");
    let evidence = change(onbeat::evidence(&plan));
    let run = graph.start_explained(plan, evidence).expect("it begins");
    let handle = run.handle();
    let record = run.wait().expect("a good end");
    let start_ns = handle.start_ns().expect("it has begun");
    for setting in record.obtained.iter().filter(|setting| setting.asked != setting.obtained) {
        eprintln!("  {}: asked {}, got {}", setting.what, setting.asked, setting.obtained);
    }
    (record, start_ns)
}

/// Thread on a core that repeats an action until it is dropped.
pub struct Injector {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Injector {
    pub fn start(name: &str, core: usize, policy: &str, mut what: impl FnMut() + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let policy: Policy = policy.parse().expect("a policy");
        let stopped = Arc::clone(&stop);
        let main = move || {
            thread::set_cores(&CoreSet::from_cores([core]).expect("a core")).expect("on that core");
            policy.set(PolicyFlags::default()).expect("that policy");
            while !stopped.load(Ordering::Relaxed) {
                what();
            }
        };
        Injector { stop, thread: Some(thread::spawn(name, main).expect("a thread")) }
    }
}

impl Drop for Injector {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub fn every(ns: u64) {
    clock::sleep_until(monotonic_ns() + ns);
}

/// A beat that puts out what somebody makes, who may take time for it.
pub struct Beat<M: Message, F> {
    pub out: Output<M>,
    ticker: Ticker,
    put: F,
}

impl<M: Message, F: FnMut(&mut Output<M>, &mut Context, u64) -> Result<(), Error> + Send + 'static>
    Beat<M, F>
{
    /// `put` pushes one message for each number.
    pub fn new(put: F) -> Self {
        let ticker = Ticker::new(PERIOD_NS, Overrun::Skip).expect("a period");
        Beat { out: Output::default(), ticker, put }
    }
}

impl<M: Message, F: FnMut(&mut Output<M>, &mut Context, u64) -> Result<(), Error> + Send + 'static> Operator
    for Beat<M, F>
{
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.ticker.number() >= BEATS {
            return Ok(Step::Done);
        }
        if let Some(wait) = self.ticker.wait(cx)? {
            return Ok(wait);
        }
        (self.put)(&mut self.out, cx, self.ticker.number())?;
        self.ticker.next(cx);
        Ok(Step::Again)
    }
}
