//! Frames from a CAN interface.

use super::errors::BusErrors;
use super::frame::CanFrame;
use super::interface::CanInterface;
use onbeat_os::can::{ALL_ERRORS, CanReception, FD_BYTES, ReceivedFrame, is_removed};
use onbeat_os::clock;
use onbeat_runtime::{Context, Ending, Error, Operator, Output, Ports, Step};
use std::io::{self, ErrorKind};

// Units and reasons of losses.
const FRAMES: &str = "frames";
const KERNEL: &str = "the kernel dropped them because the socket's buffer was full: increase `receive_buffer`, or \
                      use a faster consumer";
const UNREAD: &str = "waited in the socket when the run was stopped";
const CLOSED: &str = "came after the failure and before the restart";

#[doc = include_str!("../../about/can.md")]
pub struct CanSource {
    /// The frames.
    pub out: Output<CanFrame>,
    interface: CanInterface,
    receive_buffer: Option<usize>,
    /// Counter of the kernel's drops at the last frame.
    dropped: u32,
    /// Number of frames, and of those without the controller's time.
    frames: u64,
    untimed: u64,
    errors: BusErrors,
    failure: Option<BusFailure>,
}

/// Why the interface cannot be used any more. The kernel tells of it before the frames that had come until
/// then.
struct BusFailure {
    error: Error,
    /// When it was seen, since 1970.
    unix_ns: u64,
}

impl CanSource {
    /// Receives frames that pass one of the filters, all if there is none. A filter is an identifier and a
    /// mask, with the kernel's flags.
    ///
    /// # Errors
    /// If the name of the interface is not one.
    pub fn new(interface: &str, filters: Vec<(u32, u32)>) -> Result<Self, Error> {
        super::interface::check_interface(interface)?;
        let filters = (!filters.is_empty()).then_some(filters);
        let reception = CanReception { filters, errors: ALL_ERRORS, hardware_times: false };
        Ok(CanSource {
            out: Output::default(),
            interface: CanInterface::new(interface.to_string(), reception),
            receive_buffer: None,
            dropped: 0,
            frames: 0,
            untimed: 0,
            errors: BusErrors::default(),
            failure: None,
        })
    }

    /// Sets the size of the socket's buffer to request, in bytes.
    pub fn receive_buffer(mut self, bytes: Option<usize>) -> Self {
        self.receive_buffer = bytes;
        self
    }

    /// Lets frames have the controller's time instead of the kernel's, if it has one.
    pub fn hardware_time(mut self, is_wanted: bool) -> Self {
        self.interface.reception.hardware_times = is_wanted;
        self
    }

    /// Sets the time to wait for an interface that went down, after a restart.
    pub fn patience(mut self, time_ns: u64) -> Self {
        self.interface.absence.patience_ns = time_ns;
        self
    }

    /// Sets up a socket that was just opened.
    fn prepare(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.dropped = 0;
        let (Some(asked), Some(socket)) = (self.receive_buffer, &self.interface.socket) else {
            return Ok(());
        };
        let obtained = socket.set_receive_buffer(asked).map_err(|error| self.interface.broken(&error))?;
        cx.obtained(crate::streams::obtained_buffer(asked, obtained))
    }

    /// Counts frames that the kernel has dropped.
    fn count_drops(&mut self, dropped: u32, cx: &mut Context) {
        let more = dropped.wrapping_sub(std::mem::replace(&mut self.dropped, dropped));
        cx.lose(u64::from(more), FRAMES, KERNEL);
    }

    /// Reads a frame with its time; `None` for error frames.
    fn read(&self, bytes: &[u8; FD_BYTES], received: &ReceivedFrame) -> Option<CanFrame> {
        let wanted = received.hardware_ns.filter(|_| self.interface.reception.hardware_times);
        let time_unix_ns = wanted.or(received.stamped_ns).unwrap_or(0);
        Some(CanFrame::from_kernel(bytes.get(..received.length)?)?.received_at(time_unix_ns))
    }

    /// Sends a frame on, or counts an error frame.
    fn pass(
        &mut self,
        bytes: &[u8; FD_BYTES],
        received: &ReceivedFrame,
        cx: &mut Context,
    ) -> Result<(), Error> {
        self.count_drops(received.dropped, cx);
        let Some(frame) = self.read(bytes, received) else {
            if let Err(why) = self.errors.take(&self.interface.name, bytes, cx) {
                self.fail(self.interface.gone(why));
            }
            return Ok(());
        };
        self.frames += 1;
        self.untimed += u64::from(received.hardware_ns.is_none());
        let came = received.stamped_ns.map(|unix_ns| cx.time_of_unix_ns(unix_ns));
        let came_ns = came.unwrap_or_else(|| cx.now_ns());
        cx.set_time(came_ns.saturating_sub(cx.start_ns()), Some(came_ns));
        self.out.push(cx, frame)
    }

    /// Keeps the first error until the frames before it are read.
    fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(BusFailure { error, unix_ns: clock::realtime_unix_ns() });
    }

    /// Counts frames that had come at a time, and closes the socket.
    fn count_unread(&mut self, until_unix_ns: u64, reason: &'static str, cx: &mut Context) {
        let Some(socket) = self.interface.socket.take() else { return };
        if let Ok(dropped) = socket.dropped() {
            self.count_drops(dropped, cx);
        }
        let mut bytes = [0; FD_BYTES];
        let is_before = |received: &ReceivedFrame| received.stamped_ns.is_some_and(|ns| ns <= until_unix_ns);
        loop {
            match socket.receive(&mut bytes) {
                Ok(received) if is_before(&received) => {
                    cx.lose(u64::from(self.read(&bytes, &received).is_some()), FRAMES, reason);
                }
                Err(error) if is_away(&error) => {}
                _ => break,
            }
        }
    }

    /// Notes the frames that do not have the time that was asked for.
    fn note_untimed(&mut self, cx: &mut Context) {
        if self.interface.reception.hardware_times && self.untimed > 0 {
            cx.note(format!(
                "{}: {} of {} frames had no time of the controller (its driver gives none) and have the kernel's",
                self.interface.name, self.untimed, self.frames
            ));
        }
        (self.frames, self.untimed) = (0, 0);
    }
}

/// Whether the interface is away: frames may still wait in the socket.
fn is_away(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NetworkDown || is_removed(error)
}

impl Operator for CanSource {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn check(&self) -> Result<(), Error> {
        self.interface.look()
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.interface.start(cx)?;
        self.prepare(cx)
    }

    fn restart(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.count_unread(clock::realtime_unix_ns(), CLOSED, cx);
        self.interface.restart();
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let was_open = self.interface.socket.is_some();
        if let Some(step) = self.interface.open(cx)? {
            return Ok(step);
        }
        if !was_open {
            self.prepare(cx)?;
        }
        let Some(socket) = &self.interface.socket else { return Ok(Step::Done) };
        let mut bytes = [0; FD_BYTES];
        match socket.receive(&mut bytes) {
            Ok(received) => {
                self.pass(&bytes, &received, cx)?;
                let is_late =
                    |failure: &mut BusFailure| received.stamped_ns.is_none_or(|ns| ns > failure.unix_ns);
                if let Some(failure) = self.failure.take_if(is_late) {
                    return Err(failure.error);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => match self.failure.take() {
                Some(failure) => return Err(failure.error),
                None => return cx.readable(socket),
            },
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if is_away(&error) => self.fail(self.interface.broken(&error)),
            Err(error) => return Err(self.interface.broken(&error)),
        }
        Ok(Step::Again)
    }

    fn stop(&mut self, cx: &mut Context, _: Ending) -> Result<(), Error> {
        let stop_ns = clock::realtime_unix_ns().saturating_sub(cx.stopped_for_ns().unwrap_or(0));
        self.count_unread(stop_ns, UNREAD, cx);
        self.errors.sum_up(cx);
        self.note_untimed(cx);
        Ok(())
    }
}
