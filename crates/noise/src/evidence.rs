//! Kernel events for whoever asks after the fact: [`Evidence`] from rings of perf.

use crate::source::{Perf, Refused};
use onbeat_trace::{Evidence, KernelEvent};
use std::ops::Range;

/// The last kernel events of some cores, from the moment at which it was made.
///
/// Every thread's time on a core is an event here, those of the one who asks included: it knows its own by their id.
///
/// ```
/// use onbeat_noise::PerfEvidence;
/// use onbeat_trace::Evidence;
/// let core = onbeat_os::thread::current_core();
/// match PerfEvidence::open(&[core], 1 << 20) {
///     Ok(mut evidence) => {
///         let begin_ns = onbeat_os::clock::monotonic_ns();
///         std::thread::sleep(std::time::Duration::from_millis(5));
///         let end_ns = onbeat_os::clock::monotonic_ns();
///         println!("{} events", evidence.events(core as u32, begin_ns..end_ns).len());
///     }
///     Err(refused) => println!("{}; {}", refused.why, refused.fix),
/// }
/// ```
#[derive(Debug)]
pub struct PerfEvidence {
    perf: Perf,
    cpus: Vec<usize>,
}

/// How long events are kept: misses are asked for within seconds.
const KEPT_NS: u64 = 10_000_000_000;

impl PerfEvidence {
    /// Of these cores, with rings of that size each. What a ring cannot hold between two questions is lost: ask, or
    /// [`drain`](Self::drain), at least every 50 ms on a busy machine with 4 MiB.
    ///
    /// # Errors
    /// What is refused, and the command that grants it.
    pub fn open(cpus: &[usize], ring_bytes: usize) -> Result<Self, Refused> {
        let perf = Perf::open(cpus, ring_bytes, 0)?;
        perf.enable().map_err(|error| Refused {
            why: format!("the rings of the kernel cannot be switched on: {error}"),
            fix: "run as root".to_owned(),
        })?;
        Ok(PerfEvidence { perf, cpus: cpus.to_vec() })
    }

    /// Reads all rings, so that they have room.
    pub fn drain(&mut self) {
        for at in 0..self.cpus.len() {
            self.perf.drain(at, 0, &[]);
            let core = self.perf.core_mut(at);
            core.forget_before(core.known_ns().saturating_sub(KEPT_NS));
        }
    }

    /// Records that had no room or could not be understood, so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        (0..self.cpus.len()).map(|at| self.perf.core(at).lost()).sum()
    }
}

impl Evidence for PerfEvidence {
    fn source(&self) -> &str {
        "perf"
    }

    fn events(&mut self, cpu: u32, window_ns: Range<u64>) -> Vec<KernelEvent> {
        let Some(at) = self.cpus.iter().position(|core| *core == cpu as usize) else { return Vec::new() };
        self.drain();
        let overlaps = |event: &&KernelEvent| event.start_ns <= window_ns.end;
        let mut events: Vec<KernelEvent> =
            self.perf.core(at).events(window_ns.clone()).iter().filter(overlaps).cloned().collect();
        events.sort_by_key(|event| event.start_ns);
        events
    }
}
