//! Connections on loopback: both ends, both framings, and peers that disconnect.
#![forbid(unsafe_code)]

use onbeat_operators::{Framing, TcpPeer, TcpSink, TcpSource};
use onbeat_runtime::testing::{Feed, Seen, Trial};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

fn samples() -> Vec<f32> {
    (0..20_000).map(|n| n as f32 * 0.5).collect()
}

fn bytes(samples: &[f32]) -> Vec<u8> {
    samples.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn frame(samples: &[f32]) -> Vec<u8> {
    let bytes = bytes(samples);
    (bytes.len() as u32).to_le_bytes().into_iter().chain(bytes).collect()
}

/// Runs a source with a peer that behaves like this.
fn source(framing: Framing, peer: impl FnOnce(TcpStream) + Send) -> Result<Seen, String> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::scope(|scope| {
        scope.spawn(|| peer(listener.accept().unwrap().0));
        let source = TcpSource::<f32>::new(TcpPeer::Connect(address), None).unwrap().framing(framing);
        Trial::new(source).quantum(1000).try_run()
    })
}

/// Runs a sink with a peer that behaves like this.
fn sink(framing: Framing, samples: Vec<f32>, peer: impl FnOnce(TcpStream) + Send) -> Result<Seen, String> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::scope(|scope| {
        scope.spawn(|| peer(listener.accept().unwrap().0));
        let sink = TcpSink::<f32>::new(TcpPeer::Connect(address), None).unwrap().framing(framing);
        Trial::new(sink.patience(2_000_000_000)).feed("in", Feed::samples(samples).cut(&[333])).try_run()
    })
}

#[test]
fn a_header_of_the_peer_is_left_out() {
    let samples: Vec<u8> = [1.0_f32, 2.0, 3.0].iter().flat_map(|sample| sample.to_le_bytes()).collect();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let seen = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut peer = listener.accept().unwrap().0;
            for piece in [&b"RTL0\0\0"[..], b"\0\x05\0", b"\0\0\x1d", &samples] {
                peer.write_all(piece).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        });
        Trial::new(TcpSource::<f32>::new(TcpPeer::Connect(address), None).unwrap().skip(12)).run()
    });
    assert_eq!(seen.samples::<f32>("out"), [1.0, 2.0, 3.0]);
    assert!(seen.losses().is_empty());
}

#[test]
fn raw_samples_come_until_the_connection_closes() {
    let seen = source(Framing::Raw, |mut peer| {
        // Cut in the middle of samples.
        for piece in bytes(&samples()).chunks(1013) {
            peer.write_all(piece).unwrap();
        }
    });
    let seen = seen.unwrap();
    assert_eq!(seen.samples::<f32>("out"), samples());
    assert!(seen.notes().is_empty() && seen.is_done());
    let seen = source(Framing::Raw, |mut peer| peer.write_all(&bytes(&[1.0, 2.0])[..7]).unwrap()).unwrap();
    assert_eq!(seen.samples::<f32>("out"), [1.0]);
    assert_eq!(seen.losses(), [(3, "bytes", "the peer closed the connection in the middle of a sample")]);
}

#[test]
fn strict_frames_have_an_end() {
    let send = |pieces: usize, end: bool| {
        source(Framing::Strict, move |mut peer| {
            let mut all: Vec<u8> = samples().chunks(777).flat_map(frame).collect();
            if end {
                all.extend([0; 4]);
            }
            for piece in all.chunks(pieces) {
                peer.write_all(piece).unwrap();
            }
        })
    };
    for pieces in [977, 1 << 20] {
        assert_eq!(send(pieces, true).unwrap().samples::<f32>("out"), samples());
    }
    let text = send(1 << 20, false).err().unwrap();
    assert!(
        text.contains("closed the connection in the middle of the stream, after 20000 samples"),
        "{text}"
    );
    let text =
        source(Framing::Strict, |mut peer| peer.write_all(b"GET / HTTP/1.0\r\n").unwrap()).err().unwrap();
    assert!(text.contains("is not a multiple of the sample size of 4 bytes"), "{text}");
}

/// Closes a connection with unread bytes: the kernel then reports a reset.
fn vanish(mut peer: TcpStream) {
    peer.write_all(&bytes(&[1.0; 100])).unwrap();
    let mut some = [0; 4];
    let _ = peer.read(&mut some);
}

#[test]
fn a_peer_that_vanishes_is_an_error_of_a_strict_sink() {
    // More bytes than both sockets hold.
    let many = || vec![0.0; 8 << 20];
    let text = sink(Framing::Strict, many(), vanish).err().unwrap();
    assert!(text.contains("closed the connection before the end of the stream"), "{text}");
    let seen = sink(Framing::Raw, many(), vanish).unwrap();
    assert!(seen.notes()[0].contains("closed the connection before the end"), "{:?}", seen.notes());
    let [(lost, "bytes", reason)] = seen.losses()[..] else { panic!("{:?}", seen.losses()) };
    assert!(lost > 0 && reason.contains("may_close"), "{lost}: {reason}");
    assert_eq!(seen.record().result.exit_status, 3);
}

#[test]
fn a_sink_sends_all_and_says_the_end() {
    for (framing, expected) in [
        (Framing::Raw, bytes(&samples())),
        (Framing::Strict, samples().chunks(333).flat_map(frame).chain([0; 4]).collect()),
    ] {
        let (tell, told) = std::sync::mpsc::channel();
        let seen = sink(framing, samples(), move |mut peer| {
            // A slow reader.
            std::thread::sleep(Duration::from_millis(20));
            let mut all = Vec::new();
            peer.read_to_end(&mut all).unwrap();
            tell.send(all).unwrap();
        });
        assert!(seen.unwrap().notes().is_empty());
        assert!(told.recv().unwrap() == expected, "{framing:?}");
    }
}

#[test]
fn one_may_listen_and_the_other_call() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let seen = std::thread::scope(|scope| {
        scope.spawn(|| {
            let sink = TcpSink::<f32>::new(TcpPeer::Connect(address.clone()), None)
                .unwrap()
                .framing(Framing::Strict);
            Trial::new(sink)
                .feed("in", Feed::samples(samples()))
                .options(|options| options.clock = onbeat_runtime::ClockKind::Real)
                .run();
        });
        let source = TcpSource::<f32>::new(TcpPeer::Listen(address.clone()), None).unwrap();
        let source = source.listener(listener).framing(Framing::Strict);
        Trial::new(source).options(|options| options.clock = onbeat_runtime::ClockKind::Real).run()
    });
    assert_eq!(seen.samples::<f32>("out"), samples());
}

#[test]
fn nobody_there_is_an_error_after_a_while() {
    let source = |peer| TcpSource::<f32>::new(peer, None).unwrap().patience(100_000_000);
    // An unused address of this machine, with a port that is never assigned.
    let text = Trial::new(source(TcpPeer::Connect("127.9.8.7:1".to_string()))).failure();
    assert!(text.contains("within 100 ms") && text.contains("refused"), "{text}");
    let text = Trial::new(source(TcpPeer::Listen("127.0.0.1:0".to_string()))).failure();
    assert!(text.contains("no connection to") && text.contains("within 100 ms"), "{text}");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = Trial::new(source(TcpPeer::Listen(taken.local_addr().unwrap().to_string()))).failure();
    assert!(text.contains("cannot start: cannot listen on"), "{text}");
}
