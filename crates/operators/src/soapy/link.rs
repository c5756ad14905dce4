//! A device from its opening to its end, also over times without it.
//!
//! Modules start threads when a stream begins, and opening takes up to seconds. So a thread beside the
//! workers opens and starts the device: a worker goes on meanwhile, and the module's threads do not inherit
//! its core and its priority.

use super::setup::RadioSetup;
use super::{OpenRadio, RadioStream, change, look, open};
use crate::buses::away::{Attempt, DeviceAbsence};
use onbeat_runtime::{Context, Error, Step};
use std::fmt::Display;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// Time from one look whether the device is open to the next, in nanoseconds.
const LOOK_NS: u64 = 20_000_000;

/// A device and its state.
pub(super) struct RadioLink {
    pub setup: RadioSetup,
    stream: Option<RadioStream>,
    absence: DeviceAbsence,
    /// Where the thread that opens the device sends it.
    opening: Option<Receiver<Result<OpenRadio, Error>>>,
    /// The error of the last attempt.
    why: Option<String>,
}

/// What `RadioLink::open` has found.
pub(super) enum RadioOpening {
    /// It is open, and was before.
    Open,
    /// It was away, and is open now, with this rate in hertz.
    Back(f64),
    /// It is away; the step ends with this.
    Away(Step),
}

impl RadioLink {
    pub fn new(setup: RadioSetup, patience_ns: u64) -> Self {
        let absence = DeviceAbsence::with_patience(patience_ns);
        RadioLink { setup, stream: None, absence, opening: None, why: None }
    }

    /// Time to wait for the device, in nanoseconds.
    pub fn patience_ns(&self) -> u64 {
        self.absence.patience_ns
    }

    /// Looks whether a device could be opened, without opening it.
    pub fn look(&self) -> Result<(), Error> {
        look(&self.setup)
    }

    /// Opens the device before the first step, and returns its rate in hertz. It has to be there.
    pub fn start(&mut self, cx: &mut Context) -> Result<f64, Error> {
        let opened = self.begin(true, cx)?.recv().unwrap_or_else(|_| Err(self.broken_module()))?;
        let rate_hz = opened.rate_hz;
        for setting in opened.obtained {
            cx.obtained(setting)?;
        }
        opened.odd.into_iter().try_for_each(|text| cx.note_odd(text))?;
        opened.notes.into_iter().for_each(|text| cx.note(text));
        self.stream = Some(opened.stream);
        Ok(rate_hz)
    }

    /// Gives the device up after a failed step. The next steps open it again.
    pub fn restart(&mut self) {
        self.absence.begin();
    }

    /// Makes an attempt to open the device, unless it is open.
    pub fn open(&mut self, cx: &mut Context) -> Result<RadioOpening, Error> {
        if !self.absence.is_away() {
            return Ok(RadioOpening::Open);
        }
        let found = match &self.opening {
            Some(opening) => opening.try_recv(),
            None => {
                self.opening = Some(self.begin(false, cx)?);
                Err(TryRecvError::Empty)
            }
        };
        let name = &self.setup.device;
        let found = match found {
            Ok(opened) => {
                self.opening = None;
                opened
            }
            Err(TryRecvError::Disconnected) => {
                self.opening = None;
                Err(self.broken_module())
            }
            Err(TryRecvError::Empty) if !self.absence.is_over() => {
                return Ok(RadioOpening::Away(cx.look_again_in(LOOK_NS)));
            }
            // The next attempt is not over: the last error says more.
            Err(TryRecvError::Empty) => Err(Error::new(self.why.take().unwrap_or_else(|| {
                format!("cannot open {name}: its driver has not answered within `patience`")
            }))),
        };
        self.why = found.as_ref().err().map(ToString::to_string);
        match self.absence.attempt(name, || found, cx)? {
            Attempt::Present => Ok(RadioOpening::Open),
            Attempt::Back(opened) => {
                self.stream = Some(opened.stream);
                Ok(RadioOpening::Back(opened.rate_hz))
            }
            Attempt::Wait(step) => Ok(RadioOpening::Away(step)),
        }
    }

    /// Closes the device at the end of the run.
    pub fn stop(&mut self) {
        (self.stream, self.opening) = (None, None);
        self.absence.end();
    }

    /// The open device.
    pub fn stream(&mut self) -> Result<&mut RadioStream, Error> {
        self.stream.as_mut().ok_or_else(|| Error::new("the device is not open"))
    }

    /// Makes one setting that has changed, in an open device, and returns what it has made of it.
    pub fn change(&mut self, setup: RadioSetup, name: &str) -> Result<Option<String>, Error> {
        let said = match &self.stream {
            Some(stream) if !self.absence.is_away() => change(stream, &setup, name)?,
            _ => None,
        };
        self.setup = setup;
        Ok(said)
    }

    /// The error of a device that went away.
    pub fn gone(&self, why: impl Display) -> Error {
        Error::new(format!(
            "{} has gone ({why}): is it unplugged, or has its server ended? With `on_error = \"restart\"` the operator \
             waits for it",
            self.setup.device
        ))
    }

    /// Starts the thread that opens the device, and closes it before if it was open. An error of the first
    /// opening lists the devices that are there.
    fn begin(&mut self, is_first: bool, cx: &Context) -> Result<Receiver<Result<OpenRadio, Error>>, Error> {
        let (done, opened) = channel();
        let (setup, old) = (self.setup.clone(), self.stream.take());
        let body = move || {
            drop(old);
            // If nobody waits any more, the device is closed.
            let _gone = done.send(open(&setup, is_first));
        };
        match cx.spawn_beside("onbeat-radio", body) {
            Ok(_thread) => Ok(opened),
            Err(error) => Err(Error::with_source("cannot start a thread that opens the radio", error)),
        }
    }

    fn broken_module(&self) -> Error {
        Error::new(format!("cannot open {}: its SoapySDR module has ended the thread", self.setup.device))
    }
}
