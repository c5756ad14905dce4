//! Rings, chunk stores and work queues below the engine. All lock-free code of onbeat that needs `unsafe` is
//! here.
//!
//! - [`Ring`]: the edge between two operators of one worker. No atomics: an [`Owner`] token proves that only
//!   one thread touches it.
//! - [`Spsc`]: the edge between two workers. Each side has a token; `src/spsc/README.md` has the protocol.
//! - [`Lossy`]: as [`Spsc`], but a full ring drops its oldest item to make room; `src/lossy/README.md`.
//! - [`Store`] and [`Block`]: a fixed number of aligned, reusable memory blocks. A block can be dropped on
//!   any thread and returns to its store; `src/store/README.md`.
//! - [`Inbox`] and [`Sleeper`]: items that other threads schedule for a worker, and how the worker sleeps and
//!   is woken; `src/list/README.md`.
//! - [`QueueCore`]: the work queue without its thread. Its items are of several kinds, and each has its own
//!   callback; `src/work_queue/README.md` says who owns an item when.
//! - [`TaskPool`]: tasks that move between the threads of a pool, one thread at a time;
//!   `src/task_pool/README.md`.
//! - [`TurnMember`]: members that take turns with one value in a fixed order; `src/ticket/README.md`.
//! - [`TicketedPipeline`]: values that tickets pass one after another, in the order in which they began;
//!   `src/ticket/README.md`.
//! - [`Ranges`]: numbers handed out in ranges.
//! - [`Identity`]: the owner number under which a thread uses chunk stores, for work that moves between
//!   threads.
//! - [`sync`]: the only source of atomics and cells in the workspace, so that loom can replace them.
//!
//! ```
//! use onbeat_queue::{Owner, Ring};
//! let mut owner = Owner::new();
//! let ring: Ring<_> = Ring::new(&owner, 2);
//! assert_eq!(ring.push(&mut owner, 'a', &()), Ok(0));
//! assert_eq!(ring.push(&mut owner, 'b', &()), Ok(1));
//! assert_eq!(ring.push(&mut owner, 'c', &()).unwrap_err().0, 'c');
//! assert_eq!(ring.pop(&mut owner), Some(('a', 2)));
//! ```

mod fetch;
mod identity;
mod inbox;
mod list;
mod lossy;
#[cfg(all(loom, test))]
mod model;
mod owner;
mod ranges;
mod ring;
mod side;
mod spsc;
mod store;
pub mod sync;
mod task_pool;
mod ticket;
mod work_queue;

pub use fetch::{fetch_to_read, fetch_to_write};
pub use identity::Identity;
pub use inbox::Inbox;
pub use list::Sleeper;
pub use lossy::Lossy;
pub use owner::Owner;
pub use ranges::Ranges;
pub use ring::{Full, Ring};
pub use spsc::Spsc;
pub use store::{Block, BlockPlace, LentStore, Meta, Seed, Store, StoreError};
pub use task_pool::{TaskLease, TaskPool};
pub use ticket::{MemberEntry, MemberGuard, Ticket, TicketGuard, TicketedPipeline, TurnMember, TurnWatch};
pub use work_queue::{Item, OnWorker, Owned, QueueCore, Ready, Scope, Shared, Turn};
