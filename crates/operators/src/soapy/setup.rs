//! Which device, and its settings as they were asked for.

use crate::check;
use crate::streams::TunerGain;
use onbeat_runtime::Error;
use std::collections::BTreeMap;

/// Longest text of arguments.
const MOST_TEXT: usize = 1000;
/// Limits of what any device could have: typing errors.
const MOST_HZ: f64 = 1e12;
const MOST_DB: f64 = 200.0;

/// Way of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RadioUse {
    /// From an antenna.
    Receive,
    /// To an antenna.
    Transmit,
}

/// Which device, and how.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RadioSetup {
    pub way: RadioUse,
    pub device: String,
    pub channel: u32,
    pub antenna: Option<String>,
    pub rate_hz: f64,
    pub frequency_hz: f64,
    pub bandwidth_hz: Option<f64>,
    pub gain: Option<TunerGain>,
    pub gains: BTreeMap<String, f64>,
    pub ppm: Option<f64>,
    pub settings: BTreeMap<String, String>,
    pub stream: String,
}

impl RadioSetup {
    /// Refuses what no device can have.
    pub fn check(&self) -> Result<(), Error> {
        check_arguments(
            "device",
            &self.device,
            "`driver=rtlsdr,serial=1`; `SoapySDRUtil --find` lists devices",
        )?;
        if !self.stream.is_empty() {
            check_arguments("stream", &self.stream, "`bufflen=65536`; `SoapySDRUtil --probe` lists keys")?;
        }
        check::within("sample_rate", self.rate_hz, 1.0, MOST_HZ, "such as \"2.4 MS/s\"")?;
        check::within("frequency", self.frequency_hz, 0.0, MOST_HZ, "such as \"100 MHz\"")?;
        if let Some(bandwidth_hz) = self.bandwidth_hz {
            check::within("bandwidth", bandwidth_hz, 1.0, MOST_HZ, "leave it out for the driver's choice")?;
        }
        if let Some(TunerGain::Fixed(gain)) = self.gain {
            check::within("gain", gain, -MOST_DB, MOST_DB, "\"auto\" lets the device choose")?;
        }
        for (name, gain) in &self.gains {
            check::within(&format!("gains.{name}"), *gain, -MOST_DB, MOST_DB, "it is in decibels")?;
        }
        if self.gain.is_some() && !self.gains.is_empty() {
            return Err(Error::new(
                "`gain` spreads a gain over all elements, and `gains` sets each: give one of them",
            ));
        }
        if let Some(ppm) = self.ppm {
            check::within("ppm", ppm, -1000.0, 1000.0, "it is in parts per million")?;
        }
        let is_bad = |text: &String| text.len() > MOST_TEXT || text.chars().any(char::is_control);
        let texts = self.settings.iter().flat_map(|(key, value)| [key, value]).chain(self.antenna.iter());
        match texts.chain(self.gains.keys()).find(|text| is_bad(text)) {
            Some(text) => Err(Error::new(format!(
                "`{}` cannot be a name or value of a radio: it has control characters, or more than {MOST_TEXT} bytes",
                check::shown(text)
            ))),
            None => Ok(()),
        }
    }
}

/// Key and value of each part; the value is empty without a `=`.
pub(super) fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let split = |part| str::split_once(part, '=').unwrap_or((part, ""));
    text.split(',').map(split).map(|(key, value)| (key.trim(), value.trim()))
}

/// Accepts keys and values as SoapySDR reads them. It ignores a key without a value without a word.
fn check_arguments(name: &str, text: &str, example: &str) -> Result<(), Error> {
    let is_bad = text.len() > MOST_TEXT || text.chars().any(char::is_control);
    if is_bad || pairs(text).any(|(key, value)| key.is_empty() || value.is_empty()) {
        return Err(Error::new(format!(
            "`{name}` is `{}`: it must be pairs of key and value, such as {example}",
            check::shown(text)
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_pairs() {
        for good in ["driver=rtlsdr", "driver=rtlsdr,serial=1", " driver = remote , remote=tcp://[::1]:55132"]
        {
            assert!(check_arguments("device", good, "x").is_ok(), "{good}");
        }
        for bad in ["", "rtlsdr", "driver=", "=rtlsdr", "driver=a,,serial=1", "driver=a\n", "driver=a\0"] {
            let error = check_arguments("device", bad, "x").unwrap_err().to_string();
            assert!(error.contains("it must be pairs of key and value"), "{bad}: {error}");
        }
    }
}
