//! How the kernel's scheduler treats a thread: policy, priority, and what of it the kernel says it has.
//!
//! A policy is written as rtla writes it: `o:0`, `f:80`, `r:50`, `d:1666us:15833us:16666us`.

use std::fmt;
use std::io;
use std::str::FromStr;

/// A scheduling policy with its parameters.
///
/// ```
/// use onbeat_os::Policy;
/// let policy: Policy = "d:2ms:16666us".parse()?;
/// assert_eq!(policy, Policy::Deadline { runtime_ns: 2_000_000, deadline_ns: 16_666_000, period_ns: 16_666_000 });
/// assert_eq!(policy.to_string(), "d:2ms:16666us");
/// assert!("f:99".parse::<Policy>()?.is_real_time());
/// # Ok::<(), onbeat_os::policy::PolicyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// `SCHED_OTHER` with a niceness from -20 to 19: a share of what others leave. `o:N`
    Other(i8),
    /// `SCHED_FIFO` with a priority from 1 to 99: it runs until it waits, or a higher one comes. `f:N`
    Fifo(u8),
    /// `SCHED_RR`: the same, in turns with those of its own priority. `r:N`
    RoundRobin(u8),
    /// `SCHED_DEADLINE`: so much run time in each period, before its deadline. `d:RUNTIME[:DEADLINE]:PERIOD`
    Deadline {
        /// Nanoseconds of run time per period.
        runtime_ns: u64,
        /// Nanoseconds after the begin of a period by which it has had them.
        deadline_ns: u64,
        /// Nanoseconds from period to period.
        period_ns: u64,
    },
}

/// What goes with a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PolicyFlags {
    /// Threads that this thread starts begin as `o:0` (`SCHED_FLAG_RESET_ON_FORK`).
    pub reset_on_fork: bool,
    /// The kernel sends `SIGXCPU` when the run time of a period is used up (`SCHED_FLAG_DL_OVERRUN`).
    pub overrun_signal: bool,
}

/// The least run time that the kernel takes.
const RUNTIME_LEAST_NS: u64 = 1024;

const RESET_ON_FORK: u64 = 1;
const DL_OVERRUN: u64 = 4;

impl Policy {
    /// Whether it is served before all threads with `o`.
    #[must_use]
    pub fn is_real_time(&self) -> bool {
        !matches!(self, Policy::Other(_))
    }

    /// The priority of `f` and `r`.
    #[must_use]
    pub fn priority(&self) -> Option<u8> {
        match *self {
            Policy::Fifo(priority) | Policy::RoundRobin(priority) => Some(priority),
            Policy::Other(_) | Policy::Deadline { .. } => None,
        }
    }

    /// What the kernel has for the calling thread now (`sched_getattr(2)`).
    ///
    /// # Errors
    /// What the kernel says; `Unsupported` for a policy that has no letter here, such as `SCHED_BATCH`.
    pub fn of_this_thread() -> io::Result<(Policy, PolicyFlags)> {
        let mut attributes = Attributes::default();
        // SAFETY: the kernel writes at most `size` bytes to the pointer, which has room for them.
        let result = unsafe {
            libc::syscall(
                libc::SYS_sched_getattr,
                0,
                std::ptr::from_mut(&mut attributes),
                size_of::<Attributes>(),
                0,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        attributes.read()
    }

    /// Gives it to the calling thread (`sched_setattr(2)`).
    ///
    /// # Errors
    /// What the kernel says: [`explain`](crate::rights::explain) says why, and what would grant it. The thread keeps what it had.
    pub fn set(&self, flags: PolicyFlags) -> io::Result<()> {
        let attributes = Attributes::new(self, flags);
        // SAFETY: the kernel reads `size` bytes from the pointer, which has them.
        let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, std::ptr::from_ref(&attributes), 0) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// `struct sched_attr` of the kernel, in its first version.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

impl Attributes {
    fn new(policy: &Policy, flags: PolicyFlags) -> Self {
        let mut attributes = Attributes { size: size_of::<Attributes>() as u32, ..Attributes::default() };
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
                attributes = Attributes { runtime_ns, deadline_ns, period_ns, ..attributes };
                if flags.overrun_signal {
                    attributes.flags |= DL_OVERRUN;
                }
            }
        }
        attributes
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

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Policy::Other(nice) => write!(f, "o:{nice}"),
            Policy::Fifo(priority) => write!(f, "f:{priority}"),
            Policy::RoundRobin(priority) => write!(f, "r:{priority}"),
            Policy::Deadline { runtime_ns, deadline_ns, period_ns } => {
                write!(f, "d:{}", Time(runtime_ns))?;
                if deadline_ns != period_ns {
                    write!(f, ":{}", Time(deadline_ns))?;
                }
                write!(f, ":{}", Time(period_ns))
            }
        }
    }
}

/// In the largest unit in which it is a whole number.
struct Time(u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us"), (1, "ns")];
        let (ns, unit) = units.into_iter().find(|(ns, _)| self.0.is_multiple_of(*ns)).unwrap_or((1, "ns"));
        write!(f, "{}{unit}", self.0 / ns)
    }
}

/// Why a text is no policy: what is wrong and how to write it instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyError(String);

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PolicyError {}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let wrong = |why: String| PolicyError(format!("policy `{}`: {why}", text.escape_debug()));
        let (letter, rest) = text.split_once(':').ok_or_else(|| {
            wrong("write it as `o:0`, `f:80`, `r:50` or `d:RUNTIME[:DEADLINE]:PERIOD`".to_owned())
        })?;
        let priority = || match whole(rest).and_then(|number| u8::try_from(number).ok()) {
            Some(priority @ 1..=99) => Ok(priority),
            _ => Err(wrong(format!(
                "`{}` is no priority: it is a whole number from 1 to 98",
                rest.escape_debug()
            ))),
        };
        match letter {
            "o" => {
                let (number, sign) = rest.strip_prefix('-').map_or((rest, 1), |rest| (rest, -1));
                match whole(number).and_then(|number| i64::try_from(number).ok()) {
                    Some(nice) if (-20..=19).contains(&(sign * nice)) => {
                        Ok(Policy::Other((sign * nice) as i8))
                    }
                    _ => Err(wrong(format!(
                        "`{}` is no niceness: it is a whole number from -20 to 19",
                        rest.escape_debug()
                    ))),
                }
            }
            "f" => priority().map(Policy::Fifo),
            "r" => priority().map(Policy::RoundRobin),
            "d" => deadline(rest).map_err(wrong),
            _ => Err(wrong(
                "its letter is `o` (other), `f` (FIFO), `r` (round robin) or `d` (DEADLINE)".to_owned(),
            )),
        }
    }
}

fn deadline(text: &str) -> Result<Policy, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let (runtime, deadline, period) = match parts[..] {
        [runtime, period] => (runtime, period, period),
        [runtime, deadline, period] => (runtime, deadline, period),
        _ => {
            return Err(
                "write `d:RUNTIME:PERIOD` or `d:RUNTIME:DEADLINE:PERIOD`, as in d:2ms:16ms".to_owned()
            );
        }
    };
    let (runtime_ns, deadline_ns, period_ns) = (time_ns(runtime)?, time_ns(deadline)?, time_ns(period)?);
    if runtime_ns > deadline_ns || deadline_ns > period_ns {
        let mut sorted = [runtime_ns, deadline_ns, period_ns];
        sorted.sort_unstable();
        let [runtime_ns, deadline_ns, period_ns] = sorted;
        let right = Policy::Deadline { runtime_ns, deadline_ns, period_ns };
        return Err(format!(
            "the run time must be at most the deadline, and that at most the period; in this order it is {right}"
        ));
    }
    if runtime_ns < RUNTIME_LEAST_NS {
        return Err(format!(
            "a run time of {runtime_ns} ns is below the {RUNTIME_LEAST_NS} ns that the kernel takes: raise it"
        ));
    }
    Ok(Policy::Deadline { runtime_ns, deadline_ns, period_ns })
}

fn whole(text: &str) -> Option<u64> {
    // `parse` alone would take a plus sign as well.
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn time_ns(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let ns = match &text[digits.len()..] {
        "ns" | "" => 1,
        "us" => 1000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => 0,
    };
    // The kernel's numbers have 63 bits.
    match whole(digits).and_then(|number| number.checked_mul(ns)) {
        Some(time @ 1..=0x7fff_ffff_ffff_ffff) => Ok(time),
        _ => Err(format!(
            "`{}` is no time: write a whole number and a unit, as in 1666us; units are ns, us, ms, s",
            text.escape_debug()
        )),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_macros, reason = "a test says what it skips")]

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn policies_are_read_and_written() {
        for (text, canonical) in [
            ("o:0", "o:0"),
            ("o:-20", "o:-20"),
            ("o:19", "o:19"),
            ("f:80", "f:80"),
            ("r:1", "r:1"),
            ("d:1666us:15833us:16666us", "d:1666us:15833us:16666us"),
            ("d:2000us:16ms:16ms", "d:2ms:16ms"),
            ("d:2000000:1s", "d:2ms:1s"),
        ] {
            assert_eq!(text.parse::<Policy>().map(|policy| policy.to_string()), Ok(canonical.to_owned()));
        }
    }

    #[test]
    fn what_is_no_policy_says_how_to_write_it() {
        for (text, message) in [
            ("", "policy ``: write it as `o:0`, `f:80`"),
            ("fifo", "policy `fifo`: write it as"),
            ("F:80", "its letter is `o` (other), `f` (FIFO)"),
            ("f:0", "`0` is no priority: it is a whole number from 1 to 98"),
            ("f:100", "`100` is no priority"),
            ("r:+5", "`+5` is no priority"),
            ("o:20", "`20` is no niceness: it is a whole number from -20 to 19"),
            ("o:--1", "`--1` is no niceness"),
            ("d:5ms", "write `d:RUNTIME:PERIOD`"),
            ("d:5 ms:6ms", "`5 ms` is no time: write a whole number and a unit"),
            ("d:5ms:6min", "`6min` is no time"),
            ("d:0:1ms", "`0` is no time"),
            ("d:99999999999s:99999999999s", "is no time"),
            ("d:500ns:1ms", "a run time of 500 ns is below the 1024 ns that the kernel takes: raise it"),
            (
                "d:16ms:2ms:1ms",
                "at most the deadline, and that at most the period; in this order it is d:1ms:2ms:16ms",
            ),
        ] {
            let error = text.parse::<Policy>().unwrap_err().to_string();
            assert!(error.contains(message), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_thread_has_the_policy_that_it_was_given() {
        // Niceness may be raised by anybody.
        let flags = PolicyFlags { reset_on_fork: true, overrun_signal: false };
        let before = Policy::of_this_thread().unwrap();
        let nicer = crate::thread::spawn("nicer", move || {
            Policy::Other(17).set(flags).unwrap();
            let child = crate::thread::spawn("child", || Policy::of_this_thread().unwrap()).unwrap();
            (Policy::of_this_thread().unwrap(), child.join().unwrap())
        });
        let (own, child) = nicer.unwrap().join().unwrap();
        assert_eq!(own, (Policy::Other(17), flags));
        // What is reset is a niceness below 0.
        assert_eq!(child.1, PolicyFlags::default());
        assert_eq!(Policy::of_this_thread().unwrap(), before, "only that thread was set");
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

    proptest! {
        #[test]
        fn what_was_written_reads_as_the_same(runtime in 1024_u64..1 << 40, more in 0_u64..1 << 40, rest in 0_u64..1 << 40) {
            let (deadline_ns, period_ns) = (runtime + more, runtime + more + rest);
            let policy = Policy::Deadline { runtime_ns: runtime, deadline_ns, period_ns };
            prop_assert_eq!(policy.to_string().parse::<Policy>(), Ok(policy));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[ofrd]?[:0-9a-z\\- ]{0,20}") {
            if let Ok(policy) = text.parse::<Policy>() {
                prop_assert_eq!(policy.to_string().parse::<Policy>(), Ok(policy));
            }
        }
    }
}
