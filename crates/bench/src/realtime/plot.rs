//! Draws the passes.

use super::RealtimeResults;
use super::figures::PassFigures;
use onbeat_report::plot::{Axis, Line, Lines, Sheet, Style};

/// Draws histograms of the periods, in full range and near the target, and each period over time.
pub(super) fn sheet(found: &RealtimeResults) -> Sheet {
    let result = &found.result;
    let machine = &result.machine;
    let cores = machine.cores_online.map_or(String::new(), |cores| format!("{cores} cores"));
    let facts =
        [machine.cpu_model.clone().unwrap_or_default(), cores, machine.kernel.clone().unwrap_or_default()];
    let parameter = |name: &str| result.parameters.get(name).map_or(String::new(), ToString::to_string);
    let (fps, loads) = (parameter("target_fps"), parameter("dummy_load_number"));
    let sheet = Sheet::new("onbeat bench realtime: frame jitter next to a load").line(facts.join(" · ")).line(format!(
        "{fps} frames per second next to {loads} load operators on core {}, all rounds together; dashed: a \
         bare loop",
        parameter("pin_cpu")
    ));
    let target_ms =
        1e3 / result.parameters.get("target_fps").and_then(serde_json::Value::as_f64).unwrap_or(1.0);
    let series: Vec<(&str, Vec<f64>)> = found
        .series
        .iter()
        .map(|(name, rounds)| {
            let deviations = |taken: &PassFigures| {
                taken.periods_ns.iter().map(|ns| ns / 1e6 - target_ms).collect::<Vec<_>>()
            };
            (name.as_str(), rounds.iter().flat_map(deviations).collect())
        })
        .collect();
    let all = || series.iter().flat_map(|(_, list)| list.iter().copied());
    let most = all().map(f64::abs).fold(0.0, f64::max);
    let near = near(&series);
    let panel = |title: &str, range_ms: f64| Lines {
        title: title.to_owned(),
        x: Axis::linear("deviation from the period (ms)"),
        y: Axis::log("frames"),
        lines: lines(&series, |list| histogram(list, range_ms)),
        limits: Vec::new(),
    };
    let over_time = Lines {
        title: "over time: the largest deviation of each two hundredth".to_owned(),
        x: Axis::linear("s"),
        y: Axis::linear("deviation from the period (ms)"),
        lines: lines(&series, |list| over_time(list, target_ms / 1e3))
            .into_iter()
            .filter(|line| line.style == Style::Curve)
            .map(|line| Line { style: Style::Points, ..line })
            .collect(),
        limits: Vec::new(),
    };
    sheet.lines(panel("full range", most)).lines(panel("near the target", near)).lines(over_time)
}

/// Three times the range that contains 99 % of the frames of the most regular pass.
fn near(series: &[(&str, Vec<f64>)]) -> f64 {
    let of = |list: &Vec<f64>| {
        let mut sorted: Vec<f64> = list.iter().map(|ms| ms.abs()).collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() * 99 / 100).copied()
    };
    let least = series.iter().filter_map(|(_, list)| of(list)).fold(f64::INFINITY, f64::min);
    if least.is_finite() { 3.0 * least.max(1e-3) } else { 1.0 }
}

/// One line per pass; a floor has the colour of its pass.
fn lines(series: &[(&str, Vec<f64>)], points: impl Fn(&[f64]) -> Vec<(f64, f64)>) -> Vec<Line> {
    let passes: Vec<&str> =
        series.iter().map(|(name, _)| name.strip_prefix("floor_").unwrap_or(name)).collect();
    let line = |(name, list): &(&str, Vec<f64>)| {
        let pass = name.strip_prefix("floor_");
        let own = pass.unwrap_or(name);
        let mut once = Vec::new();
        passes.iter().for_each(|pass| {
            if !once.contains(pass) {
                once.push(*pass);
            }
        });
        Line {
            name: (*name).to_owned(),
            colour: once.iter().position(|pass| *pass == own).unwrap_or(0),
            style: if pass.is_some() { Style::Dashed } else { Style::Curve },
            points: points(list),
        }
    };
    series.iter().map(line).collect()
}

/// Counts the values in each of eighty equal bins from -`range_ms` to `range_ms`; empty bins are left out.
fn histogram(list: &[f64], range_ms: f64) -> Vec<(f64, f64)> {
    const PARTS: usize = 80;
    let width = 2.0 * range_ms.max(1e-6) / PARTS as f64;
    let mut counts = [0usize; PARTS];
    for ms in list.iter().filter(|ms| ms.abs() <= range_ms) {
        counts[(((ms + range_ms) / width) as usize).min(PARTS - 1)] += 1;
    }
    let middle = |at: usize| (at as f64 + 0.5) * width - range_ms;
    let parts = counts.into_iter().enumerate().filter(|part| part.1 > 0);
    parts.map(|(at, count)| (middle(at), count as f64)).collect()
}

fn over_time(list: &[f64], period_s: f64) -> Vec<(f64, f64)> {
    let size = list.len().div_ceil(200).max(1);
    let furthest =
        |part: &[f64]| part.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(0.0);
    list.chunks(size).enumerate().map(|(at, part)| ((at * size) as f64 * period_s, furthest(part))).collect()
}
