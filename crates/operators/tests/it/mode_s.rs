//! Mode S with a generated and a real capture.
#![forbid(unsafe_code)]

use crate::slices::Dice;
use num_complex::Complex;
use onbeat_operators::mode_s::{Decode, Demod, Frame, FrameSearch, RATE_HZ};
use onbeat_runtime::testing::{Feed, Trial, cuts};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// A file of the shared folder next to the checkout, if it exists.
#[allow(clippy::disallowed_macros, reason = "a test that is skipped says so")]
fn shared(name: &str) -> Option<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    let bytes = fs::read(&path).ok();
    if bytes.is_none() {
        println!("skipped: {} is not there", path.display());
    }
    bytes
}

fn complex(bytes: &[u8]) -> Vec<Complex<f32>> {
    let float = |byte: u8| (f32::from(byte) - 127.5) / 127.5;
    bytes.chunks_exact(2).map(|pair| Complex::new(float(pair[0]), float(pair[1]))).collect()
}

fn magnitudes(bytes: &[u8]) -> Vec<f32> {
    complex(bytes).into_iter().map(|x| (x.re * x.re + x.im * x.im).sqrt()).collect()
}

/// Frames found when the search gets slices of these lengths.
fn search(samples: &[f32], lengths: &[usize]) -> Vec<Frame> {
    let mut search = FrameSearch::new(60 * RATE_HZ as u64);
    let mut frames = Vec::new();
    let mut rest = samples;
    for length in lengths.iter().cycle() {
        let (mut now, later) = rest.split_at(rest.len().min(*length));
        while !now.is_empty() {
            now = &now[search.take(now, |x| x)..];
            frames.extend(std::iter::from_fn(|| search.next()));
        }
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    search.finish();
    frames.extend(std::iter::from_fn(|| search.next()));
    frames
}

fn made() -> (Vec<u8>, Vec<(String, f64)>) {
    let line = |line: &str| line.split_once(' ').map(|(hex, time)| (hex.to_string(), time.parse().unwrap()));
    let list = fs::read_to_string(example("adsb.frames")).unwrap();
    (fs::read(example("adsb.cu8")).unwrap(), list.lines().map(|text| line(text).unwrap()).collect())
}

#[test]
fn every_frame_of_the_example_is_found_and_nothing_else() {
    let (bytes, expected) = made();
    let frames = search(&magnitudes(&bytes), &[100_000]);
    assert!(expected.len() >= 20);
    let hex: Vec<String> = frames.iter().map(Frame::hex).collect();
    assert_eq!(hex, expected.iter().map(|(hex, _)| hex.clone()).collect::<Vec<_>>());
    for (frame, (hex, time_s)) in frames.iter().zip(&expected) {
        // A quarter of a sample, plus the effect of noise.
        assert!((frame.time_s - time_s).abs() < 0.2e-6, "{hex}: {} for {time_s}", frame.time_s);
        assert!((-25.0..0.0).contains(&frame.level_db), "{}", frame.level_db);
    }
}

#[test]
fn the_real_capture_gives_what_is_known_to_be_in_it() {
    let (Some(bytes), Some(list)) = (shared("modes1.bin"), shared("modes1.frames")) else { return };
    let frames = search(&magnitudes(&bytes), &[16_384]);
    let list = String::from_utf8(list).unwrap();
    let format = |hex: &str| u8::from_str_radix(&hex[..2], 16).unwrap() >> 3;
    let known: HashSet<&str> = list
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|hex| matches!(format(hex), 11 | 17))
        .collect();
    let found: BTreeSet<String> = frames.iter().map(Frame::hex).collect();
    let both = known.iter().filter(|hex| found.contains(**hex)).count();
    assert_eq!(known.len(), 90);
    assert!(both >= 88, "{both} of 90");
    let squitters = found.iter().filter(|hex| format(hex) == 17).count();
    assert!(squitters >= 140, "{squitters} distinct DF 17");
    for frame in frames.iter().filter(|frame| matches!(frame.downlink_format(), 17 | 18)) {
        assert_eq!((frame.address(), frame.remainder()), (0x4d2023, 0));
    }
}

#[test]
fn slices_do_not_matter() {
    let (bytes, _) = made();
    let mut samples = vec![magnitudes(&bytes)];
    samples.extend(shared("modes1.bin").map(|bytes| magnitudes(&bytes)));
    for samples in samples {
        let whole = search(&samples, &[samples.len()]);
        for lengths in [&[1][..], &[7], &[1000, 3], &[4096], &[16_384 + 241], &[1, 50_000, 239]] {
            assert!(search(&samples, lengths) == whole, "{lengths:?}");
        }
    }
}

#[test]
fn chunks_do_not_matter() {
    let (bytes, expected) = made();
    // A section with three frames, because feeding single bytes is slow.
    let samples = complex(&bytes[..18_000]);
    let trial = || {
        let feed = Feed::samples(samples.clone()).rate(RATE_HZ);
        Trial::new(Demod::<Complex<f32>>::new(60.0).unwrap()).feed("in", feed).keep::<Frame>("out")
    };
    let seen = cuts(trial);
    let hex: Vec<String> = seen.messages::<Frame>("out").iter().map(Frame::hex).collect();
    assert!(hex.len() >= 2);
    assert_eq!(hex, expected[..hex.len()].iter().map(|(hex, _)| hex.clone()).collect::<Vec<_>>());
}

#[test]
fn magnitudes_and_complex_samples_give_the_same() {
    let (bytes, _) = made();
    let real = Trial::new(Demod::<f32>::new(60.0).unwrap())
        .feed("in", Feed::samples(magnitudes(&bytes)).rate(RATE_HZ))
        .keep::<Frame>("out")
        .run();
    let complex = Trial::new(Demod::<Complex<f32>>::new(60.0).unwrap())
        .feed("in", Feed::samples(complex(&bytes)).rate(RATE_HZ))
        .keep::<Frame>("out")
        .run();
    assert_eq!(real.messages::<Frame>("out"), complex.messages::<Frame>("out"));
}

#[test]
fn the_end_of_the_stream_ends_no_frame() {
    let (bytes, expected) = made();
    let samples = magnitudes(&bytes);
    let (hex, time_s) = &expected[0];
    // Its last bit ends half a sample after the stream.
    let end = (time_s * RATE_HZ) as usize + 16 + 8 * hex.len();
    assert_eq!(search(&samples[..end + 1], &[1000]).len(), 1);
    assert_eq!(search(&samples[..end - 20], &[1000]).len(), 0);
    assert_eq!(search(&[], &[1]).len(), 0);
}

#[test]
fn noise_holds_no_aircraft() {
    let mut dice = Dice::new(9);
    let mut value = || dice.value() / 2.0;
    let noise: Vec<f32> = (0..2_000_000).map(|_| f32::hypot(value() + value(), value() + value())).collect();
    assert_eq!(search(&noise, &[100_000]), []);
}

#[test]
fn unknown_aircraft_are_not_believed_and_silent_ones_forgotten() {
    let (bytes, expected) = made();
    let samples = magnitudes(&bytes);
    let formats = |remember_s: f64| {
        let seen = Trial::new(Demod::<f32>::new(remember_s).unwrap())
            .feed("in", Feed::samples(samples.clone()).rate(RATE_HZ))
            .keep::<Frame>("out")
            .run();
        let mut formats = BTreeMap::new();
        for frame in seen.messages::<Frame>("out") {
            *formats.entry((frame.downlink_format(), frame.remainder() == 0)).or_insert(0) += 1;
        }
        formats
    };
    let all = formats(60.0);
    assert_eq!(all.values().sum::<i32>() as usize, expected.len());
    assert!(all.contains_key(&(4, false)) && all.contains_key(&(11, false)));
    assert_eq!(formats(0.0).into_keys().collect::<Vec<_>>(), [(11, true), (17, true)]);
}

#[test]
fn bad_samples_are_counted() {
    let (bytes, expected) = made();
    let mut samples = magnitudes(&bytes);
    samples[10] = f32::NAN;
    samples[200] = f32::INFINITY;
    let seen = Trial::new(Demod::<f32>::new(60.0).unwrap())
        .feed("in", Feed::samples(samples).rate(RATE_HZ))
        .keep::<Frame>("out")
        .run();
    assert_eq!(seen.messages::<Frame>("out").len(), expected.len());
    assert_eq!(seen.notes(), ["2 samples were not finite and counted as 0"]);
}

#[test]
fn other_rates_are_refused() {
    let failure = |rate_hz: f64| {
        let feed = Feed::samples(vec![0.0f32; 10]).rate(rate_hz);
        Trial::new(Demod::<f32>::new(60.0).unwrap()).feed("in", feed).keep::<Frame>("out").failure()
    };
    assert!(failure(2.4e6).contains("is 2400000 Hz, but it works only at 2000000 Hz"), "{}", failure(2.4e6));
    let none = Trial::new(Demod::<f32>::new(60.0).unwrap()).feed("in", Feed::samples(vec![0.0f32; 10]));
    assert!(none.keep::<Frame>("out").failure().contains("needs a sample rate"));
    assert!(Demod::<f32>::new(-1.0).err().unwrap().to_string().contains("`remember` is -1"));
}

#[test]
fn lines_say_what_the_flight_does() {
    let (bytes, _) = made();
    let frames = search(&magnitudes(&bytes), &[100_000]);
    let feed = Feed::messages(frames.clone());
    let seen = Trial::new(Decode::default()).feed("in", feed).keep::<String>("out").run();
    let lines: Vec<Value> =
        seen.messages::<String>("out").iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), frames.len());
    for (line, frame) in lines.iter().zip(&frames) {
        assert_eq!(line["hex"], frame.hex());
        assert_eq!(line["address"], "f00b01");
        assert_eq!(line["df"], frame.downlink_format());
        assert!((line["time_s"].as_f64().unwrap() - frame.time_s).abs() < 1e-8);
    }
    let about = |about: &str| lines.iter().filter(|line| line["about"] == about).collect::<Vec<_>>();
    assert_eq!(about("identification")[0]["call_sign"], "ONBEAT1");
    assert_eq!(about("identification")[0]["category"], "A3");
    let velocity = about("velocity")[0];
    assert_eq!(velocity["ground_speed_kt"], 400.1);
    assert_eq!(velocity["track_deg"], 39.22);
    assert_eq!(velocity["vertical_rate_ft_per_min"], 1920);
    assert_eq!(velocity["vertical_rate_source"], "barometer");
    assert_eq!(about("altitude reply")[0]["altitude_ft"], 12_050);
    let positions = about("airborne position");
    assert!(positions[0].get("latitude_deg").is_none(), "one position is none");
    for position in &positions[1..] {
        let near = |name: &str, value: f64| (position[name].as_f64().unwrap() - value).abs() < 0.004;
        assert!(near("latitude_deg", 47.401) && near("longitude_deg", 8.502), "{position}");
    }
}
