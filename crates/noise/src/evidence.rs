//! Kernel events for whoever asks after the fact: [`Evidence`] from rings of tracepoints.

use crate::decode::Extent;
use crate::error::Error;
use crate::following::{Following, FollowingRings};
use crate::nesting::nameless;
use crate::source::{Backend, Chosen, RingShape, SourceRefusal, Tracepoints};
use crate::threads::choose;
use onbeat_trace::{Class, Evidence, KernelEvent, OffCpu, PageFault};
use std::collections::HashMap;
use std::ops::Range;

/// The last kernel events of some cores, from the moment at which it was made.
///
/// Every thread's time on a core is an event here, those of the one who asks included: it knows its own by their id. With
/// [`Extent::Threads`] there are wake-ups, migrations and page faults, too, each on the core that it is about.
///
/// ```
/// use onbeat_noise::TracepointEvidence;
/// use onbeat_noise::decode::Extent;
/// use onbeat_trace::Evidence;
/// let core = onbeat_os::thread::current_core();
/// match TracepointEvidence::open(&[core], 1 << 20, Extent::Cores) {
///     Ok(mut evidence) => {
///         let begin_ns = onbeat_os::clock::monotonic_ns();
///         std::thread::sleep(std::time::Duration::from_millis(5));
///         let end_ns = onbeat_os::clock::monotonic_ns();
///         println!("{} events by {}", evidence.events(core as u32, begin_ns..end_ns).len(), evidence.source());
///     }
///     Err(refused) => println!("{}; {}", refused.why, refused.fix),
/// }
/// ```
#[derive(Debug)]
pub struct TracepointEvidence {
    tracepoints: Tracepoints,
    chosen: Chosen,
    /// Rings for threads that somebody will want to know more of, where they were made in advance.
    ready: Option<Result<FollowingRings, SourceRefusal>>,
    /// What they tell of those; why nothing, where that is refused.
    following: Option<Result<Following, SourceRefusal>>,
    /// Threads whose name no record has told.
    names: HashMap<i32, Option<(String, i32)>>,
    /// When it was last asked whether the kernel still writes, and why it does not any more.
    asked_ns: u64,
    silenced: Option<String>,
}

/// Name and priority of a thread that is still there, the latter as the kernel counts it (`proc(5)`: the one in `stat` is less by 100).
fn who(tid: i32) -> Option<(String, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
    let (head, fields) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let priority: i32 = fields.split_whitespace().nth(15)?.parse().ok()?;
    Some((name.to_owned(), priority + 100))
}

/// How long events are kept: misses are asked for within seconds.
const KEPT_NS: u64 = 10_000_000_000;

/// From one question whether the kernel still writes to the next.
const ASK_NS: u64 = 200_000_000;

impl TracepointEvidence {
    /// Of these cores, with rings of that size each, from a trace instance or else from perf. What a ring cannot hold between two
    /// questions is lost: ask, or [`drain`](Self::drain), at least every 50 ms on a busy machine with 4 MiB.
    ///
    /// # Errors
    /// What is refused, and the command that grants it.
    pub fn open(cpus: &[usize], ring_bytes: usize, extent: Extent) -> Result<Self, SourceRefusal> {
        let nothing = |why: String, fix: Option<String>| SourceRefusal {
            why,
            fix: fix.unwrap_or_else(|| "run as root".to_owned()),
        };
        let found = choose(Backend::Auto, RingShape { ring_bytes, keep: 0, extent }, cpus);
        let (tracepoints, chosen) = found.map_err(|error: Error| nothing(error.to_string(), None))?;
        let Some(tracepoints) = tracepoints else { return Err(nothing(chosen.why, chosen.fix)) };
        tracepoints.enable().map_err(|error| {
            nothing(format!("the rings of the kernel cannot be switched on: {error}"), None)
        })?;
        Ok(TracepointEvidence {
            tracepoints,
            chosen,
            ready: None,
            following: None,
            names: HashMap::new(),
            asked_ns: 0,
            silenced: None,
        })
    }

    /// The same, with what [`follow`](Evidence::follow) needs made in advance: it costs tens of milliseconds, and the kernel may wait for
    /// every core to come by, which is late once threads in real time have begun.
    #[must_use]
    pub fn ready_to_follow(mut self) -> Self {
        self.ready = Some(FollowingRings::open());
        self
    }

    /// Which source it is, why, and what it does not tell.
    #[must_use]
    pub fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    /// Reads all rings, so that they have room.
    pub fn drain(&mut self) {
        let now_ns = onbeat_os::clock::monotonic_ns();
        if self.silenced.is_none() && now_ns > self.asked_ns + ASK_NS {
            self.asked_ns = now_ns;
            self.silenced = self.tracepoints.silenced();
        }
        for at in 0..self.tracepoints.len() {
            self.tracepoints.drain(at, 0, &[]);
            let core = self.tracepoints.core_mut(at);
            core.forget_before(core.known_ns().saturating_sub(KEPT_NS));
        }
        if let Some(Ok(following)) = &mut self.following {
            following.drain();
        }
    }

    /// Records that had no room or could not be understood, so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        (0..self.tracepoints.len()).map(|at| self.tracepoints.core(at).lost()).sum()
    }
}

impl Evidence for TracepointEvidence {
    fn source(&self) -> &str {
        match self.chosen.backend {
            Backend::Ftrace => "ftrace",
            _ => "perf",
        }
    }

    fn events(&mut self, cpu: u32, window_ns: Range<u64>) -> Vec<KernelEvent> {
        self.drain();
        // What happens to a thread is told by the core that did it.
        let all =
            (0..self.tracepoints.len()).flat_map(|at| self.tracepoints.core(at).events(window_ns.clone()));
        let is_asked = |event: &&KernelEvent| event.cpu == cpu && event.start_ns <= window_ns.end;
        let mut events: Vec<KernelEvent> = all.filter(is_asked).cloned().collect();
        events.sort_by_key(|event| event.start_ns);
        for event in events.iter_mut().filter(|event| event.class == Class::Thread) {
            // The switch to it was before the first record, or is missing.
            if event.name == nameless(event.pid)
                && let Some((name, priority)) = self.names.entry(event.pid).or_insert_with(|| who(event.pid))
            {
                (event.name, event.priority) = (name.clone(), *priority);
            }
        }
        events
    }

    fn follow(&mut self, tids: &[i32]) {
        let ready = self.ready.take().unwrap_or_else(FollowingRings::open);
        self.following = Some(ready.and_then(|ready| Following::start(ready, tids)));
    }

    fn off_cpu(&mut self, window_ns: Range<u64>) -> Vec<OffCpu> {
        let Some(Ok(following)) = &mut self.following else { return Vec::new() };
        following.drain();
        following.off_cpu(&window_ns)
    }

    fn page_faults(&mut self, window_ns: Range<u64>) -> Vec<PageFault> {
        let Some(Ok(following)) = &mut self.following else { return Vec::new() };
        following.faults(&window_ns)
    }

    fn drain(&mut self) {
        TracepointEvidence::drain(self);
    }

    fn lost(&self) -> u64 {
        let of_threads = self.following.as_ref().and_then(|it| it.as_ref().ok()).map_or(0, Following::lost);
        TracepointEvidence::lost(self) + of_threads
    }

    fn lack(&self) -> Option<(String, String)> {
        if let Some(why) = &self.silenced {
            return Some((
                format!("tracepoints fell silent during the run: {why}"),
                "leave tracing to the run until it has ended".to_owned(),
            ));
        }
        let Some(Err(refused)) = &self.following else { return None };
        Some((format!("threads cannot be followed: {}", refused.why), refused.fix.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::who;

    #[test]
    fn a_thread_has_a_name_and_a_priority() {
        let thread = onbeat_os::thread::spawn("who ) is (it", || {
            onbeat_os::Policy::Other(5).set(onbeat_os::policy::PolicyFlags::default()).expect("nicer");
            who(onbeat_os::thread::current_id())
        });
        let known = thread.expect("a thread").join().expect("no panic");
        assert_eq!(known, Some(("who ) is (it".to_owned(), 125)));
        assert_eq!(who(i32::MAX), None);
    }
}
