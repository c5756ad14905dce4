//! Frames of HDLC in a stream of bits: flags, stuffed bits, and the check sequence.

/// Fewest bytes of a frame: two addresses, control, and the check sequence.
const LEAST: usize = 17;

/// Most bytes of a frame: ten addresses, 1024 bytes of information, control, PID and the check sequence.
const MOST: usize = 70 + 1024 + 4;

/// Finds frames whose check sequence is right.
#[derive(Debug, Clone)]
pub(super) struct HdlcDeframer {
    /// Register of the descrambler, if the bits are scrambled.
    scrambler: Option<u32>,
    level: bool,
    /// The last eight bits, the newest at the top.
    recent: u8,
    /// Ones in a row.
    ones: u32,
    /// Whether a flag has come and no abort since.
    is_open: bool,
    bytes: Vec<u8>,
    bits: usize,
    /// Number of the first bit of the frame.
    start: u64,
    taken: u64,
}

/// A frame without its check sequence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct HdlcFrame<'d> {
    pub bytes: &'d [u8],
    /// Bits from its first one to now.
    pub length: u64,
}

impl HdlcDeframer {
    /// Creates a deframer, with the descrambler of 9600 Bd (x¹⁷ + x¹² + 1) or without.
    pub fn new(is_scrambled: bool) -> Self {
        HdlcDeframer {
            scrambler: is_scrambled.then_some(0),
            level: false,
            recent: 0,
            ones: 0,
            is_open: false,
            bytes: Vec::with_capacity(MOST + 1),
            bits: 0,
            start: 0,
            taken: 0,
        }
    }

    /// Takes the level of a symbol. Returns the frame that it completes.
    pub fn push(&mut self, level: bool) -> Option<HdlcFrame<'_>> {
        self.taken += 1;
        let mut level = level;
        if let Some(register) = &mut self.scrambler {
            let received = u32::from(level);
            level = (received ^ (*register >> 11) ^ (*register >> 16)) & 1 == 1;
            *register = *register << 1 | received;
        }
        // A 0 is a change of the level.
        let bit = level == std::mem::replace(&mut self.level, level);
        self.recent = self.recent >> 1 | u8::from(bit) << 7;
        if self.recent == 0x7e {
            return self.flag();
        }
        let ones = self.ones;
        self.ones = if bit { ones + 1 } else { 0 };
        if ones >= 6 && bit {
            self.is_open = false;
        }
        if self.is_open && (bit || ones != 5) {
            self.append(bit);
        }
        None
    }

    fn append(&mut self, bit: bool) {
        if self.bits == 0 {
            self.bytes.clear();
        }
        if self.bits.is_multiple_of(8) {
            if self.bytes.len() > MOST {
                self.is_open = false;
                return;
            }
            self.bytes.push(0);
        }
        if bit && let Some(last) = self.bytes.last_mut() {
            *last |= 1 << (self.bits % 8);
        }
        self.bits += 1;
    }

    /// Ends a frame, and begins the next one.
    fn flag(&mut self) -> Option<HdlcFrame<'_>> {
        // The first seven bits of the flag were taken as bits of the frame.
        let bits = self.bits.saturating_sub(7);
        let is_whole = self.is_open && bits.is_multiple_of(8) && bits / 8 >= LEAST;
        let length = self.taken - self.start;
        (self.is_open, self.bits, self.ones, self.start) = (true, 0, 0, self.taken);
        let frame = self.bytes.get(..bits / 8).filter(|frame| is_whole && has_good_check(frame))?;
        Some(HdlcFrame { bytes: &frame[..frame.len() - 2], length })
    }
}

/// CRC-16/X.25 over a frame and its check sequence leaves a constant.
fn has_good_check(bytes: &[u8]) -> bool {
    check_register(bytes) == 0xf0b8
}

/// The register of CRC-16/X.25 after these bytes.
fn check_register(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0xffff, |register, byte| {
        (0..8).fold(register ^ u16::from(*byte), |register, _| {
            if register & 1 == 1 { register >> 1 ^ 0x8408 } else { register >> 1 }
        })
    })
}
