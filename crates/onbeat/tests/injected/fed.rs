//! Other processes that are stopped for 20 ms: one that the pipeline waits for, and one that shares its core.
//! Both are this test's own program, started once more.

use crate::alone;
use crate::pipeline::{BEATS, Beat, Log, PERIOD_NS, graph, options, run};
use crate::score::{Expected, score};
use onbeat::Graph;
use onbeat::prelude::*;
use onbeat::trace::CauseClass;
use onbeat::trace::record::Outcome;
use onbeat_os::clock::{monotonic_ns, sleep_until};
use onbeat_os::{CoreSet, thread};
use onbeat_queue::sync::atomic::{AtomicBool, Ordering};
use rustix::process::{Pid, Signal, kill_process};
use std::net::{Ipv4Addr, UdpSocket};
use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Where the child that feeds sends to: a port of this machine.
const FEEDS: &str = "ONBEAT_INJECTED_FEEDS";
/// The core that the child computes on.
const COMPUTES: &str = "ONBEAT_INJECTED_COMPUTES";

/// No child outlives its case by much, whatever happens to the test.
const WATCHDOG_NS: u64 = 2 * BEATS * PERIOD_NS;

fn variable(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

/// In a child: sends a datagram with each period, or computes. Elsewhere nothing.
#[test]
fn other() {
    let begin_ns = monotonic_ns();
    if let Some(port) = variable(FEEDS) {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        for beat in 0..WATCHDOG_NS / PERIOD_NS {
            // Nobody may be there yet, or any more.
            let _ = socket.send_to(b"beat", (Ipv4Addr::LOCALHOST, port as u16));
            sleep_until(begin_ns + beat * PERIOD_NS);
        }
    }
    if let Some(core) = variable(COMPUTES) {
        thread::set_cores(&CoreSet::from_cores([core]).expect("a core")).expect("on that core");
        while monotonic_ns() < begin_ns + WATCHDOG_NS {
            std::hint::spin_loop();
        }
    }
}

/// A child, until this is dropped.
struct Other(Child);

impl Other {
    fn start(variable: &str, value: usize) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "fed::other", "--nocapture"]).env(variable, value.to_string());
        Other(command.stdout(Stdio::null()).spawn().expect("a child"))
    }

    /// Stops it for 20 ms now and then, as long as that is wanted.
    fn stopped(&self, log: &Log, until: &Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
        let (pid, log, until) = (Pid::from_child(&self.0), log.clone(), Arc::clone(until));
        let main = move || {
            while !until.load(Ordering::Relaxed) {
                sleep_until(monotonic_ns() + 77_000_000);
                log.note(|| {
                    kill_process(pid, Signal::STOP).expect("a child that is there");
                    sleep_until(monotonic_ns() + 20_000_000);
                    kill_process(pid, Signal::CONT).expect("a child that is there");
                });
            }
        };
        thread::spawn("stops", main).expect("a thread")
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Receives all pending datagrams; waits for one if there are none.
fn take(socket: &UdpSocket, waits: &Log) -> std::io::Result<()> {
    let mut bytes = [0; 16];
    socket.set_nonblocking(true)?;
    let count = std::iter::from_fn(|| socket.recv(&mut bytes).ok()).count();
    socket.set_nonblocking(false)?;
    if count == 0 {
        waits.note(|| socket.recv(&mut bytes))?;
    }
    Ok(())
}

#[test]
fn a_stopped_process_that_feeds_the_pipeline() {
    alone(|| {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a time limit");
        let port = socket.local_addr().expect("its port").port();
        let mut graph = Graph::new("fed");
        let waits = Log::default();
        let noted = waits.clone();
        let fed = Beat::new(move |out, cx, number: u64| {
            take(&socket, &noted).map_err(|error| Error::new(error.to_string()))?;
            out.push(cx, number)
        });
        let beat = graph.add("beat", fed);
        let work = graph.map("work", |number: u64| number);
        let end = graph.sink("end", |_: u64| ());
        graph.connect(beat, |b| &b.out, work, |w| &w.input);
        graph.connect(work, |w| &w.out, end, |e| &e.input);
        graph.deadline(end, 2_000_000);
        let (log, over) = (Log::default(), Arc::new(AtomicBool::new(false)));
        let feeder = Other::start(FEEDS, usize::from(port));
        let stops = feeder.stopped(&log, &over);
        let (record, start_ns) = run(graph, &options("f:20"));
        over.store(true, Ordering::Relaxed);
        stops.join().expect("no panic");
        assert_eq!(record.result.outcome, Outcome::Ended, "{:?}", record.result);
        // The feeder can be late for its own reasons, too. The truth is how long the source waited for it
        // while it was stopped.
        let stops = log.all();
        let is_by_stop =
            |wait: &Range<u64>| stops.iter().any(|stop| stop.start < wait.end && wait.start < stop.end);
        let truth: Vec<_> = waits.all().into_iter().filter(is_by_stop).collect();
        let expected = Expected { class: CauseClass::InputLate, name: "beat" };
        score("a stopped feeder", &record, start_ns, &truth, expected).is_good();
    });
}

/// A process with less priority than the workers is stopped and continued. It makes no message late, and is
/// the cause of no miss.
#[test]
fn a_stopped_process_on_the_core() {
    alone(|| {
        let (log, over) = (Log::default(), Arc::new(AtomicBool::new(false)));
        let load = Other::start(COMPUTES, 1);
        let stops = load.stopped(&log, &over);
        let (record, _) = run(graph(1_000_000, |_| ()), &options("f:20"));
        over.store(true, Ordering::Relaxed);
        stops.join().expect("no panic");
        assert!(log.all().len() >= 10, "it was stopped again and again: {:?}", log.all());
        assert_eq!(record.result.outcome, Outcome::Ended, "{:?}", record.result);
        for edge in &record.edges {
            assert_eq!((edge.received, edge.dropped), (edge.sent, 0), "{edge:?}");
        }
        let stopped = record.causes.iter().find(|cause| cause.class == CauseClass::Stopped);
        assert!(stopped.is_none(), "it is not this process that was stopped: {stopped:?}");
        eprintln!("a stopped load: {} misses: {:?}", record.misses_total, record.causes);
    });
}
