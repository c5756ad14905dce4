//! `mqtt.*` with brokers that speak MQTT 3.1.1 to the letter, and with ones that do not. The bytes are those
//! of the specification.
#![forbid(unsafe_code)]

use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Seen, Trial};
use onbeat_runtime::{OnError, Restart, Then};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
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
fn refusals_name_what_was_said_and_the_fix() {
    for (code, more, expected) in [
        (1, "", "unacceptable protocol version; it needs a listener for MQTT 3.1.1"),
        (
            2,
            "client_id = \"no way\"",
            "identifier rejected (`no way`); give a `client_id` of 1 to 23 letters",
        ),
        (3, "", "server unavailable; with `on_error = \"restart\"`"),
        (
            4,
            "user = \"ann\"\npassword = \"x\"",
            "bad user name or password; look whether the broker has the user `ann`",
        ),
        (4, "user = \"ann\"", "give the `password` of `ann`"),
        (5, "", "not authorised; give `user` and `password`"),
        (77, "", "code 77, which MQTT 3.1.1 does not have"),
    ] {
        let said = failure(more, move |listener| {
            let mut peer = accept(listener);
            packet(&mut peer);
            peer.write_all(&[0x20, 2, 0, code]).unwrap();
        });
        assert!(said.contains(expected) && said.contains("127.0.0.1:"), "{said}");
    }
    let said = failure("user = \"ann\"", |listener| {
        let mut peer = welcome(listener);
        packet(&mut peer);
        peer.write_all(&[0x90, 3, 0, 1, 0x80]).unwrap();
    });
    assert!(said.contains("refused the subscription to `a/+`: its access list must permit `ann`"), "{said}");
}

#[test]
fn other_servers_are_found_out() {
    let answers = |bytes: &'static [u8]| {
        failure("", move |listener| {
            let mut peer = accept(listener);
            packet(&mut peer);
            let _ = peer.write_all(bytes);
        })
    };
    let said = answers(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    assert!(said.contains("is it an MQTT broker?"), "{said}");
    let said = answers(b"");
    assert!(said.contains("closed the connection before it answered CONNECT"), "{said}");
    assert!(answers(b"\x15\x03\x03\0\x02\x02\x46").contains("reserved bits"), "TLS");
    assert!(answers(&[0x90, 3, 0, 1, 0]).contains("another packet before its answer to CONNECT"));
    let said = failure("patience = \"100 ms\"", |listener| {
        let mut peer = accept(listener);
        packet(&mut peer);
        let _ = peer.read(&mut [0]);
    });
    assert!(said.contains("did not answer CONNECT within 100 ms (`patience`)"), "{said}");
    let nobody = "broker = \"127.9.8.7:1\"\ntopic = \"a\"\npatience = \"100 ms\"";
    let said = Trial::kind(&registry(), "mqtt.source", nobody).failure();
    assert!(said.contains("cannot connect to 127.9.8.7:1 within 100 ms"), "{said}");
}

#[test]
fn brokers_that_break_the_rules_are_refused() {
    for (bytes, expected) in [
        (&[0x30, 0xff, 0xff, 0xff, 0xff, 1][..], "a length of more than 4 bytes"),
        (&[0x90, 0xff, 0xff, 0xff, 0x7f], "an answer that is longer than any can be"),
        (&[0x90, 5, 0, 1, 0, 0, 0], "an answer to SUBSCRIBE with another number of topics"),
        (&[0x90, 3, 0, 1, 2], "an unknown quality"),
        (&[0x20, 2, 0, 0], "a second answer to CONNECT"),
        (&[0x40, 2, 0, 9], "an acknowledgement of what nobody has published"),
        (&[0x40, 3, 0, 9, 0], "an answer of the wrong length"),
        (&[0x34, 6, 0, 1, b'a', 0, 1, b'x'], "a message with QoS 2"),
        (&[0x30, 3, 0, 2, b'a'], "ends within its topic"),
        (&[0x32, 4, 0, 1, b'a', 0], "ends within its topic or identifier"),
        (&[0x30, 3, 0, 1, 0xff], "a topic that is not UTF-8"),
        (&[0x30, 3, 0, 1, b'#'], "a topic that is empty or has a zero, `+` or `#`"),
        (&[0x30, 2, 0, 0], "a topic that is empty"),
        (&[0x00, 0], "a type that brokers do not send"),
        (&[0xe0, 0], "a type that brokers do not send"),
    ] {
        let said = failure("", move |listener| {
            let mut peer = welcome(listener);
            packet(&mut peer);
            let _ = peer.write_all(bytes);
            let _ = peer.read(&mut [0]);
        });
        assert!(said.contains(expected) && said.contains("does not speak MQTT 3.1.1"), "{bytes:x?}: {said}");
    }
}

/// Bytes by chance: an error each time, never a panic or an endless loop.
#[test]
fn garbage_is_an_error() {
    let mut state = 88_172_645_463_325_252_u64;
    for _ in 0..60 {
        let bytes: Vec<u8> = (0..2000)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state as u8
            })
            .collect();
        let said = failure("", move |listener| {
            let mut peer = subscriber(listener, 0);
            let _ = peer.write_all(&bytes);
        });
        assert!(said.contains("MQTT 3.1.1") || said.contains("closed the connection"), "{said}");
    }
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

#[test]
fn wrong_parameters_are_refused() {
    let source = "broker = \"h:1\"\ntopic = \"t\"\n";
    for (kind, text, expected) in [
        (
            "mqtt.source",
            source.replace("h:1", "mqtts://h:8883"),
            "`broker` is `mqtts://`: there is no TLS here",
        ),
        ("mqtt.source", source.replace("h:1", "ws://h"), "`broker` is `ws://`: it must be a host and a port"),
        ("mqtt.source", source.replace("h:1", "mqtt://ann:pw@h"), "give it as `user` and `password`"),
        ("mqtt.source", source.replace("h:1", "h:99999"), "`broker` is `h:99999`"),
        (
            "mqtt.source",
            source.replace("\"t\"", "\"a/#/b\""),
            "`topics` is `a/#/b`: `+` stands for a whole level",
        ),
        ("mqtt.source", source.replace("\"t\"", "\"a+\""), "`topics` is `a+`"),
        ("mqtt.source", source.replace("\"t\"", "\"\""), "`topics` is ``"),
        ("mqtt.source", format!("{source}topics = [\"b\"]"), "give either `topic` or `topics`"),
        ("mqtt.source", "broker = \"h\"\ntopics = []".to_string(), "`topics` has 0 topics"),
        ("mqtt.source", format!("{source}qos = 2"), "`qos` is 2: it must be 0 or 1"),
        ("mqtt.source", format!("{source}clean_session = false"), "give a `client_id`"),
        ("mqtt.source", format!("{source}password = \"x\""), "`password` needs a `user`"),
        (
            "mqtt.source",
            format!("{source}user = \"u\"\npassword = \"x\"\npassword_file = \"y\""),
            "either `password` or `password_file`",
        ),
        ("mqtt.source", format!("{source}keep_alive = \"0.5 s\""), "`keep_alive` is 0.5 s"),
        ("mqtt.source", format!("{source}will = \"x\""), "needs both `will_topic` and `will`"),
        ("mqtt.source", format!("{source}will = \"x\"\nwill_topic = \"a/#\""), "`will_topic` is `a/#`"),
        ("mqtt.source", format!("{source}longest = 0"), "`longest` is 0"),
        ("mqtt.source.value", format!("{source}field = \"a..b\""), "`field` is `a..b`"),
        ("mqtt.sink", source.replace("\"t\"", "\"a/+\""), "`topic` is `a/+`: a topic to publish to"),
        ("mqtt.sink", source.replace("\"t\"", "\"\""), "`topic` is ``"),
    ] {
        let said = registry().operator(kind, &text).err().unwrap().to_string();
        assert!(said.contains(expected), "{said}");
    }
    for broker in ["mqtt://h", "tcp://h:1/", "h", "[::1]", "[::1]:1883"] {
        assert!(registry().operator("mqtt.source", &source.replace("h:1", broker)).is_ok(), "{broker}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty");
    std::fs::write(&path, "\n").unwrap();
    for (path, expected) in [
        (path.as_path(), "its first line must be the password"),
        (folder.path(), "is not a file"),
        (&folder.path().join("none"), "cannot read `password_file`"),
    ] {
        let text = format!("{source}user = \"u\"\npassword_file = {path:?}");
        let said = Trial::kind(&registry(), "mqtt.source", &text).failure();
        assert!(said.contains(expected), "{said}");
    }
}
