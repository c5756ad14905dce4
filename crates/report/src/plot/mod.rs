//! Plots as SVG: one file, no script, no font of its own.
//!
//! A [`Sheet`] holds panels, one below the other. A panel is [`Bars`] (one value each, with the limit that physics sets as a
//! line across the bar) or [`Lines`] (values over numbers, limits dashed).

mod axis;
mod bars;
mod lines;
mod svg;

pub use axis::Axis;
pub use bars::{Bar, Bars, Group};
pub use lines::{Line, Lines, Style};
use svg::{Anchor, Svg};

/// Everything of a plot is drawn for this width, in pixels; an SVG scales.
const WIDTH: f64 = 880.0;
const MARGIN: f64 = 24.0;

/// A file with panels.
#[derive(Debug, Clone, Default)]
pub struct Sheet {
    title: String,
    lines: Vec<String>,
    panels: Vec<Panel>,
}

#[derive(Debug, Clone)]
enum Panel {
    Bars(Bars),
    Lines(Lines),
}

impl Sheet {
    /// An empty sheet.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Self {
        Sheet { title: title.into(), ..Sheet::default() }
    }

    /// A line below the title: the machine, the parameters.
    #[must_use]
    pub fn line(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    /// Adds a panel of bars.
    #[must_use]
    pub fn bars(mut self, bars: Bars) -> Self {
        self.panels.push(Panel::Bars(bars));
        self
    }

    /// Adds a panel of lines.
    #[must_use]
    pub fn lines(mut self, lines: Lines) -> Self {
        self.panels.push(Panel::Lines(lines));
        self
    }

    /// The whole file.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let mut svg = Svg::default();
        let mut y = MARGIN + 16.0;
        svg.text(MARGIN, y, Anchor::Start, "title", &self.title);
        y += 6.0;
        for line in &self.lines {
            y += 16.0;
            svg.text(MARGIN, y, Anchor::Start, "talk", line);
        }
        for panel in &self.panels {
            y += 30.0;
            y = match panel {
                Panel::Bars(bars) => bars.draw(&mut svg, y),
                Panel::Lines(lines) => lines.draw(&mut svg, y),
            };
        }
        svg.finish(WIDTH, y + MARGIN, &self.title)
    }
}

/// A number for people: three digits that count, thousands apart.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let size = value.abs();
    let digits = match size {
        size if size >= 99.95 || size == 0.0 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        size if size >= 0.09995 => 3,
        _ => return format!("{value:.1e}"),
    };
    let text = format!("{value:.digits$}");
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let mut apart = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) && whole.len() > 4 {
            // A thin space that does not break.
            apart.push('\u{202f}');
        }
        apart.push(digit);
    }
    let rest = rest.trim_end_matches('0');
    if rest.is_empty() { format!("{sign}{apart}") } else { format!("{sign}{apart}.{rest}") }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_have_three_digits_that_count() {
        let cases = [
            (0.0, "0"),
            (8.4444, "8.44"),
            (20.0, "20"),
            (99.96, "100"),
            (157_000.4, "157\u{202f}000"),
            (1000.0, "1000"),
            (-12_345.0, "-12\u{202f}345"),
            (0.25, "0.25"),
            (0.000_12, "1.2e-4"),
            (f64::NAN, "-"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text, "{value}");
        }
    }
}
