//! Writer of SVG.

use std::fmt::Write;

/// Drawing. Coordinates are pixels from the left and from the top.
#[derive(Default)]
pub(super) struct Svg {
    body: String,
}

/// Part of a text that is at its coordinates.
#[derive(Debug, Clone, Copy)]
pub(super) enum TextAnchor {
    Start,
    Middle,
    End,
}

/// Colours for every kind of colour vision (Okabe and Ito). Grey and brown replace black, and yellow, which
/// is hard to see on white.
pub(super) const COLOURS: [&str; 8] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#555555", "#8c564b"];

const STYLE: &str = "\
text{font:12px system-ui,'DejaVu Sans',Arial,sans-serif;fill:#222}\
.title{font-size:17px;font-weight:600}\
.panel{font-size:14px;font-weight:600}\
.talk{fill:#555}\
.number{fill:#222}\
.tick{fill:#555;font-size:11px}\
.grid{stroke:#e2e2e2;stroke-width:1}\
.axis{stroke:#888;stroke-width:1}\
.range{stroke:#222;stroke-width:1.2}\
.limit{stroke:#c00000;stroke-width:2.5}\
.dashed{stroke:#c00000;stroke-width:1.5;stroke-dasharray:6 4}\
.limits{fill:#c00000;font-size:11px}";

impl Svg {
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.put(format_args!(
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        ));
    }

    /// Draws a rectangle with a tooltip.
    pub fn rectangle(&mut self, at: (f64, f64), size: (f64, f64), colour: &str, tip: &str) {
        let ((x, y), (width, height)) = (at, size);
        let tip = escaped(tip);
        self.put(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"><title>{tip}</title></rect>"
        ));
    }

    pub fn circle(&mut self, at: (f64, f64), radius: f64, colour: &str, hollow: bool, tip: &str) {
        let (x, y) = at;
        let tip = escaped(tip);
        let (fill, edge) = if hollow { ("#fff", colour) } else { (colour, "#fff") };
        let width = if hollow { " stroke-width=\"2\"" } else { "" };
        self.put(format_args!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\" fill=\"{fill}\" stroke=\"{edge}\"{width}><title>{tip}</title></circle>"
        ));
    }

    pub fn curve(&mut self, points: &[(f64, f64)], colour: &str, dashed: bool) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let points = points.join(" ");
        let dash = if dashed { " stroke-dasharray=\"6 4\"" } else { "" };
        self.put(format_args!(
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>"
        ));
    }

    pub fn text(&mut self, x: f64, y: f64, anchor: TextAnchor, class: &str, text: &str) {
        let (anchor, text) = (anchor.word(), escaped(text));
        self.put(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }

    /// Writes a vertical text, centred at its coordinates.
    pub fn upright(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let text = escaped(text);
        self.put(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 {x:.1} {y:.1})\">{text}</text>"
        ));
    }

    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.body, "{element}").expect("a string takes all");
    }

    pub fn finish(self, width: f64, height: f64, title: &str) -> String {
        let (title, body) = (escaped(title), self.body);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" role=\"img\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{body}</svg>\n"
        )
    }
}

impl TextAnchor {
    fn word(self) -> &'static str {
        match self {
            TextAnchor::Start => "start",
            TextAnchor::Middle => "middle",
            TextAnchor::End => "end",
        }
    }
}

/// Estimates the width of a label in pixels; the exact one depends on the font.
pub(super) fn width_of(text: &str) -> f64 {
    text.chars().count() as f64 * 6.9
}

/// Escapes text for XML, and removes characters that XML forbids.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\t' | '\n' | '\r' => safe.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => safe.push(c),
        }
    }
    safe
}
