//! Structures and requests of linux/videodev2.h, for machines of 64 bits.

use rustix::io::Errno;
use rustix::ioctl::{Opcode, Setter, Updater, ioctl, opcode};
use std::os::fd::BorrowedFd;

/// Buffers that one plane fills with captured frames (`V4L2_BUF_TYPE_VIDEO_CAPTURE`).
pub(super) const CAPTURE: u32 = 1;
/// Buffers of the driver, mapped into the process (`V4L2_MEMORY_MMAP`).
pub(super) const MAPPED: u32 = 1;
/// Frames of whole pictures (`V4L2_FIELD_NONE`).
pub(super) const PROGRESSIVE: u32 = 1;

// Capabilities.
pub(super) const CAN_CAPTURE: u32 = 1;
pub(super) const CAN_CAPTURE_PLANES: u32 = 1 << 12;
pub(super) const CAN_STREAM: u32 = 1 << 26;
/// The capabilities of this node are in `device`.
pub(super) const HAS_NODE: u32 = 1 << 31;
/// The frame rate can be set.
pub(super) const CAN_SET_RATE: u32 = 1 << 12;

// Flags of a buffer.
pub(super) const DAMAGED: u32 = 0x40;
pub(super) const CLOCK_MASK: u32 = 0xe000;
pub(super) const CLOCK_MONOTONIC: u32 = 0x2000;
pub(super) const MOMENT_MASK: u32 = 0x7_0000;
pub(super) const START_OF_EXPOSURE: u32 = 0x1_0000;

/// Begin of the requests of the video interface.
const GROUP: u8 = b'V';

const fn both<T>(number: u8) -> Opcode {
    opcode::read_write::<T>(GROUP, number)
}

pub(super) const QUERYCAP: Opcode = opcode::read::<Capability>(GROUP, 0);
pub(super) const ENUM_FMT: Opcode = both::<FormatDescription>(2);
pub(super) const G_FMT: Opcode = both::<FormatState>(4);
pub(super) const S_FMT: Opcode = both::<FormatState>(5);
pub(super) const REQBUFS: Opcode = both::<BufferRequest>(8);
pub(super) const QUERYBUF: Opcode = both::<BufferState>(9);
pub(super) const QBUF: Opcode = both::<BufferState>(15);
pub(super) const DQBUF: Opcode = both::<BufferState>(17);
pub(super) const STREAMON: Opcode = opcode::write::<i32>(GROUP, 18);
pub(super) const STREAMOFF: Opcode = opcode::write::<i32>(GROUP, 19);
pub(super) const G_PARM: Opcode = both::<StreamParameters>(21);
pub(super) const S_PARM: Opcode = both::<StreamParameters>(22);
pub(super) const ENUMINPUT: Opcode = both::<InputDescription>(26);
pub(super) const G_CTRL: Opcode = both::<ControlValue>(27);
pub(super) const S_CTRL: Opcode = both::<ControlValue>(28);
pub(super) const QUERYCTRL: Opcode = both::<ControlDescription>(36);
pub(super) const G_INPUT: Opcode = opcode::read::<i32>(GROUP, 38);
pub(super) const S_INPUT: Opcode = both::<i32>(39);
pub(super) const TRY_FMT: Opcode = both::<FormatState>(64);
pub(super) const ENUM_FRAMESIZES: Opcode = both::<FrameSizes>(74);
pub(super) const ENUM_FRAMEINTERVALS: Opcode = both::<FrameIntervals>(75);

/// `struct v4l2_capability`
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Capability {
    pub driver: [u8; 16],
    pub card: [u8; 32],
    pub bus: [u8; 32],
    pub version: u32,
    pub all: u32,
    pub node: u32,
    pub reserved: [u32; 3],
}

/// `struct v4l2_fmtdesc`
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct FormatDescription {
    pub index: u32,
    pub kind: u32,
    pub flags: u32,
    pub text: [u8; 32],
    pub code: u32,
    pub bus_code: u32,
    pub reserved: [u32; 3],
}

/// `struct v4l2_format`, with its union as a `struct v4l2_pix_format` and the rest.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(super) struct FormatState {
    pub kind: u32,
    pub padding: u32,
    pub width: u32,
    pub height: u32,
    pub code: u32,
    pub field: u32,
    pub line_bytes: u32,
    pub size_bytes: u32,
    pub colours: u32,
    pub private: u32,
    pub flags: u32,
    pub matrix: u32,
    pub range: u32,
    pub transfer: u32,
    pub rest: [u32; 38],
}

/// `struct v4l2_requestbuffers`
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct BufferRequest {
    pub count: u32,
    pub kind: u32,
    pub memory: u32,
    pub capabilities: u32,
    pub reserved: u32,
}

/// `struct v4l2_buffer`
#[repr(C, align(8))]
#[derive(Debug, Clone, Copy)]
pub(super) struct BufferState {
    pub index: u32,
    pub kind: u32,
    pub used_bytes: u32,
    pub flags: u32,
    pub field: u32,
    pub padding: u32,
    pub seconds: i64,
    pub microseconds: i64,
    pub time_code: [u32; 4],
    pub sequence: u32,
    pub memory: u32,
    pub offset: u32,
    /// Of the union that has `offset`, for pointers.
    pub offset_high: u32,
    pub bytes: u32,
    pub reserved: u32,
    pub request: i32,
    pub end: u32,
}

/// `struct v4l2_streamparm`, with its union as a `struct v4l2_captureparm` and the rest.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct StreamParameters {
    pub kind: u32,
    pub capabilities: u32,
    pub mode: u32,
    pub numerator: u32,
    pub denominator: u32,
    pub rest: [u32; 46],
}

/// `struct v4l2_input`
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(super) struct InputDescription {
    pub index: u32,
    pub name: [u8; 32],
    pub rest: [u32; 11],
}

/// `struct v4l2_control`
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct ControlValue {
    pub id: u32,
    pub value: i32,
}

/// `struct v4l2_queryctrl`
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ControlDescription {
    pub id: u32,
    pub kind: u32,
    pub name: [u8; 32],
    pub least: i32,
    pub most: i32,
    pub step: i32,
    pub usual: i32,
    pub flags: u32,
    pub reserved: [u32; 2],
}

/// `struct v4l2_frmsizeenum`
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct FrameSizes {
    pub index: u32,
    pub code: u32,
    pub kind: u32,
    /// Width and height; or the least, most and step of the width, then of the height.
    pub sizes: [u32; 6],
    pub reserved: [u32; 2],
}

/// `struct v4l2_frmivalenum`
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct FrameIntervals {
    pub index: u32,
    pub code: u32,
    pub width: u32,
    pub height: u32,
    pub kind: u32,
    /// Fractions of a second: one; or the least, the most and the step.
    pub intervals: [[u32; 2]; 3],
    pub reserved: [u32; 2],
}

/// A structure of numbers: all zeros are a value of it.
pub(super) trait Zeroed: Copy {
    const ZERO: Self;
}

macro_rules! zeroed {
    ($($name:ident: $bytes:literal),* $(,)?) => { $(
        impl Zeroed for $name {
            // SAFETY: it has numbers and arrays of numbers only, for which all bytes are valid.
            const ZERO: Self = unsafe { std::mem::zeroed() };
        }
        // The size is a part of the request's number.
        const _: () = assert!(size_of::<$name>() == $bytes);
    )* };
}

zeroed!(
    Capability: 104,
    FormatDescription: 64,
    FormatState: 208,
    BufferRequest: 20,
    BufferState: 88,
    StreamParameters: 204,
    InputDescription: 80,
    ControlValue: 8,
    ControlDescription: 68,
    FrameSizes: 44,
    FrameIntervals: 52,
);

impl Zeroed for i32 {
    const ZERO: Self = 0;
}

/// A request that reads and writes a structure, again after a signal.
pub(super) fn update<const REQUEST: Opcode, T: Zeroed>(
    file: BorrowedFd<'_>,
    value: &mut T,
) -> Result<(), Errno> {
    loop {
        // SAFETY: the constants above name each request together with its structure, whose size is in the
        // request's number: the kernel reads and writes that many bytes, all of them numbers.
        let request = unsafe { Updater::<REQUEST, T>::new(value) };
        // SAFETY: the request changes `value` only, as said above: the structures have no pointers.
        match unsafe { ioctl(file, request) } {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// A request that reads the kind of the stream.
pub(super) fn switch<const REQUEST: Opcode>(file: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: the two requests that are called this way read one number of 32 bits.
    let request = unsafe { Setter::<REQUEST, i32>::new(CAPTURE as i32) };
    // SAFETY: the kernel reads that number, and changes no memory of the process that is not mapped from it.
    unsafe { ioctl(file, request) }
}

/// A text that ends at its first 0.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
