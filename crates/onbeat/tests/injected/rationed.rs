//! What the kernel rations: time of real-time threads, and of those with a deadline.

use crate::alone;
use crate::pipeline::{Injector, Log, PERIOD_NS, graph, options, run};
use crate::score::{Expected, score};
use onbeat::operators::Timer;
use onbeat::trace::CauseClass;
use onbeat::{Graph, Idle, Overrun};
use onbeat_os::clock;
use onbeat_os::clock::monotonic_ns;

#[test]
fn real_time_throttling() {
    alone(|| {
        // A worker that never sleeps, and a thread that would like to have its core.
        let log = Log::default();
        let noted = log.clone();
        let starving = Injector::start("starving", 1, "o:-20", move || {
            // It looks at the clock all the time: where a stretch of looks begins and ends it got the core
            // and lost it. Others may have a part of that stretch, which is 50 ms in a second.
            let begin_ns = monotonic_ns();
            let mut last_ns = begin_ns;
            loop {
                let now_ns = monotonic_ns();
                if now_ns - last_ns > 60_000_000 || now_ns - begin_ns > 200_000_000 {
                    noted.span(begin_ns..last_ns);
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
                    noted.span(last_ns..now_ns);
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
