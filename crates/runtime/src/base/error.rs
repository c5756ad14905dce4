//! The error that an operator returns: one word wide.

use std::fmt;

/// The error of an operator, or of building a pipeline: a text, and perhaps the error that caused it.
///
/// It is one pointer wide, so that `Result<Step, Error>` is returned in registers. It allocates, but only
/// when something fails.
///
/// ```
/// use onbeat_runtime::Error;
/// let error = Error::new("antenna 3 is not there: this radio has 2");
/// assert_eq!(error.to_string(), "antenna 3 is not there: this radio has 2");
/// ```
pub struct Error(Box<ErrorParts>);

struct ErrorParts {
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Makes an error with a message for a person. The message should name the thing, the value, the limit
    /// and the fix.
    pub fn new(message: impl Into<String>) -> Self {
        Error(Box::new(ErrorParts { message: message.into(), source: None }))
    }

    /// Makes an error with a message and the error that caused it. `Display` shows both, separated by ": ".
    pub fn with_source(
        message: impl Into<String>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Error(Box::new(ErrorParts { message: message.into(), source: Some(Box::new(source)) }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        match &self.0.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| &**source as &(dyn std::error::Error + 'static))
    }
}
