//! CAN.
pub(crate) fn add_kinds(_: &mut onbeat_runtime::Registry) {}
