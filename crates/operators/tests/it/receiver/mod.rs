//! The FM receiver of the example, from its kernels alone, and the requirements on its audio.
#![allow(dead_code, reason = "no test needs all of it")]

use num_complex::Complex;
use onbeat_operators::dsp::{
    Deemphasis, FirDecimator, LowPass, QuadDemod, Quality, Resampler, Shift, ci8_to_complex,
};
use onbeat_operators::recording::{DEVIATION_HZ, EMPHASIS_S, RATE_HZ, STATION_A_HZ, melody};
use onbeat_runtime::{Kernel, Map};

/// Runs a kernel over a whole signal.
pub fn run<K: Kernel>(mut kernel: K, rate_hz: f64, input: &[K::In]) -> (Vec<K::Out>, f64) {
    kernel.start(rate_hz).unwrap();
    let ratio = kernel.ratio();
    let count = (input.len() as u64 * u64::from(ratio.up)).div_ceil(u64::from(ratio.down)) as usize;
    let mut output = vec![bytemuck::Zeroable::zeroed(); count];
    let done = kernel.process(input, &mut output);
    let tail = kernel.finish(&mut output[done.produced..]);
    assert_eq!(done.produced + tail, count);
    (output, rate_hz * f64::from(ratio.up) / f64::from(ratio.down))
}

/// From the bytes of the recording to station A's audio at 48 kHz.
pub fn receive(pairs: &[[i8; 2]]) -> Vec<f32> {
    let mut iq = vec![Complex::new(0.0, 0.0); pairs.len()];
    ci8_to_complex(pairs, &mut iq);
    let mut shift = Shift::new(-STATION_A_HZ).unwrap();
    shift.start(RATE_HZ).unwrap();
    shift.map(&mut iq);

    // Passes the channel, ±33 kHz, and stops from 66 kHz on: station B's channel begins at −67 kHz. At 128
    // kHz the last 2 kHz of the transition fold, to 62 kHz and above, far from the channel.
    let channel = LowPass { cutoff_hz: 49.5e3, transition_hz: 33e3, attenuation_db: 60.0 };
    let (iq, rate_hz) = run(FirDecimator::new(2, channel).unwrap(), RATE_HZ, &iq);
    let (audio, rate_hz) = run(QuadDemod::new(DEVIATION_HZ).unwrap(), rate_hz, &iq);
    // Passes 8 kHz of audio and stops from 14 kHz on, below half of the resulting 32 kHz.
    let band = LowPass { cutoff_hz: 11e3, transition_hz: 6e3, attenuation_db: 60.0 };
    let (audio, rate_hz) = run(FirDecimator::new(4, band).unwrap(), rate_hz, &audio);
    let (mut audio, rate_hz) = run(Resampler::to_rate(48e3, Quality::default()).unwrap(), rate_hz, &audio);

    let mut deemphasis = Deemphasis::new(EMPHASIS_S).unwrap();
    deemphasis.start(rate_hz).unwrap();
    deemphasis.map(&mut audio);
    audio
}

/// Samples at each end of the audio that are not compared: 50 ms. The filters start and end with half a
/// window of zeros there, and the melody is silent.
const EDGE: usize = 2400;

/// Correlation of two signals, and the gain for the best fit of the first to the second.
fn compare(got: &[f32], sent: &[f32]) -> (f64, f64) {
    let sum = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let (gg, ss, gs) = (sum(got, got), sum(sent, sent), sum(got, sent));
    (gs / (gg * ss).sqrt(), gs / ss)
}

/// Checks that the audio is the melody sent by station A.
pub fn check_audio(audio: &[f32]) {
    let sent = melody(48e3);
    assert_eq!(audio.len(), sent.len());
    let middle = EDGE..audio.len() - EDGE;
    let (correlation, gain) = compare(&audio[middle.clone()], &sent[middle]);
    // The correlated part is the signal, the rest is noise.
    let snr_db = 10.0 * (correlation * correlation / (1.0 - correlation * correlation)).log10();
    assert!(correlation >= 0.99, "correlation {correlation}");
    // 40.6 dB when this was written. The example promises 30 dB; the margin detects kernels that got worse.
    assert!(snr_db >= 39.0, "{snr_db} dB");
    assert!((gain - 1.0).abs() < 0.01, "gain {gain}");
}
