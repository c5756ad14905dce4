//! Radios by SoapySDR: its `null` driver, and a build without radios. `ci/soapy` has the rest.

use super::harness::{Answer, Place};
use std::fs;

/// What `onbeat` says of a pipeline with this receiver.
fn say(command: &str, device: &str) -> Answer {
    let place = Place::new();
    let pipeline = format!(
        "name = \"radio\"\noperator = [\n\
         {{ name = \"radio\", kind = \"soapy.source\", device = \"{device}\", frequency = 1e8, sample_rate = 1e6 }},\n\
         {{ name = \"end\", kind = \"null.sink.complex\" }},\n]\n\
         edge = [{{ from = \"radio\", to = \"end\" }}]\n"
    );
    fs::write(place.path("radio.toml"), pipeline).expect("a file");
    place.onbeat(&[command, "radio.toml"])
}

#[cfg(not(feature = "soapy"))]
#[test]
fn a_build_without_radios_says_so() {
    for command in ["run", "check"] {
        let answer = say(command, "driver=null");
        assert_eq!(answer.status, Some(1), "{answer:?}");
        let text = "`cargo install --locked --path crates/cli --features soapy`";
        assert!(answer.stderr.contains("this onbeat was built without radios"), "{}", answer.stderr);
        assert!(answer.stderr.contains(text), "{}", answer.stderr);
    }
}

#[cfg(feature = "soapy")]
#[test]
fn a_device_that_cannot_receive_is_refused() {
    let answer = say("run", "driver=null");
    assert_eq!(answer.status, Some(1), "{answer:?}");
    assert!(answer.stderr.contains("it has no channel that can receive"), "{}", answer.stderr);
    assert_eq!(say("check", "driver=null").status, Some(0));
}

#[cfg(feature = "soapy")]
#[test]
fn a_driver_without_a_module_is_refused_before_the_run() {
    for command in ["run", "check"] {
        let answer = say(command, "driver=nobody");
        assert_eq!(answer.status, Some(1), "{answer:?}");
        let text = "no SoapySDR module for the driver `nobody` is installed";
        assert!(answer.stderr.contains(text), "{}", answer.stderr);
    }
}

#[test]
fn what_no_radio_can_have_is_refused_when_a_file_is_read() {
    let answer = say("run", "rtlsdr");
    assert_eq!(answer.status, Some(1), "{answer:?}");
    assert!(answer.stderr.contains("it must be pairs of key and value"), "{}", answer.stderr);
}
