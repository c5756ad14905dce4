//! Connections: half closes, resets, peers that never read, close early, or are not there.

use super::{Wire, edge, operator, until};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// From `tcp.source` to a file.
fn connected(address: SocketAddr) -> String {
    operator("rx", "tcp.source", &format!("connect = \"{address}\""))
        + &operator("file", "file.sink", "path = \"came\"")
        + &edge("rx", "file")
}

pub(super) fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

/// Waits for a call.
pub(super) fn accept(listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(true).expect("a socket");
    let mut peer = None;
    let called = || {
        peer = listener.accept().ok();
        peer.is_some().then_some(())
    };
    until("the run calls", called).expect("it does");
    let peer = peer.expect("a call").0;
    // A read that waits longer is an error.
    peer.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    peer
}

#[test]
fn half_a_close_is_the_end() {
    let (listener, address) = listener();
    let wire = Wire::start(&connected(address));
    let mut peer = accept(&listener);
    peer.write_all(&[1; 100_000]).expect("written");
    peer.shutdown(Shutdown::Write).expect("half closed");
    // It goes on reading until the other side closes.
    peer.read_to_end(&mut Vec::new()).expect("the end");
    let ended = wire.end();
    ended.check("half close");
    assert_eq!((ended.answer.status, ended.file("came").len()), (Some(0), 100_000));
}

#[test]
fn a_reset_is_an_error_and_what_came_is_kept() {
    let (listener, address) = listener();
    // An error ends a run at once, whatever other operators wait for.
    let (silent, other) = self::listener();
    let wire = Wire::start(&(connected(address) + &flood(&format!("connect = \"{other}\""))));
    let mut peer = accept(&listener);
    let never_reads = accept(&silent);
    until_full(&never_reads);
    peer.write_all(&[1; 100_000]).expect("written");
    let taken = || (onbeat_os::socket::unacknowledged(&peer).ok()? == 0).then_some(());
    until("it has arrived", taken).expect("it has");
    let written = || (wire.place.path("out/came.part").metadata().ok()?.len() > 0).then_some(());
    until("some of it is in the file", written).expect("it is");
    onbeat_os::socket::reset_on_close(&peer).expect("a socket");
    drop(peer);
    let ended = wire.end();
    assert_eq!(ended.answer.status, Some(1), "{:?}", ended.answer);
    assert!(ended.answer.stderr.contains("the connection with"), "{:?}", ended.answer);
    let kept = ended.file("came.part");
    assert!(!kept.is_empty() && kept.len().is_multiple_of(4) && kept.iter().all(|&byte| byte == 1));
    assert!(ended.answer.stdout.contains("came.part has the data from before"), "{:?}", ended.answer);
}

#[test]
fn what_is_unread_at_a_stop_is_counted() {
    let (listener, address) = listener();
    let pipeline = operator("rx", "tcp.source", &format!("connect = \"{address}\""))
        + &operator("slow", "load", "busy = \"10 ms\"")
        + &operator("file", "file.sink", "path = \"came\"")
        + &edge("rx", "slow")
        + &edge("slow", "file");
    let mut wire = Wire::start(&pipeline);
    let mut peer = accept(&listener);
    // As much as both sockets take while nobody reads much.
    peer.set_nonblocking(true).expect("a socket");
    let mut written = 0;
    loop {
        match peer.write(&[1; 4096]) {
            Ok(count) => written += count as u64,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    wire.interrupt();
    let ended = wire.end();
    ended.check("unread");
    let waits = ended.lost("bytes", "waited in the socket");
    let came = ended.file("came").len() as u64;
    let own = onbeat_os::socket::unacknowledged(&peer).expect("a count");
    // Some of what waits may not have been acknowledged before the reset.
    let all = waits > 0 && came + waits <= written && written <= came + waits + own;
    assert!(all, "{came} + {waits} + {own} of {written}");
}

/// From an endless source to a peer.
fn flood(parameters: &str) -> String {
    operator("from", "null.source", "size = 1000")
        + &operator("tx", "tcp.sink", parameters)
        + &edge("from", "tx")
}

/// Waits until no more bytes arrive in a socket.
pub(super) fn until_full(peer: &TcpStream) {
    let (mut last, mut same) = (0, 0);
    let full = || {
        let now = rustix::io::ioctl_fionread(peer).expect("a count");
        same = if now == last && now > 0 { same + 1 } else { 0 };
        last = now;
        (same > 40).then_some(())
    };
    until("the socket is full", full).expect("it is");
}

/// Reads until the connection ends. Returns the number of bytes, and whether it was reset.
pub(super) fn drain(peer: &mut TcpStream) -> (u64, bool) {
    let (mut bytes, mut buffer) = (0, [0; 65536]);
    loop {
        match peer.read(&mut buffer) {
            Ok(0) => return (bytes, false),
            Ok(count) => bytes += count as u64,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return (bytes, true),
        }
    }
}

#[test]
fn a_peer_that_never_reads_does_not_hold_the_end() {
    for (how, scheduler) in [("interrupt", "greedy"), ("duration", "pinned"), ("interrupt", "event")] {
        let (listener, address) = listener();
        let duration = if how == "duration" { "duration = \"200 ms\"\n" } else { "" };
        let workers = if scheduler == "greedy" { "" } else { "workers = 2\n" };
        let head = format!("{duration}{workers}scheduler = \"{scheduler}\"\n");
        let mut wire =
            Wire::start(&(head + &flood(&format!("connect = \"{address}\"\npatience = \"300 ms\""))));
        let mut peer = accept(&listener);
        if how == "interrupt" {
            until_full(&peer);
            wire.interrupt();
        }
        let ended = wire.end();
        ended.check(how);
        assert_eq!(ended.answer.status, Some(3), "{how}, {scheduler}");
        let (received, is_reset) = drain(&mut peer);
        // A stream that is not complete does not look complete.
        assert!(is_reset, "{how}, {scheduler}");
        let lost = ended.lost("bytes", "did not take");
        assert_eq!(received + lost, ended.messages() * 4000, "{how}, {scheduler}: {lost} lost");
    }
}

#[test]
fn a_peer_that_closes_is_a_loss_unless_it_may() {
    for (may_close, framing, expected) in
        [(false, "raw", 3), (true, "raw", 0), (false, "strict", 1), (true, "strict", 0)]
    {
        let (listener, address) = listener();
        let parameters = format!("connect = \"{address}\"\nmay_close = {may_close}\nframing = \"{framing}\"");
        let wire = Wire::start(&flood(&parameters));
        let mut peer = accept(&listener);
        peer.read_exact(&mut [0; 100_000]).expect("samples");
        drop(peer);
        let ended = wire.end();
        assert_eq!(ended.answer.status, Some(expected), "{may_close}, {framing}: {:?}", ended.answer);
        assert_eq!(ended.lost("bytes", "the peer closed") > 0, !may_close, "{may_close}, {framing}");
        let said = format!("{}{}", ended.answer.stdout, ended.answer.stderr);
        assert!(said.contains("closed the connection before the end"), "{said}");
    }
}

#[test]
fn a_peer_that_is_not_there_does_not_hold_the_end() {
    // An unused address of this machine, with a port that is never assigned; and one that nobody calls.
    for parameters in ["connect = \"127.9.8.7:1\"", "listen = \"127.0.0.1:0\""] {
        let mut wire = Wire::start(&flood(&format!("{parameters}\npatience = \"1 s\"")));
        until("it runs", || wire.is_running().then_some(())).expect("it does");
        wire.interrupt();
        let ended = wire.end();
        // It may have used up its patience before the stop came.
        if ended.answer.status != Some(1) {
            ended.check(parameters);
            let lost = ended.lost("bytes", "there was no connection");
            assert_eq!(lost, ended.messages() * 4000, "{parameters}");
        }
        let source = operator("rx", "tcp.source", &format!("{parameters}\npatience = \"50 s\""))
            + &operator("end", "null.sink", "")
            + &edge("rx", "end");
        let wire = Wire::start(&format!("duration = \"100 ms\"\n{source}"));
        assert_eq!(wire.end().answer.status, Some(0), "{parameters}");
    }
}
