//! Graph → plan → worker → record: the engine of onbeat.
//!
//! | module | what |
//! |---|---|
//! | `graph` | what connects: [`Graph`], [`Handle`], subgraphs |
//! | `plan` | who runs where, checked and frozen: [`Plan`], [`GraphError`] |
//! | `pipeline` | a graph and its options from a TOML file: [`Pipeline`], [`PipelineError`] |
//! | `run` | binds the plan and starts its threads: [`Run`], [`RunError`] |
//! | `serve` | a run's handle on a socket: [`ControlSocket`] |
//! | `worker` | the hot loop, and everything that is not hot |
//! | `operator`, `port`, `message`, `chunk`, `context` | what user code sees: [`Operator`], [`Input`], [`Output`], [`Chunk`] |
//! | [`testing`] | tests of one operator |
//! | `kernel`, `stream`, `in_place` | operators that see samples and not chunks: [`Kernel`], [`Map`], [`Stream`], [`InPlace`] |
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

mod carry;
mod changes;
mod chunk;
mod closure;
mod context;
mod error;
pub mod explain;
mod files;
mod graph;
mod in_place;
mod kept;
mod kernel;
mod kind;
mod limits;
mod link;
mod message;
mod numbers;
mod on_error;
mod operator;
mod options;
mod pace;
mod pipeline;
mod plan;
mod pool;
mod port;
mod ports;
mod ready;
mod record;
mod replicate;
pub mod response;
mod run;
mod serve;
mod stream;
mod team;
pub mod testing;
mod ticker;
mod timers;
mod units;
mod wave;
mod when;
mod worker;

#[doc(hidden)]
pub use carry::Carrier;
pub use chunk::{Chunk, Info, Sample, Tag};
pub use closure::{FnMap, FnSink, FnSource};
pub use context::Context;
pub use error::Error;
pub use explain::{LateMessage, Lateness};
pub use files::FileUse;
pub use graph::{EdgeOptions, Graph, Handle, Subgraph};
pub use in_place::InPlace;
pub use kernel::{Change, Kernel, Map, Progress, Ratio, tried};
pub use kind::{Folders, Kind, MakeError, PortInfo, Registry};
pub use limits::{OnMiss, PathLimits};
pub use message::{Keys, Message, Stamp, Value};
pub use numbers::Numbers;
pub use on_error::{OnError, Restart, Then};
pub use onbeat_os::Policy;
pub use onbeat_trace::record::{ClockKind, InFlightLimit, Scheduler, WhenFull};
pub use operator::{Ending, Operator, Step};
pub use options::{Explain, OnHang, Options, Pace, Pool, Share};
pub use pace::{Pacer, Rate};
pub use pipeline::{Overrides, Pipeline, PipelineError};
pub use plan::{
    EdgePlan, GraphError, OperatorPlan, PartPlan, PathPlan, Plan, PoolPlan, StorePlan, WorkerPlan,
};
pub use port::{Input, Output};
pub use ports::{InputPort, Merge, OutputPort, Ports};
pub use run::{
    Activity, Call, EdgeStatus, EventStatus, GateStatus, Hang, OperatorStatus, OrderError, PathStatus,
    Position, Run, RunError, RunHandle, RunState, RunStatus,
};
pub use serve::{ControlError, ControlSocket};
pub use stream::Stream;
pub use team::Idle;
pub use ticker::{Overrun, Ticker};
pub use units::{Bytes, Decibels, Hertz, Period, Seconds};
pub use when::{Condition, Event, Gate, Verdict, View, Waker, When};
