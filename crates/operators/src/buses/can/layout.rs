//! Where a signal is in the data of a frame, and what its bits mean.

use onbeat_runtime::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bits of the longest frame.
const MOST_BITS: u32 = 512;

/// Order of the bytes of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ByteOrder {
    /// Low byte first (Intel, `@1` in a DBC file). The start bit is the lowest bit.
    #[default]
    Little,
    /// High byte first (Motorola, `@0` in a DBC file). The start bit is the highest bit.
    Big,
}

/// Meaning of the bits of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BitsMeaning {
    /// A number from 0 on.
    #[default]
    Unsigned,
    /// Two's complement.
    Signed,
    /// Floating point (IEEE 754), 32 or 64 bits.
    Float,
}

/// A signal of a frame: physical value = raw number · factor + offset.
///
/// ```
/// use onbeat_operators::buses::can::{BitsMeaning, ByteOrder, SignalLayout};
/// // 16 bits from the third byte on, high byte first, in steps of 0.01.
/// let speed = SignalLayout::new(23, 16, ByteOrder::Big, BitsMeaning::Unsigned, 0.01, 0.0).unwrap();
/// assert_eq!(speed.decode(&[0, 0, 0x30, 0x39, 0, 0, 0, 0]), Some(123.45));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SignalLayout {
    start: u32,
    length: u32,
    order: ByteOrder,
    meaning: BitsMeaning,
    factor: f64,
    offset: f64,
}

impl SignalLayout {
    /// Describes a signal. Bits are counted as in DBC files: bit n is bit n % 8 of byte n / 8, where bit 0 of
    /// a byte is its lowest one.
    ///
    /// # Errors
    /// If the signal does not fit a frame of 64 bytes, or has no bits or more than 64, or the factor is 0.
    pub fn new(
        start: u16,
        length: u8,
        order: ByteOrder,
        meaning: BitsMeaning,
        factor: f64,
        offset: f64,
    ) -> Result<Self, Error> {
        let signal =
            SignalLayout { start: start.into(), length: length.into(), order, meaning, factor, offset };
        if !(1..=64).contains(&length) {
            return Err(Error::new(format!("`length` is {length}: a signal has 1 to 64 bits")));
        }
        if meaning == BitsMeaning::Float && !matches!(length, 32 | 64) {
            return Err(Error::new(format!("`length` is {length}: floating point has 32 or 64 bits")));
        }
        if signal.bits().any(|bit| bit >= MOST_BITS) {
            return Err(Error::new(format!(
                "`start_bit` is {start}: the signal goes beyond the 64 bytes of the longest frame"
            )));
        }
        crate::check::finite("factor", factor)?;
        crate::check::finite("offset", offset)?;
        if factor == 0.0 {
            return Err(Error::new("`factor` is 0: all values would be the same; the default is 1"));
        }
        Ok(signal)
    }

    /// Positions of its bits, the start bit first.
    fn bits(&self) -> impl Iterator<Item = u32> + use<> {
        let order = self.order;
        std::iter::successors(Some(self.start), move |bit| match order {
            ByteOrder::Little => bit.checked_add(1),
            // From the lowest bit of a byte to the highest one of the next.
            ByteOrder::Big if bit % 8 == 0 => bit.checked_add(15),
            ByteOrder::Big => Some(bit - 1),
        })
        .take(self.length as usize)
    }

    /// Least number of data bytes that have it.
    pub fn bytes(&self) -> usize {
        self.bits().max().map_or(0, |bit| bit as usize / 8 + 1)
    }

    /// Returns the raw bits; `None` if the data are too short.
    fn raw(&self, data: &[u8]) -> Option<u64> {
        let mut raw = 0;
        for (n, bit) in self.bits().enumerate() {
            let value = u64::from(data.get(bit as usize / 8)? >> (bit % 8) & 1);
            match self.order {
                ByteOrder::Little => raw |= value << n,
                ByteOrder::Big => raw = raw << 1 | value,
            }
        }
        Some(raw)
    }

    /// Returns the physical value in this data; `None` if it is too short.
    pub fn decode(&self, data: &[u8]) -> Option<f64> {
        let raw = self.raw(data)?;
        let unused = 64 - self.length;
        let number = match self.meaning {
            BitsMeaning::Unsigned => raw as f64,
            BitsMeaning::Signed => ((raw << unused) as i64 >> unused) as f64,
            BitsMeaning::Float if self.length == 32 => f64::from(f32::from_bits(raw as u32)),
            BitsMeaning::Float => f64::from_bits(raw),
        };
        Some(number * self.factor + self.offset)
    }

    /// Writes a physical value into data of at least [`bytes`](Self::bytes) bytes, rounded to the nearest
    /// raw number. Returns whether it was beyond the range, in which case the nearest end of it is written.
    pub fn encode(&self, value: f64, data: &mut [u8]) -> bool {
        let number = (value - self.offset) / self.factor;
        let (low, high) = match self.meaning {
            BitsMeaning::Signed => (-(1i128 << (self.length - 1)), (1i128 << (self.length - 1)) - 1),
            _ => (0, (1i128 << self.length) - 1),
        };
        // Numbers beyond 128 bits become the nearest one of 128 bits.
        let rounded = number.round_ties_even() as i128;
        let (raw, is_clipped) = match self.meaning {
            BitsMeaning::Float if self.length == 32 => {
                let single = number as f32;
                (u64::from(single.to_bits()), single.is_infinite() && number.is_finite())
            }
            BitsMeaning::Float => (number.to_bits(), false),
            _ => (rounded.clamp(low, high) as u64, rounded < low || rounded > high),
        };
        for (n, bit) in self.bits().enumerate() {
            let at = match self.order {
                ByteOrder::Little => n as u32,
                ByteOrder::Big => self.length - 1 - n as u32,
            };
            let Some(byte) = data.get_mut(bit as usize / 8) else { continue };
            let mask = 1 << (bit % 8);
            *byte = if raw >> at & 1 == 1 { *byte | mask } else { *byte & !mask };
        }
        is_clipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len() / 2).map(|n| u8::from_str_radix(&text[2 * n..2 * n + 2], 16).unwrap()).collect()
    }

    /// What cantools 45.1.0 reads from random data with random layouts, and what it writes of that.
    #[test]
    fn signals_are_those_of_cantools() {
        for (start, length, is_big, kind, factor, offset, data, value, written) in REFERENCE {
            let order = if *is_big { ByteOrder::Big } else { ByteOrder::Little };
            let meaning = [BitsMeaning::Unsigned, BitsMeaning::Signed, BitsMeaning::Float][*kind];
            let signal = SignalLayout::new(*start, *length, order, meaning, *factor, *offset).unwrap();
            let data = hex(data);
            let text = format!("{signal:?} of {data:02x?}");
            assert_eq!(signal.decode(&data).map(f64::to_bits), Some(f64::to_bits(*value)), "{text}");
            let mut into = vec![0; data.len()];
            assert!(!signal.encode(*value, &mut into), "{text}");
            assert_eq!(into, hex(written), "{text}");
        }
        assert!(REFERENCE.len() > 50);
    }

    type Reference = (u16, u8, bool, usize, f64, f64, &'static str, f64, &'static str);
    const REFERENCE: &[Reference] = &include!("layout_reference.in");

    #[test]
    fn what_does_not_fit_is_said() {
        let layout = |start, length, meaning, factor| {
            SignalLayout::new(start, length, ByteOrder::Little, meaning, factor, 0.0)
        };
        for (made, expected) in [
            (layout(0, 0, BitsMeaning::Signed, 1.0), "1 to 64 bits"),
            (layout(0, 65, BitsMeaning::Signed, 1.0), "1 to 64 bits"),
            (layout(0, 16, BitsMeaning::Float, 1.0), "32 or 64"),
            (layout(511, 2, BitsMeaning::Unsigned, 1.0), "beyond the 64 bytes"),
            (layout(u16::MAX, 2, BitsMeaning::Unsigned, 1.0), "beyond the 64 bytes"),
            (layout(0, 8, BitsMeaning::Unsigned, 0.0), "`factor` is 0"),
        ] {
            assert!(made.unwrap_err().to_string().contains(expected), "{expected}");
        }
        let mut data = [0; 1];
        assert_eq!(layout(0, 9, BitsMeaning::Unsigned, 1.0).unwrap().decode(&[1]), None);
        let byte = layout(0, 8, BitsMeaning::Unsigned, 1.0).unwrap();
        assert!(byte.encode(256.0, &mut data) && data == [255]);
        assert!(byte.encode(-1e300, &mut data) && data == [0]);
        let signed = layout(0, 8, BitsMeaning::Signed, 1.0).unwrap();
        assert!(signed.encode(-200.0, &mut data) && data == [0x80]);
    }

    proptest! {
        /// A raw number comes back, and bits of others stay.
        #[test]
        fn numbers_come_back(
            start in 0..512u16, length in 1..=52u8, is_big in any::<bool>(), is_signed in any::<bool>(),
            raw in any::<i64>(), fill in any::<u8>(),
        ) {
            let order = if is_big { ByteOrder::Big } else { ByteOrder::Little };
            let meaning = if is_signed { BitsMeaning::Signed } else { BitsMeaning::Unsigned };
            let Ok(signal) = SignalLayout::new(start, length, order, meaning, 1.0, 0.0) else { return Ok(()) };
            let unused = 64 - u32::from(length);
            let value = if is_signed { (raw << unused >> unused) as f64 } else { ((raw as u64) << unused >> unused) as f64 };
            let mut data = vec![fill; signal.bytes()];
            prop_assert!(!signal.encode(value, &mut data));
            prop_assert_eq!(signal.decode(&data), Some(value));
            let ours: Vec<u32> = signal.bits().collect();
            let same = (0..8 * data.len() as u32).filter(|bit| !ours.contains(bit))
                .all(|bit| (data[bit as usize / 8] ^ fill) >> (bit % 8) & 1 == 0);
            prop_assert!(same);
            prop_assert_eq!(signal.decode(&data[..data.len() - 1]), None);
        }
    }
}
