//! Cameras and other sources of pictures (V4L2): what they offer, their settings, and frames from the
//! driver's buffers, which the process maps.
//!
//! | file | contents |
//! |---|---|
//! | `abi` | the kernel's structures and requests |
//! | `stream` | buffers and frames |

mod abi;
mod stream;

pub use stream::{TakenFrame, VideoStream};

use abi::{
    Capability, ControlDescription, ControlValue, FormatDescription, FormatState, FrameIntervals, FrameSizes,
    InputDescription, StreamParameters, Zeroed, text, update,
};
use rustix::fs::{FileType, Mode, OFlags, open, stat};
use rustix::io::Errno;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Most entries of a list that are read: a driver with a list without end must not stop the program.
const LONGEST_LIST: u32 = 1024;

/// Code of a pixel format: four characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PixelCode(pub [u8; 4]);

impl fmt::Display for PixelCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = self.0.iter().map(|&byte| char::from(byte & 0x7f)).collect();
        f.write_str(text.trim_end())
    }
}

impl fmt::Debug for PixelCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a device cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum VideoError {
    /// It is not a video device.
    NotVideo,
    /// It does not capture pictures: it plays them, or has other data.
    NotCapture,
    /// It has only the interface for frames of several planes.
    ManyPlanes,
    /// Another program uses it.
    Busy,
    /// The device was unplugged.
    Gone,
    /// What the system reports, such as a name that does not exist or missing rights.
    System(io::Error),
}

impl fmt::Display for VideoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VideoError::NotVideo => f.write_str("it is not a video device"),
            VideoError::NotCapture => f.write_str("it does not capture pictures"),
            VideoError::ManyPlanes => {
                f.write_str("its driver has only the multi-planar interface, which is not supported")
            }
            VideoError::Busy => f.write_str("another program uses it"),
            VideoError::Gone => f.write_str("it was unplugged"),
            VideoError::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for VideoError {}

impl From<Errno> for VideoError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::BUSY => VideoError::Busy,
            // `open` says so if the node is still there.
            Errno::NODEV | Errno::NXIO => VideoError::Gone,
            error => VideoError::System(error.into()),
        }
    }
}

/// Layout of the frames of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLayout {
    /// Columns and rows.
    pub size: (u32, u32),
    /// FormatState of the pixels.
    pub code: PixelCode,
    /// Bytes from one row to the next, of the first plane.
    pub line_bytes: u32,
    /// Largest number of bytes of a frame.
    pub size_bytes: u32,
    /// Whether rows of two moments alternate.
    pub is_interlaced: bool,
    /// The driver's numbers for the colours: colour space, encoding of YCbCr, range (0: the usual one).
    pub colours: [u32; 3],
}

/// Sizes that a device offers for a pixel format: least, most and step of the columns, and of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeRange {
    /// Columns.
    pub columns: [u32; 3],
    /// Rows.
    pub rows: [u32; 3],
}

impl SizeRange {
    /// Whether the size is in the range.
    #[must_use]
    pub fn has(&self, (columns, rows): (u32, u32)) -> bool {
        let fits = |[least, most, step]: [u32; 3], length: u32| {
            (least..=most).contains(&length) && (length - least).is_multiple_of(step.max(1))
        };
        fits(self.columns, columns) && fits(self.rows, rows)
    }
}

/// A setting of a device, such as its gain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VideoControl {
    /// Its name, as the driver shows it.
    pub name: String,
    /// Least, most and usual value.
    pub values: [i32; 3],
    id: u32,
}

/// An open video device that captures pictures through one plane. Its calls do not wait for frames.
///
/// Several programs can open a device; it is one program's from [`VideoStream::start`] on. Dropping it puts
/// back the input and the settings that were changed through it; formats, sizes and rates stay.
#[derive(Debug)]
pub struct VideoDevice {
    file: OwnedFd,
    card: String,
    driver: String,
    /// The input before it was changed.
    input_before: Option<i32>,
    /// Settings before they were changed, with the values that they have since.
    changed: Vec<(ControlValue, i32)>,
}

impl VideoDevice {
    /// Opens a device and reads what it is.
    ///
    /// # Errors
    /// If there is no such device, or it does not capture pictures.
    pub fn open(path: &Path) -> Result<Self, VideoError> {
        // A file of another kind is not opened for writing.
        if FileType::from_raw_mode(stat(path)?.st_mode) != FileType::CharacterDevice {
            return Err(VideoError::NotVideo);
        }
        let file = open(path, OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
        let mut found = Capability::ZERO;
        match update::<{ abi::QUERYCAP }, _>(file.as_fd(), &mut found) {
            Err(Errno::NOTTY | Errno::INVAL | Errno::OPNOTSUPP) => return Err(VideoError::NotVideo),
            result => result?,
        }
        let can = if found.all & abi::HAS_NODE == 0 { found.all } else { found.node };
        if can & abi::CAN_CAPTURE == 0 {
            let has_planes = can & abi::CAN_CAPTURE_PLANES != 0;
            return Err(if has_planes { VideoError::ManyPlanes } else { VideoError::NotCapture });
        }
        if can & abi::CAN_STREAM == 0 {
            return Err(VideoError::NotCapture);
        }
        let (card, driver) = (text(&found.card), text(&found.driver));
        Ok(VideoDevice { file, card, driver, input_before: None, changed: Vec::new() })
    }

    /// Name of the device.
    #[must_use]
    pub fn card(&self) -> &str {
        &self.card
    }

    /// Name of its driver.
    #[must_use]
    pub fn driver(&self) -> &str {
        &self.driver
    }

    /// Calls with 0, 1, 2, ... until there is no more.
    fn list<T>(&self, mut entry: impl FnMut(u32) -> Result<T, Errno>) -> Vec<T> {
        (0..LONGEST_LIST).map_while(|index| entry(index).ok()).collect()
    }

    /// The pixel formats that it offers, with their names, in the driver's order.
    #[must_use]
    pub fn formats(&self) -> Vec<(PixelCode, String)> {
        self.list(|index| {
            let mut found = FormatDescription { index, kind: abi::CAPTURE, ..FormatDescription::ZERO };
            update::<{ abi::ENUM_FMT }, _>(self.as_fd(), &mut found)?;
            Ok((PixelCode(found.code.to_le_bytes()), text(&found.text)))
        })
    }

    /// The sizes that it offers for a pixel format; none if the driver does not tell.
    #[must_use]
    pub fn sizes(&self, code: PixelCode) -> Vec<SizeRange> {
        self.list(|index| {
            let code = u32::from_le_bytes(code.0);
            let mut found = FrameSizes { index, code, ..FrameSizes::ZERO };
            update::<{ abi::ENUM_FRAMESIZES }, _>(self.as_fd(), &mut found)?;
            let [a, b, c, d, e, f] = found.sizes;
            Ok(match found.kind {
                1 => SizeRange { columns: [a, a, 1], rows: [b, b, 1] },
                _ => SizeRange { columns: [a, b, c], rows: [d, e, f] },
            })
        })
    }

    /// Frames per second that it offers for a format and size, as lowest and highest one; none if the driver
    /// does not tell.
    #[must_use]
    pub fn rates_hz(&self, code: PixelCode, (width, height): (u32, u32)) -> Vec<(f64, f64)> {
        self.list(|index| {
            let code = u32::from_le_bytes(code.0);
            let mut found = FrameIntervals { index, code, width, height, ..FrameIntervals::ZERO };
            update::<{ abi::ENUM_FRAMEINTERVALS }, _>(self.as_fd(), &mut found)?;
            let [least, most, _] = found.intervals.map(rate_hz);
            Ok(if found.kind == 1 { (least, least) } else { (most, least) })
        })
    }

    /// The layout that is set.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn layout(&self) -> Result<FrameLayout, VideoError> {
        let mut format = FormatState { kind: abi::CAPTURE, ..FormatState::ZERO };
        update::<{ abi::G_FMT }, _>(self.as_fd(), &mut format)?;
        Ok(layout(&format))
    }

    /// Returns the layout that the driver would take for this pixel format and size, as near as it can, and
    /// sets it if `is_set`.
    ///
    /// # Errors
    /// What the driver reports: [`VideoError::Busy`] while somebody has the device's buffers.
    pub fn negotiate(
        &self,
        code: PixelCode,
        (width, height): (u32, u32),
        is_set: bool,
    ) -> Result<FrameLayout, VideoError> {
        let code = u32::from_le_bytes(code.0);
        let (kind, field) = (abi::CAPTURE, abi::PROGRESSIVE);
        let mut format = FormatState { kind, width, height, code, field, ..FormatState::ZERO };
        if is_set {
            update::<{ abi::S_FMT }, _>(self.as_fd(), &mut format)?;
        } else {
            update::<{ abi::TRY_FMT }, _>(self.as_fd(), &mut format)?;
        }
        Ok(layout(&format))
    }

    /// Returns the frames per second that are set; `None` if the driver does not tell.
    #[must_use]
    pub fn frame_rate_hz(&self) -> Option<f64> {
        let mut found = StreamParameters { kind: abi::CAPTURE, ..StreamParameters::ZERO };
        update::<{ abi::G_PARM }, _>(self.as_fd(), &mut found).ok()?;
        Some(rate_hz([found.numerator, found.denominator])).filter(|hz| hz.is_finite() && *hz > 0.0)
    }

    /// Requests frames per second, as a fraction. Returns those obtained; `None` if the driver does not tell.
    #[must_use]
    pub fn set_frame_rate(&self, (rate, base): (u32, u32)) -> Option<f64> {
        let mut wanted = StreamParameters { kind: abi::CAPTURE, ..StreamParameters::ZERO };
        update::<{ abi::G_PARM }, _>(self.as_fd(), &mut wanted).ok()?;
        if wanted.capabilities & abi::CAN_SET_RATE != 0 {
            (wanted.numerator, wanted.denominator) = (base, rate);
            let _unchanged = update::<{ abi::S_PARM }, _>(self.as_fd(), &mut wanted);
        }
        self.frame_rate_hz()
    }

    /// Names of its inputs, in the driver's order.
    #[must_use]
    pub fn inputs(&self) -> Vec<String> {
        self.list(|index| {
            let mut found = InputDescription { index, ..InputDescription::ZERO };
            update::<{ abi::ENUMINPUT }, _>(self.as_fd(), &mut found)?;
            Ok(text(&found.name))
        })
    }

    /// Chooses an input by its number.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn set_input(&mut self, input: u32) -> Result<(), VideoError> {
        let mut now = -1;
        let is_known = update::<{ abi::G_INPUT }, _>(self.as_fd(), &mut now).is_ok();
        if is_known && now == input as i32 {
            return Ok(());
        }
        update::<{ abi::S_INPUT }, _>(self.as_fd(), &mut (input as i32))?;
        self.input_before = self.input_before.or(is_known.then_some(now));
        Ok(())
    }

    /// The settings that have a number as value, in the driver's order.
    #[must_use]
    pub fn controls(&self) -> Vec<VideoControl> {
        const NEXT: u32 = 1 << 31;
        // Those that cannot be set at all: switched off, or only to read.
        const CLOSED: u32 = 1 | 4;
        let mut last = 0;
        let found = self.list(|_| {
            let mut found = ControlDescription { id: last | NEXT, ..ControlDescription::ZERO };
            update::<{ abi::QUERYCTRL }, _>(self.as_fd(), &mut found)?;
            // A driver that repeats itself has no more.
            if found.id <= last {
                return Err(Errno::INVAL);
            }
            last = found.id;
            Ok(found)
        });
        // Whole numbers, switches, menus.
        let is_number = |kind| matches!(kind, 1..=3 | 9);
        let open = found.iter().filter(|found| is_number(found.kind) && found.flags & CLOSED == 0);
        open.map(|found| VideoControl {
            name: text(&found.name),
            values: [found.least, found.most, found.usual],
            id: found.id,
        })
        .collect()
    }

    /// Changes a setting.
    ///
    /// # Errors
    /// If the value is out of range, or the setting cannot be changed now.
    pub fn set_control(&mut self, control: &VideoControl, value: i32) -> Result<(), VideoError> {
        let before = self.control(control.id);
        let mut wanted = ControlValue { id: control.id, value };
        update::<{ abi::S_CTRL }, _>(self.as_fd(), &mut wanted)?;
        if let Some(before) = before {
            // The driver can have taken another value.
            self.changed.push((before, wanted.value));
        }
        Ok(())
    }

    /// What a setting is now.
    fn control(&self, id: u32) -> Option<ControlValue> {
        let mut now = ControlValue { id, value: 0 };
        update::<{ abi::G_CTRL }, _>(self.as_fd(), &mut now).ok().map(|()| now)
    }
}

impl Drop for VideoDevice {
    fn drop(&mut self) {
        // A device that has gone needs no restoring. What another program has changed since stays.
        while let Some((mut before, since)) = self.changed.pop() {
            if self.control(before.id).is_some_and(|now| now.value == since) {
                let _gone = update::<{ abi::S_CTRL }, _>(self.as_fd(), &mut before);
            }
        }
        if let Some(mut input) = self.input_before {
            let _gone = update::<{ abi::S_INPUT }, _>(self.as_fd(), &mut input);
        }
    }
}

impl AsFd for VideoDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn layout(format: &FormatState) -> FrameLayout {
    FrameLayout {
        size: (format.width, format.height),
        code: PixelCode(format.code.to_le_bytes()),
        line_bytes: format.line_bytes,
        size_bytes: format.size_bytes,
        is_interlaced: format.field > abi::PROGRESSIVE,
        colours: [format.colours, format.matrix, format.range],
    }
}

/// Frames per second of the time per frame.
fn rate_hz([numerator, denominator]: [u32; 2]) -> f64 {
    f64::from(denominator) / f64::from(numerator)
}
