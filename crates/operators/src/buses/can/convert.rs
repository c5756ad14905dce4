//! Frames as text.

use super::frame::CanFrame;
use super::interface::check_interface;
use super::log::{self, LogError};
use onbeat_runtime::{Context, Ending, Error, Input, Operator, Output, Pace, Step, operator};

/// Reason of losses.
const NOT_LOG: &str = "not a frame in candump's log format, such as `(1436509052.249713) can0 044#2A36`";

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
