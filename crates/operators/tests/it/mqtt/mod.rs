//! `mqtt.*` with brokers that speak MQTT 3.1.1 to the letter, with ones that do not, and with mosquitto. The
//! bytes are those of the specification.
#![forbid(unsafe_code)]

mod broker;
mod flow;
mod idle;
mod recipes;
mod refusals;
mod sink;
mod source;

use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Seen, Trial};
use onbeat_runtime::{OnError, Restart, Then};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// CONNACK that accepts.
const ACCEPTED: [u8; 4] = [0x20, 2, 0, 0];
/// SUBACK for one topic with QoS 0, and with QoS 1.
const GRANTED: [[u8; 5]; 2] = [[0x90, 3, 0, 1, 0], [0x90, 3, 0, 1, 1]];

/// Runs an operator with a broker that behaves like this.
fn with_broker(
    kind: &str,
    more: &str,
    feed: Option<Feed>,
    on_error: OnError,
    broker: impl FnOnce(&TcpListener) + Send,
) -> Result<Seen, String> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = format!("broker = \"{}\"\n{more}", listener.local_addr().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(move || broker(&listener));
        let trial = Trial::kind(&registry(), kind, &text).on_error(on_error);
        feed.into_iter().fold(trial, |trial, feed| trial.feed("in", feed)).try_run()
    })
}

/// Takes a call.
fn accept(listener: &TcpListener) -> TcpStream {
    let peer = listener.accept().unwrap().0;
    peer.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    peer.set_nodelay(true).unwrap();
    peer
}

/// Reads a packet: its first byte, and its rest of less than 16384 bytes.
fn packet(peer: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut head = [0; 2];
    peer.read_exact(&mut head).unwrap();
    let mut length = usize::from(head[1] & 0x7f);
    if head[1] & 0x80 != 0 {
        let mut more = [0];
        peer.read_exact(&mut more).unwrap();
        length += usize::from(more[0]) << 7;
    }
    let mut rest = vec![0; length];
    peer.read_exact(&mut rest).unwrap();
    (head[0], rest)
}

/// Takes a call and accepts it.
fn welcome(listener: &TcpListener) -> TcpStream {
    let mut peer = accept(listener);
    assert_eq!(packet(&mut peer).0, 0x10);
    peer.write_all(&ACCEPTED).unwrap();
    peer
}

/// Takes a call and accepts it and its subscription to one topic.
fn subscriber(listener: &TcpListener, qos: usize) -> TcpStream {
    let mut peer = welcome(listener);
    assert_eq!(packet(&mut peer).0, 0x82);
    peer.write_all(&GRANTED[qos]).unwrap();
    peer
}

/// A PUBLISH with QoS 0, of less than 128 bytes.
fn message(topic: &str, payload: &[u8]) -> Vec<u8> {
    let rest = 2 + topic.len() + payload.len();
    [&[0x30, rest as u8, 0, topic.len() as u8], topic.as_bytes(), payload].concat()
}

fn is_silent(peer: &mut TcpStream) -> bool {
    peer.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let silent = matches!(peer.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock);
    peer.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    silent
}

fn restart(limit: u32) -> OnError {
    OnError::Restart(Restart { limit, delay_ns: 10_000_000, then: Then::Isolate, ..Restart::default() })
}

/// What a source of text, which fails, says.
fn failure(more: &str, broker: impl FnOnce(&TcpListener) + Send) -> String {
    let more = format!("topic = \"a/+\"\n{more}");
    with_broker("mqtt.source", &more, None, OnError::Stop, broker).err().unwrap()
}
