//! Results in the layouts of cyclictest, which scripts read.

use onbeat_noise::record::LinearHistogram;
use onbeat_noise::timerlat::LatencyRecord;
use serde_json::{Value, json};

/// What cyclictest prints of each thread at the end.
pub fn thread_lines(record: &LatencyRecord, priority: u8, interval_us: u64, nano: bool) -> Vec<String> {
    let (divisor, width) = if nano { (1, 8) } else { (1000, 5) };
    let line = |(number, cpu): (usize, &onbeat_noise::timerlat::CpuLatency)| {
        let (user, pid) = (&cpu.user, std::process::id());
        let of = |ns: u64| ns / divisor;
        let (min, max) = (of(user.histogram.min_ns), of(user.histogram.max_ns));
        let (last, mean) = (of(user.last_ns), of(user.histogram.mean_ns()));
        format!(
            "T:{number:2} ({pid:5}) P:{priority:2} I:{interval_us} C:{:7} Min:{min:7} Act:{last:width$} Avg:{mean:width$} Max:{max:8}",
            user.histogram.count
        )
    };
    record.cpus.iter().enumerate().map(line).collect()
}

/// A histogram of `buckets` rows of 1 us, with a column per thread, and one for all if wanted.
pub fn histogram_lines(record: &LatencyRecord, buckets: usize, has_all: bool) -> Vec<String> {
    let threads: Vec<&LinearHistogram> = record.cpus.iter().map(|cpu| &cpu.user.histogram).collect();
    let columns = |of: &dyn Fn(&LinearHistogram) -> u64, width: usize, between: &str| {
        let mut values: Vec<u64> = threads.iter().map(|thread| of(thread)).collect();
        if has_all {
            values.push(values.iter().sum());
        }
        let words: Vec<String> = values.iter().map(|value| format!("{value:0width$}")).collect();
        words.join(between)
    };
    let mut lines = vec!["# Histogram".to_owned()];
    let at = |bucket: usize| move |thread: &LinearHistogram| thread.counts.get(bucket).copied().unwrap_or(0);
    lines.extend((0..buckets).map(|bucket| format!("{bucket:06} {}", columns(&at(bucket), 6, "\t"))));
    let over = |thread: &LinearHistogram| thread.over + thread.counts.iter().skip(buckets).sum::<u64>();
    lines.push(format!("# Total: {}", columns(&|thread| thread.count - over(thread), 9, " ")));
    let each = |of: &dyn Fn(&LinearHistogram) -> u64| {
        let words: Vec<String> = threads.iter().map(|thread| format!("{:05}", of(thread) / 1000)).collect();
        words.join(" ")
    };
    lines.push(format!("# Min Latencies: {}", each(&|thread| thread.min_ns)));
    lines.push(format!("# Avg Latencies: {}", each(&|thread| thread.mean_ns())));
    lines.push(format!("# Max Latencies: {}", each(&|thread| thread.max_ns)));
    lines.push(format!("# Histogram Overflows: {}", columns(&over, 5, " ")));
    lines
}

/// The results as JSON, in the layout of rt-tests.
pub fn json(record: &LatencyRecord, command: &str, buckets: usize, status: u8) -> Value {
    let thread = |(number, cpu): (usize, &onbeat_noise::timerlat::CpuLatency)| {
        let all = &cpu.user.histogram;
        let counts = all.counts.iter().take(buckets).enumerate().filter(|(_, count)| **count > 0);
        let histogram: serde_json::Map<String, Value> =
            counts.map(|(bucket, count)| (bucket.to_string(), (*count).into())).collect();
        let mean_us = if all.count > 0 { all.sum_ns as f64 / all.count as f64 / 1e3 } else { 0.0 };
        let thread = json!({
            "histogram": histogram,
            "cycles": all.count,
            "min": all.min_ns / 1000,
            "max": all.max_ns / 1000,
            "avg": (mean_us * 100.0).round() / 100.0,
            "cpu": cpu.cpu,
        });
        (number.to_string(), thread)
    };
    let threads: serde_json::Map<String, Value> = record.cpus.iter().enumerate().map(thread).collect();
    json!({
        "file_version": 1,
        "cmdline": command,
        "program": format!("onbeat {}", env!("CARGO_PKG_VERSION")),
        "return_code": status,
        "num_threads": threads.len(),
        "resolution_in_ns": 0,
        "thread": threads,
    })
}
