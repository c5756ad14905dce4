//! Sections without plots: verdict, plan, requested settings, host, remarks.

use super::graph::{self, Direction};
use super::html::Html;
use super::summary::{Tone, verdict};
use super::{LabelledRun, absent, heading, key, words};
use onbeat_trace::{Machine, Record};

pub(super) fn header(html: &mut Html, runs: &[LabelledRun<'_>]) {
    html.open("header", &[]);
    let one = runs.len() == 1;
    html.element("h1", "", if one { runs[0].record.name.as_str() } else { "Comparison of runs" });
    for (number, run) in runs.iter().enumerate() {
        let (record, verdict) = (run.record, verdict(run.record));
        if !one {
            html.open("div", &[("class", &"run")]);
            key(html, number);
            html.text(run.label).close("div");
        }
        let class = match verdict.tone {
            Tone::Good => "verdict good",
            Tone::Warn => "verdict warn",
            Tone::Bad => "verdict bad",
            Tone::Plain => "verdict",
        };
        html.open("div", &[("class", &class)]).element("b", "", &verdict.sentence);
        verdict.details.iter().for_each(|line| _ = html.element("span", "", line));
        html.close("div");
        html.element(
            "p",
            "",
            format!(
                "{} · {} · {}",
                record.name,
                words::date(record.started_unix_ns),
                machine_line(&record.machine)
            ),
        );
        cards(html, record);
    }
    html.close("header");
}

fn machine_line(machine: &Machine) -> String {
    let cores = machine.cores_online.map(|cores| words::counted(cores.into(), "core"));
    let parts = [machine.cpu_model.clone(), cores, machine.kernel.clone()];
    let known: Vec<String> = parts.into_iter().flatten().collect();
    if known.is_empty() { "an unknown machine".to_string() } else { known.join(" · ") }
}

fn cards(html: &mut Html, record: &Record) {
    html.open("div", &[("class", &"figures")]);
    let mut card = |value: String, what: String, alarm: bool| {
        html.open("div", if alarm { &[("class", &"alarm")] } else { &[] });
        html.element("b", "", value).element("span", "", what).close("div");
    };
    card(words::count(record.misses_total), "later than a limit".into(), record.misses_total > 0);
    // The path that is closest to its limit, or the slowest one.
    let near = |path: &&onbeat_trace::record::PathRecord| {
        let part = path.max_latency_ns.map_or(0.0, |limit| path.latency.p99_ns as f64 / limit.max(1) as f64);
        (path.max_latency_ns.is_some(), part, path.latency.p99_ns)
    };
    let measured = record.paths.iter().filter(|path| path.latency.count > 0);
    if let Some(path) =
        measured.max_by(|a, b| near(a).partial_cmp(&near(b)).unwrap_or(std::cmp::Ordering::Equal))
    {
        let name = format!("{} → {}", path.from, path.to);
        card(words::time(path.latency.p99_ns as f64), format!("p99 latency, {name}"), false);
        let over = path.max_latency_ns.is_some_and(|limit| path.latency.max_ns > limit);
        let limit = path
            .max_latency_ns
            .map_or("no limit".to_string(), |limit| format!("limit {}", words::time(limit as f64)));
        card(words::time(path.latency.max_ns as f64), format!("longest, {limit}"), over);
    }
    // Saturating: an edited record can have any number.
    let dropped = record.edges.iter().map(|edge| edge.dropped).fold(0, u64::saturating_add);
    card(words::count(dropped), "dropped by `when_full`".into(), false);
    card(words::count(record.result.lost), "lost unexpectedly".into(), record.result.lost > 0);
    let busy: f64 = record.operators.iter().map(|operator| operator.share).sum();
    card(words::percent(busy), "of a core in operators".into(), false);
    html.close("div");
}

pub(super) fn graph(html: &mut Html, runs: &[LabelledRun<'_>]) {
    heading(
        html,
        "The graph",
        "The colour of an operator is its share of a core. A dashed line goes back in the graph. An orange line dropped messages; its number says how many.",
    );
    html.open("div", &[("class", &"legend")]);
    for (class, text) in [
        ("key k-load0", "below 2 %"),
        ("key k-load1", "2 to 25 %"),
        ("key k-load2", "25 to 60 %"),
        ("key k-load3", "60 to 90 %"),
        ("key k-load4", "90 % and above"),
    ] {
        html.open("span", &[]).open("i", &[("class", &class)]).close("i").text(text).close("span");
    }
    html.close("div");
    for (number, run) in runs.iter().enumerate() {
        title(html, runs, number);
        if run.record.operators.is_empty() {
            absent(html, "This record has no operators.");
            continue;
        }
        html.open("figure", &[("class", &"whole")]);
        for (class, direction) in [("wide scroll", Direction::Right), ("narrow scroll", Direction::Down)] {
            html.open("div", &[("class", &class)]).add(&graph::draw(run.record, direction)).close("div");
        }
        html.close("figure");
    }
    edges(html, runs);
}

/// Writes the label of the run, if there are several.
fn title(html: &mut Html, runs: &[LabelledRun<'_>], number: usize) {
    if runs.len() > 1 {
        html.open("div", &[("class", &"run")]);
        key(html, number);
        html.text(runs[number].label).close("div");
    }
}

/// Writes the header of a table: columns of text, then of numbers.
fn head(html: &mut Html, texts: &[&'static str], numbers: &[&'static str]) {
    html.constant("<div class=\"tables\"><table><thead><tr>");
    texts.iter().for_each(|text| _ = html.element("th", "", text));
    numbers.iter().for_each(|text| _ = html.element("th", "n", text));
    html.constant("</tr></thead><tbody>");
}

fn end(html: &mut Html) {
    html.constant("</tbody></table></div>");
}

fn edges(html: &mut Html, runs: &[LabelledRun<'_>]) {
    html.open("details", &[]).element("summary", "", "All edges");
    for (number, run) in runs.iter().enumerate() {
        title(html, runs, number);
        head(html, &["edge", "when full"], &["deepest", "of", "sent", "dropped", "unread"]);
        for edge in &run.record.edges {
            html.constant("<tr>").element("td", "", format!("{} → {}", edge.from, edge.to));
            html.element("td", "", edge.when_full);
            for value in [edge.depth_max, edge.capacity, edge.sent] {
                html.element("td", "n", words::count(value));
            }
            html.element("td", if edge.dropped > 0 { "n alarm" } else { "n" }, words::count(edge.dropped));
            html.element("td", "n", words::count(edge.unread)).constant("</tr>");
        }
        end(html);
    }
    html.close("details");
}

pub(super) fn plan(html: &mut Html, runs: &[LabelledRun<'_>]) {
    heading(html, "The plan", "Operators of each worker, and the time and memory use of each thread.");
    for (number, run) in runs.iter().enumerate() {
        title(html, runs, number);
        let record = run.record;
        html.element(
            "p",
            "about",
            format!("scheduler {}, clock {}", record.plan.scheduler, record.clock.kind),
        );
        head(
            html,
            &["thread", "operators or purpose", "policy"],
            &["on a core", "in steps", "waiting", "page faults", "allocations"],
        );
        for thread in &record.threads {
            let worker = record.plan.workers.iter().find(|worker| worker.name == thread.name);
            let does = worker.map_or(thread.purpose.clone(), |worker| worker.operators.join(", "));
            html.constant("<tr>").element("td", "", &thread.name).element("td", "", does);
            html.element("td", "", thread.policy.as_deref().unwrap_or("–"));
            html.element("td", "n", words::time(thread.cpu_ns as f64));
            for ns in [thread.busy_ns, thread.idle_ns] {
                let text = if worker.is_some() { words::time(ns as f64) } else { "–".to_string() };
                html.element("td", "n", text);
            }
            let faults = thread
                .minor_faults
                .zip(thread.major_faults)
                .map(|(minor, major)| minor.saturating_add(major));
            for value in [faults, thread.allocations] {
                html.element("td", "n", value.map_or("–".to_string(), words::count));
            }
            html.constant("</tr>");
        }
        end(html);
    }
}

pub(super) fn obtained(html: &mut Html, runs: &[LabelledRun<'_>]) {
    heading(
        html,
        "Requested and obtained",
        "Settings requested from the machine, and what it granted. Settings that were not obtained come first.",
    );
    for (number, run) in runs.iter().enumerate() {
        title(html, runs, number);
        let mut settings: Vec<_> = run.record.obtained.iter().collect();
        settings.sort_by_key(|one| one.asked == one.obtained);
        if settings.is_empty() {
            absent(html, "No settings were requested.");
            continue;
        }
        head(html, &["setting", "requested", "obtained", "reason"], &[]);
        for one in settings {
            let bad = one.asked != one.obtained;
            html.open("tr", if bad { &[("class", &"bad")] } else { &[] });
            html.element("td", "", &one.what).element("td", "", &one.asked).element("td", "", &one.obtained);
            html.open("td", &[])
                .element("small", "", one.reason.as_deref().unwrap_or(""))
                .close("td")
                .close("tr");
        }
        end(html);
    }
}

pub(super) fn host(html: &mut Html, runs: &[LabelledRun<'_>]) {
    let about = if runs.len() > 1 { "Lines in which the machines differ are marked." } else { "" };
    heading(html, "The host", about);
    html.constant("<div class=\"tables\"><table><tbody>");
    if runs.len() > 1 {
        html.constant("<tr><th></th>");
        runs.iter().for_each(|run| _ = html.element("th", "", run.label));
        html.constant("</tr>");
    }
    let columns: Vec<Vec<(&'static str, String)>> =
        runs.iter().map(|run| machine_facts(&run.record.machine)).collect();
    for row in 0..columns.first().map_or(0, Vec::len) {
        let values: Vec<&str> = columns.iter().map(|facts| facts[row].1.as_str()).collect();
        let differs = values.iter().any(|value| *value != values[0]);
        html.constant("<tr>").element("th", "", columns[0][row].0);
        values.iter().for_each(|value| _ = html.element("td", if differs { "differs" } else { "" }, value));
        html.constant("</tr>");
    }
    end(html);
}

fn machine_facts(machine: &Machine) -> Vec<(&'static str, String)> {
    let unknown = || "unknown".to_string();
    let text = |value: &Option<String>| value.clone().unwrap_or_else(unknown);
    let list = |value: &Option<String>| match value.as_deref() {
        Some("") => "none".to_string(),
        Some(list) => list.to_string(),
        None => unknown(),
    };
    let size = |value: Option<u64>| value.map_or_else(unknown, words::bytes);
    let yes = |value: Option<bool>| {
        value.map_or_else(unknown, |value| if value { "yes" } else { "no" }.to_string())
    };
    let tsc = machine.tsc.as_ref().map_or("none or unknown".to_string(), |tsc| {
        let words = [
            (tsc.constant, "constant"),
            (tsc.nonstop, "nonstop"),
            (tsc.reliable, "reliable"),
            (tsc.known_frequency, "known frequency"),
        ];
        words.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect::<Vec<_>>().join(", ")
    });
    let cores = machine.cores_online.map_or_else(unknown, |online| match machine.cores_possible {
        Some(possible) if possible != online => format!("{online} of {possible}"),
        _ => online.to_string(),
    });
    let caches = [machine.l1d_bytes, machine.l2_bytes, machine.l3_bytes].map(size).join(" / ");
    let parameters = machine.kernel_parameters.as_ref();
    vec![
        ("processor", text(&machine.cpu_model)),
        ("cores", cores),
        ("isolated cores", list(&machine.cores_isolated)),
        ("tickless cores (nohz_full)", list(&machine.cores_nohz_full)),
        ("SMT (several threads per core)", yes(machine.smt)),
        ("caches L1d / L2 / L3", caches),
        ("memory", size(machine.memory_bytes)),
        ("virtualisation", text(&machine.virtualisation)),
        ("kernel", text(&machine.kernel)),
        ("preemption", text(&machine.preemption)),
        (
            "kernel parameters",
            parameters.map_or_else(unknown, |list| {
                if list.is_empty() { "none that affect timing".to_string() } else { list.join(" ") }
            }),
        ),
        ("clock source", text(&machine.clock_source)),
        ("time-stamp counter", tsc),
        ("governor", text(&machine.governor)),
        ("distribution", text(&machine.distribution)),
    ]
}

/// Writes failures, changes and notes.
pub(super) fn remarks(html: &mut Html, runs: &[LabelledRun<'_>]) {
    let some =
        |record: &Record| !record.faults.is_empty() || !record.changes.is_empty() || !record.notes.is_empty();
    if !runs.iter().any(|run| some(run.record)) {
        return;
    }
    heading(html, "Failures, changes and notes", "");
    for (number, run) in runs.iter().enumerate().filter(|(_, run)| some(run.record)) {
        title(html, runs, number);
        let record = run.record;
        html.open("ol", &[("class", &"late")]);
        for fault in &record.faults {
            let whose = fault.operator.as_deref().unwrap_or("the run");
            html.open("li", &[]).text(format!(
                "{whose}: {} at {}: {}",
                fault.what,
                words::time(fault.time_ns as f64),
                fault.text
            ));
            html.element("small", "", format!("then: {}", fault.then)).close("li");
        }
        for change in &record.changes {
            let set = change.parameter.as_ref().map_or(String::new(), |name| {
                format!(" {name} = {}", change.value.as_ref().map_or("?".to_string(), ToString::to_string))
            });
            html.element(
                "li",
                "",
                format!(
                    "{} was {}{set} at {}",
                    change.operator,
                    change.what,
                    words::time(change.time_ns as f64)
                ),
            );
        }
        record.notes.iter().for_each(|note| _ = html.element("li", "", note));
        html.close("ol");
        let faults = record.faults_total.saturating_sub(record.faults.len() as u64);
        let more = faults.saturating_add(record.changes_total.saturating_sub(record.changes.len() as u64));
        if more > 0 {
            absent(html, &format!("{} more. The record has only the first ones.", words::count(more)));
        }
    }
}

pub(super) fn configuration(html: &mut Html, runs: &[LabelledRun<'_>]) {
    heading(
        html,
        "The configuration",
        "Resolved configuration, with defaults and the settings of the command line.",
    );
    for run in runs {
        let name = if runs.len() > 1 { run.label } else { "Show" };
        html.open("details", &[]).element("summary", "", name);
        html.element("pre", "", format!("{:#}", run.record.config)).close("details");
    }
}
