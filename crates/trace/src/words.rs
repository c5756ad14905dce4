//! Times in words, for people: the same form in sentences, tables and pages.

/// Formats a time in nanoseconds with three significant digits and a unit; from two minutes on, in minutes
/// and seconds.
///
/// ```
/// use onbeat_trace::words::time;
///
/// assert_eq!([412.0, 4_300.0, 16_720_000.0].map(time), ["412 ns", "4.3 µs", "16.7 ms"]);
/// assert_eq!([2e9, 123e9].map(time), ["2 s", "2 min 03 s"]);
/// ```
#[must_use]
pub fn time(ns: f64) -> String {
    let size = ns.abs();
    let (value, unit) = match size {
        size if size < 999.5 => (ns, "ns"),
        size if size < 999.5e3 => (ns / 1e3, "µs"),
        size if size < 999.5e6 => (ns / 1e6, "ms"),
        size if size < 120e9 => (ns / 1e9, "s"),
        _ => return format!("{} min {:02} s", (ns / 60e9) as i64, (size / 1e9) as u64 % 60),
    };
    format!("{} {unit}", digits(value))
}

/// Formats a number with three significant digits.
#[must_use]
pub fn digits(value: f64) -> String {
    let text = match value.abs() {
        size if size >= 99.95 || size == 0.0 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}
