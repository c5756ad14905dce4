//! Why a radio cannot be used.

use super::library::{said, text_here};
use soapysdr_sys as soapy;
use std::ffi::c_int;
use std::fmt;

/// Why a radio cannot be used, or what a stream reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RadioError {
    /// SoapySDR's code; 0 for an error without one.
    code: i32,
    during: &'static str,
    /// Text of the module; often empty.
    text: String,
    /// Errors and warnings that the library and the module wrote before, one a line.
    said: String,
}

impl RadioError {
    pub(super) fn new(code: i32, during: &'static str, text: &str) -> Self {
        RadioError { code, during, text: text.to_string(), said: String::new() }
    }

    /// An error of a stream. Does not allocate: streams report some of them all the time.
    pub(super) fn of_stream(code: c_int, during: &'static str) -> Self {
        RadioError { code, during, text: String::new(), said: String::new() }
    }

    /// Adds the text of the last call.
    pub(super) fn with_text(mut self) -> Self {
        // SAFETY: the library keeps a text for each thread.
        self.text = text_here(unsafe { soapy::SoapySDRDevice_lastError() });
        self
    }

    /// Adds what was written meanwhile.
    pub(super) fn with_said(mut self) -> Self {
        self.said = said();
        self
    }

    /// Whether there was nothing to read, or no room to write.
    pub fn is_later(&self) -> bool {
        self.code == soapy::SOAPY_SDR_TIMEOUT
    }

    /// Whether samples were lost because a buffer was full.
    pub fn is_overflow(&self) -> bool {
        self.code == soapy::SOAPY_SDR_OVERFLOW
    }

    /// Whether the transmitter had no samples.
    pub fn is_underflow(&self) -> bool {
        self.code == soapy::SOAPY_SDR_UNDERFLOW
    }

    /// Whether samples came after their time.
    pub fn is_late(&self) -> bool {
        self.code == soapy::SOAPY_SDR_TIME_ERROR
    }

    /// Whether samples were damaged on the way from the device.
    pub fn is_damage(&self) -> bool {
        self.code == soapy::SOAPY_SDR_CORRUPTION
    }

    /// Whether the module cannot do this.
    pub fn is_unsupported(&self) -> bool {
        self.code == soapy::SOAPY_SDR_NOT_SUPPORTED
    }

    /// The module's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Errors and warnings that were written before, one a line.
    pub fn said(&self) -> &str {
        &self.said
    }
}

impl fmt::Display for RadioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: the texts of codes are constants of the library.
        let name = text_here(unsafe { soapy::SoapySDR_errToStr(self.code) });
        match (self.text.is_empty(), self.code) {
            (true, _) => write!(f, "{name} ({})", self.during),
            (false, 0) => write!(f, "{} ({})", self.text, self.during),
            (false, _) => write!(f, "{}: {name} ({})", self.text, self.during),
        }
    }
}

/// The error of the last call on this thread, if it failed.
pub(super) fn failed(during: &'static str) -> Result<(), RadioError> {
    // SAFETY: the library keeps a status for each thread.
    if unsafe { soapy::SoapySDRDevice_lastStatus() } == 0 {
        return Ok(());
    }
    Err(RadioError::new(0, during, "").with_text())
}
