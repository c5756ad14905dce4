//! Graph of a run, drawn in layers: senders come before receivers.

use super::html::Html;
use super::words;
use onbeat_trace::Record;
use onbeat_trace::record::{EdgeRecord, OperatorRecord, OperatorState};
use std::collections::HashMap;

const BOX: (f64, f64) = (158.0, 54.0);
const MARGIN: f64 = 8.0;

/// Direction of the drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// From left to right, for a wide screen.
    Right,
    /// From top to bottom, for a narrow screen.
    Down,
}

/// Returns the colour for a share of a core.
pub(super) fn load(share: f64) -> usize {
    [0.02, 0.25, 0.6, 0.9].iter().filter(|&&limit| share >= limit).count()
}

/// Returns the layer of each operator, and its position in the layer.
fn layers(record: &Record) -> HashMap<&str, (usize, usize)> {
    let rank: HashMap<&str, usize> =
        record.plan.order.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
    let of = |name: &str| rank.get(name).copied().unwrap_or(0);
    let mut layer: HashMap<&str, usize> = HashMap::new();
    let mut operators: Vec<&OperatorRecord> = record.operators.iter().collect();
    operators.sort_by_key(|operator| of(&operator.name));
    for operator in &operators {
        let name = operator.name.as_str();
        let ahead = record.edges.iter().map(ends).filter(|(from, to)| *to == name && of(from) < of(name));
        let place = ahead.map(|(from, _)| layer.get(from).map_or(0, |layer| layer + 1)).max().unwrap_or(0);
        layer.insert(name, place);
    }
    let mut used: HashMap<usize, usize> = HashMap::new();
    operators
        .iter()
        .map(|operator| {
            let layer = layer[operator.name.as_str()];
            let place = used.entry(layer).or_default();
            *place += 1;
            (operator.name.as_str(), (layer, *place - 1))
        })
        .collect()
}

/// Returns the operators at the ends of an edge.
fn ends(edge: &EdgeRecord) -> (&str, &str) {
    let operator = |end: &'_ str| -> usize { end.rfind('.').unwrap_or(end.len()) };
    (&edge.from[..operator(&edge.from)], &edge.to[..operator(&edge.to)])
}

pub(super) fn draw(record: &Record, direction: Direction) -> Html {
    let places = layers(record);
    let mut sizes: HashMap<usize, usize> = HashMap::new();
    places.values().for_each(|(layer, _)| *sizes.entry(*layer).or_default() += 1);
    let (deep, broad) = (sizes.len().max(1), sizes.values().copied().max().unwrap_or(1));
    let (along, across) = match direction {
        Direction::Right => (BOX.0 + 44.0, BOX.1 + 18.0),
        Direction::Down => (BOX.1 + 34.0, BOX.0 + 14.0),
    };
    let back = if record.edges.iter().any(|edge| is_back(edge, &places)) { 26.0 } else { 0.0 };
    let thick = if direction == Direction::Right { BOX.1 } else { BOX.0 };
    let length = deep as f64 * along + 2.0 * MARGIN - if direction == Direction::Right { 44.0 } else { 34.0 };
    let breadth = (broad - 1) as f64 * across + thick + 2.0 * MARGIN + back;
    let (width, height) = if direction == Direction::Right { (length, breadth) } else { (breadth, length) };
    // Layers are centred.
    let at = |name: &str| -> Option<(f64, f64)> {
        let &(layer, place) = places.get(name)?;
        let free = (broad - sizes[&layer]) as f64 * across / 2.0;
        let (far, wide) = (MARGIN + layer as f64 * along, MARGIN + free + place as f64 * across);
        Some(if direction == Direction::Right { (far, wide) } else { (wide, far) })
    };
    let mut html = Html::default();
    let style = format!("width:{width:.0}px");
    html.open(
        "svg",
        &[
            ("viewBox", &format!("0 0 {width:.0} {height:.0}")),
            ("style", &style),
            ("role", &"img"),
            ("aria-label", &"the graph"),
        ],
    );
    for edge in &record.edges {
        let (from, to) = ends(edge);
        if let (Some(from), Some(to)) = (at(from), at(to)) {
            draw_edge(&mut html, edge, from, to, direction, is_back(edge, &places));
        }
    }
    for operator in &record.operators {
        if let Some(place) = at(&operator.name) {
            draw_operator(&mut html, operator, place);
        }
    }
    html.close("svg");
    html
}

fn is_back(edge: &EdgeRecord, places: &HashMap<&str, (usize, usize)>) -> bool {
    let (from, to) = ends(edge);
    places.get(from).zip(places.get(to)).is_some_and(|(from, to)| from.0 >= to.0)
}

fn draw_edge(
    html: &mut Html,
    edge: &EdgeRecord,
    from: (f64, f64),
    to: (f64, f64),
    direction: Direction,
    back: bool,
) {
    let (curve, label) = match (direction, back) {
        (Direction::Right, false) => {
            let (a, b) = ((from.0 + BOX.0, from.1 + BOX.1 / 2.0), (to.0, to.1 + BOX.1 / 2.0));
            let bend = ((b.0 - a.0) / 2.0).max(18.0);
            (bezier(a, (a.0 + bend, a.1), (b.0 - bend, b.1), b), ((a.0 + b.0) / 2.0, (a.1 + b.1) / 2.0 - 5.0))
        }
        (Direction::Down, false) => {
            let (a, b) = ((from.0 + BOX.0 / 2.0, from.1 + BOX.1), (to.0 + BOX.0 / 2.0, to.1));
            let bend = ((b.1 - a.1) / 2.0).max(14.0);
            (bezier(a, (a.0, a.1 + bend), (b.0, b.1 - bend), b), ((a.0 + b.0) / 2.0 + 8.0, (a.1 + b.1) / 2.0))
        }
        (Direction::Right, true) => {
            let (a, b) = ((from.0 + BOX.0 / 2.0, from.1 + BOX.1), (to.0 + BOX.0 / 2.0, to.1 + BOX.1));
            let low = a.1.max(b.1) + 30.0;
            (bezier(a, (a.0, low), (b.0, low), b), ((a.0 + b.0) / 2.0, low - 10.0))
        }
        (Direction::Down, true) => {
            let (a, b) = ((from.0 + BOX.0, from.1 + BOX.1 / 2.0), (to.0 + BOX.0, to.1 + BOX.1 / 2.0));
            let far = a.0.max(b.0) + 34.0;
            (bezier(a, (far, a.1), (far, b.1), b), (far - 12.0, (a.1 + b.1) / 2.0))
        }
    };
    let class = match (back, edge.dropped > 0) {
        (true, true) => "edge back dropped",
        (true, false) => "edge back",
        (false, true) => "edge dropped",
        (false, false) => "edge",
    };
    let tip = format!(
        "{} → {}: {}, at most {} of {}, {} dropped",
        edge.from,
        edge.to,
        words::counted(edge.sent, "message"),
        words::count(edge.depth_max),
        words::count(edge.capacity),
        words::count(edge.dropped)
    );
    html.open("path", &[("class", &class), ("d", &curve)])
        .open("title", &[])
        .text(tip)
        .close("title")
        .close("path");
    if edge.dropped > 0 {
        let (x, y) = (format!("{:.1}", label.0), format!("{:.1}", label.1));
        html.open("text", &[("class", &"drop-text"), ("text-anchor", &"middle"), ("x", &x), ("y", &y)]);
        html.text(format!("−{}", words::count(edge.dropped))).close("text");
    }
}

fn bezier(from: (f64, f64), one: (f64, f64), two: (f64, f64), to: (f64, f64)) -> String {
    let [a, b, c, d] = [from, one, two, to].map(|(x, y)| format!("{x:.1} {y:.1}"));
    format!("M{a}C{b} {c} {d}")
}

fn draw_operator(html: &mut Html, operator: &OperatorRecord, (x, y): (f64, f64)) {
    let failed = matches!(operator.state, OperatorState::Failed | OperatorState::Isolated);
    let class = format!("box load{}{}", load(operator.share), if failed { " failed" } else { "" });
    let (width, height) = BOX;
    html.open("g", &[]);
    html.shape(
        "rect",
        &[("class", &class), ("x", &x), ("y", &y), ("width", &width), ("height", &height), ("rx", &6)],
    );
    let step = if operator.step.count > 0 {
        format!(
            "step: median {}, longest {}",
            words::time(operator.step.median_ns as f64),
            words::time(operator.step.max_ns as f64)
        )
    } else {
        "no step was timed".to_string()
    };
    html.open("title", &[]);
    html.text(format!(
        "{} ({}) on {}: {}, {step}, {}",
        operator.name,
        operator.kind,
        operator.worker,
        words::counted(operator.steps, "step"),
        operator.state
    ));
    html.close("title");
    let x = x + 10.0;
    html.open("text", &[("class", &"name"), ("x", &x), ("y", &(y + 21.0))])
        .text(words::short(&operator.name, 20))
        .close("text");
    let line = format!("{} · {}", words::percent(operator.share), words::short(&operator.kind, 15));
    html.open("text", &[("x", &x), ("y", &(y + 40.0))]).text(line).close("text");
    html.close("g");
}
