//! Late messages over time, and their causes.

use super::html::Html;
use super::{LabelledRun, absent, chart, heading, key, whole_figure, words};
use onbeat_trace::cause::{Cause, CauseClass, Explained};
use onbeat_trace::record::{Miss, MissKind};
use onbeat_trace::{Record, Verdict};

/// Most misses listed one by one.
const TOLD: usize = 12;
/// Most causes in the first table.
const SHOWN: usize = 8;
/// Causes with their own colour; the others share one.
const COLOURED: usize = 6;
/// Colour of the other causes.
const REST: usize = 6;

pub(super) fn section(html: &mut Html, runs: &[LabelledRun<'_>]) {
    heading(html, "Late messages and their causes", "");
    for (number, run) in runs.iter().enumerate() {
        let record = run.record;
        if runs.len() > 1 {
            html.open("div", &[("class", &"run")]);
            key(html, number);
            html.text(run.label).close("div");
        }
        if record.misses_total == 0 {
            absent(html, "No message was late.");
            continue;
        }
        let coloured: Vec<&Cause> = record.causes.iter().take(COLOURED).collect();
        causes(html, record, &coloured);
        if record.misses.is_empty() {
            absent(html, "The record lists no individual misses.");
            continue;
        }
        let kept = record.misses.len() as u64;
        if record.misses_total > kept {
            let all = words::count(record.misses_total);
            absent(
                html,
                &format!(
                    "{all} misses in total. The record has the first {}, and the following is about these.",
                    words::count(kept)
                ),
            );
        }
        over_time(html, record, &coloured);
        one_by_one(html, &record.misses);
    }
}

/// Returns the text of a cause.
fn named(class: CauseClass, name: &str) -> String {
    let class = class.word().replace('_', " ");
    if name.is_empty() { class } else { format!("{class}: {name}") }
}

/// Writes the table of causes, or the reason why there is none.
fn causes(html: &mut Html, record: &Record, coloured: &[&Cause]) {
    let Some(explained) = &record.explained else {
        absent(html, "Causes were not determined: an older onbeat, `--explain=off`, or a virtual clock.");
        return;
    };
    if record.causes.is_empty() {
        absent(html, "No cause was found: no miss was analysed.");
    } else {
        let (first, rest) = record.causes.split_at(record.causes.len().min(SHOWN));
        table(html, first, explained, coloured);
        if !rest.is_empty() {
            let lost = rest.iter().map(|cause| cause.lost_ns).fold(0, u64::saturating_add);
            let more = format!("{} more causes, {} lost", rest.len(), words::time(lost as f64));
            html.open("details", &[]).element("summary", "", more);
            table(html, rest, explained, coloured);
            html.close("details");
        }
    }
    how(html, explained);
}

fn table(html: &mut Html, causes: &[Cause], explained: &Explained, coloured: &[&Cause]) {
    html.constant(
        "<div class=\"tables\"><table><thead><tr><th>cause</th><th class=\"n\">main cause of</th>\
         <th class=\"n\">of all</th><th class=\"n\">lost</th><th>fix</th></tr></thead><tbody>",
    );
    let most = coloured.iter().map(|cause| cause.lost_ns).max().unwrap_or(1).max(1);
    for cause in causes {
        let colour = coloured.iter().position(|one| *one == cause).unwrap_or(REST);
        html.constant("<tr>").open("td", &[]);
        key(html, colour);
        html.text(" ").text(named(cause.class, &cause.name)).close("td");
        html.element("td", "n", misses(cause.misses));
        html.element("td", "n", words::percent(cause.misses as f64 / explained.misses.max(1) as f64));
        let bar = format!("width:{:.1}%", cause.lost_ns as f64 / most as f64 * 100.0);
        html.open("td", &[("class", &"n share")]).text(words::time(cause.lost_ns as f64));
        html.open("span", &[("class", &"bar"), ("style", &bar)]).close("span").close("td");
        let finding =
            cause.finding.as_ref().map_or("–".to_string(), |finding| format!("onbeat doctor: {finding}"));
        html.element("td", "", finding).constant("</tr>");
    }
    html.constant("</tbody></table></div>");
}

/// Formats a number of misses: "1 miss", "2 misses".
fn misses(count: u64) -> String {
    format!("{} miss{}", words::count(count), if count == 1 { "" } else { "es" })
}

/// Writes the source of the kernel events, and what is missing.
fn how(html: &mut Html, explained: &Explained) {
    let mut text = format!("Source of kernel events: {}.", explained.source);
    if let Some(why) = &explained.why {
        text += &format!(" Reason: {why}.");
    }
    if let Some(fix) = &explained.fix {
        text += &format!(" Fix: {fix}.");
    }
    if !explained.sampled.is_empty() {
        text += &format!(" Only a sample of the steps was timed for: {}.", explained.sampled.join(", "));
    }
    let lacks = [
        (explained.left_out, "not analysed, because too many came at once", "miss"),
        (explained.unread, "not read in time", "step"),
        (explained.lost, "lost", "kernel record"),
    ];
    for (count, what, noun) in lacks.iter().filter(|(count, ..)| *count > 0) {
        text += &format!(
            " {} {what}.",
            if *noun == "miss" { misses(*count) } else { words::counted(*count, noun) }
        );
    }
    html.element("p", "about", text);
}

/// Draws the lateness over time, by cause if known.
fn over_time(html: &mut Html, record: &Record, coloured: &[&Cause]) {
    let mut kinds: Vec<(usize, String)> = coloured
        .iter()
        .enumerate()
        .map(|(colour, cause)| (colour, named(cause.class, &cause.name)))
        .collect();
    kinds.push((REST, "others".to_string()));
    let unknown = REST + 1;
    kinds.push((unknown, "not analysed".to_string()));
    let mut amounts: Vec<(f64, usize, f64)> = Vec::new();
    for miss in &record.misses {
        let time_ns = miss.time_ns as f64;
        let Some(verdict) = &miss.verdict else {
            amounts.push((time_ns, unknown, miss.late_ns as f64));
            continue;
        };
        for part in &verdict.parts {
            let same = |cause: &&Cause| cause.class == part.class && cause.name == part.name;
            let colour = coloured.iter().position(same).unwrap_or(REST);
            amounts.push((time_ns, colour, part.late_ns as f64));
        }
    }
    kinds.retain(|(kind, _)| amounts.iter().any(|(_, of, amount)| of == kind && *amount > 0.0));
    whole_figure(html, "causes over time", "total lateness of the misses at a time", |size| {
        chart::stacked(
            &amounts,
            &kinds,
            record.result.duration_ns as f64,
            size,
            "causes of lateness over time",
        )
    });
    html.open("div", &[("class", &"legend")]);
    for (colour, name) in &kinds {
        html.open("span", &[]);
        key(html, *colour);
        html.text(name).close("span");
    }
    html.close("div");
}

fn one_by_one(html: &mut Html, misses: &[Miss]) {
    html.element("h3", "", if misses.len() > TOLD { "The largest delays" } else { "One by one" });
    let mut worst: Vec<&Miss> = misses.iter().collect();
    worst.sort_by_key(|miss| std::cmp::Reverse(miss.late_ns));
    html.open("ol", &[("class", &"late")]);
    for miss in worst.into_iter().take(TOLD) {
        let late = words::time(miss.late_ns as f64);
        let what = match miss.kind {
            MissKind::Path => "of",
            MissKind::Deadline => "at",
        };
        let plain = || format!("message {} {what} {} was {late} late", miss.sequence, miss.name);
        let sentence = miss.verdict.as_ref().map_or_else(plain, |verdict: &Verdict| verdict.sentence.clone());
        let (took, limit) = (words::time(miss.value_ns as f64), words::time(miss.limit_ns as f64));
        html.open("li", &[]).text(sentence);
        html.element(
            "small",
            "",
            format!("{took} with a limit of {limit}, {} after the start", words::time(miss.time_ns as f64)),
        );
        html.close("li");
    }
    html.close("ol");
}
