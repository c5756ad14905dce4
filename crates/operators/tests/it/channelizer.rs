//! Channels of a band, compared with mixing, filtering and decimation one after the other.
#![forbid(unsafe_code)]

use crate::harness::{fast, recording, run};
use crate::slices::{Dice, Size, drive};
use num_complex::Complex;
use onbeat_operators::dsp::{FilterBank, Vectors};
use onbeat_operators::{SigmfSource, registry};
use onbeat_runtime::testing::{Feed, Trial, cuts};
use onbeat_runtime::{Chunk, Graph, Kernel, Options, Scheduler, Stream};
use std::f64::consts::{PI, TAU};
use std::sync::{Arc, Mutex};

type C32 = Complex<f32>;

fn noise(count: usize) -> Vec<C32> {
    let mut dice = Dice::new(5);
    (0..count).map(|_| Complex::new(dice.value(), dice.value())).collect()
}

/// Sample `row` of a channel by definition: the mixed band times the taps around input `row · channels`.
fn direct(taps: &[f64], channels: usize, input: &[C32], row: usize, channel: usize) -> Complex<f64> {
    let middle = row * channels + taps.len() / 2;
    let products = taps.iter().enumerate().filter_map(|(n, tap)| {
        let at = middle.checked_sub(n)?;
        let x = input.get(at)?;
        let turns = (at * channel % channels) as f64 / channels as f64;
        let mixed = Complex::new(f64::from(x.re), f64::from(x.im)) * Complex::from_polar(1.0, -TAU * turns);
        Some(mixed * *tap)
    });
    products.sum()
}

/// Rows of a bank that gets slices of this length, and has room for `most` rows.
fn rows(bank: &mut FilterBank, input: &[C32], slice: usize, most: usize) -> Vec<C32> {
    let room = most * bank.channels();
    drive(bank, input, Size::Fixed(slice), Size::Fixed(room))
}

#[test]
fn channels_are_those_of_mixers_and_filters() {
    for (channels, taps) in
        [(2, 2), (2, 12), (3, 5), (4, 3), (5, 12), (7, 7), (8, 12), (12, 9), (16, 12), (33, 4), (64, 12)]
    {
        let bank = || FilterBank::new(channels, taps, 60.0).unwrap();
        let (input, bank_taps) = (noise(3001), bank().taps().to_vec());
        assert!(bank_taps.len().abs_diff(channels * taps) <= 1);
        let got = rows(&mut bank(), &input, 3001, 50);
        assert_eq!(got.len(), 3001usize.div_ceil(channels) * channels);
        for (at, y) in got.iter().enumerate() {
            let expected = direct(&bank_taps, channels, &input, at / channels, at % channels);
            let error = (Complex::new(f64::from(y.re), f64::from(y.im)) - expected).norm();
            assert!(error < 2e-6, "{channels} channels, {taps} taps, {at}: {error}");
        }
        for (slice, most) in [(1, 1), (7, 3), (100, 4), (1000, 5), (3001, 2)] {
            assert_eq!(rows(&mut bank(), &input, slice, most), got, "{channels}, {slice}, {most}");
        }
        Vectors::each(|vectors| {
            assert_eq!(rows(&mut bank(), &input, 999, 9), got, "{channels}, {vectors}");
        });
        let mut again = bank();
        rows(&mut again, &input, 500, 8);
        again.start(0.0).unwrap();
        assert_eq!(rows(&mut again, &input, 500, 8), got);
    }
}

/// A tone in channel 3, or half a channel and more beside its middle.
#[test]
fn tones_stay_in_their_channel() {
    let (channels, taps, attenuation_db) = (16, 12, 60.0);
    let mut bank = FilterBank::new(channels, taps, attenuation_db).unwrap();
    // Width of the transition as the documentation states it, in channels.
    let transition = (attenuation_db - 5.45) / (14.36 * taps as f64);
    for (offset, low_db, high_db) in [
        (0.0, -0.001, 0.001),
        (0.5 - transition / 2.0, -0.02, 0.02),
        (-0.5, -6.1, -5.9),
        (0.5, -6.1, -5.9),
        (0.5 + transition / 2.0, -200.0, -60.0),
        (-1.0, -200.0, -60.0),
        (5.2, -200.0, -60.0),
    ] {
        let turns = |n: usize| TAU * (3.0 + offset) / channels as f64 * n as f64;
        let tone = |n: usize| Complex::new(turns(n).cos() as f32, turns(n).sin() as f32);
        let input: Vec<C32> = (0..4000).map(tone).collect();
        bank.start(0.0).unwrap();
        let got = rows(&mut bank, &input, 4000, 64);
        for row in 20..200 {
            let y = got[row * channels + 3];
            let size_db = 20.0 * f64::from(y.norm()).log10();
            assert!(size_db >= low_db && size_db <= high_db, "{offset}: {size_db} dB");
            // Row m belongs to the instant of input m · channels: the phase shows no delay.
            let phase = f64::from(y.arg()) - TAU * offset * row as f64;
            assert!(high_db < -10.0 || (phase / PI / 2.0 - (phase / PI / 2.0).round()).abs() < 1e-4);
        }
    }
}

#[test]
fn chunks_are_rows_of_channels() {
    let input = noise(1001);
    let feed = || Feed::samples(input.clone()).rate(64e3);
    let trial = || Trial::new(Stream::new(FilterBank::new(8, 12, 60.0).unwrap())).feed("in", feed());
    let seen = cuts(trial);
    let expected = rows(&mut FilterBank::new(8, 12, 60.0).unwrap(), &input, 100, 10);
    assert_eq!(seen.samples::<C32>("out"), expected);
    assert_eq!(seen.rate_hz("out"), 64e3);
    for piece in seen.pieces("out") {
        assert_eq!(piece.shape, [piece.length as u32 / 8, 8, 0]);
        assert!(piece.start.is_multiple_of(8));
    }
    // With nothing to split, there are no rows.
    let empty = Trial::new(Stream::new(FilterBank::new(8, 12, 60.0).unwrap()));
    assert!(empty.feed("in", Feed::samples(Vec::<C32>::new())).run().samples::<C32>("out").is_empty());
}

#[test]
fn errors_name_the_fix() {
    let refused = |channels, taps, db| FilterBank::new(channels, taps, db).unwrap_err().to_string();
    assert!(refused(1, 12, 60.0).starts_with("`channels` is 1: it must be from 2 to 4096"));
    assert!(refused(8, 1, 60.0).starts_with("`taps_per_channel` is 1: it must be from 2 to 64"));
    assert!(refused(8, 12, 121.0).starts_with("`attenuation` is 121"));
    let trial = Trial::kind(&registry(), "channelizer", "channels = 16").quantum(64);
    let text = trial.feed("in", Feed::samples(noise(500))).failure();
    assert!(
        text.contains("a row of its output has 16 samples") && text.contains("`quantum = 128`"),
        "{text}"
    );
}

/// Workers share the stream in blocks. 12 and 3 channels do not divide a chunk.
#[test]
fn rows_of_several_workers_have_the_bytes_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let recording = recording(300_001);
    let meta = recording.write(folder.path());
    for (channels, scheduler) in [
        (16, Scheduler::Replicated),
        (12, Scheduler::Replicated),
        (16, Scheduler::Event),
        (3, Scheduler::Event),
    ] {
        let bank = || FilterBank::new(channels, 12, 60.0).unwrap();
        let expected = rows(&mut bank(), &recording.samples(), 1000, 50);
        let seen = Arc::<Mutex<Vec<C32>>>::default();
        let list = Arc::clone(&seen);
        let mut graph = Graph::new("channels");
        graph.add("iq", SigmfSource::new(&meta));
        graph.add("split", Stream::new(bank()));
        graph.sink("rows", move |chunk: Chunk<C32>| {
            assert_eq!(chunk.info().shape[1], channels as u32);
            list.lock().unwrap().extend_from_slice(&chunk);
        });
        graph.connect_names("iq.out", "split.in");
        graph.connect_names("split.out", "rows.in");
        run(graph, &Options { scheduler, workers: Some(2), ..fast(16 << 10, 4) });
        assert!(*seen.lock().unwrap() == expected, "{channels} channels, {scheduler:?}");
    }
}
