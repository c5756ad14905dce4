//! The committed recording, received, is the melody.
#![forbid(unsafe_code)]

mod receiver;

use onbeat_operators::recording::melody;

/// Samples at each end of the audio that are not compared: 50 ms. The filters begin and end with half a window of
/// zeros there, and the melody is silent.
const EDGE: usize = 2400;

/// Correlation of two signals, and the gain that fits the first to the second best.
fn compare(got: &[f32], sent: &[f32]) -> (f64, f64) {
    let sum = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let (gg, ss, gs) = (sum(got, got), sum(sent, sent), sum(got, sent));
    (gs / (gg * ss).sqrt(), gs / ss)
}

#[test]
fn audio_is_the_melody() {
    let bytes = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/fm.sigmf-data")).unwrap();
    let pairs: &[[i8; 2]] = bytemuck::cast_slice(&bytes);
    let audio = receiver::receive(pairs);
    let sent = melody(48e3);
    assert_eq!(audio.len(), sent.len());

    let middle = EDGE..audio.len() - EDGE;
    let (correlation, gain) = compare(&audio[middle.clone()], &sent[middle]);
    // What correlates is the signal, the rest is noise.
    let snr_db = 10.0 * (correlation * correlation / (1.0 - correlation * correlation)).log10();
    assert!(correlation >= 0.99, "correlation {correlation}");
    // 40.6 dB when this was written. 30 dB is what the example promises; the rest is to notice a kernel gone worse.
    assert!(snr_db >= 39.0, "{snr_db} dB");
    assert!((gain - 1.0).abs() < 0.01, "gain {gain}");
}
