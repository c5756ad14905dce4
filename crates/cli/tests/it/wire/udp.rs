//! Datagrams: bursts, gaps, swaps, foreign senders, and senders that come back.

use super::{Ended, Place, Wire, edge, operator, until};
use onbeat::testing::free_address;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};

/// Mark of the last datagram.
pub(super) const LAST: u64 = 1 << 63;

/// Waits until somebody has a UDP socket at this port.
pub(super) fn until_bound(address: SocketAddr) {
    until_bound_of("self", address);
}

/// Waits until there is a UDP socket at this port of the network of a process.
pub(super) fn until_bound_of(process: &str, address: SocketAddr) {
    let bound = || waiting(process, address).map(drop);
    until("the receiver has its socket", bound).expect("it does");
}

/// From `udp.source` to a file, through an operator that takes its time.
pub(super) fn receiver(address: SocketAddr, parameters: &str, busy: &str) -> String {
    let parameters = format!("bind = \"{address}\"\ntimeout = \"1 s\"\n{parameters}");
    operator("rx", "udp.source", &parameters)
        + &operator("slow", "load", &format!("busy = \"{busy}\""))
        + &operator("file", "file.sink", "path = \"came\"")
        + &edge("rx", "slow")
        + &edge("slow", "file")
}

pub(super) fn sender(to: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.connect(to).expect("an address");
    socket
}

/// A datagram of 100 samples with a number.
pub(super) fn numbered(number: u64) -> Vec<u8> {
    number.to_le_bytes().into_iter().chain([(number % 251) as u8; 400]).collect()
}

pub(super) fn send(socket: &UdpSocket, number: u64) {
    let sent = socket.send(&numbered(number)).expect("a datagram leaves");
    assert_eq!(sent, 408);
}

#[test]
fn each_datagram_is_in_the_file_or_counted() {
    const SENT: u64 = 20_000;
    for (header, busy, is_interrupted) in [
        (false, "20 ms", false),
        (false, "20 ms", true),
        (true, "20 ms", false),
        (true, "20 ms", true),
        (false, "1 us", false),
        (true, "1 us", true),
    ] {
        let what = format!("header {header}, busy {busy}, interrupted {is_interrupted}");
        let address = free_address();
        let mut wire = Wire::start(&receiver(address, &format!("header = {header}"), busy));
        until_bound(address);
        let socket = sender(address);
        for number in 0..SENT {
            socket.send(&numbered(number)[if header { 0 } else { 8 }..]).expect("sent");
        }
        if is_interrupted {
            wire.interrupt();
        } else if header {
            // The end comes when there is room for it.
            until("the socket is empty", || (unread(address) == 0).then_some(())).expect("it is");
            socket.send(&(SENT | LAST).to_le_bytes()).expect("sent");
        }
        let ended = wire.end();
        ended.check(&what);
        let received = ended.file("came").len() as f64 / 400.0;
        // A datagram whose first part is in the file when the run is stopped.
        let rest = ended.lost("samples", "waited") as f64 / 100.0;
        let lost = ended.lost("datagrams", "");
        assert_eq!(received + rest + lost as f64, SENT as f64, "{what}: {:?}", ended.answer);
        assert!(busy != "20 ms" || lost > 0, "{what}");
    }
}

/// Sends these numbers, the last of which is the end. Returns what became of it.
fn sent(numbers: &[u64], end: Option<u64>) -> Ended {
    let address = free_address();
    let mut wire = Wire::start(&receiver(address, "header = true", "1 us"));
    until_bound(address);
    let socket = sender(address);
    numbers.iter().for_each(|&number| send(&socket, number));
    match end {
        Some(number) => {
            socket.send(&(number | LAST).to_le_bytes()).expect("sent");
        }
        // Only a stop ends it.
        None => {
            let taken = || (unread(address) == 0).then_some(());
            until("the datagrams are taken", taken).expect("they are");
            wire.interrupt();
        }
    }
    wire.end()
}

/// Bytes that wait in the UDP socket at this port.
pub(super) fn unread(address: SocketAddr) -> u64 {
    unread_of("self", address)
}

/// Bytes that wait in the UDP socket at this port of the network of a process.
pub(super) fn unread_of(process: &str, address: SocketAddr) -> u64 {
    waiting(process, address).expect("the socket")
}

fn waiting(process: &str, address: SocketAddr) -> Option<u64> {
    let mut end = format!(":{:04X}", address.port());
    if let IpAddr::V4(ip) = address.ip()
        && ip.is_loopback()
    {
        // Other tests have other addresses of the loopback, and perhaps the same port.
        end = format!("{:08X}{end}", u32::from_ne_bytes(ip.octets()));
    }
    let table = fs::read_to_string(format!("/proc/{process}/net/udp")).ok()?;
    table.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.get(1).filter(|local| local.ends_with(&end))?;
        u64::from_str_radix(words.get(4)?.split_once(':')?.1, 16).ok()
    })
}

#[test]
fn gaps_and_swaps_are_counted() {
    for is_interrupted in [false, true] {
        let end = |number| (!is_interrupted).then_some(number);
        let all = sent(&[0, 1, 2], end(3));
        all.check("all");
        assert_eq!((all.answer.status, all.file("came").len()), (Some(0), 1200));
        let gap = sent(&[0, 1, 5, 6], end(7));
        gap.check("gap");
        assert_eq!((gap.lost("datagrams", "never came"), gap.file("came").len()), (3, 1600));
        let swap = sent(&[0, 2, 1, 3, 3], end(4));
        swap.check("swap");
        assert_eq!((swap.lost("datagrams", ""), swap.lost("datagrams", "after their successors")), (1, 1));
        assert_eq!(swap.file("came").len(), 1200);
        assert!(swap.answer.stdout.contains("1 datagrams were duplicates"), "{}", swap.answer.stdout);
    }
}

#[test]
fn losses_are_seen_while_it_runs() {
    let address = free_address();
    let place = Place::new();
    fs::write(place.path("wire.toml"), receiver(address, "header = true", "1 us")).expect("a file");
    let child = place.start(&["run", "wire.toml", "--metrics", "127.0.0.1:0"]);
    until_bound(address);
    let mut metrics = None;
    let said = || {
        let said = fs::read_to_string(place.path("stderr.txt")).ok()?;
        metrics = Some(said.split("http://").nth(1)?.split_once("/metrics\n")?.0.to_string());
        Some(())
    };
    until("it says where its metrics are", said).expect("it does");
    let socket = sender(address);
    let counted = || {
        // Again and again, so that the source does not run into its timeout.
        [3, 7].into_iter().for_each(|number| send(&socket, number));
        let mut client = TcpStream::connect(metrics.as_deref().expect("an address")).ok()?;
        client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").ok()?;
        let mut text = String::new();
        client.read_to_string(&mut text).ok()?;
        text.lines()
            .any(|line| {
                line.starts_with("onbeat_operator_lost_total{operator=\"rx\"") && line.ends_with(" 6.0")
            })
            .then_some(())
    };
    until("the metrics have the loss", counted).expect("they do");
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it lives");
    assert_eq!(place.end(child).status, Some(3));
}

#[test]
fn a_foreign_sender_ends_the_run_with_the_fix() {
    let address = free_address();
    let wire = Wire::start(&receiver(address, "header = true", "1 us"));
    until_bound(address);
    sender(address).send(&[63; 400]).expect("sent");
    let ended = wire.end();
    assert_eq!(ended.answer.status, Some(1));
    let said = &ended.answer.stderr;
    assert!(said.contains("operator `rx`") && said.contains("set `header = false`"), "{said}");
}

#[test]
fn a_sender_that_comes_back_is_followed() {
    let address = free_address();
    let wire = Wire::start(&receiver(address, "header = true", "1 us"));
    until_bound(address);
    let old = sender(address);
    (0..50).for_each(|number| send(&old, number));
    drop(old);
    let new = sender(address);
    (0..30).for_each(|number| send(&new, number));
    new.send(&(31 | LAST).to_le_bytes()).expect("sent");
    let ended = wire.end();
    ended.check("it comes back");
    assert_eq!((ended.file("came").len(), ended.lost("datagrams", "never came")), (80 * 400, 1));
}
