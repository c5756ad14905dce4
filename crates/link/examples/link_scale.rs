//! Chains of 2 to 16 runs, measured, and a model of them that says what 1000 would do.
//!
//! ```console
//! $ cargo run --release -p onbeat-link --example link_scale -- 1 16
//! ```
//!
//! The arguments are the delay of each hop in milliseconds, each way, and the window. The links of a chain
//! cross relays with that delay. The model has two parameters of the machine, both measured with two runs:
//! the time that a hop takes besides the delay when little is sent, and when much is sent.
//!
//! - Rate: at most `window` messages are in flight on a hop, so each hop passes `window` messages per round
//!   trip, whatever the length of the chain: `window / (2 * delay + busy)`.
//! - Latency at a low rate: `hops * (delay + idle)`.
#![forbid(unsafe_code)]

use onbeat_link::{LinkPeer, LinkSettings, LinkSink, LinkSource};
use onbeat_os::clock::{monotonic_ns, sleep_until};
use onbeat_os::thread;
use onbeat_runtime::testing::free_address;
use onbeat_runtime::{Graph, Options};
use onbeat_trace::Histogram;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

type Failure = Box<dyn std::error::Error>;

/// Passes bytes on, each after the delay.
fn pass(mut from: TcpStream, mut to: TcpStream, delay_ns: u64) -> Result<(), Failure> {
    let (sender, receiver) = channel::<(u64, Vec<u8>)>();
    thread::spawn("relay out", move || {
        for (due_ns, bytes) in receiver {
            sleep_until(due_ns);
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _gone = to.shutdown(std::net::Shutdown::Write);
    })?;
    thread::spawn("relay in", move || {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if sender.send((monotonic_ns() + delay_ns, bytes[..count].to_vec())).is_err() {
                break;
            }
        }
    })?;
    Ok(())
}

/// A relay to an address. Returns its own.
fn relay(target: String, delay_ns: u64) -> Result<String, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    thread::spawn("relay", move || {
        for caller in listener.incoming().flatten() {
            let Ok(called) = TcpStream::connect(&target) else { continue };
            let both = || -> Result<(), Failure> {
                caller.set_nodelay(true)?;
                called.set_nodelay(true)?;
                pass(caller.try_clone()?, called.try_clone()?, delay_ns)?;
                pass(called.try_clone()?, caller.try_clone()?, delay_ns)
            };
            // The ends find out, and call again.
            let _broken = both();
        }
    })?;
    Ok(address)
}

/// Messages per second, and the median time from the first run to the last one.
struct Measured {
    rate: f64,
    latency_ns: u64,
}

/// Sends `count` messages through a chain of runs, one every `period_ns`, or as fast as it takes them.
fn chain(nodes: usize, delay_ns: u64, window: u32, count: u64, period_ns: u64) -> Result<Measured, Failure> {
    let mut runs = Vec::new();
    let seen = Arc::new(Mutex::new((Histogram::new(), 0_u64, 0_u64)));
    let mut next: Option<String> = None;
    for number in (0..nodes).rev() {
        let mut graph = Graph::new(format!("node {number}"));
        let settings = |name: usize, peer: LinkPeer| LinkSettings {
            window,
            ..LinkSettings::new(format!("hop {name}"), peer)
        };
        let listen = free_address().to_string();
        let from = (number > 0).then(|| {
            let settings = settings(number, LinkPeer::Listen(listen.clone()));
            graph.add("from", LinkSource::<u64>::new(settings))
        });
        let to = next.take().map(|address| {
            graph.add("to", LinkSink::<u64>::new(settings(number + 1, LinkPeer::Connect(address))))
        });
        match (from, to) {
            (Some(from), Some(to)) => drop(graph.connect(from, |s| &s.out, to, |s| &s.input)),
            (Some(from), None) => {
                let seen = Arc::clone(&seen);
                let end = graph.sink("end", move |sent_ns: u64| {
                    let now_ns = monotonic_ns();
                    let mut seen = seen.lock().expect("nobody panics");
                    seen.0.record(now_ns - sent_ns);
                    seen.1 = if seen.1 == 0 { now_ns } else { seen.1 };
                    seen.2 = now_ns;
                });
                graph.connect(from, |s| &s.out, end, |s| &s.input);
            }
            (None, Some(to)) => {
                let (mut left, mut next_ns) = (count, 0);
                let ticks = graph.source("ticks", move || {
                    sleep_until(next_ns);
                    next_ns = monotonic_ns() + period_ns;
                    left = left.checked_sub(1)?;
                    Some(monotonic_ns())
                });
                graph.connect(ticks, |s| &s.out, to, |s| &s.input);
            }
            (None, None) => return Err("a chain has two nodes or more".into()),
        }
        runs.push(graph.start(&Options::default())?);
        next = Some(relay(listen, delay_ns)?);
    }
    let errors = runs.into_iter().rev().filter_map(|run| Some(run.wait().err()?.to_string()));
    // Most of them only say that another one failed.
    if let Some(error) = errors.max_by_key(|error| !error.contains("its own record says why")) {
        return Err(error.into());
    }
    let seen = seen.lock().expect("nobody panics");
    let time_s = seen.2.saturating_sub(seen.1) as f64 / 1e9;
    Ok(Measured { rate: (count - 1) as f64 / time_s, latency_ns: seen.0.quantile_ns(0.5) })
}

#[expect(clippy::disallowed_macros, reason = "an example prints")]
fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual: f64| arguments.get(at).map_or(Ok(usual), |text| text.parse());
    let (delay_ms, window) = (number(0, 1.0)?, number(1, 16.0)?);
    let delay_ns = (delay_ms * 1e6) as u64;
    let measure = |nodes: usize| -> Result<(f64, f64), Failure> {
        let fast = chain(nodes, delay_ns, window as u32, 3000, 0)?;
        let slow = chain(nodes, delay_ns, window as u32, 200, 10_000_000)?;
        Ok((fast.rate, slow.latency_ns as f64 / 1e6))
    };
    let (rate, latency_ms) = measure(2)?;
    let (busy_ms, idle_ms) = (window / rate * 1e3 - 2.0 * delay_ms, latency_ms - delay_ms);
    println!("delay {delay_ms} ms each way, window {window}: busy {busy_ms:.3} ms, idle {idle_ms:.3} ms");
    println!("{:>5} {:>12} {:>12} {:>12} {:>12}", "nodes", "messages/s", "model", "latency ms", "model");
    for nodes in [2, 4, 8, 16, 100, 1000] {
        let model = (window / (2.0 * delay_ms + busy_ms) * 1e3, (nodes - 1) as f64 * (delay_ms + idle_ms));
        if nodes <= 16 {
            let (rate, latency_ms) = measure(nodes)?;
            println!("{nodes:>5} {rate:>12.0} {:>12.0} {latency_ms:>12.2} {:>12.2}", model.0, model.1);
        } else {
            println!("{nodes:>5} {:>12} {:>12.0} {:>12} {:>12.1}", "-", model.0, "-", model.1);
        }
    }
    Ok(())
}
