//! Radios through SoapySDR's library: receivers and transmitters of many makers, by modules.
//!
//! A [`RadioDevice`] is one channel of a device with its settings, a [`RadioStream`] passes its samples.
//! Reading and writing do not wait where the module keeps to a timeout of zero. No descriptor tells when
//! there is something to do.
//!
//! This calls the C interface itself: the crate `soapysdr` hides whether samples have a time stamp, and has
//! no frequency correction (ADR 40).

mod error;
mod library;
mod stream;

pub use error::RadioError;
pub use library::{drivers, found};
pub use stream::{RadioRead, RadioStream};

use error::failed;
use library::{text_of, texts_of};
use soapysdr_sys as soapy;
use std::ffi::{CString, c_int};
use std::fmt;
use std::ptr::NonNull;

/// Way of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RadioWay {
    /// From an antenna.
    Receive,
    /// To an antenna.
    Transmit,
}

impl RadioWay {
    fn code(self) -> c_int {
        match self {
            RadioWay::Receive => soapy::SOAPY_SDR_RX as c_int,
            RadioWay::Transmit => soapy::SOAPY_SDR_TX as c_int,
        }
    }
}

/// Values that a setting can have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RadioRange {
    /// The least one.
    pub low: f64,
    /// The largest one; a single value if it is the same as `low`.
    pub high: f64,
}

impl From<soapy::SoapySDRRange> for RadioRange {
    fn from(range: soapy::SoapySDRRange) -> Self {
        RadioRange { low: range.minimum, high: range.maximum }
    }
}

/// A setting that is a number.
#[derive(Debug, Clone, PartialEq)]
pub enum RadioNumber {
    /// Samples per second.
    Rate,
    /// Centre frequency in hertz.
    Frequency,
    /// Width of the analogue filter in hertz.
    Bandwidth,
    /// Gain of all elements together, in decibels.
    Gain,
    /// Gain of one element, in decibels.
    Element(String),
    /// Correction of the crystal in parts per million.
    Correction,
}

impl fmt::Display for RadioNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RadioNumber::Rate => f.write_str("sample rate"),
            RadioNumber::Frequency => f.write_str("frequency"),
            RadioNumber::Bandwidth => f.write_str("bandwidth"),
            RadioNumber::Gain => f.write_str("gain"),
            RadioNumber::Element(name) => write!(f, "gain of {name}"),
            RadioNumber::Correction => f.write_str("frequency correction"),
        }
    }
}

/// An open device, and the channel that is used of it.
pub struct RadioDevice {
    handle: NonNull<soapy::SoapySDRDevice>,
    way: RadioWay,
    channel: usize,
}

// SAFETY: the library requires of modules that their devices can be used by any thread.
unsafe impl Send for RadioDevice {}

/// Calls a function of the library on a device, and checks its status.
macro_rules! asked {
    ($device:expr, $function:ident $(, $argument:expr)*) => {{
        // SAFETY: the device is open as long as its handle is here, and the arguments outlive the call.
        let value = unsafe { soapy::$function($device.handle.as_ptr() $(, $argument)*) };
        failed(stringify!($function)).map(|()| value)
    }};
}

/// Calls a function on a channel of a device.
macro_rules! channel {
    ($device:expr, $function:ident $(, $argument:expr)*) => {
        asked!($device, $function, $device.way.code(), $device.channel $(, $argument)*)
    };
}

impl RadioDevice {
    /// Opens a device by SoapySDR's arguments for it, such as `driver=rtlsdr,serial=1`. Two that are open
    /// with the same arguments are the same device.
    ///
    /// # Errors
    /// What the library and the module report.
    pub fn open(arguments: &str, way: RadioWay, channel: usize) -> Result<Self, RadioError> {
        library::listen();
        let arguments = c_text("SoapySDRDevice_make", arguments)?;
        // SAFETY: the text ends with a zero byte and outlives the call.
        let handle = unsafe { soapy::SoapySDRDevice_makeStrArgs(arguments.as_ptr()) };
        failed("SoapySDRDevice_make").map_err(RadioError::with_said)?;
        let none = || RadioError::new(0, "SoapySDRDevice_make", "it made no device");
        Ok(RadioDevice { handle: NonNull::new(handle).ok_or_else(none)?, way, channel })
    }

    /// Number of channels.
    ///
    /// # Errors
    /// What the library and the module report; as for all that follow.
    pub fn channels(&self) -> Result<usize, RadioError> {
        asked!(self, SoapySDRDevice_getNumChannels, self.way.code())
    }

    /// Name of the hardware, by the module.
    pub fn hardware(&self) -> Result<String, RadioError> {
        Ok(text_of(asked!(self, SoapySDRDevice_getHardwareKey)?))
    }

    /// Formats of samples, with SoapySDR's names.
    pub fn formats(&self) -> Result<Vec<String>, RadioError> {
        let mut count = 0;
        let list = channel!(self, SoapySDRDevice_getStreamFormats, &raw mut count)?;
        Ok(texts_of(list, count))
    }

    /// Format in which the device itself has samples, and the largest value there.
    pub fn native_format(&self) -> Result<(String, f64), RadioError> {
        let mut full_scale = 0.0;
        let name = channel!(self, SoapySDRDevice_getNativeStreamFormat, &raw mut full_scale)?;
        Ok((text_of(name), full_scale))
    }

    /// Names of the antennas.
    pub fn antennas(&self) -> Result<Vec<String>, RadioError> {
        let mut count = 0;
        let list = channel!(self, SoapySDRDevice_listAntennas, &raw mut count)?;
        Ok(texts_of(list, count))
    }

    /// Selects an antenna.
    pub fn set_antenna(&self, name: &str) -> Result<(), RadioError> {
        let name = c_text("SoapySDRDevice_setAntenna", name)?;
        channel!(self, SoapySDRDevice_setAntenna, name.as_ptr()).map(drop)
    }

    /// The antenna in use.
    pub fn antenna(&self) -> Result<String, RadioError> {
        Ok(text_of(channel!(self, SoapySDRDevice_getAntenna)?))
    }

    /// Names of the elements that amplify, in their order from the antenna.
    pub fn gain_elements(&self) -> Result<Vec<String>, RadioError> {
        let mut count = 0;
        let list = channel!(self, SoapySDRDevice_listGains, &raw mut count)?;
        Ok(texts_of(list, count))
    }

    /// Whether it can choose its gain on its own.
    pub fn has_automatic_gain(&self) -> Result<bool, RadioError> {
        channel!(self, SoapySDRDevice_hasGainMode)
    }

    /// Lets it choose its gain, or not.
    pub fn set_automatic_gain(&self, is_on: bool) -> Result<(), RadioError> {
        channel!(self, SoapySDRDevice_setGainMode, is_on).map(drop)
    }

    /// Whether it chooses its gain.
    pub fn is_gain_automatic(&self) -> Result<bool, RadioError> {
        channel!(self, SoapySDRDevice_getGainMode)
    }

    /// Whether its frequency can be corrected.
    pub fn has_correction(&self) -> Result<bool, RadioError> {
        channel!(self, SoapySDRDevice_hasFrequencyCorrection)
    }

    /// Sets a number.
    pub fn set(&self, what: &RadioNumber, value: f64) -> Result<(), RadioError> {
        match what {
            RadioNumber::Rate => channel!(self, SoapySDRDevice_setSampleRate, value),
            RadioNumber::Frequency => channel!(self, SoapySDRDevice_setFrequency, value, std::ptr::null()),
            RadioNumber::Bandwidth => channel!(self, SoapySDRDevice_setBandwidth, value),
            RadioNumber::Gain => channel!(self, SoapySDRDevice_setGain, value),
            RadioNumber::Element(name) => {
                let name = c_text("SoapySDRDevice_setGainElement", name)?;
                channel!(self, SoapySDRDevice_setGainElement, name.as_ptr(), value)
            }
            RadioNumber::Correction => channel!(self, SoapySDRDevice_setFrequencyCorrection, value),
        }
        .map(drop)
    }

    /// Reads a number back.
    pub fn get(&self, what: &RadioNumber) -> Result<f64, RadioError> {
        match what {
            RadioNumber::Rate => channel!(self, SoapySDRDevice_getSampleRate),
            RadioNumber::Frequency => channel!(self, SoapySDRDevice_getFrequency),
            RadioNumber::Bandwidth => channel!(self, SoapySDRDevice_getBandwidth),
            RadioNumber::Gain => channel!(self, SoapySDRDevice_getGain),
            RadioNumber::Element(name) => {
                let name = c_text("SoapySDRDevice_getGainElement", name)?;
                channel!(self, SoapySDRDevice_getGainElement, name.as_ptr())
            }
            RadioNumber::Correction => channel!(self, SoapySDRDevice_getFrequencyCorrection),
        }
    }

    /// Values that a number can have; none if the module does not tell.
    pub fn ranges(&self, what: &RadioNumber) -> Result<Vec<RadioRange>, RadioError> {
        let mut count = 0;
        let list = match what {
            RadioNumber::Rate => channel!(self, SoapySDRDevice_getSampleRateRange, &raw mut count)?,
            RadioNumber::Frequency => channel!(self, SoapySDRDevice_getFrequencyRange, &raw mut count)?,
            RadioNumber::Bandwidth => channel!(self, SoapySDRDevice_getBandwidthRange, &raw mut count)?,
            RadioNumber::Gain => return Ok(vec![channel!(self, SoapySDRDevice_getGainRange)?.into()]),
            RadioNumber::Element(name) => {
                let name = c_text("SoapySDRDevice_getGainElementRange", name)?;
                let range = channel!(self, SoapySDRDevice_getGainElementRange, name.as_ptr())?;
                return Ok(vec![range.into()]);
            }
            RadioNumber::Correction => return Ok(Vec::new()),
        };
        Ok(library::ranges_of(list, count))
    }

    /// Keys of the settings that only this device has, and of those that only this channel has.
    pub fn setting_keys(&self) -> Result<(Vec<String>, Vec<String>), RadioError> {
        let (mut count, mut own_count) = (0, 0);
        let list = asked!(self, SoapySDRDevice_getSettingInfo, &raw mut count)?;
        let keys = library::keys_of(list, count);
        let own = channel!(self, SoapySDRDevice_getChannelSettingInfo, &raw mut own_count)?;
        Ok((keys, library::keys_of(own, own_count)))
    }

    /// Writes a setting of the device, or of the channel.
    pub fn write_setting(&self, key: &str, value: &str, of_channel: bool) -> Result<(), RadioError> {
        let key = c_text("SoapySDRDevice_writeSetting", key)?;
        let value = c_text("SoapySDRDevice_writeSetting", value)?;
        if of_channel {
            return channel!(self, SoapySDRDevice_writeChannelSetting, key.as_ptr(), value.as_ptr())
                .map(drop);
        }
        asked!(self, SoapySDRDevice_writeSetting, key.as_ptr(), value.as_ptr()).map(drop)
    }
}

impl Drop for RadioDevice {
    fn drop(&mut self) {
        // SAFETY: the handle is that of an open device, and is used nowhere after this.
        let _closed = unsafe { soapy::SoapySDRDevice_unmake(self.handle.as_ptr()) };
    }
}

/// A text as the library takes it.
fn c_text(during: &'static str, text: &str) -> Result<CString, RadioError> {
    CString::new(text).map_err(|_| RadioError::new(0, during, "a text has a zero byte"))
}
