//! Two commands with a link between them, one of which is frozen or killed.

use super::harness::{Answer, Place, until};
use onbeat::Record;
use onbeat::testing::free_address;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

/// Bytes of the recording: two seconds.
const BYTES: usize = 8 * 200_000;

/// Any bytes that do not repeat.
fn recording() -> Vec<u8> {
    let mut random = 1_u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((random >> 40) as f32 / 65_536.0).to_le_bytes()
    };
    (0..BYTES / 4).flat_map(|_| next()).collect()
}

/// A place with both pipelines, which meet at this address.
fn place_with(address: &str) -> Place {
    let place = Place::new();
    fs::write(place.path("in.cf32"), recording()).unwrap();
    let link = "link = \"iq\"\nheartbeat = \"50 ms\"\nhold = \"20 s\"";
    let radio = format!(
        "name = \"radio\"\n[[operator]]\nname = \"iq\"\nkind = \"iq.source\"\npath = \"in.cf32\"\nformat = \
         \"cf32_le\"\nsample_rate = \"100 kHz\"\n[[operator]]\nname = \"to\"\nkind = \"link.sink.complex\"\n{link}\n\
         connect = \"{address}\"\n[[edge]]\nfrom = \"iq\"\nto = \"to\"\nquantum = \"4 KiB\"\n"
    );
    let desk = format!(
        "name = \"desk\"\n[[operator]]\nname = \"from\"\nkind = \"link.source.complex\"\n{link}\nlisten = \
         \"{address}\"\n[[operator]]\nname = \"file\"\nkind = \"file.sink.complex\"\npath = \"out.cf32\"\n[[edge]]\n\
         from = \"from\"\nto = \"file\"\nquantum = \"4 KiB\"\n"
    );
    fs::write(place.path("radio.toml"), radio).unwrap();
    fs::write(place.path("desk.toml"), desk).unwrap();
    place
}

/// Both kinds of addresses, with a place for each.
fn places() -> [(Place, bool); 2] {
    let tcp = free_address().to_string();
    [(place_with(&tcp), false), (place_with("unix:iq.sock"), true)]
}

fn start(place: &Place, name: &str, output: &str) -> Child {
    let output = format!("output={output}");
    place.start(&["run", &format!("{name}.toml"), "--quiet", "--set", &output])
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id().cast_signed()).unwrap(), signal).unwrap();
}

/// Waits until the sink has begun to write.
fn has_begun(place: &Place, output: &str) {
    let part = place.path(output).join("out.cf32.part");
    let begun = || fs::metadata(&part).ok().filter(|file| file.len() > 0).map(drop);
    until("something has come", begun).unwrap();
}

fn record(folder: &Path, name: &str) -> Record {
    Record::from_json(&fs::read_to_string(folder.join(format!("{name}.record.json"))).unwrap()).unwrap()
}

fn assert_ended(answer: &Answer) {
    assert_eq!(answer.status, Some(0), "{answer:?}");
}

#[test]
fn an_end_that_freezes_loses_nothing() {
    for (place, is_local) in places() {
        let (desk, radio) = (start(&place, "desk", "out"), start(&place, "radio", "sent"));
        has_begun(&place, "out");
        // Longer than three signs of life.
        for child in [&desk, &radio, &desk] {
            signal(child, Signal::STOP);
            std::thread::sleep(Duration::from_millis(400));
            signal(child, Signal::CONT);
            std::thread::sleep(Duration::from_millis(200));
        }
        assert_ended(&place.end(radio));
        assert_ended(&place.end(desk));
        assert!(fs::read(place.path("out/out.cf32")).unwrap() == recording());
        let (sent, taken) = (record(&place.path("sent"), "radio"), record(&place.path("out"), "desk"));
        let (sent, taken) = (&sent.links[0], &taken.links[0]);
        assert!(sent.cuts > 0 && taken.cuts > 0, "{sent:?} {taken:?}");
        assert_eq!((sent.messages, sent.dropped, sent.in_flight), (taken.messages, 0, 0));
        assert_eq!(sent.not_copied > 0, is_local, "{sent:?}");
    }
}

#[test]
fn a_consumer_that_is_killed_can_be_started_again() {
    for (place, _) in places() {
        let (mut desk, radio) = (start(&place, "desk", "first"), start(&place, "radio", "sent"));
        has_begun(&place, "first");
        signal(&desk, Signal::KILL);
        desk.wait().unwrap();
        let desk = start(&place, "desk", "second");
        assert_ended(&place.end(radio));
        assert_ended(&place.end(desk));
        // It begins with the oldest message that was not taken, and all that follows comes once.
        let rest = fs::read(place.path("second/out.cf32")).unwrap();
        assert!(!rest.is_empty() && rest.len() < BYTES && recording().ends_with(&rest), "{}", rest.len());
        let sent = record(&place.path("sent"), "radio");
        assert_eq!((sent.links[0].dropped, sent.links[0].in_flight, sent.result.lost), (0, 0, 0));
    }
}

#[test]
fn a_producer_that_is_killed_can_be_started_again() {
    for (place, _) in places() {
        let (desk, mut radio) = (start(&place, "desk", "out"), start(&place, "radio", "first"));
        has_begun(&place, "out");
        signal(&radio, Signal::KILL);
        radio.wait().unwrap();
        let radio = start(&place, "radio", "second");
        assert_ended(&place.end(radio));
        assert_ended(&place.end(desk));
        let found = fs::read(place.path("out/out.cf32")).unwrap();
        assert!(found.len() > BYTES && found.ends_with(&recording()), "{}", found.len());
        let taken = record(&place.path("out"), "desk");
        assert!(
            taken.notes.iter().any(|note| note.contains("another run of the producer")),
            "{:?}",
            taken.notes
        );
    }
}
