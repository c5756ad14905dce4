//! Tables as text: aligned columns, units in the header, `-` for no value.

use super::Renderer;
use crate::documents::{Cell, Column, Document, Table, Unit, broken, length};

pub struct Human {
    pub colour: bool,
    /// Columns of the terminal; `None` if the text goes elsewhere.
    pub width: Option<usize>,
}

/// Longest line, if its last column can be broken at spaces.
pub const WIDTH: usize = 110;
/// Least width of the last column.
const LAST: usize = 30;
/// Indent of the last column below the others.
const BELOW: usize = 4;

const BOLD: &str = "1";
const DIM: &str = "2";
const ALARM: &str = "33";

impl Renderer for Human {
    fn text(&self, document: &Document) -> String {
        let mut parts = Vec::new();
        let mut head = document.head.iter().map(|line| printable(line));
        let title = head.next().map(|title| self.painted(BOLD, &title));
        parts.push(title.into_iter().chain(head).map(|line| line + "\n").collect());
        parts.extend(document.tables.iter().filter_map(|table| self.table(table)));
        parts.push(document.tail.iter().map(|line| printable(line) + "\n").collect());
        parts.retain(|part: &String| !part.is_empty());
        parts.join("\n")
    }
}

/// Layout of a column.
struct ColumnLayout<'t> {
    column: &'t Column,
    place: usize,
    head: String,
    width: usize,
}

impl Human {
    fn painted(&self, code: &str, text: &str) -> String {
        if self.colour && !text.trim().is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_string()
        }
    }

    /// Returns the text of a table; `None` without rows, or without a header of the first column.
    fn table(&self, table: &Table) -> Option<String> {
        if table.rows.is_empty() || table.columns.first()?.head.is_empty() {
            return None;
        }
        let rows = table.shown();
        let mut columns = columns(table, &rows);
        let left_out = self.leave_out(&mut columns);
        let (last, others) = columns.split_last()?;
        let used: usize = others.iter().map(|shown| shown.width + 2).sum();
        let whole = WIDTH.min(self.width.unwrap_or(WIDTH));
        // Where the last column has no room beside the others on a terminal, it stands below them.
        let is_below = self.width.is_some() && whole < used + LAST && last.width > whole.saturating_sub(used);
        let (room, indent) = match is_below {
            true => (whole.saturating_sub(BELOW).max(LAST), BELOW),
            false => (whole.saturating_sub(used).max(LAST), used),
        };
        let mut text = String::new();
        let heads = if is_below { others } else { &columns };
        let head: Vec<String> =
            heads.iter().map(|shown| aligned(&shown.head, shown, shown.width.min(room))).collect();
        text += self.painted(DIM, head.join("  ").trim_end()).as_str();
        text.push('\n');
        for row in rows.iter() {
            let mut line = String::new();
            for shown in others {
                line += &self.cell(&row[shown.place], shown, shown.width);
                line += "  ";
            }
            if is_below {
                text += line.trim_end();
                text.push('\n');
                line = " ".repeat(indent);
            }
            for (number, part) in broken(&cell_text(&row[last.place], last.column), room).iter().enumerate() {
                let part = aligned(part, last, last.width.min(room));
                let part =
                    if alarms(&row[last.place], last.column) { self.painted(ALARM, &part) } else { part };
                if number > 0 {
                    line = " ".repeat(indent);
                }
                line += &part;
                text += line.trim_end();
                text.push('\n');
            }
        }
        if !left_out.is_empty() {
            text += &format!("({} on a wider terminal)\n", left_out.join(", "));
        }
        Some(text)
    }

    /// Takes columns away until the others fit, and returns their headers.
    fn leave_out(&self, columns: &mut Vec<ColumnLayout<'_>>) -> Vec<String> {
        let Some(width) = self.width else { return Vec::new() };
        let mut left_out = Vec::new();
        while columns.iter().map(|shown| shown.width + 2).sum::<usize>() > width + 2 {
            let spare = (0..columns.len()).max_by_key(|at| columns[*at].column.spare);
            let Some(at) = spare.filter(|at| columns[*at].column.spare > 0) else { break };
            left_out.push(columns.remove(at).head);
        }
        left_out
    }

    fn cell(&self, cell: &Cell, shown: &ColumnLayout<'_>, width: usize) -> String {
        let text = aligned(&cell_text(cell, shown.column), shown, width);
        if alarms(cell, shown.column) { self.painted(ALARM, &text) } else { text }
    }
}

fn columns<'t>(table: &'t Table, rows: &[Vec<Cell>]) -> Vec<ColumnLayout<'t>> {
    let wanted =
        |place: usize, column: &Column| !column.optional || rows.iter().any(|row| !row[place].is_void());
    let columns = table.columns.iter().enumerate().filter(|&(place, column)| wanted(place, column));
    columns
        .map(|(place, column)| {
            let head = head_text(column);
            let widths = rows.iter().map(|row| length(&cell_text(&row[place], column)));
            let width = widths.chain([length(&head)]).max().unwrap_or(0);
            ColumnLayout { column, place, head, width }
        })
        .collect()
}

fn head_text(column: &Column) -> String {
    let unit = match column.unit {
        Unit::Text | Unit::Count | Unit::Factor | Unit::Rate | Unit::Plain => "",
        Unit::Nanos => " ns",
        Unit::Micros => " µs",
        Unit::Millis => " ms",
        Unit::Percent => " %",
        Unit::Bytes => " B",
    };
    format!("{}{unit}", column.head)
}

fn cell_text(cell: &Cell, column: &Column) -> String {
    match (cell, column.unit) {
        (Cell::Nothing, _) => "-".to_string(),
        (Cell::Text(text), _) if text.is_empty() => "-".to_string(),
        (Cell::Text(text) | Cell::Usual(text), _) => printable(text),
        (Cell::Number(ns), Unit::Micros) => format!("{:.3}", *ns as f64 / 1e3),
        (Cell::Number(ns), Unit::Millis) => format!("{:.3}", *ns as f64 / 1e6),
        (Cell::Number(number), _) => number.to_string(),
        (Cell::Decimal(number), _) if !number.is_finite() => "-".to_string(),
        (Cell::Decimal(ns), Unit::Micros) => format!("{:.3}", ns / 1e3),
        (Cell::Decimal(ns), Unit::Millis) => format!("{:.3}", ns / 1e6),
        (Cell::Decimal(rate), Unit::Rate) => format!("{rate:.4}"),
        (Cell::Decimal(number), Unit::Plain) if *number < 9.995 => format!("{number:.2}"),
        (Cell::Decimal(factor), Unit::Factor) if *factor < 2.0 => format!("{factor:.2}"),
        (Cell::Decimal(number), _) => format!("{number:.1}"),
        (Cell::Share(share), _) => format!("{:.2}", share * 100.0),
    }
}

fn alarms(cell: &Cell, column: &Column) -> bool {
    column.alarm && !cell.is_void()
}

/// Aligns text to the left and numbers to the right.
fn aligned(text: &str, shown: &ColumnLayout<'_>, width: usize) -> String {
    let blanks = " ".repeat(width.saturating_sub(length(text)));
    if shown.column.unit == Unit::Text { format!("{text}{blanks}") } else { format!("{blanks}{text}") }
}

/// Replaces control characters, so that text from a file cannot control the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(colour: bool) -> String {
        let table = Table {
            columns: vec![
                Column::new("operator", "operator", Unit::Text),
                Column::new("max_ns", "max", Unit::Micros),
                Column::new("late", "late", Unit::Count).alarm(),
                Column::new("copies", "copies", Unit::Count).optional(),
            ],
            rows: vec![
                vec!["iq".into(), Cell::Number(1_234), 0.into(), 0.into()],
                vec!["channel→".into(), Cell::Nothing, 2.into(), Cell::Nothing],
            ],
        };
        let head = vec!["fm: ended".to_string(), "by \u{1b}[2Jitself".to_string()];
        let document =
            Document { head, tables: vec![table], tail: vec!["files in out".to_string()], json: ().into() };
        Human { colour, width: None }.text(&document)
    }

    #[test]
    fn columns_are_aligned_and_the_empty_ones_left_out() {
        let expected = "\
fm: ended
by  [2Jitself

operator  max µs  late
iq         1.234     0
channel→       -     2

files in out
";
        assert_eq!(text(false), expected);
    }

    #[test]
    fn a_narrow_terminal_has_fewer_columns() {
        let table = Table {
            columns: vec![
                Column::new("path", "path", Unit::Text),
                Column::new("median_ns", "median", Unit::Millis),
                Column::new("p99_ns", "p99", Unit::Millis).spare(2),
                Column::new("core", "core", Unit::Percent).spare(1),
                Column::new("late", "late", Unit::Count),
            ],
            rows: vec![vec!["a → b".into(), 1_000_000.into(), 2_000_000.into(), Cell::Share(0.5), 3.into()]],
        };
        let text = |width| Human { colour: false, width }.table(&table).unwrap();
        let whole = "path   median ms  p99 ms  core %  late\na → b      1.000   2.000   50.00     3\n";
        assert_eq!((text(None).as_str(), text(Some(38)).as_str()), (whole, whole));
        let narrow =
            "path   median ms  core %  late\na → b      1.000   50.00     3\n(p99 ms on a wider terminal)\n";
        assert_eq!(text(Some(37)), narrow);
        assert!(text(Some(5)).ends_with("(p99 ms, core % on a wider terminal)\n"), "{}", text(Some(5)));
    }

    #[test]
    fn a_long_last_column_stands_below_the_others_on_a_narrow_terminal() {
        let table = Table {
            columns: vec![
                Column::new("parameter", "parameter", Unit::Text),
                Column::new("description", "description", Unit::Text),
            ],
            rows: vec![vec!["a".repeat(30).into(), "one two three four five six seven eight".into()]],
        };
        let text = |width| Human { colour: false, width: Some(width) }.table(&table).unwrap();
        let name = "a".repeat(30);
        let below = format!("parameter\n{name}\n    one two three four five six\n    seven eight\n");
        assert_eq!(text(36), below);
        assert!(text(80).starts_with("parameter                       description\n"), "{}", text(80));
    }

    #[test]
    fn the_rest_of_a_long_table_is_one_row() {
        let columns = [
            Column::new("cause", "cause", Unit::Text).first(2),
            Column::new("misses", "misses", Unit::Count),
            Column::new("share", "of all", Unit::Percent),
            Column::new("lost_ns", "lost", Unit::Millis),
            Column::new("finding", "fix", Unit::Text),
        ];
        let row = |number: u64| {
            vec![
                format!("cause {number}").into(),
                number.into(),
                Cell::Share(number as f64 / 10.0),
                Cell::Number(number * 1_000_000),
                "nohz-full".into(),
            ]
        };
        let table = |rows: u64| Table {
            columns: columns.iter().map(|column| Column { ..*column }).collect(),
            rows: (1..=rows).map(row).collect(),
        };
        let text = |rows| Human { colour: false, width: None }.table(&table(rows)).unwrap();
        assert!(text(3).contains("cause 3"), "a single row is shown itself");
        let expected = "\
cause    misses  of all %  lost ms  fix
cause 1       1     10.00    1.000  nohz-full
cause 2       2     20.00    2.000  nohz-full
2 more        7     70.00    7.000  -
";
        assert_eq!(text(4), expected);
    }

    #[test]
    fn colour_is_for_what_stands_out() {
        let text = text(true);
        assert!(
            text.contains("\u{1b}[1mfm: ended\u{1b}[0m") && text.contains("\u{1b}[33m   2\u{1b}[0m"),
            "{text:?}"
        );
    }
}
