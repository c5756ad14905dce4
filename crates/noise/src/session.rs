//! The measuring session that noise and timer latency share: one thread per core measures, the calling thread
//! reads the rings.

use crate::error::NoiseError;
use crate::source::{Core, Tracepoints};
use crate::threads::{MeasuringThread, Signals};
use crate::watch::{LimitHit, Observer};
use onbeat_os::clock;
use onbeat_queue::sync::atomic::Ordering;
use onbeat_trace::KernelEvent;
use std::collections::BTreeSet;

/// Time between two reads of the rings.
const READ_PERIOD_NS: u64 = 50_000_000;

/// How long a session lasts, and what happens at a limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeasuringLimits {
    /// Ends the session; without it, the watcher does.
    pub duration_ns: Option<u64>,
    /// Warm-up at the beginning, which is discarded.
    pub warm_up_ns: u64,
    /// Whether a limit that is hit is only reported to the watcher, instead of ending the session.
    pub goes_on: bool,
    /// Number of last events, and lines of a tracer, that are kept for a trace.
    pub keep_events: usize,
}

/// A measuring thread and what is known of its core.
pub(crate) trait CoreProbe {
    /// Result for one core.
    type Summary;

    fn thread(&mut self) -> &mut MeasuringThread;

    /// Takes in the thread's observations and the kernel's records of its core. Returns the first limit that
    /// was hit.
    fn collect(&mut self, rings: Option<(&mut Tracepoints, usize)>, begin_ns: u64) -> Option<LimitHit>;

    /// Result of the measurement until now.
    fn so_far(&self) -> Self::Summary;

    /// Final result; `core` holds the kernel's records, if there are any. What a reader should know goes to
    /// `notes`.
    fn finish(&mut self, core: Option<&Core>, notes: &mut Vec<String>) -> Self::Summary;
}

/// Measuring threads, one per core, with the rings of their cores.
pub(crate) struct Session<P> {
    // Dropped first, so that the threads have ended before their rings are closed.
    pub probes: Vec<P>,
    pub rings: Option<Tracepoints>,
    signals: Signals,
}

/// When a session took place, and what ended it.
pub(crate) struct SessionEnd {
    pub started_unix_ns: u64,
    pub begin_ns: u64,
    pub duration_ns: u64,
    pub stopped: Option<LimitHit>,
    pub hits: u64,
}

impl<P: CoreProbe> Session<P> {
    /// Starts the threads with `start`, which gets the place of a core in `cpus` and its number. They wait
    /// until [`run`](Self::run).
    pub fn new(
        cpus: &[usize],
        rings: Option<Tracepoints>,
        start: impl Fn(usize, usize, &Signals) -> Result<P, NoiseError>,
    ) -> Result<Self, NoiseError> {
        let signals = Signals::default();
        let each = cpus.iter().enumerate().map(|(place, &cpu)| start(place, cpu, &signals));
        let probes = each.collect::<Result<Vec<P>, NoiseError>>()?;
        Ok(Session { probes, rings, signals })
    }

    /// What the threads asked of the scheduler and did not get, each text once.
    pub fn refused(&mut self) -> BTreeSet<String> {
        self.probes.iter_mut().filter_map(|probe| probe.thread().note.clone()).collect()
    }

    /// Measures until the duration is over, a limit is hit, or the watcher stops the session.
    pub fn run(
        &mut self,
        limits: &MeasuringLimits,
        watch: &mut dyn Observer<P::Summary>,
    ) -> Result<SessionEnd, NoiseError> {
        if let Some(rings) = &mut self.rings {
            for (place, probe) in self.probes.iter_mut().enumerate() {
                rings.core_mut(place).measure(&[probe.thread().pid]);
            }
            rings.enable().map_err(NoiseError::os("the rings of the kernel"))?;
        }
        self.probes.iter_mut().for_each(|probe| probe.thread().count_from_now());
        let started_unix_ns = clock::realtime_unix_ns();
        let started_ns = clock::monotonic_ns();
        let begin_ns = started_ns + limits.warm_up_ns;
        let mut end = SessionEnd { started_unix_ns, begin_ns, duration_ns: 0, stopped: None, hits: 0 };
        self.signals.go.store(true, Ordering::Release);
        let end_ns = limits.duration_ns.map_or(u64::MAX, |duration_ns| begin_ns.saturating_add(duration_ns));
        let mut next_ns = started_ns;
        loop {
            next_ns = (next_ns + READ_PERIOD_NS).max(clock::monotonic_ns());
            clock::sleep_until(next_ns.min(end_ns));
            if clock::monotonic_ns() >= end_ns || watch.is_stopped() {
                self.signals.end();
            }
            let is_over = self.signals.is_over();
            if is_over {
                self.probes.iter_mut().for_each(|probe| probe.thread().join());
            }
            self.read(limits, watch, &mut end);
            if is_over {
                break;
            }
            if end.stopped.is_some() {
                self.signals.end();
            }
            let so_far = || self.probes.iter().map(CoreProbe::so_far).collect();
            watch.at(&so_far, clock::monotonic_ns().saturating_sub(begin_ns));
        }
        end.duration_ns = clock::monotonic_ns().saturating_sub(begin_ns);
        if let Some(rings) = &self.rings {
            rings.disable().map_err(NoiseError::os("the rings of the kernel"))?;
        }
        Ok(end)
    }

    /// Reads all rings once.
    fn read(&mut self, limits: &MeasuringLimits, watch: &mut dyn Observer<P::Summary>, end: &mut SessionEnd) {
        for place in 0..self.probes.len() {
            let rings = self.rings.as_mut().map(|rings| (rings, place));
            let hit = self.probes[place].collect(rings, end.begin_ns);
            if let Some(hit) = hit.as_ref().filter(|_| limits.goes_on) {
                end.hits += 1;
                watch.hit(hit, &self.kept());
            } else {
                end.stopped = end.stopped.take().or(hit);
            }
        }
    }

    /// Final result of each core.
    pub fn finish(&mut self, notes: &mut Vec<String>) -> Vec<P::Summary> {
        let rings = self.rings.as_ref();
        let each = self.probes.iter_mut().enumerate();
        each.map(|(place, probe)| probe.finish(rings.map(|rings| rings.core(place)), notes)).collect()
    }

    /// The kernel events that were kept for a trace.
    pub fn kept(&self) -> Vec<KernelEvent> {
        self.rings.iter().flat_map(Tracepoints::kept).cloned().collect()
    }
}
