//! The kernel's counts of this process: `getrusage(2)`.

use std::io;
use std::mem::MaybeUninit;

/// Counts since the start of the process or the thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of times that a thread gave up its core because it had to wait (`ru_nvcsw`): one per sleep.
    pub voluntary_switches: u64,
    /// Number of times that a thread lost its core although it could have continued (`ru_nivcsw`).
    pub involuntary_switches: u64,
    /// Page faults that needed no disk (`ru_minflt`).
    pub minor_faults: u64,
    /// Page faults that needed a disk (`ru_majflt`).
    pub major_faults: u64,
}

impl Usage {
    /// Counts of all threads of this process together, including ended ones.
    ///
    /// # Errors
    /// `getrusage(2)` documents none for these arguments; a seccomp filter returns its own.
    ///
    /// ```
    /// let before = onbeat_os::Usage::of_process()?;
    /// std::thread::sleep(std::time::Duration::from_millis(1));
    /// let after = onbeat_os::Usage::of_process()?;
    /// assert!(after.voluntary_switches > before.voluntary_switches);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn of_process() -> io::Result<Usage> {
        read(libc::RUSAGE_SELF)
    }

    /// Counts of the calling thread alone.
    ///
    /// # Errors
    /// As [`of_process`](Self::of_process).
    pub fn of_thread() -> io::Result<Usage> {
        read(libc::RUSAGE_THREAD)
    }

    /// Returns the counts since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_sub(earlier.involuntary_switches),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
        }
    }
}

fn read(who: libc::c_int) -> io::Result<Usage> {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the kernel writes one `rusage` to the pointer, which has room for it and is not used elsewhere.
    if unsafe { libc::getrusage(who, usage.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has succeeded, so all of it is written; any bits are a valid `rusage`, which holds
    // only integers.
    let usage = unsafe { usage.assume_init() };
    // The kernel counts up from 0, but its numbers are signed.
    let count = |number: libc::c_long| u64::try_from(number).unwrap_or(0);
    Ok(Usage {
        voluntary_switches: count(usage.ru_nvcsw),
        involuntary_switches: count(usage.ru_nivcsw),
        minor_faults: count(usage.ru_minflt),
        major_faults: count(usage.ru_majflt),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread;
    use std::time::Duration;

    #[test]
    fn sleeps_are_counted_where_they_happen() {
        let (here, all) = (Usage::of_thread().unwrap(), Usage::of_process().unwrap());
        let there = thread::spawn("sleeper", || {
            let before = Usage::of_thread().unwrap();
            for _ in 0..20 {
                std::thread::sleep(Duration::from_micros(100));
            }
            Usage::of_thread().unwrap().since(&before)
        });
        let there = there.unwrap().join().unwrap();
        assert!(there.voluntary_switches >= 20, "{there:?}");
        let all = Usage::of_process().unwrap().since(&all);
        assert!(all.voluntary_switches >= there.voluntary_switches, "{all:?}, {there:?}");
        let here = Usage::of_thread().unwrap().since(&here);
        assert!(here.voluntary_switches < all.voluntary_switches, "{here:?}, {all:?}");
    }

    #[test]
    fn touching_new_memory_is_a_fault() {
        let before = Usage::of_thread().unwrap();
        let block = std::hint::black_box(vec![1_u8; 8 << 20]);
        let faults = Usage::of_thread().unwrap().since(&before).minor_faults;
        // Huge pages make few of many.
        assert!(faults > 0 && block[0] == 1, "{faults}");
    }
}
