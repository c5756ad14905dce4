//! The multiplex of FM stations: [`FmStereo`] makes left and right of it (`fm.stereo`).
//!
//! [`rds`](crate::rds) receives the data that is in it, too.

mod pilot;
mod stereo;

pub use stereo::FmStereo;

use onbeat_runtime::{Kind, Registry};

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(Kind::operator::<FmStereo>());
}
