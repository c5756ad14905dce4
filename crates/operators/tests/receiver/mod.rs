//! The FM receiver of the example, from its kernels alone.

use num_complex::Complex;
use onbeat_operators::dsp::{
    Deemphasis, FirDecimator, LowPass, QuadDemod, Quality, Resampler, Shift, ci8_to_complex,
};
use onbeat_operators::recording::{DEVIATION_HZ, EMPHASIS_S, RATE_HZ, STATION_A_HZ};
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

    // Passes the channel, ±33 kHz, and stops from 66 kHz on: station B's channel begins at −67 kHz. At 128 kHz the
    // last 2 kHz of the transition fold, to 62 kHz and above, far from the channel.
    let channel = LowPass { cutoff_hz: 49.5e3, transition_hz: 33e3, attenuation_db: 60.0 };
    let (iq, rate_hz) = run(FirDecimator::new(2, channel).unwrap(), RATE_HZ, &iq);
    let (audio, rate_hz) = run(QuadDemod::new(DEVIATION_HZ).unwrap(), rate_hz, &iq);
    // Passes 8 kHz of audio and stops from 14 kHz on, below half of the 32 kHz that are left.
    let band = LowPass { cutoff_hz: 11e3, transition_hz: 6e3, attenuation_db: 60.0 };
    let (audio, rate_hz) = run(FirDecimator::new(4, band).unwrap(), rate_hz, &audio);
    let (mut audio, rate_hz) = run(Resampler::to_rate(48e3, Quality::default()).unwrap(), rate_hz, &audio);

    let mut deemphasis = Deemphasis::new(EMPHASIS_S).unwrap();
    deemphasis.start(rate_hz).unwrap();
    deemphasis.map(&mut audio);
    audio
}
