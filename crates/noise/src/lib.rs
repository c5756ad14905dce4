//! What a machine takes away from its threads, and what took it.
//!
//! The way of a kernel event, each stage with one type:
//!
//! ```text
//! ring of a core ──► Record ──► KernelEvent ──┐
//!    bytes     decode     nesting             ├──► attribute ──► Verdict ──► Tally, table, JSON
//! busy loop, timer ─────────────► Gap ────────┘
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`decode`] | bytes of the kernel to [`Record`](decode::Record)s, by its own `format` files |
//! | [`nesting`] | records to kernel events: what ran on a core, each event without what interrupted it |
//! | [`attribute`](mod@attribute) | a gap and events to a verdict, as a pure function whose parts sum to the gap |

#![forbid(unsafe_code)]

pub mod attribute;
pub mod decode;
pub mod nesting;

pub use attribute::{Gap, Interference, Own, Verdict, attribute};
pub use nesting::Nesting;
