//! Making threads: the only place that does, so that none is without a name.
//!
//! The name is what `ps -L`, `top -H`, `perf` and the record show; the kernel keeps 15 bytes of it
//! (`pthread_setname_np(3)`).

use std::io;
use std::thread::{Builder, JoinHandle};

/// The longest name of a thread, in bytes: `TASK_COMM_LEN` less the ending zero.
pub const NAME_MAX_BYTES: usize = 15;

/// Starts a thread named `name` that runs `f`.
///
/// It has the policy, priority and cores of the thread that calls this.
///
/// # Errors
///
/// `InvalidInput` if the name is empty, holds a zero byte or is longer than [`NAME_MAX_BYTES`]: the
/// kernel would cut it, and two workers would look alike. Else what the kernel says when it has no
/// room for another thread.
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

/// The kernel's id of the calling thread (`gettid(2)`): the number under `/proc/self/task`.
#[must_use]
pub fn current_id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

fn check(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("a thread needs a name".to_owned());
    }
    if name.contains('\0') {
        return Err(format!("the thread name {name:?} holds a zero byte; leave it out"));
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
    fn names_that_the_kernel_would_not_keep_are_refused() {
        for (name, message) in [
            ("", "a thread needs a name"),
            ("sixteen-bytes-xx", "has 16 bytes and the kernel keeps 15; shorten it"),
            ("größerelänge-x", "has 17 bytes"),
            ("a\0b", "holds a zero byte; leave it out"),
        ] {
            let error = spawn(name, || ()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert!(error.to_string().contains(message), "{error}");
        }
    }
}
