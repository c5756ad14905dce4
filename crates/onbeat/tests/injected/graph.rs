//! What the graph itself does: an operator, a source, a full queue, a lock.

use crate::alone;
use crate::pipeline::{
    BEATS, Beat, Injector, Log, PERIOD_NS, WORK_NS, calculate, compute, computed_ns, every, graph, graph_of,
    options, rounds, run,
};
use crate::score::{Expected, score};
use onbeat::operators::Timer;
use onbeat::trace::CauseClass;
use onbeat::{Graph, Options, Overrun, Pool, Record};
use onbeat_os::Usage;
use onbeat_os::clock::monotonic_ns;
use onbeat_os::memory::FreshMemory;
use std::sync::{Arc, Mutex, PoisonError};

#[test]
fn an_operator_over_its_budget() {
    alone(|| {
        let log = Log::default();
        let noted = log.clone();
        let (rounds, mut usual_ns) = (rounds(WORK_NS), Vec::new());
        // On a core that the hypervisor slows down the usual work takes longer, too: that is the step's own.
        let graph = graph_of(1_000_000, move |number| {
            if number % 8 != 7 {
                usual_ns.push(computed_ns(|| calculate(rounds)));
                return;
            }
            let took_ns = computed_ns(|| {
                calculate(rounds);
                compute(2_000_000);
            });
            usual_ns.sort_unstable();
            noted.last(took_ns.saturating_sub(usual_ns[usual_ns.len() / 2]));
        });
        let (record, start_ns) = run(graph, &options("f:20"));
        let expected = Expected { class: CauseClass::OwnCompute, name: "work" };
        score("an operator", &record, start_ns, &log.all(), expected).is_good();
    });
}

#[test]
fn page_faults() {
    alone(|| {
        const PAGES: usize = 400;
        /// Most messages with page faults.
        const MOST: usize = BEATS as usize / 12 + 1;
        let log = Log::default();
        let noted = log.clone();
        // Mapped before: to map memory takes time, too, and may wait for another thread.
        let mut memory = FreshMemory::map(MOST * PAGES * 4096).expect("memory");
        let mut at = 0;
        let graph = graph(600_000, move |number| {
            if number % 12 == 11 && at < MOST * PAGES * 4096 {
                noted.note(|| memory.touch(at..at + PAGES * 4096));
                at += PAGES * 4096;
            }
        });
        let (record, start_ns) = run(graph, &options("f:20"));
        let expected = Expected { class: CauseClass::PageFault, name: "work" };
        score("page faults", &record, start_ns, &log.all(), expected).is_good();
        has_lost_nothing(&record);
    });
}

fn has_lost_nothing(record: &Record) {
    assert_eq!(record.explained.as_ref().map(|explained| explained.lost), Some(0), "lost kernel records");
}

/// A step with thousands of page faults: each of them is counted, as `getrusage` counts them.
#[test]
fn all_page_faults_are_counted() {
    alone(|| {
        const PAGES: usize = 16 << 10;
        let counts = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&counts);
        let mut messages = 0;
        let graph = graph(2_000_000, move |_| {
            messages += 1;
            if messages % 40 != 0 {
                return;
            }
            let before = Usage::of_thread().expect("a count");
            let mut memory = FreshMemory::map(PAGES * 4096).expect("memory");
            memory.touch(0..PAGES * 4096);
            let faults = Usage::of_thread().expect("a count").since(&before).minor_faults;
            noted.lock().unwrap_or_else(PoisonError::into_inner).push((messages - 1, faults));
        });
        // A run that locks its memory does not lose records at its begin either.
        let (record, _) = run(graph, &Options { lock_memory: true, ..options("f:20") });
        has_lost_nothing(&record);
        let counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(counts.len() >= 5, "{counts:?}");
        for (number, faults) in counts.iter() {
            let miss = record.misses.iter().find(|miss| miss.sequence == *number).expect("it was late");
            let parts = &miss.verdict.as_ref().expect("a verdict").parts;
            let part = parts.iter().find(|part| part.class == CauseClass::PageFault).expect("page faults");
            let detail = part.detail.as_deref().unwrap_or_default();
            let told: u64 = detail.split(' ').next().and_then(|text| text.parse().ok()).expect("a number");
            assert!(told.abs_diff(*faults) * 50 <= *faults, "{faults} faults, of which {part:?} tells");
        }
    });
}

#[test]
fn a_slow_source() {
    alone(|| {
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
        let log = Log::default();
        let noted = log.clone();
        let mut graph = Graph::new("full");
        let beat = graph.add("beat", Timer::new(PERIOD_NS, Some(BEATS), Overrun::Skip).expect("a period"));
        let work = graph.map("work", |number: u64| number);
        // There is room again when it takes the next one, not when it has slept.
        let mut begun_ns = None;
        let end = graph.sink("end", move |number: u64| {
            if let Some(begin_ns) = begun_ns.take() {
                noted.span(begin_ns..monotonic_ns());
            }
            if number % 16 == 15 {
                begun_ns = Some(monotonic_ns());
                every(60_000_000);
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
