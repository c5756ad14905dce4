//! What a run takes from the machine it gives back: the thread that asks for it keeps its attributes, and the
//! process its memory, however the run ends.

#![allow(clippy::disallowed_macros, reason = "a test says what it skips")]

#[path = "it/watchdog/mod.rs"]
mod watchdog;

use onbeat_os::policy::PolicyFlags;
use onbeat_os::{CoreSet, Policy, latency, memory, thread};
use onbeat_runtime::{
    Context, Error, Graph, OnHang, Operator, Options, Output, Ports, RunError, Scheduler, Step,
};
use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};
use watchdog::watched;

/// One at a time: locked memory belongs to the whole process.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the calling thread has, and the process.
#[derive(Debug, PartialEq)]
struct Attributes {
    name: String,
    policy: (Policy, PolicyFlags),
    cores: CoreSet,
    timer_slack_ns: u64,
    locked_bytes: u64,
    /// Those of a run, by name.
    threads: Vec<String>,
}

impl Attributes {
    fn now() -> Self {
        Attributes {
            name: fs::read_to_string("/proc/thread-self/comm").unwrap(),
            policy: Policy::of_this_thread().unwrap(),
            cores: thread::cores().unwrap(),
            timer_slack_ns: latency::timer_slack_ns().unwrap(),
            locked_bytes: memory::locked_bytes(),
            threads: threads(),
        }
    }

    /// A thread that has been joined may be in the list a moment longer.
    fn settled(before: &Attributes) -> Self {
        let begin = Instant::now();
        loop {
            let now = Attributes::now();
            if now.threads == before.threads || begin.elapsed() > Duration::from_secs(20) {
                return now;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().filter_map(Result::ok);
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with("onbeat-")).collect()
}

/// Everything that a run can ask for, under a policy.
fn everything(policy: &str) -> Options {
    let core = CoreSet::online().unwrap().iter().next().unwrap();
    Options {
        scheduler: Scheduler::Pinned,
        cores: vec![core],
        house_keeping: vec![core],
        policy: Some(policy.parse().unwrap()),
        lock_memory: true,
        prefault: Some(64 << 10),
        huge_pages: true,
        numa: true,
        timer_slack_ns: Some(1000),
        dma_latency_us: Some(5),
        ..Options::default()
    }
}

fn numbers(fails: bool) -> Graph {
    let mut graph = Graph::new("numbers");
    let mut n = 0u64;
    let numbers = graph.source("numbers", move || {
        n += 1;
        assert!(n < 50 || !fails, "made to");
        (n < 100).then_some(n)
    });
    let end = graph.sink("end", |_: u64| ());
    graph.connect(numbers, |n| &n.out, end, |e| &e.input);
    graph
}

#[test]
fn the_calling_thread_keeps_what_it_has() {
    let _alone = alone();
    watched(100, || {
        let before = Attributes::now();
        for policy in ["o:3", "f:5", "r:5"] {
            let options = everything(policy);
            numbers(false).run(&options).unwrap();
            assert_eq!(Attributes::settled(&before), before, "after a run under {policy}");
            // It fails in the middle.
            assert!(matches!(numbers(true).run(&options), Err(RunError::Failed(_))));
            assert_eq!(Attributes::settled(&before), before, "after one that failed under {policy}");
            // It is stopped, by somebody who goes on at once.
            let run = numbers(false).start(&options).unwrap();
            run.stop();
            run.wait().unwrap();
            assert_eq!(Attributes::settled(&before), before, "after one that was stopped under {policy}");
        }
        // It does not begin: a thread with DEADLINE is never on one core only, and more than one there must
        // be.
        if CoreSet::online().unwrap().len() > 1 {
            let strict = Options { strict: true, ..everything("d:1ms:100ms") };
            let error = numbers(false).run(&strict).unwrap_err().to_string();
            assert!(error.contains("strict: "), "{error}");
            assert_eq!(Attributes::settled(&before), before, "after one that did not begin");
        }
    });
}

#[test]
fn memory_that_the_program_has_locked_stays_locked() {
    let _alone = alone();
    watched(100, || {
        let Ok(own) = memory::MemoryLock::take(false) else {
            return eprintln!("skipped: no memory can be locked here");
        };
        assert!(memory::locked_bytes() > 0);
        numbers(false).run(&everything("o:0")).unwrap();
        assert!(memory::locked_bytes() > 0, "the run has unlocked what is not its own");
        drop(own);
        assert_eq!(memory::locked_bytes(), 0);
    });
}

#[test]
fn more_stack_than_there_is_is_said() {
    let _alone = alone();
    watched(100, || {
        let options = Options { prefault: Some(1 << 40), ..Options::default() };
        let record = numbers(false).run(&options).unwrap();
        let stack = record.obtained.iter().find(|it| it.what.starts_with("stack")).unwrap();
        assert_eq!(stack.obtained, "1048576 bytes");
        assert_eq!(stack.reason.as_deref(), Some("a stack has no room for more"));
    });
}

/// An operator does not return, and the run ends without its thread, which loses its real-time policy.
#[test]
fn a_thread_that_does_not_return_loses_its_priority() {
    let _alone = alone();
    watched(100, || {
        for policy in ["f:5", "d:2ms:100ms"] {
            let (go, wait) = mpsc::channel::<()>();
            let mut graph = Graph::new("stuck");
            let stuck = graph.source("stuck", move || {
                let _ = wait.recv();
                None::<u8>
            });
            let end = graph.sink("end", |_: u8| ());
            graph.connect(stuck, |s| &s.out, end, |e| &e.input);
            let policy: Policy = policy.parse().unwrap();
            let (watchdog_ns, on_hang) = (Some(60_000_000), OnHang::Stop);
            let options = Options { policy: Some(policy), watchdog_ns, on_hang, ..Options::default() };
            let Err(RunError::Failed(record)) = graph.run(&options) else { panic!("it ended well") };
            let granted =
                record.obtained.iter().any(|it| it.what.starts_with("policy") && it.asked == it.obtained);
            if !granted {
                eprintln!("skipped: {policy} cannot be had here");
                continue;
            }
            let worker = record.threads.iter().find(|thread| thread.purpose.starts_with("steps")).unwrap();
            let stat =
                fs::read_to_string(format!("/proc/self/task/{}/stat", worker.tid)).expect("it is there");
            // Field 41 of proc(5); the first after the name is field 3.
            let scheduled = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(41 - 3);
            assert_eq!(scheduled, Some("0"), "{policy}: {stat}");
            drop(go);
        }
    });
}

/// Waits for the end of a pipe.
struct Ear {
    out: Output<u64>,
    pipe: std::io::PipeReader,
    has_waited: bool,
}

impl Operator for Ear {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if std::mem::replace(&mut self.has_waited, true) {
            return Ok(Step::Done);
        }
        cx.readable(&self.pipe)
    }
}

fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn descriptors_that_a_run_waited_with_are_closed() {
    let _alone = alone();
    watched(60, || {
        for scheduler in [Scheduler::Greedy, Scheduler::Pinned, Scheduler::Event] {
            let workers = (scheduler != Scheduler::Greedy).then_some(2);
            let options = Options { scheduler, workers, ..Options::default() };
            let before = open_files();
            for _ in 0..20 {
                let (pipe, writer) = std::io::pipe().unwrap();
                let mut graph = Graph::new("ear");
                let ear = graph.add("ear", Ear { out: Output::default(), pipe, has_waited: false });
                let end = graph.sink("end", |_: u64| ());
                graph.connect(ear, |e| &e.out, end, |e| &e.input);
                let run = graph.start(&options).unwrap();
                drop(writer);
                run.wait().unwrap();
            }
            assert_eq!(open_files(), before, "{scheduler:?}");
        }
    });
}
