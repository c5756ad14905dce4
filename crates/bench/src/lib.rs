//! The benchmarks of onbeat, each with the machine's own limit measured in the same call.
//!
//! | module | contents |
//! |---|---|
//! | [`overhead`] | cost of the engine per iteration, like Holoscan's scheduler overhead benchmark |
//! | [`queue`] | cost of the work queue per item, next to models of a kernel's queues and channels |
//! | [`saxpy`] | the radio runtimes' benchmark: a chain of `y = a · x + b`, next to bare code and peers |
//! | [`jobs`] | whole jobs: an FM receiver, an ADS-B receiver and others, next to bare code and peers |
//! | [`pipeline`] | a user's graph under each scheduler that can run it, with prediction and advice |
//! | [`shapes`] | a test of the advice with random graphs |
//! | [`costs`] | cost of the engine and of hand-overs between cores on this machine |
//! | [`model`] | predictions from such costs: pure functions |
//! | `trial` | one graph under one scheduler, for a limited time |
//! | [`realtime`] | frame jitter next to a load, like Holoscan's benchmark of real-time threads |
//! | [`explain`] | cost of explaining late messages |
//! | [`echo`] | an echo through a pipeline and through a bare loop, timed by a client of its own |
//! | `python_process` | a Python script in its own process |
//! | `script` | other programs in their own processes |
//! | `watch` | progress reports and stop requests: [`BenchWatch`] |
//! | `common`, `pinned` | parameters and notes of all benches; threads without an engine |
//! | `others` | CPU use of other processes during a measurement |
//! | `error` | errors of a bench: [`BenchError`] |
//!
//! Each bench returns an [`onbeat_report::BenchResult`].
//!
//! ```
//! use onbeat_bench::overhead::{self, OverheadCase, OverheadSettings};
//! let cases = vec![OverheadCase::TxRx];
//! let settings = OverheadSettings { cases, iterations: Some(1_000), runs: 1, ..Default::default() };
//! let found = overhead::run(&settings, &mut onbeat_bench::Unwatched)?;
//! assert!(found.result.value("steady.greedy.tx_rx").is_some());
//! # Ok::<(), onbeat_bench::BenchError>(())
//! ```
#![forbid(unsafe_code)]

mod common;
pub mod costs;
pub mod echo;
mod error;
pub mod explain;
pub mod jobs;
pub mod model;
mod others;
pub mod overhead;
mod pinned;
pub mod pipeline;
mod python_process;
pub mod queue;
pub mod realtime;
pub mod saxpy;
mod script;
pub mod shapes;
mod trial;
mod watch;

pub use error::BenchError;
pub use trial::Maker;
pub use watch::{BenchWatch, Unwatched};
