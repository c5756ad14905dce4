//! One frame of a CAN bus.

use onbeat_os::can::{CLASSIC_BYTES, ERROR_FLAG, EXTENDED_FLAG, FD_BYTES, REMOTE_FLAG};
use onbeat_runtime::Message;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Largest identifier of 11 bits.
pub(super) const MOST_STANDARD: u32 = 0x7ff;
/// Largest identifier of 29 bits.
pub(super) const MOST_EXTENDED: u32 = 0x1fff_ffff;
/// Most data bytes of a frame of classical CAN.
pub(super) const MOST_CLASSIC: usize = 8;
/// Offset of the data in the kernel's form.
const DATA: usize = 8;

/// A frame of classical CAN, with up to 8 bytes of data, or of CAN FD, with up to 64.
///
/// ```
/// use onbeat_operators::buses::can::CanFrame;
/// let frame = CanFrame::classic(0x123, false, &[0xde, 0xad]).unwrap();
/// assert_eq!((frame.id(), frame.is_extended(), frame.data()), (0x123, false, &[0xde, 0xad][..]));
/// assert_eq!(frame.to_string(), "123#DEAD");
/// assert!(CanFrame::classic(0x800, false, &[]).is_none());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "PlainCanFrame", into = "PlainCanFrame")]
pub struct CanFrame {
    /// With the kernel's flags.
    id: u32,
    is_fd: bool,
    flags: u8,
    length: u8,
    data: [u8; 64],
    /// Time at which it was received, in nanoseconds since 1970; 0 if it was not.
    pub time_unix_ns: u64,
}

impl Message for CanFrame {}
onbeat_link::carry_values!(CanFrame: "can");

impl CanFrame {
    /// Creates a data frame of classical CAN. `None` if the identifier does not fit 11 bits, or 29 if it is
    /// extended, or there are more than 8 bytes.
    pub fn classic(id: u32, extended: bool, data: &[u8]) -> Option<Self> {
        let id = checked(id, extended)?;
        (data.len() <= MOST_CLASSIC).then(|| Self::make(id, false, 0, data))
    }

    /// Creates a frame of CAN FD. The flags are 1 for a faster bit rate in the data, 2 if the sender is error
    /// passive, and 4 of the kernel, which marks FD frames. `None` if the identifier does not fit, or the
    /// number of bytes is none of 0 to 8, 12, 16, 20, 24, 32, 48 and 64.
    pub fn fd(id: u32, extended: bool, flags: u8, data: &[u8]) -> Option<Self> {
        let id = checked(id, extended)?;
        (matches!(data.len(), 0..=8 | 12 | 16 | 20 | 24 | 32 | 48 | 64) && flags <= 0xf)
            .then(|| Self::make(id, true, flags, data))
    }

    /// Creates a remote frame: a request for a frame with this identifier and this number of bytes.
    pub fn remote(id: u32, extended: bool, length: usize) -> Option<Self> {
        let id = checked(id, extended)? | REMOTE_FLAG;
        let length = u8::try_from(length).ok().filter(|length| usize::from(*length) <= MOST_CLASSIC)?;
        Some(CanFrame { length, ..Self::make(id, false, 0, &[]) })
    }

    fn make(id: u32, is_fd: bool, flags: u8, data: &[u8]) -> Self {
        let mut all = [0; 64];
        all[..data.len()].copy_from_slice(data);
        CanFrame { id, is_fd, flags, length: data.len() as u8, data: all, time_unix_ns: 0 }
    }

    /// Sets the time at which it was received, in nanoseconds since 1970.
    pub fn received_at(self, time_unix_ns: u64) -> Self {
        CanFrame { time_unix_ns, ..self }
    }

    /// The identifier, 11 or 29 bits. The lower one has priority on the bus.
    pub fn id(&self) -> u32 {
        self.id & if self.is_extended() { MOST_EXTENDED } else { MOST_STANDARD }
    }

    /// Whether the identifier has 29 bits.
    pub fn is_extended(&self) -> bool {
        self.id & EXTENDED_FLAG != 0
    }

    /// Whether it is a request for data.
    pub fn is_remote(&self) -> bool {
        self.id & REMOTE_FLAG != 0
    }

    /// Whether it is a frame of CAN FD.
    pub fn is_fd(&self) -> bool {
        self.is_fd
    }

    /// The flags of a frame of CAN FD: see [`fd`](Self::fd).
    pub fn flags(&self) -> u8 {
        self.flags
    }

    /// The data; none in a remote frame.
    pub fn data(&self) -> &[u8] {
        if self.is_remote() { &[] } else { &self.data[..usize::from(self.length)] }
    }

    /// Number of data bytes; in a remote frame the number that is asked for.
    pub fn length(&self) -> usize {
        usize::from(self.length)
    }

    /// Reads the kernel's form. `None` for error frames, whose identifier is not that of a message, and for
    /// bytes that are not a frame.
    pub(super) fn from_kernel(bytes: &[u8]) -> Option<Self> {
        let is_fd = match bytes.len() {
            CLASSIC_BYTES => false,
            FD_BYTES => true,
            _ => return None,
        };
        let id = u32::from_ne_bytes(*bytes.first_chunk()?);
        let (length, flags) = (bytes[4], if is_fd { bytes[5] & 0xf } else { 0 });
        let most = bytes.len() - DATA;
        if id & ERROR_FLAG != 0 || usize::from(length) > most {
            return None;
        }
        let frame = Self::make(id, is_fd, flags, &bytes[DATA..DATA + usize::from(length)]);
        Some(if frame.is_remote() { CanFrame { data: [0; 64], ..frame } } else { frame })
    }

    /// Writes the kernel's form. Returns its length.
    pub(super) fn to_kernel(self, bytes: &mut [u8; FD_BYTES]) -> usize {
        bytes.fill(0);
        bytes[..4].copy_from_slice(&self.id.to_ne_bytes());
        (bytes[4], bytes[5]) = (self.length, self.flags);
        bytes[DATA..].copy_from_slice(&self.data);
        if self.is_fd { FD_BYTES } else { CLASSIC_BYTES }
    }
}

fn checked(id: u32, extended: bool) -> Option<u32> {
    match extended {
        true => (id <= MOST_EXTENDED).then_some(id | EXTENDED_FLAG),
        false => (id <= MOST_STANDARD).then_some(id),
    }
}

/// As candump and cansend write it.
impl fmt::Display for CanFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.id();
        if self.is_extended() { write!(f, "{id:08X}#") } else { write!(f, "{id:03X}#") }?;
        if self.is_remote() {
            return if self.length > 0 { write!(f, "R{:X}", self.length) } else { f.write_str("R") };
        }
        if self.is_fd {
            write!(f, "#{:X}", self.flags)?;
        }
        self.data().iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

impl fmt::Debug for CanFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CanFrame({self} at {})", self.time_unix_ns)
    }
}

/// A frame as it goes over a link.
#[derive(Serialize, Deserialize)]
struct PlainCanFrame {
    id: u32,
    extended: bool,
    remote: Option<u8>,
    fd: Option<u8>,
    data: Vec<u8>,
    time_unix_ns: u64,
}

impl From<CanFrame> for PlainCanFrame {
    fn from(frame: CanFrame) -> Self {
        PlainCanFrame {
            id: frame.id(),
            extended: frame.is_extended(),
            remote: frame.is_remote().then_some(frame.length),
            fd: frame.is_fd.then_some(frame.flags),
            data: frame.data().to_vec(),
            time_unix_ns: frame.time_unix_ns,
        }
    }
}

impl TryFrom<PlainCanFrame> for CanFrame {
    type Error = &'static str;

    fn try_from(plain: PlainCanFrame) -> Result<Self, Self::Error> {
        let PlainCanFrame { id, extended, remote, fd, data, time_unix_ns } = plain;
        let frame = match (remote, fd) {
            (Some(length), _) => CanFrame::remote(id, extended, usize::from(length)),
            (None, Some(flags)) => CanFrame::fd(id, extended, flags, &data),
            (None, None) => CanFrame::classic(id, extended, &data),
        };
        frame.map(|frame| CanFrame { time_unix_ns, ..frame }).ok_or("not a CAN frame")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frames() -> impl Strategy<Value = CanFrame> {
        let id = (any::<bool>(), any::<u32>());
        let id = id
            .prop_map(|(extended, id)| (id & if extended { MOST_EXTENDED } else { MOST_STANDARD }, extended));
        let data = (0..3u8, 0..16usize, 0..16u8, proptest::collection::vec(any::<u8>(), 64));
        (id, data).prop_filter_map("a length", |((id, extended), (kind, length, flags, data))| match kind {
            0 => CanFrame::classic(id, extended, &data[..length.min(8)]),
            1 => CanFrame::remote(id, extended, length.min(8)),
            _ => CanFrame::fd(id, extended, flags, &data[..4 * length]),
        })
    }

    proptest! {
        #[test]
        fn a_frame_is_the_same_in_each_form(frame in frames(), time_unix_ns in any::<u64>()) {
            let mut bytes = [0; FD_BYTES];
            let length = frame.to_kernel(&mut bytes);
            prop_assert_eq!(CanFrame::from_kernel(&bytes[..length]), Some(frame));
            let stamped = CanFrame { time_unix_ns, ..frame };
            let json = serde_json::to_string(&stamped).unwrap();
            prop_assert_eq!(serde_json::from_str::<CanFrame>(&json).unwrap(), stamped);
            prop_assert_eq!(super::super::log::frame(&frame.to_string()), Ok(frame));
        }

        #[test]
        fn bytes_of_any_kind_are_a_frame_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _no_panic = CanFrame::from_kernel(&bytes);
            let mut frame = [0; FD_BYTES];
            frame.iter_mut().zip(&bytes).for_each(|(a, b)| *a = *b);
            let _no_panic = CanFrame::from_kernel(&frame).map(|frame| frame.to_string());
        }
    }
}
