//! Why a device cannot be opened or cannot have a setting, and the fix.

use super::opening::number;
use super::setup::{RadioSetup, pairs};
use onbeat_os::radio::{RadioError, RadioNumber, RadioRange, drivers, found};
use onbeat_runtime::Error;

/// Most names or ranges in a message.
const SHOWN: usize = 12;
/// Drivers whose name is not that of their Debian package.
const PACKAGES: [(&str, &str); 2] = [("lime", "lms7"), ("miri", "mirisdr")];
/// Drivers that Debian has.
const IN_DEBIAN: [&str; 13] = [
    "airspy",
    "audio",
    "bladerf",
    "hackrf",
    "lime",
    "miri",
    "osmosdr",
    "redpitaya",
    "remote",
    "rfspace",
    "rtlsdr",
    "uhd",
    "xtrx",
];
// Words of drivers and of libusb.
const BUSY: [&str; 4] = ["busy", "in use", "claim", "already"];
const FORBIDDEN: [&str; 4] = ["permission", "access", "rights", "LIBUSB_ERROR_ACCESS"];
const ABSENT: [&str; 4] = ["no match", "not found", "no devices", "no driver"];

/// The error of a device that cannot be opened.
pub(super) fn cannot_open(setup: &RadioSetup, error: &RadioError, is_first: bool) -> Error {
    if let Some(error) = missing_module(setup) {
        return error;
    }
    let said =
        error.said().lines().last().map(|line| format!("; its driver says: {line}")).unwrap_or_default();
    let all = format!("{} {}", error.text(), error.said()).to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| all.contains(&word.to_lowercase()));
    let fix = if has(&BUSY) {
        ": does another program use it, or another operator this channel? Close that one".to_string()
    } else if has(&FORBIDDEN) {
        ": you may have no right to use it: the driver's package has udev rules; unplug it once, and log in again \
         after `sudo usermod -aG plugdev $USER`"
            .to_string()
    } else if is_first && has(&ABSENT) {
        format!(": {}", others())
    } else {
        String::new()
    };
    Error::new(format!("cannot open {}: {error}{said}{fix}", setup.device))
}

/// The error of a driver that is not installed, or that cannot be loaded.
pub(super) fn missing_module(setup: &RadioSetup) -> Option<Error> {
    let (_, driver) = pairs(&setup.device).find(|(key, _)| *key == "driver")?;
    let all = drivers();
    let name = &setup.device;
    if let Some((_, why)) = all.iter().find(|(other, _)| other == driver) {
        let broken =
            || Error::new(format!("cannot open {name}: the module of `{driver}` cannot be used: {why}"));
        return (!why.is_empty()).then(broken);
    }
    let package = PACKAGES.iter().find(|(other, _)| *other == driver).map_or(driver, |(_, package)| package);
    let fix = if IN_DEBIAN.contains(&driver) {
        format!("`sudo apt-get install soapysdr-module-{package}` installs it")
    } else {
        "`apt-cache search soapysdr-module` lists those of Debian; a module elsewhere is found by SOAPY_SDR_PLUGIN_PATH"
            .to_string()
    };
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    Some(Error::new(format!(
        "cannot open {name}: no SoapySDR module for the driver `{driver}` is installed (installed: {}): {fix}",
        names.join(", ")
    )))
}

/// Refuses a name that is not one of these.
pub(super) fn not_one_of(setup: &RadioSetup, what: &str, name: &str, all: &[String]) -> Result<(), Error> {
    if all.iter().any(|other| other == name) {
        return Ok(());
    }
    let names = if all.is_empty() { "none".to_string() } else { all.join(", ") };
    Err(Error::new(format!("`{what}`: {} has no `{name}`; it has {names}", setup.device)))
}

/// Refuses a value outside the ranges that the driver names. Drivers that do not know have none, or 0 to 0.
pub(super) fn outside(
    setup: &RadioSetup,
    name: &str,
    what: &RadioNumber,
    value: f64,
    ranges: &[RadioRange],
) -> Result<(), Error> {
    // What drivers compute may be off by rounding.
    let is_in = |range: &RadioRange| {
        let slack = 1e-9 * range.high.abs().max(range.low.abs());
        value >= range.low - slack && value <= range.high + slack
    };
    let is_known = ranges.iter().any(|range| range.low != 0.0 || range.high != 0.0);
    if !is_known || ranges.iter().any(is_in) {
        return Ok(());
    }
    let text = |range: &RadioRange| {
        let low = number(what, range.low);
        if range.low == range.high { low } else { format!("{low} to {}", number(what, range.high)) }
    };
    let mut texts: Vec<String> = ranges.iter().map(text).collect();
    let left = texts.len().saturating_sub(SHOWN);
    texts.truncate(SHOWN);
    let more = if left > 0 { format!(", and {left} more") } else { String::new() };
    Err(Error::new(format!(
        "`{name}` is {}: {} has {}{more}",
        number(what, value),
        setup.device,
        texts.join(", ")
    )))
}

/// The devices that are there.
fn others() -> String {
    let mut names = found();
    if names.is_empty() {
        let drivers: Vec<String> = drivers().into_iter().map(|(name, _)| name).collect();
        return format!(
            "no radio was found (drivers installed: {}): is it plugged in? `apt-cache search soapysdr-module` lists more \
             drivers",
            drivers.join(", ")
        );
    }
    let left = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    let more = if left > 0 { format!(", and {left} more") } else { String::new() };
    format!("devices here: {}{more}", names.join("; "))
}
