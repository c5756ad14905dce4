//! What an operator hands out to those who watch a run.

use crate::Error;
use std::fmt;

/// Data that an operator hands out on request, such as its latest picture: `onbeat ctl SOCKET fetch`.
///
/// The operator only takes hold of the data, between two steps. The thread that asks brings them into a form
/// for others.
///
/// ```
/// use onbeat_runtime::FetchedData;
///
/// let level = 3;
/// let fetched = FetchedData::new("text/plain", move || Ok(level.to_string().into_bytes()));
/// assert_eq!(fetched.media_type(), "text/plain");
/// assert_eq!(fetched.make().unwrap(), b"3");
/// ```
pub struct FetchedData {
    media_type: &'static str,
    make: Box<dyn FnOnce() -> Result<Vec<u8>, Error> + Send>,
}

impl FetchedData {
    /// Data of a media type (RFC 6838), which `make` computes.
    pub fn new(
        media_type: &'static str,
        make: impl FnOnce() -> Result<Vec<u8>, Error> + Send + 'static,
    ) -> Self {
        FetchedData { media_type, make: Box::new(make) }
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

impl fmt::Debug for FetchedData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchedData").field("media_type", &self.media_type).finish_non_exhaustive()
    }
}
