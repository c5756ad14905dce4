//! What an operator hands out to those who watch a run.

use crate::Error;
use std::fmt;

/// Data that an operator hands out on request, such as its latest picture: `onbeat ctl SOCKET fetch OPERATOR`.
///
/// The operator only takes hold of the data, between two steps. They are brought into a form for others on the
/// thread of whoever asks.
///
/// ```
/// use onbeat_runtime::Fetched;
///
/// let level = 3;
/// let fetched = Fetched::new("text/plain", move || Ok(level.to_string().into_bytes()));
/// assert_eq!(fetched.media_type(), "text/plain");
/// assert_eq!(fetched.make().unwrap(), b"3");
/// ```
pub struct Fetched {
    media_type: &'static str,
    make: Box<dyn FnOnce() -> Result<Vec<u8>, Error> + Send>,
}

impl Fetched {
    /// Data of a media type (RFC 6838), which `make` computes.
    pub fn new(
        media_type: &'static str,
        make: impl FnOnce() -> Result<Vec<u8>, Error> + Send + 'static,
    ) -> Self {
        Fetched { media_type, make: Box::new(make) }
    }

    /// The media type, such as `image/png`.
    #[must_use]
    pub fn media_type(&self) -> &'static str {
        self.media_type
    }

    /// Computes the data.
    ///
    /// # Errors
    /// Why they have no such form.
    pub fn make(self) -> Result<Vec<u8>, Error> {
        (self.make)()
    }
}

impl fmt::Debug for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetched").field("media_type", &self.media_type).finish_non_exhaustive()
    }
}
