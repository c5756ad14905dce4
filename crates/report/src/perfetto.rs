//! JSON traces in the Trace Event Format, for ui.perfetto.dev and chrome://tracing.

use serde_json::{Value, json};

/// Time span on a track.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceSlice {
    /// Group of tracks, e.g. a core.
    pub group: u32,
    /// Track in the group.
    pub track: u32,
    /// Name shown on the slice.
    pub name: String,
    /// Start, in nanoseconds.
    pub start_ns: u64,
    /// Duration, in nanoseconds.
    pub duration_ns: u64,
    /// Details shown for a selected slice.
    pub details: Value,
}

/// Returns the text of the file. `groups` and `tracks` are names. Slices of one track can be nested, but must
/// not overlap otherwise.
///
/// ```
/// use onbeat_report::perfetto::{TraceSlice, trace};
/// let (start_ns, duration_ns, details) = (1500, 700, ().into());
/// let slice = TraceSlice { group: 1, track: 2, name: "RCU".into(), start_ns, duration_ns, details };
/// let text = trace(&[(1, "CPU 1".into())], &[(2, "softirq".into())], &[slice]);
/// let read: serde_json::Value = serde_json::from_str(&text)?;
/// assert_eq!(read["traceEvents"][2]["ts"], 1.5);
/// assert_eq!(read["traceEvents"][2]["dur"], 0.7);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn trace(groups: &[(u32, String)], tracks: &[(u32, String)], slices: &[TraceSlice]) -> String {
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
