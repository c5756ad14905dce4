//! Messages that a broker has not acknowledged.

use super::packet::DUPLICATE;
use std::collections::VecDeque;

/// Most messages without an acknowledgement.
const WINDOW: usize = 64;

/// Messages with QoS 1, the oldest first.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    packets: VecDeque<(u16, Vec<u8>)>,
    /// Buffers of acknowledged packets, for further ones.
    spare: Vec<Vec<u8>>,
    last_id: u16,
}

impl InFlight {
    pub fn has_room(&self) -> bool {
        self.packets.len() < WINDOW
    }

    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// An identifier that no packet has: never 0.
    pub fn next_id(&mut self) -> u16 {
        loop {
            self.last_id = self.last_id.checked_add(1).unwrap_or(1);
            if !self.packets.iter().any(|(id, _)| *id == self.last_id) {
                return self.last_id;
            }
        }
    }

    /// Keeps a packet until it is acknowledged.
    pub fn add(&mut self, id: u16, packet: &[u8]) {
        let mut kept = self.spare.pop().unwrap_or_default();
        kept.clear();
        kept.extend_from_slice(packet);
        self.packets.push_back((id, kept));
    }

    /// Forgets a packet. Returns whether it was there.
    pub fn acknowledge(&mut self, id: u16) -> bool {
        // Brokers acknowledge in order, so it is the first one.
        let at = self.packets.iter().position(|(kept, _)| *kept == id);
        let found = at.and_then(|at| self.packets.remove(at));
        let is_found = found.is_some();
        self.spare.extend(found.map(|(_, packet)| packet));
        is_found
    }

    /// Appends all packets, marked as repeated. Returns their number.
    pub fn repeat(&mut self, to: &mut Vec<u8>) -> usize {
        for (_, packet) in &mut self.packets {
            packet[0] |= DUPLICATE;
            to.extend_from_slice(packet);
        }
        self.packets.len()
    }

    /// Forgets all packets. Returns their number.
    pub fn clear(&mut self) -> usize {
        let count = self.packets.len();
        self.packets.clear();
        count
    }
}
