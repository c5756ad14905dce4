//! Properties of a CSV file.

use onbeat_runtime::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The mark between the whole and the fractional part of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Decimal {
    /// `0.5`
    #[default]
    #[serde(rename = ".")]
    Point,
    /// `0,5`, as spreadsheets write in many languages. The delimiter is then often `;`.
    #[serde(rename = ",")]
    Comma,
}

/// How a CSV file is written: fields in double quotes may hold delimiters and line breaks, two double quotes
/// there are one. Lines end with LF or CRLF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableFormat {
    /// One ASCII character between the fields.
    pub delimiter: char,
    /// One ASCII character at the start of lines that are skipped; `None` skips none. Sinks ignore it.
    pub comment: Option<char>,
    /// Whether the first row has the names of the columns. `None` in a source: it has if none of its fields
    /// is a number. `None` in a sink: they are written.
    pub header: Option<bool>,
    /// Decimal mark.
    pub decimal: Decimal,
}

impl Default for TableFormat {
    fn default() -> Self {
        TableFormat { delimiter: ',', comment: None, header: None, decimal: Decimal::Point }
    }
}

impl TableFormat {
    /// Checks that the characters can be told apart.
    pub(super) fn check(self) -> Result<Self, Error> {
        let in_numbers = |c: char| c.is_ascii_alphanumeric() || "+-._\"\r\n".contains(c);
        let marks =
            [("delimiter", Some(self.delimiter), "`,`, `;` or a tab"), ("comment", self.comment, "`#`")];
        for (name, mark, such_as) in marks {
            if let Some(mark) = mark.filter(|mark| !mark.is_ascii() || *mark == '\0' || in_numbers(*mark)) {
                return Err(Error::new(format!(
                    "`{name}` is `{}`: it must be an ASCII character that is not part of a number, a quote or \
                     a line break, such as {such_as}",
                    mark.escape_debug()
                )));
            }
        }
        if self.decimal == Decimal::Comma && self.delimiter == ',' {
            return Err(Error::new(
                "`decimal` is `,` and so is `delimiter`: give the delimiter of the file, such as `;`",
            ));
        }
        if self.comment == Some(self.delimiter) {
            return Err(Error::new(format!(
                "`comment` and `delimiter` are both `{}`: they must differ",
                self.delimiter.escape_debug()
            )));
        }
        Ok(self)
    }
}

/// Default of a parameter `delimiter`.
pub(super) fn comma() -> char {
    ','
}
