//! What is shown while something is under way, before anybody lays it out.

/// A title, tables one below the other, and lines below them.
#[derive(Default)]
pub struct LiveView {
    pub title: String,
    pub tables: Vec<LiveTable>,
    pub lines: Vec<String>,
}

/// Columns, and a cell per column in each row.
pub struct LiveTable {
    pub columns: Vec<LiveColumn>,
    pub rows: Vec<Vec<String>>,
}

/// One column.
pub struct LiveColumn {
    pub title: &'static str,
    /// Where there is no room for all, those of the highest rank are left out first; 0 stays.
    pub rank: u8,
    pub is_text: bool,
}

/// A table that is being made: what its rows are of, one each, and the columns so far.
pub struct Making<T> {
    items: Vec<T>,
    table: LiveTable,
}

impl LiveTable {
    /// A row for each of these.
    pub fn of<T>(items: impl IntoIterator<Item = T>) -> Making<T> {
        let items: Vec<T> = items.into_iter().collect();
        let rows = items.iter().map(|_| Vec::new()).collect();
        Making { items, table: LiveTable { columns: Vec::new(), rows } }
    }
}

impl<T> Making<T> {
    /// A further column with numbers, and how a row's cell of it is made.
    pub fn number(self, title: &'static str, rank: u8, cell: impl Fn(&T) -> String) -> Self {
        self.column(LiveColumn { title, rank, is_text: false }, cell)
    }

    /// The same with words.
    pub fn text(self, title: &'static str, rank: u8, cell: impl Fn(&T) -> String) -> Self {
        self.column(LiveColumn { title, rank, is_text: true }, cell)
    }

    /// The table.
    pub fn made(self) -> LiveTable {
        self.table
    }

    fn column(mut self, column: LiveColumn, cell: impl Fn(&T) -> String) -> Self {
        self.table.columns.push(column);
        self.table.rows.iter_mut().zip(&self.items).for_each(|(row, item)| row.push(cell(item)));
        self
    }
}

/// A cell of something that may not be there.
pub(super) fn or_dash<V>(value: Option<V>, cell: impl Fn(V) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), cell)
}
