//! Line charts.

use super::axis::{Axis, AxisScale};
use super::svg::{COLOURS, Svg, TextAnchor, width_of};
use super::{MARGIN, WIDTH, number};

/// Panel with lines and horizontal limits.
#[derive(Debug, Clone)]
pub struct Lines {
    /// Title above the panel.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Lines in the order of the legend. Those with the same `colour` belong together.
    pub lines: Vec<Line>,
    /// Limits: values of `y` and their names, drawn as dashed lines.
    pub limits: Vec<(f64, String)>,
}

/// Line of a panel.
#[derive(Debug, Clone)]
pub struct Line {
    /// Name in the legend. A line with an empty name is not in the legend.
    pub name: String,
    /// Number of the colour. After the last one the colours repeat, with hollow points.
    pub colour: usize,
    /// Style of the line.
    pub style: Style,
    /// Points from left to right.
    pub points: Vec<(f64, f64)>,
}

/// Style of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Line from point to point, e.g. for a formula.
    Curve,
    /// Dashed line, e.g. for a limit that is not constant.
    Dashed,
    /// Points only, e.g. for measurements.
    Points,
    /// Points and the line between them.
    Both,
}

const HEIGHT: f64 = 300.0;
const LEFT: f64 = 70.0;
const LEGEND: f64 = 200.0;

impl Lines {
    /// Draws the panel with its top at `y`. Returns its bottom.
    pub(super) fn draw(&self, svg: &mut Svg, y: f64) -> f64 {
        let (left, right) = (MARGIN + LEFT, WIDTH - MARGIN - LEGEND);
        let (top, bottom) = (y + 16.0, y + 16.0 + HEIGHT);
        let points = || self.lines.iter().flat_map(|line| line.points.iter().copied());
        let x_scale = self.x.fit(points().map(|(x, _)| x), left, right);
        let values = points().map(|(_, y)| y).chain(self.limits.iter().map(|(limit, _)| *limit));
        let y_scale = self.y.fit(values, bottom, top);
        svg.text(MARGIN, y, TextAnchor::Start, "panel", &self.title);
        for (x, text) in x_scale.ticks() {
            svg.line((x, top), (x, bottom), "grid");
            svg.text(x, bottom + 16.0, TextAnchor::Middle, "tick", &text);
        }
        for (y, text) in y_scale.ticks() {
            svg.line((left, y), (right, y), "grid");
            svg.text(left - 6.0, y + 4.0, TextAnchor::End, "tick", &text);
        }
        svg.line((left, top), (left, bottom), "axis");
        svg.line((left, bottom), (right, bottom), "axis");
        svg.text((left + right) / 2.0, bottom + 36.0, TextAnchor::Middle, "talk", &self.x.title());
        svg.upright(MARGIN + 10.0, (top + bottom) / 2.0, "talk", &self.y.title());
        for (limit, name) in &self.limits {
            let y = y_scale.place(*limit);
            svg.line((left, y), (right, y), "dashed");
            svg.text(right - 4.0, y - 4.0, TextAnchor::End, "limits", name);
        }
        for line in &self.lines {
            self.line(svg, line, &x_scale, &y_scale);
        }
        self.legend(svg, right + 16.0, top);
        bottom + 42.0
    }

    fn line(&self, svg: &mut Svg, line: &Line, x_scale: &AxisScale, y_scale: &AxisScale) {
        let finite = line.points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
        let points: Vec<(f64, f64)> =
            finite.clone().map(|&(x, y)| (x_scale.place(x), y_scale.place(y))).collect();
        let colour = colour(line);
        if line.style != Style::Points {
            svg.curve(&points, colour, line.style == Style::Dashed);
        }
        if matches!(line.style, Style::Points | Style::Both) {
            for (&at, (x, y)) in points.iter().zip(finite) {
                let tip = format!(
                    "{}: {} {} at {} {}",
                    line.name,
                    number(*y),
                    self.y.label,
                    number(*x),
                    self.x.label
                );
                svg.circle(at, 4.0, colour, is_second(line), &tip);
            }
        }
    }

    fn legend(&self, svg: &mut Svg, x: f64, top: f64) {
        let mut y = top + 8.0;
        for line in self.lines.iter().filter(|line| !line.name.is_empty()) {
            let colour = colour(line);
            if line.style != Style::Points {
                svg.curve(&[(x, y), (x + 22.0, y)], colour, line.style == Style::Dashed);
            }
            if matches!(line.style, Style::Points | Style::Both) {
                svg.circle((x + 11.0, y), 4.0, colour, is_second(line), &line.name);
            }
            let room = WIDTH - MARGIN - x - 28.0;
            let most = (room / width_of("x")) as usize;
            let name: String = line.name.chars().take(most).collect();
            svg.text(x + 28.0, y + 4.0, TextAnchor::Start, "number", &name);
            y += 19.0;
        }
    }
}

fn colour(line: &Line) -> &'static str {
    COLOURS[line.colour % COLOURS.len()]
}

/// Whether the line has hollow points, because its colour is used before.
fn is_second(line: &Line) -> bool {
    line.colour / COLOURS.len() % 2 == 1
}
