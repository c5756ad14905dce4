//! Results of commands as lines, tables and JSON, independent of the output format.

mod bench;
mod compared;
mod cyclictest;
mod echo;
mod explain;
mod findings;
pub mod flight;
mod jobs;
mod keys;
mod kind_list;
mod kinds;
mod late;
mod live;
mod machine;
mod measured;
mod noise;
mod page;
mod plan;
mod prose;
mod queue;
mod realtime;
mod run;
mod saxpy;
mod schema;
mod screens;
mod status;
mod table;
mod timerlat;
mod top;
mod tuning;

pub use bench::overhead;
pub use compared::{noise_compared, noise_figures, noise_projected};
pub use cyclictest::{
    histogram_lines as cyclictest_histogram, json as cyclictest_json, thread_lines as cyclictest_threads,
};
pub use echo::echo;
pub use explain::explain;
pub use findings::{FindingsView, explained, findings, findings_page, verified};
pub use jobs::jobs;
pub use keys::keys;
pub use kind_list::{has_words, kinds};
pub use kinds::kind;
pub use live::{LiveTable, LiveView};
pub use measured::{bench_pipeline, measured, shapes};
pub use noise::{NoiseView, elapsed, noise, noise_notes};
pub use page::{page, page_of};
pub use plan::plan;
pub use prose::{broken, length};
pub use queue::queue;
pub use realtime::realtime;
pub use run::{RunFacts, not_obtained, run};
pub use saxpy::saxpy;
pub use schema::schema;
pub use screens::{noise_screen, timerlat_screen};
pub use status::{current, status};
pub use table::{Cell, Column, Table, Unit};
pub use timerlat::{timerlat, timerlat_notes};
pub use top::top;
pub use tuning::{Tuning, tuning, undone};

use onbeat::trace::words;

/// Result of a command.
pub struct Document {
    /// Lines before the tables. The first one is the title.
    pub head: Vec<String>,
    pub tables: Vec<Table>,
    /// Lines after the tables.
    pub tail: Vec<String>,
    /// All data, for programs.
    pub json: serde_json::Value,
}

/// Formats a count with its noun: "1 edge", "2 edges".
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Formats a time in nanoseconds.
fn time(ns: u64) -> String {
    words::time(ns as f64)
}

/// Formats a size with a suitable unit.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_are_short() {
        let times = [
            (999, "999 ns"),
            (12_345, "12.3 µs"),
            (2_500_000_000, "2.5 s"),
            (3_723_000_000_000, "62 min 03 s"),
        ];
        for (ns, text) in times {
            assert_eq!(super::time(ns), text);
        }
    }
}
