//! In which frames a signal is, and where in them.

use super::dbc;
use super::frame::{CanFrame, MOST_STANDARD};
use super::layout::{BitsMeaning, ByteOrder, SignalLayout};
use onbeat_runtime::Error;
use std::path::Path;

/// In which frames a signal is, and where in them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct SignalPlace {
    pub id: u32,
    pub extended: bool,
    pub layout: SignalLayout,
    /// Data bytes of the frames, if they are known.
    pub bytes: Option<u8>,
    /// For multiplexed signals: the multiplexor, and its number in the frames that have the signal.
    pub only: Option<(SignalLayout, f64)>,
}

impl SignalPlace {
    /// Whether a frame has the signal, or would have it if it were not too short.
    pub fn is_in(&self, frame: &CanFrame) -> bool {
        let is_message =
            (frame.id(), frame.is_extended(), frame.is_remote()) == (self.id, self.extended, false);
        let has = |(multiplexor, number): (SignalLayout, f64)| {
            multiplexor.decode(frame.data()).is_none_or(|found| found == number)
        };
        is_message && self.only.is_none_or(has)
    }

    /// Returns the value in the data of such a frame; `None` if they are too short.
    pub fn decode(&self, data: &[u8]) -> Option<f64> {
        let is_whole = self.only.is_none_or(|(multiplexor, _)| multiplexor.decode(data).is_some());
        self.layout.decode(data).filter(|_| is_whole)
    }

    /// Least number of data bytes of a frame.
    pub fn least_bytes(&self) -> usize {
        self.layout.bytes().max(self.only.map_or(0, |(multiplexor, _)| multiplexor.bytes()))
    }

    /// Writes a value, and the multiplexor's number. Returns whether the value was clipped.
    pub fn encode(&self, value: f64, data: &mut [u8]) -> bool {
        if let Some((multiplexor, number)) = self.only {
            multiplexor.encode(number, data);
        }
        self.layout.encode(value, data)
    }
}

/// What the parameters say of a signal.
pub(super) struct PlaceParameters<'a> {
    /// A DBC file, and the name of the signal in it.
    pub file: Option<(&'a Path, &'a str)>,
    /// Whether only one of them is given.
    pub is_half: bool,
    pub id: Option<u32>,
    pub extended: Option<bool>,
    pub start_bit: Option<u16>,
    pub length: Option<u8>,
    pub form: (ByteOrder, BitsMeaning),
    pub scale: (f64, f64),
}

impl PlaceParameters<'_> {
    /// Checks them. Returns the place, if they say it without a file.
    ///
    /// # Errors
    /// If there are too many or too few, or they are not of a signal.
    pub fn check(&self) -> Result<Option<SignalPlace>, Error> {
        if self.is_half {
            return Err(Error::new(
                "needs `dbc`, a file, and `signal`, such as `\"Engine.Speed\"`; one is missing",
            ));
        }
        let is_plain = self.form == <(ByteOrder, BitsMeaning)>::default() && self.scale == (1.0, 0.0);
        match (self.file, self.id, self.start_bit, self.length) {
            (Some(_), None, None, None) if self.extended.is_none() && is_plain => Ok(None),
            (Some(_), ..) => Err(Error::new(
                "has `dbc`, which says where the signal is, and also one of `id`, `extended`, `start_bit`, \
                 `length`, `byte_order`, `number`, `factor` and `offset`: leave out `dbc` or these",
            )),
            (None, Some(id), Some(start_bit), Some(length)) => {
                let ((order, meaning), (factor, offset)) = (self.form, self.scale);
                let layout = SignalLayout::new(start_bit, length, order, meaning, factor, offset)?;
                let extended = is_extended(id, self.extended)?;
                Ok(Some(SignalPlace { id, extended, layout, bytes: None, only: None }))
            }
            (None, ..) => Err(Error::new(
                "needs `id`, `start_bit` and `length`, or `dbc` and `signal`: without them it is not known where \
                 the signal is",
            )),
        }
    }

    /// Reads the place from the file, if there is one.
    ///
    /// # Errors
    /// If the file cannot be read, or has no such signal.
    pub fn of_file(&self) -> Result<Option<SignalPlace>, Error> {
        self.file.map(|(path, signal)| dbc::read(path, signal)).transpose()
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
