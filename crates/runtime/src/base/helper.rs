//! Threads of a run that step no operators.

use onbeat_trace::record::ThreadRecord;
use std::io;
use std::thread::JoinHandle;

/// A thread that does something for a run beside its workers.
pub(crate) struct Helper {
    /// As the kernel will know it.
    pub name: &'static str,
    /// For the record, in a few words.
    pub purpose: &'static str,
    /// The cores that it goes to, if there are any.
    pub house_keeping: Vec<usize>,
}

impl Helper {
    /// Starts it. When its work is over it says what it has cost.
    pub fn start(self, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<ThreadRecord>> {
        let name = self.name;
        onbeat_os::thread::spawn(name, move || self.live(work).1)
    }

    /// The same, for work that comes to something.
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
            // Where that is not allowed it stays where it is, which costs nothing but a place on a list.
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
