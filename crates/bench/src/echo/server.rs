//! The server in its own process: a bare loop, or a pipeline.

use super::loops;
use super::messages::{EchoLine, EchoLoop, EchoReport, EchoRequest};
use super::settings::{EchoTransport, EchoWait};
use onbeat_operators::{StdinSource, StdoutSink, TcpPeer, TcpSink, TcpSource, UdpSink, UdpSource};
use onbeat_os::{CoreSet, thread};
use onbeat_runtime::{Graph, Idle, Options, Scheduler};
use onbeat_trace::Record;
use rustix::process::{Signal, set_parent_process_death_signal};
use std::io::{self, BufRead, Read, Write};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::time::{Duration, Instant};

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
/// Time in which a run makes its first step on any machine.
const START: Duration = Duration::from_secs(5);

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
            loops::echo(&request).map_err(|error| error.to_string())
        }
    }
}

/// Writes a line. Returns whether that worked.
pub(super) fn say(line: &EchoLine) -> bool {
    let mut text = serde_json::to_vec(line).expect("plain data");
    text.push(b'\n');
    io::stderr().write_all(&text).is_ok()
}

fn pin(cores: &[usize]) -> Result<(), String> {
    let cores = CoreSet::from_cores(cores.iter().copied()).map_err(|error| error.to_string())?;
    thread::set_cores(&cores).map_err(|error| format!("cores {cores}: {error}"))
}

/// Opens a socket on this machine. Returns its port too.
pub(super) fn open_socket() -> io::Result<(UdpSocket, u16)> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = socket.local_addr()?.port();
    Ok((socket, port))
}

/// Listens for a connection with messages and for one with echoes. Returns the line with their ports too.
pub(super) fn open_listeners() -> io::Result<([TcpListener; 2], EchoLine)> {
    let open = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let (from, to) = (open()?, open()?);
    let ready = EchoLine::Ready { port: from.local_addr()?.port(), echoes: to.local_addr()?.port() };
    Ok(([from, to], ready))
}

/// Runs `source → sink` until stdin ends.
fn pipeline(request: &EchoRequest) -> Result<EchoReport, String> {
    // Threads started after this inherit these cores.
    pin(&request.house)?;
    let (graph, ready) = graph(request)?;
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
    // Messages before the first step would have a latency that begins with the run.
    let begin = Instant::now();
    let has_begun = || run.handle().status().operators.iter().any(|operator| operator.steps > 0);
    while !has_begun() && begin.elapsed() < START {
        std::thread::sleep(Duration::from_millis(1));
    }
    if request.transport == EchoTransport::Udp {
        // The other transports have an end of their own.
        let handle = run.handle();
        let watcher = thread::spawn("echo-stdin", move || {
            let _ended = io::copy(&mut io::stdin().lock(), &mut io::sink());
            handle.stop();
        });
        watcher.map_err(|error| format!("a thread: {error}"))?;
    }
    say(&ready);
    let record = run.wait().map_err(|error| error.to_string())?;
    Ok(report(&record))
}

/// Makes the pipeline. Returns the line for the time when it runs too.
fn graph(request: &EchoRequest) -> Result<(Graph, EchoLine), String> {
    let mut graph = Graph::new("echo");
    let failed = |error: onbeat_runtime::Error| error.to_string();
    let refused = |error: io::Error| error.to_string();
    let ready = match request.transport {
        EchoTransport::Udp => {
            let (socket, port) = open_socket().map_err(refused)?;
            let source = UdpSource::<f32>::new(format!("127.0.0.1:{port}"), None).map_err(failed)?;
            let to = format!("127.0.0.1:{}", request.port);
            graph.add("rx", source.socket(socket));
            graph.add("tx", UdpSink::<f32>::new(to, None).map_err(failed)?);
            EchoLine::Ready { port, echoes: 0 }
        }
        EchoTransport::Tcp => {
            let ([from, to], ready) = open_listeners().map_err(refused)?;
            // The listeners are open: their addresses are only for messages.
            let peer = || TcpPeer::Listen("127.0.0.1:0".to_owned());
            let source = TcpSource::<f32>::new(peer(), None).map_err(failed)?;
            graph.add("rx", source.listener(from));
            graph.add("tx", TcpSink::<f32>::new(peer(), None).map_err(failed)?.listener(to));
            ready
        }
        EchoTransport::Pipe => {
            graph.add("rx", StdinSource::<f32>::new(None, 0.0).map_err(failed)?);
            graph.add("tx", StdoutSink::<f32>::new(None).map_err(failed)?);
            EchoLine::Ready { port: 0, echoes: 0 }
        }
    };
    graph.connect_names("rx", "tx");
    Ok((graph, ready))
}

fn report(record: &Record) -> EchoReport {
    let workers = record.threads.iter().filter(|thread| thread.busy_ns > 0);
    EchoReport {
        held_ns: Vec::new(),
        latency: record.paths.first().map(|path| path.latency),
        workers: workers.map(|thread| thread.tid).collect(),
    }
}
