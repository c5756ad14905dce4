//! Content of a live view, independent of its layout.

/// Title, tables one below the other, and lines below them.
#[derive(Default)]
pub struct LiveView {
    pub title: String,
    pub tables: Vec<LiveTable>,
    pub lines: Vec<String>,
}

/// Columns and rows. Each row has a cell per column.
pub struct LiveTable {
    pub columns: Vec<LiveColumn>,
    pub rows: Vec<Vec<String>>,
}

/// Column of a live table.
pub struct LiveColumn {
    pub title: &'static str,
    /// Columns of the highest rank are dropped first if there is not enough room; rank 0 always stays.
    pub rank: u8,
    pub is_text: bool,
}

/// Builder of a table, with one item per row and the columns so far.
pub struct LiveTableBuilder<T> {
    items: Vec<T>,
    table: LiveTable,
}

impl LiveTable {
    /// Starts a table with a row for each item.
    pub fn of<T>(items: impl IntoIterator<Item = T>) -> LiveTableBuilder<T> {
        let items: Vec<T> = items.into_iter().collect();
        let rows = items.iter().map(|_| Vec::new()).collect();
        LiveTableBuilder { items, table: LiveTable { columns: Vec::new(), rows } }
    }
}

impl<T> LiveTableBuilder<T> {
    /// Adds a column of numbers, made by `cell` from each item.
    pub fn number(self, title: &'static str, rank: u8, cell: impl Fn(&T) -> String) -> Self {
        self.column(LiveColumn { title, rank, is_text: false }, cell)
    }

    /// Adds a column of text.
    pub fn text(self, title: &'static str, rank: u8, cell: impl Fn(&T) -> String) -> Self {
        self.column(LiveColumn { title, rank, is_text: true }, cell)
    }

    /// Returns the table.
    pub fn build(self) -> LiveTable {
        self.table
    }

    fn column(mut self, column: LiveColumn, cell: impl Fn(&T) -> String) -> Self {
        self.table.columns.push(column);
        self.table.rows.iter_mut().zip(&self.items).for_each(|(row, item)| row.push(cell(item)));
        self
    }
}

/// Formats an optional value; `-` for none.
pub(super) fn or_dash<V>(value: Option<V>, cell: impl Fn(V) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), cell)
}
