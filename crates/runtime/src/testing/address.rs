//! Addresses for tests of connections.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::{Mutex, PoisonError};

/// The last part of the last address.
static LAST: Mutex<u8> = Mutex::new(1);

/// An address of this machine where nobody listens, for TCP and UDP, and which is given only once.
///
/// Each has a number of its own in 127.0.0.0/8, made of the process and a count: a port of 127.0.0.1 that was
/// free a moment ago may meanwhile be the end of somebody's connection, or be given to the next who asks.
///
/// # Panics
/// When the machine has no loopback.
///
/// ```
/// let address = onbeat_runtime::testing::free_address();
/// assert!(address.ip().is_loopback());
/// assert_ne!(address, onbeat_runtime::testing::free_address());
/// ```
#[must_use]
pub fn free_address() -> SocketAddr {
    let [.., high, low] = std::process::id().to_be_bytes();
    loop {
        let count = {
            let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
            // Never 127.0.0.1, nor what names a whole network.
            *last = if *last < 250 { *last + 1 } else { 2 };
            *last
        };
        let listener = TcpListener::bind((Ipv4Addr::new(127, high, low, count), 0)).expect("a loopback");
        let address = listener.local_addr().expect("an address");
        if UdpSocket::bind(address).is_ok() {
            return address;
        }
    }
}
