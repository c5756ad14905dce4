//! Samples of a radio, on their way.

use super::error::failed;
use super::{RadioDevice, RadioError, c_text};
use soapysdr_sys as soapy;
use std::ffi::c_int;
use std::ptr::NonNull;

const HAS_TIME: c_int = soapy::SOAPY_SDR_HAS_TIME as c_int;
const END_BURST: c_int = soapy::SOAPY_SDR_END_BURST as c_int;
const END_ABRUPT: c_int = soapy::SOAPY_SDR_END_ABRUPT as c_int;

/// What a read gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RadioRead {
    /// Samples.
    pub count: usize,
    /// Time of the first one by the device's clock, in nanoseconds; `None` if it has none.
    pub time_ns: Option<i64>,
    /// Whether samples were lost after these.
    pub is_cut: bool,
}

/// A stream of complex samples (`CF32`), which runs. The device is closed with it.
pub struct RadioStream {
    device: RadioDevice,
    handle: NonNull<soapy::SoapySDRStream>,
    is_active: bool,
}

// SAFETY: a stream may be used by any thread, by one at a time.
unsafe impl Send for RadioStream {}

impl RadioStream {
    /// Starts to pass samples, with SoapySDR's arguments for a stream, such as `bufflen=65536`. Modules may
    /// start threads here.
    ///
    /// # Errors
    /// What the library and the module report.
    pub fn start(device: RadioDevice, arguments: &str) -> Result<Self, RadioError> {
        let arguments = c_text("SoapySDRDevice_setupStream", arguments)?;
        // SAFETY: the text ends with a zero byte and outlives the call.
        let mut pairs = unsafe { soapy::SoapySDRKwargs_fromString(arguments.as_ptr()) };
        // SAFETY: the device is open; format, channel and arguments outlive the call.
        let handle = unsafe {
            soapy::SoapySDRDevice_setupStream(
                device.handle.as_ptr(),
                device.way.code(),
                soapy::SOAPY_SDR_CF32.as_ptr().cast(),
                &raw const device.channel,
                1,
                &raw const pairs,
            )
        };
        let status = failed("SoapySDRDevice_setupStream");
        // SAFETY: the library gave the pairs away, and they are used nowhere after this.
        unsafe { soapy::SoapySDRKwargs_clear(&raw mut pairs) };
        status.map_err(RadioError::with_said)?;
        let none = || RadioError::new(0, "SoapySDRDevice_setupStream", "it made no stream");
        let mut stream =
            RadioStream { device, handle: NonNull::new(handle).ok_or_else(none)?, is_active: false };
        stream.activate()?;
        Ok(stream)
    }

    fn activate(&mut self) -> Result<(), RadioError> {
        let (device, stream) = (self.device.handle.as_ptr(), self.handle.as_ptr());
        // SAFETY: the device and the stream are open.
        let code = unsafe { soapy::SoapySDRDevice_activateStream(device, stream, 0, 0, 0) };
        if code != 0 {
            let error = RadioError::of_stream(code, "SoapySDRDevice_activateStream").with_text();
            return Err(error.with_said());
        }
        self.is_active = true;
        Ok(())
    }

    /// The device, for its settings.
    pub fn device(&self) -> &RadioDevice {
        &self.device
    }

    /// Samples that pass at once between the device and the module.
    pub fn block(&self) -> usize {
        let (device, stream) = (self.device.handle.as_ptr(), self.handle.as_ptr());
        // SAFETY: the device and the stream are open.
        unsafe { soapy::SoapySDRDevice_getStreamMTU(device, stream) }
    }

    /// Reads samples, without waiting.
    ///
    /// # Errors
    /// What the module reports; [`RadioError::is_later`] if there are none. Those without which the stream
    /// goes on do not allocate.
    pub fn read(&mut self, samples: &mut [[f32; 2]]) -> Result<RadioRead, RadioError> {
        let (mut flags, mut time_ns) = (0, 0);
        let buffers = [samples.as_mut_ptr().cast()];
        // SAFETY: the device and the stream are open; the only channel's buffer has room for as many samples
        // of two `f32` as are asked for.
        let count = unsafe {
            soapy::SoapySDRDevice_readStream(
                self.device.handle.as_ptr(),
                self.handle.as_ptr(),
                buffers.as_ptr(),
                samples.len(),
                &raw mut flags,
                &raw mut time_ns,
                0,
            )
        };
        let count = passed(count, samples.len(), "SoapySDRDevice_readStream")?;
        let time_ns = (flags & HAS_TIME != 0).then_some(time_ns);
        Ok(RadioRead { count, time_ns, is_cut: flags & END_ABRUPT != 0 })
    }

    /// Writes samples, without waiting, and returns how many; `is_end` says that no more follow.
    ///
    /// # Errors
    /// As for [`read`](RadioStream::read); [`RadioError::is_later`] if there is no room.
    pub fn write(&mut self, samples: &[[f32; 2]], is_end: bool) -> Result<usize, RadioError> {
        let mut flags = if is_end { END_BURST } else { 0 };
        let buffers = [samples.as_ptr().cast()];
        // SAFETY: the device and the stream are open; the only channel's buffer has as many samples of two
        // `f32` as are offered.
        let count = unsafe {
            soapy::SoapySDRDevice_writeStream(
                self.device.handle.as_ptr(),
                self.handle.as_ptr(),
                buffers.as_ptr(),
                samples.len(),
                &raw mut flags,
                0,
                0,
            )
        };
        passed(count, samples.len(), "SoapySDRDevice_writeStream")
    }

    /// Asks what has happened to samples that were written. `Ok` is news that is not an error: whether a
    /// burst has ended.
    ///
    /// # Errors
    /// [`RadioError::is_later`] if there is nothing new; what the module reports.
    pub fn status(&mut self) -> Result<bool, RadioError> {
        let (mut channels, mut flags, mut time_ns) = (0, 0, 0);
        // SAFETY: the device and the stream are open, and the numbers outlive the call.
        let code = unsafe {
            soapy::SoapySDRDevice_readStreamStatus(
                self.device.handle.as_ptr(),
                self.handle.as_ptr(),
                &raw mut channels,
                &raw mut flags,
                &raw mut time_ns,
                0,
            )
        };
        passed(code, usize::MAX, "SoapySDRDevice_readStreamStatus")?;
        Ok(flags & END_BURST != 0)
    }
}

/// The number of samples that a call has passed.
fn passed(result: c_int, most: usize, during: &'static str) -> Result<usize, RadioError> {
    if let Ok(count) = usize::try_from(result) {
        return Ok(count.min(most));
    }
    let error = RadioError::of_stream(result, during);
    let goes_on = error.is_later() || error.is_overflow() || error.is_underflow() || error.is_late();
    Err(if goes_on { error } else { error.with_text().with_said() })
}

impl Drop for RadioStream {
    fn drop(&mut self) {
        let (device, stream) = (self.device.handle.as_ptr(), self.handle.as_ptr());
        if self.is_active {
            // SAFETY: the device and the stream are open.
            let _stopped = unsafe { soapy::SoapySDRDevice_deactivateStream(device, stream, 0, 0) };
        }
        // SAFETY: the stream is open, and is used nowhere after this.
        let _closed = unsafe { soapy::SoapySDRDevice_closeStream(device, stream) };
    }
}
