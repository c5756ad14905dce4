//! Threads that operators start.

use super::Context;
use onbeat_os::policy::{Policy, PolicyFlags};
use onbeat_os::{CoreSet, thread};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Cores for threads that operators start: those for house-keeping, or, if there are none, those of the
/// calling thread, which starts the run.
pub(crate) fn cores(house_keeping: Vec<usize>) -> Arc<[usize]> {
    match house_keeping {
        none if none.is_empty() => thread::cores().map(|cores| cores.iter().collect()).unwrap_or_default(),
        cores => cores.into(),
    }
}

impl Context {
    /// Starts a thread for work that no step can do, such as a handshake. It has the policy `o:0`, and runs
    /// on the house-keeping cores, or on those of the thread that started the run. A thread that an operator
    /// starts otherwise inherits the cores of its worker, and a real-time worker there may leave it no time.
    ///
    /// # Errors
    /// If the kernel refuses the thread. If it refuses the cores or the policy, the thread keeps its own.
    pub fn spawn_beside(
        &self,
        name: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        let cores = Arc::clone(&self.cores_beside);
        thread::spawn(name, move || {
            let is_real_time = Policy::of_this_thread().is_ok_and(|(policy, _)| policy.is_real_time());
            if is_real_time {
                let _kept = Policy::Other(0).set(PolicyFlags::default());
            }
            if let Ok(cores) = CoreSet::from_cores(cores.iter().copied()) {
                let _kept = thread::set_cores(&cores);
            }
            body();
        })
    }
}
