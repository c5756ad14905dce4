//! The WAV file: its contents, and that it is never incomplete.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_macros, reason = "says why a test was skipped")]

use crate::harness::{SmallDisk, failure, files};
use onbeat_operators::{NullSource, WavFormat, WavSink};
use onbeat_runtime::testing::{Feed, Seen, Trial};
use onbeat_runtime::{Ending, Graph, Options, Pace};
use std::fs;
use std::path::PathBuf;

/// A sink that receives these samples.
fn writer(samples: Vec<f32>, rate_hz: f64, sink: WavSink) -> Trial {
    Trial::new(sink).feed("in", Feed::samples(samples).cut(&[1000]).rate(rate_hz))
}

fn write(samples: Vec<f32>, rate_hz: f64, sink: WavSink) -> Seen {
    writer(samples, rate_hz, sink).run()
}

#[test]
fn whole_numbers_are_rounded_and_clipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/out.wav");
    let samples =
        vec![0.0, 1.0, -1.0, 0.5, 1.0 / 32768.0, 1.1, -7.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    let seen = write(samples, 48e3, WavSink::new(&path));
    let mut wav = hound::WavReader::open(&path).unwrap();
    assert_eq!(wav.spec().sample_rate, 48_000);
    let read: Vec<i16> = wav.samples().map(Result::unwrap).collect();
    assert_eq!(read, [0, 32767, -32768, 16384, 1, 32767, -32768, 0, 0, 0]);
    let notes = seen.notes();
    assert_eq!(notes.len(), 2);
    assert!(notes[0].starts_with("2 samples were beyond ±1 and were clipped"), "{notes:?}");
    assert!(notes[1].starts_with("3 samples were not finite"), "{notes:?}");
    assert_eq!(files(path.parent().unwrap()), ["out.wav"]);
}

#[test]
fn numbers_of_a_file_are_written_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.wav");
    let all: Vec<i16> = (i16::MIN..=i16::MAX).collect();
    let seen = write(all.iter().map(|&n| f32::from(n) / 32768.0).collect(), 48e3, WavSink::new(&path));
    let mut wav = hound::WavReader::open(&path).unwrap();
    assert!(wav.samples::<i16>().map(Result::unwrap).eq(all));
    assert!(seen.notes().is_empty());
}

#[test]
fn floats_are_kept_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.wav");
    let samples: Vec<f32> = (0..5000).map(|n| (n as f32 * 0.01).sin() * 3.0).collect();
    let seen = write(samples.clone(), 44.1e3, WavSink::new(&path).format(WavFormat::F32));
    let mut wav = hound::WavReader::open(&path).unwrap();
    assert_eq!((wav.spec().sample_rate, wav.spec().bits_per_sample), (44_100, 32));
    assert_eq!(wav.samples::<f32>().map(Result::unwrap).collect::<Vec<_>>(), samples);
    assert!(seen.notes().is_empty());
}

#[test]
fn a_rate_between_whole_hertz_is_rounded_and_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.wav");
    let seen = write(vec![0.0; 10], 47_999.7, WavSink::new(&path));
    assert_eq!(hound::WavReader::open(&path).unwrap().spec().sample_rate, 48_000);
    assert!(seen.notes()[0].contains("47999.7 Hz was rounded to 48000 Hz"));
}

#[test]
fn rates_that_no_wav_has_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (rate_hz, expected) in [
        (0.0, "needs a sample rate"),
        (0.1, "sample rate"),
        (3e9, "it must be from 1 to 2147483647"),
        (f64::NAN, "sample rate"),
    ] {
        let sink = WavSink::new(folder.path().join("out.wav"));
        let text = writer(vec![0.0; 10], rate_hz, sink).failure();
        assert!(text.contains(expected), "{rate_hz}: {text}");
        assert!(files(folder.path()).is_empty());
    }
}

#[test]
fn nothing_at_all_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let seen = write(vec![], 48e3, WavSink::new(folder.path().join("out.wav")));
    assert!(seen.notes()[0].contains("no input arrived, so "), "{:?}", seen.notes());
    assert!(files(folder.path()).is_empty());
}

#[test]
fn a_failed_run_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.wav");
    fs::write(&path, "before").unwrap();
    let feed = Feed::samples(vec![0.0f32; 100_000]).rate(48e3).then_fail("on purpose");
    let text = Trial::new(WavSink::new(&path)).feed("in", feed).failure();
    assert!(text.contains("on purpose"), "{text}");
    // The data from before the failure are next to it.
    assert_eq!(files(folder.path()), ["out.wav", "out.wav.part"]);
    assert!(fs::read(path.with_extension("wav.part")).unwrap().starts_with(b"RIFF"));
    assert_eq!(fs::read(&path).unwrap(), b"before");
}

#[test]
fn a_stopped_run_keeps_what_came() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.wav");
    let feed = Feed::samples(vec![0.0f32; 96_000]).rate(48e3).paced();
    let seen = Trial::new(WavSink::new(&path)).feed("in", feed).stop_after(1_000_000_000).run();
    assert_eq!(seen.ending(), Some(Ending::Stopped));
    let length = hound::WavReader::open(&path).unwrap().duration();
    assert!((48_000 - 4096..=48_000).contains(&length), "{length}");
    assert_eq!(files(folder.path()), ["out.wav"]);
}

#[test]
fn what_cannot_be_written_is_an_error_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "").unwrap();
    fs::create_dir(at("folder")).unwrap();
    for (path, expected) in [
        (at("file/out.wav"), "cannot create"),
        (at("folder"), "the existing entry is not a regular file"),
        (PathBuf::from("/"), "has no file name"),
        (PathBuf::from("/dev/null"), "the existing entry is not a regular file"),
        (PathBuf::from("/proc/out.wav"), "cannot create /proc/out.wav"),
    ] {
        let text = writer(vec![0.0; 10], 48e3, WavSink::new(&path)).failure();
        assert!(text.contains(expected) && text.contains(&path.display().to_string()), "{text}");
        assert!(text.starts_with("cannot start: "), "{text}");
    }
    assert_eq!(files(folder.path()), ["file", "folder"]);
}

#[test]
fn one_file_has_one_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.wav");
    let mut graph = Graph::new("two");
    let source = graph.add("source", NullSource::<f32>::new(Some(1)).rate(48e3, Pace::Fast).unwrap());
    for name in ["first", "second"] {
        let sink = graph.add(name, WavSink::new(&path));
        graph.connect(source, |o| &o.out, sink, |o| &o.input);
    }
    assert!(failure(graph, &Options::default()).contains("give them different files"));
    assert!(files(folder.path()).is_empty());
}

#[test]
fn a_full_disk_is_an_error() {
    let disk = match SmallDisk::mount(64) {
        Ok(disk) => disk,
        Err(why) => return eprintln!("skipped: cannot mount a small disk: {why}"),
    };
    let folder = disk.0.path().to_path_buf();
    // Far more than fits, and an amount for which only the last write finds the disk full.
    for samples in [1_000_000, 34_000] {
        let reason = writer(vec![0.25; samples], 48e3, WavSink::new(folder.join("out.wav"))).failure();
        assert!(reason.contains("out.wav: No space left on device"), "{reason}");
        for name in files(&folder) {
            assert_eq!(name, "out.wav.part");
            fs::remove_file(folder.join(name)).unwrap();
        }
    }
}
