//! The lowest layer: errors, settings, numbers with units, small data structures.

pub(crate) mod bounded_list;
pub(crate) mod descriptors;
pub(crate) mod error;
pub(crate) mod files;
pub(crate) mod helper;
pub(crate) mod idle;
pub(crate) mod on_error;
pub(crate) mod options;
pub(crate) mod panic;
pub(crate) mod quiescence;
pub(crate) mod ready;
pub(crate) mod slot;
pub(crate) mod timers;
pub(crate) mod units;
pub(crate) mod wording;
