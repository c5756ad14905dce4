//! Why a record could not be read.

/// Why [`Record::from_json`](crate::Record::from_json) refused a text. Each message says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// No JSON at all, or cut off.
    #[error("not JSON: {0}; a record is written in one piece, so this is another file or was edited")]
    NotJson(#[source] serde_json::Error),

    /// JSON of another kind.
    #[error(
        "its schema is {}, not \"{expected}\": give the file that `onbeat run` wrote",
        found.as_ref().map_or("missing".to_owned(), |found| format!("{found:?}"))
    )]
    OtherSchema {
        /// The `schema` in the text, if there is one.
        found: Option<String>,
        /// The schema that can be read.
        expected: &'static str,
    },

    /// A record of another version.
    #[error(
        "it is version {found} of {schema} and this onbeat reads version {expected}: \
         open it with the onbeat that wrote it (`build.version` in the file), or run the pipeline again"
    )]
    OtherVersion {
        /// The schema, the same for both.
        schema: &'static str,
        /// The `version` in the text, as it stands there; `missing` if there is none.
        found: String,
        /// The version that can be read.
        expected: u32,
    },

    /// The right schema and version, but a field is missing or holds something else.
    #[error("it calls itself {schema} version {version} but does not fit it: {source}; was it edited?")]
    Malformed {
        /// The schema.
        schema: &'static str,
        /// The version.
        version: u32,
        /// Which field, and where.
        #[source]
        source: serde_json::Error,
    },
}
