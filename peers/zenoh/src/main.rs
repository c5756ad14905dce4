//! The time of an echo through plain Zenoh between two processes, over the loopback: what `link_echo` is
//! compared with.
//!
//! Arguments: bytes of a message, messages per second, number of messages. Publishers have the priority
//! `RealTime` and are express; shared memory is not compiled in.

use std::process::Command;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use zenoh::Wait;
use zenoh::qos::{CongestionControl, Priority};

fn session(mode: &str, address: &str) -> zenoh::Session {
    let mut config = zenoh::Config::default();
    config.insert_json5("mode", "\"peer\"").unwrap();
    config.insert_json5("scouting/multicast/enabled", "false").unwrap();
    config.insert_json5(&format!("{mode}/endpoints"), &format!("[\"tcp/{address}\"]")).unwrap();
    zenoh::open(config).wait().unwrap()
}

fn publisher<'a>(session: &'a zenoh::Session, key: &'static str) -> zenoh::pubsub::Publisher<'a> {
    session
        .declare_publisher(key)
        .priority(Priority::RealTime)
        .congestion_control(CongestionControl::Block)
        .express(true)
        .wait()
        .unwrap()
}

fn serve(address: &str) {
    let session = session("listen", address);
    let (sender, receiver) = channel();
    let _subscriber =
        session.declare_subscriber("echo/there").callback(move |sample| sender.send(sample).unwrap()).wait().unwrap();
    let back = publisher(&session, "echo/back");
    // From the callback itself, a put could wait for the very thread that has to make room.
    while let Ok(sample) = receiver.recv() {
        back.put(sample.payload().clone()).wait().unwrap();
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "serve") {
        return serve(&arguments[1]);
    }
    let number = |at: usize, usual: u64| arguments.get(at).map_or(usual, |text| text.parse().unwrap());
    let (bytes, rate, count) = (number(0, 64) as usize, number(1, 1000), number(2, 2000));
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut server = Command::new(std::env::current_exe().unwrap()).args(["serve", &address]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let session = session("connect", &address);
    let (sender, receiver) = channel();
    let _subscriber = session
        .declare_subscriber("echo/back")
        .callback(move |sample| sender.send(sample.payload().len()).unwrap())
        .wait()
        .unwrap();
    let there = publisher(&session, "echo/there");
    std::thread::sleep(Duration::from_millis(300));
    let (mut times, period) = (Vec::new(), Duration::from_nanos(1_000_000_000 / rate.max(1)));
    let mut next = Instant::now();
    for _ in 0..count {
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        let begin = Instant::now();
        there.put(vec![0_u8; bytes]).wait().unwrap();
        receiver.recv().unwrap();
        times.push(begin.elapsed().as_nanos() as f64 / 1e3);
        next = (next + period).max(begin);
    }
    times.sort_by(f64::total_cmp);
    let at = |quantile: f64| times[((times.len() - 1) as f64 * quantile) as usize];
    println!("zenoh {bytes} B {rate}/s n={} p50 {:.1} p99 {:.1} max {:.1} us", times.len(), at(0.5), at(0.99), at(1.0));
    server.kill().unwrap();
    server.wait().unwrap();
}
