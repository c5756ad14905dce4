//! Which cores the threads have. A producer on the worker's own core never meets it at the queue: each drains what the other has left,
//! in turn, and no line goes from cache to cache. Where the kernel puts them decides then what is measured, so it is said.

use super::settings::Placement;
use onbeat_os::{CoreSet, thread};

/// What each side is given.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// The first core.
    worker: Option<CoreSet>,
    /// All others.
    producers: Option<CoreSet>,
}

impl Place {
    /// With what stands in the way.
    pub fn new(placement: Placement, notes: &mut Vec<String>) -> Place {
        if placement == Placement::Free {
            return Place::default();
        }
        let cores: Vec<usize> = CoreSet::allowed().map(|cores| cores.iter().collect()).unwrap_or_default();
        match cores.as_slice() {
            [first, others @ ..] if !others.is_empty() => Place {
                worker: CoreSet::from_cores([*first]).ok(),
                producers: CoreSet::from_cores(others.iter().copied()).ok(),
            },
            _ => {
                notes.push("there is one core only: producers share it with the worker".to_owned());
                Place::default()
            }
        }
    }

    /// The cores of the worker, where it is given any.
    pub fn worker(&self) -> Option<CoreSet> {
        self.worker.clone()
    }

    /// Takes the calling thread, and those that it starts, to where producers are, until it is dropped.
    pub fn go_to_producers(&self) -> Option<Away> {
        let before = thread::cores().ok()?;
        thread::set_cores(self.producers.as_ref()?).ok()?;
        Some(Away(before))
    }
}

/// Takes a worker's thread to its core. It inherits the producers' else.
pub fn go(cores: Option<&CoreSet>) {
    if let Some(cores) = cores {
        // They were allowed a moment ago; where that has changed it runs where it may.
        let _ = thread::set_cores(cores);
    }
}

/// A thread that is away from its cores, which it is given back.
#[derive(Debug)]
pub struct Away(CoreSet);

impl Drop for Away {
    fn drop(&mut self) {
        let _ = thread::set_cores(&self.0);
    }
}
