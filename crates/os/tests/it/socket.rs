//! Sockets on loopback, against counts of the other end.

#![allow(clippy::disallowed_macros, reason = "a test says what it skips")]

use onbeat_os::clock;
use onbeat_os::socket::{self, DatagramSocket};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn pair(address: &str) -> (DatagramSocket, UdpSocket) {
    let socket = DatagramSocket::new(UdpSocket::bind(address).unwrap()).unwrap();
    let sender = UdpSocket::bind(address).unwrap();
    sender.connect(socket.local_addr().unwrap()).unwrap();
    (socket, sender)
}

fn realtime_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

#[test]
fn a_datagram_has_the_time_of_its_arrival() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        if UdpSocket::bind(address).is_err() {
            eprintln!("skipped: there is no address {address}");
            continue;
        }
        let (socket, sender) = pair(address);
        assert_eq!(socket.receive(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
        let before_ns = realtime_ns();
        sender.send(b"1234567890").unwrap();
        let after_ns = realtime_ns();
        // It waits in the socket, and the stamp stays.
        clock::sleep_until(clock::monotonic_ns() + 2_000_000);
        let mut buffer = [0; 8];
        let received = socket.receive(&mut buffer).unwrap();
        assert_eq!((received.length, &buffer, received.dropped), (8, b"12345678", 0));
        assert_eq!(received.from, Some(sender.local_addr().unwrap()));
        let stamped_ns = received.stamped_ns.unwrap();
        assert!((before_ns..=after_ns).contains(&stamped_ns), "{before_ns} {stamped_ns} {after_ns}");
    }
}

#[test]
fn each_datagram_is_received_or_counted_as_dropped() {
    const SENT: u32 = 20_000;
    let (socket, sender) = pair("127.0.0.1:0");
    let obtained = socket.set_receive_buffer(100_000).unwrap();
    assert_eq!(obtained, 100_000);
    for _ in 0..SENT {
        sender.send(&[0; 400]).unwrap();
    }
    let (mut received, mut last) = (0, 0);
    while let Ok(datagram) = socket.receive(&mut [0; 1500]) {
        assert!(datagram.dropped >= last);
        (received, last) = (received + 1, datagram.dropped);
    }
    let dropped = socket.dropped().unwrap();
    assert!(received > 0 && dropped > 0 && received + dropped == SENT, "{received} + {dropped}");
    // The drops came after all that is in the queue. The next datagram knows of them.
    assert_eq!(last, 0);
    sender.send(&[0; 400]).unwrap();
    assert_eq!(socket.receive(&mut [0; 1500]).unwrap().dropped, dropped);
}

fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

#[test]
fn what_a_peer_has_and_what_is_on_its_way_is_all() {
    let (mut near, mut far) = connection();
    near.set_nonblocking(true).unwrap();
    let mut written = 0;
    loop {
        match near.write(&[7; 100_000]) {
            Ok(count) => written += count as u64,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    // The far socket is full, so nothing moves any more once its acknowledgements have come.
    let deadline_ns = clock::monotonic_ns() + 60_000_000_000;
    let waits = loop {
        let waits = socket::unacknowledged(&near).unwrap();
        if socket::unread(&far).unwrap() + waits == written {
            break waits;
        }
        assert!(clock::monotonic_ns() < deadline_ns, "{waits} of {written} are never acknowledged");
        clock::sleep_until(clock::monotonic_ns() + 1_000_000);
    };
    assert!(0 < waits && waits < written, "{waits} of {written}");
    socket::reset_on_close(&near).unwrap();
    drop(near);
    let mut received = Vec::new();
    let error = far.read_to_end(&mut received).unwrap_err();
    assert_eq!((error.kind(), received.len() as u64), (ErrorKind::ConnectionReset, written - waits));
}

#[test]
fn an_end_that_arrived_leaves_nothing() {
    let (mut near, mut far) = connection();
    near.write_all(&[1; 1000]).unwrap();
    near.shutdown(Shutdown::Write).unwrap();
    let mut received = Vec::new();
    far.read_to_end(&mut received).unwrap();
    assert_eq!(received.len(), 1000);
    // The acknowledgement of the end may be on its way.
    let deadline_ns = clock::monotonic_ns() + 60_000_000_000;
    while socket::unacknowledged(&near).unwrap() > 0 {
        assert!(clock::monotonic_ns() < deadline_ns, "it is never acknowledged");
        clock::sleep_until(clock::monotonic_ns() + 1_000_000);
    }
}

/// Waits until the attempt is over, and returns its result.
fn connected(stream: &TcpStream) -> std::io::Result<bool> {
    for _ in 0..1000 {
        match socket::is_connected(stream) {
            Ok(false) => std::thread::sleep(Duration::from_millis(1)),
            other => return other,
        }
    }
    Ok(false)
}

#[test]
fn a_call_does_not_wait_for_the_peer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let stream = socket::begin_connect(address).unwrap();
    assert!(connected(&stream).unwrap());
    let (peer, _) = listener.accept().unwrap();
    assert_eq!(peer.peer_addr().unwrap(), stream.local_addr().unwrap());
    drop(listener);
    let refused = socket::begin_connect(address).and_then(|stream| connected(&stream).map(|_| ()));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_peer_that_only_does_not_read_answers() {
    let (mut near, far) = connection();
    // Neither the least time nor the most is refused.
    socket::watch_peer(&near, Duration::ZERO).unwrap();
    socket::watch_peer(&near, Duration::MAX).unwrap();
    near.set_nonblocking(true).unwrap();
    while near.write(&[7; 100_000]).is_ok() {}
    // The kernel has asked it several times by then whether it has room.
    clock::sleep_until(clock::monotonic_ns() + 1_500_000_000);
    assert_eq!(socket::unanswered(&near).unwrap(), None);
    drop(far);
}
