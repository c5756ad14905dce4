//! The moving parts below the engine: rings and chunk stores. The lock-free unsafe of onbeat lives here.
//!
//! - [`Ring`]: the edge between two operators of one worker. No atomics: an [`Owner`] token proves that only one
//!   thread touches it.
//! - [`Spsc`]: the edge between two workers. A token on each side; `src/spsc/README.md` has the protocol.
//! - [`Lossy`]: the same, but when it is full the oldest item makes room; `src/lossy/README.md`.
//! - [`Store`] and [`Block`]: a fixed number of aligned, reusable memory blocks. A block may be dropped on any thread
//!   and finds its way home; `src/store/README.md` has the protocol.
//! - [`Inbox`] and [`Sleeper`]: the work that other threads schedule for a worker, and how it sleeps and is woken;
//!   `src/list/README.md` has the protocol.
//! - [`QueueCore`]: the work queue without its thread, for items of many kinds, each with its own callback;
//!   `src/work_queue/README.md` says who owns what when.
//! - [`TaskPool`]: items that wander between the threads of a pool, one hand at a time; `src/pool/README.md` has the protocol.
//! - [`TurnMember`]: turns in a fixed order with one value; `src/rota/README.md` has the protocol.
//! - [`TicketedPipeline`]: values that are passed one after another, by whoever comes, in the order in which they began; `src/relay/README.md`.
//! - [`Ranges`]: numbers that are shared out in ranges.
//! - [`Identity`]: whose chunk stores a thread acts for, where work wanders.
//! - [`sync`]: the one door for atomics and cells of the whole workspace, so that loom can replace them.
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
pub use store::{Block, Meta, Seed, Store, StoreError};
pub use task_pool::{TaskLease, TaskPool};
pub use ticket::{MemberEntry, MemberGuard, Ticket, TicketGuard, TicketedPipeline, TurnMember, TurnWatch};
pub use work_queue::{Item, OnWorker, Owned, QueueCore, Ready, Scope, Shared, Turn};
