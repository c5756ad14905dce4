//! What a broker refuses, brokers that are refused, and wrong parameters.

use super::{accept, failure, packet, subscriber, welcome};
use onbeat_operators::registry;
use onbeat_runtime::testing::Trial;
use onbeat_runtime::{Graph, Options};
use std::io::{Read, Write};
use std::net::TcpListener;

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
    assert!(
        said.contains("sent `HTTP/1.1 400` instead of an answer to CONNECT: is it an MQTT broker?"),
        "{said}"
    );
    let said = answers(b"");
    assert!(said.contains("closed the connection before it answered CONNECT"), "{said}");
    assert!(answers(b"\x15\x03\x03\0\x02\x02\x46").contains("sent `\\x15\\x03\\x03"), "TLS");
    assert!(answers(&[0x90, 3, 0, 1, 0]).contains("instead of an answer to CONNECT"));
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
        (&[0x36, 6, 0, 1, b'a', 0, 1, b'x'], "a message with QoS 3, which MQTT does not have"),
        (&[0x32, 6, 0, 1, b'a', 0, 0, b'x'], "a message with QoS 1 and the identifier 0"),
        (&[0x90, 3, 0, 2, 0], "an answer to a SUBSCRIBE that was never sent"),
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
            "`topic` is `a/#/b`: `+` stands for a whole level",
        ),
        ("mqtt.source", source.replace("\"t\"", "\"a+\""), "`topic` is `a+`"),
        ("mqtt.source", source.replace("\"t\"", "\"\""), "`topic` is ``"),
        ("mqtt.source", "broker = \"h\"\ntopics = [\"a+\"]".to_string(), "`topics` is `a+`"),
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

/// Two clients by one identifier would put each other off, again and again.
#[test]
fn two_operators_by_one_identifier_are_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let broker = listener.local_addr().unwrap();
    let kind = |kind, more: &str| {
        let text = format!("broker = \"{broker}\"\ntopic = \"t\"\nclient_id = \"me\"\n{more}");
        registry().operator(kind, &text).unwrap()
    };
    let mut graph = Graph::new("two");
    graph.add_boxed("first", "mqtt.source", kind("mqtt.source", ""));
    graph.add_boxed("second", "mqtt.sink", kind("mqtt.sink", ""));
    graph.connect_names("first", "second");
    let said = graph.run(&Options::default()).err().unwrap().to_string();
    let expected = format!(
        "`client_id` is `me`, and another operator is known to {broker} by it: the two would put each other off"
    );
    assert!(said.contains(&expected), "{said}");
}
