//! Packet radio: AX.25 frames in audio, from samples to text.
//!
//! | type | description |
//! |---|---|
//! | [`AfskDecode`] | the whole receiver: audio in, lines of JSON out: `afsk.decode` |
//! | [`AfskDemod`] | only the demodulator: `afsk.demod` |
//! | [`Ax25Decode`] | only the decoder, behind [`SymbolSync`](crate::symbols::SymbolSync): `ax25.decode` |
//!
//! `ci/packet` compares the receiver with multimon-ng and Dire Wolf.

mod aprs;
mod ax25;
mod block;
mod decode;
mod hdlc;
mod line;
mod receiver;
mod slicer;
mod tones;

pub use decode::Ax25Decode;
pub use receiver::AfskDecode;
pub use tones::AfskDemod;
pub(crate) use tones::{check_length, mean_taps};

use onbeat_runtime::{Kind, Registry};

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(Kind::kernel::<AfskDemod>());
    registry.add(Kind::operator::<AfskDecode>());
    registry.add(Kind::operator::<Ax25Decode>());
}
