//! The pipeline: a beat, an operator that works, an end. What the operator does beside is the case's.

use crate::score::{Expected, Score, score};
use crate::{alone, can};
use onbeat::operators::Timer;
use onbeat::prelude::*;
use onbeat::trace::{CauseClass, Evidence, KernelEvent, OffCpu};
use onbeat::{Graph, Idle, Options, Overrun, Pool, Record, Scheduler, Ticker};
use onbeat_os::clock::monotonic_ns;
use onbeat_os::policy::PolicyFlags;
use onbeat_os::{CoreSet, Policy, clock, thread};
use onbeat_queue::sync::atomic::{AtomicBool, Ordering};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub const PERIOD_NS: u64 = 10_000_000;
/// Enough that one wrong verdict is not already more than the twentieth that may be wrong.
pub const BEATS: u64 = 500;
/// What the operator does at each message.
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
        self.list().push(begin_ns..monotonic_ns());
        result
    }

    pub fn all(&self) -> Vec<Range<u64>> {
        self.list().clone()
    }
}

pub fn busy(ns: u64) {
    let begin_ns = monotonic_ns();
    while monotonic_ns() < begin_ns + ns {
        std::hint::spin_loop();
    }
}

/// So many rounds of arithmetic: who is interrupted needs longer.
pub fn calculate(rounds: u64) {
    (0..rounds)
        .fold(1u64, |x, _| std::hint::black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1)));
}

/// How many take about `ns` here.
fn rounds(ns: u64) -> u64 {
    const TRIED: u64 = 100_000;
    let took_ns = (0..20).map(|_| {
        let begin_ns = monotonic_ns();
        calculate(TRIED);
        monotonic_ns() - begin_ns
    });
    TRIED * ns / took_ns.min().unwrap_or(1).max(1)
}

/// Has a core for `ns` of its own, whoever interrupts.
pub fn compute(ns: u64) {
    let begin_ns = clock::thread_cpu_ns();
    while clock::thread_cpu_ns() < begin_ns + ns {
        std::hint::spin_loop();
    }
}

/// A pipeline of which every message is to be at its end within `limit_ns`.
pub fn graph(limit_ns: u64, mut work: impl FnMut(u64) + Send + 'static) -> Graph {
    let mut graph = Graph::new("injected");
    let beat = graph.add("beat", Timer::new(PERIOD_NS, Some(BEATS), Overrun::Skip).expect("a period"));
    let rounds = rounds(WORK_NS);
    let work = graph.map("work", move |number: u64| {
        calculate(rounds);
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

/// Runs it, and says when it began.
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

/// A thread on a core that does something again and again, until it is dropped.
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

const THREAD: Expected = Expected { class: CauseClass::Preempted, name: "injector" };

/// A FIFO thread that takes the core for 3 ms now and then.
fn with_a_thread(change: impl FnOnce(Box<dyn Evidence>) -> Box<dyn Evidence>) -> Score {
    let log = Log::default();
    let noted = log.clone();
    let injector = Injector::start("injector", 1, "f:50", move || {
        every(33_000_000);
        noted.note(|| busy(3_000_000));
    });
    let (record, start_ns) = run_with(graph(1_000_000, |_| ()), &options("f:20"), change);
    drop(injector);
    score("a thread", &record, start_ns, &log.all(), THREAD)
}

#[test]
fn a_thread_on_the_core() {
    alone(|| {
        if can() {
            with_a_thread(|evidence| evidence).is_good();
        }
    });
}

/// Answers with what was at another time.
struct Elsewhen(Box<dyn Evidence>);

const SHIFT_NS: u64 = 123_456_789;

impl Evidence for Elsewhen {
    fn source(&self) -> &str {
        self.0.source()
    }
    fn events(&mut self, cpu: u32, window: Range<u64>) -> Vec<KernelEvent> {
        let events = self.0.events(cpu, window.start - SHIFT_NS..window.end - SHIFT_NS).into_iter();
        events.map(|event| KernelEvent { start_ns: event.start_ns + SHIFT_NS, ..event }).collect()
    }
    fn follow(&mut self, tids: &[i32]) {
        self.0.follow(tids);
    }
    fn off_cpu(&mut self, window: Range<u64>) -> Vec<OffCpu> {
        let all = self.0.off_cpu(window.start - SHIFT_NS..window.end - SHIFT_NS).into_iter();
        let later = |ns: u64| ns.saturating_add(SHIFT_NS);
        all.map(|off| OffCpu {
            out_ns: later(off.out_ns),
            runnable_ns: later(off.runnable_ns),
            in_ns: later(off.in_ns),
            ..off
        })
        .collect()
    }
    fn drain(&mut self) {
        self.0.drain();
    }
}

#[test]
fn what_the_kernel_did_at_another_time_explains_nothing() {
    alone(|| {
        if !can() {
            return;
        }
        let score = with_a_thread(|evidence| Box::new(Elsewhen(evidence)));
        // The thread has the core for a twelfth of the time.
        assert!(score.misses >= 5 && score.named * 100 <= score.misses * 30, "{score:?}");
    });
}

#[test]
fn an_operator_over_its_budget() {
    alone(|| {
        if !can() {
            return;
        }
        let log = Log::default();
        let noted = log.clone();
        let graph = graph(1_000_000, move |number| {
            if number % 8 == 7 {
                noted.note(|| busy(2_000_000));
            }
        });
        let (record, start_ns) = run(graph, &options("f:20"));
        let expected = Expected { class: CauseClass::OwnCompute, name: "work" };
        score("an operator", &record, start_ns, &log.all(), expected).is_good();
    });
}

#[test]
fn page_faults() {
    alone(|| {
        if !can() {
            return;
        }
        const PAGES: usize = 400;
        let log = Log::default();
        let noted = log.clone();
        let mut kept: Vec<Vec<u8>> = Vec::new();
        let graph = graph(600_000, move |number| {
            if number % 12 != 11 {
                return;
            }
            let mut memory = vec![0u8; PAGES * 4096];
            noted.note(|| memory.iter_mut().step_by(4096).for_each(|byte| *byte = std::hint::black_box(1)));
            kept.push(memory);
        });
        let (record, start_ns) = run(graph, &options("f:20"));
        let expected = Expected { class: CauseClass::PageFault, name: "work" };
        let score = score("page faults", &record, start_ns, &log.all(), expected);
        let lost = record.explained.as_ref().map_or(0, |explained| explained.lost);
        if lost > 0 {
            eprintln!("skipped: the kernel left out records of page faults, {lost} times");
            return;
        }
        score.is_good();
    });
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

#[test]
fn a_slow_source() {
    alone(|| {
        if !can() {
            return;
        }
        let log = Log::default();
        let mut graph = Graph::new("slow");
        let noted = log.clone();
        let slow = Beat::new(move |out, cx, number: u64| {
            if number % 8 == 7 {
                noted.note(|| every(3_000_000));
            }
            out.push(cx, number)
        });
        let beat = graph.add("beat", slow);
        let work = graph.map("work", |number: u64| number);
        let end = graph.sink("end", |_: u64| ());
        graph.connect(beat, |b| &b.out, work, |w| &w.input);
        graph.connect(work, |w| &w.out, end, |e| &e.input);
        graph.deadline(end, 1_000_000);
        let (record, start_ns) = run(graph, &options("f:20"));
        let expected = Expected { class: CauseClass::InputLate, name: "beat" };
        score("a slow source", &record, start_ns, &log.all(), expected).is_good();
    });
}

#[test]
fn a_full_queue_downstream() {
    alone(|| {
        if !can() {
            return;
        }
        let log = Log::default();
        let noted = log.clone();
        let mut graph = Graph::new("full");
        let beat = graph.add("beat", Timer::new(PERIOD_NS, Some(BEATS), Overrun::Skip).expect("a period"));
        let work = graph.map("work", |number: u64| number);
        let end = graph.sink("end", move |number: u64| {
            if number % 16 == 15 {
                noted.note(|| every(60_000_000));
            }
        });
        graph.connect(beat, |b| &b.out, work, |w| &w.input);
        graph.connect(work, |w| &w.out, end, |e| &e.input).capacity(1);
        graph.deadline(work, 1_000_000);
        let mut options = options("f:20");
        options.pools[0].operators.pop();
        let policy = "f:10".parse().expect("a policy");
        options.pools.push(Pool::new("slow").cores([0]).policy(policy).operators(["end"]));
        let (record, start_ns) = run(graph, &options);
        // The edge holds one message, and one is in the sink: those that come after it wait.
        let expected = Expected { class: CauseClass::DownstreamFull, name: "work.out → end.in" };
        score("a full queue", &record, start_ns, &log.all(), expected).is_good();
    });
}

#[test]
fn a_lock_of_a_thread_of_low_priority() {
    alone(|| {
        if !can() {
            return;
        }
        let lock = Arc::new(Mutex::new(0u64));
        let (log, held) = (Log::default(), Arc::clone(&lock));
        let injector = Injector::start("holder", 0, "o:10", move || {
            every(20_000_000);
            let _held = held.lock().unwrap_or_else(PoisonError::into_inner);
            compute(4_000_000);
        });
        let noted = log.clone();
        let graph = graph(1_000_000, move |_| {
            *noted.note(|| lock.lock().unwrap_or_else(PoisonError::into_inner)) += 1;
        });
        let (record, start_ns) = run(graph, &options("f:20"));
        drop(injector);
        let expected = Expected { class: CauseClass::Lock, name: "holder" };
        score("a lock", &record, start_ns, &log.all(), expected).is_good();
    });
}

#[test]
fn real_time_throttling() {
    alone(|| {
        if !can() {
            return;
        }
        // A worker that never sleeps, and a thread that would like to have its core.
        let log = Log::default();
        let noted = log.clone();
        let starving = Injector::start("starving", 1, "o:-20", move || {
            // It looks at the clock all the time: where a stretch of looks begins and ends it got the core and lost it. Others may have
            // a part of that stretch, which is 50 ms in a second.
            let begin_ns = monotonic_ns();
            let mut last_ns = begin_ns;
            loop {
                let now_ns = monotonic_ns();
                if now_ns - last_ns > 60_000_000 || now_ns - begin_ns > 200_000_000 {
                    noted.list().push(begin_ns..last_ns);
                    return;
                }
                last_ns = now_ns;
            }
        });
        let mut options = options("f:20");
        options.pools[0].idle = Some(Idle::Spin);
        options.force = true;
        options.duration_ns = Some(6_000_000_000);
        let mut graph = Graph::new("throttled");
        let beat = graph.add("beat", Timer::new(PERIOD_NS, None, Overrun::CatchUp).expect("a period"));
        let work = graph.map("work", |number: u64| number);
        let end = graph.sink("end", |_: u64| ());
        graph.connect(beat, |b| &b.out, work, |w| &w.input);
        graph.connect(work, |w| &w.out, end, |e| &e.input);
        graph.deadline(end, 2_000_000);
        let (record, start_ns) = run(graph, &options);
        drop(starving);
        let expected = Expected { class: CauseClass::RtThrottling, name: "" };
        score("throttling", &record, start_ns, &log.all(), expected).is_good();
    });
}

#[test]
fn a_deadline_budget_that_is_used_up() {
    alone(|| {
        if !can() {
            return;
        }
        let log = Log::default();
        let noted = log.clone();
        let graph = graph(4_000_000, move |number| {
            if number % 8 != 7 {
                return;
            }
            // Where the clock jumps the thread had no core.
            let (begin_ns, mut last_ns) = (clock::thread_cpu_ns(), monotonic_ns());
            while clock::thread_cpu_ns() < begin_ns + 3_000_000 {
                let now_ns = monotonic_ns();
                if now_ns - last_ns > 1_000_000 {
                    noted.list().push(last_ns..now_ns);
                }
                last_ns = now_ns;
            }
        });
        let mut options = options("d:2ms:10ms:10ms");
        // The kernel gives a deadline thread all cores or none.
        options.pools[0].cores.clear();
        options.house_keeping.clear();
        let (record, start_ns) = run(graph, &options);
        let expected = Expected { class: CauseClass::DeadlineBudget, name: "" };
        score("a budget", &record, start_ns, &log.all(), expected).is_good();
    });
}

impl Log {
    /// Notes that something begins then, of which the end is not known.
    pub fn ring(&self, at_ns: u64) {
        self.list().push(at_ns..at_ns);
    }

    /// What begins within a message's time has all of it that is beyond `usual_ns`.
    pub fn rung(&self, record: &Record, start_ns: u64, usual_ns: u64) -> Vec<Range<u64>> {
        let begins = self.all();
        let one = |miss: &onbeat::trace::record::Miss| {
            let end_ns = start_ns + miss.time_ns;
            let due_ns = end_ns - miss.value_ns;
            let at_ns = begins.iter().map(|at| at.start).find(|ns| (due_ns..end_ns).contains(ns))?;
            let ns = miss.value_ns.saturating_sub(usual_ns);
            Some(at_ns.min(end_ns - ns)..at_ns.min(end_ns - ns) + ns)
        };
        record.misses.iter().filter_map(one).collect()
    }
}
