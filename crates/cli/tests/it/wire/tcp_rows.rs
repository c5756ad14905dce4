//! Connections, row by row: exact sums against the count of the peer, also with a stop in the middle.

use super::tcp::{accept, drain, listener, until_full};
use super::{Ended, Outcome, Wire, edge, operator, play, until};
use onbeat_os::socket::{reset_on_close, unacknowledged, unread};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

/// Bytes that fit the sockets.
const SENT: usize = 60_000;
/// Bytes of a message of `null.source`.
const EACH: u64 = 4000;
/// Messages that do not fit the sockets.
const MANY: u64 = 4000;

#[test]
fn each_row_of_tcp_is_exact() {
    play(&[
        ("sender faster than the sink", fast_sender),
        ("sender that half-closes", half_closed_sender),
        ("sender that resets", reset_by_sender),
        ("sender that comes back", sender_comes_back),
        ("receiver that half-closes", half_closed_receiver),
        ("receiver that never reads", never_reads),
        ("receiver that never reads to the end", never_reads_to_the_end),
        ("receiver that resets", reset_by_receiver),
        ("receiver that comes back", receiver_comes_back),
    ]);
}

/// From `tcp.source` to a file, through an operator that takes its time.
fn slow_file(parameters: &str) -> String {
    "[defaults]\nquantum = \"4 KiB\"\n".to_string()
        + &operator("rx", "tcp.source", parameters)
        + &operator("slow", "load", "busy = \"10 ms\"")
        + &operator("file", "file.sink", "path = \"came\"")
        + &edge("rx", "slow")
        + &edge("slow", "file")
}

/// Sends all, and waits until it is in the socket of the receiver.
fn fill(peer: &mut TcpStream) {
    peer.write_all(&[1; SENT]).expect("written");
    until("it has arrived", || (unacknowledged(&*peer).ok()? == 0).then_some(())).expect("it has");
}

/// A run whose sender is a peer that does this after all was sent.
fn receive(is_stopped: bool, and_then: impl FnOnce(&mut TcpStream)) -> Outcome {
    let (listener, address) = listener();
    let mut wire = Wire::start(&slow_file(&format!("connect = \"{address}\"")));
    let mut peer = accept(&listener);
    fill(&mut peer);
    if is_stopped {
        wire.interrupt();
    }
    and_then(&mut peer);
    let ended = wire.end();
    // The bytes that were left at the stop.
    let status = if ended.lost("bytes", "waited in the socket") > 0 { 3 } else { 0 };
    let arrived = ended.file("came").len() as u64;
    Outcome { ended, status, sent: SENT as u64, arrived, unit: "bytes" }
}

fn fast_sender(is_stopped: bool) -> Outcome {
    // A stop ends it while the connection is open.
    receive(is_stopped, |peer| {
        if !is_stopped {
            peer.shutdown(Shutdown::Both).expect("closed");
        }
    })
}

fn half_closed_sender(is_stopped: bool) -> Outcome {
    receive(is_stopped, |peer| {
        peer.shutdown(Shutdown::Write).expect("half closed");
        drain(peer);
    })
}

fn reset_by_sender(is_stopped: bool) -> Outcome {
    let (listener, address) = listener();
    let mut wire = Wire::start(&slow_file(&format!("connect = \"{address}\"")));
    let mut peer = accept(&listener);
    fill(&mut peer);
    if is_stopped {
        wire.interrupt();
    }
    reset_on_close(&peer).expect("a socket");
    drop(peer);
    let ended = wire.end();
    if is_stopped {
        let arrived = ended.file("came").len() as u64;
        return Outcome { ended, status: 3, sent: SENT as u64, arrived, unit: "bytes" };
    }
    assert!(ended.answer.stderr.contains("the connection with"), "{:?}", ended.answer);
    // All that came before the reset is kept.
    let arrived = ended.file("came.part").len() as u64;
    Outcome { ended, status: 1, sent: SENT as u64, arrived, unit: "bytes" }
}

/// A sender whose first connection is reset.
fn sender_comes_back(is_stopped: bool) -> Outcome {
    let address = listener().1;
    let restart = "on_error = \"restart\"\nrestart = { delay = \"10 ms\" }";
    let mut wire = Wire::start(&slow_file(&format!("listen = \"{address}\"\n{restart}")));
    let mut first = call(address);
    fill(&mut first);
    reset_on_close(&first).expect("a socket");
    drop(first);
    let mut second = call(address);
    fill(&mut second);
    if is_stopped {
        wire.interrupt();
    } else {
        drop(second);
    }
    let ended = wire.end();
    let faults = ended.record["faults"].as_array().map_or(0, Vec::len);
    assert_eq!(faults, 1, "{:?}", ended.answer);
    let arrived = ended.file("came").len() as u64;
    Outcome { ended, status: if is_stopped { 3 } else { 0 }, sent: 2 * SENT as u64, arrived, unit: "bytes" }
}

/// Calls until somebody answers.
fn call(address: SocketAddr) -> TcpStream {
    let mut peer = None;
    let answered = || {
        peer = TcpStream::connect(address).ok();
        peer.is_some().then_some(())
    };
    until("the run listens", answered).expect("it does");
    peer.expect("a connection")
}

/// To a peer: endless, or with an end.
fn many(is_stopped: bool, parameters: &str) -> (TcpListener, Wire) {
    let count = if is_stopped { String::new() } else { format!("count = {MANY}\n") };
    send("", &count, parameters)
}

fn send(head: &str, count: &str, parameters: &str) -> (TcpListener, Wire) {
    let (listener, address) = listener();
    let pipeline = head.to_string()
        + &operator("from", "null.source", &format!("{count}size = 1000"))
        + &operator(
            "tx",
            "tcp.sink",
            &format!("connect = \"{address}\"\npatience = \"300 ms\"\n{parameters}"),
        )
        + &edge("from", "tx");
    let wire = Wire::start(&pipeline);
    (listener, wire)
}

/// Reads to the end, with a stop after the first samples or none. Returns the number of bytes.
fn take_all(peer: &mut TcpStream, mut wire: Wire, is_stopped: bool) -> (u64, Ended) {
    const FIRST: u64 = 400_000;
    peer.read_exact(&mut vec![0; FIRST as usize]).expect("samples");
    if is_stopped {
        wire.interrupt();
    }
    let (rest, is_reset) = drain(peer);
    let ended = wire.end();
    assert!(!is_reset);
    (FIRST + rest, ended)
}

fn half_closed_receiver(is_stopped: bool) -> Outcome {
    let (listener, wire) = many(is_stopped, "");
    let mut peer = accept(&listener);
    peer.shutdown(Shutdown::Write).expect("half closed");
    let (arrived, ended) = take_all(&mut peer, wire, is_stopped);
    let sent = ended.messages() * EACH;
    Outcome { ended, status: 0, sent, arrived, unit: "bytes" }
}

fn never_reads(is_stopped: bool) -> Outcome {
    // Such a peer holds the run back until its time is over.
    let (listener, mut wire) = send(if is_stopped { "" } else { "duration = \"500 ms\"\n" }, "", "");
    let mut peer = accept(&listener);
    until_full(&peer);
    if is_stopped {
        wire.interrupt();
    }
    let ended = wire.end();
    let arrived = drain(&mut peer).0;
    let sent = ended.messages() * EACH;
    Outcome { ended, status: 3, sent, arrived, unit: "bytes" }
}

/// The source ends while messages wait for the peer.
fn never_reads_to_the_end(is_stopped: bool) -> Outcome {
    // With the sockets, the edge holds all.
    let head = "[defaults]\nquantum = \"4 KiB\"\ncapacity = 2048\n";
    let (listener, mut wire) = send(head, "count = 2000\n", "");
    let mut peer = accept(&listener);
    if is_stopped {
        until_full(&peer);
        wire.interrupt();
    }
    let ended = wire.end();
    let arrived = drain(&mut peer).0;
    assert_eq!(ended.messages(), 2000);
    Outcome { ended, status: 3, sent: 2000 * EACH, arrived, unit: "bytes" }
}

fn reset_by_receiver(is_stopped: bool) -> Outcome {
    let (listener, mut wire) = many(is_stopped, "");
    let peer = accept(&listener);
    until_full(&peer);
    let arrived = unread(&peer).expect("a count");
    if is_stopped {
        // The reset is there when the run sees the signal.
        wire.signal(Signal::STOP);
        wire.interrupt();
    }
    reset_on_close(&peer).expect("a socket");
    drop(peer);
    if is_stopped {
        wire.signal(Signal::CONT);
    }
    let ended = wire.end();
    let sent = ended.messages() * EACH;
    Outcome { ended, status: 3, sent, arrived, unit: "bytes" }
}

/// A receiver whose first connection is reset.
fn receiver_comes_back(is_stopped: bool) -> Outcome {
    let restart = "framing = \"strict\"\non_error = \"restart\"\nrestart = { delay = \"10 ms\" }";
    let (listener, wire) = many(is_stopped, restart);
    let first = accept(&listener);
    until_full(&first);
    let arrived = unread(&first).expect("a count");
    reset_on_close(&first).expect("a socket");
    drop(first);
    let mut second = accept(&listener);
    let (rest, ended) = take_all(&mut second, wire, is_stopped);
    // Each message has a length before it, and so has the end.
    let sent = ended.messages() * (EACH + 4) + 4;
    Outcome { ended, status: 3, sent, arrived: arrived + rest, unit: "bytes" }
}
