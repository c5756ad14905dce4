//! What onbeat asks of the operating system, and the only room that makes system calls for it.
//!
//! | module | what |
//! |---|---|
//! | [`clock`] | the clocks, in nanoseconds, and sleeping until a deadline |
//! | [`tsc`] | a clock that costs less to read, on the same time line |
//! | [`futex`] | waiting on a word and waking who waits, straight from the kernel |
//! | [`park`] | a thread that waits and others that wake it, on one futex word |
//! | [`local`] | sockets with a name in the file system, and who is at their other end |
//! | [`poll`], [`door`] | files that can be read without waiting, and waiting for that; those who connect as well |
//! | [`file`] | which file a name stands for, for as long as it is held |
//! | [`thread`] | the one place where threads are made; every one has a name |
//! | [`policy`], [`rights`] | what the scheduler gives a thread, and why it refuses it |
//! | [`latency`], [`memory`], [`stack_node`] | how late the kernel may be; where memory and stacks stay |
//! | [`overrun`], [`allocations`] | two things that a real-time thread counts |
//! | [`interrupts`] | threads of the kernel that handle them |
//! | [`cores`] | a set of cores, as the kernel and its tools write it |
//! | [`signal`] | Ctrl-C and SIGTERM as a call on a thread of its own |
//! | [`terminal`] | a terminal that gives every key at once, until it is given back |
//! | [`stack`] | where a thread is that does not come back |
//! | [`knob`] | settings of the kernel that are put back, also after a process that was killed |
//! | [`ftrace`], [`perf`], [`tracefs`] | records of tracepoints, core by core, and how the kernel describes them |
//! | [`usage`], [`count`](mod@count) | what the kernel has counted of this process: switches, faults; events of one kind |
//!
//! Linux only. Every time is an `u64` of nanoseconds; unless a name says otherwise it is on
//! `CLOCK_MONOTONIC`, the one clock of a run, which `u64` covers for 584 years after boot.
//!
//! # Example
//!
//! A thread that waits for work, and one that brings it:
//!
//! ```
//! use onbeat_os::{clock, park::{Parker, Unparked}, thread};
//!
//! let parker = Parker::new();
//! let unparker = parker.unparker();
//! let helper = thread::spawn("bringer", move || unparker.unpark())?;
//!
//! let deadline_ns = clock::monotonic_ns() + 10_000_000_000;
//! assert_eq!(parker.park_until(deadline_ns), Unparked::Notified);
//! helper.join().expect("the helper does not panic");
//! # Ok::<(), std::io::Error>(())
//! ```

#![deny(unsafe_op_in_unsafe_fn)]

pub mod allocations;
pub mod clock;
pub mod cores;
pub mod count;
pub mod door;
pub mod file;
pub mod ftrace;
pub mod futex;
pub mod interrupts;
pub mod knob;
pub mod latency;
pub mod local;
pub mod memory;
pub mod overrun;
pub mod park;
pub mod perf;
pub mod policy;
pub mod poll;
pub mod rights;
pub mod signal;
pub mod stack;
pub mod stack_node;
pub mod terminal;
pub mod thread;
pub mod tracefs;
pub mod tsc;
pub mod usage;

pub use cores::CoreSet;
pub use count::Counter;
pub use park::{Parker, Unparked, Unparker};
pub use policy::Policy;
pub use usage::Usage;
