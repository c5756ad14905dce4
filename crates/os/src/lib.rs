//! Operating system services for onbeat. This is the only crate that makes system calls.
//!
//! | module | purpose |
//! |---|---|
//! | [`clock`] | the clocks, in nanoseconds, and sleeping until a deadline |
//! | [`tsc`] | a clock on the same time line that is cheaper to read |
//! | [`futex`] | waiting on a word and waking its waiters, by the kernel's call |
//! | [`park`] | a thread that parks and others that wake it, on one futex word |
//! | [`local`] | sockets with a name in the file system, and the process at their other end |
//! | [`shared`] | memory that processes share, and files that go over a socket |
//! | [`socket`] | datagrams with receive time and number of dropped ones; data on its way to a peer |
//! | [`poll`], [`door`] | waiting until files are readable; with new connections as well |
//! | [`file`](mod@file) | the identity of a file, kept while the file is held |
//! | [`serial`] | serial ports in raw mode, with their old settings back afterwards |
//! | `sound` | sound cards by ALSA, with the Cargo feature `alsa` |
//! | `radio` | radios by SoapySDR, with the Cargo feature `soapy` |
//! | [`can`] | frames of a CAN interface, with their times and the number of dropped ones |
//! | [`video`] | frames of a camera, with their times, from the driver's buffers |
//! | [`thread`] | the only place where threads are started; each has a name |
//! | [`policy`], [`rights`] | scheduling policies, and why the kernel refuses one |
//! | [`latency`], [`memory`], [`stack_node`] | limits on the kernel's delays; placing memory and stacks |
//! | [`overrun`], [`allocations`] | two counts of a real-time thread |
//! | [`interrupts`] | kernel threads that handle interrupts |
//! | [`cores`] | sets of cores, in the notation of the kernel and its tools |
//! | [`signal`] | Ctrl-C and SIGTERM as a call on a thread of its own |
//! | [`terminal`] | a terminal in key mode, restored afterwards |
//! | [`stack`] | the stack of a thread that seems to hang |
//! | [`knob`] | kernel settings that are restored, even after a process that was killed |
//! | [`ftrace`], [`perf`], [`tracefs`] | records of tracepoints by core, and the kernel's description of them |
//! | [`usage`], [`count`](mod@count) | the kernel's counts of this process: switches, faults; events of one kind |
//!
//! Linux only. Every time is a `u64` of nanoseconds on `CLOCK_MONOTONIC`, unless a name says otherwise. `u64`
//! covers 584 years after boot.
//!
//! # Example
//!
//! One thread waits for work, another one notifies it:
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
pub mod can;
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
#[cfg(feature = "soapy")]
pub mod radio;
pub mod rights;
pub mod serial;
pub mod shared;
pub mod signal;
pub mod socket;
mod socket_file;
mod socket_message;
#[cfg(feature = "alsa")]
pub mod sound;
pub mod stack;
pub mod stack_node;
pub mod terminal;
pub mod thread;
pub mod tracefs;
pub mod tsc;
pub mod usage;
pub mod video;

pub use cores::CoreSet;
pub use count::EventCounter;
pub use park::{Parker, Unparked, Unparker};
pub use policy::Policy;
pub use socket_file::SocketFile;
pub use usage::Usage;
