//! The server in its own process: a bare loop, or a pipeline.

use super::messages::{EchoLine, EchoLoop, EchoReport, EchoRequest};
use super::settings::{EchoTransport, EchoWait};
use onbeat_operators::{UdpSink, UdpSource};
use onbeat_os::socket::DatagramSocket;
use onbeat_os::{CoreSet, clock, thread};
use onbeat_runtime::{Graph, Idle, Options, Scheduler};
use onbeat_trace::Record;
use rustix::process::{Signal, set_parent_process_death_signal};
use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::net::UdpSocket;

/// Sends messages back, as a process that the bench starts. Reads what is asked for from stdin, and writes
/// what it found to stderr. Returns whether that worked.
pub fn serve() -> bool {
    // It must not outlive the bench. Without this right it ends with its input.
    let _refused = set_parent_process_death_signal(Some(Signal::KILL));
    match answer() {
        Ok(report) => say(&EchoLine::Report(report)),
        Err(reason) => {
            say(&EchoLine::Failed(reason));
            false
        }
    }
}

/// Longest request, in bytes.
const LONGEST: u64 = 64 << 10;

fn answer() -> Result<EchoReport, String> {
    let mut line = String::new();
    let failed = |error: io::Error| format!("cannot read the request: {error}");
    io::stdin().lock().take(LONGEST).read_line(&mut line).map_err(failed)?;
    let request: EchoRequest = serde_json::from_str(&line)
        .map_err(|error| format!("this command is for `onbeat bench echo`, which starts it: {error}"))?;
    match request.kind {
        EchoLoop::Onbeat => pipeline(&request),
        EchoLoop::Bare | EchoLoop::Stamped => {
            pin(&[request.core])?;
            bare(&request).map_err(|error| error.to_string())
        }
    }
}

/// Writes a line. Returns whether that worked.
fn say(line: &EchoLine) -> bool {
    let mut text = serde_json::to_vec(line).expect("plain data");
    text.push(b'\n');
    io::stderr().write_all(&text).is_ok()
}

fn pin(cores: &[usize]) -> Result<(), String> {
    let cores = CoreSet::from_cores(cores.iter().copied()).map_err(|error| error.to_string())?;
    thread::set_cores(&cores).map_err(|error| format!("cores {cores}: {error}"))
}

/// A socket on this machine, and its port.
fn socket() -> io::Result<(UdpSocket, u16)> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let port = socket.local_addr()?.port();
    Ok((socket, port))
}

fn bare(request: &EchoRequest) -> io::Result<EchoReport> {
    let EchoTransport::Udp = request.transport;
    let (socket, port) = socket()?;
    let mut held_ns = Vec::new();
    if request.kind == EchoLoop::Bare {
        socket.set_nonblocking(request.wait == EchoWait::Spin)?;
        say(&EchoLine::Ready { port });
        echo_datagrams(&socket)?;
    } else {
        let stamped = DatagramSocket::new(socket.try_clone()?)?;
        // Both are the same socket for the kernel.
        socket.set_nonblocking(request.wait == EchoWait::Spin)?;
        held_ns.reserve(1 << 16);
        say(&EchoLine::Ready { port });
        echo_stamped_datagrams(&socket, &stamped, &mut held_ns)?;
    }
    Ok(EchoReport { held_ns, ..EchoReport::default() })
}

/// The least that an echo takes: `recvfrom` and `sendto`. An empty datagram ends it.
fn echo_datagrams(socket: &UdpSocket) -> io::Result<()> {
    let mut buffer = [0; 2048];
    loop {
        match socket.recv_from(&mut buffer) {
            Ok((0, _)) => return Ok(()),
            Ok((length, from)) => _ = socket.send_to(&buffer[..length], from)?,
            Err(error) if is_again(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

/// The same, and how long the machine had each datagram: from the kernel's receive stamp until it was sent.
fn echo_stamped_datagrams(
    socket: &UdpSocket,
    stamped: &DatagramSocket,
    held_ns: &mut Vec<u64>,
) -> io::Result<()> {
    let mut buffer = [0; 2048];
    loop {
        let received = match stamped.receive(&mut buffer) {
            Ok(received) if received.length == 0 => return Ok(()),
            Ok(received) => received,
            Err(error) if is_again(&error) => continue,
            Err(error) => return Err(error),
        };
        let from = received.from.ok_or_else(|| io::Error::other("a datagram without a sender"))?;
        socket.send_to(&buffer[..received.length], from)?;
        let now_ns = clock::realtime_unix_ns();
        let stamp_ns = received.stamped_ns.ok_or_else(|| io::Error::other("a datagram without a stamp"))?;
        held_ns.push(now_ns.saturating_sub(stamp_ns));
    }
}

fn is_again(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Runs `source → sink` until stdin ends.
fn pipeline(request: &EchoRequest) -> Result<EchoReport, String> {
    // Threads started after this inherit these cores.
    pin(&request.house)?;
    let (graph, port) = graph(request)?;
    let idle = match request.wait {
        EchoWait::Park => Idle::Park,
        EchoWait::Spin => Idle::Spin,
    };
    let options = Options {
        scheduler: Scheduler::Greedy,
        cores: vec![request.core],
        house_keeping: request.house.clone(),
        idle,
        ..Options::default()
    };
    let run = graph.start(&options).map_err(|error| error.to_string())?;
    let handle = run.handle();
    let watcher = thread::spawn("echo-stdin", move || {
        let _ended = io::copy(&mut io::stdin().lock(), &mut io::sink());
        handle.stop();
    });
    watcher.map_err(|error| format!("a thread: {error}"))?;
    say(&EchoLine::Ready { port });
    let record = run.wait().map_err(|error| error.to_string())?;
    Ok(report(&record))
}

fn graph(request: &EchoRequest) -> Result<(Graph, u16), String> {
    let mut graph = Graph::new("echo");
    let EchoTransport::Udp = request.transport;
    let (socket, port) = socket().map_err(|error| error.to_string())?;
    let source =
        UdpSource::<f32>::new(format!("127.0.0.1:{port}"), None).map_err(|error| error.to_string())?;
    let sink = UdpSink::<f32>::new(format!("127.0.0.1:{}", request.port), None)
        .map_err(|error| error.to_string())?;
    graph.add("rx", source.socket(socket));
    graph.add("tx", sink);
    graph.connect_names("rx", "tx");
    Ok((graph, port))
}

fn report(record: &Record) -> EchoReport {
    let workers = record.threads.iter().filter(|thread| thread.busy_ns > 0);
    EchoReport {
        held_ns: Vec::new(),
        latency: record.paths.first().map(|path| path.latency),
        workers: workers.map(|thread| thread.tid).collect(),
    }
}
