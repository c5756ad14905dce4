//! Mode S.
mod frame;
mod known;
mod search;
pub use frame::Frame;
pub use search::{RATE_HZ, Search};
