//! RDS: data of FM stations, from the multiplex to text.
//!
//! [`RdsDecode`] is the whole receiver: `rds.decode`. The formats are those of IEC 62106. `ci/multiplex`
//! compares the receiver with GNU Radio.

mod characters;
mod code;
mod group;
mod line;
mod receiver;
mod station;
mod sync;

pub use line::RdsFormat;
pub use receiver::RdsDecode;

use onbeat_runtime::{Kind, Registry};

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(Kind::operator::<RdsDecode>());
}
