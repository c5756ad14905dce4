//! The multiplex of FM stations, written from the standards and not from the receivers.

use crate::packets::signals::normal;
use crate::slices::Dice;
use std::f64::consts::{PI, TAU};

/// Four blocks of 16 bits.
pub type Words = [u16; 4];

/// The check word of a block by the generator matrix of IEC 62106, annex B, without an offset word.
fn check_word(word: u16) -> u32 {
    const ROWS: [u32; 16] = [
        0b00_0111_0111,
        0b10_1110_0111,
        0b11_1010_1111,
        0b11_0000_1011,
        0b11_0101_1001,
        0b11_0111_0000,
        0b01_1011_1000,
        0b00_1101_1100,
        0b00_0110_1110,
        0b00_0011_0111,
        0b10_1100_0111,
        0b11_1011_1111,
        0b11_0000_0011,
        0b11_0101_1101,
        0b11_0111_0010,
        0b01_1011_1001,
    ];
    ROWS.iter().enumerate().filter(|(row, _)| word >> (15 - row) & 1 == 1).fold(0, |sum, (_, row)| sum ^ row)
}

/// Whether turning these symbols of a block, numbered from its first one, makes another block with a right
/// check word.
pub fn makes_another_block(turned: &[usize]) -> bool {
    // A symbol is in the change to it and in the change to the next one.
    let bits = turned.iter().fold(0, |bits, symbol| bits ^ (0b11 << 24 >> symbol));
    bits != 0 && check_word((bits >> 10) as u16) == bits & 0x3ff
}

/// The bits of groups.
pub fn bits(groups: &[Words]) -> Vec<bool> {
    let mut bits = Vec::new();
    for group in groups {
        let third = if group[1] >> 11 & 1 == 1 { 0x350 } else { 0x168 };
        for (word, offset) in group.iter().zip([0x0fc, 0x198, third, 0x1b4]) {
            let block = u32::from(*word) << 10 | (check_word(*word) ^ offset);
            bits.extend((0..26).rev().map(|bit| block >> bit & 1 == 1));
        }
    }
    bits
}

/// Groups of one programme with random contents.
pub fn random_groups(count: usize) -> Vec<Words> {
    let mut dice = Dice::new(21);
    let mut word = || (dice.bits() >> 8) as u16;
    let one = |_| {
        let (second, third) = (word(), word());
        [0xd392, second, if second >> 11 & 1 == 1 { 0xd392 } else { third }, word()]
    };
    (0..count).map(one).collect()
}

/// How a multiplex is made.
#[derive(Clone, Copy)]
pub struct Multiplex {
    pub rate_hz: f64,
    /// Deviation of the station's clock, as a share.
    pub clock: f64,
    pub amplitude: f64,
    /// Amplitude of the pilot; 0 for none.
    pub pilot: f64,
    /// Standard deviation of the noise.
    pub noise: f64,
}

pub const PLAIN: Multiplex = Multiplex { rate_hz: 171e3, clock: 0.0, amplitude: 1.0, pilot: 0.1, noise: 0.0 };

impl Multiplex {
    /// Samples of symbols of RDS, each 1 or −1 or weaker, after differential coding.
    pub fn rds(self, symbols: &[f64]) -> Vec<f32> {
        let chips: Vec<f64> = symbols.iter().flat_map(|symbol| [*symbol, -symbol]).collect();
        let chip_hz = 2375.0 * (1.0 + self.clock);
        let sample = |at: usize| {
            let t = at as f64 * chip_hz / self.rate_hz;
            let near = (t as usize).saturating_sub(7)..(t as usize + 8).min(chips.len());
            let wave: f64 = near.map(|chip| chips[chip] * pulse(t - 0.5 - chip as f64)).sum();
            0.03 * wave * (TAU * (57e3 * (1.0 + self.clock) / self.rate_hz * at as f64).fract() + 0.7).cos()
        };
        (0..(chips.len() as f64 * self.rate_hz / chip_hz) as usize).map(|at| sample(at) as f32).collect()
    }

    /// Samples of left and right, by functions of the time in seconds.
    pub fn stereo(self, seconds: f64, left: impl Fn(f64) -> f64, right: impl Fn(f64) -> f64) -> Vec<f32> {
        let sample = |at: usize| {
            let t = at as f64 / self.rate_hz;
            let twice = 2.0 * self.pilot_angle(at);
            0.45 * (left(t) + right(t)) + 0.45 * (left(t) - right(t)) * twice.sin()
        };
        (0..(seconds * self.rate_hz) as usize).map(|at| sample(at) as f32).collect()
    }

    fn pilot_angle(self, at: usize) -> f64 {
        TAU * (19e3 * (1.0 + self.clock) / self.rate_hz * at as f64).fract() + 0.3
    }

    /// Adds the pilot and noise.
    pub fn received(self, samples: &[f32]) -> Vec<f32> {
        let mut dice = Dice::new(6);
        let one = |(at, x): (usize, &f32)| {
            let x = f64::from(*x) + self.pilot * self.pilot_angle(at).sin();
            (self.amplitude * (x + self.noise * f64::from(normal(&mut dice)))) as f32
        };
        samples.iter().enumerate().map(one).collect()
    }
}

/// The pulse of a half symbol: the square root of a raised cosine with a roll-off of 1.
fn pulse(t: f64) -> f64 {
    let below = 1.0 - 16.0 * t * t;
    if below.abs() < 1e-9 { 1.0 } else { 4.0 / PI * (TAU * t).cos() / below }
}

/// Symbols for these bits, between some others.
pub fn symbols(bits: &[bool]) -> Vec<f64> {
    let mut dice = Dice::new(77);
    let mut some = |count: usize| (0..count).map(|_| dice.bits() & 256 != 0).collect::<Vec<_>>();
    let (before, after) = (some(120), some(30));
    let mut level = 1.0;
    let change = |bit: bool| {
        level = if bit { -level } else { level };
        level
    };
    before.into_iter().chain(bits.iter().copied()).chain(after).map(change).collect()
}
