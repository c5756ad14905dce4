//! Datagrams, row by row: exact sums against the count of the sender, also with a stop in the middle.

use super::udp::{LAST, receiver, send, sender, unread, until_bound};
use super::{Ended, Outcome, Wire, edge, operator, play, until};
use onbeat::testing::free_address;
use rustix::process::Signal;
use std::net::{SocketAddr, UdpSocket};

/// Bytes of samples in a datagram.
const EACH: u64 = 400;

#[test]
fn each_row_of_udp_is_exact() {
    play(&[
        ("foreign sender next to ours", foreign_sender_meanwhile),
        ("sender that comes back", sender_comes_back),
        ("swaps over a long way", swaps),
        ("swaps in a window", swaps_in_a_window),
        ("receiver that is not there", nobody_receives),
    ]);
}

/// A run with its first sender.
fn start() -> (Wire, UdpSocket, SocketAddr) {
    let address = free_address();
    let wire = Wire::start(&receiver(address, "header = true", "1 us"));
    until_bound(address);
    (wire, sender(address), address)
}

/// Sends the end, or stops the run when it has taken all.
fn end(mut wire: Wire, socket: &UdpSocket, number: u64, is_stopped: bool, sent: u64) -> Outcome {
    if is_stopped {
        let address = socket.peer_addr().expect("an address");
        until("the datagrams are taken", || (unread(address) == 0).then_some(())).expect("they are");
        wire.interrupt();
    } else {
        socket.send(&(number | LAST).to_le_bytes()).expect("sent");
    }
    let ended = wire.end();
    let arrived = ended.file("came").len() as u64 / EACH;
    Outcome { ended, status: 3, sent, arrived, unit: "datagrams" }
}

fn foreign_sender_meanwhile(is_stopped: bool) -> Outcome {
    let (wire, ours, address) = start();
    let foreign = sender(address);
    for number in 0..50 {
        send(&ours, number);
        if number % 5 == 0 {
            foreign.send(&[63; 400]).expect("sent");
        }
    }
    let outcome = end(wire, &ours, 50, is_stopped, 60);
    assert_eq!(outcome.ended.lost("datagrams", "another sender"), 10);
    outcome
}

fn sender_comes_back(is_stopped: bool) -> Outcome {
    let (wire, old, address) = start();
    (0..50).for_each(|number| send(&old, number));
    drop(old);
    let new = sender(address);
    // The first one never came.
    (1..30).for_each(|number| send(&new, number));
    end(wire, &new, 30, is_stopped, 50 + 30)
}

fn send_swapped(socket: &UdpSocket, address: SocketAddr) {
    // Of each 10, four come too late, one is missing, and one comes twice.
    for ten in 0..20 {
        until("there is room", || (unread(address) == 0).then_some(())).expect("there is");
        for digit in [0, 1, 6, 2, 3, 5, 5, 4, 8, 9] {
            send(socket, ten * 10 + digit);
        }
    }
}

fn swaps(is_stopped: bool) -> Outcome {
    let (wire, socket, address) = start();
    send_swapped(&socket, address);
    let outcome = end(wire, &socket, 200, is_stopped, 200);
    let Ended { answer, .. } = &outcome.ended;
    let lost = |reason| outcome.ended.lost("datagrams", reason);
    assert_eq!((lost("never came"), lost("after their successors")), (20, 80), "{answer:?}");
    assert!(answer.stdout.contains("20 datagrams were duplicates"), "{answer:?}");
    outcome
}

/// All that came is in order; at a stop, the last two still wait for the one before them.
fn swaps_in_a_window(is_stopped: bool) -> Outcome {
    let address = free_address();
    let wait = if is_stopped { "60 s" } else { "20 ms" };
    let window = format!("header = true\nreorder = 8\nreorder_wait = \"{wait}\"");
    let wire = Wire::start(&receiver(address, &window, "1 us"));
    until_bound(address);
    let socket = sender(address);
    send_swapped(&socket, address);
    let outcome = end(wire, &socket, 200, is_stopped, 200);
    let Ended { answer, .. } = &outcome.ended;
    let lost = |reason| outcome.ended.lost("datagrams", reason);
    assert_eq!((lost("never came"), lost("after their successors")), (20, 0), "{answer:?}");
    assert_eq!(lost("waited for a missing one"), if is_stopped { 2 } else { 0 }, "{answer:?}");
    let came = outcome.ended.file("came");
    let came = came.chunks(EACH as usize).map(|datagram| datagram[0]);
    let numbers = (0..200_u64).filter(|number| number % 10 != 7).map(|number| (number % 251) as u8);
    assert!(came.eq(numbers.take(if is_stopped { 178 } else { 180 })), "{answer:?}");
    // The wait of the last two is part of their latency, which counts from their arrival in the kernel.
    let longest_ns = outcome.ended.record["paths"][0]["latency"]["max_ns"].as_u64().expect("a latency");
    assert!(is_stopped || longest_ns >= 20_000_000, "{longest_ns}");
    outcome
}

fn nobody_receives(is_stopped: bool) -> Outcome {
    // An unused address of this machine, with a port that is never assigned.
    let count = if is_stopped { "" } else { "count = 300\n" };
    let paced = format!("{count}rate = \"1 MHz\"\npace = \"real\"\nsize = 300");
    let pipeline = operator("from", "null.source", &paced)
        + &operator("tx", "udp.sink", "address = \"127.9.8.7:1\"")
        + &edge("from", "tx");
    let mut wire = Wire::start(&pipeline);
    if is_stopped {
        until("it runs", || wire.is_running().then_some(())).expect("it does");
        wire.interrupt();
    }
    let ended = wire.end();
    // One datagram per message.
    let sent = ended.messages();
    Outcome { ended, status: if sent > 0 { 3 } else { 0 }, sent, arrived: 0, unit: "datagrams" }
}

#[test]
fn a_foreign_sender_does_not_hold_the_end() {
    let (mut wire, socket, _) = start();
    // The datagram and the signal are there at the same time.
    wire.signal(Signal::STOP);
    socket.send(&[63; 400]).expect("sent");
    wire.interrupt();
    wire.signal(Signal::CONT);
    let ended = wire.end();
    if ended.answer.status == Some(1) {
        assert!(ended.answer.stderr.contains("set `header = false`"), "{:?}", ended.answer);
    } else {
        ended.check("foreign");
        assert_eq!(ended.lost("datagrams", "waited in the socket"), 1, "{:?}", ended.answer);
    }
}
