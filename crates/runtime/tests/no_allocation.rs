//! After the start nothing is allocated: not by a hop, not by chunks, not by forks and joins, with measuring
//! on.

#[path = "it/random/kernels.rs"]
#[allow(dead_code, reason = "not all of them are needed here")]
mod kernels;
#[path = "it/random/operators.rs"]
#[allow(dead_code, reason = "not all of them are needed here")]
mod operators;
#[allow(dead_code, reason = "not all of it is needed here")]
#[path = "it/random/reference.rs"]
mod reference;
#[allow(dead_code, reason = "not all of it is needed here")]
#[path = "it/random/spec.rs"]
mod spec;
#[path = "it/random/splitmix.rs"]
#[allow(dead_code, reason = "not all of it is needed here")]
mod splitmix;

use kernels::{Average, Keep, Repeat, Scale};
use onbeat_os::allocations::CountingAllocator;
use onbeat_runtime::{
    Chunk, Context, Error, Explain, Graph, Idle, InPlace, Input, Merge, Operator, Options, Output, Ports,
    Scheduler, Share, Step, Stream,
};
use operators::{Add, Filter};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::sync::mpsc;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: CountingAllocator<&StatsAlloc<System>> = CountingAllocator::around(STATS);
static STATS: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// An endless stream, without tags.
#[derive(Default)]
struct Endless {
    out: Output<Chunk<f32>>,
    sent: u64,
}

impl Operator for Endless {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        cx.set_time(self.sent, Some(cx.now_ns()));
        self.sent += chunk.len() as u64;
        self.out.push(cx, chunk)?;
        Ok(Step::Again)
    }
}

/// Looks at the allocator's counters after some chunks, and again after many more.
struct Watch {
    /// Whether nobody else in the process asks for memory: those are counters of the process.
    is_alone: bool,
    input: Input<Chunk<f32>>,
    chunks: u64,
    at_first: Option<(usize, usize, usize)>,
    seen: mpsc::SyncSender<()>,
}

fn counters() -> (usize, usize, usize) {
    let stats = STATS.stats();
    (stats.allocations, stats.deallocations, stats.reallocations)
}

const WARM_UP: u64 = 2_000;
const WATCHED: u64 = 50_000;

impl Operator for Watch {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        self.chunks += u64::from(self.input.pop(cx).is_some());
        if self.chunks == WARM_UP {
            self.at_first = Some(counters());
        }
        if self.chunks < WARM_UP + WATCHED {
            return Ok(Step::Wait);
        }
        let (first, last) = (self.at_first.expect("it was noted"), counters());
        if self.is_alone && first != last {
            return Err(Error::new(format!("allocator counters went from {first:?} to {last:?}")));
        }
        let _ = self.seen.send(());
        Ok(Step::Done)
    }
}

/// On one worker, then on two: one after the other, because the allocator's counters are those of the
/// process. The thread that explains asks for memory, the workers that it watches do not.
#[test]
fn nothing_is_allocated_in_steady_state() {
    for explain in [Explain::Off, Explain::Auto] {
        steady(&Options { explain, ..Options::default() });
        for idle in [Idle::SpinFor(20_000), Idle::Park] {
            for (scheduler, share) in [
                (Scheduler::Pinned, Share::Heavy),
                (Scheduler::Event, Share::Heavy),
                (Scheduler::Event, Share::Always),
            ] {
                steady(&Options { scheduler, share, workers: Some(2), idle, explain, ..Options::default() });
            }
        }
    }
}

fn steady(options: &Options) {
    // One that asks for its memory now.
    let (seen, wait) = mpsc::sync_channel(1);
    let mut graph = Graph::new("steady");
    graph.add("source", Endless::default());
    graph.add("scale", InPlace::new(Scale(0.5)));
    graph.add("shared", InPlace::new(Scale(2.0)));
    graph.add("average", Stream::new(Average::new(4)));
    graph.add("keep", Stream::new(Keep::new(2)));
    graph.add("repeat", Stream::new(Repeat::new(2)));
    graph.add("sum", Add::default());
    graph.add(
        "watch",
        Watch {
            is_alone: options.explain == Explain::Off,
            input: Input::default(),
            chunks: 0,
            at_first: None,
            seen,
        },
    );
    for (from, to) in [
        ("source", "scale"),
        ("source", "shared"),
        ("scale", "average"),
        ("shared", "keep"),
        ("keep", "repeat"),
        ("average", "sum.a"),
        ("repeat", "sum.b"),
        ("sum", "watch"),
    ] {
        let _ = graph.connect_names(from, to).quantum(4096);
    }
    // Messages beside it, with an ordered join.
    let mut n = 0u64;
    graph.source("numbers", move || {
        n += 1;
        Some(n)
    });
    graph.add("even", Filter::new(2, None));
    graph.add("all", Filter::new(1, Some(Merge::Arrival)));
    graph.sink("end", |_: u64| ());
    for (from, to) in [("numbers", "even"), ("numbers", "all"), ("even", "all"), ("all", "end")] {
        let _ = graph.connect_names(from, to);
    }
    graph.path("source", "watch", Some(1_000_000_000));
    let run = graph.start(options).unwrap();
    let handle = run.handle();
    // The numbers have no end of their own. (An error comes at once: it drops the sender.)
    let _ = wait.recv_timeout(Duration::from_secs(120));
    handle.stop();
    let record = run.wait().unwrap_or_else(|error| panic!("{error}"));
    let watch = record.operators.iter().find(|operator| operator.name == "watch").unwrap();
    assert!(watch.steps >= WARM_UP + WATCHED, "it ran too short to tell: {} steps", watch.steps);
    let workers = record.threads.iter().filter(|thread| thread.busy_ns > 0);
    let asked: Vec<_> = workers.map(|thread| (&*thread.name, thread.allocations)).collect();
    assert!(!asked.is_empty() && asked.iter().all(|(_, asked)| *asked == Some(0)), "{asked:?}");
    if options.explain == Explain::Auto {
        let explained = record.explained.as_ref().expect("a path with a limit is explained");
        assert!(explained.spans > 0, "{explained:?}");
    }
    let copies: u64 = record.operators.iter().map(|operator| operator.copies).sum();
    // On two workers the other branch may be done with a chunk before this one comes to it.
    assert!(copies > 0, "the fork makes copies");
}
