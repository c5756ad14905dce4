//! Operators that wait until a file can be read.

use super::{Condition, Readiness, View};
use crate::base::error::Error;
use onbeat_os::poll::{Interest, is_readable};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// The condition.
pub(super) struct ReadableCondition(pub Arc<OwnedFd>);

impl Condition for ReadableCondition {
    fn check(&mut self, view: &View<'_>) -> Result<Readiness, Error> {
        let wrong = |error| Error::new(format!("cannot wait for the file of its condition: {error}"));
        if view.is_stopping() || is_readable(self.0.as_fd()).map_err(wrong)? {
            return Ok(Readiness::Holds);
        }
        view.await_descriptor(self.0.as_fd(), Interest::Read).map_err(wrong)?;
        Ok(Readiness::Waits)
    }

    fn describe(&self) -> String {
        "its file to become readable".to_string()
    }

    fn is_outside(&self) -> bool {
        true
    }
}
