//! Frames to a CAN interface.

use super::errors::BusErrors;
use super::frame::CanFrame;
use super::interface::CanInterface;
use crate::streams::is_over;
use onbeat_os::can::{BUS_OFF, CanReception, FD_BYTES, is_queue_full};
use onbeat_runtime::{Context, Ending, Error, Input, Operator, Ports, Step};
use std::io::ErrorKind;

// Units and reasons of losses.
const FRAMES: &str = "frames";
const NOT_TAKEN: &str = "the bus did not take them within `patience`";
const NOT_SENT: &str = "not sent when the run ended";
/// Time from one attempt to the next while the queue of the interface is full: some frames at 1 Mbit/s.
const AGAIN_NS: u64 = 500_000;

/// Sends frames to a CAN interface.
///
/// While the queue of the interface is full, the operator tries again, and its input edge fills; nothing is
/// lost. After a stop of the run, the bus has to take frames within `patience`. Whether another node has
/// received a frame is not known: frames in the queue of the interface are sent after the run.
///
/// An interface that goes down, and a controller that leaves the bus, are errors of the operator. After a
/// restart it waits for the interface and sends the frame that it had.
pub struct CanSink {
    /// The frames.
    pub input: Input<CanFrame>,
    interface: CanInterface,
    /// A frame that was not sent yet.
    waiting: Option<CanFrame>,
    errors: BusErrors,
    has_given_up: bool,
}

impl CanSink {
    /// Sends to an interface.
    ///
    /// # Errors
    /// If the name of the interface is not one.
    pub fn new(interface: &str) -> Result<Self, Error> {
        super::interface::check_interface(interface)?;
        // Only frames that say that the controller has left the bus.
        let reception = CanReception { filters: Some(Vec::new()), errors: BUS_OFF, hardware_times: false };
        Ok(CanSink {
            input: Input::default(),
            interface: CanInterface::new(interface.to_string(), reception),
            waiting: None,
            errors: BusErrors::default(),
            has_given_up: false,
        })
    }

    /// Sets the time to wait for an interface that went down, and for the bus after a stop of the run.
    pub fn patience(mut self, time_ns: u64) -> Self {
        self.interface.absence.patience_ns = time_ns;
        self
    }

    /// Waits for room in the queue of the interface, which no event tells of.
    fn wait(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let mut bytes = [0; FD_BYTES];
        while let Some(socket) = &self.interface.socket
            && socket.receive(&mut bytes).is_ok()
        {
            self.errors.take(&self.interface.name, &bytes, cx).map_err(|why| self.interface.gone(why))?;
        }
        Ok(cx.look_again_in(AGAIN_NS))
    }

    /// Counts all frames as lost.
    fn discard(&mut self, cx: &mut Context) -> Step {
        self.has_given_up = true;
        cx.lose(u64::from(self.waiting.take().is_some()), FRAMES, NOT_TAKEN);
        while self.input.pop(cx).is_some() {
            cx.lose(1, FRAMES, NOT_TAKEN);
        }
        if self.input.is_ended(cx) { Step::Done } else { Step::Wait }
    }
}

impl Operator for CanSink {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }

    fn check(&self) -> Result<(), Error> {
        self.interface.look()
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.interface.start(cx)
    }

    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        self.interface.restart();
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.has_given_up {
            return Ok(self.discard(cx));
        }
        let is_over = is_over(cx, self.interface.absence.patience_ns);
        if let Some(step) = self.interface.open(cx)? {
            return Ok(if is_over { self.discard(cx) } else { step });
        }
        if self.waiting.is_none() {
            self.waiting = self.input.pop(cx);
        }
        let (Some(frame), Some(socket)) = (self.waiting, &self.interface.socket) else {
            return Ok(Step::Wait);
        };
        if frame.is_fd() && !socket.carries_fd() {
            self.waiting = None;
            cx.lose(1, FRAMES, "of CAN FD, which the interface does not carry");
            let name = &self.interface.name;
            return Err(self.interface.gone(format!(
                "it does not carry CAN FD: `ip link set {name} up type can bitrate 500000 dbitrate 2000000 fd on` (`mtu \
                 72` for a virtual one) lets it"
            )));
        }
        let mut bytes = [0; FD_BYTES];
        let length = frame.to_kernel(&mut bytes);
        match socket.send(&bytes[..length]) {
            Ok(()) => {
                self.waiting = None;
                Ok(if self.input.is_empty(cx) { Step::Wait } else { Step::Again })
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(Step::Again),
            Err(error) if error.kind() == ErrorKind::WouldBlock || is_queue_full(&error) => {
                if is_over {
                    Ok(self.discard(cx))
                } else {
                    self.wait(cx)
                }
            }
            Err(error) => Err(self.interface.broken(&error)),
        }
    }

    fn stop(&mut self, cx: &mut Context, _: Ending) -> Result<(), Error> {
        cx.lose(u64::from(self.waiting.take().is_some()), FRAMES, NOT_SENT);
        self.errors.sum_up(cx);
        self.interface.socket = None;
        Ok(())
    }
}
