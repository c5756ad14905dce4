//! Softirqs: what the kernel puts off until an interrupt is over, and does before any thread.

use crate::alone;
use crate::pipeline::{BEATS, Injector, Log, PERIOD_NS, WORK_NS, every, graph, options, run};
use crate::score::{Expected, score};
use onbeat::Record;
use onbeat::trace::CauseClass;
use onbeat_os::clock::{monotonic_ns, sleep_until};
use onbeat_os::{CoreSet, thread};
use onbeat_queue::sync::atomic::{AtomicU64, Ordering};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_reuseaddr};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

/// How long a datagram is to take the kernel, and how many receivers it may need for that.
const SOFTIRQ_NS: u64 = 2_000_000;
const RECEIVERS: usize = 20_000;

/// Broadcasts within this machine. Each receiver gets its copy in one softirq, `NET_RX`, on the core of the
/// sender.
struct Broadcast {
    sender: UdpSocket,
    receivers: Vec<UdpSocket>,
}

impl Broadcast {
    /// As many receivers as it takes.
    fn new() -> std::io::Result<Self> {
        onbeat_os::perf::allow_open_files(RECEIVERS as u64 + 1024);
        let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        sender.set_broadcast(true)?;
        let mut broadcast = Broadcast { sender, receivers: vec![receiver(0)?] };
        let all = broadcast.receivers[0].local_addr()?;
        broadcast.sender.connect(all)?;
        while broadcast.shortest_ns()? < SOFTIRQ_NS {
            if broadcast.receivers.len() >= RECEIVERS {
                let why = format!("a datagram to {RECEIVERS} receivers does not take {SOFTIRQ_NS} ns");
                return Err(std::io::Error::other(why));
            }
            for _ in 0..250 {
                broadcast.receivers.push(receiver(all.port())?);
            }
        }
        Ok(broadcast)
    }

    fn send(&self) -> std::io::Result<()> {
        self.sender.send(b"all").map(|_| ())
    }

    fn shortest_ns(&self) -> std::io::Result<u64> {
        let mut shortest_ns = u64::MAX;
        for _ in 0..3 {
            let begin_ns = monotonic_ns();
            self.send()?;
            shortest_ns = shortest_ns.min(monotonic_ns() - begin_ns);
        }
        Ok(shortest_ns)
    }
}

/// One of several at the same port of loopback's broadcast address. It keeps few datagrams, and nobody reads
/// them.
fn receiver(port: u16) -> std::io::Result<UdpSocket> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    set_socket_reuseaddr(&socket, true)?;
    set_socket_recv_buffer_size(&socket, 1)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::new(127, 255, 255, 255), port))?;
    Ok(UdpSocket::from(socket))
}

/// A softirq cannot be interrupted by a thread, whatever its policy: a worker that is due meanwhile waits for
/// its end.
#[test]
fn a_long_softirq() {
    alone(|| {
        if is_threaded() {
            return;
        }
        let broadcast = match Broadcast::new() {
            Ok(broadcast) => broadcast,
            Err(error) => {
                eprintln!("skipped: no long softirq can be had: {error}");
                return;
            }
        };
        eprintln!("a datagram to {} receivers", broadcast.receivers.len());
        // When the first message was worked on at the earliest, as far as the messages so far tell.
        let first_ns = Arc::new(AtomicU64::new(u64::MAX));
        let (log, seen_ns) = (Log::default(), Arc::clone(&first_ns));
        let noted = log.clone();
        let injector = Injector::start("sender", 1, "f:10", move || {
            every(2 * PERIOD_NS);
            let (now_ns, first_ns) = (monotonic_ns(), seen_ns.load(Ordering::Relaxed));
            if first_ns > now_ns {
                return;
            }
            let beats = (now_ns - first_ns) / PERIOD_NS + 2;
            let due_ns = first_ns + beats * PERIOD_NS - WORK_NS;
            sleep_until(due_ns - SOFTIRQ_NS / 8);
            noted.ring(due_ns);
            broadcast.send().expect("a socket that is there");
        });
        let work = move |number: u64| {
            first_ns.fetch_min(monotonic_ns() - number * PERIOD_NS, Ordering::Relaxed);
        };
        let (record, start_ns) = run(graph(500_000, work), &options("f:20"));
        drop(injector);
        is_named("a softirq", &record, start_ns, &log);
    });
}

/// As with the timers the truth is what the lateness comes to beyond the usual.
fn is_named(what: &str, record: &Record, start_ns: u64, log: &Log) {
    let expected = Expected { class: CauseClass::Softirq, name: "NET_RX" };
    let usual_ns = record.paths[0].latency.median_ns;
    let truth = log.rung(record, start_ns, usual_ns);
    score(what, record, start_ns, &truth, expected).is_good();
}

/// Whether threads come before softirqs on this kernel. Says so.
fn is_threaded() -> bool {
    let is_threaded = std::fs::read_to_string("/sys/kernel/realtime").is_ok_and(|text| text.trim() == "1");
    if is_threaded {
        eprintln!("skipped: on this kernel threads come before softirqs");
    }
    is_threaded
}

/// Tells a child that it is the sender.
const SENDS: &str = "ONBEAT_INJECTED_SENDS";

/// In a child with a network of its own: core 0 sends, and core 1 is made to receive. Elsewhere nothing.
#[test]
fn sender() {
    if std::env::var_os(SENDS).is_none() {
        return;
    }
    thread::set_cores(&CoreSet::from_cores([0]).expect("a core")).expect("on that core");
    let broadcast = Broadcast::new().expect("receivers");
    std::fs::write("/sys/class/net/lo/queues/rx-0/rps_cpus", "2").expect("a network of its own");
    println!("\nready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("a line");
    // Nothing comes from a parent that is gone.
    let Ok(first_ns) = line.trim().parse::<u64>() else { return };
    let begin_ns = monotonic_ns();
    while monotonic_ns() < begin_ns + 2 * BEATS * PERIOD_NS {
        // In the middle of the work.
        let beats = (monotonic_ns() - first_ns) / PERIOD_NS + 3;
        let at_ns = first_ns + beats * PERIOD_NS - WORK_NS / 2;
        sleep_until(at_ns);
        broadcast.send().expect("a socket that is there");
        println!("{at_ns}");
    }
}

/// The child, until this is dropped.
struct Sender {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Sender {
    /// When it is ready, and where it is told when the first message was worked on.
    fn start() -> Result<(Self, ChildStdin), String> {
        const SCRIPT: &str = "ip link set lo up && mount -t sysfs sysfs /sys && exec \"$0\" --exact softirq::sender --nocapture";
        let this = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "sh", "-c", SCRIPT]).arg(this).env(SENDS, "1");
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| format!("unshare: {error}"))?;
        let (tell, said) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let mut sender = Sender { child, said: BufReader::new(said) };
        let is_ready = (&mut sender.said).lines().map_while(Result::ok).any(|line| line == "ready");
        if is_ready {
            Ok((sender, tell))
        } else {
            Err("there is no network of its own for a child".to_owned())
        }
    }

    /// Ends it. When it has sent.
    fn end(mut self) -> Log {
        let log = Log::default();
        self.child.kill().expect("a child of ours");
        let lines = (&mut self.said).lines().map_while(Result::ok);
        lines.filter_map(|line| line.parse().ok()).for_each(|at_ns| log.ring(at_ns));
        log
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// As a network card does it whose interrupts come to the worker's core.
#[test]
fn a_long_softirq_within_a_step() {
    alone(|| {
        if is_threaded() {
            return;
        }
        let (sender, mut tell) = match Sender::start() {
            Ok(started) => started,
            Err(why) => {
                return eprintln!("skipped: no core can be made to receive what another sends: {why}");
            }
        };
        let first_ns = Arc::new(AtomicU64::new(u64::MAX));
        let seen_ns = Arc::clone(&first_ns);
        let mut count = 0;
        let work = move |number: u64| {
            first_ns.fetch_min(monotonic_ns() - number * PERIOD_NS, Ordering::Relaxed);
            count += 1;
            if count == 10 {
                writeln!(tell, "{}", seen_ns.load(Ordering::Relaxed)).expect("a child that is there");
            }
        };
        let (record, start_ns) = run(graph(500_000, work), &options("f:20"));
        is_named("a softirq within", &record, start_ns, &sender.end());
    });
}
