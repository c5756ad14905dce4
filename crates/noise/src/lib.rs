//! What a machine takes away from its threads, and what took it.
//!
//! The way of a kernel event, each stage with one type:
//!
//! ```text
//! ring of a core ──► Record ──► KernelEvent ──┐
//!    bytes     decode     nesting             ├──► attribute ──► GapVerdict ──► Tally, table, JSON
//! busy loop, timer ─────────────► Gap ────────┘
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`decode`] | bytes of the kernel to [`Record`](decode::Record)s, by its own `format` files |
//! | [`nesting`] | records to kernel events: what ran on a core, each event without what interrupted it |
//! | [`source`] | where that comes from on this machine: a trace instance, rings of perf, or what `/proc` has |
//! | [`mod@measure`], [`record`] | measuring the noise of cores, and what came of it |
//! | [`timerlat`] | measuring how late timers wake a thread |
//! | [`tracer`] | both by the kernel's osnoise and timerlat tracers, where they are there |
//! | [`extra`] | any other events of the kernel, for a trace |
//! | [`TracepointEvidence`] | the same knowledge for whoever asks after the fact |
//! | [`mod@project`], [`text`] | what the noise would do to many nodes; events as lines |
//! | [`attribute`](mod@attribute) | a gap and events to a verdict, as a pure function whose parts sum to the gap |
//! | [`analysis`] | a wake-up and events to what delayed it, as a pure function whose steps sum to its latency |

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
pub use error::Error;
pub use evidence::TracepointEvidence;
pub use measure::measure;
pub use nesting::Nesting;
pub use record::{CpuNoise, NoiseRecord};
pub use settings::NoiseSettings;
pub use source::Backend;
pub use watch::{LimitHit, Watch};
