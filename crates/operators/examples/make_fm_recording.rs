//! Writes the recording of the FM receiver example, `fm.sigmf-data` and `fm.sigmf-meta`.
//!
//! Run from the root of the workspace: `cargo run --release -p onbeat-operators --example make_fm_recording`.
//! The only argument is the folder to write to, `examples` by default.
#![allow(clippy::disallowed_macros, reason = "an example prints")]

use std::path::PathBuf;
use std::{env, fs};

use onbeat_operators::recording::{CHANNEL_HZ, RATE_HZ, SAMPLES, STATION_A_HZ, STATION_B_HZ, fm_recording};
use serde_json::json;
use sha2::{Digest, Sha512};

/// Tuned frequency stated in the metadata, in hertz. Nothing depends on it.
const TUNED_HZ: f64 = 100e6;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(env::args_os().nth(1).unwrap_or_else(|| "examples".into()));
    let data: Vec<u8> = fm_recording().as_flattened().iter().map(|byte| byte.cast_unsigned()).collect();
    let hash: String = Sha512::digest(&data).iter().map(|byte| format!("{byte:02x}")).collect();

    let station = |label: &str, comment: &str, offset_hz: f64| {
        json!({
            "core:sample_start": 0,
            "core:sample_count": SAMPLES,
            "core:freq_lower_edge": TUNED_HZ + offset_hz - CHANNEL_HZ / 2.0,
            "core:freq_upper_edge": TUNED_HZ + offset_hz + CHANNEL_HZ / 2.0,
            "core:label": label,
            "core:comment": comment,
        })
    };
    let meta = json!({
        "global": {
            "core:datatype": "ci8",
            "core:sample_rate": RATE_HZ,
            "core:version": "1.2.0",
            "core:num_channels": 1,
            "core:description": "Two FM stations and noise, computed: see the example make_fm_recording of onbeat",
            "core:license": "https://creativecommons.org/publicdomain/zero/1.0/",
            "core:recorder": "onbeat make_fm_recording",
            "core:sha512": hash,
        },
        "captures": [{ "core:sample_start": 0, "core:frequency": TUNED_HZ }],
        "annotations": [
            station("station A", "A melody; 25 kHz deviation, 50 us pre-emphasis", STATION_A_HZ),
            station("station B", "A gliding tone; 25 kHz deviation, 50 us pre-emphasis", STATION_B_HZ),
        ],
    });

    let (data_path, meta_path) = (folder.join("fm.sigmf-data"), folder.join("fm.sigmf-meta"));
    fs::write(&data_path, &data)?;
    fs::write(&meta_path, format!("{meta:#}\n"))?;
    println!("{} ({} bytes) and {}", data_path.display(), data.len(), meta_path.display());
    Ok(())
}
