//! Every view of what was measured that is not a terminal.
//!
//! | module | what |
//! |---|---|
//! | [`bench`](mod@bench) | what a bench found, in the one form that all benches share: [`BenchResult`], [`Figure`] |
//! | [`page`](mod@page) | one run or several as a page that opens offline; their figures as JSON, CSV and Markdown |
//! | [`perfetto`] | traces for ui.perfetto.dev |
//! | [`pftrace`](mod@pftrace) | a run as it goes on, in the form of Perfetto |
//! | [`plot`] | plots as SVG: bars with their limits, lines over numbers |
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
