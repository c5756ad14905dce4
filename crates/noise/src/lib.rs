//! Measures the time that a machine takes away from its threads, and finds the causes.
//!
//! Stages of a kernel event, each with its type:
//!
//! ```text
//! ring of a core ──► RingRecord ──► KernelEvent ──┐
//!    bytes     decode        nesting              ├──► attribute ──► GapVerdict ──► tally, table, JSON
//! busy loop, timer ────────────────► Gap ─────────┘
//! ```
//!
//! | module | purpose |
//! |---|---|
//! | [`decode`] | from the kernel's bytes to [`RingRecord`](decode::RingRecord)s, by its `format` files |
//! | [`nesting`] | from records to kernel events, each without the events that interrupted it |
//! | [`source`] | sources of records on this machine: a trace instance, perf rings, or `/proc` |
//! | [`mod@measure`], [`record`] | measuring the noise of cores; the result |
//! | [`timerlat`] | measuring how late timers wake a thread |
//! | [`tracer`] | both, by the kernel's osnoise and timerlat tracers |
//! | [`extra`] | any other kernel events, for a trace |
//! | [`TracepointEvidence`] | kernel events for questions after the fact |
//! | [`mod@project`], [`text`] | the effect of the noise on many nodes; events as lines |
//! | [`attribute`](mod@attribute) | verdict on a gap, as a pure function; its parts add up to the gap |
//! | [`analysis`] | steps of a wake-up, as a pure function; they add up to its latency |

#![forbid(unsafe_code)]

pub mod analysis;
pub mod attribute;
mod counted;
pub mod decode;
pub mod error;
mod evidence;
pub mod extra;
mod following;
pub mod measure;
pub mod nesting;
mod outbox;
pub mod place;
pub mod project;
pub mod record;
mod sampler;
mod session;
mod settings;
pub mod source;
mod tally;
pub mod text;
mod threads;
mod timer;
pub mod timerlat;
pub mod tracer;
mod watch;

pub use attribute::{Gap, GapThread, GapVerdict, Interference, attribute};
pub use counted::ProcEvidence;
pub use error::NoiseError;
pub use evidence::TracepointEvidence;
pub use measure::measure;
pub use nesting::Nesting;
pub use record::{CpuNoise, NoiseRecord};
pub use settings::NoiseSettings;
pub use source::Backend;
pub use watch::{LimitHit, Observer};
