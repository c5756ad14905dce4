//! Timer latency: how late a timer wakes a thread, and why.

mod record;
mod settings;

pub(crate) use record::Tally;
pub use record::{CpuLatency, LatencyRecord, Series, Task};
pub use settings::{Settings, Workload};

use crate::analysis::{Analysis, Wake, analyse, analyse_by_wait};
use crate::crew::{Member, Signals, choose};
use crate::error::Error;
use crate::idle::IdleStates;
use crate::place::{self, House};
use crate::record::Stopped;
use crate::source::{Backend, Core, Counters, Tracepoints, Waited, left};
use crate::timer::{self, Line, Plan, Woken};
use crate::watch::Watch;
use onbeat_os::latency::DmaLatency;
use onbeat_os::{Policy, clock};
use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{AtomicU64, Ordering};
use onbeat_queue::{Owner, Spsc};
use onbeat_trace::{Class, KernelEvent};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

/// What keeps idle cores from sleeping deeply; dropping it lets them again.
pub(crate) struct Awake {
    _held: Option<DmaLatency>,
    _idle: Option<IdleStates>,
}

impl Awake {
    /// As it was asked for; what is refused is a note.
    pub fn keep(settings: &Settings, cpus: &[usize], notes: &mut Vec<String>) -> Self {
        let mut refused = |what: String, error: io::Error, fix: &str| {
            notes.push(format!("{what} was asked for and not obtained: {error}{fix}"));
        };
        let held = settings.dma_latency_us.and_then(|us| {
            let held = DmaLatency::hold(us);
            held.map_err(|error| refused(format!("--dma-latency {us}"), error, "; run as root")).ok()
        });
        let idle = settings.deepest_idle_state.and_then(|deepest| {
            let kept = IdleStates::keep(deepest, cpus);
            kept.map_err(|error| refused(format!("--deepest-idle-state {deepest}"), error, "")).ok()
        });
        Awake { _held: held, _idle: idle }
    }
}

/// From reading the rings to reading them again.
const EVERY_NS: u64 = 50_000_000;
/// Wake-ups that a thread can have told of in that time.
const WAKES: usize = 1 << 14;
/// The shortest period: below that there is nothing but waking up.
const LEAST_PERIOD_NS: u64 = 10_000;

struct Timed {
    member: Member,
    line: Arc<Line>,
    owner: Owner,
    tally: Tally,
    before: Counters,
}

/// Measures until the time is over, a limit is hit, or whoever watches says so.
///
/// The calling thread reads the rings; meanwhile it is on the house-keeping cores.
///
/// # Errors
/// As those of [`measure`](crate::measure::measure).
pub fn measure(settings: &Settings, watch: &mut dyn Watch<CpuLatency>) -> Result<LatencyRecord, Error> {
    if settings.period_ns < LEAST_PERIOD_NS {
        return Err(Error::Settings(format!(
            "a period of {} ns is below the {} us that a wake-up can take: raise -p",
            settings.period_ns,
            LEAST_PERIOD_NS / 1000
        )));
    }
    if settings.backend == Backend::Tracer {
        return crate::tracer::measure_timers(settings, watch);
    }
    let cpus = place::cpus(settings.cpus.as_ref())?;
    place::check_policy(settings.policy, false, &cpus)?;
    let (mut perf, source) = choose(settings.backend, settings.shape(), &cpus)?;
    let house = House::keep(settings.house_keeping.as_ref(), &cpus)?;
    let policy = settings.policy.unwrap_or(Policy::Other(0)).to_string();
    let mut record = LatencyRecord::new(settings, policy, source);
    record.notes.extend(house.note.iter().cloned());
    record.notes.extend(perf.iter().flat_map(|perf| left(perf.cleaned())));
    let awake = Awake::keep(settings, &cpus, &mut record.notes);
    let signals = Signals::default();
    let base_ns = clock::monotonic_ns() + 100_000_000;
    let start = |(at, &cpu)| start(cpu, at as u64, base_ns, settings, &signals, perf.is_none());
    let mut timed = cpus.iter().enumerate().map(start).collect::<Result<Vec<Timed>, Error>>()?;
    let refused: BTreeSet<String> = timed.iter().filter_map(|one| one.member.note.clone()).collect();
    record.notes.extend(refused);
    if let Some(perf) = &mut perf {
        for (at, one) in timed.iter().enumerate() {
            perf.core_mut(at).measure(&[one.member.pid]);
        }
        perf.enable().map_err(Error::os("the rings of the kernel"))?;
    }
    for one in &mut timed {
        one.before = Counters::read(one.member.cpu);
    }
    record.started_unix_ns = clock::realtime_unix_ns();
    let begin_ns = clock::monotonic_ns() + settings.warm_up_ns;
    record.begin_ns = begin_ns;
    signals.go.store(true, Ordering::Release);
    let end_ns = settings.duration_ns.map_or(u64::MAX, |duration_ns| begin_ns.saturating_add(duration_ns));
    let mut next_ns = begin_ns - settings.warm_up_ns;
    loop {
        next_ns = (next_ns + EVERY_NS).max(clock::monotonic_ns());
        clock::sleep_until(next_ns.min(end_ns));
        if clock::monotonic_ns() >= end_ns || watch.is_stopped() {
            signals.end();
        }
        let is_over = signals.is_over();
        if is_over {
            timed.iter_mut().for_each(|one| one.member.join());
        }
        for (at, one) in timed.iter_mut().enumerate() {
            let over = one.collect(perf.as_mut().map(|perf| (perf, at)), begin_ns, settings);
            if let Some(over) = over.as_ref().filter(|_| settings.goes_on) {
                record.hits += 1;
                let events: Vec<KernelEvent> = perf.iter().flat_map(Tracepoints::kept).cloned().collect();
                watch.hit(over, &events);
            } else {
                record.stopped = record.stopped.or(over);
            }
        }
        if is_over {
            break;
        }
        if record.stopped.is_some() {
            signals.end();
        }
        let timed = &timed;
        let so_far = || timed.iter().map(|one| one.tally.so_far()).collect();
        watch.at(&so_far, clock::monotonic_ns().saturating_sub(begin_ns));
    }
    drop(awake);
    record.duration_ns = clock::monotonic_ns().saturating_sub(begin_ns);
    if let Some(perf) = &perf {
        perf.disable().map_err(Error::os("the rings of the kernel"))?;
    }
    let at_ns = timed.iter().find_map(|one| Some(one.tally.stopped_by()?.wake.user_ns));
    if let Some((at_ns, perf)) = at_ns.zip(perf.as_ref()) {
        record.tasks = tasks(&timed, perf, at_ns);
    }
    for (at, one) in timed.iter_mut().enumerate() {
        let cpu = one.finish(perf.as_ref().map(|perf| perf.core(at)), &mut record.notes);
        record.cpus.push(cpu);
    }
    record.events = perf.iter().flat_map(Tracepoints::kept).cloned().collect();
    Ok(record)
}

fn start(
    cpu: usize,
    place: u64,
    base_ns: u64,
    settings: &Settings,
    signals: &Signals,
    asks_waits: bool,
) -> Result<Timed, Error> {
    let (producer, owner) = (Owner::new(), Owner::new());
    let line = Arc::new(Line {
        told: Spsc::new(&producer, &owner, WAKES),
        seen_ns: CachePadded::new(AtomicU64::new(0)),
        dropped: CachePadded::new(AtomicU64::new(0)),
    });
    let plan = Plan {
        period_ns: settings.period_ns,
        first_ns: settings.aligned_ns.map(|aligned_ns| base_ns + place * aligned_ns),
        stop_ns: settings.stop_thread_ns.filter(|_| !settings.goes_on).unwrap_or(u64::MAX),
    };
    let (ours, shared) = (Arc::clone(&line), signals.clone());
    let body = move || {
        let waited = if asks_waits { Waited::of_this_thread().ok() } else { None };
        timer::run(&ours, producer, &plan, waited.as_ref(), &shared);
    };
    let member = Member::start(cpu, "timerlat", settings.policy, signals, body)?;
    let tally = Tally::new(cpu as u32, settings.bucket_ns, settings.entries, settings.samples);
    Ok(Timed { member, line, owner, tally, before: Counters::default() })
}

impl Timed {
    /// Takes in what the thread has told, and says whether a limit was hit.
    fn collect(
        &mut self,
        perf: Option<(&mut Tracepoints, usize)>,
        begin_ns: u64,
        settings: &Settings,
    ) -> Option<Stopped> {
        // In this order: what is told is told of the time before it, and the ring is read after that.
        let seen_ns = self.line.seen_ns.load(Ordering::Acquire);
        let mut told: Vec<Woken> = Vec::new();
        self.line.told.poll(&mut self.owner);
        self.line.told.drain(&mut self.owner, |one| told.push(one));
        self.line.told.release(&mut self.owner);
        let mut kernel = perf.map(|(perf, at)| {
            let stamps: Vec<u64> = told.iter().map(|woken| woken.user_ns).collect();
            perf.drain(at, self.member.pid, &stamps);
            perf.core_mut(at)
        });
        let cpu = self.member.cpu as u32;
        let mut stopped = None;
        for woken in told.into_iter().filter(|woken| woken.due_ns >= begin_ns) {
            let analysis = match &kernel {
                Some(core) => by_events(cpu, woken, core),
                None => {
                    let Woken { due_ns, user_ns, waited_ns } = woken;
                    analyse_by_wait(Wake { cpu, due_ns, irq_ns: None, thread_ns: None, user_ns }, waited_ns)
                }
            };
            let wake = analysis.wake;
            let over = [
                ("the latency of the timer's interrupt", wake.irq_latency_ns(), settings.stop_irq_ns),
                ("the latency of the thread", Some(wake.user_latency_ns()), settings.stop_thread_ns),
            ];
            for (what, value_ns, limit_ns) in over {
                if let (Some(value_ns), Some(limit_ns)) = (value_ns, limit_ns)
                    && value_ns > limit_ns
                    && stopped.is_none()
                {
                    stopped = Some(Stopped { cpu, what: what.to_owned(), value_ns, limit_ns });
                    self.tally.stopped(analysis.clone());
                }
            }
            self.tally.wake(analysis, true);
        }
        if let Some(core) = &mut kernel {
            // The interrupt before the next wake-up may have begun before the last one.
            core.forget_before(seen_ns.min(core.known_ns()).saturating_sub(1_000_000));
        }
        stopped
    }

    fn finish(&mut self, core: Option<&Core>, notes: &mut Vec<String>) -> CpuLatency {
        let counted = Counters::read(self.member.cpu).since(&self.before);
        let dropped = self.line.dropped.load(Ordering::Relaxed);
        let cpu = self.member.cpu;
        let mut latency = self.tally.so_far();
        latency.steal_ns = counted.steal_ns;
        latency.dropped = dropped;
        if dropped > 0 {
            notes.push(format!(
                "CPU {cpu}: {dropped} wake-ups were more than could be taken in: raise the period -p"
            ));
        }
        if let Some(core) = core {
            (latency.events, latency.events_lost, latency.breaks) =
                (core.total(), core.lost(), core.breaks());
            if core.lost() > 0 {
                notes.push(format!("CPU {cpu}: {} records of the kernel were lost", core.lost()));
            }
        }
        latency
    }
}

/// Who had the measured cores at that moment.
fn tasks(timed: &[Timed], perf: &Tracepoints, at_ns: u64) -> Vec<Task> {
    let one = |(at, one): (usize, &Timed)| {
        let (name, pid) = perf.core(at).task_at(at_ns)?;
        let name = if pid == one.member.pid { format!("timerlat/{}", one.member.cpu) } else { name };
        Some(Task { cpu: one.member.cpu as u32, name, pid })
    };
    timed.iter().enumerate().filter_map(one).collect()
}

/// With what the kernel tells of it.
fn by_events(cpu: u32, woken: Woken, core: &Core) -> Analysis {
    let Woken { due_ns, user_ns, .. } = woken;
    let window = due_ns..user_ns;
    let events = core.events(window.clone());
    // The first handler that ended after the moment is the one that found it due.
    let is_timer = |name: &str| name.ends_with("_timer");
    let irq = events.iter().filter(|event| event.class == Class::Irq && is_timer(&event.name));
    let irq_ns = irq.map(|event| event.start_ns).filter(|start_ns| *start_ns < user_ns).min();
    let wake = Wake { cpu, due_ns, irq_ns, thread_ns: core.last_switch_ns(&window), user_ns };
    let mut analysis = analyse(wake, events);
    analysis.is_doubtful = core.is_broken(&window);
    analysis
}
