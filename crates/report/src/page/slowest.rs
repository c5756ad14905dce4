//! The slowest messages of each path, step by step.

use super::frame::{ChartFrame, ChartSize};
use super::html::Html;
use super::measured::{path, path_names};
use super::scale::Scale;
use super::{LabelledRun, absent, heading, key, union, whole_figure, words};
use onbeat_trace::record::{PathRecord, SlowMessage, SlowStep};

/// Most paths that are drawn.
const PATHS: usize = 8;
/// Most messages per path.
const MESSAGES: usize = 10;
/// Operators with their own colour; the others share the last one.
const COLOURED: usize = 6;
/// Share of the latency in steps below which the steps are drawn again, enlarged.
const CLOSER: f64 = 0.2;
/// Height of a row and of the bars in it, in pixels.
const ROW: f64 = 24.0;
const BAR: f64 = 14.0;

pub(super) fn section(html: &mut Html, runs: &[LabelledRun<'_>]) {
    heading(
        html,
        "The slowest messages",
        "Steps of each message from the due time of its source, and the waiting time between them.",
    );
    let all: Vec<(usize, &PathRecord)> = path_names(runs)
        .iter()
        .flat_map(|name| {
            runs.iter().enumerate().filter_map(move |(number, run)| Some((number, path(run, name)?)))
        })
        .filter(|(_, path)| !path.slowest.is_empty())
        .collect();
    if all.is_empty() {
        absent(html, "No steps of messages were recorded: an older onbeat, `--explain=off`, or no path.");
        return;
    }
    for (number, path) in all.iter().take(PATHS) {
        html.open("h3", &[]);
        if runs.len() > 1 {
            key(html, *number);
            html.text(" ");
        }
        html.text(format!("{} → {}", path.from, path.to));
        if runs.len() > 1 {
            html.text(" ").element("small", "", runs[*number].label);
        }
        html.close("h3");
        one_path(html, path);
    }
    if all.len() > PATHS {
        absent(html, &format!("{} not drawn.", words::counted((all.len() - PATHS) as u64, "path")));
    }
}

fn one_path(html: &mut Html, path: &PathRecord) {
    let slowest = &path.slowest[..path.slowest.len().min(MESSAGES)];
    let operators = union(slowest.iter().flat_map(|message| &message.steps).map(|step| &step.operator));
    let colour = |step: &SlowStep| {
        operators.iter().position(|one| **one == step.operator).unwrap_or(COLOURED).min(COLOURED)
    };
    whole_figure(html, "step by step", "time in each operator", |size| {
        timelines(slowest, path, size, Origin::Due, &colour)
    });
    let all_ns = slowest.iter().map(|message| message.latency_ns as f64).fold(1.0, f64::max);
    let own_ns = slowest.iter().map(|message| latest_ns(message) - begun_ns(message)).fold(0.0, f64::max);
    if own_ns > 0.0 && own_ns < all_ns * CLOSER {
        whole_figure(html, "closer", "each from its first step", |size| {
            timelines(slowest, path, size, Origin::FirstStep, &colour)
        });
    }
    html.open("div", &[("class", &"legend")]);
    for (number, name) in operators.iter().take(COLOURED).enumerate() {
        html.open("span", &[]);
        key(html, number);
        html.text(name).close("span");
    }
    if operators.len() > COLOURED {
        html.open("span", &[]);
        key(html, COLOURED);
        html.text(words::counted((operators.len() - COLOURED) as u64, "other")).close("span");
    }
    html.close("div");
    table(html, slowest, path.max_latency_ns);
}

/// Returns the end of a step, from the due time of its message.
fn end_ns(step: &SlowStep) -> f64 {
    step.begin_ns as f64 + step.step_ns as f64
}

/// Returns the start of a message's first step, from its due time.
fn begun_ns(message: &SlowMessage) -> f64 {
    message.steps.first().map_or(0.0, |step| step.begin_ns as f64)
}

/// Returns the end of a message's last step.
fn latest_ns(message: &SlowMessage) -> f64 {
    message.steps.iter().map(end_ns).fold(begun_ns(message), f64::max)
}

/// Time at 0 on the horizontal axis.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Origin {
    Due,
    FirstStep,
}

/// Draws a row per message: a line over its latency, with its steps as bars.
fn timelines(
    slowest: &[SlowMessage],
    path: &PathRecord,
    size: ChartSize,
    origin: Origin,
    colour: &dyn Fn(&SlowStep) -> usize,
) -> Html {
    let size = ChartSize { height: ChartFrame::height_of(slowest.len() as f64 * ROW), ..size };
    let (about, unit_of) = match origin {
        Origin::Due => ("the slowest messages", "from the due time"),
        Origin::FirstStep => ("closer: the slowest messages", "from the first step"),
    };
    let mut frame = ChartFrame::new(size, &format!("{about} from {} to {}", path.from, path.to));
    let zero_ns = move |message: &SlowMessage| if origin == Origin::Due { 0.0 } else { begun_ns(message) };
    let begins = slowest
        .iter()
        .flat_map(|message| message.steps.iter().map(move |step| step.begin_ns as f64 - zero_ns(message)));
    let low = begins.fold(0.0, f64::min);
    let end = |message: &SlowMessage| {
        let due = if origin == Origin::Due { message.latency_ns as f64 } else { 0.0 };
        latest_ns(message).max(due) - zero_ns(message)
    };
    let high = slowest.iter().map(end).fold(1.0, f64::max);
    let (left, right) = frame.x();
    let (_, top) = frame.y();
    let x = Scale::linear(low, high, left, right);
    let (ticks, unit) = x.time_ticks(if size.width > 600.0 { 10 } else { 4 });
    frame.x_axis(&x, &ticks, &format!("{unit} {unit_of}"));
    for (row, message) in slowest.iter().enumerate() {
        let middle = top + (row as f64 + 0.5) * ROW;
        frame.text("tick", "end", (left - 5.0, middle + 4.0), &words::time(message.latency_ns as f64));
        let zero_ns = zero_ns(message);
        let (begin, end) = (x.place(0.0), x.place(message.latency_ns as f64 - zero_ns));
        frame.line("wait", (begin, middle), (end, middle));
        for step in &message.steps {
            let begin = x.place(step.begin_ns as f64 - zero_ns);
            // A very short step is one pixel wide.
            let end = x.place(end_ns(step) - zero_ns).max(begin + 1.0);
            let (above, below) = (middle - BAR / 2.0, middle + BAR / 2.0);
            let bar = [(begin, above), (end, above), (end, below), (begin, below)];
            let (begin, took) = (words::time(step.begin_ns as f64), words::time(step.step_ns as f64));
            frame.path("bar", colour(step), &bar, true, &format!("{}: {took}, from {begin}", step.operator));
        }
    }
    let limit_ns = path.max_latency_ns.map(|ns| ns as f64).filter(|ns| origin == Origin::Due && *ns <= high);
    if let Some(limit_ns) = limit_ns {
        let (bottom, top) = frame.y();
        let x = x.place(limit_ns);
        frame.line("limit", (x, bottom), (x, top));
        let anchor = if x > size.width / 2.0 { "end" } else { "start" };
        frame.text("limit-text", anchor, (x, top - 5.0), &format!("limit {}", words::time(limit_ns)));
    }
    frame.end()
}

fn table(html: &mut Html, slowest: &[SlowMessage], limit_ns: Option<u64>) {
    html.constant(
        "<div class=\"tables flowing\"><table><thead><tr><th>message</th><th class=\"n\">took</th><th>steps</th>\
         </tr></thead><tbody>",
    );
    for message in slowest {
        html.constant("<tr>").open("td", &[]).text(message.sequence).text(" ");
        html.element("small", "", format!("{} after the start", words::time(message.time_ns as f64)));
        html.close("td");
        let alarm = limit_ns.is_some_and(|limit_ns| message.latency_ns > limit_ns);
        html.element("td", if alarm { "n alarm" } else { "n" }, words::time(message.latency_ns as f64));
        html.element("td", "", steps_text(message)).constant("</tr>");
    }
    html.constant("</tbody></table></div>");
}

/// Returns the steps of a message and the waiting times as text.
fn steps_text(message: &SlowMessage) -> String {
    let mut parts = Vec::new();
    let mut before_ns = 0.0;
    for step in &message.steps {
        let wait_ns = step.begin_ns as f64 - before_ns;
        if wait_ns > 0.0 {
            parts.push(format!("waited {}", words::time(wait_ns)));
        }
        parts.push(format!("{} {}", step.operator, words::time(step.step_ns as f64)));
        before_ns = end_ns(step).max(before_ns);
    }
    if parts.is_empty() { "no steps recorded".to_string() } else { parts.join(", ") }
}
