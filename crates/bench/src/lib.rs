//! The benchmarks that onbeat is compared by, each with the limit that the machine sets, measured in the same call.
//!
//! | module | what |
//! |---|---|
//! | [`overhead`] | what the engine itself costs per iteration, as Holoscan's scheduler overhead benchmark asks |
//! | [`queue`] | what the work queue costs per item, beside models of a kernel's and channels |
//! | [`saxpy`] | the benchmark of radio runtimes: a chain of `y = a · x + b`, beside the same without an engine, and peers |
//! | [`pipeline`] | somebody's own graph under each scheduler that can run it; what is to be expected, and which is recommended |
//! | [`shapes`] | whether the advice holds: graphs drawn at random |
//! | [`costs`] | what the engine and the ways between cores cost on this machine |
//! | [`model`] | what follows from such costs: pure functions |
//! | `trial` | one graph under one scheduler, for a while |
//! | [`realtime`] | how regularly frames come beside a load, as Holoscan's benchmark of real-time threads asks |
//! | [`explain`] | what it costs to say why something was late |
//! | `holoscan` | another runtime in a process of its own |
//! | `watch` | how a bench tells how far it is, and hears that it is to stop: [`Watch`] |
//! | `told`, `pinned` | what all benches tell in the same way; threads beside the engine |
//! | `others` | whether the machine was quiet meanwhile |
//! | `error` | why a bench could not be run: [`BenchError`] |
//!
//! Each gives an [`onbeat_report::BenchResult`].
//!
//! ```
//! use onbeat_bench::overhead::{self, Case, Settings};
//! let settings = Settings { cases: vec![Case::TxRx], iterations: Some(1_000), runs: 1, ..Settings::default() };
//! let found = overhead::run(&settings, &mut onbeat_bench::Unwatched)?;
//! assert!(found.result.value("steady.greedy.tx_rx").is_some());
//! # Ok::<(), onbeat_bench::BenchError>(())
//! ```
#![forbid(unsafe_code)]

pub mod costs;
mod error;
pub mod explain;
mod holoscan;
pub mod model;
mod others;
pub mod overhead;
mod pinned;
pub mod pipeline;
pub mod queue;
pub mod realtime;
pub mod saxpy;
pub mod shapes;
mod told;
mod trial;
mod watch;

pub use error::BenchError;
pub use trial::Maker;
pub use watch::{Unwatched, Watch};
