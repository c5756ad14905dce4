//! Bar charts.

use super::axis::Axis;
use super::svg::{COLOURS, Svg, TextAnchor, width_of};
use super::{MARGIN, WIDTH, number};

/// Panel with groups of horizontal bars, each with the range of its runs and a physical limit.
#[derive(Debug, Clone)]
pub struct Bars {
    /// Title above the panel.
    pub title: String,
    /// Axis of the lengths.
    pub axis: Axis,
    /// Groups from top to bottom.
    pub groups: Vec<Group>,
    /// Meaning of the line across a bar.
    pub limit: String,
}

/// Group of bars of one colour.
#[derive(Debug, Clone)]
pub struct Group {
    /// Name above the bars.
    pub name: String,
    /// Bars from top to bottom.
    pub bars: Vec<Bar>,
}

/// Bar for one value.
#[derive(Debug, Clone)]
pub struct Bar {
    /// Label to the left of the bar.
    pub label: String,
    /// Length of the bar.
    pub value: f64,
    /// Smallest value of the runs.
    pub min: f64,
    /// Largest value of the runs.
    pub max: f64,
    /// Physical lower limit, drawn as a line across the bar.
    pub limit: Option<f64>,
}

const ROW: f64 = 24.0;
const THICK: f64 = 14.0;
const HEAD: f64 = 24.0;
/// Width for the value after a bar.
const VALUE: f64 = 110.0;

impl Bars {
    /// Draws the panel with its top at `y`. Returns its bottom.
    pub(super) fn draw(&self, svg: &mut Svg, mut y: f64) -> f64 {
        let all = || self.groups.iter().flat_map(|group| &group.bars);
        let labels = all().map(|bar| width_of(&bar.label)).fold(60.0, f64::max).min(WIDTH / 3.0);
        let (left, right) = (MARGIN + labels + 10.0, WIDTH - MARGIN - VALUE);
        let values =
            all().flat_map(|bar| [Some(bar.value), Some(bar.min), Some(bar.max), bar.limit]).flatten();
        let scale = self.axis.fit(values, left, right);
        svg.text(MARGIN, y, TextAnchor::Start, "panel", &self.title);
        if all().any(|bar| bar.limit.is_some()) {
            let end = WIDTH - MARGIN;
            svg.text(end, y, TextAnchor::End, "limits", &self.limit);
            let x = end - width_of(&self.limit) * 0.92 - 6.0;
            svg.line((x, y - 11.0), (x, y + 3.0), "limit");
        }
        y += 14.0;
        let top = y;
        let height: f64 = self.groups.iter().map(|group| HEAD + ROW * group.bars.len() as f64).sum();
        for (x, text) in scale.ticks() {
            svg.line((x, top), (x, top + height), "grid");
            svg.text(x, top + height + 16.0, TextAnchor::Middle, "tick", &text);
        }
        svg.line((left, top), (left, top + height), "axis");
        for (group, colour) in self.groups.iter().zip(COLOURS.iter().cycle()) {
            svg.text(MARGIN, y + 17.0, TextAnchor::Start, "talk", &group.name);
            y += HEAD;
            for bar in &group.bars {
                let middle = y + ROW / 2.0;
                svg.text(left - 8.0, middle + 4.0, TextAnchor::End, "number", &bar.label);
                self.bar(svg, bar, &|value| scale.place(value), middle, colour);
                y += ROW;
            }
        }
        svg.text((left + right) / 2.0, y + 36.0, TextAnchor::Middle, "talk", &self.axis.title());
        y + 42.0
    }

    fn bar(&self, svg: &mut Svg, bar: &Bar, place: &dyn Fn(f64) -> f64, middle: f64, colour: &str) {
        let Bar { label, value, min, max, limit } = bar;
        if !value.is_finite() {
            return;
        }
        let (begin, end) = (place(0.0), place(*value));
        let top = middle - THICK / 2.0;
        let tip =
            format!("{label}: {} ({} to {}) {}", number(*value), number(*min), number(*max), self.axis.label);
        svg.rectangle((begin.min(end), top), ((end - begin).abs(), THICK), colour, &tip);
        let (from, to) = (place(*min), place(*max));
        svg.line((from, middle), (to, middle), "range");
        for x in [from, to] {
            svg.line((x, middle - 3.0), (x, middle + 3.0), "range");
        }
        if let Some(limit) = limit {
            let x = place(*limit);
            svg.line((x, top - 3.0), (x, top + THICK + 3.0), "limit");
        }
        let clear = to.max(end).max(limit.map_or(end, place));
        svg.text(clear + 7.0, middle + 4.0, TextAnchor::Start, "number", &number(*value));
    }
}
