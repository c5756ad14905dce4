//! The time of an echo through plain iceoryx2 between two processes: what `link_echo` over `unix:` is
//! compared with.
//!
//! Arguments: bytes of a message, messages per second, number of messages, and `parked` or `spinning`. A
//! parked end waits for an event of iceoryx2, which the other one sends after each message; a spinning end
//! looks for the next message all the time. Samples are loaned and not written, as `link_echo` does not write
//! its chunks.

use iceoryx2::port::{listener::Listener, notifier::Notifier, publisher::Publisher, subscriber::Subscriber};
use iceoryx2::prelude::*;
use std::process::Command;
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error>;

/// One end: what it sends, what it receives, and the events with both.
struct End {
    publisher: Publisher<ipc::Service, [u8], ()>,
    subscriber: Subscriber<ipc::Service, [u8], ()>,
    notifier: Notifier<ipc::Service>,
    listener: Listener<ipc::Service>,
    is_parked: bool,
}

impl End {
    /// Sends to the service `to` and receives from `from`.
    fn new(node: &Node<ipc::Service>, to: &str, from: &str, bytes: usize, is_parked: bool) -> Result<Self, Failure> {
        let samples = |name: &str| -> Result<_, Failure> {
            Ok(node.service_builder(&name.try_into()?).publish_subscribe::<[u8]>().open_or_create()?)
        };
        let events = |name: &str| -> Result<_, Failure> {
            Ok(node.service_builder(&format!("{name}-event").as_str().try_into()?).event().open_or_create()?)
        };
        Ok(End {
            publisher: samples(to)?.publisher_builder().initial_max_slice_len(bytes).create()?,
            subscriber: samples(from)?.subscriber_builder().create()?,
            notifier: events(to)?.notifier_builder().create()?,
            listener: events(from)?.listener_builder().create()?,
            is_parked,
        })
    }

    fn send(&self, bytes: usize) -> Result<(), Failure> {
        let sample = self.publisher.loan_slice_uninit(bytes)?;
        // SAFETY: the memory is a mapped file, which the kernel has filled with zeros; any byte is a valid
        // `u8`.
        unsafe { sample.assume_init() }.send()?;
        if self.is_parked {
            self.notifier.notify()?;
        }
        Ok(())
    }

    /// Waits for the next message, and returns its length.
    fn receive(&self) -> Result<usize, Failure> {
        loop {
            if let Some(sample) = self.subscriber.receive()? {
                return Ok(sample.payload().len());
            }
            if self.is_parked {
                self.listener.blocking_wait(|_| {})?;
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

fn main() -> Result<(), Failure> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_server = arguments.first().is_some_and(|first| first == "serve");
    if is_server {
        arguments.remove(0);
    }
    let number = |at: usize, usual: u64| arguments.get(at).map_or(Ok(usual), |text| text.parse::<u64>());
    let (bytes, rate, count) = (number(0, 64)? as usize, number(1, 1000)?, number(2, 2000)?);
    let is_parked = arguments.get(3).is_none_or(|idle| idle == "parked");
    let name = arguments.get(4).cloned().unwrap_or_else(|| format!("echo-{}", std::process::id()));
    let (there, back) = (format!("{name}-there"), format!("{name}-back"));
    let node = NodeBuilder::new().create::<ipc::Service>()?;
    if is_server {
        let end = End::new(&node, &back, &there, bytes, is_parked)?;
        loop {
            let bytes = end.receive()?;
            end.send(bytes)?;
        }
    }
    let end = End::new(&node, &there, &back, bytes, is_parked)?;
    let idle = if is_parked { "parked" } else { "spinning" };
    let mut server = Command::new(std::env::current_exe()?)
        .args(["serve", &bytes.to_string(), "0", "0", idle, &name])
        .spawn()?;
    std::thread::sleep(Duration::from_millis(500));
    let (mut times, period) = (Vec::new(), Duration::from_nanos(1_000_000_000 / rate.max(1)));
    let mut next = Instant::now();
    for _ in 0..count {
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        let begin = Instant::now();
        end.send(bytes)?;
        end.receive()?;
        times.push(begin.elapsed().as_nanos() as f64 / 1e3);
        next = (next + period).max(begin);
    }
    server.kill()?;
    server.wait()?;
    times.sort_by(f64::total_cmp);
    let at = |quantile: f64| times[((times.len() - 1) as f64 * quantile) as usize];
    println!(
        "iceoryx2 {idle} {bytes} B {rate}/s n={} p50 {:.2} p99 {:.2} max {:.1} us",
        times.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
    Ok(())
}
