//! The parts of the receivers: demodulator, clock, decoder.

use super::signals::{PLAIN, levels, pause};
use super::{frames, info, lines, received};
use crate::slices::Dice;
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Trial};
use serde_json::Value;

fn through(kind: &str, parameters: &str, samples: Vec<f32>, rate_hz: f64) -> Vec<f32> {
    Trial::kind(&registry(), kind, parameters)
        .feed("in", Feed::samples(samples).rate(rate_hz))
        .run()
        .samples("out")
}

#[test]
fn three_parts_are_a_receiver() {
    let sent = frames(5);
    let audio = pause(&sent.iter().map(|frame| PLAIN.tones(&levels(frame))).collect::<Vec<_>>());
    let whole = received("afsk.decode", audio.clone(), 22_050.0);
    let waveform = through("afsk.demod", "", audio, 22_050.0);
    let symbols = through("symbol.sync", "symbol_rate = 1200\nbandwidth = 0.02", waveform, 22_050.0);
    let found = received("ax25.decode", symbols, 1200.0);
    let infos = |lines: &[Value]| lines.iter().map(|line| line["info"].clone()).collect::<Vec<_>>();
    assert_eq!(infos(&found), infos(&whole));
    assert_eq!(infos(&found), sent.iter().map(|frame| info(frame).into()).collect::<Vec<Value>>());
    for (part, whole) in found.iter().zip(&whole) {
        let [part, whole] = [part, whole].map(|line| line["time_s"].as_f64().unwrap());
        assert!((part - whole).abs() < 0.01, "{part} {whole}");
    }
}

#[test]
fn a_tone_gives_its_amplitude() {
    for (hertz, expected) in [(1200.0, 0.5), (2200.0, -0.5)] {
        let tone: Vec<f32> =
            (0..4800).map(|n| 0.5 * (n as f32 * hertz / 48e3 * std::f32::consts::TAU).sin()).collect();
        let out = through("afsk.demod", "", tone, 48_000.0);
        assert_eq!(out.len(), 4800);
        // The other tone gives a fifth, and the images of both a little.
        assert!(out[100..4700].iter().all(|y| (y - expected).abs() < 0.17), "{hertz}");
    }
}

#[test]
fn scrambled_frames_are_found() {
    let sent = frames(3);
    let mut register = 0u32;
    let mut scramble = |level: &bool| {
        let bit = (u32::from(*level) ^ register >> 11 ^ register >> 16) & 1;
        register = register << 1 | bit;
        if bit == 1 { 1.0 } else { -1.0 }
    };
    let symbols: Vec<f32> =
        sent.iter().flat_map(|frame| levels(frame)).map(|level| scramble(&level)).collect();
    let trial = Trial::kind(&registry(), "ax25.decode", "scrambled = true");
    let found = lines(&trial.feed("in", Feed::samples(symbols).rate(9600.0)).run());
    assert_eq!(
        found.iter().map(|line| line["info"].clone()).collect::<Vec<_>>(),
        sent.iter().map(|frame| info(frame).into()).collect::<Vec<Value>>()
    );
}

/// Random symbols as triangles: what rectangles are after their matched filter.
fn triangles(symbols: &[f32], period: f64, phase: f64) -> Vec<f32> {
    let count = (symbols.len() as f64 * period) as usize;
    (0..count)
        .map(|n| {
            let at = (n as f64 / period + phase).max(0.0);
            let (before, part) = (at as usize, at.fract() as f32);
            let symbol = |at: usize| symbols.get(at).copied().unwrap_or(0.0);
            symbol(before) * (1.0 - part) + symbol(before + 1) * part
        })
        .collect()
}

#[test]
fn clocks_lock_at_any_phase_and_rate() {
    let mut dice = Dice::new(6);
    let symbols: Vec<f32> =
        (0..2000).map(|_| if dice.bits().is_multiple_of(2) { -1.0 } else { 1.0 }).collect();
    for detector in ["zero-crossing", "gardner", "mueller-muller"] {
        for (off, phase) in [(1.0, 0.0), (1.0, 0.5), (1.003, 0.2), (0.997, 0.8)] {
            for period in [3.7, 8.0, 18.375] {
                let parameters =
                    format!("symbol_rate = {}\nbandwidth = 0.02\ndetector = '{detector}'", 48e3 / period);
                let out = through("symbol.sync", &parameters, triangles(&symbols, period * off, phase), 48e3);
                let off_count = out.len() as f64 - symbols.len() as f64;
                assert!(off_count.abs() < 4.0, "{detector} {off} {phase} {period}: {}", out.len());
                let late = &out[500..1900];
                // In the middle of a symbol the triangle has its full height. Few samples round its top.
                let least = if period < 4.0 { 0.7 } else { 0.8 };
                let worst = late.iter().map(|y| y.abs()).fold(f32::MAX, f32::min);
                assert!(worst > least, "{detector} {off} {phase} {period}: {worst}");
            }
        }
    }
}

#[test]
fn a_clock_forgets_bad_samples() {
    let mut dice = Dice::new(6);
    let symbols: Vec<f32> =
        (0..3000).map(|_| if dice.bits().is_multiple_of(2) { -1.0 } else { 1.0 }).collect();
    let mut wave = triangles(&symbols, 8.0, 0.3);
    for (at, bad) in [(90, f32::NAN), (800, f32::INFINITY), (801, f32::MAX), (809, f32::MIN)] {
        wave[at] = bad;
    }
    let out = through("symbol.sync", "symbol_rate = 6000", wave, 48e3);
    assert!(out.iter().all(|y| y.is_finite()));
    assert!(out[1000..2900].iter().all(|y| y.abs() > 0.8));
}
