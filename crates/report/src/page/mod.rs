//! Self-contained HTML page about one run, or several runs side by side.
//!
//! The page has no script. Its content security policy forbids everything that is not in the file, in case a
//! value gets through the escaping of `html.rs`. Colours follow the light or dark mode of the browser; on
//! paper they are light.

mod chart;
mod facts;
mod frame;
mod graph;
mod html;
mod measured;
mod misses;
mod scale;
mod slowest;
mod summary;
mod text;
mod words;

pub use summary::{NamedFigure, RunVerdict, Tone, figures, verdict};
pub use text::{csv, json, markdown};

use html::Html;
use onbeat_trace::Record;

/// Run of a page, with its label.
#[derive(Debug, Clone, Copy)]
pub struct LabelledRun<'a> {
    /// Label on a page with several runs: the name of its file.
    pub label: &'a str,
    /// Record of the run.
    pub record: &'a Record,
}

/// Most runs on a page: the number of colours.
pub const MOST: usize = frame::COLOURS;

const STYLE: &str = include_str!("style.css");

/// Returns the page. It shows at most the first [`MOST`] runs.
///
/// ```
/// # let json = include_str!("../../tests/it/page/record.json");
/// let record = onbeat_trace::Record::from_json(json)?;
/// let run = onbeat_report::page::LabelledRun { label: "run.json", record: &record };
/// let html = onbeat_report::page::page(&[run]);
/// assert!(html.starts_with("<!doctype html>") && !html.contains("<script"));
/// # Ok::<(), onbeat_trace::ReadError>(())
/// ```
#[must_use]
pub fn page(runs: &[LabelledRun<'_>]) -> String {
    let runs = &runs[..runs.len().min(MOST)];
    let mut html = Html::default();
    html.constant(concat!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n",
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n",
        "<link rel=\"icon\" href=\"data:,\">\n<title>",
    ));
    let mut names: Vec<&str> = runs.iter().map(|run| run.record.name.as_str()).collect();
    names.dedup();
    html.text(format!("{} – onbeat", names.join(", "))).constant("</title>\n<style>\n").constant(STYLE);
    html.constant("</style>\n</head>\n<body>\n<main>\n");
    facts::header(&mut html, runs);
    misses::section(&mut html, runs);
    measured::paths(&mut html, runs);
    slowest::section(&mut html, runs);
    measured::regularity(&mut html, runs);
    measured::operators(&mut html, runs);
    facts::graph(&mut html, runs);
    facts::plan(&mut html, runs);
    facts::obtained(&mut html, runs);
    facts::host(&mut html, runs);
    facts::remarks(&mut html, runs);
    facts::configuration(&mut html, runs);
    html.open("footer", &[]);
    let mut builds: Vec<String> = runs
        .iter()
        .map(|run| {
            format!(
                "onbeat {} ({}, {})",
                run.record.build.version, run.record.build.profile, run.record.build.target
            )
        })
        .collect();
    builds.dedup();
    html.text(format!("Measured by {}. ", builds.join("; ")));
    html.constant("This page needs no network and runs no script.").close("footer");
    html.constant("\n</main>\n</body>\n</html>\n");
    html.into_string()
}

/// Writes a heading and an explanation.
fn heading(html: &mut Html, title: &'static str, about: &str) {
    html.element("h2", "", title);
    if !about.is_empty() {
        html.element("p", "about", about);
    }
}

/// Writes the colours of the runs, if there are several.
fn legend(html: &mut Html, runs: &[LabelledRun<'_>]) {
    if runs.len() < 2 {
        return;
    }
    html.open("div", &[("class", &"legend")]);
    for (number, run) in runs.iter().enumerate() {
        html.open("span", &[]);
        key(html, number);
        html.text(run.label).close("span");
    }
    html.close("div");
}

fn key(html: &mut Html, colour: usize) {
    html.open("i", &[("class", &format!("key k{}", colour % frame::COLOURS))]).close("i");
}

/// Writes a note about missing data.
fn absent(html: &mut Html, what: &str) {
    html.element("p", "absent", what);
}

/// Writes a chart with a title.
fn figure(html: &mut Html, title: &str, rest: &str, chart: &Html) {
    html.open("figure", &[]).open("figcaption", &[]).text(title);
    if !rest.is_empty() {
        html.text(" ").element("span", "", rest);
    }
    html.close("figcaption").add(chart).close("figure");
}

/// Writes a chart of full width. It is drawn twice: for wide and for narrow screens.
fn whole_figure(html: &mut Html, title: &str, rest: &str, draw: impl Fn(frame::ChartSize) -> Html) {
    html.open("figure", &[("class", &"whole")]).open("figcaption", &[]).text(title);
    if !rest.is_empty() {
        html.text(" ").element("span", "", rest);
    }
    html.close("figcaption");
    for (class, size) in [("wide", frame::WIDE), ("narrow", frame::SMALL)] {
        html.open("div", &[("class", &class)]).add(&draw(size)).close("div");
    }
    html.close("figure");
}

/// Removes duplicates, keeping the order.
fn union<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut union: Vec<T> = Vec::new();
    for one in all {
        if !union.contains(&one) {
            union.push(one);
        }
    }
    union
}
