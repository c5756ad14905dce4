//! Peers that vanish: the link between two network namespaces goes down. These tests need root, and `ip`.

use super::tcp::{accept, until_full};
use super::udp::{LAST, numbered, receiver, send, unread_of, until_bound_of};
use super::{Outcome, Wire, edge, operator, play, until};
use crate::network::Network;
use onbeat_os::socket::{unacknowledged, unread};
use rustix::process::Signal;
use std::fs;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};

/// What only these tests do with a network.
impl Network {
    /// Starts a run on the other side.
    fn start(&self, pipeline: &str) -> Wire {
        Wire::start_by(pipeline, |place, arguments| place.start_in(&self.name, arguments))
    }

    fn listen(&self) -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind((self.here, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        (listener, address)
    }
}

#[test]
#[allow(clippy::disallowed_macros, reason = "a test says what it skips")]
fn each_row_of_a_peer_that_vanishes_is_exact() {
    if let Err(why) = Network::new() {
        eprintln!("skipped: no network namespace: {why}");
        return;
    }
    play(&[
        ("receiver that vanishes", receiver_vanishes),
        ("receiver that vanishes at the end", receiver_vanishes_at_the_end),
        ("sender that vanishes", sender_vanishes),
        ("receiver that is not there yet", link_is_down),
        ("sender of datagrams that vanishes and comes back", datagrams_vanish),
    ]);
}

fn link() -> Network {
    Network::new().expect("as before")
}

/// A peer takes what its socket holds, and vanishes.
fn receiver_vanishes(is_stopped: bool) -> Outcome {
    let link = link();
    let (listener, address) = link.listen();
    let pipeline = operator("from", "null.source", "size = 1000")
        + &operator("tx", "tcp.sink", &format!("connect = \"{address}\"\npatience = \"500 ms\""))
        + &edge("from", "tx");
    let mut wire = link.start(&pipeline);
    let peer = accept(&listener);
    until_full(&peer);
    let arrived = unread(&peer).expect("a count");
    link.set("down");
    if is_stopped {
        wire.interrupt();
    }
    let ended = wire.end();
    let left = ended.record["edges"][0]["unread"].as_u64().expect("a count");
    let sent = (ended.messages() - left) * 4000;
    Outcome { ended, status: if is_stopped { 3 } else { 1 }, sent, arrived, unit: "bytes" }
}

/// A stream that ends while the peer is away.
fn receiver_vanishes_at_the_end(is_stopped: bool) -> Outcome {
    let link = link();
    let (listener, address) = link.listen();
    let pipeline =
        operator("from", "null.source", "size = 100\nrate = \"20 kHz\"\npace = \"real\"\ncount = 150")
            + &operator("tx", "tcp.sink", &format!("connect = \"{address}\"\npatience = \"500 ms\""))
            + &edge("from", "tx");
    let mut wire = link.start(&pipeline);
    let peer = accept(&listener);
    let begun = || (unread(&peer).expect("a count") > 10_000).then_some(());
    until("some of it has come", begun).expect("it has");
    // Nothing is on the way when the link goes down.
    wire.signal(Signal::STOP);
    until("all is acknowledged", || (unsent(&wire, address) == 0).then_some(())).expect("it is");
    let arrived = unread(&peer).expect("a count");
    link.set("down");
    wire.signal(Signal::CONT);
    if is_stopped {
        wire.interrupt();
    }
    let ended = wire.end();
    let sent = ended.messages() * 400;
    // A stop may come before the next message.
    let status = if sent == arrived { 0 } else { 3 };
    assert!(is_stopped || status == 3);
    Outcome { ended, status, sent, arrived, unit: "bytes" }
}

/// Bytes that the run has sent to this address, and that are not acknowledged.
fn unsent(wire: &Wire, to: SocketAddr) -> u64 {
    let port = format!(":{:04X}", to.port());
    let table = fs::read_to_string(format!("/proc/{}/net/tcp", wire.child.id())).expect("a table");
    let queue = table.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.get(2).filter(|peer| peer.ends_with(&port))?;
        u64::from_str_radix(words.get(4)?.split_once(':')?.0, 16).ok()
    });
    queue.expect("the connection")
}

fn sender_vanishes(is_stopped: bool) -> Outcome {
    const SENT: usize = 100_000;
    let link = link();
    let (listener, address) = link.listen();
    let pipeline = operator("rx", "tcp.source", &format!("connect = \"{address}\"\npatience = \"1 s\""))
        + &operator("file", "file.sink", "path = \"came\"")
        + &edge("rx", "file");
    let mut wire = link.start(&pipeline);
    let mut peer = accept(&listener);
    peer.write_all(&[1; SENT]).expect("written");
    until("it has arrived", || (unacknowledged(&peer).ok()? == 0).then_some(())).expect("it has");
    link.set("down");
    if is_stopped {
        wire.interrupt();
    }
    let ended = wire.end();
    if is_stopped {
        let arrived = ended.file("came").len() as u64;
        let status = if arrived < SENT as u64 { 3 } else { 0 };
        return Outcome { ended, status, sent: SENT as u64, arrived, unit: "bytes" };
    }
    assert!(ended.answer.stderr.contains("the connection with"), "{:?}", ended.answer);
    let arrived = ended.file("came.part").len() as u64;
    Outcome { ended, status: 1, sent: SENT as u64, arrived, unit: "bytes" }
}

fn link_is_down(is_stopped: bool) -> Outcome {
    let link = link();
    let address = SocketAddr::new(link.here, 9000);
    link.set("down");
    let pipeline = operator("from", "null.source", "size = 1000")
        + &operator("tx", "tcp.sink", &format!("connect = \"{address}\"\npatience = \"1 s\""))
        + &edge("from", "tx");
    let mut wire = link.start(&pipeline);
    if is_stopped {
        until("it runs", || wire.is_running().then_some(())).expect("it does");
        wire.interrupt();
    }
    let ended = wire.end();
    if ended.answer.status == Some(1) {
        // Its own patience was over first.
        assert!(ended.answer.stderr.contains("cannot connect to"), "{:?}", ended.answer);
        return Outcome { ended, status: 1, sent: 0, arrived: 0, unit: "bytes" };
    }
    assert!(is_stopped);
    let sent = ended.messages() * 4000;
    Outcome { ended, status: if sent > 0 { 3 } else { 0 }, sent, arrived: 0, unit: "bytes" }
}

fn datagrams_vanish(is_stopped: bool) -> Outcome {
    let link = link();
    let address = SocketAddr::new(link.there, 9000);
    let mut wire = link.start(&receiver(address, "header = true", "1 us").replace("\"1 s\"", "\"5 s\""));
    let process = wire.child.id().to_string();
    until_bound_of(&process, address);
    let socket = UdpSocket::bind((link.here, 0)).expect("a socket");
    socket.connect(address).expect("an address");
    let is_taken = || (unread_of(&process, address) == 0).then_some(());
    (0..50).for_each(|number| send(&socket, number));
    until("the datagrams are taken", is_taken).expect("they are");
    link.set("down");
    for number in 50..80 {
        socket.send(&numbered(number)).expect_err("it does not leave");
    }
    link.set("up");
    let answers = || {
        let refused = TcpStream::connect(SocketAddr::new(link.there, 1)).err()?.kind();
        (refused == ErrorKind::ConnectionRefused).then_some(())
    };
    until("the link works", answers).expect("it does");
    (80..100).for_each(|number| send(&socket, number));
    if is_stopped {
        until("the datagrams are taken", is_taken).expect("they are");
        wire.interrupt();
    } else {
        socket.send(&(100 | LAST).to_le_bytes()).expect("sent");
    }
    let ended = wire.end();
    let arrived = ended.file("came").len() as u64 / 400;
    assert_eq!(ended.lost("datagrams", "never came"), 30, "{:?}", ended.answer);
    Outcome { ended, status: 3, sent: 100, arrived, unit: "datagrams" }
}
