//! `rtl_tcp.source` with servers that speak the protocol to the letter, and with ones that do not.
#![forbid(unsafe_code)]

use num_complex::Complex;
use onbeat_operators::{RtlTcpSource, registry};
use onbeat_runtime::testing::{Seen, Trial};
use onbeat_runtime::{
    Chunk, ClockKind, Declared, Graph, OnError, Operator, Options, Restart, Run, Then, Value,
};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// An R820T with 29 gains.
const R820T: &[u8] = b"RTL0\0\0\0\x05\0\0\0\x1d";

/// The parameters of a source that talks to this listener.
fn parameters(listener: &TcpListener, more: &str) -> String {
    let address = listener.local_addr().unwrap();
    format!("address = \"{address}\"\nfrequency = \"100 MHz\"\nsample_rate = \"1 MS/s\"\n{more}")
}

/// Runs a source with a server that behaves like this, for each connection.
fn with_server(
    more: &str,
    on_error: OnError,
    server: impl FnOnce(&TcpListener) + Send,
) -> Result<Seen, String> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = parameters(&listener, more);
    std::thread::scope(|scope| {
        scope.spawn(move || server(&listener));
        Trial::kind(&registry(), "rtl_tcp.source", &text).on_error(on_error).try_run()
    })
}

/// Reads this number of commands.
fn commands(peer: &mut TcpStream, count: usize) -> Vec<(u8, u32)> {
    peer.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut bytes = vec![0; 5 * count];
    peer.read_exact(&mut bytes).unwrap();
    let command = |bytes: &[u8]| (bytes[0], u32::from_be_bytes(bytes[1..5].try_into().unwrap()));
    bytes.chunks(5).map(command).collect()
}

/// Whether no further command comes.
fn is_silent(peer: &mut TcpStream) -> bool {
    peer.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    matches!(peer.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|n| (n * 37 % 256) as u8).collect()
}

fn samples(bytes: &[u8]) -> Vec<Complex<f32>> {
    let part = |byte: u8| (f32::from(byte) - 127.5) / 127.5;
    bytes.chunks_exact(2).map(|pair| Complex::new(part(pair[0]), part(pair[1]))).collect()
}

fn same(found: &[Complex<f32>], expected: &[Complex<f32>]) -> bool {
    found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).norm() < 1e-6)
}

#[test]
fn settings_are_sent_and_samples_received() {
    let (tell, told) = std::sync::mpsc::channel();
    let more = "ppm = -3\ngain = \"30 dB\"\nagc = true\nbias_tee = false";
    let seen = with_server(more, OnError::Isolate, move |listener| {
        let mut peer = listener.accept().unwrap().0;
        peer.set_nodelay(true).unwrap();
        for piece in R820T.chunks(5) {
            assert!(is_silent(&mut peer), "no command before the header");
            peer.write_all(piece).unwrap();
        }
        tell.send((commands(&mut peer, 7), is_silent(&mut peer))).unwrap();
        for piece in bytes(10_001).chunks(333) {
            peer.write_all(piece).unwrap();
        }
    })
    .unwrap();
    let expected = [
        (0x02, 1_000_000),
        (0x05, u32::MAX - 2),
        (0x01, 100_000_000),
        (0x03, 1),
        (0x04, 297),
        (0x08, 1),
        (0x0e, 0),
    ];
    assert_eq!(told.recv().unwrap(), (expected.to_vec(), true));
    assert!(same(&seen.samples("out"), &samples(&bytes(10_000))));
    assert_eq!(seen.rate_hz("out"), 1e6);
    assert_eq!(seen.tags("out"), [(0, "core:frequency".to_string(), 100e6.into())]);
    let notes = seen.notes();
    assert!(notes[0].contains("the tuner is R820T, with gains of 0, 0.9, 1.4, "), "{notes:?}");
    assert!(notes[0].ends_with("44.5, 48, 49.6 dB") && notes[1] == "`gain` is 30 dB: the tuner has 29.7 dB");
    assert_eq!(seen.losses(), [(1, "bytes", "the server closed the connection in the middle of a sample")]);
    let fault = &seen.record().faults[0];
    assert!(fault.text.contains("closed the connection after sample 5000"), "{fault:?}");
}

#[test]
fn settings_that_were_not_given_stay_as_they_are() {
    for (header, more, expected, note) in [
        (R820T, "", vec![(0x03, 0)], "R820T"),
        (
            b"RTL0\0\0\0\x01\0\0\0\x0e",
            "gain = 4.2",
            vec![(0x03, 1), (0x04, 40)],
            "E4000, with gains of -1, 1.5",
        ),
        (b"RTL0\0\0\0\x02\0\0\0\x05", "gain = -20", vec![(0x03, 1), (0x04, u32::MAX - 98)], "FC0012"),
        (
            b"RTL0\0\0\0\x05\0\0\0\x07",
            "gain = 12.3",
            vec![(0x03, 1), (0x04, 123)],
            "with 7 gains instead of 29",
        ),
        (
            b"RTL0\0\0\0\0\0\0\0\0",
            "gain = 12.3",
            vec![(0x03, 1), (0x04, 123)],
            "number 0 with 0 gains, is not",
        ),
    ] {
        let (tell, told) = std::sync::mpsc::channel();
        let count = 2 + expected.len();
        let seen = with_server(more, OnError::Isolate, move |listener| {
            let mut peer = listener.accept().unwrap().0;
            peer.write_all(header).unwrap();
            tell.send((commands(&mut peer, count), is_silent(&mut peer))).unwrap();
        });
        let all = [vec![(0x02, 1_000_000), (0x01, 100_000_000)], expected].concat();
        assert_eq!(told.recv().unwrap(), (all, true), "{more}");
        let seen = seen.unwrap();
        assert!(seen.notes()[0].contains(note), "{:?}", seen.notes());
    }
}

/// A run of a source, and the chunks that it sent: position, samples, tags.
type Sent = Arc<Mutex<Vec<(u64, usize, Vec<(usize, Value)>)>>>;

fn start(source: impl Operator) -> (Run, Sent) {
    let sent = Sent::default();
    let into = Arc::clone(&sent);
    let mut graph = Graph::new("radio");
    graph.add("radio", source);
    let take = move |chunk: Chunk<Complex<f32>>| {
        let tags = chunk.tags().iter().map(|tag| (tag.offset, tag.value.clone())).collect();
        into.lock().unwrap().push((chunk.info().start, chunk.len(), tags));
    };
    graph.sink("end", take);
    let _ = graph.connect_names("radio.out", "end.in");
    let options = Options { clock: ClockKind::Real, ..Options::default() };
    (graph.start(&options).unwrap(), sent)
}

#[test]
fn settings_change_while_it_runs() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (run, sent) = start(RtlTcpSource::with(&parameters(&listener, "")).unwrap());
    let mut peer = listener.accept().unwrap().0;
    peer.write_all(R820T).unwrap();
    assert_eq!(commands(&mut peer, 3).len(), 3);
    let handle = run.handle();
    let set = |name: &str, value: Value| handle.set("radio", name, value, None).map_err(|e| e.to_string());
    let received = |at_least: usize| {
        while sent.lock().unwrap().iter().map(|(_, count, _)| count).sum::<usize>() < at_least {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    peer.write_all(&bytes(2000)).unwrap();
    received(1000);
    for (name, value, expected) in [
        ("frequency", Value::from("101.1 MHz"), vec![(0x01, 101_100_000)]),
        ("gain", 20.into(), vec![(0x03, 1), (0x04, 197)]),
        ("gain", "auto".into(), vec![(0x03, 0)]),
        ("ppm", 12.into(), vec![(0x05, 12)]),
        ("agc", true.into(), vec![(0x08, 1)]),
        ("bias_tee", true.into(), vec![(0x0e, 1)]),
    ] {
        peer.write_all(&bytes(2000)).unwrap();
        set(name, value).unwrap();
        assert_eq!(commands(&mut peer, expected.len()), expected, "{name}");
    }
    for (name, value, expected) in [
        ("frequency", Value::from("5 GHz"), "must be 4294967295 Hz or less"),
        ("ppm", 2000.into(), "must be 1000 or less"),
        ("gain", 500.into(), "`gain` is 500: it must be from -100 to 100"),
        ("gain", "loud".into(), "`loud` is not a level"),
        ("sample_rate", 2e6.into(), "sample_rate"),
    ] {
        let said = set(name, value).unwrap_err();
        assert!(said.contains(expected), "{said}");
    }
    assert!(is_silent(&mut peer), "what was refused is not sent");
    peer.write_all(&bytes(2000)).unwrap();
    received(8000);
    handle.stop();
    let record = run.wait().unwrap();
    assert_eq!((record.result.exit_status, record.result.lost), (0, 0));
    let sent = sent.lock().unwrap();
    let tags: Vec<&Value> =
        sent.iter().flat_map(|(_, _, tags)| tags.iter().map(|(_, value)| value)).collect();
    assert_eq!(tags, [&Value::from(100e6), &Value::from(101_100_000.0)]);
}

#[test]
fn after_an_interruption_it_goes_on() {
    let restart = Restart { limit: 1, delay_ns: 10_000_000, then: Then::Isolate, ..Restart::default() };
    let (tell, told) = std::sync::mpsc::channel();
    let seen = with_server("", OnError::Restart(restart), move |listener| {
        for _ in 0..2 {
            let mut peer = listener.accept().unwrap().0;
            peer.write_all(R820T).unwrap();
            tell.send(commands(&mut peer, 3)).unwrap();
            peer.write_all(&bytes(1001)).unwrap();
            std::thread::sleep(Duration::from_millis(30));
        }
    })
    .unwrap();
    let expected = [(0x02, 1_000_000), (0x01, 100_000_000), (0x03, 0)];
    assert_eq!([told.recv().unwrap(), told.recv().unwrap()], [expected, expected]);
    let pieces = seen.pieces("out");
    let first = pieces.iter().position(|piece| piece.start >= 500).unwrap();
    assert_eq!(pieces[..first].iter().map(|piece| piece.length).sum::<usize>(), 500);
    assert_eq!(pieces[first..].iter().map(|piece| piece.length).sum::<usize>(), 500);
    let lost = pieces[first].start - 500;
    // At least the 30 ms for which the server was silent.
    assert!(lost > 25_000, "{lost}");
    assert_eq!(pieces[first].time_ns, pieces[first].start * 1000);
    assert!(seen.losses().contains(&(
        lost,
        "samples",
        "the connection was interrupted; their number is estimated from the time until it was back"
    )));
    assert_eq!(seen.tags("out").iter().map(|(at, ..)| *at).collect::<Vec<_>>(), [0, 500 + lost]);
    let notes = seen.notes();
    let note = notes.iter().find(|note| note.contains("interrupted after sample 500")).unwrap();
    assert!(note.contains(&format!("about {lost} samples were lost, estimated")), "{note}");
    assert_eq!(notes.iter().filter(|note| note.contains("the tuner is")).count(), 1);
}

#[test]
fn other_servers_are_found_out() {
    let failure = |more: &str, server: fn(TcpStream)| {
        with_server(more, OnError::Stop, move |listener| server(listener.accept().unwrap().0)).err().unwrap()
    };
    let said = failure("", |mut peer| drop(peer.write_all(b"SSH-2.0-OpenSSH_9.2\r\n")));
    assert!(said.contains("sent `SSH-2.0-Open`, and an rtl_tcp server begins with `RTL0`"), "{said}");
    let said = failure("", |mut peer| drop(peer.write_all(b"RTL1")));
    assert!(said.contains("sent `RTL1`"), "{said}");
    let said = failure("", |mut peer| drop(peer.write_all(&[0x1b, 0xff, 0])));
    assert!(said.contains("sent `\\x1b\\xff\\x00`"), "{said}");
    let said = failure("", |mut peer| drop(peer.write_all(&R820T[..7])));
    assert!(said.contains("after 7 of the 12 bytes of an rtl_tcp header"), "{said}");
    let said = failure("", drop);
    assert!(said.contains("after 0 of the 12 bytes") && said.contains("no other program"), "{said}");
    let patience = "patience = \"200 ms\"";
    let said = failure(patience, |mut peer| {
        peer.write_all(&R820T[..7]).unwrap();
        let _ = peer.read(&mut [0]);
    });
    assert!(said.contains("sent 7 of the 12 bytes") && said.contains("one program at a time"), "{said}");
    let said = failure(patience, |mut peer| {
        peer.write_all(&[R820T, &[0; 2000]].concat()).unwrap();
        let _ = peer.read_to_end(&mut Vec::new());
    });
    assert!(said.contains("sent no samples within 200 ms (`patience`), after 1000 samples"), "{said}");
    let nobody = "address = \"127.9.8.7:1\"\nfrequency = 1e8\nsample_rate = 1e6\npatience = \"100 ms\"";
    let said = Trial::kind(&registry(), "rtl_tcp.source", nobody).failure();
    assert!(said.contains("cannot connect to 127.9.8.7:1 within 100 ms"), "{said}");
}

/// A server that sends half of the samples that the rate promises, for three seconds.
#[test]
fn a_server_that_drops_samples_is_noted() {
    for (share, is_found) in [(2, true), (1, false)] {
        let seen = with_server("", OnError::Isolate, move |listener| {
            let mut peer = listener.accept().unwrap().0;
            peer.write_all(R820T).unwrap();
            let (begin, mut sent) = (Instant::now(), 0);
            while begin.elapsed() < Duration::from_secs(3) {
                std::thread::sleep(Duration::from_millis(10));
                let due = begin.elapsed().as_micros() as usize * 2 / share / 2 * 2;
                peer.write_all(&vec![127; due - sent]).unwrap();
                sent = due;
            }
        })
        .unwrap();
        let losses = seen.losses();
        if !is_found {
            assert_eq!(losses, []);
            continue;
        }
        let [(lost, "samples", reason)] = losses[..] else { panic!("{losses:?}") };
        assert!(reason.contains("which is an estimate") && lost > 250_000, "{lost}: {reason}");
        assert!(seen.notes().iter().any(|note| note.ends_with("this is an estimate")), "{:?}", seen.notes());
    }
}

#[test]
fn wrong_parameters_are_refused() {
    let base = "address = \"a:1\"\nfrequency = 1e8\nsample_rate = 1e6\n";
    for (text, expected) in [
        (base.replace("a:1", "a"), "`address` is `a`: it must be a host and a port"),
        (base.replace("1e8", "-5"), "`frequency` is -5 Hz"),
        (base.replace("1e6", "0"), "`sample_rate` is 0 Hz: it must be 1 Hz or more"),
        (format!("{base}gain = 1e9"), "`gain` is 1000000000"),
        (format!("{base}gain = true"), "expected \"auto\", or a gain"),
        (format!("{base}ppm = 1001"), "`ppm` is 1001"),
        (format!("{base}patience = 0"), "`patience` is 0"),
        ("frequency = 1e8".to_string(), "address"),
    ] {
        let said = registry().operator("rtl_tcp.source", &text).err().unwrap().to_string();
        assert!(said.contains(expected), "{said}");
    }
    let odd = |rate: &str| RtlTcpSource::with(&base.replace("1e6", rate)).unwrap().odd();
    assert!(odd("500e3")[0].contains("225001 to 300000 and 900001 to 3200000"));
    assert!(odd("250e3").is_empty() && odd("2.4e6").is_empty());
}
