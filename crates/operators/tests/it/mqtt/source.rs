//! Sources with brokers that do what the test says.

use super::{ACCEPTED, accept, is_silent, message, packet, restart, subscriber, with_broker};
use onbeat_runtime::OnError;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::channel;

#[test]
fn a_source_speaks_to_the_letter() {
    let (tell, told) = channel();
    let more = "topics = [\"a/+\", \"b/#\"]\nqos = 1\nclient_id = \"me\"\nuser = \"ann\"\npassword = \"pw\"\n\
                keep_alive = \"10 s\"\nwill_topic = \"w\"\nwill = \"gone\"\nwill_retain = true\nwith_topic = true";
    let seen = with_broker("mqtt.source", more, None, OnError::Isolate, move |listener| {
        let mut peer = accept(listener);
        let mut said = vec![packet(&mut peer)];
        assert!(is_silent(&mut peer), "nothing before the answer to CONNECT");
        peer.write_all(&ACCEPTED).unwrap();
        said.push(packet(&mut peer));
        // A message may come before the answer to SUBSCRIBE.
        let bytes = [
            b"\x30\x07\0\x03a/bhi".to_vec(),
            [0x90, 4, 0, 1, 1, 0].to_vec(),
            b"\x33\x0a\0\x03b/c\x01\x02old".to_vec(),
            b"\x3a\x0b\0\x03a/b\0\x07\xc3\xa4\0z".to_vec(),
        ];
        for byte in bytes.concat() {
            peer.write_all(&[byte]).unwrap();
        }
        said.push(packet(&mut peer));
        said.push(packet(&mut peer));
        tell.send((said, is_silent(&mut peer))).unwrap();
    })
    .unwrap();
    let expected = [
        (0x10, b"\0\x04MQTT\x04\xee\0\x0a\0\x02me\0\x01w\0\x04gone\0\x03ann\0\x02pw".to_vec()),
        (0x82, b"\0\x01\0\x03a/+\x01\0\x03b/#\x01".to_vec()),
        (0x40, vec![1, 2]),
        (0x40, vec![0, 7]),
    ];
    assert_eq!(told.recv().unwrap(), (expected.to_vec(), true));
    assert_eq!(seen.messages::<String>("out"), ["a/b hi", "b/c old", "a/b \u{e4}\0z"]);
    let notes = seen.notes().join("\n");
    assert!(notes.contains("grants QoS 0 for `b/#`"), "{notes}");
    assert!(
        notes.contains("1 retained messages, kept by the broker from before, were among the 3"),
        "{notes}"
    );
    assert!(notes.contains("1 messages may have come before"), "{notes}");
    assert_eq!(seen.losses(), []);
    assert!(seen.record().faults[0].text.contains("closed the connection"), "{:?}", seen.record().faults);
}

#[test]
fn retained_messages_can_be_left_out() {
    let more = "topic = \"#\"\nretained = false";
    let seen = with_broker("mqtt.source", more, None, OnError::Isolate, |listener| {
        let mut peer = subscriber(listener, 0);
        peer.write_all(b"\x31\x05\0\x01aol\x30\x06\0\x01anew").unwrap();
    });
    let seen = seen.unwrap();
    assert_eq!(seen.messages::<String>("out"), ["new"]);
    assert!(seen.notes()[0].starts_with("1 retained messages") && seen.notes()[0].contains("were left out"));
}

#[test]
fn bad_payloads_are_lost_with_their_topic() {
    let not_utf8 = "the payload is not UTF-8";
    let no_number = "the payload is not a finite number";
    let no_field = "the payload has no finite number at `field`";
    let field = "topic = \"#\"\nfield = \"a.b\"";
    for (kind, more, payload, reason) in [
        ("mqtt.source", "topic = \"#\"", &b"\xff\n"[..], not_utf8),
        ("mqtt.source.value", "topic = \"#\"", b"open", no_number),
        ("mqtt.source.value", "topic = \"#\"", b"", no_number),
        ("mqtt.source.value", "topic = \"#\"", b"nan", no_number),
        ("mqtt.source.value", "topic = \"#\"", b"1e999", no_number),
        ("mqtt.source.value", field, b"{\"a\":", "the payload is not JSON"),
        ("mqtt.source.value", field, b"{\"a\":1}", no_field),
        ("mqtt.source.value", field, b"{\"a\":{\"b\":null}}", no_field),
        ("mqtt.source.value", field, b"{\"a\":{\"b\":\"inf\"}}", no_field),
        ("mqtt.source.value", field, &[b'['; 100], "the payload is not JSON"),
    ] {
        let seen = with_broker(kind, more, None, OnError::Isolate, move |listener| {
            let mut peer = subscriber(listener, 0);
            peer.write_all(&message("home/door", payload)).unwrap();
        });
        let seen = seen.unwrap();
        assert_eq!(seen.losses(), [(1, "messages", reason)]);
        let note = &seen.notes()[0];
        assert!(note.starts_with("`home/door`: a message was lost: ") && note.contains(reason), "{note}");
    }
}

#[test]
fn numbers_are_found() {
    for (field, payload, expected) in [
        ("", "21.5", 21.5),
        ("", " -3e2\r\n", -300.0),
        ("field = \"t\"", "{\"t\": 1.25, \"u\": 2}", 1.25),
        ("field = \"a.b.c\"", "{\"a\":{\"b\":{\"c\":-7}}}", -7.0),
        ("field = \"a.1\"", "{\"a\":[1,2,3]}", 2.0),
        ("field = \"t\"", "{\"t\":\"19.5\"}", 19.5),
    ] {
        let more = format!("topic = \"#\"\n{field}");
        let seen = with_broker("mqtt.source.value", &more, None, OnError::Isolate, move |listener| {
            let mut peer = subscriber(listener, 0);
            peer.write_all(&message("t", payload.as_bytes())).unwrap();
        });
        assert_eq!(seen.unwrap().messages::<f64>("out"), [expected]);
    }
}

/// A message of 40 MB, and one whose 256 MB never come: neither is kept, and what follows arrives.
#[test]
fn messages_that_are_too_long_are_skipped() {
    let more = "topic = \"#\"\nlongest = \"1 kB\"\nqos = 1";
    let (tell, told) = channel();
    let seen = with_broker("mqtt.source", more, None, OnError::Isolate, move |listener| {
        let mut peer = subscriber(listener, 1);
        let length = 40_000_000_usize;
        let head = [0x32, length as u8 | 0x80, (length >> 7) as u8 | 0x80, (length >> 14) as u8 | 0x80];
        peer.write_all(&[&head[..], &[(length >> 21) as u8], b"\0\x03big\0\x09"].concat()).unwrap();
        for piece in vec![b'x'; length - 7].chunks(1 << 16) {
            peer.write_all(piece).unwrap();
        }
        peer.write_all(&message("small", b"hello")).unwrap();
        tell.send(packet(&mut peer)).unwrap();
        peer.write_all(b"\x30\xff\xff\xff\x7f\0\x04huge").unwrap();
    });
    let seen = seen.unwrap();
    assert_eq!(told.recv().unwrap(), (0x40, vec![0, 9]));
    assert_eq!(seen.messages::<String>("out"), ["hello"]);
    assert_eq!(seen.losses(), [(1, "messages", "the payload is longer than `longest`")]);
    assert!(seen.notes()[0].starts_with("`big`: "), "{:?}", seen.notes());
}

#[test]
fn a_source_goes_on_after_an_interruption() {
    let more = "topic = \"#\"";
    let seen = with_broker("mqtt.source", more, None, restart(1), |listener| {
        for payload in [b"one", b"two"] {
            let mut peer = subscriber(listener, 0);
            peer.write_all(&message("t", payload)).unwrap();
            peer.write_all(&[0x30, 100, 0]).unwrap();
        }
    });
    let seen = seen.unwrap();
    assert_eq!(seen.messages::<String>("out"), ["one", "two"]);
    let note = &seen.notes()[0];
    assert!(
        note.contains("was away for ") && note.contains("did not arrive, and its number is unknown"),
        "{note}"
    );
}

#[test]
fn a_connection_is_kept_alive() {
    let more = "topic = \"t\"\nkeep_alive = \"1 s\"\npatience = \"300 ms\"";
    let said = failure_of_keep_alive(more);
    assert!(said.contains("did not answer within 300 ms (`patience`)"), "{said}");
}

/// A broker that answers the first PINGREQ, and not the second.
fn failure_of_keep_alive(more: &str) -> String {
    let broker = |listener: &TcpListener| {
        let mut peer = subscriber(listener, 0);
        assert_eq!(packet(&mut peer), (0xc0, vec![]));
        peer.write_all(&[0xd0, 0]).unwrap();
        assert_eq!(packet(&mut peer), (0xc0, vec![]));
        let _ = peer.read(&mut [0]);
    };
    with_broker("mqtt.source", more, None, OnError::Stop, broker).err().unwrap()
}
