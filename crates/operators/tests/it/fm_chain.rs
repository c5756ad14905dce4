//! Receiving the committed recording gives the melody.
#![forbid(unsafe_code)]

use crate::receiver;

#[test]
fn audio_is_the_melody() {
    let bytes = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/fm.sigmf-data")).unwrap();
    let pairs: &[[i8; 2]] = bytemuck::cast_slice(&bytes);
    receiver::check_audio(&receiver::receive(pairs));
}
