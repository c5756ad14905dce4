//! Tables of values, with the unit in the column and not in the cell.

/// A table: its first column names its rows.
pub struct Table {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
}

/// One column.
pub struct Column {
    /// For programs: the name of the field in the record.
    pub name: &'static str,
    /// For people. The unit follows it.
    pub head: &'static str,
    pub unit: Unit,
    /// People see it only if something in it is neither 0 nor nothing.
    pub optional: bool,
    /// What is above 0 here should not be.
    pub alarm: bool,
}

/// How a number is shown to people; programs get it as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// No numbers.
    Text,
    /// A plain number.
    Count,
    /// Nanoseconds.
    Nanos,
    /// Nanoseconds, shown as microseconds.
    Micros,
    /// Nanoseconds, shown as milliseconds.
    Millis,
    /// A share of 1, shown in per cent.
    Percent,
    Bytes,
    /// How many times as much.
    Factor,
    /// So often per iteration.
    Rate,
    /// A number with three digits that count; the head of its column has the unit.
    Plain,
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Nothing,
    Text(String),
    /// A text that is expected: people need not see a column of it.
    Usual(String),
    Number(u64),
    /// Not a whole number.
    Decimal(f64),
    Share(f64),
}

impl Column {
    pub const fn new(name: &'static str, head: &'static str, unit: Unit) -> Self {
        Column { name, head, unit, optional: false, alarm: false }
    }

    pub const fn optional(self) -> Self {
        Column { optional: true, ..self }
    }

    pub const fn alarm(self) -> Self {
        Column { alarm: true, ..self }
    }
}

impl Cell {
    /// Whether there is nothing to say.
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
