//! Measuring: a busy thread per core, somebody who reads the kernel's rings meanwhile, and the sum of both.

use crate::attribute::{Gap, Interference, Own, Verdict, attribute};
use crate::crew::{Member, Signals, choose};
use crate::error::Error;
use crate::place::{self, House};
use crate::record::{CpuNoise, NoiseRecord, Stopped};
use crate::sampler::{self, Line, Plan, Told};
use crate::source::{Backend, Counters, Shape, Tracepoints, Waited, left};
use crate::tally::Tally;
use crate::watch::Watch;
use onbeat_os::{CoreSet, Policy, clock};
use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{AtomicU64, Ordering};
use onbeat_queue::{Owner, Spsc};
use onbeat_trace::{Class, KernelEvent};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What to measure. Times in nanoseconds.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Which cores; all that this process may use where there are none.
    pub cpus: Option<CoreSet>,
    /// Where everything else of ours runs; where it is not said, on the cores that are not measured.
    pub house_keeping: Option<CoreSet>,
    /// What the scheduler gives to the measuring threads; what they would have anyway where it is not said.
    pub policy: Option<Policy>,
    /// From measurement to measurement.
    pub period_ns: u64,
    /// How long each takes; the thread sleeps for the rest of the period.
    pub runtime_ns: u64,
    /// What is shorter is no noise.
    pub threshold_ns: u64,
    /// Ends it with the first gap that is longer.
    pub stop_single_ns: Option<u64>,
    /// Ends it with the first period that has more noise.
    pub stop_total_ns: Option<u64>,
    /// A limit that is hit is told to whoever watches, and it goes on.
    pub goes_on: bool,
    /// Ends it; without, whoever watches does.
    pub duration_ns: Option<u64>,
    /// So much at the begin is not counted.
    pub warm_up_ns: u64,
    /// The width of a bucket of the histogram.
    pub bucket_ns: u64,
    /// How many buckets it has.
    pub entries: usize,
    /// How many of the longest gaps are told one by one.
    pub samples: usize,
    /// Where the causes are to come from.
    pub backend: Backend,
    /// The size of a core's ring.
    pub ring_bytes: usize,
    /// How many of a core's last kernel events and gaps are kept for a trace.
    pub keep_events: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            cpus: None,
            house_keeping: None,
            policy: None,
            period_ns: 1_000_000_000,
            runtime_ns: 1_000_000_000,
            threshold_ns: 5_000,
            stop_single_ns: None,
            stop_total_ns: None,
            goes_on: false,
            duration_ns: None,
            warm_up_ns: 0,
            bucket_ns: 1_000,
            entries: 256,
            samples: 20,
            backend: Backend::Auto,
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

/// From reading the rings to reading them again.
const EVERY_NS: u64 = 50_000_000;
/// Gaps that a thread can have told of in that time.
const GAPS: usize = 1 << 16;

/// One measuring thread, seen from outside.
struct Sampled {
    member: Member,
    line: Arc<Line>,
    owner: Owner,
    tally: Tally,
    before: Counters,
    /// Noise of which the periods told, and of which the gaps did.
    noise_ns: u64,
    gaps_ns: u64,
}

/// Measures until the time is over, a limit is hit, or whoever watches says so.
///
/// The calling thread reads the rings; meanwhile it is on the house-keeping cores.
///
/// # Errors
/// Settings that cannot be, a backend that was asked for and is not to be had, cores that are not there.
pub fn measure(settings: &Settings, watch: &mut dyn Watch<CpuNoise>) -> Result<NoiseRecord, Error> {
    check(settings)?;
    if settings.backend == Backend::Tracer {
        return crate::tracer::measure(settings, false, watch);
    }
    let cpus = place::cpus(settings.cpus.as_ref())?;
    let never_sleeps = settings.runtime_ns == settings.period_ns;
    place::check_policy(settings.policy, never_sleeps, &cpus)?;
    let (mut perf, source) = choose(settings.backend, settings.shape(), &cpus)?;
    let house = House::keep(settings.house_keeping.as_ref(), &cpus)?;
    let policy = settings.policy.unwrap_or(Policy::Other(0)).to_string();
    let mut record = NoiseRecord::new(settings, policy, source);
    record.notes.extend(house.note.iter().cloned());
    record.notes.extend(perf.iter().flat_map(|perf| left(perf.cleaned())));
    let signals = Signals::default();
    let start = |&cpu| start(cpu, settings, &signals, perf.is_none());
    let mut sampled = cpus.iter().map(start).collect::<Result<Vec<Sampled>, Error>>()?;
    let refused: BTreeSet<String> = sampled.iter().filter_map(|one| one.member.note.clone()).collect();
    if let Some(perf) = &mut perf {
        for (at, one) in sampled.iter().enumerate() {
            perf.core_mut(at).measure(&[one.member.pid]);
        }
        perf.enable().map_err(Error::os("the rings of the kernel"))?;
    }
    let own = match settings.policy {
        Some(policy) if policy.is_real_time() && refused.is_empty() => {
            Own::RealTime { has_fair_server: place::has_fair_server() }
        }
        _ => Own::Fair,
    };
    record.notes.extend(refused);
    for one in &mut sampled {
        one.before = Counters::read(one.member.cpu);
    }
    record.started_unix_ns = clock::realtime_unix_ns();
    let begin_ns = clock::monotonic_ns() + settings.warm_up_ns;
    record.begin_ns = begin_ns;
    signals.go.store(true, Ordering::Release);
    let mut next_ns = begin_ns - settings.warm_up_ns;
    loop {
        next_ns = (next_ns + EVERY_NS).max(clock::monotonic_ns());
        let end_ns =
            settings.duration_ns.map_or(u64::MAX, |duration_ns| begin_ns.saturating_add(duration_ns));
        clock::sleep_until(next_ns.min(end_ns));
        if clock::monotonic_ns() >= end_ns || watch.is_stopped() {
            signals.end();
        }
        let is_over = signals.is_over();
        if is_over {
            sampled.iter_mut().for_each(|one| one.member.join());
        }
        for (at, one) in sampled.iter_mut().enumerate() {
            let over = one.collect(perf.as_mut().map(|perf| (perf, at)), own, settings);
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
        let sampled = &sampled;
        let so_far = || sampled.iter().map(|one| one.tally.so_far()).collect();
        watch.at(&so_far, clock::monotonic_ns().saturating_sub(begin_ns));
    }
    record.duration_ns = clock::monotonic_ns().saturating_sub(begin_ns);
    if let Some(perf) = &perf {
        perf.disable().map_err(Error::os("the rings of the kernel"))?;
    }
    for (at, one) in sampled.iter_mut().enumerate() {
        let cpu = one.finish(perf.as_ref().map(|perf| (perf, at)), settings, &mut record.notes);
        record.cpus.push(cpu);
    }
    record.events = perf.iter().flat_map(Tracepoints::kept).cloned().collect();
    Ok(record)
}

fn check(settings: &Settings) -> Result<(), Error> {
    let wrong = |why: String| Err(Error::Settings(why));
    let Settings { period_ns, runtime_ns, threshold_ns, .. } = *settings;
    if period_ns == 0 || runtime_ns == 0 {
        return wrong("a period and a run time of 0 measure nothing: give both at least 1 ms".to_owned());
    }
    if runtime_ns > period_ns {
        return wrong(format!(
            "a run time of {} us does not fit in a period of {} us: lower -r, or raise -p",
            runtime_ns / 1000,
            period_ns / 1000
        ));
    }
    if threshold_ns == 0 {
        return wrong("a threshold of 0 makes every look at the clock a gap: give at least 1 ns".to_owned());
    }
    if threshold_ns > runtime_ns {
        return wrong(format!(
            "a threshold of {} us is above the run time of {} us: nothing could be found",
            threshold_ns / 1000,
            runtime_ns / 1000
        ));
    }
    Ok(())
}

fn start(cpu: usize, settings: &Settings, signals: &Signals, asks_waits: bool) -> Result<Sampled, Error> {
    let (producer, owner) = (Owner::new(), Owner::new());
    let line = Arc::new(Line {
        told: Spsc::new(&producer, &owner, GAPS),
        seen_ns: CachePadded::new(AtomicU64::new(0)),
        dropped: CachePadded::new(AtomicU64::new(0)),
        stop: Arc::clone(&signals.stop),
    });
    let mut plan = Plan {
        period_ns: settings.period_ns,
        runtime_ns: settings.runtime_ns,
        threshold_ns: settings.threshold_ns,
        stop_single_ns: settings.stop_single_ns.filter(|_| !settings.goes_on).unwrap_or(u64::MAX),
        stop_total_ns: settings.stop_total_ns.filter(|_| !settings.goes_on).unwrap_or(u64::MAX),
        begin_ns: 0,
    };
    let (ours, warm_up_ns) = (Arc::clone(&line), settings.warm_up_ns);
    let body = move || {
        let waited = if asks_waits { Waited::of_this_thread().ok() } else { None };
        plan.begin_ns = clock::monotonic_ns() + warm_up_ns;
        sampler::run(&ours, producer, &plan, waited.as_ref());
    };
    let member = Member::start(cpu, "noise", settings.policy, signals, body)?;
    let tally = Tally::new(cpu as u32, settings.bucket_ns, settings.entries, settings.samples)
        .keeping(settings.keep_events);
    let before = Counters::default();
    Ok(Sampled { member, line, owner, tally, before, noise_ns: 0, gaps_ns: 0 })
}

impl Sampled {
    /// Takes in what the thread has told, and the kernel's part of it; says which limit was hit, the first one.
    fn collect(
        &mut self,
        perf: Option<(&mut Tracepoints, usize)>,
        own: Own,
        settings: &Settings,
    ) -> Option<Stopped> {
        let cpu = self.member.cpu as u32;
        let over = |what: &str, value_ns: u64, limit_ns: Option<u64>| {
            let limit_ns = limit_ns.filter(|limit_ns| value_ns > *limit_ns)?;
            Some(Stopped { cpu, what: what.to_owned(), value_ns, limit_ns })
        };
        let mut stopped = None;
        // In this order: what is told is told of the time before it, and the ring is read after that.
        let seen_ns = self.line.seen_ns.load(Ordering::Acquire);
        let mut told = Vec::new();
        self.line.told.poll(&mut self.owner);
        self.line.told.drain(&mut self.owner, |one| told.push(one));
        self.line.told.release(&mut self.owner);
        let gap_of = |one: &Told| match *one {
            Told::Gap { end_ns, .. } => Some(end_ns),
            Told::Period(_) => None,
        };
        let mut kernel = perf.map(|(perf, at)| {
            let stamps: Vec<u64> = told.iter().filter_map(gap_of).collect();
            perf.drain(at, self.member.pid, &stamps);
            perf.core_mut(at)
        });
        for one in told {
            match one {
                Told::Period(period) => {
                    self.noise_ns += period.noise_ns;
                    self.tally.period(&period);
                    stopped =
                        stopped.or(over("the noise of a period", period.noise_ns, settings.stop_total_ns));
                }
                Told::Gap { start_ns, end_ns, waited_ns } => {
                    let gap = Gap { cpu: self.member.cpu as u32, start_ns, end_ns };
                    self.gaps_ns += gap.duration_ns();
                    stopped = stopped.or(over("one gap", gap.duration_ns(), settings.stop_single_ns));
                    let verdict = match &kernel {
                        Some(core) => {
                            let window_ns = start_ns..end_ns;
                            let own = if core.has_slept(&window_ns) { Own::Asleep } else { own };
                            let mut verdict = attribute(gap, core.events(window_ns.clone()), own);
                            verdict.is_doubtful = core.is_broken(&window_ns);
                            verdict
                        }
                        None => by_wait(gap, waited_ns),
                    };
                    self.tally.gap(verdict);
                }
            }
        }
        if let Some(core) = &mut kernel {
            core.forget_before(seen_ns.min(core.known_ns()));
        }
        stopped
    }

    fn finish(
        &mut self,
        perf: Option<(&Tracepoints, usize)>,
        settings: &Settings,
        notes: &mut Vec<String>,
    ) -> CpuNoise {
        let dropped = self.line.dropped.load(Ordering::Relaxed);
        self.tally.gaps_dropped(dropped, self.noise_ns.saturating_sub(self.gaps_ns));
        let counted = Counters::read(self.member.cpu).since(&self.before);
        let cpu = self.member.cpu;
        if let Some((perf, at)) = perf {
            let noise = self.tally.noise_mut();
            let core = perf.core(at);
            (noise.events, noise.events_lost, noise.breaks) = (core.total(), core.lost(), core.breaks());
            if core.lost() > 0 {
                notes.push(format!(
                    "CPU {cpu}: {} of {} records of the kernel were lost: more is unexplained than is",
                    core.lost(),
                    core.lost() + core.total()
                ));
            }
            for name in crate::source::UNTRACED {
                if let Some(count) = counted.interrupts.get(name) {
                    notes.push(format!(
                        "CPU {cpu}: {count} interrupts {name} (/proc/interrupts), of which no tracepoint tells: they are under \
                         hardware or unexplained"
                    ));
                }
            }
        }
        if dropped > 0 {
            notes.push(format!(
                "CPU {cpu}: {dropped} gaps were more than could be taken in: raise the threshold of {} ns",
                settings.threshold_ns
            ));
        }
        self.tally.counted(counted);
        CpuNoise { last_gaps: self.tally.last(), ..self.tally.so_far() }
    }
}

/// Without tracepoints: others had the core while it was ready to run, and of the rest nobody knows.
fn by_wait(gap: Gap, waited_ns: u64) -> Verdict {
    let waited_ns = waited_ns.min(gap.duration_ns());
    let thread = Interference {
        class: Class::Thread,
        name: "(any thread)".to_owned(),
        pid: 0,
        priority: 0,
        start_ns: gap.start_ns,
        duration_ns: waited_ns,
    };
    Verdict {
        gap,
        interferences: (waited_ns > 0).then_some(thread).into_iter().collect(),
        hardware_ns: 0,
        unexplained_ns: gap.duration_ns() - waited_ns,
        is_doubtful: false,
    }
}
