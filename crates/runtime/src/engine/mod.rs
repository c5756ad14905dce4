//! What steps operators: workers, the pools that share them, and what a run's threads have in common. It starts no thread.

pub(crate) mod control;
pub(crate) mod flight;
pub(crate) mod limits;
pub(crate) mod order;
pub(crate) mod pool;
pub(crate) mod team;
pub(crate) mod worker;
