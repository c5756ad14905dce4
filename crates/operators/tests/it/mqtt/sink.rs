//! Sinks with brokers that do what the test says.

use super::{ACCEPTED, accept, is_silent, packet, restart, welcome, with_broker};
use onbeat_runtime::OnError;
use onbeat_runtime::testing::Feed;
use std::io::{Read, Write};
use std::sync::mpsc::channel;

#[test]
fn a_sink_speaks_to_the_letter() {
    let (tell, told) = channel();
    let feed = Feed::messages(["one", "", "\u{e4}"].map(str::to_string));
    let more = "topic = \"a/b\"\nretain = true\nclient_id = \"me\"\nkeep_alive = 0";
    let seen = with_broker("mqtt.sink", more, Some(feed), OnError::Stop, move |listener| {
        let mut peer = accept(listener);
        let mut said = vec![packet(&mut peer)];
        peer.write_all(&ACCEPTED).unwrap();
        said.extend([(); 4].map(|()| packet(&mut peer)));
        assert!(is_silent(&mut peer), "it waits for the sign of life");
        peer.write_all(&[0xd0, 0]).unwrap();
        said.push(packet(&mut peer));
        tell.send((said, peer.read(&mut [0]).unwrap())).unwrap();
    });
    let expected = [
        (0x10, b"\0\x04MQTT\x04\x02\0\0\0\x02me".to_vec()),
        (0x31, b"\0\x03a/bone".to_vec()),
        (0x31, b"\0\x03a/b".to_vec()),
        (0x31, b"\0\x03a/b\xc3\xa4".to_vec()),
        (0xc0, vec![]),
        (0xe0, vec![]),
    ];
    assert_eq!(told.recv().unwrap(), (expected.to_vec(), 0));
    assert_eq!(seen.unwrap().losses(), []);
}

#[test]
fn values_become_numbers_or_json() {
    for (field, expected) in [
        ("", ["1.5", "-0.001", "1000000"]),
        ("field = \"rms\"", ["{\"rms\":1.5}", "{\"rms\":-0.001}", "{\"rms\":1000000}"]),
        (
            "field = \"pump.\\\"x\\\"\"",
            [
                "{\"pump\":{\"\\\"x\\\"\":1.5}}",
                "{\"pump\":{\"\\\"x\\\"\":-0.001}}",
                "{\"pump\":{\"\\\"x\\\"\":1000000}}",
            ],
        ),
    ] {
        let (tell, told) = channel();
        let feed = Feed::messages([1.5, f64::NAN, -0.001, f64::INFINITY, 1e6]);
        let more = format!("topic = \"t\"\n{field}");
        let seen = with_broker("mqtt.sink.value", &more, Some(feed), OnError::Stop, move |listener| {
            let mut peer = welcome(listener);
            let payloads = [(); 3].map(|()| String::from_utf8(packet(&mut peer).1[3..].to_vec()).unwrap());
            assert_eq!(packet(&mut peer).0, 0xc0);
            peer.write_all(&[0xd0, 0]).unwrap();
            tell.send(payloads).unwrap();
            let _ = peer.read_to_end(&mut Vec::new());
        });
        assert_eq!(told.recv().unwrap(), expected);
        let reason = "not finite: neither JSON nor most receivers have such numbers";
        assert_eq!(seen.unwrap().losses(), [(2, "messages", reason)]);
    }
}

/// The broker acknowledges two of three, cuts the connection, and then asks for what is missing.
#[test]
fn messages_without_an_acknowledgement_are_sent_again() {
    let (tell, told) = channel();
    let feed = Feed::messages(["a", "b", "c"].map(str::to_string));
    let more = "topic = \"t\"\nqos = 1";
    let seen = with_broker("mqtt.sink", more, Some(feed), restart(3), move |listener| {
        let mut peer = welcome(listener);
        let mut said: Vec<_> = (0..3).map(|_| packet(&mut peer)).collect();
        peer.write_all(&[0x40, 2, 0, 2, 0x40, 2, 0, 1]).unwrap();
        assert!(is_silent(&mut peer));
        drop(peer);
        let mut peer = welcome(listener);
        said.push(packet(&mut peer));
        peer.write_all(&[0x40, 2, 0, 3, 0x40, 2, 0, 3]).unwrap();
        said.push(packet(&mut peer));
        tell.send(said).unwrap();
    });
    let expected = [
        (0x32, b"\0\x01t\0\x01a".to_vec()),
        (0x32, b"\0\x01t\0\x02b".to_vec()),
        (0x32, b"\0\x01t\0\x03c".to_vec()),
        (0x3a, b"\0\x01t\0\x03c".to_vec()),
        (0xe0, vec![]),
    ];
    assert_eq!(told.recv().unwrap(), expected);
    let seen = seen.unwrap();
    assert_eq!(seen.losses(), []);
    assert!(
        seen.notes()[0].contains("; 1 messages without an acknowledgement are sent again"),
        "{:?}",
        seen.notes()
    );
}

#[test]
fn messages_that_are_never_acknowledged_are_lost() {
    let feed = Feed::messages((0..200).map(|n| n.to_string()));
    let more = "topic = \"t\"\nqos = 1\npatience = \"200 ms\"";
    let (tell, told) = channel();
    let seen = with_broker("mqtt.sink", more, Some(feed), OnError::Isolate, move |listener| {
        let mut peer = welcome(listener);
        let mut all = Vec::new();
        let _ = peer.read_to_end(&mut all);
        tell.send(all.windows(2).filter(|bytes| *bytes == b"\0\x01").count()).unwrap();
    });
    let seen = seen.unwrap();
    assert!(seen.record().faults[0].text.contains("did not answer within 200 ms (`patience`)"));
    let reason = "the broker had not acknowledged them when the operator failed";
    assert_eq!(seen.losses(), [(64, "messages", reason)]);
    assert!(told.recv().unwrap() >= 64);
}

#[test]
fn what_a_cut_costs_with_qos_0_is_said_to_be_unknown() {
    let feed = Feed::messages((0..5).map(|n| n.to_string()));
    let seen = with_broker("mqtt.sink", "topic = \"t\"", Some(feed), restart(1), |listener| {
        let mut peer = welcome(listener);
        // Five messages, and the question for a sign of life.
        (0..6).for_each(|_| drop(packet(&mut peer)));
        drop(peer);
        let mut peer = welcome(listener);
        assert_eq!(packet(&mut peer), (0xe0, vec![]));
    });
    let seen = seen.unwrap();
    let notes = seen.notes().join("\n");
    assert!(notes.contains("whether the last 5 messages arrived is unknown"), "{notes}");
    assert!(notes.contains("was away for "), "{notes}");
    assert_eq!(seen.losses(), []);
}
