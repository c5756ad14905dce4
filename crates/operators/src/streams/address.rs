//! Checks of parameters: addresses and times.

use onbeat_runtime::{Error, Seconds};

/// Converts a time above 0 to nanoseconds.
pub(crate) fn time_ns(name: &str, time: Seconds) -> Result<u64, Error> {
    crate::check::positive(name, time.0)?;
    time.as_ns().ok_or_else(|| Error::new(format!("`{name}` is {} s: it must be below 584 years", time.0)))
}

/// Checks the form `host:port`, without resolving the host.
pub(crate) fn check_address(name: &str, address: &str) -> Result<(), Error> {
    let port =
        address.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
    // The longest host name, and a port.
    const MOST: usize = 253 + 6;
    match port {
        Some(Ok(_)) if address.len() <= MOST => Ok(()),
        _ => {
            let shown: String = address.chars().take(MOST).flat_map(char::escape_debug).collect();
            Err(Error::new(format!(
                "`{name}` is `{shown}`: it must be a host and a port from 0 to 65535, such as `127.0.0.1:9000`"
            )))
        }
    }
}
