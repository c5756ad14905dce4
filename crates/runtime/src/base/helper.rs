//! Threads of a run that step no operators.

use onbeat_trace::record::ThreadRecord;
use std::io;
use std::thread::JoinHandle;

/// A thread of a run that is not a worker, such as the recorder or the watchdog.
pub(crate) struct Helper {
    /// Name of the thread, also in the kernel.
    pub name: &'static str,
    /// Purpose in a few words, for the record.
    pub purpose: &'static str,
    /// Cores that the thread runs on. Empty: the cores of the process.
    pub house_keeping: Vec<usize>,
}

impl Helper {
    /// Starts the thread. Joined, it returns its entry for the record, with its CPU time.
    pub fn start(self, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<ThreadRecord>> {
        let name = self.name;
        onbeat_os::thread::spawn(name, move || self.live(work).1)
    }

    /// Starts the thread like [`start`](Self::start). Joined, it also returns the result of `work`.
    pub fn start_with<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<(T, ThreadRecord)>> {
        let name = self.name;
        onbeat_os::thread::spawn(name, move || self.live(work))
    }

    fn live<T>(self, work: impl FnOnce() -> T) -> (T, ThreadRecord) {
        if !self.house_keeping.is_empty()
            && let Ok(cores) = onbeat_os::CoreSet::from_cores(self.house_keeping)
        {
            // A refusal does no harm: the thread stays on the cores that it has.
            let _ = onbeat_os::thread::set_cores(&cores);
        }
        let result = work();
        let record = ThreadRecord {
            name: self.name.to_string(),
            purpose: self.purpose.to_string(),
            tid: onbeat_os::thread::current_id(),
            cpu_ns: onbeat_os::clock::thread_cpu_ns(),
            ..ThreadRecord::default()
        };
        (result, record)
    }
}
