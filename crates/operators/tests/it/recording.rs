//! The committed recording equals the output of the generator.
#![forbid(unsafe_code)]

use onbeat_operators::recording::{RATE_HZ, SAMPLES, fm_recording};
use sha2::{Digest, Sha512};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

#[test]
fn files_are_what_the_generator_makes() {
    let bytes = std::fs::read(format!("{FOLDER}/fm.sigmf-data")).unwrap();
    let committed: &[[i8; 2]] = bytemuck::cast_slice(&bytes);
    let fresh = fm_recording();
    assert_eq!(committed.len(), SAMPLES);
    assert_eq!(fresh.len(), SAMPLES);
    // Sine and cosine can differ in the last bit between C libraries, so a value can round the other way.
    let differences = committed.as_flattened().iter().zip(fresh.as_flattened());
    let worst = differences.map(|(a, b)| a.abs_diff(*b)).max();
    assert!(worst <= Some(1), "{worst:?} steps apart: run the example make_fm_recording");
}

#[test]
fn meta_describes_the_data() {
    let data = std::fs::read(format!("{FOLDER}/fm.sigmf-data")).unwrap();
    let meta = std::fs::read_to_string(format!("{FOLDER}/fm.sigmf-meta")).unwrap();
    let meta: serde_json::Value = serde_json::from_str(&meta).unwrap();
    let global = &meta["global"];
    let hash: String = Sha512::digest(&data).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(global["core:sha512"], hash);
    assert_eq!(global["core:datatype"], "ci8");
    assert_eq!(global["core:sample_rate"], RATE_HZ);
    assert_eq!(meta["captures"][0]["core:sample_start"], 0);
    assert_eq!(meta["annotations"].as_array().unwrap().len(), 2);
}

#[test]
fn few_values_clip() {
    let clipped = fm_recording().as_flattened().iter().filter(|x| **x == 127 || **x == -128).count();
    assert!(clipped < SAMPLES / 1000, "{clipped} values clip");
}
