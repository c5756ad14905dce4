//! Modulators of packets and pages, written from the standards and not from the receivers.

use crate::slices::Dice;
use std::f64::consts::TAU;

/// CRC-16/X.25, bit by bit.
fn check_sequence(bytes: &[u8]) -> u16 {
    let mut register = 0xffffu16;
    for byte in bytes {
        for bit in 0..8 {
            let carry = (register ^ u16::from(byte >> bit)) & 1 == 1;
            register >>= 1;
            if carry {
                register ^= 0x8408;
            }
        }
    }
    !register
}

/// An address of AX.25.
fn address(name: &str, is_marked: bool, is_last: bool) -> Vec<u8> {
    let (sign, ssid) = name.split_once('-').unwrap_or((name, "0"));
    let ssid: u8 = ssid.parse().unwrap();
    let mut bytes: Vec<u8> = format!("{sign:<6}").bytes().map(|byte| byte << 1).collect();
    bytes.push(u8::from(is_marked) << 7 | 0x60 | ssid << 1 | u8::from(is_last));
    bytes
}

/// A frame without its check sequence. The first station is the receiver, then the sender; a digipeater
/// that ends with `*` has repeated it.
pub fn frame(stations: &[&str], rest: &[u8]) -> Vec<u8> {
    let last = stations.len() - 1;
    let one =
        |(at, name): (usize, &&str)| address(name.trim_end_matches('*'), name.ends_with('*'), at == last);
    stations.iter().enumerate().flat_map(one).chain(rest.iter().copied()).collect()
}

/// The levels of a frame between flags: stuffed, and a change for each 0.
pub fn levels(frame: &[u8]) -> Vec<bool> {
    let flag = |bits: &mut Vec<bool>| bits.extend((0..8).map(|bit| 0x7e >> bit & 1 == 1));
    let mut bits = Vec::new();
    (0..30).for_each(|_| flag(&mut bits));
    let mut ones = 0;
    for byte in frame.iter().copied().chain(check_sequence(frame).to_le_bytes()) {
        for bit in (0..8).map(|bit| byte >> bit & 1 == 1) {
            bits.push(bit);
            ones = if bit { ones + 1 } else { 0 };
            if ones == 5 {
                bits.push(false);
                ones = 0;
            }
        }
    }
    (0..4).for_each(|_| flag(&mut bits));
    let mut level = true;
    let change = |bit: bool| {
        level ^= !bit;
        level
    };
    bits.into_iter().map(change).collect()
}

/// How a signal is made.
#[derive(Clone, Copy)]
pub struct Signal {
    pub rate_hz: f64,
    pub baud: f64,
    pub amplitude: f64,
    /// Amplitude of 2200 Hz over that of 1200 Hz.
    pub twist: f64,
    pub constant: f64,
    /// Standard deviation of the noise, for an amplitude of 1.
    pub noise: f64,
}

pub const PLAIN: Signal =
    Signal { rate_hz: 22_050.0, baud: 1200.0, amplitude: 0.5, twist: 1.0, constant: 0.0, noise: 0.0 };

impl Signal {
    fn samples(self, levels: usize) -> usize {
        (levels as f64 * self.rate_hz / self.baud) as usize
    }

    fn level(self, levels: &[bool], at: usize) -> bool {
        levels[((at as f64 * self.baud / self.rate_hz) as usize).min(levels.len() - 1)]
    }

    /// Tones of Bell 202 with continuous phase.
    pub fn tones(self, levels: &[bool]) -> Vec<f32> {
        let mut turns = 0.0f64;
        let mut tone = |at: usize| {
            let mark = self.level(levels, at);
            turns = (turns + if mark { 1200.0 } else { 2200.0 } / self.rate_hz).fract();
            (turns * TAU).sin() * if mark { 1.0 } else { self.twist }
        };
        (0..self.samples(levels.len())).map(&mut tone).map(|x| (x * self.amplitude) as f32).collect()
    }

    /// Two levels; a 1 is the lower one.
    pub fn two_levels(self, bits: &[bool]) -> Vec<f32> {
        let level = |at: usize| if self.level(bits, at) { -self.amplitude } else { self.amplitude };
        (0..self.samples(bits.len())).map(|at| level(at) as f32).collect()
    }

    /// Adds noise and the constant.
    pub fn received(self, samples: &[f32], dice: &mut Dice) -> Vec<f32> {
        let scale = (self.noise * self.amplitude) as f32;
        samples.iter().map(|x| x + scale * normal(dice) + self.constant as f32).collect()
    }
}

/// Twelve uniform numbers are nearly normal.
pub fn normal(dice: &mut Dice) -> f32 {
    (0..12).map(|_| dice.value()).sum::<f32>() / 2.0
}

/// Silence between signals.
pub fn pause(signals: &[Vec<f32>]) -> Vec<f32> {
    let gap = vec![0.0; 3001];
    signals.iter().flat_map(|signal| gap.iter().chain(signal)).chain(&gap).copied().collect()
}

/// A code word of POCSAG, by the division of polynomials.
fn code_word(value: u32) -> u32 {
    let mut rest = u64::from(value) << 10;
    for bit in (10..31).rev() {
        if rest >> bit & 1 == 1 {
            rest ^= 0b111_0110_1001 << (bit - 10);
        }
    }
    let word = (value << 10 | rest as u32) << 1;
    word | (word.count_ones() % 2)
}

/// The words of a message: digits for function 0, else characters.
fn message_words(address: u32, function: u32, text: &str) -> Vec<u32> {
    let (width, fill) = if function == 0 { (4, 0xc) } else { (7, 0) };
    let value = |letter: char| match function {
        0 => "0123456789*U -][".find(letter).unwrap() as u32,
        _ => letter as u32,
    };
    let bits_of = |value: u32| (0..width).map(move |bit| value >> bit & 1);
    let mut bits: Vec<u32> = text.chars().map(value).flat_map(bits_of).collect();
    while !bits.len().is_multiple_of(20) {
        let next = bits.len() % width as usize;
        bits.push(fill >> next & 1);
    }
    let word = |bits: &[u32]| code_word(1 << 20 | bits.iter().fold(0, |sum, bit| sum << 1 | bit));
    let first = code_word(address >> 3 << 2 | function);
    std::iter::once(first).chain(bits.chunks(20).map(word)).collect()
}

/// The bits of a transmission of pages, with these bits of the code words flipped.
pub fn transmission(pages: &[(u32, u32, &str)], wrong: &[(usize, u32)]) -> Vec<bool> {
    const IDLE: u32 = 0x7a89_c197;
    let mut words = Vec::new();
    for (address, function, text) in pages {
        while words.len() % 2 == 1 || words.len() % 16 / 2 != (*address & 7) as usize {
            words.push(IDLE);
        }
        words.extend(message_words(*address, *function, text));
    }
    words.push(IDLE);
    words.resize(words.len().next_multiple_of(16), IDLE);
    wrong.iter().for_each(|(number, bits)| words[*number] ^= bits);
    let mut bits: Vec<bool> = (0..576).map(|at| at % 2 == 0).collect();
    for batch in words.chunks(16) {
        for word in std::iter::once(&0x7cd2_15d8).chain(batch) {
            bits.extend((0..32).rev().map(|bit| word >> bit & 1 == 1));
        }
    }
    bits
}
