//! Tables of values. The column has the unit.

use std::borrow::Cow;

/// Table of a document. Its first column names the rows.
pub struct Table {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
}

/// Column of a table.
pub struct Column {
    /// Header in CSV: the name of the field in the record.
    pub name: &'static str,
    /// Header in text. The unit follows it.
    pub head: &'static str,
    pub unit: Unit,
    /// Whether the text leaves the column out if all cells are 0 or empty.
    pub optional: bool,
    /// Whether values above 0 indicate a problem.
    pub alarm: bool,
    /// For the first column: most rows that the text shows one by one; the others are added up in one row.
    pub first: Option<usize>,
    /// Columns that a narrow terminal leaves out, the highest number first; 0 for those that stay.
    pub spare: u8,
}

/// Unit of a number in text. Programs get the number unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Text instead of numbers.
    Text,
    /// Plain number.
    Count,
    /// Nanoseconds.
    Nanos,
    /// Nanoseconds, shown as microseconds.
    Micros,
    /// Nanoseconds, shown as milliseconds.
    Millis,
    /// Share of 1, shown in per cent.
    Percent,
    Bytes,
    /// Factor, e.g. 2.0 for twice as much.
    Factor,
    /// Number per iteration.
    Rate,
    /// Number with three significant digits. The header has the unit.
    Plain,
}

/// Value in a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Nothing,
    Text(String),
    /// Expected text, which counts as empty for `Column::optional`.
    Usual(String),
    Number(u64),
    /// Number with a fraction.
    Decimal(f64),
    Share(f64),
}

impl Column {
    pub const fn new(name: &'static str, head: &'static str, unit: Unit) -> Self {
        Column { name, head, unit, optional: false, alarm: false, first: None, spare: 0 }
    }

    pub const fn optional(self) -> Self {
        Column { optional: true, ..self }
    }

    pub const fn first(self, rows: usize) -> Self {
        Column { first: Some(rows), ..self }
    }

    pub const fn spare(self, rank: u8) -> Self {
        Column { spare: rank, ..self }
    }

    pub const fn alarm(self) -> Self {
        Column { alarm: true, ..self }
    }
}

impl Table {
    /// The rows that the text shows.
    pub fn shown(&self) -> Cow<'_, [Vec<Cell>]> {
        let first = self.columns.first().and_then(|column| column.first);
        let Some(first) = first.filter(|first| self.rows.len() > first + 1) else {
            return Cow::Borrowed(&self.rows);
        };
        let (shown, rest) = self.rows.split_at(first);
        let sum = |place: usize| rest.iter().fold(Cell::Nothing, |sum, row| sum.plus(&row[place]));
        let name = Cell::Text(format!("{} more", rest.len()));
        let row = std::iter::once(name).chain((1..self.columns.len()).map(sum)).collect();
        Cow::Owned(shown.iter().cloned().chain([row]).collect())
    }
}

impl Cell {
    /// Sum of two numbers. Texts have none.
    fn plus(&self, other: &Cell) -> Cell {
        match (self, other) {
            (Cell::Number(a), Cell::Number(b)) => Cell::Number(a.saturating_add(*b)),
            (Cell::Decimal(a), Cell::Decimal(b)) => Cell::Decimal(a + b),
            (Cell::Share(a), Cell::Share(b)) => Cell::Share(a + b),
            (Cell::Nothing, Cell::Number(_) | Cell::Decimal(_) | Cell::Share(_)) => other.clone(),
            (sum, _) => sum.clone(),
        }
    }

    /// Whether the cell counts as empty.
    pub fn is_void(&self) -> bool {
        match self {
            Cell::Nothing | Cell::Usual(_) | Cell::Number(0) => true,
            Cell::Text(text) => text.is_empty(),
            Cell::Number(_) | Cell::Decimal(_) | Cell::Share(_) => false,
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.to_string())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::Text(text)
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Cell::Number(number)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Nothing, Into::into)
    }
}
