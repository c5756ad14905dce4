//! What the kernel does in interrupts.

use crate::pipeline::{Injector, Log, PERIOD_NS, WORK_NS, every, graph, options, run};
use crate::score::{Expected, score};
use crate::{alone, can};
use onbeat::trace::CauseClass;
use onbeat_os::clock::{self, monotonic_ns};
use onbeat_os::{CoreSet, thread};
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_reuseaddr};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Timers that ring in the same moment, on the core on which they were set: one long interrupt.
const TIMERS: usize = 5_000;

fn timers() -> Option<Vec<OwnedFd>> {
    onbeat_os::perf::allow_open_files(TIMERS as u64 + 1024);
    (0..TIMERS).map(|_| timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).ok()).collect()
}

fn set(timers: &[OwnedFd], at_ns: u64) {
    let at = Timespec { tv_sec: (at_ns / 1_000_000_000) as i64, tv_nsec: (at_ns % 1_000_000_000) as i64 };
    let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: at };
    for timer in timers {
        timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &once).expect("a timer that is there");
    }
}

#[test]
fn a_long_timer_interrupt() {
    alone(|| {
        if !can() {
            return;
        }
        let Some(timers) = timers() else {
            eprintln!("skipped: {TIMERS} timers cannot be had");
            return;
        };
        let (log, stop) = (Log::default(), Arc::new(AtomicBool::new(false)));
        let (noted, stopped) = (log.clone(), Arc::clone(&stop));
        let worked_ns = Arc::new(AtomicU64::new(0));
        let last_ns = Arc::clone(&worked_ns);
        let main = move || {
            thread::set_cores(&CoreSet::from_cores([1]).expect("a core")).expect("on that core");
            let policy: onbeat::Policy = "f:10".parse().expect("a policy");
            policy.set(onbeat_os::policy::PolicyFlags::default()).expect("that policy");
            while !stopped.load(Ordering::Relaxed) {
                // Three messages later, in the middle of the work.
                let last_ns = last_ns.load(Ordering::Relaxed);
                let at_ns = (last_ns + 3 * PERIOD_NS - WORK_NS / 2).max(monotonic_ns() + PERIOD_NS);
                set(&timers, at_ns);
                noted.ring(at_ns);
                clock::sleep_until(at_ns + 4_000_000);
            }
        };
        let injector = thread::spawn("timers", main).expect("a thread");
        let (record, start_ns) = run(
            graph(500_000, move |_| worked_ns.store(monotonic_ns(), Ordering::Relaxed)),
            &options("f:20"),
        );
        stop.store(true, Ordering::Relaxed);
        injector.join().expect("no panic");
        // How long they take nobody but the kernel knows: the truth is what the lateness comes to beyond the usual.
        let expected = Expected { class: CauseClass::Irq, name: "local_timer" };
        let usual_ns = record.paths[0].latency.median_ns;
        let truth = log.rung(&record, start_ns, usual_ns);
        score("a timer interrupt", &record, start_ns, &truth, expected).is_good();
    });
}

/// How long a datagram is to take the kernel, and how many receivers it may need for that.
const SOFTIRQ_NS: u64 = 2_000_000;
const RECEIVERS: usize = 20_000;

/// Broadcasts within this machine. Each receiver gets its copy in one softirq, `NET_RX`, on the core of the sender.
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

/// One of several at the same port of loopback's broadcast address. It keeps few datagrams, and nobody reads them.
fn receiver(port: u16) -> std::io::Result<UdpSocket> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    set_socket_reuseaddr(&socket, true)?;
    set_socket_recv_buffer_size(&socket, 1)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::new(127, 255, 255, 255), port))?;
    Ok(UdpSocket::from(socket))
}

/// A softirq cannot be interrupted by a thread, whatever its policy: a worker that is due meanwhile waits for its end.
#[test]
fn a_long_softirq() {
    alone(|| {
        if !can() {
            return;
        }
        if std::fs::read_to_string("/sys/kernel/realtime").is_ok_and(|text| text.trim() == "1") {
            eprintln!("skipped: on this kernel threads come before softirqs");
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
            clock::sleep_until(due_ns - SOFTIRQ_NS / 8);
            noted.ring(due_ns);
            broadcast.send().expect("a socket that is there");
        });
        let work = move |number: u64| {
            first_ns.fetch_min(monotonic_ns() - number * PERIOD_NS, Ordering::Relaxed);
        };
        let (record, start_ns) = run(graph(500_000, work), &options("f:20"));
        drop(injector);
        let expected = Expected { class: CauseClass::Softirq, name: "NET_RX" };
        // As with the timers: what the lateness comes to beyond the usual.
        let usual_ns = record.paths[0].latency.median_ns;
        let truth = log.rung(&record, start_ns, usual_ns);
        score("a softirq", &record, start_ns, &truth, expected).is_good();
    });
}
