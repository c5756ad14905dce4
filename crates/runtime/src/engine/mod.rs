//! The engine that steps operators: workers, pools of threads that share parts, and state that the threads of
//! a run share. It starts no thread.

pub(crate) mod control;
pub(crate) mod flight;
pub(crate) mod limits;
pub(crate) mod order;
pub(crate) mod pool;
pub(crate) mod team;
pub(crate) mod worker;
