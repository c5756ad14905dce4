//! Figures of runs as JSON, CSV and Markdown.

use super::summary::{NamedFigure, Tone, figures, verdict};
use super::{LabelledRun, union, words};
use serde_json::{Map, Value, json};

/// Returns the figures of all runs: name, unit, and the value in each run.
fn rows(runs: &[LabelledRun<'_>]) -> Vec<(String, &'static str, Vec<Option<f64>>)> {
    let all: Vec<Vec<NamedFigure>> = runs.iter().map(|run| figures(run.record)).collect();
    let names = union(all.iter().flatten().map(|(name, _, unit)| (name.clone(), *unit)));
    let value = |figures: &[NamedFigure], name: &str| {
        figures.iter().find(|figure| figure.0 == name).and_then(|figure| figure.1)
    };
    names
        .into_iter()
        .map(|(name, unit)| {
            let values = all.iter().map(|figures| value(figures, &name)).collect();
            (name, unit, values)
        })
        .collect()
}

/// Formats a number without trailing zeros.
fn plain(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// Returns the verdict and the figures of each run as JSON, by dotted name; null if not measured.
#[must_use]
pub fn json(runs: &[LabelledRun<'_>]) -> String {
    let one = |run: &LabelledRun<'_>| {
        let verdict = verdict(run.record);
        let tone = match verdict.tone {
            Tone::Good => "good",
            Tone::Warn => "late",
            Tone::Bad => "bad",
            Tone::Plain => "no limit",
        };
        let figure = |(name, value, unit): NamedFigure| (name, json!({ "value": value, "unit": unit }));
        let figures: Map<String, Value> = figures(run.record).into_iter().map(figure).collect();
        json!({
            "record": run.label,
            "name": run.record.name,
            "started_unix_ns": run.record.started_unix_ns,
            "verdict": { "word": tone, "sentence": verdict.sentence, "details": verdict.details },
            "figures": figures,
        })
    };
    format!("{:#}\n", json!({ "runs": runs.iter().map(one).collect::<Vec<_>>() }))
}

/// Returns CSV with a line per figure: name, unit, and the value in each run; empty if not measured.
#[must_use]
pub fn csv(runs: &[LabelledRun<'_>]) -> String {
    let mut text = String::from("figure,unit");
    runs.iter().for_each(|run| text += &format!(",{}", field(run.label)));
    text.push('\n');
    for (name, unit, values) in rows(runs) {
        text += &format!("{},{unit}", field(&name));
        values.iter().for_each(|value| text += &format!(",{}", value.map_or(String::new(), plain)));
        text.push('\n');
    }
    text
}

fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

/// Returns verdicts and a table of figures as Markdown, for a comment or a wiki.
#[must_use]
pub fn markdown(runs: &[LabelledRun<'_>]) -> String {
    let mut text = String::new();
    for run in runs {
        let verdict = verdict(run.record);
        text += &format!("## {}: {}\n\n", cell(run.label), cell(&verdict.sentence));
        verdict.details.iter().for_each(|line| text += &format!("{}\n\n", cell(line)));
    }
    let heads: String = runs.iter().map(|run| format!(" {} |", cell(run.label))).collect();
    text += &format!("| figure |{heads}\n|---|{}\n", "---:|".repeat(runs.len()));
    for (name, unit, values) in rows(runs) {
        let shown = |value: &Option<f64>| match (value, unit) {
            (None, _) => "–".to_string(),
            (Some(ns), "ns") => words::time(*ns),
            (Some(share), "cores") => words::percent(*share),
            (Some(count), _) => words::count(*count as u64),
        };
        let values: String = values.iter().map(|value| format!(" {} |", shown(value))).collect();
        text += &format!("| {} |{values}\n", cell(&name));
    }
    text
}

/// Escapes text for a table cell in Markdown.
fn cell(text: &str) -> String {
    let mut safe = String::new();
    for c in text.chars() {
        match c {
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '~' | '!' => safe.extend(['\\', c]),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}
