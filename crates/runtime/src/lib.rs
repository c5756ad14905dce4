//! Graph → plan → worker → record: the engine of onbeat.
//!
//! Users write an [`Operator`], connect several in a [`Graph`], and run it with [`Options`]. The result is a
//! record of all measurements. [`Pipeline`] reads a graph and its options from TOML.
//!
//! Folders are layers, the lowest first. A file may use only its own layer and lower ones, which are the
//! rows above it; `ci/layers` checks that.
//!
//! | layer | contents |
//! |---|---|
//! | `base/` | [`Error`], [`Options`], units, wording of messages, small data structures |
//! | `operator/` | [`Operator`], [`Input`], [`Output`], [`Chunk`], [`Context`], [`When`], [`Kernel`] |
//! | `graph/` | operators, edges and limits by name: [`Graph`], [`Handle`], [`Kind`] |
//! | `plan/` | which worker steps which operator, as plain data: [`Plan`], [`GraphError`], [`response`] times |
//! | `pipeline/` | a graph and its options from TOML: [`Pipeline`], [`PipelineError`] |
//! | `engine/` | the loop that steps operators: workers, chains, pools; it starts no thread |
//! | `explain/` | causes of late messages, from spans and kernel events: [`explain`](mod@explain) |
//! | `run/` | threads and their rights, the handle, the record: [`Run`], [`RunHandle`], [`RunError`] |
//! | `serve/` | control of a run through a socket: [`ControlSocket`] |
//! | `testing/` | tests of one operator without a graph: [`testing`] |
//!
//! ```
//! use onbeat_runtime::{Graph, Options};
//! let mut graph = Graph::new("hello");
//! let mut n = 0;
//! let numbers = graph.source("numbers", move || { n += 1; (n <= 3).then_some(n) });
//! let print = graph.sink("print", |n: u64| println!("{n}"));
//! graph.connect(numbers, |s| &s.out, print, |p| &p.input);
//! let record = graph.run(&Options::default())?;
//! assert_eq!(record.edges[0].received, 3);
//! # Ok::<(), onbeat_runtime::RunError>(())
//! ```
#![forbid(unsafe_code)]

mod base;
mod engine;
pub mod explain;
mod graph;
mod operator;
mod pipeline;
mod plan;
mod run;
mod serve;
pub mod testing;

/// What the code that the derive macro writes needs.
#[doc(hidden)]
pub use graph::declared;

pub use onbeat_derive::{Operator, operator};

pub use base::error::Error;
pub use base::files::FileUse;
pub use base::idle::Idle;
pub use base::on_error::{OnError, Restart, Then};
pub use base::options::{Explain, OnHang, Options, Pace, Pool, Share};
pub use base::units::{Bytes, Decibels, Hertz, Period, Seconds};
pub use engine::control::hangs::{Call, Hang};
pub use engine::control::lateness::{LateMessage, Lateness};
pub use graph::closure::{FnMap, FnSink, FnSource};
pub use graph::declared::Declared;
pub use graph::kind::{Folders, Kind, MakeError, PortInfo, Registry};
pub use graph::limits::{OnMiss, PathLimits};
pub use graph::values::ParameterStatus;
pub use graph::{EdgeOptions, Graph, Handle, Subgraph};
pub use onbeat_os::Policy;
pub use onbeat_trace::record::{ClockKind, InFlightLimit, Scheduler, WhenFull};
pub use operator::aligned::{Aligned, Combine, Combined, FnCombine, Slices, Streams};
#[doc(hidden)]
pub use operator::aligned::{Common, HeldStream};
pub use operator::chunk::{Chunk, Info, Sample, Tag};
pub use operator::context::Context;
pub use operator::fetched::FetchedData;
pub use operator::generated::{Generated, Generator, StreamTiming};
pub use operator::in_place::InPlace;
pub use operator::inline::{ChunkInput, ChunkOutput, Inline, InputEdge, Shortcut};
pub use operator::kernel::{Change, FiniteMemory, Kernel, Map, Progress, Ratio, tried};
#[doc(hidden)]
pub use operator::lanes::{LaneMemory, LaneSlot};
pub use operator::lent::LentChunks;
pub use operator::message::{Keys, Message, Stamp, Value};
pub use operator::numbers::Numbers;
pub use operator::pace::{Pacer, Rate};
pub use operator::port::{Input, Output};
pub use operator::ports::{InputPort, Merge, OutputPort, Ports};
pub use operator::stream::Stream;
pub use operator::ticker::{Overrun, Ticker};
pub use operator::when::{Condition, Event, Gate, Readiness, View, Waker, When};
pub use operator::zip::Zip;
pub use operator::{Ending, Operator, Step};
pub use pipeline::{Overrides, Pipeline, PipelineError, Written};
pub use plan::response;
pub use plan::{
    EdgePlan, GraphError, OperatorPlan, PartPlan, PathPlan, Plan, PoolPlan, StorePlan, WorkerPlan,
};
pub use run::{
    Activity, EdgeStatus, EventStatus, GateStatus, OperatorStatus, OrderError, PathStatus, Position, Run,
    RunError, RunHandle, RunState, RunStatus,
};
pub use serve::{ControlError, ControlSocket};
