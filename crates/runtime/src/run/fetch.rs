//! Fetching what an operator hands out.

use super::handle::{OrderError, RunHandle};
use super::pending_order::PendingOrder;
use crate::engine::order::Order;
use crate::{Error, FetchedData};
use std::sync::mpsc;
use std::time::Duration;

/// Interval between two checks of the answer.
const POLL: Duration = Duration::from_millis(10);

impl RunHandle {
    /// Fetches what an operator hands out, such as the latest frame of a `tap.image` as a PNG picture.
    /// Returns the media type and the data, which this thread computes.
    ///
    /// # Errors
    /// If there is no such operator, or it has nothing to hand out.
    pub fn fetch(&self, name: &str) -> Result<(&'static str, Vec<u8>), OrderError> {
        let mut pending = self.ask_for(name)?;
        loop {
            if let Some(result) = pending.poll(POLL) {
                result?;
                return Ok(made(pending.take_fetched())?);
            }
        }
    }

    /// Asks an operator to hand something out. Does not wait for the answer.
    pub(crate) fn ask_for(&self, name: &str) -> Result<PendingOrder, OrderError> {
        let (to, fetched) = mpsc::sync_channel(1);
        let mut pending = self.ask(name, |operator| Order::Fetch(operator, to.clone()))?;
        pending.expect(fetched);
        Ok(pending)
    }
}

/// Computes what an operator has handed out.
pub(crate) fn made(fetched: Option<FetchedData>) -> Result<(&'static str, Vec<u8>), Error> {
    let fetched = fetched.ok_or_else(|| Error::new("the operator handed nothing out"))?;
    let media_type = fetched.media_type();
    Ok((media_type, fetched.make()?))
}
