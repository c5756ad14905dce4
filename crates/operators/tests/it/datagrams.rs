//! Datagrams on loopback: lost, late, cut and refused ones are counted, and foreign ones are found.
#![forbid(unsafe_code)]

use num_complex::Complex;
use onbeat_operators::{SampleFormat, UdpSink, UdpSource};
use onbeat_runtime::Sample;
use onbeat_runtime::testing::{Feed, Seen, Trial};
use std::net::UdpSocket;
use std::time::Duration;

pub const LAST: u64 = 1 << 63;

/// A socket of this machine, and one that sends to it. Datagrams wait in the socket, so the test needs no
/// timing.
pub fn pair() -> (UdpSocket, UdpSocket) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.connect(socket.local_addr().unwrap()).unwrap();
    (socket, sender)
}

/// A datagram with a number and samples.
pub fn datagram(number: u64, samples: &[f32]) -> Vec<u8> {
    number.to_le_bytes().into_iter().chain(samples.iter().flat_map(|x| x.to_le_bytes())).collect()
}

/// Runs a source on these datagrams.
fn received(datagrams: &[Vec<u8>], change: impl FnOnce(UdpSource<f32>) -> UdpSource<f32>) -> Seen {
    let (socket, sender) = pair();
    for datagram in datagrams {
        sender.send(datagram).unwrap();
    }
    let source = UdpSource::new("127.0.0.1:0", None).unwrap().socket(socket).timeout(1_000_000_000);
    Trial::new(change(source.header(true))).run()
}

#[test]
fn samples_come_in_order_and_the_end_is_said() {
    let datagrams =
        [datagram(0, &[1.0, 2.0]), datagram(1, &[3.0]), datagram(2, &[]), datagram(3 | LAST, &[])];
    let seen = received(&datagrams, |source| source.rate(1000.0));
    assert_eq!(seen.samples::<f32>("out"), [1.0, 2.0, 3.0]);
    assert_eq!((seen.rate_hz("out"), seen.is_done(), seen.notes()), (1000.0, true, &[][..]));
    assert_eq!((seen.losses(), seen.record().result.exit_status), (vec![], 0));
}

#[test]
fn numbers_that_are_taken_as_samples_are_told() {
    let datagrams: Vec<Vec<u8>> = (0..5).map(|number| datagram(number, &[1.0, 2.0])).collect();
    let seen = received(&datagrams, |source| source.header(false).timeout(50_000_000));
    assert_eq!(seen.samples::<f32>("out").len(), 20);
    assert!(
        seen.notes().iter().any(|note| note.contains("set `header = true` here, too")),
        "{:?}",
        seen.notes()
    );
    let samples = vec![datagram(7, &[1.0]); 5];
    let seen = received(&samples, |source| source.header(false).timeout(50_000_000));
    assert!(!seen.notes().iter().any(|note| note.contains("`header")), "{:?}", seen.notes());
}

#[test]
fn a_gap_is_counted_and_marked() {
    let datagrams = [
        datagram(0, &[0.0; 10]),
        datagram(3, &[1.0; 10]),
        datagram(2, &[9.0; 10]),
        datagram(3, &[9.0; 10]),
        datagram(4, &[2.0; 10]),
        datagram(7 | LAST, &[]),
    ];
    let seen = received(&datagrams, |source| source);
    assert_eq!(seen.tags("out"), [(10, "lost".to_string(), 2.into())]);
    let expected: Vec<f32> = [0.0, 1.0, 2.0].iter().flat_map(|x| [*x; 10]).collect();
    assert_eq!(seen.samples::<f32>("out"), expected);
    // Of 7 sent, 3 were received; 1 came late.
    assert_eq!(
        seen.losses(),
        [
            (3, "datagrams", "their numbers never came: the network dropped them"),
            (1, "datagrams", "came after their successors"),
        ]
    );
    let notes = seen.notes();
    assert_eq!(notes[0], "3 datagrams were received, 4 were lost or late");
    assert!(notes[1].starts_with("1 datagrams were duplicates"), "{notes:?}");
    let result = &seen.record().result;
    assert_eq!((result.lost, result.exit_status), (4, 3));
    assert!(result.reason.ends_with("; `it` lost 4 datagrams"), "{}", result.reason);
}

#[test]
fn a_sender_that_begins_anew_is_followed() {
    let (socket, old) = pair();
    let new = UdpSocket::bind("127.0.0.1:0").unwrap();
    new.connect(socket.local_addr().unwrap()).unwrap();
    for number in 0..5 {
        old.send(&datagram(number, &[1.0])).unwrap();
    }
    // The first one of the new sender is missing, and the old one is not quite gone.
    new.send(&datagram(1, &[2.0])).unwrap();
    old.send(&datagram(5, &[1.0])).unwrap();
    new.send(&datagram(2, &[3.0])).unwrap();
    new.send(&datagram(3 | LAST, &[])).unwrap();
    let source = UdpSource::<f32>::new("x:1", None).unwrap().socket(socket).header(true);
    let seen = Trial::new(source).run();
    assert_eq!(seen.samples::<f32>("out"), [1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 3.0]);
    assert_eq!(seen.tags("out"), [(5, "lost".to_string(), 1.into())]);
    assert_eq!(seen.losses().iter().map(|loss| loss.0).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(seen.losses()[1].2, "came from another sender");
    assert!(
        seen.notes().iter().any(|note| note == "1 restarts of the sender were detected"),
        "{:?}",
        seen.notes()
    );
}

/// Returns the error of a source that expects numbers and receives these datagrams.
fn refused(datagrams: &[Vec<u8>]) -> String {
    let (socket, sender) = pair();
    for datagram in datagrams {
        sender.send(datagram).unwrap();
    }
    let source = UdpSource::<f32>::new("here:1", None).unwrap().socket(socket).header(true);
    Trial::new(source).failure()
}

#[test]
fn a_foreign_sender_is_refused() {
    let floats = |n: u32| datagram(0, &[n as f32 * 0.01; 100])[8..].to_vec();
    for (datagrams, expected) in [
        (vec![floats(1)], "the first datagram from 127.0.0.1:"),
        (vec![b"$GPGGA,123519,4807.038,N".to_vec()], "has the number"),
        (vec![vec![1, 2, 3]], "the first datagram has 3 bytes"),
        (vec![datagram(7, &[0.0]), floats(3)], "jumps from 7 to"),
        (vec![vec![0; 400]; 20], "16 datagrams from 127.0.0.1:"),
    ] {
        let text = refused(&datagrams);
        assert!(text.starts_with("here:1: ") && text.contains(expected), "{text}");
        assert!(text.contains("set `header = false`"), "{text}");
    }
}

#[test]
fn bytes_that_are_no_sample_are_lost() {
    let mut ragged = datagram(0, &[1.0, 2.0]);
    ragged.extend([7, 7]);
    let seen = received(&[ragged, vec![1, 2, 3], datagram(1 | LAST, &[])], |source| source);
    assert_eq!(seen.samples::<f32>("out"), [1.0, 2.0]);
    assert_eq!(
        seen.losses(),
        [
            (2, "bytes", "after the last complete sample of a datagram"),
            (1, "datagrams", "shorter than the header of 8 bytes"),
        ]
    );
}

#[test]
fn what_the_kernel_drops_is_counted() {
    const SENT: u64 = 20_000;
    for header in [false, true] {
        let (socket, sender) = pair();
        for number in 0..SENT {
            sender.send(&datagram(number, &[1.0; 50])[if header { 0 } else { 8 }..]).unwrap();
        }
        let source = UdpSource::<f32>::new("x:1", None).unwrap().socket(socket).header(header);
        let seen = Trial::new(source.timeout(1_000_000_000)).run();
        let received = seen.samples::<f32>("out").len() as u64 / 50;
        let losses = seen.losses();
        let [(lost, "datagrams", reason)] = losses[..] else { panic!("{losses:?}") };
        assert!(reason.starts_with("the kernel dropped them"), "{reason}");
        assert!(received > 0 && lost > 0 && received + lost == SENT, "{received} + {lost}");
    }
}

#[test]
fn the_size_of_the_buffer_is_requested() {
    let run = |bytes: usize, strict: bool| {
        let (socket, _) = pair();
        let source = UdpSource::<f32>::new("x:1", None).unwrap().socket(socket).receive_buffer(bytes);
        let trial = Trial::new(source.timeout(1_000_000)).options(|options| options.strict = strict);
        trial.try_run()
    };
    let seen = run(100_000, true).unwrap();
    let obtained = &seen.record().obtained.iter().find(|one| one.what == "receive buffer of it").unwrap();
    assert_eq!((obtained.asked.as_str(), obtained.obtained.as_str()), ("100000 bytes", "100000 bytes"));
    // More than an `i32` of bytes is never obtained.
    let seen = run(4 << 30, false).unwrap();
    let obtained = &seen.record().obtained.iter().find(|one| one.what == "receive buffer of it").unwrap();
    assert!(obtained.reason.as_ref().unwrap().contains("net.core.rmem_max"), "{obtained:?}");
    let text = run(4 << 30, true).err().unwrap();
    assert!(text.contains("strict: receive buffer of it: 4294967296 bytes was asked for"), "{text}");
}

#[test]
fn silence_ends_it_where_no_end_is_said() {
    let datagrams: Vec<Vec<u8>> = (0..20u8).map(|n| f32::from(n).to_le_bytes().to_vec()).collect();
    let seen = received(&datagrams, |source| source.header(false));
    assert_eq!(seen.samples::<f32>("out"), (0..20u8).map(f32::from).collect::<Vec<_>>());
    assert_eq!(seen.notes(), ["no datagram on 127.0.0.1:0 for 1000 ms: the stream was ended"]);
}

#[test]
fn datagrams_are_cut_where_a_chunk_is_full() {
    let samples: Vec<f32> = (0..4000).map(|n| n as f32).collect();
    let datagrams: Vec<Vec<u8>> =
        samples.chunks(1000).enumerate().map(|(n, samples)| datagram(n as u64, samples)).collect();
    let (socket, sender) = pair();
    for datagram in &datagrams {
        sender.send(datagram).unwrap();
    }
    sender.send(&datagram(4 | LAST, &[])).unwrap();
    let source = UdpSource::<f32>::new("x:1", None).unwrap().socket(socket).header(true);
    let seen = Trial::new(source).quantum(300 * 4).capacity(1).run();
    assert_eq!(seen.samples::<f32>("out"), samples);
}

/// Runs a sink on these samples.
fn sent<T: Sample + onbeat_operators::FileSample>(
    samples: Vec<T>,
    format: Option<SampleFormat>,
    change: impl FnOnce(UdpSink<T>) -> UdpSink<T>,
) -> (Vec<Vec<u8>>, Seen) {
    let (socket, _) = pair();
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let sink = UdpSink::new(socket.local_addr().unwrap().to_string(), format).unwrap();
    let seen = Trial::new(change(sink)).feed("in", Feed::samples(samples).cut(&[700])).run();
    let mut datagrams = Vec::new();
    let mut buffer = [0; 1 << 16];
    while let Ok(length) = socket.recv(&mut buffer) {
        datagrams.push(buffer[..length].to_vec());
    }
    (datagrams, seen)
}

#[test]
fn datagrams_have_numbers_and_an_end() {
    let samples: Vec<f32> = (0..1000).map(|n| n as f32).collect();
    let (datagrams, seen) = sent(samples.clone(), None, |sink| sink.header(true));
    let lengths: Vec<usize> = datagrams.iter().map(|datagram| (datagram.len() - 8) / 4).collect();
    assert_eq!(lengths, [350, 350, 300, 0, 0, 0]);
    let numbers: Vec<u64> =
        datagrams.iter().map(|datagram| u64::from_le_bytes(datagram[..8].try_into().unwrap())).collect();
    assert_eq!(numbers, [0, 1, 2, 3 | LAST, 3 | LAST, 3 | LAST]);
    assert_eq!(datagrams[1], datagram(1, &samples[350..700]));
    assert!(seen.notes().is_empty());
}

#[test]
fn samples_may_be_small_and_alone() {
    let samples = vec![Complex::new(1.0f32, -1.0), Complex::new(0.5, f32::NAN), Complex::new(3.0, 0.0)];
    let (datagrams, seen) = sent(samples, Some(SampleFormat::Ci8), |sink| sink.size(4).unwrap());
    assert_eq!(datagrams, [vec![127, 128, 64, 0], vec![127, 0]]);
    let notes = seen.notes();
    assert!(notes[0].contains("1 numbers were beyond the range of ci8"), "{notes:?}");
    assert!(notes[1].contains("1 numbers were not finite"), "{notes:?}");
}

#[test]
fn nobody_at_the_other_end_is_said() {
    // An unused address of this machine, with a port that is never assigned.
    let sink = UdpSink::<f32>::new("127.9.8.7:1", None).unwrap();
    let seen = Trial::new(sink).feed("in", Feed::samples(vec![0.0f32; 5000])).run();
    let [(lost, "datagrams", reason)] = seen.losses()[..] else { panic!("{:?}", seen.losses()) };
    assert!(reason.starts_with("nothing receives at the address"), "{reason}");
    // 5000 samples are 15 datagrams.
    assert_eq!((lost, seen.record().result.exit_status), (15, 3));
}

#[test]
fn addresses_that_cannot_be_are_refused() {
    let (socket, _) = pair();
    let taken = socket.local_addr().unwrap().to_string();
    for (bind, expected) in
        [(taken.as_str(), "in use"), ("127.0.0.1", "cannot receive on 127.0.0.1"), ("\0:1", "cannot receive")]
    {
        let text = Trial::new(UdpSource::<f32>::new(bind, None).unwrap()).failure();
        assert!(text.contains("cannot start") && text.contains(expected), "{bind}: {text}");
    }
    let text = Trial::new(UdpSink::<f32>::new("127.0.0.1:65536", None).unwrap())
        .feed("in", Feed::samples([0.0f32]))
        .failure();
    assert!(text.contains("cannot send to 127.0.0.1:65536"), "{text}");
}

#[test]
fn there_and_back() {
    let samples: Vec<f32> = (0..3000).map(|n| (n as f32).sin()).collect();
    let (socket, _) = pair();
    let sink = UdpSink::<f32>::new(socket.local_addr().unwrap().to_string(), None).unwrap().header(true);
    Trial::new(sink).feed("in", Feed::samples(samples.clone())).run();
    let source = UdpSource::<f32>::new("x:1", None).unwrap().socket(socket).header(true);
    assert_eq!(Trial::new(source).run().samples::<f32>("out"), samples);
}
