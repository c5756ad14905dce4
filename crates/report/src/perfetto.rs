//! Traces that ui.perfetto.dev and chrome://tracing open: JSON in the form of the Trace Event Format.

use serde_json::{Value, json};

/// Something that took a while.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice {
    /// The group of tracks that it is in: a core.
    pub group: u32,
    /// Which track of it.
    pub track: u32,
    /// What it says.
    pub name: String,
    /// When it began, in nanoseconds.
    pub start_ns: u64,
    /// How long it took, in nanoseconds.
    pub duration_ns: u64,
    /// What it says when it is chosen.
    pub details: Value,
}

/// The whole file. `groups` and `tracks` have names; slices of one track must not overlap but by lying in each other.
///
/// ```
/// use onbeat_report::perfetto::{Slice, trace};
/// let slice = Slice { group: 1, track: 2, name: "RCU".into(), start_ns: 1500, duration_ns: 700, details: ().into() };
/// let text = trace(&[(1, "CPU 1".into())], &[(2, "softirq".into())], &[slice]);
/// let read: serde_json::Value = serde_json::from_str(&text)?;
/// assert_eq!((&read["traceEvents"][2]["ts"], &read["traceEvents"][2]["dur"]), (&1.5.into(), &0.7.into()));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn trace(groups: &[(u32, String)], tracks: &[(u32, String)], slices: &[Slice]) -> String {
    let mut events = Vec::new();
    for (group, name) in groups {
        events.push(json!({"ph": "M", "name": "process_name", "pid": group, "args": {"name": name}}));
        for (track, name) in tracks {
            events.push(
                json!({"ph": "M", "name": "thread_name", "pid": group, "tid": track, "args": {"name": name}}),
            );
        }
    }
    let micros = |ns: u64| ns as f64 / 1e3;
    events.extend(slices.iter().map(|slice| {
        json!({
            "ph": "X",
            "name": slice.name,
            "pid": slice.group,
            "tid": slice.track,
            "ts": micros(slice.start_ns),
            "dur": micros(slice.duration_ns),
            "args": slice.details,
        })
    }));
    json!({"displayTimeUnit": "ns", "traceEvents": events}).to_string() + "\n"
}
