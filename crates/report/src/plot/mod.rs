//! Plots as self-contained SVG, without scripts and fonts.
//!
//! A [`Sheet`] has panels, one below the other. A panel is [`Bars`] (a physical limit is a line across a bar)
//! or [`Lines`] (limits are dashed).

mod axis;
mod bars;
mod lines;
mod svg;

pub use axis::Axis;
pub use bars::{Bar, Bars, Group};
pub use lines::{Line, Lines, Style};
use svg::{Svg, TextAnchor};

/// Width of a plot in pixels. Viewers scale it.
const WIDTH: f64 = 880.0;
const MARGIN: f64 = 24.0;

/// Plot with one or more panels.
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
    /// Creates an empty sheet.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Self {
        Sheet { title: title.into(), ..Sheet::default() }
    }

    /// Adds a line below the title, e.g. the machine or the parameters.
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

    /// Returns the text of the file.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let mut svg = Svg::default();
        let mut y = MARGIN + 16.0;
        svg.text(MARGIN, y, TextAnchor::Start, "title", &self.title);
        y += 6.0;
        for line in &self.lines {
            y += 16.0;
            svg.text(MARGIN, y, TextAnchor::Start, "talk", line);
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

/// Formats a number with three significant digits and spaces between thousands.
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
            // A narrow no-break space.
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
