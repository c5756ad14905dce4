//! Writes the capture of the ADS-B example, `adsb.cu8` and `adsb.frames`: a fictional flight, 36 ms at 2
//! MS/s.
//!
//! Run from the root of the workspace: `cargo run --release -p onbeat-operators --example make_adsb_capture`.
//! The only argument is the folder to write to, `examples` by default. The capture has unsigned bytes, with
//! 127.5 as zero. The other file has, for each frame, its bytes and the start of its preamble in seconds.
//!
//! The capture is computed from the standards and shares no code with the demodulator under test: pulses with
//! edges of 50 ns at 40 MS/s, a carrier offset of a few kilohertz, each sample the mean of 20 such, and
//! noise. Frames begin anywhere between two samples. A real aircraft sends them at a fiftieth of this rate.
#![allow(clippy::disallowed_macros, reason = "an example prints")]

use std::f64::consts::TAU;
use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs};

/// Fine samples per sample.
const FINE: usize = 20;
const RATE_HZ: f64 = 2e6;
const SAMPLES: usize = 72_000;
/// An address of a block that is not assigned to any state.
const ADDRESS: u32 = 0xf0_0b01;

/// A frame under construction, bit by bit.
#[derive(Clone, Default)]
struct Bits(Vec<bool>);

impl Bits {
    fn put(mut self, value: u32, count: u32) -> Self {
        self.0.extend((0..count).rev().map(|n| value >> n & 1 == 1));
        self
    }

    /// Appends the parity: the remainder of the division by the generator, XORed with `overlay`.
    fn parity(self, overlay: u32) -> Self {
        let mut register = 0u32;
        for bit in &self.0 {
            let out = register >> 23 & 1 == 1;
            register = register << 1 & 0xff_ffff;
            if out != *bit {
                register ^= 0xff_f409;
            }
        }
        self.put(register ^ overlay, 24)
    }

    fn hex(&self) -> String {
        self.0.chunks(4).fold(String::new(), |mut text, four| {
            let digit = four.iter().fold(0, |value, bit| value << 1 | u8::from(*bit));
            let _ = write!(text, "{digit:x}");
            text
        })
    }
}

/// The start of an extended squitter of an aircraft in flight.
fn squitter(type_code: u32) -> Bits {
    Bits::default().put(17, 5).put(5, 3).put(ADDRESS, 24).put(type_code, 5)
}

fn identification(call_sign: &str) -> Bits {
    let letter = |c: u8| if c.is_ascii_uppercase() { u32::from(c - b'A') + 1 } else { u32::from(c) };
    let text = format!("{call_sign:8}");
    let begin = squitter(4).put(3, 3);
    text.bytes().fold(begin, |bits, c| bits.put(letter(c), 6)).parity(0)
}

/// Number of longitude zones at a latitude.
fn zones(latitude_deg: f64) -> f64 {
    let a = 1.0 - (TAU / 60.0).cos();
    let b = latitude_deg.to_radians().cos().powi(2);
    (TAU / (1.0 - a / b).acos()).floor()
}

/// Position within its zone, of 131072 steps, for an even (0) or odd (1) message.
fn compact(latitude_deg: f64, longitude_deg: f64, odd: u32) -> (u32, u32) {
    let share = |value: f64, zone: f64| (131_072.0 * value.rem_euclid(zone) / zone + 0.5).floor();
    let tall_deg = 360.0 / (60.0 - f64::from(odd));
    let y = share(latitude_deg, tall_deg);
    let there_deg = tall_deg * (y / 131_072.0 + (latitude_deg / tall_deg).floor());
    let wide_deg = 360.0 / (zones(there_deg) - f64::from(odd)).max(1.0);
    let x = share(longitude_deg, wide_deg);
    (y as u32 % 131_072, x as u32 % 131_072)
}

fn position(latitude_deg: f64, longitude_deg: f64, altitude_ft: u32, odd: u32) -> Bits {
    let steps = (altitude_ft + 1000) / 25;
    let (y, x) = compact(latitude_deg, longitude_deg, odd);
    squitter(11)
        .put(0, 3)
        .put(steps >> 4, 7)
        .put(1, 1)
        .put(steps & 15, 4)
        .put(0, 1)
        .put(odd, 1)
        .put(y, 17)
        .put(x, 17)
        .parity(0)
}

/// Speeds to east and north in knots, and climb in feet per minute.
fn velocity(east_kt: i32, north_kt: i32, climb: i32) -> Bits {
    let part = |bits: Bits, value: i32, count| {
        bits.put(u32::from(value < 0), 1).put(value.unsigned_abs() + 1, count)
    };
    let bits = part(part(squitter(19).put(1, 3).put(0, 5), east_kt, 10), north_kt, 10);
    part(bits.put(1, 1), climb / 64, 9).put(0, 2).put(0, 1).put(5, 7).parity(0)
}

fn all_call(interrogator: u32) -> Bits {
    Bits::default().put(11, 5).put(5, 3).put(ADDRESS, 24).parity(interrogator)
}

fn altitude_reply(altitude_ft: u32) -> Bits {
    let steps = (altitude_ft + 1000) / 25;
    let code = Bits::default().put(4, 5).put(0, 14).put(steps >> 5, 6).put(0, 1);
    code.put(steps >> 4 & 1, 1).put(1, 1).put(steps & 15, 4).parity(ADDRESS)
}

/// A flight to the north-east, with 50 ms between two frames.
fn flight() -> Vec<Bits> {
    (0..24u32)
        .map(|n| {
            let (latitude_deg, longitude_deg) = (47.4 + 0.0001 * f64::from(n), 8.5 + 0.00015 * f64::from(n));
            let altitude_ft = 12_000 + 25 * (n / 3);
            match n % 8 {
                0 => identification("ONBEAT1"),
                1 | 5 => position(latitude_deg, longitude_deg, altitude_ft, 0),
                2 | 6 => position(latitude_deg, longitude_deg, altitude_ft, 1),
                3 => velocity(250 + n as i32, 310, 1920),
                4 => all_call(if n < 12 { 0 } else { 5 }),
                _ => altitude_reply(altitude_ft),
            }
        })
        .collect()
}

/// Pseudo-random numbers, the same in every run.
struct Dice(u64);

impl Dice {
    /// A number from 0 to 1, from a xorshift generator.
    fn value(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number with mean 0 and variance 1, approximately normal.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.value()).sum::<f64>() - 6.0
    }
}

/// Start times of a frame's pulses in microseconds.
fn pulses(bits: &Bits) -> Vec<f64> {
    let data = bits.0.iter().enumerate().map(|(n, bit)| 8.0 + n as f64 + if *bit { 0.0 } else { 0.5 });
    [0.0, 1.0, 3.5, 4.5].into_iter().chain(data).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(env::args_os().nth(1).unwrap_or_else(|| "examples".into()));
    let mut dice = Dice(0x6f6e_6265_6174);
    let mut signal = vec![[0.0f64; 2]; SAMPLES];
    let mut list = String::new();
    for (n, bits) in flight().iter().enumerate() {
        // About every 1.5 ms, each at a different position between two samples.
        let begin =
            400.0 + 2950.0 * n as f64 + (n as f64 * 0.618_034).fract() + (200.0 * dice.value()).floor();
        let (size, phase) = (0.25 + 0.6 * dice.value(), dice.value());
        let turn = 8e3 * (dice.value() - 0.5) / RATE_HZ;
        writeln!(list, "{} {:.9}", bits.hex(), begin / RATE_HZ)?;
        let pulses = pulses(bits);
        let length = 2 * (8 + bits.0.len()) + 4;
        for (at, sample) in signal[begin as usize..][..length].iter_mut().enumerate() {
            for fine in 0..FINE {
                let place = begin.floor() + at as f64 + (fine as f64 + 0.5) / FINE as f64;
                let time_us = (place - begin) / RATE_HZ * 1e6;
                // A pulse: edges of 50 ns around its start and its end, half a microsecond later.
                let height = |from: f64| ((time_us - from) / 0.05 + 0.5).clamp(0.0, 1.0);
                let sum: f64 = pulses.iter().map(|p| height(*p) - height(*p + 0.5)).sum();
                let angle = TAU * (phase + turn * place);
                sample[0] += size * sum * angle.cos() / FINE as f64;
                sample[1] += size * sum * angle.sin() / FINE as f64;
            }
        }
    }
    let mut byte = |x: f64| (127.5 + 127.5 * (x + 0.02 * dice.normal())).round().clamp(0.0, 255.0) as u8;
    let data: Vec<u8> = signal.as_flattened().iter().map(|x| byte(*x)).collect();
    fs::write(folder.join("adsb.cu8"), &data)?;
    fs::write(folder.join("adsb.frames"), &list)?;
    println!("{} bytes, {} frames in {}", data.len(), list.lines().count(), folder.display());
    Ok(())
}
