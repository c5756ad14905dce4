//! Starting threads: the only place that does, so that every thread has a name. And the cores that they run
//! on.
//!
//! `ps -L`, `top -H`, `perf` and the record show the name; the kernel keeps 15 bytes of it
//! (`pthread_setname_np(3)`).

use std::io;
use std::thread::{Builder, JoinHandle};

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

use crate::cores::CoreSet;

/// Maximum length of a thread's name, in bytes: `TASK_COMM_LEN` without the final zero.
pub const NAME_MAX_BYTES: usize = 15;

/// Starts a thread named `name` that runs `f`.
///
/// It inherits policy, priority and cores from the calling thread.
///
/// # Errors
///
/// `InvalidInput` if the name is empty, contains a zero byte or is longer than [`NAME_MAX_BYTES`]: the kernel
/// would cut it, and two workers would look alike. Otherwise what the kernel reports if it cannot start
/// another thread.
///
/// # Example
///
/// ```
/// let seven = onbeat_os::thread::spawn("adder", || 3 + 4)?;
/// assert_eq!(seven.join().unwrap(), 7);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn spawn<T, F>(name: &str, f: F) -> io::Result<JoinHandle<T>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    check(name).map_err(|message| io::Error::new(io::ErrorKind::InvalidInput, message))?;
    Builder::new().name(name.to_owned()).spawn(f)
}

/// Kernel id of the calling thread (`gettid(2)`): the number in `/proc/self/task`.
#[must_use]
pub fn current_id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Core that the calling thread runs on (`getcpu(2)`).
///
/// The thread may have moved by the time of the return, unless [`set_cores`] left it only one core.
#[must_use]
pub fn current_core() -> usize {
    sched_getcpu()
}

/// Cores that the calling thread may run on (`sched_getaffinity(2)`).
///
/// # Errors
///
/// As [`CoreSet::allowed`].
pub fn cores() -> io::Result<CoreSet> {
    CoreSet::allowed()
}

/// Restricts the calling thread to `cores` (`sched_setaffinity(2)`); on return it is on one of them. Threads
/// that it starts later inherit them.
///
/// The kernel silently leaves out cores that are offline or outside the cpuset of the process, as long as one
/// is left. Read [`cores`] back if it matters.
///
/// # Errors
///
/// `InvalidInput` if the set is empty, or if none of its cores is left: the message names them, the online
/// ones and those of the thread. `Unsupported` for a core that the call has no bit for. Otherwise what the
/// kernel reports. The thread keeps its old cores.
///
/// # Example
///
/// ```
/// use onbeat_os::{CoreSet, thread};
///
/// let first = thread::cores()?.iter().next().expect("a thread has a core");
/// thread::set_cores(&CoreSet::from_cores([first])?)?;
/// assert_eq!(thread::current_core(), first);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn set_cores(cores: &CoreSet) -> io::Result<()> {
    let mut mask = CpuSet::new();
    for core in cores.iter() {
        if core >= CpuSet::MAX_CPU {
            let message = format!(
                "cannot run on the cores {cores}: {core} is beyond the {max} cores that a thread can be \
                 set to here; take cores up to {last}",
                max = CpuSet::MAX_CPU,
                last = CpuSet::MAX_CPU - 1
            );
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        mask.set(core);
    }
    if cores.is_empty() {
        let message = "cannot run without a core; name at least one, as in 0-3,5";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    sched_setaffinity(None, &mask).map_err(|errno| {
        let shown =
            |cores: io::Result<CoreSet>| cores.map_or_else(|_| "unknown".to_owned(), |c| c.to_string());
        let error = io::Error::from(errno);
        let mut message = format!("cannot run on the cores {cores}: {error}");
        if errno == Errno::INVAL {
            let (online, allowed) = (shown(CoreSet::online()), shown(self::cores()));
            message = format!(
                "cannot run on the cores {cores}: none of them is online and in the cpuset of this process; \
                 online are {online}, this thread may run on {allowed}; name cores from these, or widen the \
                 cpuset (the container's or service's cores)"
            );
        }
        io::Error::new(error.kind(), message)
    })
}

fn check(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("a thread needs a name".to_owned());
    }
    if name.contains('\0') {
        return Err(format!("the thread name {name:?} contains a zero byte; leave it out"));
    }
    if name.len() > NAME_MAX_BYTES {
        let bytes = name.len();
        return Err(format!(
            "the thread name {name:?} has {bytes} bytes and the kernel keeps {NAME_MAX_BYTES}; shorten it"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_knows_the_name_and_the_id() {
        let comm = spawn("fifteen-bytes-x", || {
            std::fs::read_to_string(format!("/proc/self/task/{}/comm", current_id())).unwrap()
        })
        .unwrap();
        assert_eq!(comm.join().unwrap(), "fifteen-bytes-x\n");
    }

    #[test]
    fn every_thread_has_its_own_id() {
        let other = spawn("other", current_id).unwrap().join().unwrap();
        assert_ne!(other, current_id());
    }

    #[test]
    fn a_thread_runs_on_the_cores_that_it_was_set_to() {
        let all = cores().unwrap();
        for core in all.iter() {
            let one = CoreSet::from_cores([core]).unwrap();
            let helper = spawn("one-core", move || {
                set_cores(&one).unwrap();
                (cores().unwrap() == one, current_core())
            });
            assert_eq!(helper.unwrap().join().unwrap(), (true, core));
        }
        assert_eq!(cores().unwrap(), all, "only the helpers were set");
    }

    #[test]
    fn threads_inherit_cores_and_may_widen_them() {
        let all = cores().unwrap();
        let first = CoreSet::from_cores(all.iter().take(1)).unwrap();
        let helper = spawn("outer", move || {
            set_cores(&first).unwrap();
            let inherited = spawn("inner", || cores().unwrap()).unwrap().join().unwrap();
            assert_eq!(inherited, first);
            set_cores(&all).unwrap();
            assert_eq!(cores().unwrap(), all);
        });
        helper.unwrap().join().unwrap();
    }

    #[test]
    fn cores_that_are_not_there_are_left_out_while_one_is() {
        let first = cores().unwrap().iter().next().unwrap();
        let helper = spawn("some-missing", move || {
            set_cores(&CoreSet::from_cores([first, CpuSet::MAX_CPU - 1]).unwrap()).unwrap();
            cores().unwrap()
        });
        assert_eq!(helper.unwrap().join().unwrap().to_string(), first.to_string());
    }

    #[test]
    fn cores_that_cannot_be_had_are_named_with_those_that_can() {
        // The last core that the call has a bit for; no test machine has it.
        for (text, kind, messages) in [
            ("1022-1023", io::ErrorKind::InvalidInput, &["the cores 1022-1023: none", "online are 0"][..]),
            ("0,1024", io::ErrorKind::Unsupported, &["0,1024: 1024 is beyond", "take cores up to 1023"]),
        ] {
            let asked: CoreSet = text.parse().unwrap();
            let helper = spawn("refused", move || (set_cores(&asked).unwrap_err(), cores().unwrap()));
            let (error, left) = helper.unwrap().join().unwrap();
            assert_eq!(error.kind(), kind);
            for message in messages {
                assert!(error.to_string().contains(message), "{error}");
            }
            assert_eq!(left, cores().unwrap());
        }
        let error = set_cores(&CoreSet::default()).unwrap_err();
        assert!(error.to_string().contains("without a core"), "{error}");
    }

    #[test]
    fn names_that_the_kernel_would_not_keep_are_refused() {
        for (name, message) in [
            ("", "a thread needs a name"),
            ("sixteen-bytes-xx", "has 16 bytes and the kernel keeps 15; shorten it"),
            ("größerelänge-x", "has 17 bytes"),
            ("a\0b", "contains a zero byte; leave it out"),
        ] {
            let error = spawn(name, || ()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert!(error.to_string().contains(message), "{error}");
        }
    }
}
