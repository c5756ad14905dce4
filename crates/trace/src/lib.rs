//! Data types that all crates of onbeat share: plain data, no threads, and no system calls except reading and
//! writing files.
//!
//! | module | content |
//! |---|---|
//! | [`cause`] | causes of lateness: [`Verdict`], [`Cause`] |
//! | [`course`], [`regularity`] | durations over time, and their regularity, in bounded memory |
//! | [`histogram`] | durations in a histogram of bounded memory, and their [`Summary`] |
//! | [`machine`] | facts of the machine that explain a number: [`Machine`] |
//! | [`record`] | all measurements of one run, as one JSON file: [`Record`] |
//! | [`span`] | one step in time, kernel events, and their source: [`Evidence`] |
//! | [`error`] | errors of reading a record |
//! | [`words`] | times in words, for people |
//!
//! Every time is a `u64` of nanoseconds on `CLOCK_MONOTONIC` unless its name says otherwise, and every field
//! has its unit in its name. `SCHEMA.md` describes the fields of the JSON.
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
pub mod words;

pub use cause::{Cause, CauseClass, CauseFix, Verdict};
pub use course::{Course, CourseRecord};
pub use error::ReadError;
pub use histogram::{Buckets, Histogram, Summary};
pub use machine::Machine;
pub use record::Record;
pub use regularity::{Regularity, RegularityRecord};
pub use span::{
    Class, Counted, Evidence, KernelEvent, Left, LinkArrival, LockWait, NoEvidence, OffCpu, PageFault, Span,
    WakeSource,
};
