//! Finds frames in bits.

use super::whitening::WhiteBytes;
use super::{BitOrder, FrameForm, FrameLength, Polarity};
use crate::check;
use crate::found::{Finder, Found};
use onbeat_runtime::Error;
use serde::Serialize;

/// Bits that were searched and are kept, before they are removed together.
const SEARCHED: usize = 4096;

/// The bits that mark the beginning of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct SyncWord {
    /// The last bit is the least significant one.
    bits: u64,
    count: u32,
    most_errors: u32,
}

impl SyncWord {
    /// Reads hexadecimal digits, or bits behind `0b`.
    pub fn read(text: &str, most_errors: u32) -> Result<Self, Error> {
        let (digits, radix, each) = match text.strip_prefix("0b") {
            Some(bits) => (bits, 2, 1),
            None => (text.strip_prefix("0x").unwrap_or(text), 16, 4),
        };
        let count = digits.len().saturating_mul(each) as u32;
        let is_digits = digits.bytes().all(|digit| char::from(digit).is_digit(radix));
        let bits = u64::from_str_radix(digits, radix).ok().filter(|_| is_digits && (8..=64).contains(&count));
        let bits = bits.ok_or_else(|| {
            Error::new(format!(
                "`sync` is `{}`: it must have from 8 to 64 bits, as hexadecimal digits such as `2dd4`, or as bits such as \
                 `0b11010011`",
                check::shown(text)
            ))
        })?;
        if most_errors > count / 4 {
            return Err(Error::new(format!(
                "`sync_errors` is {most_errors}: it must be at most {}, a quarter of the bits of `sync`",
                count / 4
            )));
        }
        Ok(SyncWord { bits, count, most_errors })
    }

    /// Number of wrong bits in the last bits of `register`, if they are few enough.
    fn errors(self, register: u64, is_inverted: bool) -> Option<u32> {
        let wanted = if is_inverted { !self.bits } else { self.bits };
        let mask = u64::MAX >> (64 - self.count);
        let errors = ((register ^ wanted) & mask).count_ones();
        (errors <= self.most_errors).then_some(errors)
    }
}

/// One line of JSON.
#[derive(Debug, Serialize)]
struct FrameLine {
    time_s: f64,
    #[serde(skip_serializing_if = "is_zero")]
    sync_errors: u32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    inverted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    crc_ok: Option<bool>,
    data: String,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// The bits after a sync word.
enum Behind {
    /// Not all bits have come.
    Waits,
    /// No frame: the length is too large.
    Nothing,
    /// All bytes are there. This is the number of those before the checksum.
    Frame(usize),
}

/// Searches a stream for frames.
pub(super) struct SyncSearch {
    form: FrameForm,
    /// Bits per second; 0 if unknown.
    rate_hz: f64,
    bits: Vec<bool>,
    /// Bytes of the frame in hand and of its checksum.
    bytes: Vec<u8>,
    /// Number of the first of `bits` in the stream.
    first: u64,
    /// Place of the next bit to look at.
    at: usize,
    /// The last bits, and how many of them there are since the last frame.
    register: u64,
    filled: u32,
    is_finished: bool,
    frames: u64,
    wrong: u64,
    odd_lengths: u64,
    nan: u64,
}

impl SyncSearch {
    pub fn new(form: FrameForm, rate_hz: f64) -> Self {
        SyncSearch {
            form,
            rate_hz,
            bits: Vec::with_capacity(4 * SEARCHED),
            bytes: Vec::new(),
            first: 0,
            at: 0,
            register: 0,
            filled: 0,
            is_finished: false,
            frames: 0,
            wrong: 0,
            odd_lengths: 0,
            nan: 0,
        }
    }

    /// Searches on. Returns the line of the next frame, and where it began.
    fn next(&mut self) -> Option<Found<String>> {
        while self.at < self.bits.len() {
            let register = self.register << 1 | u64::from(self.bits[self.at]);
            let filled = (self.filled + 1).min(64);
            let (begin, count) = (self.at + 1, self.form.sync.count);
            if filled >= count
                && let Some((errors, is_inverted)) = self.sync(register)
            {
                match self.behind(begin, is_inverted) {
                    Behind::Waits => return None,
                    Behind::Nothing => self.odd_lengths += 1,
                    Behind::Frame(length) => {
                        let start = self.first + begin as u64 - u64::from(count);
                        if let Some(value) = self.line(start, errors, is_inverted, length) {
                            self.at = begin + 8 * self.bytes.len();
                            (self.register, self.filled) = (0, 0);
                            return Some(Found { value, at: start });
                        }
                    }
                }
            }
            (self.register, self.filled, self.at) = (register, filled, begin);
        }
        None
    }

    /// Whether the last bits are the sync word: its errors, and whether it is inverted.
    fn sync(&self, register: u64) -> Option<(u32, bool)> {
        let FrameForm { sync, polarity, .. } = self.form;
        let normal = || sync.errors(register, false).map(|errors| (errors, false));
        let inverted = || sync.errors(register, true).map(|errors| (errors, true));
        match polarity {
            Polarity::Normal => normal(),
            Polarity::Inverted => inverted(),
            Polarity::Either => normal().or_else(inverted),
        }
    }

    /// Reads the bytes behind the sync word.
    fn behind(&mut self, begin: usize, is_inverted: bool) -> Behind {
        let form = &self.form;
        let check = form.checksum.map_or(0, |checksum| checksum.bytes());
        let mut white = WhiteBytes::new(form.whitening);
        let bytes = &mut self.bytes;
        bytes.clear();
        let mut length = match form.length {
            FrameLength::Fixed(length) => Some(length),
            FrameLength::Field { .. } => None,
        };
        for bits in self.bits[begin.min(self.bits.len())..].chunks_exact(8) {
            let mut byte = bits.iter().fold(0u8, |byte, bit| byte << 1 | u8::from(*bit != is_inverted));
            byte ^= white.next();
            bytes.push(if form.bit_order == BitOrder::Lsb { byte.reverse_bits() } else { byte });
            if length.is_none()
                && let FrameLength::Field { at, bytes: count, adds } = form.length
                && bytes.len() == at + count
            {
                let field = bytes[at..].iter().fold(0, |all, byte| all << 8 | i64::from(*byte));
                let least = (at + count) as i64;
                match usize::try_from(field + adds) {
                    Ok(said) if said as i64 >= least && said <= form.longest => length = Some(said),
                    _ => return Behind::Nothing,
                }
            }
            if let Some(length) = length.filter(|length| bytes.len() == length + check) {
                return Behind::Frame(length);
            }
        }
        if self.is_finished { Behind::Nothing } else { Behind::Waits }
    }

    /// The line of a frame; none if its checksum is wrong and such frames are not sent.
    fn line(&mut self, start: u64, sync_errors: u32, inverted: bool, length: usize) -> Option<String> {
        let crc_ok =
            self.form.checksum.map(|checksum| checksum.holds(&self.bytes[..length], &self.bytes[length..]));
        if crc_ok == Some(false) {
            self.wrong += 1;
            if !self.form.wrong {
                return None;
            }
        } else {
            self.frames += 1;
        }
        let time_s = if self.rate_hz > 0.0 { start as f64 / self.rate_hz } else { 0.0 };
        let data = self.bytes[..length].iter().map(|byte| format!("{byte:02x}")).collect();
        let line = FrameLine { time_s: (time_s * 1e6).round() / 1e6, sync_errors, inverted, crc_ok, data };
        serde_json::to_string(&line).ok()
    }
}

impl Finder for SyncSearch {
    type Sample = f32;
    type Value = String;

    fn take(&mut self, samples: &[f32]) -> (usize, Option<Found<String>>) {
        if self.at >= SEARCHED {
            self.bits.drain(..self.at);
            self.first += self.at as u64;
            self.at = 0;
        }
        self.nan += samples.iter().filter(|x| x.is_nan()).count() as u64;
        self.bits.extend(samples.iter().map(|x| *x > 0.0));
        (samples.len(), self.next())
    }

    fn finish(&mut self) {
        self.is_finished = true;
    }

    fn note(&self) -> Option<String> {
        let mut parts = vec![format!("{} frames", self.frames)];
        if self.wrong > 0 {
            parts.push(format!("{} sync words without a right checksum", self.wrong));
        }
        if self.odd_lengths > 0 {
            parts.push(format!("{} without a possible length, or cut by the end", self.odd_lengths));
        }
        if self.nan > 0 {
            parts.push(format!("{} bits were not a number and counted as 0", self.nan));
        }
        (self.first + self.bits.len() as u64 > 0).then(|| parts.join("; "))
    }
}
