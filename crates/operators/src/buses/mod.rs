//! Serial lines, CAN buses and GPIO lines: sensors, microcontrollers, motor controllers, vehicles.
//!
//! | module | contents |
//! |---|---|
//! | [`serial`] | samples, lines and bytes over a serial port |
//! | [`can`] | frames of a CAN bus, as signals and as text |
//! | [`gpio`] | edges and levels of single lines |

pub(crate) mod away;
pub mod can;
pub mod gpio;
pub mod serial;

use onbeat_runtime::Registry;

pub(crate) fn add_kinds(registry: &mut Registry) {
    serial::add_kinds(registry);
    can::add_kinds(registry);
    gpio::add_kinds(registry);
}
