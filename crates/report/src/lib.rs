//! Reports of measurements: pages, plots, traces and benchmark results.
//!
//! | module | contents |
//! |---|---|
//! | [`bench`](mod@bench) | results of a benchmark, in one form for all benchmarks: [`BenchResult`], [`Figure`] |
//! | [`page`](mod@page) | one or more runs as an HTML page; their figures as JSON, CSV and Markdown |
//! | [`perfetto`] | JSON traces for ui.perfetto.dev |
//! | [`pftrace`](mod@pftrace) | a running run as a trace in Perfetto's own format |
//! | [`plot`] | plots as SVG: bars with limits, lines |
//!
//! ```
//! use onbeat_report::plot::{Axis, Bar, Bars, Group, Sheet};
//! let bar = Bar { label: "tx_rx".into(), value: 9.1, min: 8.8, max: 12.0, limit: Some(2.6) };
//! let bars = Bars {
//!     title: "cost of one iteration".into(),
//!     axis: Axis::log("ns per iteration"),
//!     groups: vec![Group { name: "greedy".into(), bars: vec![bar] }],
//!     limit: "bare calls".into(),
//! };
//! let svg = Sheet::new("overhead").bars(bars).to_svg();
//! assert!(svg.starts_with("<svg ") && svg.contains("ns per iteration"));
//! ```
#![forbid(unsafe_code)]

pub mod bench;
pub mod page;
pub mod perfetto;
pub mod pftrace;
pub mod plot;

pub use bench::{BenchResult, Figure};
