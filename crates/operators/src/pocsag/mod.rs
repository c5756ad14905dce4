//! POCSAG: messages to pagers, from audio to text.
//!
//! [`PocsagDecode`] is the whole receiver: `pocsag.decode`. The formats are those of Recommendation ITU-R
//! M.584-2. `ci/packet` compares the receiver with multimon-ng.

mod batches;
mod bch;
mod message;
mod receiver;

pub use message::PageCoding;
pub use receiver::PocsagDecode;

use onbeat_runtime::{Kind, Registry};

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(Kind::operator::<PocsagDecode>());
}
