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

impl LiveColumn {
    pub fn number(title: &'static str, rank: u8) -> Self {
        LiveColumn { title, rank, is_text: false }
    }

    pub fn text(title: &'static str, rank: u8) -> Self {
        LiveColumn { title, rank, is_text: true }
    }
}
