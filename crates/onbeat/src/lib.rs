//! **onbeat is a real-time dataflow runtime for Linux that explains its own jitter.**
//!
//! Applications depend on this crate. It re-exports the public names of all crates of the project.
//!
//! | purpose | module | status |
//! |---|---|---|
//! | graphs, plans, runs, pipelines from TOML | here | may change |
//! | names for operators and graphs | [`prelude`] | may change |
//! | tests of one operator | [`testing`] | may change |
//! | built-in operators | [`operators`] | kinds and parameters: stable; types: may change |
//! | edges to other processes and hosts | [`link`] | may change |
//! | records, histograms, machine facts | [`trace`] | the record as JSON: stable; types: may change |
//! | kernel events of a run, to explain late messages | [`evidence()`] | may change |
//! | causes of late messages | [`explain`] | may change |
//! | bounds of the latency, computed before a run | [`response`] | experimental |
//! | a thread that runs items from any thread | [`WorkQueue`] | may change |
//! | counting the allocations of your program | [`allocations`] | may change |
//!
//! Stable: what is there keeps its meaning. May change: a new version may ask for a changed line, and the
//! changelog says which. Experimental: may change in every way, or go.
//!
//! ```
//! use onbeat::prelude::*;
//!
//! /// Running sum of its input.
//! #[derive(Default)]
//! struct Sum { input: Input<u64>, out: Output<u64>, sum: u64 }
//!
//! impl Operator for Sum {
//!     fn ports(&mut self, p: &mut Ports) {
//!         p.input("in", &mut self.input);
//!         p.output("out", &mut self.out);
//!     }
//!     fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
//!         if let Some(x) = self.input.pop(cx) {
//!             self.sum += x;
//!             self.out.push(cx, self.sum)?;
//!         }
//!         Ok(Step::Wait)
//!     }
//! }
//!
//! let mut graph = Graph::new("sums");
//! let mut n = 0;
//! let numbers = graph.source("numbers", move || { n += 1; (n <= 4).then_some(n) });
//! let sum = graph.add("sum", Sum::default());
//! let last = graph.sink("last", |sum: u64| assert!(sum <= 10));
//! graph.connect(numbers, |s| &s.out, sum, |s| &s.input);
//! graph.connect(sum, |s| &s.out, last, |s| &s.input);
//! let record = graph.run(&onbeat::Options::default())?;
//! assert_eq!(record.edges[1].received, 4);
//! # Ok::<(), onbeat::RunError>(())
//! ```
#![forbid(unsafe_code)]

mod evidence;
pub mod work_queue;

pub use evidence::evidence;
pub use onbeat_runtime::*;
pub use onbeat_trace::Record;
pub use work_queue::WorkQueue;

/// Names for operators and graphs, for a glob import.
///
/// ```
/// use onbeat::prelude::*;
/// let mut graph = Graph::new("one");
/// graph.source("ones", || Some(1u8));
/// ```
pub mod prelude {
    pub use onbeat_runtime::{
        Bytes, Chunk, Combine, Combined, Context, Decibels, Declared, Error, Graph, Hertz, Input, Kernel,
        Kind, Map, Message, Operator, Output, Ports, Progress, Ratio, Registry, Seconds, Step, operator,
    };
}

/// Built-in operators.
///
/// ```
/// let registry = onbeat::operators::registry();
/// assert!(registry.get("wav.sink").is_some());
/// ```
pub mod operators {
    pub use onbeat_operators::*;
}

/// Links with other runs, on this machine and on others.
///
/// ```
/// let registry = onbeat::operators::registry();
/// assert!(registry.get("link.sink").is_some());
/// ```
pub mod link {
    pub use onbeat_link::*;
}

/// Measurements of a run, as plain data.
///
/// ```
/// let mut latency = onbeat::trace::Histogram::new();
/// latency.record(1_000);
/// assert_eq!(latency.summary().max_ns, 1_000);
/// ```
pub mod trace {
    pub use onbeat_trace::*;
}

/// Counters of the allocations of each thread. A program that installs the allocator has the allocations of
/// its workers in its records.
///
/// ```
/// use onbeat::Graph;
/// use onbeat::allocations::CountingAllocator;
///
/// #[global_allocator]
/// static ALLOCATOR: CountingAllocator = CountingAllocator::system();
///
/// let mut graph = Graph::new("counted");
/// let mut n = 0u64;
/// let numbers = graph.source("numbers", move || { n += 1; (n < 1000).then_some(n) });
/// let end = graph.sink("end", |_: u64| ());
/// graph.connect(numbers, |n| &n.out, end, |e| &e.input);
/// let record = graph.run(&onbeat::Options::default())?;
/// let worker = record.threads.iter().find(|thread| thread.purpose == "steps operators");
/// assert_eq!(worker.map(|worker| worker.allocations), Some(Some(0)));
/// # Ok::<(), onbeat::RunError>(())
/// ```
pub mod allocations {
    pub use onbeat_os::allocations::*;
}

/// The book's snippets, as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/book/src/operators.md")]
#[doc = include_str!("../../../docs/book/src/several_inputs.md")]
#[doc = include_str!("../../../docs/book/src/program.md")]
#[doc = include_str!("../../../docs/book/src/conditions.md")]
#[doc = include_str!("../../../docs/book/src/work_queue.md")]
#[doc = include_str!("../../../docs/book/src/failures.md")]
#[doc = include_str!("../../../docs/book/src/control.md")]
#[doc = include_str!("../../../docs/book/src/late.md")]
#[doc = include_str!("../../../README.md")]
mod book {}
