//! Draws the figures.

use super::break_even::operator_ns;
use super::{Overhead, OverheadCase, SHARES};
use onbeat_report::plot::{Axis, Bar, Bars, Group, Line, Lines, Sheet, Style};
use onbeat_report::{BenchResult, Figure};

/// Draws one panel with the cost of an iteration, and one with the engine's share for operators that work.
pub(super) fn sheet(overhead: &Overhead) -> Sheet {
    let result = &overhead.result;
    let mut sheet = Sheet::new("onbeat bench overhead: cost of the engine");
    for line in facts(result) {
        sheet = sheet.line(line);
    }
    let methods = [
        ("steady", "steady: inside the run, after a warm-up"),
        ("process", "process: including start and stop"),
    ];
    for (method, title) in methods {
        let groups = groups(overhead, method);
        if groups.iter().any(|group| !group.bars.is_empty()) {
            sheet = sheet.bars(Bars {
                title: title.to_owned(),
                axis: Axis::log("ns per iteration"),
                groups,
                limit: "the same without an engine".to_owned(),
            });
        }
    }
    let lines = shares(overhead);
    if lines.is_empty() {
        return sheet;
    }
    sheet.lines(Lines {
        title: "break-even: the engine's share of the time".to_owned(),
        x: Axis::log("work of an operator per step (ns)"),
        y: Axis::log("% of the time"),
        lines,
        limits: SHARES
            .into_iter()
            .map(|share| (share.share * 100.0, format!("{:.0} %", share.share * 100.0)))
            .collect(),
    })
}

fn facts(result: &BenchResult) -> Vec<String> {
    let machine = &result.machine;
    let text = |fact: &Option<String>| fact.clone().unwrap_or_default();
    let cores = machine.cores_online.map_or(String::new(), |cores| format!("{cores} cores"));
    let parameter = |name: &str| {
        result.parameters.get(name).map_or(String::new(), |value| match value.as_str() {
            Some(text) => text.to_owned(),
            None => value.to_string(),
        })
    };
    let mut facts = vec![
        [text(&machine.cpu_model), cores, text(&machine.kernel)].join(" · "),
        format!(
            "median, minimum and maximum of {} runs · idle {} · onbeat {} ({})",
            parameter("runs"),
            parameter("idle"),
            parameter("version"),
            parameter("profile")
        ),
    ];
    if let Some(peer) = result.parameters.get("peer").filter(|peer| !peer.is_null()) {
        let of = |name: &str| peer[name].as_str().unwrap_or("").to_owned();
        facts.push(format!("in the same call: {} {}, {}", of("name"), of("version"), of("language")));
    }
    facts
}

/// One group per scheduler, then those of the peer.
fn groups(overhead: &Overhead, method: &str) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (prefix, head) in [("", ""), ("python.", "Python, "), ("peer.holoscan.", "Holoscan, ")] {
        for row in &overhead.rows {
            let figure = format!("{prefix}{method}.{}.{}", row.recipe, row.case.name());
            let Some(figure) = overhead.result.figures.get(&figure) else { continue };
            let limit = row.limit.as_ref().filter(|_| prefix.is_empty());
            let limit = limit.and_then(|limit| overhead.result.value(limit));
            let name = format!("{head}{}", row.recipe);
            if groups.last().is_none_or(|group| group.name != name) {
                groups.push(Group { name, bars: Vec::new() });
            }
            if let Some(group) = groups.last_mut() {
                group.bars.push(bar(row.case, figure, limit));
            }
        }
    }
    groups
}

fn bar(case: OverheadCase, figure: &Figure, limit: Option<f64>) -> Bar {
    Bar { label: case.text().to_owned(), value: figure.value, min: figure.min, max: figure.max, limit }
}

/// For each scheduler, the share computed from its cost per step in one case, and the measured shares.
fn shares(overhead: &Overhead) -> Vec<Line> {
    let result = &overhead.result;
    let chosen = |case: OverheadCase| overhead.rows.iter().any(|row| row.case == case);
    let Some(case) =
        [OverheadCase::TxRx, OverheadCase::Chain4, OverheadCase::FanOut4, OverheadCase::TwoOperators]
            .into_iter()
            .find(|&case| chosen(case))
    else {
        return Vec::new();
    };
    let mut costs: Vec<(String, f64)> = Vec::new();
    for (prefix, head) in [("", ""), ("peer.holoscan.", "Holoscan, ")] {
        for row in overhead.rows.iter().filter(|row| row.case == case) {
            let name = format!("{prefix}steady.{}.{}", row.recipe, case.name());
            if let Some(iteration_ns) = result.value(&name) {
                costs.push((format!("{head}{}", row.recipe), iteration_ns / row.steps));
            }
        }
    }
    let mut lines = Vec::new();
    for (colour, (name, step_ns)) in costs.iter().enumerate() {
        // From 95 % down to 0.5 %, evenly on the logarithmic axis.
        let part = |at: u32| 0.95 * (0.005_f64 / 0.95).powf(f64::from(at) / 60.0);
        let points = (0..=60).map(part).map(|share| (operator_ns(*step_ns, share), 100.0 * share)).collect();
        lines.push(Line { name: name.clone(), colour, style: Style::Curve, points });
    }
    for (colour, (name, _)) in costs.iter().enumerate() {
        let of =
            |share: &str, what: &str| result.value(&format!("loaded.{name}.{}.{share}.{what}", case.name()));
        let points =
            SHARES.iter().filter_map(|share| Some((of(share.name, "operator")?, of(share.name, "share")?)));
        // A negative measurement has no place on a logarithmic axis.
        let points: Vec<(f64, f64)> = points.filter(|(_, share)| *share > 0.0).collect();
        if !points.is_empty() {
            lines.push(Line { name: format!("{name}, measured"), colour, style: Style::Points, points });
        }
    }
    lines
}
