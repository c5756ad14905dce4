//! Links: edges between onbeat runs, so that one pipeline can be spread over processes and hosts.
//!
//! A link has two ends, which are operators: [`LinkSink`] in the run that produces, [`LinkSource`] in the run
//! that consumes. What an edge promises holds across it: order, tags, shapes, rates, keys and times arrive,
//! a consumer that takes little holds the producer back, and each end says what became of every message.
//!
//! | module | contents |
//! |---|---|
//! | `sink`, `source` | the two operators |
//! | `line` | what they have in common: the session, and what to do without one |
//! | `books` | which messages were sent, taken, given up: plain data |
//! | `frame` | what is on the wire |
//! | `carry` | the message types that links carry |
//! | `clocks` | by how much the other clock is ahead, and how sure that is |
//! | `lending` | chunks that are not copied, between processes of one machine |
//! | `meeting` | the thread beside each end: finds the other end, exchanges signs of life |
//! | `socket`, `stream`, `tls` | TCP and Unix sockets, connections, encrypted or not |
//! | `deployment` | one pipeline, cut into a part for each node |
//! | `settings`, `kinds` | settings, and the kinds for pipeline files |
//!
//! Messages go from the sink's worker into the socket and from the socket into the chunk of the source's
//! worker: no thread is between, and samples are copied by the kernel only. See `docs/adr/0033`.
#![forbid(unsafe_code)]

mod books;
mod carry;
mod clocks;
pub mod deployment;
mod frame;
mod kinds;
mod lending;
mod line;
mod meeting;
mod outgoing;
mod settings;
mod sink;
mod socket;
mod source;
mod stream;
mod tls;

pub use carry::{Arriving, Carried, CarriedSample, VALUE_LIMIT, read_value, write_value};
pub use frame::{ChunkHead, Constant, MessageHead};
pub use kinds::{add_kinds, add_kinds_of};
pub use settings::{LinkPeer, LinkSecurity, LinkSettings, OnCut};
pub use sink::LinkSink;
pub use socket::LinkSocket;
pub use source::LinkSource;
pub use stream::{LinkStream, SharedStream, answer, call};
pub use tls::{Authority, NodeIdentity};
