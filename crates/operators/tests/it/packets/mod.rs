//! Packets and pages: receivers next to modulators that were written from the standards. `ci/packet` compares
//! with other programs.
#![forbid(unsafe_code)]

mod aprs;
mod pages;
mod parts;
pub mod signals;

use crate::slices::Dice;
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Seen, Trial, cuts};
use serde_json::{Value, json};
use signals::{PLAIN, Signal, frame, levels, normal, pause};

fn trial(kind: &str, samples: Vec<f32>, rate_hz: f64) -> Trial {
    Trial::kind(&registry(), kind, "").feed("in", Feed::samples(samples).rate(rate_hz))
}

fn lines(seen: &Seen) -> Vec<Value> {
    seen.messages::<String>("out").iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Lines of a receiver for this audio.
fn received(kind: &str, samples: Vec<f32>, rate_hz: f64) -> Vec<Value> {
    lines(&trial(kind, samples, rate_hz).run())
}

/// Frames with different texts.
fn frames(count: usize) -> Vec<Vec<u8>> {
    let mut dice = Dice::new(5);
    let text =
        |dice: &mut Dice| (0..20 + dice.bits() % 60).map(|_| 0x20 + (dice.bits() % 95) as u8).collect();
    let one = |number: usize| {
        let info: Vec<u8> = text(&mut dice);
        let rest = [b"\x03\xf0>", format!("{number} ").as_bytes(), &info].concat();
        frame(&["APRS", "N0CALL-7", "WIDE1-1*", "WIDE2-2"], &rest)
    };
    (0..count).map(one).collect()
}

/// The information of a frame of `frames`.
fn info(frame: &[u8]) -> String {
    String::from_utf8(frame[30..].to_vec()).unwrap()
}

/// How many of 12 frames come through, and how many others.
fn through(signal: Signal) -> (usize, usize) {
    let sent = frames(12);
    let audio: Vec<_> = sent.iter().map(|frame| signal.tones(&levels(frame))).collect();
    let audio = signal.received(&pause(&audio), &mut Dice::new(9));
    let found = received("afsk.decode", audio, signal.rate_hz);
    let is_sent = |line: &&Value| sent.iter().any(|frame| line["info"] == info(frame));
    let right = found.iter().filter(is_sent).count();
    (right, found.len() - right)
}

#[test]
fn packets_come_at_any_rate_level_twist_and_clock() {
    for rate_hz in [5600.0, 8000.0, 11_025.0, 22_050.0, 48_000.0, 96_000.0, 250_000.0] {
        assert_eq!(through(Signal { rate_hz, ..PLAIN }), (12, 0), "{rate_hz} Hz");
    }
    for amplitude in [1e-4, 0.05, 1.0, 1000.0] {
        assert_eq!(through(Signal { amplitude, ..PLAIN }), (12, 0), "amplitude {amplitude}");
    }
    for twist in [0.35, 0.5, 2.0, 2.8] {
        assert_eq!(through(Signal { twist, noise: 0.3, ..PLAIN }), (12, 0), "twist {twist}");
    }
    for baud in [1195.0, 1199.8, 1200.2, 1205.0] {
        assert_eq!(through(Signal { baud, noise: 0.3, ..PLAIN }), (12, 0), "{baud} Bd");
    }
    assert_eq!(through(Signal { constant: 0.4, noise: 0.3, ..PLAIN }), (12, 0));
}

#[test]
fn noise_takes_frames_and_makes_none() {
    // 8 dB in 3 kHz.
    let noise = |snr_db: f64| (0.5 * 10f64.powf(-snr_db / 10.0) * 11_025.0 / 3000.0).sqrt();
    let (right, wrong) = through(Signal { noise: noise(8.0), ..PLAIN });
    assert!(right >= 11 && wrong == 0, "{right} right, {wrong} wrong");
    assert_eq!(through(Signal { noise: noise(-10.0), ..PLAIN }), (0, 0));
    let mut dice = Dice::new(3);
    let long: Vec<f32> = (0..30 * 22_050).map(|_| normal(&mut dice)).collect();
    for kind in ["afsk.decode", "pocsag.decode"] {
        assert_eq!(received(kind, long.clone(), 22_050.0), Vec::<Value>::new(), "{kind}");
    }
}

#[test]
fn cuts_do_not_matter() {
    let audio: Vec<_> = frames(2).iter().map(|frame| PLAIN.tones(&levels(frame))).collect();
    let audio = Signal { noise: 0.5, ..PLAIN }.received(&pause(&audio), &mut Dice::new(4));
    let seen = cuts(|| trial("afsk.decode", audio.clone(), 22_050.0).keep::<String>("out"));
    assert_eq!(lines(&seen).len(), 2);
}

#[test]
fn bad_samples_spoil_one_frame() {
    let sent = frames(6);
    let audio: Vec<_> = sent.iter().map(|frame| PLAIN.tones(&levels(frame))).collect();
    let mut audio = pause(&audio);
    for (at, bad) in
        [(0, f32::NAN), (8000, f32::INFINITY), (8001, f32::NAN), (8002, f32::NEG_INFINITY), (1, 1e38)]
    {
        audio[at] = bad;
    }
    let seen = trial("afsk.decode", audio, 22_050.0).run();
    let found = lines(&seen);
    let last: Vec<_> = sent[4..].iter().map(|frame| json!(info(frame))).collect();
    assert_eq!(found[found.len() - 2..].iter().map(|line| line["info"].clone()).collect::<Vec<_>>(), last);
    assert!(seen.notes()[0].contains("4 samples were not finite"), "{:?}", seen.notes());
}

#[test]
fn fields_of_frames() {
    let line = |stations: &[&str], rest: &[u8]| {
        let audio = pause(&[PLAIN.tones(&levels(&frame(stations, rest)))]);
        let mut found = received("afsk.decode", audio, 22_050.0);
        assert_eq!(found.len(), 1, "{stations:?} {rest:?}");
        let mut line = found.remove(0);
        let time_s = line.as_object_mut().unwrap().remove("time_s").unwrap().as_f64().unwrap();
        // 30 flags after the pause.
        assert!((time_s - (3001.0 / 22_050.0 + 0.2)).abs() < 1e-3, "{time_s}");
        line
    };
    assert_eq!(
        line(&["CQ", "DL1ABC-15", "WIDE1-1*", "WIDE2-1"], b"\x03\xf0caf\xc3\xa9"),
        json!({"from": "DL1ABC-15", "to": "CQ", "via": ["WIDE1-1*", "WIDE2-1"], "type": "UI", "pid": "f0", "info": "café"})
    );
    assert_eq!(
        line(&["CQ*", "DL1ABC"], b"\x13\xcf\xff\\x\x00"),
        json!({"from": "DL1ABC", "to": "CQ", "type": "UI", "command": true, "poll": true, "pid": "cf",
            "info": "\\xff\\x\0", "info_hex": "ff5c7800"})
    );
    assert_eq!(
        line(&["A1B", "C2D*"], b"\x71"),
        json!({"from": "C2D", "to": "A1B", "type": "RR", "command": false, "poll": true, "receive_number": 3})
    );
    assert_eq!(
        line(&["A1B", "C2D"], b"\x54\xf0x"),
        json!({"from": "C2D", "to": "A1B", "type": "I", "poll": true, "send_number": 2, "receive_number": 2,
            "pid": "f0", "info": "x"})
    );
    assert_eq!(line(&["A1B", "C2D"], b"\x3f")["type"], "SABM");
}

#[test]
fn frames_that_are_not_of_ax25_are_left_out() {
    let lower = frame(&["aprs", "N0CALL"], b"\x03\xf0lower case");
    let mut open = frame(&["APRS", "N0CALL"], b"\x03\xf0no end of addresses");
    open[13] &= 0xfe;
    let empty = frame(&["", "N0CALL"], b"\x03\xf0no name at all");
    let huge = frame(&["APRS", "N0CALL"], &[b"\x03\xf0", &[b'x'; 1200][..]].concat());
    let audio: Vec<_> = [lower, open, empty, huge].iter().map(|frame| PLAIN.tones(&levels(frame))).collect();
    let seen = trial("afsk.decode", pause(&audio), 22_050.0).run();
    assert_eq!(lines(&seen), Vec::<Value>::new());
    assert!(seen.notes()[0].contains("no frame in"), "{:?}", seen.notes());
}

#[test]
fn a_rate_that_is_too_low_is_refused() {
    let said = trial("afsk.decode", vec![0.0; 100], 5000.0).failure();
    assert!(said.contains("5000") && said.contains("5600"), "{said}");
    let said = trial("pocsag.decode", vec![0.0; 100], 8000.0).failure();
    assert!(said.contains("8000") && said.contains("9600"), "{said}");
}
