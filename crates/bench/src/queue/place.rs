//! Cores of the threads. A producer on the worker's own core never meets it at the queue: they run in turn,
//! and no cache line moves between cores. Placement by the kernel therefore changes what is measured, and the
//! result says which was used.

use super::settings::Placement;
use onbeat_os::{CoreSet, thread};

/// Cores of each side.
#[derive(Debug, Clone, Default)]
pub struct ThreadCores {
    /// The first core.
    worker: Option<CoreSet>,
    /// All other cores.
    producers: Option<CoreSet>,
}

impl ThreadCores {
    /// Chooses the cores, and notes obstacles.
    pub fn new(placement: Placement, notes: &mut Vec<String>) -> ThreadCores {
        if placement == Placement::Free {
            return ThreadCores::default();
        }
        let cores: Vec<usize> = CoreSet::allowed().map(|cores| cores.iter().collect()).unwrap_or_default();
        match cores.as_slice() {
            [first, others @ ..] if !others.is_empty() => ThreadCores {
                worker: CoreSet::from_cores([*first]).ok(),
                producers: CoreSet::from_cores(others.iter().copied()).ok(),
            },
            _ => {
                notes.push("there is only one core: producers share it with the worker".to_owned());
                ThreadCores::default()
            }
        }
    }

    /// Cores of the worker, if any are set.
    pub fn worker(&self) -> Option<CoreSet> {
        self.worker.clone()
    }

    /// Moves the calling thread, and the threads it starts, to the producers' cores until the result is
    /// dropped.
    pub fn go_to_producers(&self) -> Option<MovedThread> {
        let before = thread::cores().ok()?;
        thread::set_cores(self.producers.as_ref()?).ok()?;
        Some(MovedThread(before))
    }
}

/// Moves a worker's thread to its core, because it would inherit the producers' cores.
pub fn go(cores: Option<&CoreSet>) {
    if let Some(cores) = cores {
        // The cores were allowed a moment ago; if that has changed, the thread stays where it is.
        let _ = thread::set_cores(cores);
    }
}

/// Original cores of a thread, restored on drop.
#[derive(Debug)]
pub struct MovedThread(CoreSet);

impl Drop for MovedThread {
    fn drop(&mut self) {
        let _ = thread::set_cores(&self.0);
    }
}
