//! Tables as CSV files: sample streams and values by column.
//!
//! | module | contents |
//! |---|---|
//! | `format` | delimiter, header, decimal mark and the other properties of a file |
//! | `rows` | rows of a file, of a pipe or of stdin, with their line numbers |
//! | `columns` | the chosen columns of a row as numbers, and counts of those that are missing |
//! | `times` | the column of times: its sample rate, and whether its steps are regular |
//! | `source`, `value_source` | the sources |
//! | `row_writer`, `sink`, `value_sink` | the sinks |
//!
//! Rows are split by `csv-core`, which takes a file in any pieces.

mod columns;
mod format;
mod row_writer;
mod rows;
mod sink;
mod source;
mod times;
mod value_sink;
mod value_source;

pub use columns::Missing;
pub use format::{Decimal, TableFormat};
pub use sink::CsvSink;
pub use source::CsvSource;
pub use times::{TimeColumn, TimeUnit};
pub use value_sink::CsvValueSink;
pub use value_source::CsvValueSource;

use crate::check;
use onbeat_runtime::{Error, Registry};

/// Most columns that are read or written, each with a port.
const MOST: usize = 64;
/// Path that stands for stdin.
const STANDARD: &str = "-";

/// Checks names of columns: there are from 1 to 64, and none is empty.
fn check_columns(columns: &[String]) -> Result<(), Error> {
    check::within("columns", columns.len() as f64, 1.0, MOST as f64, "use several operators")?;
    if columns.iter().any(|name| name.trim().is_empty()) {
        return Err(Error::new("`columns` has an empty name: give the name or the number of each column"));
    }
    Ok(())
}

/// A text of a file in messages: short, and without control characters.
fn shown(text: &[u8]) -> String {
    check::shown(&String::from_utf8_lossy(text))
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    source::add_kinds(registry);
    value_source::add_kinds(registry);
    sink::add_kinds(registry);
    value_sink::add_kinds(registry);
}
