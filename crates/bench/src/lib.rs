//! The benchmarks that onbeat is compared by, each with the limit that the machine sets, measured in the same call.
//!
//! | module | what |
//! |---|---|
//! | [`overhead`] | what the engine itself costs per iteration, as Holoscan's scheduler overhead benchmark asks |
//! | [`queue`] | what the work queue costs per item, beside models of a kernel's and channels |
//! | [`saxpy`] | the benchmark of radio runtimes: a chain of `y = a · x + b`, beside the same without an engine, and peers |
//! | `watch` | how a bench tells how far it is, and hears that it is to stop: [`Watch`] |
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

mod error;
mod others;
pub mod overhead;
pub mod queue;
pub mod saxpy;
mod watch;

pub use error::BenchError;
pub use watch::{Unwatched, Watch};
