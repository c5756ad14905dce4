//! Operators that wait for sockets and pipes within their steps.

use super::{keep, numbers, ways};
use crate::watchdog::watched;
use onbeat_runtime::{
    Context, Error, Graph, Handle, Idle, Input, Operator, Options, Output, Ports, Scheduler, Share, Step,
};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub fn all_ways() -> impl Iterator<Item = Options> {
    let mut all = ways();
    for idle in [Idle::Spin, Idle::SpinFor(50_000), Idle::Early(50_000)] {
        all.push(Options { idle, ..Options::default() });
        let (scheduler, share) = (Scheduler::Event, Share::Heavy);
        all.push(Options { scheduler, share, idle, workers: Some(2), ..Options::default() });
    }
    all.into_iter()
}

/// Sends the first byte of each datagram. An empty datagram is the end.
pub struct Receiver {
    socket: UnixDatagram,
    out: Output<u64>,
    /// Reads one datagram per step instead of all.
    one_each: bool,
}

impl Receiver {
    pub fn new(one_each: bool) -> (UnixDatagram, Self) {
        let (far, socket) = UnixDatagram::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        (far, Receiver { socket, out: Output::default(), one_each })
    }
}

impl Operator for Receiver {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let mut byte = [0];
        match self.socket.recv(&mut byte) {
            Ok(0) => Ok(Step::Done),
            Ok(_) => {
                self.out.push(cx, u64::from(byte[0]))?;
                if self.one_each { cx.readable(&self.socket) } else { Ok(Step::Again) }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => cx.readable(&self.socket),
            Err(error) => Err(Error::with_source("cannot receive", error)),
        }
    }
}

#[test]
fn a_source_is_stepped_for_its_data_alone() {
    watched(60, || {
        for options in all_ways() {
            for one_each in [false, true] {
                let (far, receiver) = Receiver::new(one_each);
                let mut graph = Graph::new("datagrams");
                graph.add("receiver", receiver);
                let kept = keep(&mut graph, "end");
                graph.connect_names("receiver", "end");
                let run = graph.start(&options).unwrap();
                for round in 1..=40u8 {
                    far.send(&[round]).unwrap();
                    while kept.lock().unwrap().len() < usize::from(round) {
                        std::thread::yield_now();
                    }
                }
                // Nothing polls by time: in this pause nothing is stepped.
                std::thread::sleep(Duration::from_millis(30));
                for _ in 0..10 {
                    far.send(&[41]).unwrap();
                }
                far.send(&[]).unwrap();
                let record = run.wait().unwrap();
                assert_eq!((record.result.exit_status, kept.lock().unwrap().len()), (0, 50), "{options:?}");
                let steps = record.operators[0].steps;
                assert!(steps <= 2 * 51 + 10, "{steps} steps: {options:?}");
            }
        }
    });
}

#[test]
fn one_beside_a_busy_source_gets_its_data() {
    watched(60, || {
        for options in all_ways() {
            let (far, receiver) = Receiver::new(false);
            let mut graph = Graph::new("beside");
            graph.add("receiver", receiver);
            let kept = keep(&mut graph, "end");
            graph.connect_names("receiver", "end");
            numbers(&mut graph, u64::MAX);
            graph.sink("busy_end", |_: u64| ());
            graph.connect_names("numbers", "busy_end");
            let run = graph.start(&options).unwrap();
            for round in 1..=20u8 {
                far.send(&[round]).unwrap();
                while kept.lock().unwrap().len() < usize::from(round) {
                    std::thread::yield_now();
                }
            }
            run.stop();
            let record = run.wait().unwrap();
            assert_eq!((record.result.lost, kept.lock().unwrap().len()), (0, 20));
        }
    });
}

/// Writes numbers to a stream, 8 bytes each. While the stream takes none, it waits.
pub struct Writer {
    input: Input<u64>,
    stream: UnixStream,
    left: Vec<u8>,
    ended_by_stop: Arc<Mutex<bool>>,
}

impl Operator for Writer {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        loop {
            if self.left.is_empty() {
                let Some(number) = self.input.pop(cx) else {
                    return Ok(if self.input.is_ended(cx) { Step::Done } else { Step::Wait });
                };
                self.left.extend([number; 128].iter().flat_map(|number| number.to_le_bytes()));
            }
            match self.stream.write(&self.left) {
                Ok(count) => drop(self.left.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if cx.is_stopping() {
                        *self.ended_by_stop.lock().unwrap() = true;
                        return Ok(Step::Done);
                    }
                    return cx.writable(&self.stream);
                }
                Err(error) => return Err(Error::with_source("cannot write", error)),
            }
        }
    }
}

fn writer(graph: &mut Graph, count: u64) -> (UnixStream, Arc<Mutex<bool>>) {
    let (far, stream) = UnixStream::pair().unwrap();
    stream.set_nonblocking(true).unwrap();
    numbers(graph, count);
    let (_, ended_by_stop) = writer_to(graph, stream);
    (far, ended_by_stop)
}

/// Writes what the operator "numbers" sends.
pub fn writer_to(graph: &mut Graph, stream: UnixStream) -> (Handle<Writer>, Arc<Mutex<bool>>) {
    let ended_by_stop = Arc::new(Mutex::new(false));
    let left = Vec::with_capacity(1024);
    let told = Arc::clone(&ended_by_stop);
    let writer = graph.add("writer", Writer { input: Input::default(), stream, left, ended_by_stop: told });
    graph.connect_names("numbers", "writer");
    (writer, ended_by_stop)
}

#[test]
fn a_sink_waits_until_its_peer_reads() {
    watched(60, || {
        for options in all_ways() {
            let mut graph = Graph::new("writes");
            let (mut far, _) = writer(&mut graph, 2000);
            let run = graph.start(&options).unwrap();
            std::thread::sleep(Duration::from_millis(5));
            let mut bytes = Vec::new();
            far.read_to_end(&mut bytes).unwrap();
            let record = run.wait().unwrap();
            assert_eq!((record.result.exit_status, bytes.len()), (0, 2000 * 1024));
            let numbers: Vec<u64> =
                bytes.chunks(8).map(|eight| u64::from_le_bytes(eight.try_into().unwrap())).collect();
            assert!(numbers.is_sorted(), "in order");
        }
    });
}

#[test]
fn a_stop_ends_the_wait() {
    watched(60, || {
        for options in all_ways() {
            let mut graph = Graph::new("stops");
            let (_far, ended_by_stop) = writer(&mut graph, u64::MAX);
            let run = graph.start(&options).unwrap();
            std::thread::sleep(Duration::from_millis(20));
            run.stop();
            run.wait().unwrap();
            assert!(*ended_by_stop.lock().unwrap());
        }
    });
}

/// Waits for data that never comes, and then for a descriptor with a new file behind it.
struct Impatient {
    socket: UnixDatagram,
    far: UnixDatagram,
    until_ns: Option<u64>,
    out: Output<u64>,
}

impl Operator for Impatient {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let until_ns = *self.until_ns.get_or_insert(cx.now_ns() + 3_000_000);
        let mut byte = [0];
        if self.socket.recv(&mut byte).is_ok() {
            self.out.push(cx, 7)?;
            return Ok(Step::Done);
        }
        if cx.now_ns() < until_ns {
            return cx.readable_until(&self.socket, until_ns);
        }
        // The same number, another socket.
        let (far, socket) = UnixDatagram::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        (self.far, self.socket) = (far, socket);
        self.until_ns = Some(u64::MAX);
        let far = self.far.try_clone().unwrap();
        let late = move || {
            std::thread::sleep(Duration::from_millis(3));
            far.send(&[1]).unwrap();
        };
        onbeat_os::thread::spawn("far", late).unwrap();
        cx.readable(&self.socket)
    }
}

#[test]
fn a_wait_ends_at_its_time_and_a_new_socket_may_follow() {
    watched(60, || {
        for options in all_ways() {
            let (far, socket) = UnixDatagram::pair().unwrap();
            socket.set_nonblocking(true).unwrap();
            let mut graph = Graph::new("impatient");
            graph.add("impatient", Impatient { socket, far, until_ns: None, out: Output::default() });
            let kept = keep(&mut graph, "end");
            graph.connect_names("impatient", "end");
            let record = graph.run(&options).unwrap();
            assert_eq!((record.result.exit_status, &**kept.lock().unwrap()), (0, &[7u64][..]));
        }
    });
}

#[test]
fn a_regular_file_is_always_ready() {
    watched(60, || {
        for options in all_ways() {
            let file = std::fs::File::open("/proc/self/exe").unwrap();
            let mut graph = Graph::new("file");
            graph.add("reader", Ready { file, steps: 0, out: Output::default() });
            let kept = keep(&mut graph, "end");
            graph.connect_names("reader", "end");
            graph.run(&options).unwrap();
            assert_eq!(kept.lock().unwrap().len(), 3);
        }
    });
}

struct Ready {
    file: std::fs::File,
    steps: u64,
    out: Output<u64>,
}

impl Operator for Ready {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        self.steps += 1;
        if self.steps > 3 {
            return Ok(Step::Done);
        }
        self.out.push(cx, self.steps)?;
        cx.readable(&self.file)
    }
}
