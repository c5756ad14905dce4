//! Common parts of charts: size, axes, lines and areas in the colours of the page.

use super::html::Html;
use super::scale::{Scale, Tick};

/// Size of a chart. The browser scales it to the available width.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChartSize {
    pub width: f64,
    pub height: f64,
}

/// Size of a chart in a row of several, or of full width on a narrow screen.
pub(super) const SMALL: ChartSize = ChartSize { width: 400.0, height: 210.0 };
/// Size of a chart of full width on a wide screen.
pub(super) const WIDE: ChartSize = ChartSize { width: 1180.0, height: 240.0 };

const LEFT: f64 = 52.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 30.0;

/// Chart under construction.
pub(super) struct ChartFrame {
    html: Html,
    size: ChartSize,
}

impl ChartFrame {
    pub fn new(size: ChartSize, about: &str) -> Self {
        let mut html = Html::default();
        let view = format!("0 0 {} {}", size.width, size.height);
        html.open("svg", &[("viewBox", &view), ("role", &"img"), ("aria-label", &about)]);
        ChartFrame { html, size }
    }

    /// Returns the height of a chart with this inner height.
    pub fn height_of(inside: f64) -> f64 {
        TOP + inside + BOTTOM
    }

    pub fn x(&self) -> (f64, f64) {
        (LEFT, self.size.width - RIGHT)
    }

    pub fn y(&self) -> (f64, f64) {
        (self.size.height - BOTTOM, TOP)
    }

    pub fn line(&mut self, class: &'static str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(px);
        self.html.shape("line", &[("class", &class), ("x1", &x1), ("y1", &y1), ("x2", &x2), ("y2", &y2)]);
    }

    pub fn text(&mut self, class: &'static str, anchor: &'static str, at: (f64, f64), text: &str) {
        let (x, y) = (px(at.0), px(at.1));
        self.html.open("text", &[("class", &class), ("text-anchor", &anchor), ("x", &x), ("y", &y)]);
        self.html.text(text).close("text");
    }

    pub fn x_axis(&mut self, scale: &Scale, ticks: &[Tick], unit: &str) {
        let (bottom, top) = self.y();
        for (value, text) in ticks {
            let x = scale.place(*value);
            self.line("grid", (x, top), (x, bottom));
            let is_last = x > self.size.width - 30.0;
            self.text(
                "tick",
                if is_last { "end" } else { "middle" },
                (if is_last { x + 8.0 } else { x }, bottom + 14.0),
                text,
            );
        }
        let (left, right) = self.x();
        self.line("axis", (left, bottom), (right, bottom));
        self.text("unit", "end", (right, bottom + 27.0), unit);
    }

    pub fn y_axis(&mut self, scale: &Scale, ticks: &[Tick], unit: &str) {
        let (left, right) = self.x();
        for (value, text) in ticks {
            let y = scale.place(*value);
            self.line("grid", (left, y), (right, y));
            self.text("tick", "end", (left - 5.0, y + 3.5), text);
        }
        self.text("unit", "start", (2.0, 10.0), unit);
    }

    pub fn path(
        &mut self,
        class: &'static str,
        colour: usize,
        points: &[(f64, f64)],
        closed: bool,
        tip: &str,
    ) {
        if points.is_empty() {
            return;
        }
        let mut commands = String::new();
        for (at, (x, y)) in points.iter().enumerate() {
            commands += &format!("{}{} {}", if at == 0 { "M" } else { "L" }, px(*x), px(*y));
        }
        if closed {
            commands.push('Z');
        }
        let class = format!("{class} c{}", colour % COLOURS);
        self.html.open("path", &[("class", &class), ("d", &commands)]);
        self.html.open("title", &[]).text(tip).close("title").close("path");
    }

    pub fn end(mut self) -> Html {
        self.html.close("svg");
        self.html
    }
}

/// Number of colours of the page.
pub(super) const COLOURS: usize = 8;

fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_string)
}
