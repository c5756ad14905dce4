//! Waits for descriptors beside conditions, and stops in the middle of a step.

use super::descriptors::{Receiver, all_ways, writer_to};
use super::{numbers, ways};
use crate::watchdog::watched;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use onbeat_runtime::{Context, Error, Graph, Input, Operator, Options, Output, Ports, Step, When};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

/// Takes a message, lets the test ask for a stop, and only then waits for a peer that never reads.
struct Surprised {
    input: Input<u64>,
    stream: UnixStream,
    is_in_step: Arc<AtomicBool>,
    is_asked: Arc<AtomicBool>,
}

impl Operator for Surprised {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if cx.is_stopping() {
            while self.input.pop(cx).is_some() {}
            return Ok(Step::Done);
        }
        if self.input.pop(cx).is_none() {
            return Ok(Step::Wait);
        }
        self.is_in_step.store(true, Ordering::Release);
        while !self.is_asked.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        cx.writable(&self.stream)
    }
}

/// A stream that takes no more, and its other end.
fn full() -> (UnixStream, UnixStream) {
    let (far, mut stream) = UnixStream::pair().unwrap();
    stream.set_nonblocking(true).unwrap();
    while std::io::Write::write(&mut stream, &[0; 4096]).is_ok() {}
    (far, stream)
}

#[test]
fn a_stop_in_the_middle_of_a_step_ends_the_wait_that_it_asks_for() {
    watched(60, || {
        for options in all_ways() {
            let (_far, stream) = full();
            let [is_in_step, is_asked] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
            let mut graph = Graph::new("surprised");
            numbers(&mut graph, u64::MAX);
            let (in_step, asked) = (Arc::clone(&is_in_step), Arc::clone(&is_asked));
            graph.add(
                "surprised",
                Surprised { input: Input::default(), stream, is_in_step: in_step, is_asked: asked },
            );
            graph.connect_names("numbers", "surprised");
            let run = graph.start(&options).unwrap();
            while !is_in_step.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            // Meanwhile the edge fills, if the source has another thread: no message will wake the operator.
            std::thread::sleep(Duration::from_millis(10));
            run.stop();
            is_asked.store(true, Ordering::Release);
            run.wait().unwrap();
        }
    });
}

#[test]
fn a_sink_with_conditions_writes_the_rest_when_its_peer_reads() {
    watched(60, || {
        for options in all_ways() {
            let mut graph = Graph::new("conditional");
            let (wire, receiver) = Receiver::new(false);
            graph.add("numbers", receiver);
            let (mut far, stream) = full();
            let (writer, _) = writer_to(&mut graph, stream);
            graph.when(writer, When::messages("in", 1));
            let run = graph.start(&options).unwrap();
            wire.send(&[7]).unwrap();
            // The one message is with the writer, which waits, and there is no other.
            std::thread::sleep(Duration::from_millis(5));
            let mut bytes = [0; 4096];
            let mut sevens = 0;
            while sevens < 128 {
                let count = far.read(&mut bytes).unwrap();
                sevens += bytes[..count].iter().filter(|&&byte| byte == 7).count();
            }
            wire.send(&[]).unwrap();
            run.wait().unwrap();
        }
    });
}

/// Waits a real time, once.
struct Patient {
    out: Output<u64>,
    has_waited: bool,
}

impl Operator for Patient {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if std::mem::replace(&mut self.has_waited, true) {
            return Ok(Step::Done);
        }
        Ok(cx.look_again_in(20_000_000))
    }
}

#[test]
fn a_real_time_is_no_longer_on_a_slow_clock() {
    // On the run's clock, 20 ms would be 200 s.
    watched(60, || {
        let mut graph = Graph::new("slow");
        graph.add("patient", Patient { out: Output::default(), has_waited: false });
        graph.sink("end", |_: u64| ());
        graph.connect_names("patient", "end");
        graph.run(&Options { scale: 1e-4, ..Options::default() }).unwrap();
    });
}

/// Sends once the sink has been stepped, or gives up.
struct Afterwards {
    out: Output<u64>,
    stepped: Arc<AtomicU64>,
    looks: u64,
}

impl Operator for Afterwards {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        self.looks += 1;
        if self.stepped.load(Ordering::Relaxed) == 0 && self.looks < 10_000 {
            return Ok(cx.until(cx.now_ns() + 1_000_000));
        }
        self.out.push(cx, self.looks)?;
        Ok(Step::Done)
    }
}

/// Sets an alarm in its start.
struct Early {
    input: Input<u64>,
    stepped: Arc<AtomicU64>,
    taken: Arc<AtomicU64>,
}

impl Operator for Early {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }
    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        let _ = cx.until(cx.now_ns());
        Ok(())
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        self.stepped.fetch_add(1, Ordering::Relaxed);
        if let Some(looks) = self.input.pop(cx) {
            self.taken.store(looks, Ordering::Relaxed);
        }
        Ok(Step::Wait)
    }
}

#[test]
fn an_alarm_of_the_start_brings_a_step_before_any_message() {
    watched(60, || {
        for options in ways() {
            let (stepped, taken) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            let mut graph = Graph::new("early");
            graph.add(
                "source",
                Afterwards { out: Output::default(), stepped: Arc::clone(&stepped), looks: 0 },
            );
            let early =
                Early { input: Input::default(), stepped: Arc::clone(&stepped), taken: Arc::clone(&taken) };
            graph.add("sink", early);
            graph.connect_names("source", "sink");
            graph.run(&options).unwrap();
            let looks = taken.load(Ordering::Relaxed);
            assert!((1..10_000).contains(&looks), "{options:?}: {looks}");
            assert!(stepped.load(Ordering::Relaxed) >= 2, "{options:?}");
        }
    });
}
