//! Files of several interleaved channels: written from several streams, and read back.

use super::C32;
use super::samples::{bytes_of, exact, size};
use crate::harness::files;
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Seen, Trial, cuts};
use onbeat_runtime::{Sample, Value};
use proptest::prelude::*;
use serde_json::json;
use std::fs;
use std::path::Path;

const RATE_HZ: f64 = 8e3;

/// A trial of a kind with this file.
fn trial(kind: &str, path: &Path, more: &str) -> Trial {
    Trial::kind(&registry(), kind, &format!("path = {path:?}\n{more}"))
}

/// Writes streams as channels, each cut into chunks of its own lengths.
fn write<T: Sample>(kind: &str, path: &Path, more: &str, streams: Vec<(Vec<T>, Vec<usize>)>) -> Seen {
    let sink = trial(kind, path, &format!("channels = {}\n{more}", streams.len()));
    let feed = |sink: Trial, (channel, (samples, lengths)): (usize, (Vec<T>, Vec<usize>))| {
        sink.feed(&format!("in{channel}"), Feed::samples(samples).rate(RATE_HZ).cut(&lengths))
    };
    streams.into_iter().enumerate().fold(sink, feed).run()
}

/// Numbers that every format keeps, different in each channel.
fn wave(channel: usize, count: usize) -> Vec<f32> {
    (0..count).map(|n| ((n * (3 + 2 * channel) + 50 * channel) % 200) as f32 / 128.0 - 0.75).collect()
}

fn complex(samples: &[f32]) -> Vec<C32> {
    samples.iter().map(|&x| C32::new(x, -x)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any bytes can be read as channels, and writing them gives the same bytes.
    #[test]
    fn bytes_come_back(
        (length, seed) in (16usize..100_000, any::<u64>()),
        format in prop::sample::select(exact()),
        channels in 2usize..6,
        quantum in prop::sample::select(&[64usize, 1000, 16 << 10][..]),
    ) {
        let frame = size(format) * channels;
        let bytes = bytes_of(seed, length.next_multiple_of(frame));
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::write(&from, &bytes).unwrap();
        let ending = if format.parts() == 2 { "" } else { ".real" };
        let settings = format!("format = \"{}\"\nchannels = {channels}", format.name());
        let more = format!("{settings}\nsample_rate = 8000\npace = \"fast\"");
        let seen = trial(&format!("iq.source{ending}"), &from, &more).quantum(quantum).run();
        let sink = trial(&format!("iq.sink{ending}"), &to, &settings);
        let sink = (0..channels).fold(sink, |sink, channel| {
            let (name, cut) = (format!("out{channel}"), [1 + 37 * channel, 1000]);
            let feed = if format.parts() == 2 {
                Feed::samples(seen.samples::<C32>(&name))
            } else {
                Feed::samples(seen.samples::<f32>(&name))
            };
            sink.feed(&format!("in{channel}"), feed.rate(seen.rate_hz(&name)).cut(&cut))
        });
        sink.quantum(quantum).run();
        prop_assert!(fs::read(&to).unwrap() == bytes);
    }
}

#[test]
fn every_kind_writes_and_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let lengths = || [vec![1000], vec![1, 700], vec![64, 3, 5000]];
    let waves: Vec<_> = (0..3).map(|channel| wave(channel, 5000)).collect();
    for (kind, written, read) in [
        ("wav", "format = \"f32\"", "channels = 3"),
        ("sigmf", "format = \"ri8\"", "channels = 3"),
        ("iq", "format = \"ri16_le\"", "format = \"ri16_le\"\nsample_rate = 8000\nchannels = 3"),
    ] {
        let real = if kind == "wav" { "" } else { ".real" };
        let path = folder.path().join(kind);
        let streams = waves.iter().cloned().zip(lengths()).collect();
        assert!(write(&format!("{kind}.sink{real}"), &path, written, streams).notes().is_empty());
        let source = format!("{kind}.source{real}");
        let seen = cuts(|| trial(&source, &path, read));
        for (channel, wave) in waves.iter().enumerate() {
            let out = format!("out{channel}");
            assert_eq!(&seen.samples::<f32>(&out), wave, "{kind}, channel {channel}");
            assert_eq!(seen.rate_hz(&out), RATE_HZ, "{kind}");
            let one = trial(&source, &path, &format!("{read}\nchannel = {channel}")).run();
            assert_eq!(&one.samples::<f32>("out"), wave, "{kind}, channel {channel} alone");
        }
        // A second pass without a gap.
        let twice = trial(&source, &path, &format!("{read}\nrepeat = 2")).run();
        assert_eq!(twice.samples::<f32>("out1"), [&waves[1][..], &waves[1][..]].concat(), "{kind}");
    }
    for (kind, more) in [("sigmf", ""), ("iq", "format = \"cf32_le\"")] {
        let path = folder.path().join(format!("complex-{kind}"));
        let streams = waves.iter().map(|wave| complex(wave)).zip(lengths()).collect();
        write(&format!("{kind}.sink"), &path, more, streams);
        let rate = if kind == "iq" { "sample_rate = 8000" } else { "" };
        let seen = trial(&format!("{kind}.source"), &path, &format!("channels = 3\n{more}\n{rate}")).run();
        for (channel, wave) in waves.iter().enumerate() {
            assert_eq!(seen.samples::<C32>(&format!("out{channel}")), complex(wave), "{kind}, {channel}");
        }
    }
}

#[test]
fn the_shortest_channel_ends_the_file() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, more, bytes) in [
        ("wav.sink", "format = \"f32\"", 900 * 8),
        ("sigmf.sink.real", "", 900 * 8),
        ("iq.sink.real", "format = \"ri8\"", 900 * 2),
    ] {
        let path = folder.path().join("file");
        let streams = vec![(wave(0, 1000), vec![300]), (wave(1, 900), vec![7])];
        let seen = write(kind, &path, more, streams);
        assert_eq!(seen.notes(), ["`in1` ended after 900 samples; the rest of `in0` is not read"]);
        let data = if kind == "sigmf.sink.real" { path.with_extension("sigmf-data") } else { path };
        let header = if kind == "wav.sink" { fs::read(&data).unwrap().len() - bytes } else { 0 };
        assert!(header < 100, "{kind}: {header}");
        assert_eq!(fs::read(&data).unwrap().len(), bytes + header, "{kind}");
    }
}

#[test]
fn channels_of_other_rates_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for (kind, more) in [("wav.sink", ""), ("sigmf.sink.real", ""), ("iq.sink.real", "format = \"ri8\"")] {
        let text = trial(kind, &path, &format!("channels = 2\n{more}"))
            .feed("in0", Feed::samples(wave(0, 100)).rate(RATE_HZ))
            .feed("in1", Feed::samples(wave(0, 100)).rate(48e3))
            .failure();
        assert!(
            text.contains("the sample rate of `in1` is 48000 Hz, but the first chunk had 8000 Hz"),
            "{kind}: {text}"
        );
        assert!(files(folder.path()).is_empty(), "{kind}");
    }
}

#[test]
fn tags_of_all_channels_and_of_one_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("take");
    let feed = |channel: usize| Feed::samples(wave(channel, 3000)).rate(RATE_HZ);
    let trigger = |feed: Feed| feed.tag(10, "core:frequency", 100e6).tag(1500, "trigger", 7);
    let first = || {
        let feed = trigger(feed(0).tag(0, "core:label", "both"));
        feed.tag(1500, "core:label", "first").tag(1500, "duration_s", 0.01).tag(2999, "core:label", "end")
    };
    let second = || {
        let feed = trigger(feed(1).tag(0, "core:label", "both"));
        feed.tag(1501, "core:frequency", 1.0).tag(2999, "core:label", "end")
    };
    let sink = || trial("sigmf.sink.real", &path, "channels = 2").feed("in0", first()).feed("in1", second());
    let meta = || -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(path.with_extension("sigmf-meta")).unwrap()).unwrap()
    };
    sink().run();
    let written = meta();
    assert_eq!(written["global"]["core:num_channels"], 2);
    assert_eq!(written["global"]["core:extensions"][0]["optional"], true);
    assert_eq!(
        written["captures"],
        json!([{ "core:sample_start": 0 }, { "core:sample_start": 10, "core:frequency": 100e6 }])
    );
    assert_eq!(
        written["annotations"],
        json!([
            { "core:sample_start": 0, "core:label": "both" },
            { "core:sample_start": 1500, "core:label": "trigger", "onbeat:value": 7, "onbeat:channel": 0 },
            { "core:sample_start": 1500, "core:sample_count": 80, "core:label": "first", "onbeat:channel": 0 },
            { "core:sample_start": 1500, "core:label": "trigger", "onbeat:value": 7, "onbeat:channel": 1 },
            { "core:sample_start": 1501, "core:label": "core:frequency", "onbeat:value": 1.0, "onbeat:channel": 1 },
            { "core:sample_start": 2999, "core:label": "end" },
        ])
    );
    cuts(sink);
    assert_eq!(meta(), written, "wherever chunks begin");

    let tag = |at: u64, key: &str, value: Value| (at, key.to_string(), value);
    let both = || [tag(0, "core:label", "both".into()), tag(10, "core:frequency", 100e6.into())];
    let end = || tag(2999, "core:label", "end".into());
    let of_first = [
        &both()[..],
        &[
            tag(1500, "trigger", 7.into()),
            tag(1500, "core:label", "first".into()),
            tag(1500, "duration_s", 0.01.into()),
        ],
        &[end()],
    ]
    .concat();
    let of_second =
        [&both()[..], &[tag(1500, "trigger", 7.into()), tag(1501, "core:frequency", 1.0.into()), end()]]
            .concat();
    let seen = cuts(|| trial("sigmf.source.real", &path, "channels = 2"));
    assert_eq!((seen.tags("out0"), seen.tags("out1")), (of_first.clone(), of_second.clone()));
    for (channel, expected) in [of_first, of_second].into_iter().enumerate() {
        let seen = trial("sigmf.source.real", &path, &format!("channel = {channel}")).run();
        assert_eq!(seen.tags("out"), expected, "channel {channel}");
    }
    // A channel that does not exist.
    let text = fs::read_to_string(path.with_extension("sigmf-meta")).unwrap();
    let text = text.replacen("\"onbeat:channel\": 1", "\"onbeat:channel\": 2", 1);
    fs::write(path.with_extension("sigmf-meta"), text).unwrap();
    let text = trial("sigmf.source.real", &path, "channels = 2").failure();
    assert!(text.contains("`onbeat:channel` of annotation 3 is 2: there are 2, counted from 0"), "{text}");
}

#[test]
fn a_file_of_other_channels_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let streams = vec![(wave(0, 100), vec![10]); 2];
    for (kind, written, read) in
        [("wav.sink", "", "wav.source"), ("sigmf.sink.real", "", "sigmf.source.real")]
    {
        write(kind, &path, written, streams.clone());
        let text = trial(read, &path, "channels = 3").failure();
        assert!(text.contains("it has 2 channels, but `channels` is 3: correct it"), "{text}");
        let text = trial(read, &path, "").failure();
        assert!(
            text.contains("it has 2 channels: choose one with `channel`, from 0 to 1, or play all"),
            "{text}"
        );
    }
}
