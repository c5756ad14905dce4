//! Mode S frames to other programs and from them.
#![forbid(unsafe_code)]

use onbeat_operators::mode_s::{Frame, FrameSink, FrameSource};
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Seen, Trial};
use onbeat_runtime::{
    ClockKind, Context, Declared, Error, Graph, OnError, Operator, Options, Output, Ports, Restart, Step,
    Then,
};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

/// The frames of the example, with their times.
fn frames() -> Vec<Frame> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/adsb.frames");
    let text = std::fs::read_to_string(path).unwrap();
    let frame = |line: &str| {
        let (hex, time) = line.split_once(' ').unwrap();
        Frame::new(&bytes(hex), time.trim().parse().unwrap(), -6.0).unwrap()
    };
    text.lines().map(frame).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn hex(frames: &[Frame]) -> Vec<String> {
    frames.iter().map(Frame::hex).collect()
}

fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

fn sink(listener: TcpListener, more: &str) -> FrameSink {
    let address = listener.local_addr().unwrap();
    FrameSink::with(&format!("listen = \"{address}\"\n{more}")).unwrap().listener(listener)
}

/// Everything that a client of this sink gets.
fn sent(frames: Vec<Frame>, format: &str) -> Vec<u8> {
    let (listener, address) = listener();
    std::thread::scope(|scope| {
        let client = scope.spawn(move || {
            let mut all = Vec::new();
            TcpStream::connect(address).unwrap().read_to_end(&mut all).unwrap();
            all
        });
        let seen = Trial::new(sink(listener, &format!("format = \"{format}\"\nwait_for = 1")))
            .feed("in", Feed::messages(frames))
            .run();
        assert!(seen.losses().is_empty() && seen.notes().is_empty(), "{:?}", seen.notes());
        client.join().unwrap()
    })
}

/// A source with a peer that sends these bytes in pieces.
fn source(bytes: &[u8], piece: usize, more: &str) -> Result<Seen, String> {
    let (listener, address) = listener();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut peer = listener.accept().unwrap().0;
            for piece in bytes.chunks(piece) {
                if peer.write_all(piece).is_err() {
                    break;
                }
            }
        });
        let text = format!("connect = \"{address}\"\n{more}");
        Trial::kind(&registry(), "mode_s.source", &text).keep::<Frame>("out").try_run()
    })
}

#[test]
fn frames_come_back_over_both_formats() {
    let all = frames();
    for (format, read, is_timed) in
        [("avr", "avr", false), ("avr_mlat", "avr", true), ("beast", "beast", true)]
    {
        let bytes = sent(all.clone(), format);
        for piece in [1, 7, 1 << 20] {
            let seen = source(&bytes, piece, &format!("format = \"{read}\"")).unwrap();
            let found = seen.messages::<Frame>("out");
            assert_eq!(hex(&found), hex(&all), "{format}");
            for (found, frame) in found.iter().zip(&all).filter(|_| is_timed) {
                assert!((found.time_s - frame.time_s).abs() < 1e-7, "{} {}", found.time_s, frame.time_s);
                assert!(format != "beast" || (found.level_db + 6.0).abs() < 0.05, "{}", found.level_db);
            }
            assert!(seen.is_done() && seen.losses().is_empty() && seen.notes().is_empty());
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("frames");
        std::fs::write(&path, &bytes).unwrap();
        let text = format!("path = {path:?}\nformat = \"{read}\"");
        let seen = Trial::kind(&registry(), "mode_s.source", &text).keep::<Frame>("out").run();
        assert_eq!(hex(&seen.messages("out")), hex(&all));
    }
}

/// Type, address and the fields from the call sign on. Made by sending the frames to
/// `dump1090-mutability --net-only --net-verbatim`, port 30001, and by `cut -d, -f2,5,11-22` of port 30003.
const DUMP1090: &str = "\
1,F00B01,ONBEAT1 ,,,,,,,,,,,0
3,F00B01,,12000,,,,,,,,,,0
3,F00B01,,12000,,,47.40019,8.50032,,,,,,0
4,F00B01,,,400,39,,,1920,,,,,0
8,F00B01,,,,,,,,,,,,0
3,F00B01,,12025,,,47.40051,8.50074,,,,,,0
3,F00B01,,12050,,,47.40061,8.50088,,,,,,0
5,F00B01,,12050,,,,,,,0,,0,
1,F00B01,ONBEAT1 ,,,,,,,,,,,0
3,F00B01,,12075,,,47.40088,8.50136,,,,,,0
3,F00B01,,12075,,,47.40098,8.50152,,,,,,0
4,F00B01,,,405,40,,,1920,,,,,0
8,F00B01,,,,,,,,,,,,0
3,F00B01,,12100,,,47.40129,8.50198,,,,,,0
3,F00B01,,12100,,,47.40140,8.50208,,,,,,0
5,F00B01,,12125,,,,,,,0,,0,
1,F00B01,ONBEAT1 ,,,,,,,,,,,0
3,F00B01,,12125,,,47.40170,8.50253,,,,,,0
3,F00B01,,12150,,,47.40182,8.50271,,,,,,0
4,F00B01,,,410,41,,,1920,,,,,0
8,F00B01,,,,,,,,,,,,0
3,F00B01,,12175,,,47.40211,8.50314,,,,,,0
3,F00B01,,12175,,,47.40219,8.50328,,,,,,0
5,F00B01,,12175,,,,,,,0,,0,
";

/// Lines of dump1090-mutability 1.15 for the frames of the example, without dates and session. Empty fields
/// of dump1090 are left out of the comparison, and so are digits that it cuts off.
#[test]
fn lines_are_those_of_dump1090() {
    let text = String::from_utf8(sent(frames(), "sbs")).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let expected: Vec<Vec<&str>> = DUMP1090.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), expected.len());
    for (line, expected) in lines.iter().zip(&expected) {
        assert_eq!(line.len(), 22);
        assert_eq!((line[0], line[1], line[4]), ("MSG", expected[0], expected[1]));
        assert!(line[6].len() == 10 && line[7].len() == 12, "{line:?}");
        let fields = line[10..].iter().zip(&expected[2..]).enumerate();
        for (n, (field, expected)) in fields.filter(|(_, (_, expected))| !expected.is_empty()) {
            // dump1090 has whole knots and degrees.
            let is_near = || (field.parse::<f64>().unwrap() - expected.parse::<f64>().unwrap()).abs() < 1.0;
            let is_same = *field == expected.trim();
            assert!(is_same || matches!(n, 2 | 3) && is_near(), "{line:?} {expected:?}");
        }
    }
}

#[test]
fn skipped_data_are_noted() {
    let garbage = [b"\x1a9xyz\x1a3cut".to_vec(), sent(frames(), "beast"), b"\x1a2half".to_vec()].concat();
    let seen = source(&garbage, 5, "").unwrap();
    assert_eq!(hex(&seen.messages("out")), hex(&frames()));
    let expected =
        format!("{} frames; skipped: 5 bytes outside of messages, 2 messages that were cut off", 24);
    assert_eq!(seen.notes(), [expected]);
    let wrong = b"*8df00b01233ce085054c6016fa55;\n*0000;\n*8df00b01233ce085054c6016fa54;\n";
    let seen = source(wrong, 100, "format = \"avr\"").unwrap();
    assert_eq!(hex(&seen.messages("out")), hex(&frames()[..1]));
    assert!(
        seen.notes()[0].starts_with("1 frames; skipped: 1 frames with a wrong parity, 1 messages that are")
    );
}

#[test]
fn feeds_that_are_not_frames_are_refused() {
    let noise: Vec<u8> =
        (0..200_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8 | 0x80).collect();
    let said = source(&noise, 10_000, "").err().unwrap();
    assert!(said.contains("none of the first 65536 bytes is part of a message; it begins with `"), "{said}");
    let line = "MSG,8,1,1,4D2023,1,2024/01/01,00:00:00.000,2024/01/01,00:00:00.000,,,,,,,,,,,,\r\n";
    let said = source(line.repeat(1000).as_bytes(), 10_000, "format = \"avr\"").err().unwrap();
    assert!(said.contains("these are SBS lines"), "{said}");
    let seen = source(b"*8df00b01233ce085054c6016fa54;\n", 100, "format = \"beast\"").unwrap();
    assert!(seen.notes().iter().any(|note| note.contains("is its format `avr`?")), "{:?}", seen.notes());
    let said = source(&sent(frames(), "beast"), 100, "may_close = false").err().unwrap();
    assert!(
        said.contains("closed the connection after 24 frames, which `may_close = false` forbids"),
        "{said}"
    );
    for (text, expected) in [
        ("connect = \"a:1\"\nlisten = \"a:1\"", "needs one of `connect`"),
        ("format = \"beast\"", "needs one of `connect`"),
        ("connect = \"a\"", "`connect` is `a`"),
        ("connect = \"a:1\"\npatience = -1", "`patience` is -1"),
        ("connect = \"a:1\"\nformat = \"sbs\"", "sbs"),
    ] {
        let said = registry().operator("mode_s.source", text).err().unwrap().to_string();
        assert!(said.contains(expected), "{said}");
    }
    for (text, expected) in [
        ("format = \"beast\"", "needs `connect`"),
        ("connect = \"a:1\"\nwait_for = 1", "`wait_for` is 1"),
        ("listen = \"a:1\"\nwait_for = 65", "`wait_for` is 65"),
        ("listen = \"a:1\"\nlatitude = 5", "give both"),
        ("listen = \"a:1\"\nlatitude = 95\nlongitude = 0", "`latitude` is 95"),
    ] {
        let said = registry().operator("mode_s.sink", text).err().unwrap().to_string();
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_source_can_be_called_and_called_again() {
    let (listener, address) = listener();
    let bytes = sent(frames(), "beast");
    let restart = Restart { limit: 1, delay_ns: 1_000_000, then: Then::Isolate, ..Restart::default() };
    let source = FrameSource::with(&format!("listen = \"{address}\"\nmay_close = false")).unwrap();
    let seen = std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..2 {
                let mut peer = loop {
                    match TcpStream::connect(&address) {
                        Ok(peer) => break peer,
                        Err(_) => std::thread::sleep(Duration::from_millis(5)),
                    }
                };
                peer.write_all(&bytes).unwrap();
                peer.shutdown(Shutdown::Write).unwrap();
                // Until the source has taken all: the next call is for its next socket.
                assert_eq!(peer.read(&mut [0]).unwrap(), 0);
            }
        });
        let trial = Trial::new(source.listener(listener)).keep::<Frame>("out");
        trial.on_error(OnError::Restart(restart)).run()
    });
    assert_eq!(hex(&seen.messages("out")), [hex(&frames()), hex(&frames())].concat());
}

#[test]
fn a_client_that_does_not_read_holds_up_nobody() {
    const COUNT: usize = 200_000;
    let (listener, address) = listener();
    // Replies to interrogations: each is a line.
    let reply = Frame::new(&bytes("2a00516d492b80"), 1.0, -3.0).unwrap();
    let slow = TcpStream::connect(&address).unwrap();
    let (lines, seen) = std::thread::scope(|scope| {
        let fast = scope.spawn(|| BufReader::new(TcpStream::connect(&address).unwrap()).lines().count());
        let gone =
            scope.spawn(|| BufReader::new(TcpStream::connect(&address).unwrap()).lines().take(5).count());
        let more = "format = \"sbs\"\nwait_for = 3\npatience = \"300 ms\"";
        let trial = Trial::new(sink(listener, more)).feed("in", Feed::messages(vec![reply; COUNT]));
        // In virtual time, each wait for the clients would sleep.
        let seen = trial.options(|options| options.clock = ClockKind::Real).run();
        assert_eq!(gone.join().unwrap(), 5);
        (fast.join().unwrap(), seen)
    });
    let notes = seen.notes();
    let of = |peer: &TcpStream| {
        let address = peer.local_addr().unwrap().to_string();
        let note = notes.iter().find(|note| note.contains(&address)).unwrap_or_else(|| panic!("{notes:?}"));
        let numbers: Vec<usize> =
            note.split(' ').filter_map(|word| word.trim_matches(',').parse().ok()).collect();
        (numbers[0], numbers[1])
    };
    let (got, lost) = of(&slow);
    assert!(got + lost == COUNT && lost > 0, "{notes:?}");
    assert!(lines > got && lines <= COUNT, "{lines}");
    let losses = seen.losses();
    assert!(
        losses.iter().any(|(_, unit, why)| *unit == "frames" && *why == "a client did not take them in time")
    );
    assert_eq!(seen.record().result.exit_status, 3);
}

/// Sends a frame every millisecond.
struct Paced {
    out: Output<Frame>,
    frames: std::vec::IntoIter<Frame>,
    next_ns: u64,
}

impl Operator for Paced {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if cx.now_ns() < self.next_ns {
            return Ok(cx.until(self.next_ns));
        }
        self.next_ns = cx.now_ns() + 1_000_000;
        let Some(frame) = self.frames.next() else { return Ok(Step::Done) };
        self.out.push(cx, frame)?;
        Ok(cx.until(self.next_ns))
    }
}

#[test]
fn a_server_that_comes_back_is_called_again() {
    let (listener, address) = listener();
    let all: Vec<Frame> = frames().into_iter().cycle().take(1500).collect();
    let mut graph = Graph::new("feeder");
    let paced = Paced { out: Output::default(), frames: all.into_iter(), next_ns: 0 };
    graph.add("frames", paced);
    graph.add("sink", FrameSink::with(&format!("connect = \"{address}\"\nformat = \"avr\"")).unwrap());
    let _ = graph.connect_names("frames.out", "sink.in");
    let run = graph.start(&Options { clock: ClockKind::Real, ..Options::default() }).unwrap();
    let first = BufReader::new(listener.accept().unwrap().0).lines().take(10).count();
    let second = BufReader::new(listener.accept().unwrap().0).lines().count();
    assert!(first == 10 && second > 10, "{second}");
    let record = run.wait().unwrap();
    let note = "closed the connection: it is called again, and frames are lost meanwhile";
    assert_eq!(record.notes.iter().filter(|text| text.contains(note)).count(), 1, "{:?}", record.notes);
    assert!(record.result.lost > 0 && second as u64 + record.result.lost < 1500);
}

#[test]
fn no_client_and_no_server_are_said() {
    let (listener, _) = listener();
    let seen = Trial::new(sink(listener, "")).feed("in", Feed::messages(frames())).run();
    assert_eq!(seen.notes(), ["24 frames came while no client was connected; number of clients in all: 0"]);
    assert_eq!(seen.record().result.exit_status, 0);
    let (listener, _) = self::listener();
    let text = Trial::new(sink(listener, "wait_for = 2\npatience = \"100 ms\""))
        .feed("in", Feed::messages(frames()))
        .failure();
    assert!(text.contains("0 of 2 clients (`wait_for`) have connected to 127.0.0.1:"), "{text}");
    let text = Trial::kind(&registry(), "mode_s.sink", "connect = \"127.9.8.7:1\"\npatience = \"100 ms\"")
        .feed("in", Feed::messages(frames()))
        .failure();
    assert!(text.contains("cannot connect to 127.9.8.7:1 within 100 ms"), "{text}");
}
