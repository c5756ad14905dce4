//! Errors of reading a record.

/// Why [`Record::from_json`](crate::Record::from_json) refused a text. Each message says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Not JSON, or incomplete.
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
        /// The supported schema.
        expected: &'static str,
    },

    /// A record of another version.
    #[error(
        "it is version {found} of {schema} and this onbeat reads version {expected}: \
         open it with the onbeat that wrote it (`build.version` in the file), or run the pipeline again"
    )]
    OtherVersion {
        /// The schema.
        schema: &'static str,
        /// The `version` in the text, as written; `missing` if there is none.
        found: String,
        /// The supported version.
        expected: u32,
    },

    /// The right schema and version, but a field is missing or has the wrong type.
    #[error("it calls itself {schema} version {version} but does not fit it: {source}; was it edited?")]
    Malformed {
        /// The schema.
        schema: &'static str,
        /// The version.
        version: u32,
        /// The field, and its place.
        #[source]
        source: serde_json::Error,
    },
}
