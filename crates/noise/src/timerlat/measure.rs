//! Measuring timer latency: a thread per core waits for its timer, a reader takes in the kernel's rings.

use super::{CpuLatency, IdleLimits, LatencyRecord, LatencySettings, LatencyTally, Task};
use crate::analysis::{Analysis, TimerWake, analyse, analyse_by_wait};
use crate::error::NoiseError;
use crate::outbox::Outbox;
use crate::place::{self, House};
use crate::session::{CoreProbe, Session};
use crate::source::{Backend, Core, RunQueueWait, Tracepoints, left};
use crate::threads::{MeasuringThread, Signals, choose};
use crate::timer::{self, TimerPlan, TimerWakeup};
use crate::watch::{LimitHit, Observer};
use onbeat_os::{Policy, clock};
use onbeat_queue::Owner;
use onbeat_trace::Class;
use std::sync::Arc;

/// Wake-ups that a thread can report between two reads of the rings.
const WAKES: usize = 1 << 14;
/// The shortest period: below that a thread does nothing but wake up.
const LEAST_PERIOD_NS: u64 = 10_000;

/// One measuring thread, seen from the reader.
struct TimerProbe<'s> {
    settings: &'s LatencySettings,
    thread: MeasuringThread,
    outbox: Arc<Outbox<TimerWakeup>>,
    reader: Owner,
    tally: LatencyTally,
}

/// Measures until the duration is over, a limit is hit, or the watcher stops it.
///
/// The calling thread reads the rings; it stays on the house-keeping cores meanwhile.
///
/// # Errors
/// As those of [`measure`](crate::measure::measure).
pub fn measure(
    settings: &LatencySettings,
    watch: &mut dyn Observer<CpuLatency>,
) -> Result<LatencyRecord, NoiseError> {
    if settings.period_ns < LEAST_PERIOD_NS {
        return Err(NoiseError::Settings(format!(
            "a period of {} ns is below the {} us that a wake-up can take: raise -p",
            settings.period_ns,
            LEAST_PERIOD_NS / 1000
        )));
    }
    if settings.backend == Backend::Tracer && settings.wakeups.is_some() {
        return Err(NoiseError::Settings(
            "the kernel's tracer cannot count wake-ups: give a duration, or choose another backend"
                .to_owned(),
        ));
    }
    if settings.backend == Backend::Tracer {
        return crate::tracer::measure_timers(settings, watch);
    }
    let cpus = place::cpus(settings.cpus.as_ref())?;
    place::check_policy(settings.policy, false, &cpus)?;
    let (rings, source) = choose(settings.backend, settings.shape(), &cpus)?;
    let house = House::keep(settings.house_keeping.as_ref(), &cpus)?;
    let policy = settings.policy.unwrap_or(Policy::Other(0)).to_string();
    let mut record = LatencyRecord::new(settings, policy, source);
    record.notes.extend(house.note.iter().cloned());
    record.notes.extend(rings.iter().flat_map(|rings| left(rings.cleaned())));
    let idle_limits = IdleLimits::set(settings, &cpus, &mut record.notes);
    let asks_waits = rings.is_none();
    let base_ns = clock::monotonic_ns() + 100_000_000;
    let mut session = Session::new(&cpus, rings, |place, cpu, signals| {
        let first_ns = settings.aligned_ns.map(|aligned_ns| base_ns + place as u64 * aligned_ns);
        TimerProbe::start(cpu, first_ns, settings, signals, asks_waits)
    })?;
    record.notes.extend(session.refused());
    let end = session.run(&settings.limits(), watch)?;
    drop(idle_limits);
    (record.started_unix_ns, record.begin_ns) = (end.started_unix_ns, end.begin_ns);
    record.duration_ns = end.duration_ns;
    (record.stopped, record.hits) = (end.stopped, end.hits);
    record.tasks = tasks(&session).unwrap_or_default();
    record.cpus = session.finish(&mut record.notes);
    record.events = session.kept();
    Ok(record)
}

impl<'s> TimerProbe<'s> {
    fn start(
        cpu: usize,
        first_ns: Option<u64>,
        settings: &'s LatencySettings,
        signals: &Signals,
        asks_waits: bool,
    ) -> Result<Self, NoiseError> {
        let (outbox, writer, reader) = Outbox::new(WAKES);
        let plan = TimerPlan {
            period_ns: settings.period_ns,
            first_ns,
            stop_ns: settings.stop_thread_ns.filter(|_| !settings.goes_on).unwrap_or(u64::MAX),
            wakeups: settings.wakeups.unwrap_or(u64::MAX),
        };
        let (ours, shared) = (Arc::clone(&outbox), signals.clone());
        let body = move || {
            let waits = if asks_waits { RunQueueWait::of_this_thread().ok() } else { None };
            timer::run(&ours, writer, &plan, waits.as_ref(), &shared);
        };
        let thread = MeasuringThread::start(cpu, "timerlat", settings.policy, signals, body)?;
        let tally = LatencyTally::new(cpu as u32, settings.bucket_ns, settings.entries, settings.samples);
        Ok(TimerProbe { settings, thread, outbox, reader, tally })
    }
}

impl CoreProbe for TimerProbe<'_> {
    type Summary = CpuLatency;

    fn thread(&mut self) -> &mut MeasuringThread {
        &mut self.thread
    }

    fn collect(&mut self, rings: Option<(&mut Tracepoints, usize)>, begin_ns: u64) -> Option<LimitHit> {
        // The ring of the kernel is read after the thread's: it then covers all that the thread has reported.
        let (complete_ns, wakeups) = self.outbox.take(&mut self.reader);
        let mut kernel = rings.map(|(rings, place)| {
            let stamps: Vec<u64> = wakeups.iter().map(|wakeup| wakeup.user_ns).collect();
            rings.drain(place, self.thread.pid, &stamps);
            rings.core_mut(place)
        });
        let cpu = self.thread.cpu as u32;
        let mut hit = None;
        for wakeup in wakeups.into_iter().filter(|wakeup| wakeup.due_ns >= begin_ns) {
            let analysis = match &kernel {
                Some(core) => by_events(cpu, wakeup, core),
                None => {
                    let TimerWakeup { due_ns, user_ns, waited_ns } = wakeup;
                    let wake = TimerWake { cpu, due_ns, irq_ns: None, thread_ns: None, user_ns };
                    analyse_by_wait(wake, waited_ns)
                }
            };
            let wake = analysis.wake;
            let over = [
                ("the latency of the timer's interrupt", wake.irq_latency_ns(), self.settings.stop_irq_ns),
                ("the latency of the thread", Some(wake.user_latency_ns()), self.settings.stop_thread_ns),
            ];
            for (what, value_ns, limit_ns) in over {
                if let (Some(value_ns), Some(limit_ns)) = (value_ns, limit_ns)
                    && value_ns > limit_ns
                    && hit.is_none()
                {
                    hit = Some(LimitHit { cpu, what: what.to_owned(), value_ns, limit_ns });
                    self.tally.stopped(analysis.clone());
                }
            }
            self.tally.wake(analysis, true);
        }
        if let Some(core) = &mut kernel {
            // The interrupt of the next wake-up may have begun before the last wake-up.
            core.forget_before(complete_ns.min(core.known_ns()).saturating_sub(1_000_000));
        }
        hit
    }

    fn so_far(&self) -> CpuLatency {
        self.tally.so_far()
    }

    fn finish(&mut self, core: Option<&Core>, notes: &mut Vec<String>) -> CpuLatency {
        let counted = self.thread.counted();
        let dropped = self.outbox.dropped();
        let cpu = self.thread.cpu;
        let mut latency = self.tally.so_far();
        latency.steal_ns = counted.steal_ns;
        latency.dropped = dropped;
        if dropped > 0 {
            notes.push(format!(
                "CPU {cpu}: {dropped} wake-ups came faster than they could be read: raise the period -p"
            ));
        }
        if let Some(core) = core {
            (latency.events, latency.events_lost, latency.breaks) =
                (core.total(), core.lost(), core.breaks());
            if core.lost() > 0 {
                notes.push(format!("CPU {cpu}: {} kernel records were lost", core.lost()));
            }
        }
        latency
    }
}

/// The threads that had the measured cores when a limit ended the session; `None` if none did, or without
/// rings.
fn tasks(session: &Session<TimerProbe<'_>>) -> Option<Vec<Task>> {
    let at_ns = session.probes.iter().find_map(|probe| Some(probe.tally.stopped_by()?.wake.user_ns))?;
    let rings = session.rings.as_ref()?;
    let task = |(place, probe): (usize, &TimerProbe<'_>)| {
        let (name, pid) = rings.core(place).task_at(at_ns)?;
        let MeasuringThread { cpu, pid: own, .. } = probe.thread;
        let name = if pid == own { format!("timerlat/{cpu}") } else { name };
        Some(Task { cpu: cpu as u32, name, pid })
    };
    Some(session.probes.iter().enumerate().filter_map(task).collect())
}

/// Analysis of a wake-up by the kernel's events.
fn by_events(cpu: u32, wakeup: TimerWakeup, core: &Core) -> Analysis {
    let TimerWakeup { due_ns, user_ns, .. } = wakeup;
    let window = due_ns..user_ns;
    let events = core.events(window.clone());
    // The first handler that ended after the due time is the one that found the timer due.
    let is_timer = |name: &str| name.ends_with("_timer");
    let irq = events.iter().filter(|event| event.class == Class::Irq && is_timer(&event.name));
    let irq_ns = irq.map(|event| event.start_ns).filter(|start_ns| *start_ns < user_ns).min();
    let wake = TimerWake { cpu, due_ns, irq_ns, thread_ns: core.last_switch_ns(&window), user_ns };
    let mut analysis = analyse(wake, events);
    analysis.is_doubtful = core.is_broken(&window);
    analysis
}
