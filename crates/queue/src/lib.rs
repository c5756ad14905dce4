//! The moving parts below the engine: rings and chunk stores. The lock-free unsafe of onbeat lives here.
//!
//! - [`Ring`]: the edge between two operators of one worker. No atomics: an [`Owner`] token proves that only one
//!   thread touches it.
//! - [`Store`] and [`Block`]: a fixed number of aligned, reusable memory blocks. A block may be dropped on any thread
//!   and finds its way home; `src/store/README.md` has the protocol.
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

mod owner;
mod ring;
mod store;
pub mod sync;

pub use owner::Owner;
pub use ring::{Full, Ring};
pub use store::{Block, Meta, Seed, Store, StoreError};
