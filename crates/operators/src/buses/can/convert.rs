//! Frames as text, and signals of frames as values.

use super::frame::{CanFrame, MOST_STANDARD};
use super::interface::check_interface;
use super::layout::{BitsMeaning, ByteOrder, SignalLayout};
use super::log::{self, LogError};
use onbeat_runtime::{Context, Ending, Error, Input, Operator, Output, Pace, Step, operator};

// Units and reasons of losses.
const FRAMES: &str = "frames";
const NOT_LOG: &str = "not a frame in candump's log format, such as `(1436509052.249713) can0 044#2A36`";
const SHORT: &str = "shorter than the signal's place in the frame";
const NOT_FINITE: &str = "not finite: a frame has no bits for them";

/// Writes frames as lines of candump's log format.
///
/// Such as `(1436509052.249713) can0 044#2A366C2BBA`: the time at which the kernel received the frame (a
/// frame that was not received has its source time), the interface, the identifier with 3 or 8 digits, the
/// data.
/// `#R` is a remote frame, `##` and a digit of flags a frame of CAN FD.
#[derive(Operator)]
#[operator(name = "can.text", prepare = Self::prepare)]
pub struct CanText {
    /// Frames.
    input: Input<CanFrame>,
    /// Lines.
    out: Output<String>,
    /// Name of the interface to write.
    #[parameter(default = "can0", example = "can0")]
    interface: String,
}

impl CanText {
    fn prepare(&mut self) -> Result<(), Error> {
        check_interface(&self.interface)
    }
}

#[operator]
impl Operator for CanText {
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(frame) = self.input.pop(cx) {
            let time_ns = if frame.time_unix_ns > 0 { frame.time_unix_ns } else { cx.stamp().time_ns };
            self.out.push(cx, log::line(&self.interface, time_ns, &frame))?;
        }
        Ok(Step::Wait)
    }
}

/// Reads frames from lines of candump's log format.
///
/// The source time of a frame is its time since the first one; a frame that is older than the one before it
/// has the source time of that one. With `pace = "real"`, each frame is sent when it is due: that replays a
/// log. Frames that are left when such a run is stopped are not sent, and noted.
///
/// Lines that are not frames are lost and counted; empty ones are skipped. Error frames of a log are left out
/// and noted. The length code behind `_` of frames with 8 bytes is not kept.
#[derive(Operator)]
#[operator(name = "can.parse", prepare = Self::prepare)]
pub struct CanParse {
    /// Lines.
    input: Input<String>,
    /// Frames.
    out: Output<CanFrame>,
    /// Reads only frames of this interface; without it, all.
    #[parameter(example = "can0")]
    interface: Option<String>,
    /// `real`: a frame is sent when it is due by its time. `fast`, and without it: as soon as its line is
    /// there.
    #[parameter]
    pace: Option<Pace>,
    /// Time of the first frame since 1970, and the source time of the last one.
    begin_ns: Option<u64>,
    last_ns: u64,
    /// A frame that waits for its time.
    waiting: Option<CanFrame>,
    errors: u64,
    late: u64,
    left: u64,
}

impl CanParse {
    fn prepare(&mut self) -> Result<(), Error> {
        self.interface.as_deref().map_or(Ok(()), check_interface)
    }

    /// Takes lines until there is a frame.
    fn take(&mut self, cx: &mut Context) {
        let Some(line) = self.input.pop(cx) else { return };
        match log::read(&line) {
            Ok(found) if self.interface.as_ref().is_none_or(|only| only == found.interface) => {
                let begin_ns = *self.begin_ns.get_or_insert(found.frame.time_unix_ns);
                let time_ns = found.frame.time_unix_ns.saturating_sub(begin_ns);
                self.late += u64::from(time_ns < self.last_ns || found.frame.time_unix_ns < begin_ns);
                self.last_ns = self.last_ns.max(time_ns);
                self.waiting = Some(found.frame);
            }
            Ok(_) => {}
            Err(LogError::ErrorFrame) => self.errors += 1,
            Err(LogError::NotLog) if line.trim().is_empty() => {}
            Err(LogError::NotLog) => cx.lose(1, "lines", NOT_LOG),
        }
    }
}

#[operator]
impl Operator for CanParse {
    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        (self.begin_ns, self.last_ns, self.waiting) = (None, 0, None);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.waiting.is_none() {
            self.take(cx);
        }
        let Some(frame) = self.waiting else { return Ok(Step::Wait) };
        if self.pace == Some(Pace::Real) && cx.pace(Pace::Real) == Pace::Real {
            if cx.is_stopping() {
                self.waiting = None;
                self.left += 1;
                return Ok(Step::Wait);
            }
            let due_ns = cx.start_ns().saturating_add(self.last_ns);
            if cx.now_ns() < due_ns {
                return Ok(cx.until(due_ns));
            }
            cx.set_time(self.last_ns, Some(due_ns));
        } else {
            cx.set_time(self.last_ns, None);
        }
        self.waiting = None;
        self.out.push(cx, frame)?;
        Ok(Step::Wait)
    }

    fn stop(&mut self, cx: &mut Context, _: Ending) -> Result<(), Error> {
        for (count, what) in [
            (std::mem::take(&mut self.errors), "error frames of the log were left out"),
            (std::mem::take(&mut self.late), "frames were older than the one before them"),
            (
                std::mem::take(&mut self.left),
                "frames were not sent, as the run was stopped before their time",
            ),
        ] {
            if count > 0 {
                cx.note(format!("{count} {what}"));
            }
        }
        Ok(())
    }
}

#[doc = include_str!("../../about/can_signal.md")]
#[derive(Operator)]
#[operator(
    name = "can.signal",
    summary = "decodes a signal of CAN frames to values",
    about = include_str!("../../about/can_signal.md"),
    prepare = Self::prepare,
)]
pub struct CanSignal {
    /// Frames of any identifiers.
    input: Input<CanFrame>,
    /// One value for each frame with the identifier.
    out: Output<f64>,
    /// Identifier of the frames that have the signal; `0x123` is hexadecimal.
    #[parameter(max = 536_870_911, example = 291)]
    id: u32,
    /// Whether the identifier has 29 bits. Without it: if it is above 0x7FF.
    #[parameter]
    extended: Option<bool>,
    /// First bit: the lowest one of a signal with the low byte first, otherwise the highest one.
    #[parameter(example = 0)]
    start_bit: u16,
    /// Number of bits, 1 to 64.
    #[parameter(example = 16)]
    length: u8,
    /// `little`: low byte first (`@1` in a DBC file). `big`: high byte first (`@0`).
    #[parameter(default)]
    byte_order: ByteOrder,
    /// Meaning of the bits: `unsigned`, `signed` (two's complement) or `float`.
    #[parameter(default)]
    number: BitsMeaning,
    /// Physical value of one step of the number.
    #[parameter(default = 1.0)]
    factor: f64,
    /// Physical value of the number 0.
    #[parameter(default = 0.0)]
    offset: f64,
    layout: SignalLayout,
}

impl CanSignal {
    fn prepare(&mut self) -> Result<(), Error> {
        let (order, meaning) = (self.byte_order, self.number);
        self.layout =
            SignalLayout::new(self.start_bit, self.length, order, meaning, self.factor, self.offset)?;
        is_extended(self.id, self.extended).map(drop)
    }
}

#[operator]
impl Operator for CanSignal {
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(frame) = self.input.pop(cx) else { return Ok(Step::Wait) };
        let is_extended = is_extended(self.id, self.extended)?;
        if (frame.id(), frame.is_extended(), frame.is_remote()) == (self.id, is_extended, false) {
            match self.layout.decode(frame.data()) {
                Some(value) => self.out.push(cx, value)?,
                None => cx.lose(1, FRAMES, SHORT),
            }
        }
        Ok(Step::Wait)
    }
}

#[doc = include_str!("../../about/can_signal.md")]
#[derive(Operator)]
#[operator(
    name = "can.frame",
    summary = "encodes values as a signal of CAN frames",
    about = include_str!("../../about/can_signal.md"),
    prepare = Self::prepare,
)]
pub struct CanFrameMaker {
    /// Values.
    input: Input<f64>,
    /// One frame for each value.
    out: Output<CanFrame>,
    /// Identifier of the frames; `0x123` is hexadecimal.
    #[parameter(max = 536_870_911, example = 291)]
    id: u32,
    /// Whether the identifier has 29 bits. Without it: if it is above 0x7FF.
    #[parameter]
    extended: Option<bool>,
    /// Data bytes of the frames: 0 to 8, or a length of CAN FD with `fd`. Without it: 8.
    #[parameter(default = 8)]
    bytes: u8,
    /// Whether the frames are of CAN FD.
    #[parameter(default = false)]
    fd: bool,
    /// First bit: the lowest one of a signal with the low byte first, otherwise the highest one.
    #[parameter(example = 0)]
    start_bit: u16,
    /// Number of bits, 1 to 64.
    #[parameter(example = 16)]
    length: u8,
    /// `little`: low byte first (`@1` in a DBC file). `big`: high byte first (`@0`).
    #[parameter(default)]
    byte_order: ByteOrder,
    /// Meaning of the bits: `unsigned`, `signed` (two's complement) or `float`.
    #[parameter(default)]
    number: BitsMeaning,
    /// Physical value of one step of the number.
    #[parameter(default = 1.0)]
    factor: f64,
    /// Physical value of the number 0.
    #[parameter(default = 0.0)]
    offset: f64,
    layout: SignalLayout,
    clipped: u64,
}

impl CanFrameMaker {
    fn prepare(&mut self) -> Result<(), Error> {
        let (order, meaning) = (self.byte_order, self.number);
        self.layout =
            SignalLayout::new(self.start_bit, self.length, order, meaning, self.factor, self.offset)?;
        if self.layout.bytes() > usize::from(self.bytes) {
            let needed = self.layout.bytes();
            return Err(Error::new(format!("`bytes` is {}: the signal needs {needed} or more", self.bytes)));
        }
        self.frame(&[0; 64][..usize::from(self.bytes.min(64))]).map(drop)
    }

    fn frame(&self, data: &[u8]) -> Result<CanFrame, Error> {
        let is_extended = is_extended(self.id, self.extended)?;
        let frame = if self.fd {
            CanFrame::fd(self.id, is_extended, 0, data)
        } else {
            CanFrame::classic(self.id, is_extended, data)
        };
        frame.filter(|_| data.len() == usize::from(self.bytes)).ok_or_else(|| {
            Error::new(format!(
                "`bytes` is {}: classical CAN has 0 to 8, CAN FD (`fd = true`) also 12, 16, 20, 24, 32, 48 and 64",
                self.bytes
            ))
        })
    }
}

#[operator]
impl Operator for CanFrameMaker {
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(value) = self.input.pop(cx) else { return Ok(Step::Wait) };
        if !value.is_finite() {
            cx.lose(1, "values", NOT_FINITE);
            return Ok(Step::Wait);
        }
        let mut data = [0; 64];
        let data = &mut data[..usize::from(self.bytes)];
        self.clipped += u64::from(self.layout.encode(value, data));
        let frame = self.frame(data)?;
        self.out.push(cx, frame)?;
        Ok(Step::Wait)
    }

    fn stop(&mut self, cx: &mut Context, _: Ending) -> Result<(), Error> {
        if self.clipped > 0 {
            cx.note(format!("{} values were beyond the range of the signal and were clipped", self.clipped));
        }
        self.clipped = 0;
        Ok(())
    }
}

/// Whether an identifier has 29 bits.
fn is_extended(id: u32, given: Option<bool>) -> Result<bool, Error> {
    match given {
        Some(false) if id > MOST_STANDARD => Err(Error::new(format!(
            "`id` is {id:#x}: identifiers of 11 bits end at 0x7ff; leave out `extended = false`"
        ))),
        given => Ok(given.unwrap_or(id > MOST_STANDARD)),
    }
}
