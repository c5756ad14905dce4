//! The whole receiver as a graph: from the recording to a WAV file.
#![forbid(unsafe_code)]

use crate::harness::{RECORDING, fast, manual, run};
use crate::receiver;
use num_complex::Complex;
use onbeat_operators::dsp::{Deemphasis, FirDecimator, LowPass, QuadDemod, Quality, Resampler, Shift};
use onbeat_operators::recording::{DEVIATION_HZ, EMPHASIS_S, SAMPLES, STATION_A_HZ};
use onbeat_operators::{SigmfSource, WavSink, registry};
use onbeat_runtime::{Graph, InPlace, Options, Overrides, Pipeline, Stream};
use onbeat_trace::Record;
use std::path::Path;

/// The receiver of the example, built in Rust.
fn receiver(wav: &Path) -> Graph {
    let mut graph = Graph::new("fm-receiver");
    let iq = graph.add("iq", SigmfSource::new(RECORDING));
    let tune = graph.add("tune", InPlace::new(Shift::new(-STATION_A_HZ).unwrap()));
    let channel = LowPass { cutoff_hz: 49.5e3, transition_hz: 33e3, attenuation_db: 60.0 };
    let channel = graph.add("channel", Stream::new(FirDecimator::<Complex<f32>>::new(2, channel).unwrap()));
    let demod = graph.add("demod", Stream::new(QuadDemod::new(DEVIATION_HZ).unwrap()));
    let band = LowPass { cutoff_hz: 11e3, transition_hz: 6e3, attenuation_db: 60.0 };
    let band = graph.add("band", Stream::new(FirDecimator::<f32>::new(4, band).unwrap()));
    let rate = graph.add("rate", Stream::new(Resampler::to_rate(48e3, Quality::default()).unwrap()));
    let treble = graph.add("treble", InPlace::new(Deemphasis::new(EMPHASIS_S).unwrap()));
    let audio = graph.add("audio", WavSink::new(wav));
    graph.connect(iq, |o| &o.out, tune, |o| &o.input);
    graph.connect(tune, |o| &o.out, channel, |o| &o.input);
    graph.connect(channel, |o| &o.out, demod, |o| &o.input);
    graph.connect(demod, |o| &o.out, band, |o| &o.input);
    graph.connect(band, |o| &o.out, rate, |o| &o.input);
    graph.connect(rate, |o| &o.out, treble, |o| &o.input);
    graph.connect(treble, |o| &o.out, audio, |o| &o.input);
    graph.path("iq", "audio", Some(100_000_000));
    graph
}

/// Runs the receiver. Returns the bytes of its WAV file.
fn receive(options: &Options) -> (Vec<u8>, Record) {
    let folder = tempfile::tempdir().unwrap();
    let wav = folder.path().join("fm.wav");
    let record = run(receiver(&wav), options);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "only the WAV file is left");
    assert!(
        record.obtained.is_empty() && record.notes.is_empty(),
        "{:?} {:?}",
        record.obtained,
        record.notes
    );
    (std::fs::read(wav).unwrap(), record)
}

fn check_wav(bytes: &[u8]) {
    let mut reader = hound::WavReader::new(bytes).unwrap();
    let spec = reader.spec();
    assert_eq!((spec.channels, spec.sample_rate, spec.bits_per_sample), (1, 48_000, 16));
    let audio: Vec<f32> = reader.samples::<i16>().map(|x| f32::from(x.unwrap()) / 32768.0).collect();
    receiver::check_audio(&audio);
}

#[test]
fn audio_is_the_melody_for_any_quantum_and_capacity() {
    let (wav, _) = receive(&fast(16 << 10, 4));
    check_wav(&wav);
    for quantum in [4 << 10, 12_344, 64 << 10] {
        for capacity in [1, 4, 64] {
            let (other, _) = receive(&fast(quantum, capacity));
            assert!(other == wav, "quantum {quantum}, capacity {capacity}");
        }
    }
}

#[test]
fn virtual_time_takes_as_long_as_the_recording() {
    let (wav, record) = receive(&manual());
    check_wav(&wav);
    assert_eq!(record.result.duration_ns, 2_000_000_000);
    assert_eq!(record.misses_total, 0);
    let path = &record.paths[0];
    // Every chunk arrives when its last sample is due, and virtual time does not advance during its
    // processing. (The filters send their last samples at the end, after the source is done.)
    assert!(path.latency.count >= SAMPLES.div_ceil(2048) as u64, "{:?}", path.latency);
    assert!(path.latency.max_ns <= 8_000_000, "{:?}", path.latency);
}

#[test]
fn the_example_is_this_receiver() {
    let folder = tempfile::tempdir().unwrap();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/fm_receiver.toml");
    let mut overrides = Overrides::default();
    overrides.set(format!("output='{}'", folder.path().display()));
    overrides.set("clock=manual");
    let pipeline = Pipeline::read(example, &registry(), &overrides).unwrap();
    assert_eq!(pipeline.name(), "fm-receiver");
    let record = pipeline.start().unwrap().wait().unwrap();
    assert_eq!((record.result.exit_status, record.misses_total), (0, 0));
    let (wav, _) = receive(&fast(16 << 10, 4));
    assert!(std::fs::read(folder.path().join("fm.wav")).unwrap() == wav);
}
