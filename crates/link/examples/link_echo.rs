//! The time of an echo over a link to another process and back, beside bare sockets in the same run.
//!
//! ```console
//! $ cargo run --release -p onbeat-link --example link_echo -- 64 1000 2000
//! ```
//!
//! The arguments are the bytes of a message, messages per second, the number of messages, and what idle
//! workers do (`park`). `link` is the echo through two runs: source, `link.sink`, another process with
//! `link.source` and `link.sink`, `link.source`, sink. `unix` is the same over Unix sockets, without copies.
//! `tcp` and `udp` are blocking sockets in two processes; datagrams end at 60,000 bytes.
#![forbid(unsafe_code)]

use onbeat_link::{LinkPeer, LinkSettings, LinkSink, LinkSource};
use onbeat_os::clock::{monotonic_ns, sleep_until};
use onbeat_runtime::{Chunk, Context, Error, Graph, Input, Operator, Options, Output, Ports, Step};
use onbeat_trace::Histogram;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command};

type Failure = Box<dyn std::error::Error>;

/// Sends a chunk of zeros at each multiple of a period, with the time in its first bytes.
struct Clock {
    out: Output<Chunk<u8>>,
    bytes: usize,
    period_ns: u64,
    left: u64,
    next_ns: u64,
}

impl Operator for Clock {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.left == 0 {
            return Ok(Step::Done);
        }
        let now_ns = cx.now_ns();
        if now_ns < self.next_ns {
            return Ok(cx.until(self.next_ns));
        }
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        chunk.truncate(self.bytes);
        chunk.edit(cx)?[..8].copy_from_slice(&monotonic_ns().to_le_bytes());
        // A clock that is late does not catch up.
        self.next_ns = self.next_ns.max(now_ns.saturating_sub(self.period_ns)) + self.period_ns;
        self.left -= 1;
        self.out.push(cx, chunk)?;
        Ok(Step::Again)
    }
}

/// Messages that do not count: they wait for the link to come up.
const WARM_UP: u64 = 8;

/// Measures how old the time in a chunk is.
struct Stop {
    input: Input<Chunk<u8>>,
    seen: u64,
    times: std::sync::Arc<std::sync::Mutex<Histogram>>,
}

impl Operator for Stop {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(chunk) = self.input.pop(cx) {
            let now_ns = monotonic_ns();
            let sent_ns = chunk.first_chunk().map_or(now_ns, |bytes| u64::from_le_bytes(*bytes));
            self.seen += 1;
            if self.seen > WARM_UP {
                self.times.lock().expect("nobody panics").record(now_ns - sent_ns);
            }
        }
        Ok(Step::Wait)
    }
}

fn settings(name: &str, peer: LinkPeer) -> LinkSettings {
    LinkSettings::new(name, peer)
}

/// The other process: what comes goes back.
fn serve(addresses: &[String]) -> Result<(), Failure> {
    let [tcp, udp, bytes, idle, ways @ ..] = addresses else { return Err("too few arguments".into()) };
    let bytes: usize = bytes.parse()?;
    serve_sockets(tcp, udp, bytes)?;
    for way in ways.chunks_exact(2) {
        let (there, back) = (LinkPeer::Listen(way[0].clone()), LinkPeer::Connect(way[1].clone()));
        let mut graph = Graph::new("echo");
        let from = graph.add("from", LinkSource::<Chunk<u8>>::new(settings("there", there)));
        let to = graph.add("to", LinkSink::<Chunk<u8>>::new(settings("back", back)));
        graph.connect(from, |s| &s.out, to, |s| &s.input).quantum(bytes.next_power_of_two());
        graph.run(&options(idle)?).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn options(idle: &str) -> Result<Options, Failure> {
    Ok(Options { idle: idle.parse()?, ..Options::default() })
}

/// Echoes on bare sockets, until the connection ends.
fn serve_sockets(tcp: &str, udp: &str, bytes: usize) -> Result<(), Failure> {
    let (listener, socket) = (TcpListener::bind(tcp)?, UdpSocket::bind(udp)?);
    onbeat_os::thread::spawn("udp", move || {
        let mut buffer = vec![0; 65_536];
        while let Ok((count, from)) = socket.recv_from(&mut buffer) {
            // A datagram that is lost is missing at the other side.
            let _lost = socket.send_to(&buffer[..count], from);
        }
    })?;
    onbeat_os::thread::spawn("tcp", move || {
        let Ok((mut stream, _)) = listener.accept() else { return };
        let _slower = stream.set_nodelay(true);
        let mut buffer = vec![0; bytes];
        while stream.read_exact(&mut buffer).is_ok() && stream.write_all(&buffer).is_ok() {}
    })?;
    Ok(())
}

/// Calls `echo` at a rate, and takes the time of each call.
fn at_rate(
    count: u64,
    period_ns: u64,
    mut echo: impl FnMut() -> std::io::Result<()>,
) -> Result<Histogram, Failure> {
    let (mut times, mut next_ns) = (Histogram::new(), monotonic_ns());
    for _ in 0..count {
        sleep_until(next_ns);
        let begin_ns = monotonic_ns();
        echo()?;
        times.record(monotonic_ns() - begin_ns);
        next_ns = (next_ns + period_ns).max(begin_ns);
    }
    Ok(times)
}

fn bare_tcp(address: &str, bytes: usize, count: u64, period_ns: u64) -> Result<Histogram, Failure> {
    let mut stream = loop {
        match TcpStream::connect(address) {
            Ok(stream) => break stream,
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    };
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; bytes];
    at_rate(count, period_ns, || {
        stream.write_all(&buffer.clone()).and_then(|()| stream.read_exact(&mut buffer))
    })
}

fn bare_udp(address: &str, bytes: usize, count: u64, period_ns: u64) -> Result<Histogram, Failure> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(address)?;
    let mut buffer = vec![0; bytes];
    at_rate(count, period_ns, || {
        socket.send(&buffer.clone()).and_then(|_| socket.recv(&mut buffer)).map(drop)
    })
}

/// The echo through both runs.
fn linked(
    [there, back]: [&str; 2],
    bytes: usize,
    count: u64,
    period_ns: u64,
    idle: &str,
) -> Result<Histogram, Failure> {
    let times = std::sync::Arc::new(std::sync::Mutex::new(Histogram::new()));
    let mut graph = Graph::new("client");
    let clock = Clock { out: Output::default(), bytes, period_ns, left: count, next_ns: 0 };
    let clock = graph.add("clock", clock);
    let to =
        graph.add("to", LinkSink::<Chunk<u8>>::new(settings("there", LinkPeer::Connect(there.to_string()))));
    let from =
        graph.add("from", LinkSource::<Chunk<u8>>::new(settings("back", LinkPeer::Listen(back.to_string()))));
    let stop =
        graph.add("stop", Stop { input: Input::default(), seen: 0, times: std::sync::Arc::clone(&times) });
    let quantum = bytes.next_power_of_two();
    graph.connect(clock, |s| &s.out, to, |s| &s.input).quantum(quantum);
    graph.connect(from, |s| &s.out, stop, |s| &s.input).quantum(quantum);
    graph.run(&options(idle)?).map_err(|error| error.to_string())?;
    let times = times.lock().expect("nobody panics").clone();
    Ok(times)
}

fn free() -> Result<String, Failure> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}

/// Ends the other process with this one.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _gone = self.0.kill().and_then(|()| self.0.wait());
    }
}

#[expect(clippy::disallowed_macros, reason = "an example prints")]
fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(("serve", rest)) = arguments.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return serve(rest);
    }
    let number = |at: usize, usual: u64| arguments.get(at).map_or(Ok(usual), |text| text.parse());
    let (bytes, rate, count) = (number(0, 64)?.max(8) as usize, number(1, 1000)?, number(2, 2000)?);
    let period_ns = 1_000_000_000 / rate.max(1);
    let idle = arguments.get(3).map_or("park", String::as_str);
    let [there, back, tcp, udp] = [free()?, free()?, free()?, free()?];
    let local = |name: &str| format!("unix:/tmp/onbeat-echo-{}-{name}", std::process::id());
    let [lent, lent_back] = [local("there"), local("back")];
    let mut server = Command::new(std::env::current_exe()?);
    let ways = [&there, &back, &lent, &lent_back];
    let server = server.args(["serve", &tcp, &udp, &bytes.to_string(), idle]).args(ways).spawn()?;
    let _server = Served(server);
    let show = |name: &str, times: &Histogram| {
        let us = |quantile| times.quantile_ns(quantile) as f64 / 1e3;
        println!(
            "{name:5} {bytes} B {rate}/s n={} p50 {:.1} p99 {:.1} max {:.1} us",
            times.count(),
            us(0.5),
            us(0.99),
            us(1.0)
        );
    };
    show("tcp", &bare_tcp(&tcp, bytes, count, period_ns)?);
    if bytes <= 60_000 {
        show("udp", &bare_udp(&udp, bytes, count, period_ns)?);
    }
    show("link", &linked([&there, &back], bytes, count, period_ns, idle)?);
    show("unix", &linked([&lent, &lent_back], bytes, count, period_ns, idle)?);
    Ok(())
}
