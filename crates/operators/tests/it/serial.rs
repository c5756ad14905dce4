//! Serial ports, over pseudo-terminals: both directions, odd pieces, devices that go and come back.
#![forbid(unsafe_code)]

use onbeat_operators::buses::serial::{
    LineEnd, SerialByteSink, SerialByteSource, SerialSampleSink, SerialSampleSource, SerialSetup,
    SerialTextSink, SerialTextSource,
};
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Trial};
use onbeat_runtime::{OnError, Operator, Restart, Then};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, tcgetattr};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A pseudo-terminal: the device is the end that the operators open, the peer is what is plugged in.
struct Wire {
    peer: File,
    path: PathBuf,
    /// The device, kept open so that its modes can be read.
    device: OwnedFd,
}

impl Wire {
    fn new() -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let peer = openpt(flags).unwrap();
        grantpt(&peer).unwrap();
        unlockpt(&peer).unwrap();
        let name = ptsname(&peer, Vec::new()).unwrap();
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(name.as_bytes()));
        let device = open(&path, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        Wire { peer: File::from(peer), path, device }
    }

    fn setup(&self) -> SerialSetup {
        setup(&self.path)
    }

    fn modes(&self) -> Termios {
        tcgetattr(&self.device).unwrap()
    }

    /// Waits until an operator has opened the port: before that, the kernel edits lines and echoes.
    fn await_user(&self) {
        patiently(|| !self.modes().local_modes.contains(LocalModes::ICANON));
    }

    /// Waits until the operator has read everything.
    fn await_reader(&self) {
        patiently(|| rustix::io::ioctl_fionread(&self.device).unwrap() == 0);
        // The bytes are with the operator, or on their way from the peer's buffer to the device's.
        std::thread::sleep(Duration::from_millis(200));
        patiently(|| rustix::io::ioctl_fionread(&self.device).unwrap() == 0);
    }

    /// Writes pieces when an operator listens, waits until it has read them, and unplugs the device.
    fn say(mut self, pieces: &[&[u8]]) {
        self.tell(pieces);
    }

    fn tell(&mut self, pieces: &[&[u8]]) {
        self.await_user();
        for piece in pieces {
            self.peer.write_all(piece).unwrap();
            std::thread::sleep(Duration::from_millis(2));
        }
        self.await_reader();
    }
}

fn setup(path: &Path) -> SerialSetup {
    SerialSetup { patience_ns: 20_000_000_000, ..SerialSetup::new(path) }
}

fn patiently(mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it did not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn random(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes
}

/// Restarts once, and ends after the second failure.
fn once() -> OnError {
    OnError::Restart(Restart { limit: 1, delay_ns: 1_000_000, then: Then::Isolate, ..Restart::default() })
}

#[test]
fn megabytes_go_both_ways_over_one_port() {
    const LENGTH: usize = 3 << 20;
    let wire = Wire::new();
    let (before, path) = (wire.modes(), wire.path.clone());
    let fast = || {
        let mut setup = setup(&path);
        setup.settings.baud = 3_000_000;
        setup
    };
    let (there, back) = (random(1, LENGTH), random(2, LENGTH));
    std::thread::scope(|scope| {
        let source =
            scope.spawn(|| Trial::new(SerialByteSource::new(fast())).on_error(OnError::Isolate).run());
        wire.await_user();
        let sink = scope.spawn(|| {
            let feed = Feed::samples(there.iter().copied()).cut(&[1, 7, 4096, 1000]);
            Trial::new(SerialByteSink::new(fast())).feed("in", feed).run()
        });
        let mut writer = wire.peer.try_clone().unwrap();
        let written = scope.spawn(|| {
            for piece in back.chunks(1013) {
                writer.write_all(piece).unwrap();
            }
            drop(writer);
        });
        let mut came = vec![0; LENGTH];
        (&wire.peer).read_exact(&mut came).unwrap();
        assert!(came == there, "other bytes came there");
        let sunk = sink.join().unwrap();
        assert!(sunk.losses().is_empty() && sunk.notes().is_empty());
        written.join().unwrap();
        assert_eq!(wire.modes().output_speed(), 3_000_000);
        wire.await_reader();
        assert_ne!(format!("{before:?}"), format!("{:?}", wire.modes()));
        drop(wire);
        let seen = source.join().unwrap();
        assert!(seen.samples::<u8>("out") == back, "other bytes came back");
        assert!(seen.losses().is_empty(), "{:?}", seen.losses());
    });
}

#[test]
fn lines_come_in_odd_pieces() {
    let wire = Wire::new();
    let source = SerialTextSource::new(wire.setup(), 20).skip(1);
    let seen = std::thread::scope(|scope| {
        let pieces: [&[u8]; 10] = [
            b"alf a line\n",
            b"$GPGGA,1",
            b"23519\r",
            b"\n",
            b"\xff\xfe\n12.",
            b"5\n\n",
            b"zw\xc3",
            b"\xb6lf\n",
            b"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n",
            b"end\nrest",
        ];
        scope.spawn(move || wire.say(&pieces));
        Trial::new(source).on_error(OnError::Isolate).run()
    });
    assert_eq!(seen.messages::<String>("out"), ["$GPGGA,123519", "12.5", "", "zwölf", "end"]);
    let losses: Vec<_> = seen.losses().iter().map(|(count, unit, _)| (*count, unit.to_string())).collect();
    let lines = |count| (count, "lines".to_string());
    assert!(
        losses.contains(&lines(1)) && losses.iter().filter(|loss| **loss == lines(1)).count() == 2,
        "{losses:?}"
    );
    assert!(seen.losses().iter().any(|(_, _, reason)| reason.contains("not UTF-8")));
}

#[test]
fn samples_are_in_a_format() {
    let wire = Wire::new();
    let format = serde_json::from_str("\"ri16_le\"").unwrap();
    let source = SerialSampleSource::new(wire.setup(), Some(format), 1000.0).unwrap();
    let seen = std::thread::scope(|scope| {
        scope.spawn(move || wire.say(&[&[0], &[0x40, 0, 0xc0, 0], &[0x20], &[1]]));
        Trial::new(source).on_error(OnError::Isolate).run()
    });
    assert_eq!(seen.samples::<f32>("out"), [0.5, -0.5, 0.25]);
    assert_eq!(seen.rate_hz("out"), 1000.0);
}

#[test]
fn a_device_comes_back_under_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("gps");
    let (mut first, second) = (Wire::new(), Wire::new());
    symlink(&first.path, &name).unwrap();
    let source = SerialTextSource::new(setup(&name), 100);
    let name = &name;
    let seen = std::thread::scope(|scope| {
        scope.spawn(move || {
            first.tell(&[b"one\ntwo\nthr"]);
            // Before the device goes: another test may get its number.
            std::fs::remove_file(name).unwrap();
            drop(first);
            std::thread::sleep(Duration::from_millis(200));
            symlink(&second.path, name).unwrap();
            second.say(&[b"four\nfi", b"ve\n"]);
        });
        Trial::new(source).on_error(once()).run()
    });
    assert_eq!(seen.messages::<String>("out"), ["one", "two", "four", "five"]);
    assert_eq!(seen.losses(), [(3, "bytes", "the device went away in the middle of a sample or line")]);
    assert!(seen.notes().iter().any(|note| note.contains("was away for")), "{:?}", seen.notes());
}

#[test]
fn a_sink_goes_on_when_the_device_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("motor");
    let (mut first, mut second) = (Wire::new(), Wire::new());
    symlink(&first.path, &name).unwrap();
    let sink = SerialTextSink::new(setup(&name), LineEnd::Crlf);
    let lines: Vec<String> = (0..4000).map(|n| format!("line {n:06}")).collect();
    let all: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    let (seen, heads, tails) = std::thread::scope(|scope| {
        let peers = scope.spawn(move || {
            let mut head = vec![0; 5000];
            first.peer.read_exact(&mut head).unwrap();
            std::fs::remove_file(&name).unwrap();
            drop(first);
            symlink(&second.path, &name).unwrap();
            let mut tail = Vec::new();
            while !tail.ends_with(b"line 003999\r\n") {
                let mut bytes = [0; 1000];
                let count = second.peer.read(&mut bytes).unwrap();
                tail.extend_from_slice(&bytes[..count]);
            }
            (head, tail)
        });
        let seen = Trial::new(sink).feed("in", Feed::messages(lines)).on_error(once()).run();
        let (head, tail) = peers.join().unwrap();
        (seen, head, tail)
    });
    assert!(all.as_bytes().starts_with(&heads), "the first device got something else");
    assert!(all.as_bytes().ends_with(&tails), "the second device got something else");
    assert!(seen.notes().iter().any(|note| note.contains("was away for")), "{:?}", seen.notes());
    let lost: u64 = seen.losses().iter().map(|(count, ..)| count).sum();
    assert!(lost as usize <= all.len() - heads.len() - tails.len() && tails.len() > 1000, "{lost}");
}

#[test]
fn the_old_settings_come_back() {
    let wire = Wire::new();
    let before = format!("{:?}", wire.modes());
    Trial::new(SerialSampleSink::new(wire.setup(), None).unwrap()).feed("in", Feed::samples([1.0f32])).run();
    assert_eq!(format!("{:?}", wire.modes()), before, "after a run");
    let feed = Feed::samples([1.0f32]).then_fail("on purpose");
    Trial::new(SerialSampleSink::new(wire.setup(), None).unwrap()).feed("in", feed).failure();
    assert_eq!(format!("{:?}", wire.modes()), before, "after an error");
}

#[test]
fn what_nobody_takes_is_lost_and_counted() {
    let wire = Wire::new();
    let setup = SerialSetup { patience_ns: 100_000_000, ..wire.setup() };
    let bytes = random(3, 200_000);
    // The queue has room for all, so that the source ends.
    let trial = Trial::new(SerialByteSink::new(setup)).feed("in", Feed::samples(bytes));
    let seen = trial.quantum(16 << 10).capacity(64).run();
    let [(lost, "bytes", reason)] = seen.losses()[..] else { panic!("{:?}", seen.losses()) };
    assert!(reason.contains("`patience`") && lost > 150_000 && lost < 200_000, "{lost} {reason}");
}

#[test]
fn what_a_port_refuses_is_said() {
    let wire = Wire::new();
    let kind = |parameters: &str| {
        let parameters = format!("port = {:?}\n{parameters}", wire.path);
        Trial::kind(&registry(), "serial.sink.bytes", &parameters).feed("in", Feed::samples([1u8]))
    };
    let seen = kind("data_bits = 7\nparity = \"even\"\nstop_bits = 2").run();
    let obtained = &seen.record().obtained;
    assert!(
        obtained.iter().any(|one| one.asked == "115200 baud, 7E2" && one.obtained.contains("8N")),
        "{obtained:?}"
    );
    let strict = kind("parity = \"odd\"").options(|options| options.strict = true).failure();
    assert!(strict.contains("8O1 was asked for"), "{strict}");
    flock(&wire.device, FlockOperation::NonBlockingLockExclusive).unwrap();
    let busy = kind("").failure();
    assert!(busy.contains("another program uses it"), "{busy}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "text").unwrap();
    for (path, expected) in [
        (Path::new("/dev/onbeat-no-such-port"), "there is no such file"),
        (Path::new("/dev/null"), "not a serial port"),
        (&file, "not a serial port"),
        (folder.path(), "not a serial port"),
    ] {
        let said = Trial::new(SerialTextSource::new(setup(path), 100)).failure();
        assert!(said.contains(expected) && said.contains("serial port"), "{said}");
        // `onbeat check` does not open what is a device.
        let looked = SerialTextSource::new(setup(path), 100).check().err().map(|error| error.to_string());
        assert_eq!(looked.is_none(), path == Path::new("/dev/null"), "{looked:?}");
        assert!(looked.is_none_or(|looked| said.contains(&looked)), "{said}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "text");
}
