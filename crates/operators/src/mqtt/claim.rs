//! Identifiers in use: a broker ends the connection of a client when another comes by the same identifier.

use onbeat_runtime::Error;
use std::sync::{Mutex, PoisonError};

/// The brokers and identifiers of the clients of this program.
static CLAIMS: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// The right to an identifier at a broker.
#[derive(Debug)]
pub(super) struct ClientClaim {
    place: (String, String),
}

impl ClientClaim {
    /// Takes an identifier.
    ///
    /// # Errors
    /// If another operator has it.
    pub fn take(broker: &str, id: &str) -> Result<Self, Error> {
        let place = (broker.to_string(), id.to_string());
        let mut claims = CLAIMS.lock().unwrap_or_else(PoisonError::into_inner);
        if claims.contains(&place) {
            return Err(Error::new(format!(
                "`client_id` is `{id}`, and another operator is known to {broker} by it: the two would put each other \
                 off; give each its own, or leave it out"
            )));
        }
        claims.push(place.clone());
        Ok(ClientClaim { place })
    }
}

impl Drop for ClientClaim {
    fn drop(&mut self) {
        let mut claims = CLAIMS.lock().unwrap_or_else(PoisonError::into_inner);
        claims.retain(|place| *place != self.place);
    }
}
