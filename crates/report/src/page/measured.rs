//! Sections with measured latencies, periods and steps.

use super::chart::{self, Bins, ChartSeries, bins, quantile};
use super::html::Html;
use super::{LabelledRun, absent, figure, heading, legend, union, whole_figure, words};
use onbeat_trace::record::{OperatorRecord, PathRecord};
use onbeat_trace::{RegularityRecord, Summary};

/// Most operators with charts; the table has all.
const OPERATORS: usize = 6;
/// Most paths with charts.
const PATHS: usize = 8;

pub(super) fn path<'a>(run: &LabelledRun<'a>, ends: &(&str, &str)) -> Option<&'a PathRecord> {
    run.record.paths.iter().find(|path| (path.from.as_str(), path.to.as_str()) == *ends)
}

/// Returns the paths of all runs, those with a limit first.
pub(super) fn path_names<'a>(runs: &[LabelledRun<'a>]) -> Vec<(&'a str, &'a str)> {
    let all = runs.iter().flat_map(|run| &run.record.paths);
    let mut names = union(all.map(|path| (path.from.as_str(), path.to.as_str())));
    let limited = |name: &(&str, &str)| {
        runs.iter().filter_map(|run| path(run, name)).any(|path| path.max_latency_ns.is_some())
    };
    names.sort_by_key(|name| !limited(name));
    names
}

/// Writes the cells of a summary.
fn quantiles(html: &mut Html, summary: &Summary, limit_ns: Option<u64>) {
    for ns in
        [summary.min_ns, summary.median_ns, summary.p90_ns, summary.p99_ns, summary.p99_9_ns, summary.max_ns]
    {
        let alarm = limit_ns.is_some_and(|limit_ns| ns > limit_ns);
        let text = if summary.count > 0 { words::time(ns as f64) } else { "–".to_string() };
        html.element("td", if alarm { "n alarm" } else { "n" }, text);
    }
}

fn head(html: &mut Html, first: &'static str, rest: &[&'static str]) {
    html.constant("<div class=\"tables\"><table><thead><tr>").element("th", "", first);
    rest.iter().for_each(|text| _ = html.element("th", "n", text));
    html.constant("</tr></thead><tbody>");
}

/// Writes a name in a table, with the label of the run if there are several.
fn named(html: &mut Html, runs: &[LabelledRun<'_>], number: usize, name: &str) {
    html.open("td", &[]);
    if runs.len() > 1 {
        super::key(html, number);
        html.text(" ");
    }
    html.text(name);
    if runs.len() > 1 {
        html.text(" ").element("small", "", runs[number].label);
    }
    html.close("td");
}

pub(super) fn paths(html: &mut Html, runs: &[LabelledRun<'_>]) {
    heading(
        html,
        "Latency",
        "From the due time of the source to the end of the sink's step. The bound is the worst case computed from the longest steps and wake-ups of the run.",
    );
    let names = path_names(runs);
    if names.is_empty() {
        absent(html, "No path was measured. A path leads from a source to a sink.");
        return;
    }
    legend(html, runs);
    head(html, "path", &["messages", "min", "p50", "p90", "p99", "p99.9", "max", "bound", "limit", "misses"]);
    for name in &names {
        for (number, run) in runs.iter().enumerate() {
            let Some(path) = path(run, name) else { continue };
            html.constant("<tr>");
            named(html, runs, number, &format!("{} → {}", name.0, name.1));
            html.element("td", "n", words::count(path.latency.count));
            quantiles(html, &path.latency, path.max_latency_ns);
            html.element("td", "n", path.worst_ns.map_or("–".to_string(), |ns| words::time(ns as f64)));
            html.element("td", "n", path.max_latency_ns.map_or("–".to_string(), |ns| words::time(ns as f64)));
            let misses = path.max_latency_ns.map_or("–".to_string(), |_| words::count(path.misses));
            html.element("td", if path.misses > 0 { "n alarm" } else { "n" }, misses).constant("</tr>");
        }
    }
    html.constant("</tbody></table></div>");
    for name in names.iter().take(PATHS) {
        path_charts(html, runs, name);
    }
    if names.len() > PATHS {
        absent(html, &format!("{} only in the table.", words::counted((names.len() - PATHS) as u64, "path")));
    }
}

fn path_charts(html: &mut Html, runs: &[LabelledRun<'_>], name: &(&str, &str)) {
    let title = format!("{} → {}", name.0, name.1);
    let there =
        || runs.iter().enumerate().filter_map(|(number, run)| Some((number, run.label, path(run, name)?)));
    let limits = union(there().filter_map(|(.., path)| path.max_latency_ns));
    // With several limits the lines would be ambiguous.
    let limit = if let [limit] = limits[..] { Some(limit as f64) } else { None };
    let latencies: Vec<ChartSeries<'_, Bins>> = there()
        .filter_map(|(colour, name, path)| {
            Some(ChartSeries { colour, name, data: bins(path.latencies_by_time.as_ref()?) })
        })
        .collect();
    let courses: Vec<_> = there()
        .filter_map(|(colour, name, path)| Some(ChartSeries { colour, name, data: path.course.as_ref()? }))
        .collect();
    html.element("h3", "", &title);
    if latencies.is_empty() && courses.is_empty() {
        let all = there().all(|(.., path)| path.latency.count == 0);
        absent(
            html,
            if all {
                "No message reached the end of the path."
            } else {
                "These records have no histograms and series, only figures."
            },
        );
        return;
    }
    if !courses.is_empty() {
        let about = format!("latency of {title} over time");
        whole_figure(html, "over time", "smallest to largest, and mean", |size| {
            chart::course(&courses, limit, size, true, &about)
        });
    } else {
        absent(html, "No series over time was recorded.");
    }
    if !latencies.is_empty() {
        html.open("div", &[("class", &"charts")]);
        figure(
            html,
            "percentiles",
            "",
            &chart::percentiles(&latencies, limit, &format!("percentiles of {title}")),
        );
        figure(
            html,
            "all latencies",
            "",
            &chart::histogram(&latencies, false, &format!("latencies of {title}")),
        );
        figure(
            html,
            "from p1 to p99",
            "",
            &chart::histogram(&latencies, true, &format!("latencies of {title}, zoomed")),
        );
        html.close("div");
    }
}

/// Returns the histogram of periods: the nominal period plus the deviations.
fn periods(regularity: &RegularityRecord) -> Bins {
    let period_ns = regularity.period_ns as f64;
    let mut early = bins(&regularity.early);
    early.reverse();
    let early = early.into_iter().map(|(from, to, count)| (period_ns - to, period_ns - from, count));
    let late =
        bins(&regularity.late).into_iter().map(|(from, to, count)| (period_ns + from, period_ns + to, count));
    early.chain(late).collect()
}

/// Returns the histogram of absolute deviations.
fn deviations(regularity: &RegularityRecord) -> Bins {
    let mut all: Bins = bins(&regularity.early).into_iter().chain(bins(&regularity.late)).collect();
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    all
}

pub(super) fn regularity(html: &mut Html, runs: &[LabelledRun<'_>]) {
    heading(
        html,
        "Periods",
        "From the end of one message to the end of the next one, compared with the period of the source.",
    );
    let measured = |run: &LabelledRun<'_>, name: &(&str, &str)| {
        path(run, name).is_some_and(|path| path.regularity.is_some())
    };
    let names: Vec<_> =
        path_names(runs).into_iter().filter(|name| runs.iter().any(|run| measured(run, name))).collect();
    if names.is_empty() {
        absent(
            html,
            "No periods were recorded: no path had two consecutive messages with due times. A source with `pace = \"real\"` or a timer sets due times.",
        );
        return;
    }
    legend(html, runs);
    period_table(html, runs, &names);
    names.iter().take(PATHS).for_each(|name| period_charts(html, runs, name));
}

/// Writes the table of periods.
fn period_table(html: &mut Html, runs: &[LabelledRun<'_>], names: &[(&str, &str)]) {
    head(
        html,
        "path",
        &["period", "per second", "|deviation| p50", "p99", "p99.9", "max", "above 0.1 ms", "above 1 ms"],
    );
    for name in names {
        for (number, run) in runs.iter().enumerate() {
            let Some(regularity) = path(run, name).and_then(|path| path.regularity.as_ref()) else {
                continue;
            };
            let all = deviations(regularity);
            let total: f64 = all.iter().map(|bin| bin.2).sum();
            let above = |ns: f64| all.iter().filter(|bin| bin.1 > ns).map(|bin| bin.2).sum::<f64>();
            html.constant("<tr>");
            named(html, runs, number, &format!("{} → {}", name.0, name.1));
            html.element("td", "n", words::time(regularity.period_ns as f64));
            html.element("td", "n", format!("{:.2}", 1e9 / regularity.period_ns.max(1) as f64));
            for share in [0.5, 0.99, 0.999, 1.0] {
                html.element("td", "n", words::time(quantile(&all, share)));
            }
            for ns in [1e5, 1e6] {
                html.element(
                    "td",
                    "n",
                    format!(
                        "{} ({})",
                        words::count(above(ns) as u64),
                        words::percent(above(ns) / total.max(1.0))
                    ),
                );
            }
            html.constant("</tr>");
        }
    }
    html.constant("</tbody></table></div>");
}

/// Writes the charts of one path's periods.
fn period_charts(html: &mut Html, runs: &[LabelledRun<'_>], name: &(&str, &str)) {
    let title = format!("{} → {}", name.0, name.1);
    let there = || {
        let of = |(number, run): (usize, &LabelledRun<'_>)| {
            Some((number, run.label.to_string(), path(run, name)?.regularity.clone()?))
        };
        runs.iter().enumerate().filter_map(of)
    };
    let kept: Vec<_> = there().collect();
    let all: Vec<ChartSeries<'_, Bins>> = kept
        .iter()
        .map(|(colour, name, regularity)| ChartSeries { colour: *colour, name, data: periods(regularity) })
        .collect();
    let courses: Vec<_> = kept
        .iter()
        .filter_map(|(colour, name, regularity)| {
            Some(ChartSeries { colour: *colour, name, data: regularity.course.as_ref()? })
        })
        .collect();
    html.element("h3", "", &title);
    whole_figure(html, "over time", "shortest to longest, and mean", |size| {
        chart::course(&courses, None, size, false, &format!("periods of {title} over time"))
    });
    html.open("div", &[("class", &"charts")]);
    let deviated: Vec<ChartSeries<'_, Bins>> = kept
        .iter()
        .map(|(colour, name, regularity)| ChartSeries { colour: *colour, name, data: deviations(regularity) })
        .collect();
    figure(
        html,
        "|deviation| from the period",
        "",
        &chart::percentiles(&deviated, None, &format!("deviations of {title}")),
    );
    figure(html, "all periods", "", &chart::histogram(&all, false, &format!("periods of {title}")));
    figure(html, "from p1 to p99", "", &chart::histogram(&all, true, &format!("periods of {title}, zoomed")));
    html.close("div");
}

/// Returns the operator of this name in a run.
fn operator<'a>(run: &LabelledRun<'a>, name: &str) -> Option<&'a OperatorRecord> {
    run.record.operators.iter().find(|operator| operator.name == name)
}

pub(super) fn operators(html: &mut Html, runs: &[LabelledRun<'_>]) {
    heading(
        html,
        "Execution",
        "Duration of the steps of each operator. If only a sample was timed, the share of a core is extrapolated from it.",
    );
    legend(html, runs);
    let names =
        union(runs.iter().flat_map(|run| &run.record.operators).map(|operator| operator.name.as_str()));
    operator_table(html, runs, &names);
    let drawn = busiest(runs, &names);
    if drawn.is_empty() {
        absent(html, "No histograms of steps were recorded.");
        return;
    }
    html.open("div", &[("class", &"charts")]);
    drawn.iter().for_each(|name| operator_charts(html, runs, name));
    html.close("div");
    if names.len() > drawn.len() {
        absent(
            html,
            &format!(
                "Only the {} with the largest share of a core are drawn; the table has all.",
                words::counted(drawn.len() as u64, "operator")
            ),
        );
    }
}

/// Writes the table of operators.
fn operator_table(html: &mut Html, runs: &[LabelledRun<'_>], names: &[&str]) {
    head(
        html,
        "operator",
        &["steps", "timed", "min", "p50", "p90", "p99", "p99.9", "max", "late", "of a core"],
    );
    for name in names {
        for (number, run) in runs.iter().enumerate() {
            let Some(operator) = operator(run, name) else { continue };
            html.constant("<tr>");
            named(html, runs, number, name);
            html.element("td", "n", words::count(operator.steps)).element(
                "td",
                "n",
                words::count(operator.timed_steps),
            );
            quantiles(html, &operator.step, None);
            let late = operator.deadline_ns.map_or("–".to_string(), |_| words::count(operator.late));
            html.element("td", if operator.late > 0 { "n alarm" } else { "n" }, late);
            let bar = format!("width:{:.1}%", (operator.share * 100.0).clamp(0.0, 100.0));
            html.open("td", &[("class", &"n share")]).text(words::percent(operator.share));
            html.open("span", &[("class", &"bar"), ("style", &bar)])
                .close("span")
                .close("td")
                .constant("</tr>");
        }
    }
    html.constant("</tbody></table></div>");
}

/// Returns the operators to draw: those with histograms and the largest shares of a core.
fn busiest<'a>(runs: &[LabelledRun<'_>], names: &[&'a str]) -> Vec<&'a str> {
    let found = |name: &str| runs.iter().filter_map(|run| operator(run, name)).collect::<Vec<_>>();
    let share = |name: &str| found(name).iter().map(|operator| operator.share).fold(0.0, f64::max);
    let mut busiest: Vec<(&str, f64)> = names.iter().map(|name| (*name, share(name))).collect();
    busiest.sort_by(|a, b| b.1.total_cmp(&a.1));
    let timed = |name: &str| found(name).iter().any(|operator| operator.steps_by_time.is_some());
    busiest.into_iter().map(|(name, _)| name).filter(|name| timed(name)).take(OPERATORS).collect()
}

/// Writes the histograms of an operator's steps.
fn operator_charts(html: &mut Html, runs: &[LabelledRun<'_>], name: &str) {
    let all: Vec<ChartSeries<'_, Bins>> = runs
        .iter()
        .enumerate()
        .filter_map(|(colour, run)| {
            let data = bins(operator(run, name)?.steps_by_time.as_ref()?);
            Some(ChartSeries { colour, name: run.label, data })
        })
        .collect();
    html.open("figure", &[]).element("figcaption", "", name).element("p", "part", "all steps");
    html.add(&chart::histogram(&all, false, &format!("steps of {name}"))).element(
        "p",
        "part",
        "from p1 to p99",
    );
    html.add(&chart::histogram(&all, true, &format!("steps of {name}, zoomed"))).close("figure");
}
