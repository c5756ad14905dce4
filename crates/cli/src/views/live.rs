//! Layout of a [`LiveView`] on the terminal: the columns and rows that fit, and keys to reach the others.

use crate::documents::{LiveTable, LiveView, counted};
use crate::screen::head_style;
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Paragraph, Row, Table};

/// Gap between two columns.
const GAP: u16 = 2;
/// Width of the widest cell.
const WIDEST: usize = 32;

/// Visible part of a view.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ViewState {
    /// Table that the arrow keys scroll, counted from the last one, which has the most rows.
    table: usize,
    /// First visible row of each table, in the same order.
    rows: Vec<usize>,
}

impl ViewState {
    /// Handles a key. Returns whether the view uses it.
    pub fn key(&mut self, key: KeyCode) -> bool {
        const PAGE: usize = 10;
        let mut none = 0;
        let row = self.rows.get_mut(self.table).unwrap_or(&mut none);
        match key {
            KeyCode::Down => *row += 1,
            KeyCode::Up => *row = row.saturating_sub(1),
            KeyCode::PageDown => *row += PAGE,
            KeyCode::PageUp => *row = row.saturating_sub(PAGE),
            KeyCode::Home => *row = 0,
            KeyCode::Tab => self.table += 1,
            _ => return false,
        }
        true
    }

    /// Limits the rows to those that can be first, `most` of each table from the last one on, and selects
    /// the next table that can be scrolled.
    fn limit(&mut self, most: &[usize]) {
        self.rows.resize(most.len(), 0);
        self.rows.iter_mut().zip(most).for_each(|(row, most)| *row = (*row).min(*most));
        let after = (0..most.len()).map(|step| (self.table + step) % most.len());
        self.table = after.clone().find(|&at| most[at] > 0).or_else(|| after.clone().next()).unwrap_or(0);
    }
}

/// Returns the view as text, for output that is not a terminal.
pub fn plain(view: &LiveView) -> String {
    let mut text = printable(&view.title) + "\n";
    for table in &view.tables {
        let cells = |row: &[String]| row.iter().map(|cell| printable(cell)).collect::<Vec<_>>();
        let head: Vec<String> = table.columns.iter().map(|column| column.title.to_owned()).collect();
        let rows: Vec<Vec<String>> =
            std::iter::once(head).chain(table.rows.iter().map(|row| cells(row))).collect();
        let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
        for row in &rows {
            let mut line = String::new();
            for ((cell, column), width) in row.iter().zip(&table.columns).zip(&widths) {
                let blanks = " ".repeat(width - cell.chars().count());
                line +=
                    &if column.is_text { format!("{cell}{blanks}  ") } else { format!("{blanks}{cell}  ") };
            }
            text += line.trim_end();
            text.push('\n');
        }
        text.push('\n');
    }
    view.lines.iter().for_each(|line| text += &(printable(line) + "\n"));
    text
}

/// Draws the view. Limits the scroll position in `state` to the existing rows.
pub fn render(frame: &mut Frame<'_>, view: &LiveView, state: &mut ViewState) {
    let area = frame.area();
    let last = view.tables.len().saturating_sub(1);
    let mut sizes = vec![Constraint::Length(1)];
    for (at, height) in heights(view, area.height).into_iter().enumerate() {
        // The last table gets the remaining rows.
        sizes.push(if at == last { Constraint::Fill(1) } else { Constraint::Length(height) });
        sizes.push(Constraint::Length(1));
    }
    sizes.push(Constraint::Length(u16::try_from(view.lines.len()).unwrap_or(u16::MAX)));
    let parts = Layout::vertical(sizes).split(area);
    frame.render_widget(Line::styled(view.title.as_str(), head_style()), parts[0]);
    let rooms: Vec<usize> =
        (0..=last).map(|at| usize::from(parts[1 + 2 * at].height.saturating_sub(1))).collect();
    // A table of which no row is visible shows none of the others either.
    let most = |(table, room): (&LiveTable, &usize)| match room {
        0 => 0,
        room => table.rows.len().saturating_sub(*room),
    };
    let mosts: Vec<usize> = view.tables.iter().zip(&rooms).map(most).rev().collect();
    state.limit(&mosts);
    for (at, table) in view.tables.iter().enumerate() {
        let (body, foot) = (parts[1 + 2 * at], parts[2 + 2 * at]);
        let room = rooms[at];
        let beyond = table.rows.len().saturating_sub(room);
        let is_selected = at == last - state.table;
        let first = state.rows[last - at];
        let columns_left_out = render_table(frame, body, table, first);
        let mut notes = Vec::new();
        if at == last {
            notes.push("q quits".to_owned());
        }
        if room == 0 && beyond > 0 {
            notes.push(format!("{} below", counted(beyond as u64, "row")));
        } else if beyond > 0 {
            let (from, to) = (first + 1, first + room);
            let how = if is_selected { "arrows scroll" } else { "Tab and arrows scroll" };
            notes.push(format!("rows {from} to {to} of {}, {how}", table.rows.len()));
        }
        if columns_left_out > 0 {
            notes.push(format!("{} hidden", counted(columns_left_out as u64, "column")));
        }
        frame.render_widget(Line::raw(notes.join("; ")), foot);
    }
    let lines: Text<'_> = view.lines.iter().map(|line| Line::raw(printable(line))).collect();
    frame.render_widget(Paragraph::new(lines), parts[parts.len() - 1]);
}

/// Heights of the tables with their heads. The highest ones lose rows until the last one has room for some.
fn heights(view: &LiveView, height: u16) -> Vec<u16> {
    /// Rows of the last table that it always has, and of the others, with their heads.
    const LAST: u16 = 4;
    const OTHERS: u16 = 2;
    let whole = |rows: usize| u16::try_from(1 + rows).unwrap_or(u16::MAX).min((height / 2).max(OTHERS));
    let mut heights: Vec<u16> = view.tables.iter().map(|table| whole(table.rows.len())).collect();
    let Some((last, others)) = heights.split_last_mut() else { return heights };
    *last = (*last).min(LAST);
    let besides = 1 + view.tables.len() + view.lines.len();
    let room = height.saturating_sub(u16::try_from(besides).unwrap_or(u16::MAX)).saturating_sub(*last);
    while others.iter().map(|height| u32::from(*height)).sum::<u32>() > u32::from(room) {
        match others.iter_mut().filter(|height| **height > OTHERS).max() {
            Some(highest) => *highest -= 1,
            None => break,
        }
    }
    heights
}

/// Draws a table. Returns the number of columns that do not fit.
fn render_table(frame: &mut Frame<'_>, area: Rect, table: &LiveTable, first: usize) -> usize {
    let columns = fit(table, area.width);
    let cell = |at: usize, text: &str| {
        let line = Line::raw(shortened(&printable(text)));
        Cell::new(if table.columns[at].is_text { line } else { line.right_aligned() })
    };
    let titles = Row::new(columns.iter().map(|(at, _)| cell(*at, table.columns[*at].title)));
    let shown = table.rows.iter().skip(first).take(usize::from(area.height));
    let rows = shown.map(|row| Row::new(columns.iter().map(|(at, _)| cell(*at, &row[*at]))));
    let widths = columns.iter().map(|(_, width)| Constraint::Length(*width));
    frame
        .render_widget(Table::new(rows, widths).header(titles.style(head_style())).column_spacing(GAP), area);
    table.columns.len() - columns.len()
}

/// A text with a mark at its end if it is longer than the widest column.
fn shortened(text: &str) -> String {
    if Line::raw(text).width() <= WIDEST {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if Line::raw(kept.as_str()).width() >= WIDEST {
            kept.pop();
            break;
        }
    }
    kept + "…"
}

/// Replaces control characters: any program can choose the names of its threads.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Returns the columns that fit, and their widths. Columns of the highest rank are dropped first.
fn fit(table: &LiveTable, width: u16) -> Vec<(usize, u16)> {
    let widest = |at: usize| {
        let cells = table.rows.iter().map(|row| Line::raw(row[at].as_str()).width());
        cells.chain([table.columns[at].title.len()]).max().unwrap_or(0).min(WIDEST) as u16
    };
    let mut columns: Vec<(usize, u16)> = (0..table.columns.len()).map(|at| (at, widest(at))).collect();
    loop {
        let used: u16 = columns.iter().map(|(_, width)| width + GAP).sum();
        let rank = |at: usize| table.columns[columns[at].0].rank;
        let least = (0..columns.len()).max_by_key(|at| rank(*at)).filter(|at| rank(*at) > 0);
        match least {
            Some(at) if used > width + GAP => columns.remove(at),
            _ => return columns,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::noise_screen;
    use onbeat::trace::span::Class;
    use onbeat_noise::CpuNoise;
    use onbeat_noise::record::{CauseTotal, ClassTotal};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn cpus(count: u32) -> Vec<CpuNoise> {
        let cause = |class, name: &str, total_ns| CauseTotal {
            class,
            name: name.into(),
            count: 7,
            total_ns,
            max_ns: 900_000,
        };
        let one = |cpu| {
            let mut noise = CpuNoise { cpu, periods: 12, runtime_ns: 12_000_000_000, ..CpuNoise::default() };
            noise.noise_ns = 30_000_000;
            noise.parts.irq = ClassTotal { count: 12_000, ns: 10_000_000 };
            noise.parts.unexplained_ns = 5_000_000;
            noise.causes = vec![
                cause(Class::Thread, "kworker/0:1\u{1b}[2J", 15_000_000),
                cause(Class::Irq, "local_timer", 10_000_000),
            ];
            noise
        };
        (0..count).map(one).collect()
    }

    fn drawn(cpus: &[CpuNoise], width: u16, height: u16, state: &mut ViewState) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        let view = noise_screen(cpus, 12_000_000_000);
        terminal.draw(|frame| render(frame, &view, state)).expect("it is drawn");
        terminal.backend().to_string()
    }

    #[test]
    fn a_wide_terminal_shows_rows_and_causes() {
        insta::assert_snapshot!(drawn(&cpus(2), 140, 14, &mut ViewState::default()));
    }

    #[test]
    fn long_texts_end_with_a_mark() {
        let exact = "x".repeat(WIDEST);
        assert_eq!((shortened(&exact), shortened("ab")), (exact.clone(), "ab".to_owned()));
        assert_eq!(shortened(&(exact.clone() + "y")), "x".repeat(WIDEST - 1) + "…");
        assert!(Line::raw(shortened(&"宽".repeat(WIDEST))).width() <= WIDEST);
    }

    #[test]
    fn a_small_one_says_what_it_leaves_out() {
        insta::assert_snapshot!(drawn(&cpus(12), 44, 12, &mut ViewState::default()));
    }

    #[test]
    fn keys_show_the_rest() {
        let mut state = ViewState::default();
        for key in [KeyCode::PageDown, KeyCode::PageDown, KeyCode::PageDown, KeyCode::Up] {
            assert!(state.key(key));
            drawn(&cpus(12), 44, 12, &mut state);
        }
        assert!(drawn(&cpus(12), 44, 12, &mut state).contains("of 36, arrows"));
        assert!(state.key(KeyCode::Tab) && !state.key(KeyCode::Char('x')));
        assert!(drawn(&cpus(12), 44, 12, &mut state).contains("of 12, arrows"));
        // Back at the first one, which is where it was.
        assert!(state.key(KeyCode::Tab));
        assert!(drawn(&cpus(12), 44, 12, &mut state).contains("of 36, arrows"));
    }

    #[test]
    fn tab_passes_over_tables_without_more_rows() {
        let mut state = ViewState::default();
        // All CPUs fit, and not all causes.
        let text = drawn(&cpus(5), 100, 14, &mut state);
        assert!(text.contains("of 15, arrows") && !text.contains("Tab"), "{text}");
        for _ in 0..2 {
            assert!(state.key(KeyCode::Tab) && state.key(KeyCode::Down));
            let text = drawn(&cpus(5), 100, 14, &mut state);
            assert!(text.contains("of 15, arrows"), "{text}");
        }
    }

    #[test]
    fn no_size_makes_it_fall() {
        for (width, height) in [(1, 1), (2, 3), (300, 2), (7, 100)] {
            drawn(&cpus(3), width, height, &mut ViewState::default());
        }
    }
}
