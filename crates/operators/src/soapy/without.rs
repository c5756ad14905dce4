//! A device in a build without radios: none can be opened, and the error says what is missing.

use super::OpenRadio;
use super::setup::RadioSetup;
use onbeat_runtime::Error;
use std::fmt;

/// Stands for a stream of a build with the Cargo feature `soapy`. There is none.
pub(super) enum NoRadioStream {}

/// Stands for what a read gives.
pub(super) struct NoRadioRead {
    pub count: usize,
    pub time_ns: Option<i64>,
    pub is_cut: bool,
}

/// Stands for an error of a stream.
pub(super) enum NoRadioError {}

impl Drop for NoRadioStream {
    fn drop(&mut self) {}
}

impl NoRadioStream {
    pub fn block(&self) -> usize {
        match *self {}
    }

    pub fn read(&mut self, _: &mut [[f32; 2]]) -> Result<NoRadioRead, NoRadioError> {
        match *self {}
    }

    pub fn write(&mut self, _: &[[f32; 2]], _: bool) -> Result<usize, NoRadioError> {
        match *self {}
    }

    pub fn status(&mut self) -> Result<bool, NoRadioError> {
        match *self {}
    }
}

impl NoRadioError {
    pub fn is_later(&self) -> bool {
        match *self {}
    }

    pub fn is_overflow(&self) -> bool {
        match *self {}
    }

    pub fn is_underflow(&self) -> bool {
        match *self {}
    }

    pub fn is_late(&self) -> bool {
        match *self {}
    }

    pub fn is_damage(&self) -> bool {
        match *self {}
    }

    pub fn is_unsupported(&self) -> bool {
        match *self {}
    }
}

impl fmt::Display for NoRadioError {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

/// Refuses to open a device.
pub(super) fn open(setup: &RadioSetup, _: bool) -> Result<OpenRadio, Error> {
    Err(no_radio(setup))
}

/// Refuses a device before the run.
pub(super) fn look(setup: &RadioSetup) -> Result<(), Error> {
    Err(no_radio(setup))
}

/// Changes nothing: nothing is open.
pub(super) fn change(stream: &NoRadioStream, _: &RadioSetup, _: &str) -> Result<Option<String>, Error> {
    match *stream {}
}

fn no_radio(setup: &RadioSetup) -> Error {
    Error::new(format!(
        "cannot open {}: this onbeat was built without radios: build it with `cargo install --locked --path crates/cli \
         --features soapy` (needs libsoapysdr-dev and pkg-config)",
        setup.device
    ))
}
