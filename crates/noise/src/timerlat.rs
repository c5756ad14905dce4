//! Timer latency: how late a timer wakes a thread, and why.

mod record;

pub use record::{CpuLatency, LatencyRecord, Series, Task};
pub(crate) use record::{SCHEMA, Tally, VERSION};

use crate::analysis::{Analysis, Wake, analyse, analyse_by_wait};
use crate::crew::{Member, Signals, choose};
use crate::error::Error;
use crate::idle::IdleStates;
use crate::place::{self, House};
use crate::record::Stopped;
use crate::source::{Backend, Core, Counters, Shape, Tracepoints, Waited};
use crate::timer::{self, Line, Plan, Woken};
use onbeat_os::latency::DmaLatency;
use onbeat_os::{CoreSet, Policy, clock};
use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{AtomicU64, Ordering};
use onbeat_queue::{Owner, Spsc};
use onbeat_trace::{Class, KernelEvent, Machine};

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

/// What to measure. Times in nanoseconds.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Which cores; all that this process may use where there are none.
    pub cpus: Option<CoreSet>,
    /// Where everything else of ours runs; where it is not said, on the cores that are not measured.
    pub house_keeping: Option<CoreSet>,
    /// What the scheduler gives to the measuring threads.
    pub policy: Option<Policy>,
    /// From wake-up to wake-up.
    pub period_ns: u64,
    /// Each core's moments come so much after those of the core before it; without, they begin as the threads do.
    pub aligned_ns: Option<u64>,
    /// Ends it with the first interrupt that comes later.
    pub stop_irq_ns: Option<u64>,
    /// Ends it with the first thread that comes later.
    pub stop_thread_ns: Option<u64>,
    /// Ends it; without, whoever watches does.
    pub duration_ns: Option<u64>,
    /// So much at the begin is not counted.
    pub warm_up_ns: u64,
    /// A limit that is hit is told to whoever watches, and it goes on.
    pub goes_on: bool,
    /// Idle states of the measured cores that are deeper than this are switched off meanwhile; all of them for −1.
    pub deepest_idle_state: Option<i32>,
    /// Keeps idle cores from sleeping so deeply that waking up takes longer.
    pub dma_latency_us: Option<u32>,
    /// The width of a bucket of the histograms.
    pub bucket_ns: u64,
    /// How many buckets they have.
    pub entries: usize,
    /// How many of the latest wake-ups are analysed one by one.
    pub samples: usize,
    /// Where the causes are to come from.
    pub backend: Backend,
    /// Whose threads the kernel's tracer wakes.
    pub workload: Workload,
    /// Has the kernel's tracer tell the stack at the interrupt, where the thread came later than this.
    pub stack_ns: Option<u64>,
    /// The size of a core's ring.
    pub ring_bytes: usize,
    /// How many of a core's last kernel events are kept for a trace.
    pub keep_events: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            cpus: None,
            house_keeping: None,
            policy: Some(Policy::Fifo(95)),
            period_ns: 1_000_000,
            aligned_ns: None,
            stop_irq_ns: None,
            stop_thread_ns: None,
            duration_ns: None,
            warm_up_ns: 0,
            goes_on: false,
            deepest_idle_state: None,
            dma_latency_us: None,
            bucket_ns: 1_000,
            entries: 256,
            samples: 5,
            backend: Backend::Auto,
            workload: Workload::Kernel,
            stack_ns: None,
            ring_bytes: Shape::default().ring_bytes,
            keep_events: 0,
        }
    }
}

impl Settings {
    fn shape(&self) -> Shape {
        Shape { ring_bytes: self.ring_bytes, keep: self.keep_events, ..Shape::default() }
    }
}

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

/// Whose threads are measured, where the kernel's tracer does it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Workload {
    /// The kernel's own.
    #[default]
    Kernel,
    /// Ours, which wait on the kernel's `timerlat_fd`.
    Threads,
    /// Somebody else's, which do.
    Users,
}

/// Who looks on while it is measured.
pub trait Watch {
    /// How things stand, from time to time.
    fn at(&mut self, so_far: &dyn Fn() -> Vec<CpuLatency>, elapsed_ns: u64);

    /// Whether it is enough.
    fn is_stopped(&self) -> bool;

    /// A limit was hit, and it goes on. At most once for each reading of the rings.
    fn hit(&mut self, _stopped: &Stopped, _events: &[KernelEvent]) {}
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
pub fn measure(settings: &Settings, watch: &mut dyn Watch) -> Result<LatencyRecord, Error> {
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
    let mut notes: Vec<String> = house.note.iter().cloned().collect();
    let left = perf.iter().flat_map(Tracepoints::cleaned);
    notes.extend(left.map(|line| format!("left by a process that was killed: {line}")));
    let awake = Awake::keep(settings, &cpus, &mut notes);
    let signals = Signals::default();
    let base_ns = clock::monotonic_ns() + 100_000_000;
    let start = |(at, &cpu)| start(cpu, at as u64, base_ns, settings, &signals, perf.is_none());
    let mut timed = cpus.iter().enumerate().map(start).collect::<Result<Vec<Timed>, Error>>()?;
    let refused: BTreeSet<String> = timed.iter().filter_map(|one| one.member.note.clone()).collect();
    notes.extend(refused);
    if let Some(perf) = &mut perf {
        for (at, one) in timed.iter().enumerate() {
            perf.core_mut(at).measure(&[one.member.pid]);
        }
        perf.enable().map_err(Error::os("the rings of the kernel"))?;
    }
    for one in &mut timed {
        one.before = Counters::read(one.member.cpu);
    }
    let started_unix_ns = clock::realtime_unix_ns();
    let begin_ns = clock::monotonic_ns() + settings.warm_up_ns;
    signals.go.store(true, Ordering::Release);
    let end_ns = settings.duration_ns.map_or(u64::MAX, |duration_ns| begin_ns.saturating_add(duration_ns));
    let mut next_ns = begin_ns - settings.warm_up_ns;
    let (mut stopped, mut hits) = (None, 0);
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
                hits += 1;
                let events: Vec<KernelEvent> = perf.iter().flat_map(Tracepoints::kept).cloned().collect();
                watch.hit(over, &events);
            } else {
                stopped = stopped.or(over);
            }
        }
        if is_over {
            break;
        }
        if stopped.is_some() {
            signals.end();
        }
        let timed = &timed;
        let so_far = || timed.iter().map(|one| one.tally.so_far()).collect();
        watch.at(&so_far, clock::monotonic_ns().saturating_sub(begin_ns));
    }
    drop(awake);
    let duration_ns = clock::monotonic_ns().saturating_sub(begin_ns);
    if let Some(perf) = &perf {
        perf.disable().map_err(Error::os("the rings of the kernel"))?;
    }
    let at_ns = timed.iter().find_map(|one| Some(one.tally.stopped_by()?.wake.user_ns));
    let tasks = at_ns.zip(perf.as_ref()).map_or(Vec::new(), |(at_ns, perf)| tasks(&timed, perf, at_ns));
    let finished = timed.iter_mut().enumerate();
    let cpus =
        finished.map(|(at, one)| one.finish(perf.as_ref().map(|perf| perf.core(at)), &mut notes)).collect();
    Ok(LatencyRecord {
        schema: SCHEMA.to_owned(),
        version: VERSION,
        name: String::new(),
        started_unix_ns,
        begin_ns,
        duration_ns,
        machine: Machine::read(),
        period_ns: settings.period_ns,
        policy: settings.policy.unwrap_or(Policy::Other(0)).to_string(),
        source,
        stopped,
        hits,
        tasks,
        notes,
        cpus,
        events: perf.iter().flat_map(Tracepoints::kept).cloned().collect(),
        lines: Vec::new(),
    })
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
        self.line.told.look(&mut self.owner);
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
