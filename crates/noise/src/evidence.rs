//! Kernel events for questions after the fact: [`Evidence`] from tracepoint rings.

use crate::decode::Extent;
use crate::error::NoiseError;
use crate::following::{Following, FollowingRings};
use crate::nesting::nameless;
use crate::source::{Backend, Chosen, RingShape, SourceRefusal, Tracepoints};
use crate::threads::choose;
use onbeat_trace::{Class, Evidence, KernelEvent, OffCpu, PageFault};
use std::collections::HashMap;
use std::ops::Range;

/// Last kernel events of some cores, since it was opened.
///
/// Every thread's time on a core is an event, including the asking process's own threads, which it knows by
/// id. With [`Extent::Threads`] there are also wake-ups, migrations and page faults, each on the core it is
/// about.
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
///         let events = evidence.events(core as u32, begin_ns..end_ns);
///         println!("{} events by {}", events.len(), evidence.source());
///     }
///     Err(refused) => println!("{}; {}", refused.why, refused.fix),
/// }
/// ```
#[derive(Debug)]
pub struct TracepointEvidence {
    tracepoints: Tracepoints,
    chosen: Chosen,
    /// Rings for threads to follow, if they were opened in advance.
    ready: Option<Result<FollowingRings, SourceRefusal>>,
    /// Followed threads, or why they cannot be followed.
    following: Option<Result<Following, SourceRefusal>>,
    /// Names and priorities of threads that no record has named.
    names: HashMap<i32, Option<(String, i32)>>,
    /// When the rings were last checked, and why the kernel no longer writes.
    asked_ns: u64,
    silenced: Option<String>,
}

/// Name and priority of a living thread; the priority is on the kernel's scale (`proc(5)`: the one in `stat`
/// is lower by 100).
fn who(tid: i32) -> Option<(String, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
    let (head, fields) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let priority: i32 = fields.split_whitespace().nth(15)?.parse().ok()?;
    Some((name.to_owned(), priority + 100))
}

/// How long events are kept: misses are looked into within seconds.
const KEPT_NS: u64 = 10_000_000_000;

/// Time between two checks of whether the kernel still writes.
const ASK_NS: u64 = 200_000_000;

impl TracepointEvidence {
    /// Opens rings of `ring_bytes` each on these cores: of a trace instance, or of perf. Events that do not
    /// fit between two questions are lost: ask, or [`drain`](Self::drain), at least every 50 ms on a busy
    /// machine with 4 MiB.
    ///
    /// # Errors
    /// The reason of a refusal, and the command that grants the right.
    pub fn open(cpus: &[usize], ring_bytes: usize, extent: Extent) -> Result<Self, SourceRefusal> {
        let nothing = |why: String, fix: Option<String>| SourceRefusal {
            why,
            fix: fix.unwrap_or_else(|| "run as root".to_owned()),
        };
        let found = choose(Backend::Auto, RingShape { ring_bytes, keep: 0, extent }, cpus);
        let (tracepoints, chosen) = found.map_err(|error: NoiseError| nothing(error.to_string(), None))?;
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

    /// Opens the rings for [`follow`](Evidence::follow) in advance. That takes tens of milliseconds, and the
    /// kernel may wait for every core to respond: too late once real-time threads run.
    #[must_use]
    pub fn ready_to_follow(mut self) -> Self {
        self.ready = Some(FollowingRings::open(&self.cpus()));
        self
    }

    fn cpus(&self) -> Vec<usize> {
        (0..self.tracepoints.len()).map(|at| self.tracepoints.core(at).cpu() as usize).collect()
    }

    /// Source of the events, the reason for its choice, and the missing tracepoints.
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

    /// Number of records so far that had no room or could not be understood.
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
        // The core that acted on a thread has the record.
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
        let ready = self.ready.take().unwrap_or_else(|| FollowingRings::open(&self.cpus()));
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
                format!("the kernel stopped writing tracepoints during the run: {why}"),
                "do not change tracing until the run has ended".to_owned(),
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
