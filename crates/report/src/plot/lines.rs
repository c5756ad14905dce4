//! Values over numbers.

use super::axis::{Axis, Scale};
use super::svg::{Anchor, COLOURS, Svg, width_of};
use super::{MARGIN, WIDTH, number};

/// Lines over a horizontal axis, and limits across it.
#[derive(Debug, Clone)]
pub struct Lines {
    /// Above the panel.
    pub title: String,
    /// Along the bottom.
    pub x: Axis,
    /// Along the left.
    pub y: Axis,
    /// In the order of the legend. Those with the same `colour` belong together.
    pub lines: Vec<Line>,
    /// Values of `y` with a name each, as dashed lines from left to right.
    pub limits: Vec<(f64, String)>,
}

/// One line.
#[derive(Debug, Clone)]
pub struct Line {
    /// In the legend; the empty name is not in it.
    pub name: String,
    /// Which of the colours; behind the last one they begin anew, with hollow points.
    pub colour: usize,
    /// How it is drawn.
    pub style: Style,
    /// From the left.
    pub points: Vec<(f64, f64)>,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// From point to point: what a formula says.
    Curve,
    /// The same, dashed: a limit that is not the same everywhere.
    Dashed,
    /// Points only: what was measured.
    Points,
    /// Points and the line between them.
    Both,
}

const HEIGHT: f64 = 300.0;
const LEFT: f64 = 70.0;
const LEGEND: f64 = 200.0;

impl Lines {
    /// Draws with its top at `y`, and says where it ends.
    pub(super) fn draw(&self, svg: &mut Svg, y: f64) -> f64 {
        let (left, right) = (MARGIN + LEFT, WIDTH - MARGIN - LEGEND);
        let (top, bottom) = (y + 16.0, y + 16.0 + HEIGHT);
        let points = || self.lines.iter().flat_map(|line| line.points.iter().copied());
        let x_scale = self.x.fit(points().map(|(x, _)| x), left, right);
        let values = points().map(|(_, y)| y).chain(self.limits.iter().map(|(limit, _)| *limit));
        let y_scale = self.y.fit(values, bottom, top);
        svg.text(MARGIN, y, Anchor::Start, "panel", &self.title);
        for (x, text) in x_scale.ticks() {
            svg.line((x, top), (x, bottom), "grid");
            svg.text(x, bottom + 16.0, Anchor::Middle, "tick", &text);
        }
        for (y, text) in y_scale.ticks() {
            svg.line((left, y), (right, y), "grid");
            svg.text(left - 6.0, y + 4.0, Anchor::End, "tick", &text);
        }
        svg.line((left, top), (left, bottom), "axis");
        svg.line((left, bottom), (right, bottom), "axis");
        svg.text((left + right) / 2.0, bottom + 36.0, Anchor::Middle, "talk", &self.x.title());
        svg.upright(MARGIN + 10.0, (top + bottom) / 2.0, "talk", &self.y.title());
        for (limit, name) in &self.limits {
            let y = y_scale.place(*limit);
            svg.line((left, y), (right, y), "dashed");
            svg.text(right - 4.0, y - 4.0, Anchor::End, "limits", name);
        }
        for line in &self.lines {
            self.line(svg, line, &x_scale, &y_scale);
        }
        self.legend(svg, right + 16.0, top);
        bottom + 42.0
    }

    fn line(&self, svg: &mut Svg, line: &Line, x_scale: &Scale, y_scale: &Scale) {
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
            svg.text(x + 28.0, y + 4.0, Anchor::Start, "number", &name);
            y += 19.0;
        }
    }
}

fn colour(line: &Line) -> &'static str {
    COLOURS[line.colour % COLOURS.len()]
}

/// Another line may have the same colour.
fn is_second(line: &Line) -> bool {
    line.colour / COLOURS.len() % 2 == 1
}
