//! The language that all rooms of onbeat share: plain data, no threads, no system calls but reading
//! and writing files.
//!
//! | module | what |
//! |---|---|
//! | [`cause`] | what made something late: [`Verdict`], [`Cause`] |
//! | [`course`], [`regularity`] | durations over time, and how regular they were, in a fixed piece of memory |
//! | [`histogram`] | durations counted in a fixed piece of memory, and their [`Summary`] |
//! | [`machine`] | the facts of the machine that explain a number: [`Machine`] |
//! | [`record`] | everything that one run measured, as one JSON file: [`Record`] |
//! | [`span`] | one step in time, kernel events, and where they come from: [`Evidence`] |
//! | [`error`] | why a record could not be read |
//!
//! Every time is an `u64` of nanoseconds on `CLOCK_MONOTONIC` unless its name says otherwise, and
//! every field carries its unit in its name. The fields of the JSON are in `SCHEMA.md`.
//!
//! # Example
//!
//! ```
//! use onbeat_trace::Histogram;
//!
//! let mut latency = Histogram::new();
//! for step in 1..=1_000 {
//!     latency.record(step * 1_000);
//! }
//! let summary = latency.summary();
//! assert_eq!((summary.count, summary.min_ns, summary.max_ns), (1_000, 1_000, 1_000_000));
//! assert!((500_000..=505_000).contains(&summary.median_ns));
//! ```

#![forbid(unsafe_code)]

pub mod cause;
pub mod course;
pub mod error;
pub mod histogram;
pub mod machine;
pub mod record;
pub mod regularity;
pub mod replace;
pub mod span;

pub use cause::{Cause, CauseClass, CauseFix, Verdict};
pub use course::{Course, CourseRecord};
pub use error::ReadError;
pub use histogram::{Buckets, Histogram, Summary};
pub use machine::Machine;
pub use record::Record;
pub use regularity::{Regularity, RegularityRecord};
pub use span::{Class, Counted, Evidence, KernelEvent, Left, NoEvidence, OffCpu, PageFault, Span, Waker};
