//! One value each, side by side.

use super::axis::Axis;
use super::svg::{Anchor, COLOURS, Svg, width_of};
use super::{MARGIN, WIDTH, number};

/// Bars in groups, each from the left, with the range of its runs and the limit that physics sets.
#[derive(Debug, Clone)]
pub struct Bars {
    /// Above the panel.
    pub title: String,
    /// What the length of a bar is.
    pub axis: Axis,
    /// From the top.
    pub groups: Vec<Group>,
    /// What the line across a bar is.
    pub limit: String,
}

/// Bars that belong together: they have one colour.
#[derive(Debug, Clone)]
pub struct Group {
    /// Above its bars.
    pub name: String,
    /// From the top.
    pub bars: Vec<Bar>,
}

/// One value.
#[derive(Debug, Clone)]
pub struct Bar {
    /// To the left of it.
    pub label: String,
    /// How long it is.
    pub value: f64,
    /// The least of the runs.
    pub min: f64,
    /// The most of the runs.
    pub max: f64,
    /// What nothing can be below: a line across the bar.
    pub limit: Option<f64>,
}

const ROW: f64 = 24.0;
const THICK: f64 = 14.0;
const HEAD: f64 = 24.0;
/// For the value behind a bar.
const VALUE: f64 = 110.0;

impl Bars {
    /// Draws with its top at `y`, and says where it ends.
    pub(super) fn draw(&self, svg: &mut Svg, mut y: f64) -> f64 {
        let all = || self.groups.iter().flat_map(|group| &group.bars);
        let labels = all().map(|bar| width_of(&bar.label)).fold(60.0, f64::max).min(WIDTH / 3.0);
        let (left, right) = (MARGIN + labels + 10.0, WIDTH - MARGIN - VALUE);
        let values =
            all().flat_map(|bar| [Some(bar.value), Some(bar.min), Some(bar.max), bar.limit]).flatten();
        let scale = self.axis.fit(values, left, right);
        svg.text(MARGIN, y, Anchor::Start, "panel", &self.title);
        if all().any(|bar| bar.limit.is_some()) {
            let end = WIDTH - MARGIN;
            svg.text(end, y, Anchor::End, "limits", &self.limit);
            let x = end - width_of(&self.limit) * 0.92 - 6.0;
            svg.line((x, y - 11.0), (x, y + 3.0), "limit");
        }
        y += 14.0;
        let top = y;
        let height: f64 = self.groups.iter().map(|group| HEAD + ROW * group.bars.len() as f64).sum();
        for (x, text) in scale.ticks() {
            svg.line((x, top), (x, top + height), "grid");
            svg.text(x, top + height + 16.0, Anchor::Middle, "tick", &text);
        }
        svg.line((left, top), (left, top + height), "axis");
        for (group, colour) in self.groups.iter().zip(COLOURS.iter().cycle()) {
            svg.text(MARGIN, y + 17.0, Anchor::Start, "talk", &group.name);
            y += HEAD;
            for bar in &group.bars {
                let middle = y + ROW / 2.0;
                svg.text(left - 8.0, middle + 4.0, Anchor::End, "number", &bar.label);
                self.bar(svg, bar, &|value| scale.place(value), middle, colour);
                y += ROW;
            }
        }
        svg.text((left + right) / 2.0, y + 36.0, Anchor::Middle, "talk", &self.axis.title());
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
        svg.text(clear + 7.0, middle + 4.0, Anchor::Start, "number", &number(*value));
    }
}
