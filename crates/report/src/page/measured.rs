//! What was measured: latencies, periods, steps.

use super::chart::{self, Bins, Series, bins, quantile};
use super::html::Html;
use super::{Shown, absent, figure, heading, legend, union, whole_figure, words};
use onbeat_trace::record::{OperatorRecord, PathRecord};
use onbeat_trace::{RegularityRecord, Summary};

/// Operators with charts of their own; the others are in the table.
const OPERATORS: usize = 6;
/// Paths with charts of their own.
const PATHS: usize = 8;

pub(super) fn path<'a>(run: &Shown<'a>, ends: &(&str, &str)) -> Option<&'a PathRecord> {
    run.record.paths.iter().find(|path| (path.from.as_str(), path.to.as_str()) == *ends)
}

/// Paths of any of the runs: those with a limit first.
pub(super) fn path_names<'a>(runs: &[Shown<'a>]) -> Vec<(&'a str, &'a str)> {
    let all = runs.iter().flat_map(|run| &run.record.paths);
    let mut names = union(all.map(|path| (path.from.as_str(), path.to.as_str())));
    let limited = |name: &(&str, &str)| {
        runs.iter().filter_map(|run| path(run, name)).any(|path| path.max_latency_ns.is_some())
    };
    names.sort_by_key(|name| !limited(name));
    names
}

/// The cells of a summary.
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

/// A name in a table, with whose it is where there are several.
fn named(html: &mut Html, runs: &[Shown<'_>], number: usize, name: &str) {
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

pub(super) fn paths(html: &mut Html, runs: &[Shown<'_>]) {
    heading(
        html,
        "Latency",
        "From the time at which a source was due to the end of the sink's step. The bound is the most that it can come to by the longest steps and wake-ups of the run, whatever comes together.",
    );
    let names = path_names(runs);
    if names.is_empty() {
        absent(html, "No path was measured: a path leads from a source to a sink.");
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
        absent(
            html,
            &format!("{} more are in the table only.", words::counted((names.len() - PATHS) as u64, "path")),
        );
    }
}

fn path_charts(html: &mut Html, runs: &[Shown<'_>], name: &(&str, &str)) {
    let title = format!("{} → {}", name.0, name.1);
    let there =
        || runs.iter().enumerate().filter_map(|(number, run)| Some((number, run.label, path(run, name)?)));
    let limits = union(there().filter_map(|(.., path)| path.max_latency_ns));
    // Several limits would be lines of which nobody knows whose they are.
    let limit = if let [limit] = limits[..] { Some(limit as f64) } else { None };
    let latencies: Vec<Series<'_, Bins>> = there()
        .filter_map(|(colour, name, path)| {
            Some(Series { colour, name, data: bins(path.latencies_by_time.as_ref()?) })
        })
        .collect();
    let courses: Vec<_> = there()
        .filter_map(|(colour, name, path)| Some(Series { colour, name, data: path.course.as_ref()? }))
        .collect();
    html.element("h3", "", &title);
    if latencies.is_empty() && courses.is_empty() {
        let all = there().all(|(.., path)| path.latency.count == 0);
        absent(
            html,
            if all {
                "No message came to its end."
            } else {
                "These records were made without histograms and series: figures only."
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

/// Periods by length, from the shortest: the time between due times and what they deviated from it.
fn periods(regularity: &RegularityRecord) -> Bins {
    let period_ns = regularity.period_ns as f64;
    let mut early = bins(&regularity.early);
    early.reverse();
    let early = early.into_iter().map(|(from, to, count)| (period_ns - to, period_ns - from, count));
    let late =
        bins(&regularity.late).into_iter().map(|(from, to, count)| (period_ns + from, period_ns + to, count));
    early.chain(late).collect()
}

/// Deviations whatever their sign.
fn deviations(regularity: &RegularityRecord) -> Bins {
    let mut all: Bins = bins(&regularity.early).into_iter().chain(bins(&regularity.late)).collect();
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    all
}

pub(super) fn regularity(html: &mut Html, runs: &[Shown<'_>]) {
    heading(
        html,
        "Periods",
        "From the end of one message to the end of the next one, beside the period that the source keeps.",
    );
    let measured =
        |run: &Shown<'_>, name: &(&str, &str)| path(run, name).is_some_and(|path| path.regularity.is_some());
    let names: Vec<_> =
        path_names(runs).into_iter().filter(|name| runs.iter().any(|run| measured(run, name))).collect();
    if names.is_empty() {
        absent(
            html,
            "No periods were recorded: no two messages with a due time followed each other on a path. A source with `pace = \"real\"` or a timer sets due times.",
        );
        return;
    }
    legend(html, runs);
    head(
        html,
        "path",
        &["period", "per second", "|deviation| p50", "p99", "p99.9", "max", "above 0.1 ms", "above 1 ms"],
    );
    for name in &names {
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
    for name in names.iter().take(PATHS) {
        let title = format!("{} → {}", name.0, name.1);
        let there = || {
            let of = |(number, run): (usize, &Shown<'_>)| {
                Some((number, run.label.to_string(), path(run, name)?.regularity.clone()?))
            };
            runs.iter().enumerate().filter_map(of)
        };
        let kept: Vec<_> = there().collect();
        let all: Vec<Series<'_, Bins>> = kept
            .iter()
            .map(|(colour, name, regularity)| Series { colour: *colour, name, data: periods(regularity) })
            .collect();
        let courses: Vec<_> = kept
            .iter()
            .filter_map(|(colour, name, regularity)| {
                Some(Series { colour: *colour, name, data: regularity.course.as_ref()? })
            })
            .collect();
        html.element("h3", "", &title);
        whole_figure(html, "over time", "shortest to longest, and mean", |size| {
            chart::course(&courses, None, size, false, &format!("periods of {title} over time"))
        });
        html.open("div", &[("class", &"charts")]);
        let deviated: Vec<Series<'_, Bins>> = kept
            .iter()
            .map(|(colour, name, regularity)| Series { colour: *colour, name, data: deviations(regularity) })
            .collect();
        figure(
            html,
            "|deviation| from the period",
            "",
            &chart::percentiles(&deviated, None, &format!("deviations of {title}")),
        );
        figure(html, "all periods", "", &chart::histogram(&all, false, &format!("periods of {title}")));
        figure(
            html,
            "from p1 to p99",
            "",
            &chart::histogram(&all, true, &format!("periods of {title}, zoomed")),
        );
        html.close("div");
    }
}

pub(super) fn operators(html: &mut Html, runs: &[Shown<'_>]) {
    heading(
        html,
        "Execution",
        "How long the steps of each operator took. Where only a sample of them was timed, the share of a core is projected from it.",
    );
    legend(html, runs);
    let names =
        union(runs.iter().flat_map(|run| &run.record.operators).map(|operator| operator.name.as_str()));
    let of = |run: &Shown<'_>, name: &str| -> Option<OperatorRecord> {
        run.record.operators.iter().find(|operator| operator.name == name).cloned()
    };
    head(
        html,
        "operator",
        &["steps", "timed", "min", "p50", "p90", "p99", "p99.9", "max", "late", "of a core"],
    );
    for name in &names {
        for (number, run) in runs.iter().enumerate() {
            let Some(operator) = of(run, name) else { continue };
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
    let mut busiest: Vec<(&str, f64)> = names
        .iter()
        .map(|name| {
            (
                *name,
                runs.iter()
                    .filter_map(|run| of(run, name))
                    .map(|operator| operator.share)
                    .fold(0.0, f64::max),
            )
        })
        .collect();
    busiest.sort_by(|a, b| b.1.total_cmp(&a.1));
    let timed = |name: &str| {
        runs.iter().filter_map(|run| of(run, name)).any(|operator| operator.steps_by_time.is_some())
    };
    let drawn: Vec<&str> =
        busiest.iter().map(|(name, _)| *name).filter(|name| timed(name)).take(OPERATORS).collect();
    if drawn.is_empty() {
        absent(html, "No histograms of steps were recorded.");
        return;
    }
    html.open("div", &[("class", &"charts")]);
    for name in &drawn {
        let all: Vec<Series<'_, Bins>> = runs
            .iter()
            .enumerate()
            .filter_map(|(colour, run)| {
                Some(Series { colour, name: run.label, data: bins(&of(run, name)?.steps_by_time?) })
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
    html.close("div");
    if names.len() > drawn.len() {
        absent(
            html,
            &format!(
                "The {} with the largest share of a core are drawn; the table has all.",
                words::counted(drawn.len() as u64, "operator")
            ),
        );
    }
}
