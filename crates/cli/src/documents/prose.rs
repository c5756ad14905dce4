//! Prose in Markdown, for terminals: paragraphs are filled to a width, tables are aligned.

/// Returns the lines of a Markdown text, filled to `width` characters. Fenced code stays as it is, without
/// its fences and indented; of a table, the last column is broken.
pub fn filled(markdown: &str, width: usize) -> Vec<String> {
    let mut lines = markdown.lines().peekable();
    let mut out = Vec::new();
    while let Some(line) = lines.next() {
        if line.trim_start().starts_with("```") {
            let code = lines.by_ref().take_while(|line| !line.trim_start().starts_with("```"));
            out.extend(code.map(|line| format!("    {line}").trim_end().to_string()));
        } else if line.starts_with('|') {
            let mut rows = vec![cells(line)];
            while let Some(line) = lines.next_if(|line| line.starts_with('|')) {
                rows.push(cells(line));
            }
            out.extend(table(&rows, width));
        } else if line.trim().is_empty() || line.starts_with('#') {
            out.push(line.trim_start_matches('#').trim().to_string());
        } else {
            let mut paragraph = plain(line);
            let indent = " ".repeat(marker(&paragraph));
            while let Some(line) = lines.next_if(|line| continues(line)) {
                paragraph += " ";
                paragraph += &plain(line.trim_start());
            }
            let parts = broken(&paragraph, width.saturating_sub(indent.len()));
            let first = parts.iter().take(1).cloned();
            out.extend(first.chain(parts.iter().skip(1).map(|part| format!("{indent}{part}"))));
        }
    }
    out
}

/// Whether the line belongs to the paragraph before it.
fn continues(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && marker(line) == 0 && !["|", "```", "#"].iter().any(|start| line.starts_with(start))
}

/// Length of the mark of a list's item with the blank after it; 0 for other lines.
fn marker(line: &str) -> usize {
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    match &line[digits..] {
        rest if digits > 0 && rest.starts_with(". ") => digits + 2,
        rest if digits == 0 && (rest.starts_with("- ") || rest.starts_with("* ")) => 2,
        _ => 0,
    }
}

/// Without the marks of bold text. Code keeps its marks: it may have blanks.
fn plain(text: &str) -> String {
    let is_code = |place: usize| place % 2 == 1;
    let parts = text.split('`').enumerate();
    let parts: Vec<String> = parts
        .map(|(place, part)| if is_code(place) { part.to_string() } else { part.replace("**", "") })
        .collect();
    parts.join("`")
}

/// The cells of a table's row. `\|` is a bar in a cell.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim().trim_start_matches('|').replace("\\|", "\u{0}");
    let line = line.strip_suffix('|').unwrap_or(&line);
    line.split('|').map(|cell| plain(cell.trim()).replace('\u{0}', "|")).collect()
}

fn table(rows: &[Vec<String>], width: usize) -> Vec<String> {
    let is_rule = |row: &Vec<String>| row.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':')));
    let rows: Vec<&Vec<String>> = rows.iter().filter(|row| !is_rule(row)).collect();
    let columns = rows.iter().map(|row| row.len()).max().unwrap_or(0);
    let widest = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| length(cell)).max();
    // No column takes more than a third, so that the last one has room.
    let widths: Vec<usize> =
        (1..columns).map(|column| widest(column - 1).unwrap_or(0).min(width / 3)).collect();
    let room = width.saturating_sub(widths.iter().map(|width| width + 2).sum()).max(width / 3);
    let mut out = Vec::new();
    for row in rows {
        let parts: Vec<Vec<String>> = row
            .iter()
            .enumerate()
            .map(|(column, cell)| broken(cell, widths.get(column).copied().unwrap_or(room)))
            .collect();
        for line in 0..parts.iter().map(Vec::len).max().unwrap_or(0) {
            let mut text = String::new();
            for (column, cell) in parts.iter().enumerate() {
                let part = cell.get(line).map_or("", String::as_str);
                text += part;
                let width = widths.get(column).copied().unwrap_or(0);
                text += &" ".repeat(width.saturating_sub(length(part)) + 2);
            }
            out.push(text.trim_end().to_string());
        }
    }
    out
}

/// Breaks a text at blanks into lines of at most `room` characters. Longer words stay whole.
pub fn broken(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one from the start");
        if line.is_empty() {
            line.push_str(word);
        } else if length(line) + 1 + length(word) <= room {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_string());
        }
    }
    lines
}

/// Number of characters.
pub fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_at_blanks() {
        assert_eq!(broken("one two three", 7), ["one two", "three"]);
        assert_eq!(broken("unbreakable", 3), ["unbreakable"]);
        assert_eq!(broken("", 3), [""]);
    }

    #[test]
    fn paragraphs_are_filled_and_code_is_not() {
        let text =
            "**Level.** One two\nthree `a**b`.\n\n```text\nx  =  y\n```\n- first item\n  goes on\n1. second";
        let expected =
            ["Level. One two", "three `a**b`.", "", "    x  =  y", "- first item", "  goes on", "1. second"];
        assert_eq!(filled(text, 17), expected);
        assert_eq!(filled(text, 60)[0], "Level. One two three `a**b`.");
    }

    #[test]
    fn tables_are_aligned() {
        let text = "| word | meaning |\n|---|:--|\n| `a` | one two three |\n| `\\|\\|` | or |\nAfter.";
        let expected = ["word  meaning", "`a`   one two", "      three", "`||`  or", "After."];
        assert_eq!(filled(text, 15), expected);
    }
}
