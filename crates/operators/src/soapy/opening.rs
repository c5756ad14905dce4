//! Settings of a device: made, and read back.

use super::OpenRadio;
use super::refusal::{cannot_open, missing_module, not_one_of, outside};
use super::setup::{RadioSetup, RadioUse};
use crate::streams::TunerGain;
use onbeat_os::radio::{RadioDevice, RadioError, RadioNumber, RadioStream, RadioWay};
use onbeat_runtime::Error;
use onbeat_trace::record::Obtained;

/// Share by which a rate may differ that is not told: a crystal is not better.
const SAME_RATE: f64 = 1e-6;
/// Why a device has another value.
const NEAREST: &str = "the device has no other near this";

/// Opens a device, makes its settings, and starts its stream. An error lists the devices that are there if
/// `is_first`: to find them may take seconds.
pub(super) fn open(setup: &RadioSetup, is_first: bool) -> Result<OpenRadio, Error> {
    let way = if setup.way == RadioUse::Receive { RadioWay::Receive } else { RadioWay::Transmit };
    let device = RadioDevice::open(&setup.device, way, setup.channel as usize)
        .map_err(|error| cannot_open(setup, &error, is_first))?;
    check_channel(&device, setup)?;
    let failed = |what: &'static str| move |error: RadioError| cannot_set(setup, what, &error);
    if let Some(antenna) = &setup.antenna {
        let all = device.antennas().unwrap_or_default();
        not_one_of(setup, "antenna", antenna, &all)?;
        device.set_antenna(antenna).map_err(failed("antenna"))?;
    }
    let odd = write_settings(&device, setup)?;
    let numbers = numbers(setup);
    for (name, what, value) in &numbers {
        if matches!(what, RadioNumber::Gain | RadioNumber::Element(_)) {
            continue;
        }
        set_number(&device, setup, name, what, *value)?;
    }
    set_gain(&device, setup)?;
    let obtained = read_back(&device, setup, &numbers);
    let rate_hz = match device.get(&RadioNumber::Rate) {
        Ok(rate_hz) if rate_hz > 0.0 && !is_near(rate_hz, setup.rate_hz) => rate_hz,
        _ => setup.rate_hz,
    };
    let notes = vec![describe(&device, setup)];
    let stream =
        RadioStream::start(device, &setup.stream).map_err(|error| cannot_open(setup, &error, is_first))?;
    Ok(OpenRadio { stream, rate_hz, obtained, notes, odd })
}

/// Refuses a driver without a module, without opening a device.
pub(super) fn look(setup: &RadioSetup) -> Result<(), Error> {
    missing_module(setup).map_or(Ok(()), Err)
}

/// Makes one setting that has changed, and returns what the device has made of it.
pub(super) fn change(stream: &RadioStream, setup: &RadioSetup, name: &str) -> Result<Option<String>, Error> {
    let device = stream.device();
    let found = numbers(setup).into_iter().find(|(parameter, _, _)| parameter == name);
    let Some((name, what, value)) = found else {
        set_gain(device, setup)?;
        return Ok(None);
    };
    if what == RadioNumber::Gain {
        set_gain(device, setup)?;
    } else {
        set_number(device, setup, &name, &what, value)?;
    }
    let obtained = obtained(device, &what, value);
    Ok(obtained.filter(|one| one.asked != one.obtained).map(|one| {
        format!("`{name}` was set to {} during the run: the device has {}", one.asked, one.obtained)
    }))
}

/// Numbers that are set, with the names of their parameters, in the order in which drivers expect them.
fn numbers(setup: &RadioSetup) -> Vec<(String, RadioNumber, f64)> {
    let mut numbers = vec![("sample_rate".to_string(), RadioNumber::Rate, setup.rate_hz)];
    if let Some(bandwidth_hz) = setup.bandwidth_hz {
        numbers.push(("bandwidth".to_string(), RadioNumber::Bandwidth, bandwidth_hz));
    }
    if let Some(ppm) = setup.ppm {
        numbers.push(("ppm".to_string(), RadioNumber::Correction, ppm));
    }
    numbers.push(("frequency".to_string(), RadioNumber::Frequency, setup.frequency_hz));
    if let Some(TunerGain::Fixed(gain)) = setup.gain {
        numbers.push(("gain".to_string(), RadioNumber::Gain, gain));
    }
    let elements = setup.gains.iter();
    numbers.extend(
        elements.map(|(name, gain)| (format!("gains.{name}"), RadioNumber::Element(name.clone()), *gain)),
    );
    numbers
}

fn check_channel(device: &RadioDevice, setup: &RadioSetup) -> Result<(), Error> {
    let what = if setup.way == RadioUse::Receive { "receive" } else { "transmit" };
    let count = device.channels().map_err(|error| cannot_set(setup, "channel", &error))?;
    if count == 0 {
        return Err(Error::new(format!(
            "cannot use {}: it has no channel that can {what}; `SoapySDRUtil --probe=\"{}\"` shows what it has",
            setup.device, setup.device
        )));
    }
    if setup.channel as usize >= count {
        return Err(Error::new(format!(
            "`channel` is {}: {} has {count} that can {what}, and the first is 0",
            setup.channel, setup.device
        )));
    }
    let formats = device.formats().unwrap_or_default();
    if formats.is_empty() || formats.iter().any(|format| format == "CF32") {
        return Ok(());
    }
    Err(Error::new(format!(
        "cannot use {}: onbeat takes samples of the format CF32, and its driver only has {}",
        setup.device,
        formats.join(", ")
    )))
}

/// Writes settings that only this driver has. Returns what is odd.
fn write_settings(device: &RadioDevice, setup: &RadioSetup) -> Result<Vec<String>, Error> {
    let (keys, own_keys) = device.setting_keys().unwrap_or_default();
    let mut odd = Vec::new();
    for (key, value) in &setup.settings {
        let is_own = own_keys.contains(key) && !keys.contains(key);
        if !is_own && !keys.contains(key) {
            let all: Vec<&str> = keys.iter().chain(&own_keys).map(String::as_str).collect();
            let all = if all.is_empty() { "none".to_string() } else { all.join(", ") };
            odd.push(format!(
                "`settings.{key}`: the driver of {} does not name such a setting, and may ignore it; it names {all}",
                setup.device
            ));
        }
        device
            .write_setting(key, value, is_own)
            .map_err(|error| cannot_set(setup, &format!("settings.{key}"), &error))?;
    }
    Ok(odd)
}

fn set_number(
    device: &RadioDevice,
    setup: &RadioSetup,
    name: &str,
    what: &RadioNumber,
    value: f64,
) -> Result<(), Error> {
    if *what == RadioNumber::Correction && !device.has_correction().unwrap_or(true) {
        return Err(Error::new(format!(
            "`ppm` is {value}: {} has no frequency correction; leave `ppm` out, and shift `frequency` instead",
            setup.device
        )));
    }
    let ranges = device.ranges(what).unwrap_or_default();
    outside(setup, name, what, value, &ranges)?;
    device.set(what, value).map_err(|error| cannot_set(setup, name, &error))
}

/// Sets the gain of all elements, or of each.
fn set_gain(device: &RadioDevice, setup: &RadioSetup) -> Result<(), Error> {
    let has_automatic = device.has_automatic_gain().unwrap_or(false);
    let is_automatic = setup.gain == Some(TunerGain::Auto);
    if is_automatic && !has_automatic {
        return Err(Error::new(format!(
            "`gain` is \"auto\": {} cannot choose its gain; give decibels",
            setup.device
        )));
    }
    if has_automatic && (setup.gain.is_some() || !setup.gains.is_empty()) {
        device.set_automatic_gain(is_automatic).map_err(|error| cannot_set(setup, "gain", &error))?;
    }
    if let Some(TunerGain::Fixed(gain)) = setup.gain {
        set_number(device, setup, "gain", &RadioNumber::Gain, gain)?;
    }
    let elements =
        if setup.gains.is_empty() { Vec::new() } else { device.gain_elements().unwrap_or_default() };
    for (name, gain) in &setup.gains {
        not_one_of(setup, "gains", name, &elements)?;
        set_number(device, setup, &format!("gains.{name}"), &RadioNumber::Element(name.clone()), *gain)?;
    }
    Ok(())
}

/// Settings as asked for and as the device says that they are.
fn read_back(
    device: &RadioDevice,
    setup: &RadioSetup,
    numbers: &[(String, RadioNumber, f64)],
) -> Vec<Obtained> {
    let mut all: Vec<Obtained> =
        numbers.iter().filter_map(|(_, what, value)| obtained(device, what, *value)).collect();
    let mut text = |what: &str, asked: String, obtained: String| {
        let reason = (asked != obtained).then(|| "the driver kept another".to_string());
        all.push(Obtained { what: what.to_string(), asked, obtained, reason });
    };
    if let (Some(asked), Ok(obtained)) = (&setup.antenna, device.antenna()) {
        text("antenna", asked.clone(), obtained);
    }
    if let (Some(TunerGain::Auto), Ok(is_automatic)) = (setup.gain, device.is_gain_automatic()) {
        text("gain", "auto".to_string(), if is_automatic { "auto" } else { "fixed" }.to_string());
    }
    all
}

fn obtained(device: &RadioDevice, what: &RadioNumber, asked: f64) -> Option<Obtained> {
    let obtained = device.get(what).ok()?;
    let is_same = match what {
        RadioNumber::Rate => is_near(asked, obtained),
        RadioNumber::Frequency | RadioNumber::Bandwidth => (asked - obtained).abs() < 1.0,
        RadioNumber::Gain | RadioNumber::Element(_) | RadioNumber::Correction => {
            (asked - obtained).abs() < 0.05
        }
    };
    let asked = number(what, asked);
    let obtained = if is_same { asked.clone() } else { number(what, obtained) };
    let reason = (!is_same).then(|| NEAREST.to_string());
    Some(Obtained { what: what.to_string(), asked, obtained, reason })
}

fn is_near(rate_hz: f64, other_hz: f64) -> bool {
    (rate_hz - other_hz).abs() < SAME_RATE * other_hz
}

/// A number with its unit.
pub(super) fn number(what: &RadioNumber, value: f64) -> String {
    let unit = match what {
        RadioNumber::Rate | RadioNumber::Frequency | RadioNumber::Bandwidth => "Hz",
        RadioNumber::Gain | RadioNumber::Element(_) => "dB",
        RadioNumber::Correction => "ppm",
    };
    let digits = if unit == "Hz" { 1e3 } else { 1e2 };
    format!("{} {unit}", (value * digits).round() / digits)
}

/// The device in a note.
fn describe(device: &RadioDevice, setup: &RadioSetup) -> String {
    let hardware = device.hardware().unwrap_or_default();
    let antenna = device.antenna().map(|name| format!(", antenna {name}")).unwrap_or_default();
    let native = device.native_format().ok().filter(|(name, _)| !name.is_empty());
    let native = native
        .map(|(name, full_scale)| format!(", samples in its own format {name} with full scale {full_scale}"));
    format!("{} is {hardware}{antenna}{}", setup.device, native.unwrap_or_default())
}

fn cannot_set(setup: &RadioSetup, what: &str, error: &RadioError) -> Error {
    Error::new(format!("cannot set `{what}` of {}: {error}", setup.device))
}
