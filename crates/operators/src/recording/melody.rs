//! The melody that station A sends.

use std::f64::consts::{PI, TAU};

/// Amplitude of the melody, such that its peak is 0.97 after pre-emphasis. A test of the recording checks it.
const SIZE: f64 = 0.467;

/// Amplitudes of a note's partials: the fundamental and three overtones, like a soft organ pipe.
const PARTIALS: [f64; 4] = [1.0, 0.35, 0.15, 0.06];

/// Rise and fall time of a note, in seconds.
const SWELL_S: f64 = 0.03;
const FADE_S: f64 = 0.08;

/// One note.
struct Note {
    /// Start and duration, in seconds.
    start_s: f64,
    length_s: f64,
    pitch_hz: f64,
    size: f64,
}

const fn note(start_s: f64, length_s: f64, pitch_hz: f64, size: f64) -> Note {
    Note { start_s, length_s, pitch_hz, size }
}

/// Up and down a pentatonic scale, each note overlapping the one before, over two long notes of a second
/// voice. Pitches are those of equal temperament with A at 440 Hz.
const NOTES: [Note; 10] = [
    note(0.05, 0.26, 523.251, 1.0),
    note(0.26, 0.26, 659.255, 1.0),
    note(0.47, 0.26, 783.991, 1.0),
    note(0.68, 0.26, 880.0, 1.0),
    note(0.89, 0.26, 783.991, 1.0),
    note(1.10, 0.26, 659.255, 1.0),
    note(1.31, 0.26, 587.330, 1.0),
    note(1.52, 0.43, 523.251, 1.0),
    note(0.05, 0.88, 261.626, 0.6),
    note(0.89, 1.06, 220.0, 0.6),
];

impl Note {
    /// The note's share of the sound at a time in seconds.
    fn at(&self, t: f64) -> f64 {
        let since = t - self.start_s;
        let left = self.length_s - since;
        if since <= 0.0 || left <= 0.0 {
            return 0.0;
        }
        let envelope = rise(since / SWELL_S) * rise(left / FADE_S);
        let turn = TAU * self.pitch_hz * since;
        let sound: f64 = PARTIALS.iter().zip(1..).map(|(size, k)| size * (turn * f64::from(k)).sin()).sum();
        self.size * envelope * sound
    }
}

/// A smooth step: 0 at 0, 1 from 1 on, half a period of a cosine between. It keeps a note's spectrum narrow.
fn rise(x: f64) -> f64 {
    if x >= 1.0 { 1.0 } else { (1.0 - (PI * x).cos()) / 2.0 }
}

/// The melody at a time in seconds.
pub(super) fn at(t: f64) -> f64 {
    SIZE * NOTES.iter().map(|note| note.at(t)).sum::<f64>()
}

/// Returns the two seconds of melody that station A sends, before pre-emphasis, at any sample rate.
///
/// The highest partial is at 3.5 kHz.
pub fn melody(rate_hz: f64) -> Vec<f32> {
    let count = (2.0 * rate_hz).ceil() as usize;
    (0..count).map(|n| at(n as f64 / rate_hz) as f32).collect()
}
