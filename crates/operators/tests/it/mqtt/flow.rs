//! Messages from one broker to another, which is slow.

use super::{message, packet, subscriber, welcome};
use onbeat_operators::mqtt::{
    LinePayload, MqttPublishing, MqttSetup, MqttSink, MqttSource, MqttSubscription,
};
use onbeat_runtime::{ClockKind, Graph, Options};
use std::io::Write;
use std::net::TcpListener;
use std::sync::mpsc::channel;
use std::time::Duration;

/// As long as the second broker acknowledges nothing, the source reads nothing; then all messages arrive.
#[test]
fn a_full_edge_stops_the_broker() {
    const MOST: usize = 200_000_000;
    let [from, to] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let setup = |listener: &TcpListener| MqttSetup::new(&listener.local_addr().unwrap().to_string()).unwrap();
    let wanted = MqttSubscription { topics: vec!["#".into()], qos: 0, retained: true, longest: 1000 };
    let publishing = MqttPublishing { topic: "t".into(), qos: 1, retain: false };
    let mut graph = Graph::new("bridge");
    graph.add("in", MqttSource::new(setup(&from), wanted, LinePayload::default()).unwrap());
    graph.add("out", MqttSink::new(setup(&to), publishing, LinePayload::default()).unwrap());
    let _ = graph.connect_names("in.out", "out.in");
    let run = graph.start(&Options { clock: ClockKind::Real, ..Options::default() }).unwrap();
    let (tell, told) = channel();
    let count = std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut peer = subscriber(&from, 0);
            peer.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
            let (one, mut written) = (message("t", &[b'x'; 100]), 0);
            // A write that times out is a broker that has to wait.
            let mut left = &[][..];
            while written < MOST {
                if left.is_empty() {
                    left = &one;
                }
                let Ok(count) = peer.write(left) else { break };
                (left, written) = (&left[count..], written + count);
            }
            let count = written.div_ceil(one.len());
            tell.send((count, written)).unwrap();
            peer.set_write_timeout(None).unwrap();
            peer.write_all(left).unwrap();
            peer.write_all(&message("t", b"end")).unwrap();
            // It stays until the run has ended.
            let _ = std::io::Read::read(&mut peer, &mut [0]);
        });
        let mut peer = welcome(&to);
        let (count, written) = told.recv().unwrap();
        assert!(written < MOST, "{written} bytes were taken");
        let mut arrived = 0;
        loop {
            let (first, rest) = packet(&mut peer);
            assert_eq!(first, 0x32);
            peer.write_all(&[0x40, 2, rest[3], rest[4]]).unwrap();
            if rest.ends_with(b"end") {
                break;
            }
            arrived += 1;
        }
        run.handle().stop();
        assert_eq!(run.wait().unwrap().result.lost, 0);
        count - arrived
    });
    assert_eq!(count, 0);
}
