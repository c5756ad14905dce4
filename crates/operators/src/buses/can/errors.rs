//! Error frames: what the driver tells of the bus and its controller (linux/can/error.h).

use onbeat_os::can::{BUS_OFF, ERROR_FLAG};
use onbeat_runtime::Context;

/// Reason of losses.
const OVERFLOW: &str = "the controller had no room for them (at least one for each overflow)";
/// Class of errors whose second data byte says what the controller has.
const CONTROLLER: u32 = 0x4;
/// Its bit for a receive buffer without room.
const RECEIVE_OVERFLOW: u8 = 0x1;
/// All other classes.
const CLASSES: [(u32, &str); 8] = [
    (0x1, "times a frame was not sent in time"),
    (0x2, "times arbitration was lost"),
    (CONTROLLER, "changes of the controller's state, such as error passive"),
    (0x8, "violations of the protocol"),
    (0x10, "errors of the transceiver"),
    (0x20, "times no other node acknowledged a frame"),
    (0x80, "errors on the bus"),
    (0x100, "restarts of the controller"),
];

/// Counts of error frames.
#[derive(Debug, Default)]
pub(super) struct BusErrors([u64; CLASSES.len()]);

impl BusErrors {
    /// Counts an error frame, in the kernel's form.
    ///
    /// # Errors
    /// If the controller has left the bus.
    pub fn take(&mut self, interface: &str, frame: &[u8], cx: &mut Context) -> Result<(), String> {
        let Some(id) = frame.first_chunk().map(|id| u32::from_ne_bytes(*id)) else { return Ok(()) };
        if id & ERROR_FLAG == 0 {
            return Ok(());
        }
        if id & CONTROLLER != 0 && frame.get(9).is_some_and(|state| state & RECEIVE_OVERFLOW != 0) {
            cx.lose(1, "frames", OVERFLOW);
        }
        for (count, (class, _)) in self.0.iter_mut().zip(CLASSES) {
            *count += u64::from(id & class != 0);
        }
        if id & BUS_OFF == 0 {
            return Ok(());
        }
        Err(format!(
            "the controller has left the bus after too many errors (bus-off): is the bit rate right, and the bus \
             terminated? `ip link set {interface} type can restart-ms 100` lets it come back on its own"
        ))
    }

    /// Notes the counts.
    pub fn sum_up(&mut self, cx: &mut Context) {
        for (count, (_, what)) in std::mem::take(&mut self.0).iter().zip(CLASSES) {
            if *count > 0 {
                cx.note(format!("{count} {what}"));
            }
        }
    }
}
