//! Scheduling policy of a thread: setting it, and reading back what the kernel has.
//!
//! A policy is written as in rtla: `o:0`, `f:80`, `r:50`, `d:1666us:15833us:16666us`.

mod text;

pub use text::PolicyError;

use std::io;

/// A scheduling policy with its parameters.
///
/// ```
/// use onbeat_os::Policy;
/// let policy: Policy = "d:2ms:16666us".parse()?;
/// let period_ns = 16_666_000;
/// assert_eq!(policy, Policy::Deadline { runtime_ns: 2_000_000, deadline_ns: period_ns, period_ns });
/// assert_eq!(policy.to_string(), "d:2ms:16666us");
/// assert!("f:99".parse::<Policy>()?.is_real_time());
/// # Ok::<(), onbeat_os::policy::PolicyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// `SCHED_OTHER` with a niceness from -20 to 19: a share of the time that other policies leave. `o:N`
    Other(i8),
    /// `SCHED_FIFO` with a priority from 1 to 99: runs until it waits, or a thread of higher priority comes.
    /// `f:N`
    Fifo(u8),
    /// `SCHED_RR`: as `SCHED_FIFO`, in turns with threads of its own priority. `r:N`
    RoundRobin(u8),
    /// `SCHED_DEADLINE`: run time in each period, before its deadline. `d:RUNTIME[:DEADLINE]:PERIOD`
    Deadline {
        /// Run time per period, in nanoseconds.
        runtime_ns: u64,
        /// Time from the start of a period by which it has had them, in nanoseconds.
        deadline_ns: u64,
        /// Period, in nanoseconds.
        period_ns: u64,
    },
}

/// Flags of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PolicyFlags {
    /// Threads started by this thread begin as `o:0` (`SCHED_FLAG_RESET_ON_FORK`).
    pub reset_on_fork: bool,
    /// The kernel sends `SIGXCPU` when the run time of a period is used up (`SCHED_FLAG_DL_OVERRUN`).
    pub overrun_signal: bool,
}

const RESET_ON_FORK: u64 = 1;
const DL_OVERRUN: u64 = 4;

impl Policy {
    /// Whether it runs before all threads with `o`.
    #[must_use]
    pub fn is_real_time(&self) -> bool {
        !matches!(self, Policy::Other(_))
    }

    /// Priority of `f` and `r`.
    #[must_use]
    pub fn priority(&self) -> Option<u8> {
        match *self {
            Policy::Fifo(priority) | Policy::RoundRobin(priority) => Some(priority),
            Policy::Other(_) | Policy::Deadline { .. } => None,
        }
    }

    /// Returns the policy of the calling thread from the kernel (`sched_getattr(2)`).
    ///
    /// # Errors
    /// What the kernel reports; `Unsupported` for a policy that has no letter here, such as `SCHED_BATCH`.
    pub fn of_this_thread() -> io::Result<(Policy, PolicyFlags)> {
        let mut attributes = SchedAttributes::default();
        // SAFETY: the kernel writes at most `size` bytes to the pointer, which has room for them.
        let result = unsafe {
            libc::syscall(
                libc::SYS_sched_getattr,
                0,
                std::ptr::from_mut(&mut attributes),
                size_of::<SchedAttributes>(),
                0,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        attributes.read()
    }

    /// Sets the policy of the calling thread (`sched_setattr(2)`).
    ///
    /// # Errors
    /// What the kernel reports: [`explain`](crate::rights::explain) gives the reason, and how to get the
    /// right. The thread keeps its old policy.
    pub fn set(&self, flags: PolicyFlags) -> io::Result<()> {
        self.set_for(0, flags)
    }

    /// Sets the policy of the thread with this id (its [`current_id`](crate::thread::current_id)); 0 is the
    /// calling thread.
    ///
    /// # Errors
    /// As [`set`](Self::set), and if there is no such thread.
    pub fn set_for(&self, thread: i32, flags: PolicyFlags) -> io::Result<()> {
        SchedAttributes::new(self, flags).set_for(thread)
    }
}

/// Longest `sched_runtime` of a normal thread (`kernel/sched/syscalls.c`, `__setparam_fair`).
const LONGEST_SLICE_NS: u64 = 100_000_000;

/// Lets other normal threads run before the calling thread. It waits for its turn when it wakes up, instead
/// of preempting another normal thread at once (`SCHED_BATCH`), and yields to threads that wake up while it
/// works. For that it asks for the longest slice: a thread with a shorter slice goes first (from Linux 6.12
/// on; older kernels ignore the slice). Its niceness does not change. This is for helper threads that must
/// not disturb workers. Next to a thread that computes 2 of 7 ms, a thread woken every millisecond was late
/// by 2 to 4 ms in one of ten cases with `SCHED_BATCH` alone, and by 0.1 ms with the slice.
///
/// # Errors
/// What the kernel reports; `Unsupported` for a thread with a real-time policy, which it keeps.
pub fn stand_back() -> io::Result<()> {
    let (Policy::Other(nice), flags) = Policy::of_this_thread()? else {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "the thread has a real-time policy"));
    };
    let policy = libc::SCHED_BATCH as u32;
    SchedAttributes {
        policy,
        runtime_ns: LONGEST_SLICE_NS,
        ..SchedAttributes::new(&Policy::Other(nice), flags)
    }
    .set_for(0)
}

/// The kernel's `struct sched_attr`, first version.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct SchedAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

impl SchedAttributes {
    fn new(policy: &Policy, flags: PolicyFlags) -> Self {
        let mut attributes =
            SchedAttributes { size: size_of::<SchedAttributes>() as u32, ..SchedAttributes::default() };
        if flags.reset_on_fork {
            attributes.flags |= RESET_ON_FORK;
        }
        match *policy {
            Policy::Other(nice) => attributes.nice = i32::from(nice),
            Policy::Fifo(priority) => {
                attributes.policy = libc::SCHED_FIFO as u32;
                attributes.priority = u32::from(priority);
            }
            Policy::RoundRobin(priority) => {
                attributes.policy = libc::SCHED_RR as u32;
                attributes.priority = u32::from(priority);
            }
            Policy::Deadline { runtime_ns, deadline_ns, period_ns } => {
                attributes.policy = libc::SCHED_DEADLINE as u32;
                attributes = SchedAttributes { runtime_ns, deadline_ns, period_ns, ..attributes };
                if flags.overrun_signal {
                    attributes.flags |= DL_OVERRUN;
                }
            }
        }
        attributes
    }

    fn set_for(&self, thread: i32) -> io::Result<()> {
        // SAFETY: the kernel reads `size` bytes from the pointer, which has them.
        let result = unsafe { libc::syscall(libc::SYS_sched_setattr, thread, std::ptr::from_ref(self), 0) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn read(&self) -> io::Result<(Policy, PolicyFlags)> {
        let priority = u8::try_from(self.priority).unwrap_or(u8::MAX);
        let policy = match self.policy as i32 {
            libc::SCHED_OTHER => Policy::Other(i8::try_from(self.nice).unwrap_or(0)),
            libc::SCHED_FIFO => Policy::Fifo(priority),
            libc::SCHED_RR => Policy::RoundRobin(priority),
            libc::SCHED_DEADLINE => Policy::Deadline {
                runtime_ns: self.runtime_ns,
                deadline_ns: self.deadline_ns,
                period_ns: self.period_ns,
            },
            other => {
                let message = format!("the thread has scheduling policy {other}, which has no letter here");
                return Err(io::Error::new(io::ErrorKind::Unsupported, message));
            }
        };
        let flags = PolicyFlags {
            reset_on_fork: self.flags & RESET_ON_FORK != 0,
            overrun_signal: self.flags & DL_OVERRUN != 0,
        };
        Ok((policy, flags))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_macros, reason = "a test says what it skips")]

    use super::*;

    #[test]
    fn a_thread_has_the_policy_that_it_was_given() {
        // Any user may raise the niceness.
        let flags = PolicyFlags { reset_on_fork: true, overrun_signal: false };
        let before = Policy::of_this_thread().unwrap();
        let nicer = crate::thread::spawn("nicer", move || {
            Policy::Other(17).set(flags).unwrap();
            let child = crate::thread::spawn("child", || Policy::of_this_thread().unwrap()).unwrap();
            (Policy::of_this_thread().unwrap(), child.join().unwrap())
        });
        let (own, child) = nicer.unwrap().join().unwrap();
        assert_eq!(own, (Policy::Other(17), flags));
        // Only a niceness below 0 is reset.
        assert_eq!(child.1, PolicyFlags::default());
        assert_eq!(Policy::of_this_thread().unwrap(), before, "only that thread was set");
    }

    #[test]
    fn who_stands_back_keeps_its_niceness() {
        let thread = crate::thread::spawn("back", || {
            Policy::Other(7).set(PolicyFlags::default()).unwrap();
            stand_back().unwrap();
            let text = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            // After the name in brackets: niceness is field 19, the policy 41.
            let fields: Vec<String> =
                text.rsplit_once(')').unwrap().1.split_whitespace().map(str::to_owned).collect();
            (fields[19 - 3].clone(), fields[41 - 3].clone(), Policy::of_this_thread().is_err())
        });
        let (niceness, policy, has_no_letter) = thread.unwrap().join().unwrap();
        assert_eq!((&*niceness, &*policy, has_no_letter), ("7", "3", true));
    }

    #[test]
    fn real_time_policies_are_read_back() {
        for text in ["f:3", "r:98", "d:1ms:10ms:20ms", "d:2ms:20ms"] {
            let policy: Policy = text.parse().unwrap();
            let flags = PolicyFlags {
                reset_on_fork: true,
                overrun_signal: matches!(policy, Policy::Deadline { .. }),
            };
            let set = move || policy.set(flags).map(|()| Policy::of_this_thread().unwrap());
            match crate::thread::spawn("real-time", set).unwrap().join().unwrap() {
                Ok(found) => assert_eq!(found, (policy, flags)),
                Err(error) => {
                    assert!(
                        matches!(error.raw_os_error(), Some(libc::EPERM | libc::EBUSY)),
                        "{text}: {error}"
                    );
                    eprintln!("skipped: {text}: {error}");
                }
            }
        }
    }
}
