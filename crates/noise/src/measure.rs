//! Measuring noise: a busy thread per core, a reader of the kernel's rings, and the sum of both.

use crate::attribute::{Gap, GapThread, GapVerdict, Interference, attribute};
use crate::error::NoiseError;
use crate::outbox::Outbox;
use crate::place::{self, House};
use crate::record::{CpuNoise, NoiseRecord};
use crate::sampler::{self, Observation, SamplerPlan};
use crate::session::{CoreProbe, Session};
use crate::settings::NoiseSettings;
use crate::source::{Backend, Core, RunQueueWait, Tracepoints, UNTRACED, left};
use crate::tally::NoiseTally;
use crate::threads::{MeasuringThread, Signals, choose};
use crate::watch::{LimitHit, Observer};
use onbeat_os::{Policy, clock};
use onbeat_queue::Owner;
use onbeat_trace::Class;
use std::sync::Arc;

/// Gaps that a thread can report between two reads of the rings.
const GAPS: usize = 1 << 16;

/// One measuring thread, seen from the reader.
struct NoiseProbe<'s> {
    settings: &'s NoiseSettings,
    /// What kind of thread it is, for the verdicts.
    kind: GapThread,
    thread: MeasuringThread,
    outbox: Arc<Outbox<Observation>>,
    reader: Owner,
    tally: NoiseTally,
    /// Noise by the thread's sums of whole periods, and by its single gaps.
    noise_ns: u64,
    gaps_ns: u64,
}

/// Measures until the duration is over, a limit is hit, or the watcher stops it.
///
/// The calling thread reads the rings; it stays on the house-keeping cores meanwhile.
///
/// # Errors
/// Settings that contradict each other, a backend that was asked for and is not available, cores that do not
/// exist.
pub fn measure(
    settings: &NoiseSettings,
    watch: &mut dyn Observer<CpuNoise>,
) -> Result<NoiseRecord, NoiseError> {
    settings.check()?;
    if settings.backend == Backend::Tracer {
        return crate::tracer::measure(settings, false, watch);
    }
    let cpus = place::cpus(settings.cpus.as_ref())?;
    let never_sleeps = settings.runtime_ns == settings.period_ns;
    place::check_policy(settings.policy, never_sleeps, &cpus)?;
    let (rings, source) = choose(settings.backend, settings.shape(), &cpus)?;
    let house = House::keep(settings.house_keeping.as_ref(), &cpus)?;
    let policy = settings.policy.unwrap_or(Policy::Other(0)).to_string();
    let mut record = NoiseRecord::new(settings, policy, source);
    record.notes.extend(house.note.iter().cloned());
    record.notes.extend(rings.iter().flat_map(|rings| left(rings.cleaned())));
    let asks_waits = rings.is_none();
    let mut session =
        Session::new(&cpus, rings, |_, cpu, signals| NoiseProbe::start(cpu, settings, signals, asks_waits))?;
    let refused = session.refused();
    if settings.policy.is_some_and(|policy| policy.is_real_time()) && refused.is_empty() {
        let kind = GapThread::RealTime { has_fair_server: place::has_fair_server() };
        session.probes.iter_mut().for_each(|probe| probe.kind = kind);
    }
    record.notes.extend(refused);
    let end = session.run(&settings.limits(), watch)?;
    (record.started_unix_ns, record.begin_ns) = (end.started_unix_ns, end.begin_ns);
    record.duration_ns = end.duration_ns;
    (record.stopped, record.hits) = (end.stopped, end.hits);
    record.cpus = session.finish(&mut record.notes);
    record.events = session.kept();
    Ok(record)
}

impl<'s> NoiseProbe<'s> {
    fn start(
        cpu: usize,
        settings: &'s NoiseSettings,
        signals: &Signals,
        asks_waits: bool,
    ) -> Result<Self, NoiseError> {
        let (outbox, writer, reader) = Outbox::new(GAPS);
        let mut plan = SamplerPlan {
            period_ns: settings.period_ns,
            runtime_ns: settings.runtime_ns,
            threshold_ns: settings.threshold_ns,
            stop_single_ns: settings.stop_single_ns.filter(|_| !settings.goes_on).unwrap_or(u64::MAX),
            stop_total_ns: settings.stop_total_ns.filter(|_| !settings.goes_on).unwrap_or(u64::MAX),
            begin_ns: 0,
        };
        let (shared, ours, warm_up_ns) = (signals.clone(), Arc::clone(&outbox), settings.warm_up_ns);
        let body = move || {
            let waits = if asks_waits { RunQueueWait::of_this_thread().ok() } else { None };
            plan.begin_ns = clock::monotonic_ns() + warm_up_ns;
            sampler::run(&ours, writer, &plan, waits.as_ref(), &shared);
        };
        let thread = MeasuringThread::start(cpu, "noise", settings.policy, signals, body)?;
        let tally = NoiseTally::new(cpu as u32, settings.bucket_ns, settings.entries, settings.samples)
            .keeping(settings.keep_events);
        let kind = GapThread::Fair;
        Ok(NoiseProbe { settings, kind, thread, outbox, reader, tally, noise_ns: 0, gaps_ns: 0 })
    }

    /// Verdict on a gap: by the kernel's events, or by the wait on the run queue where there are none.
    fn verdict(&self, gap: Gap, waited_ns: u64, core: Option<&Core>) -> GapVerdict {
        let Some(core) = core else { return by_wait(gap, waited_ns) };
        let window_ns = gap.start_ns..gap.end_ns;
        let kind = if core.has_slept(&window_ns) { GapThread::Asleep } else { self.kind };
        let mut verdict = attribute(gap, core.events(window_ns.clone()), kind);
        verdict.is_doubtful = core.is_broken(&window_ns);
        verdict
    }
}

impl CoreProbe for NoiseProbe<'_> {
    type Summary = CpuNoise;

    fn thread(&mut self) -> &mut MeasuringThread {
        &mut self.thread
    }

    fn collect(&mut self, rings: Option<(&mut Tracepoints, usize)>, _: u64) -> Option<LimitHit> {
        let cpu = self.thread.cpu as u32;
        let over = |what: &str, value_ns: u64, limit_ns: Option<u64>| {
            let limit_ns = limit_ns.filter(|limit_ns| value_ns > *limit_ns)?;
            Some(LimitHit { cpu, what: what.to_owned(), value_ns, limit_ns })
        };
        let settings = self.settings;
        let mut hit = None;
        // The ring of the kernel is read after the thread's: it then covers all that the thread has reported.
        let (complete_ns, observations) = self.outbox.take(&mut self.reader);
        let mut kernel = rings.map(|(rings, place)| {
            let stamps: Vec<u64> = observations.iter().filter_map(Observation::gap_end_ns).collect();
            rings.drain(place, self.thread.pid, &stamps);
            rings.core_mut(place)
        });
        for observation in observations {
            match observation {
                Observation::Period(period) => {
                    self.noise_ns += period.noise_ns;
                    self.tally.period(&period);
                    hit = hit.or(over("the noise of a period", period.noise_ns, settings.stop_total_ns));
                }
                Observation::Gap { start_ns, end_ns, waited_ns } => {
                    let gap = Gap { cpu, start_ns, end_ns };
                    self.gaps_ns += gap.duration_ns();
                    hit = hit.or(over("one gap", gap.duration_ns(), settings.stop_single_ns));
                    let verdict = self.verdict(gap, waited_ns, kernel.as_deref());
                    self.tally.gap(verdict);
                }
            }
        }
        if let Some(core) = &mut kernel {
            core.forget_before(complete_ns.min(core.known_ns()));
        }
        hit
    }

    fn so_far(&self) -> CpuNoise {
        self.tally.so_far()
    }

    fn finish(&mut self, core: Option<&Core>, notes: &mut Vec<String>) -> CpuNoise {
        let dropped = self.outbox.dropped();
        self.tally.gaps_dropped(dropped, self.noise_ns.saturating_sub(self.gaps_ns));
        let counted = self.thread.counted();
        let cpu = self.thread.cpu;
        if let Some(core) = core {
            let noise = self.tally.noise_mut();
            (noise.events, noise.events_lost, noise.breaks) = (core.total(), core.lost(), core.breaks());
            if core.lost() > 0 {
                notes.push(format!(
                    "CPU {cpu}: {} of {} kernel records were lost: the unexplained part is too large",
                    core.lost(),
                    core.lost() + core.total()
                ));
            }
            for name in UNTRACED {
                if let Some(count) = counted.interrupts.get(name) {
                    notes.push(format!(
                        "CPU {cpu}: {count} interrupts {name} (/proc/interrupts) have no tracepoint: they are counted as hardware or \
                         unexplained"
                    ));
                }
            }
        }
        if dropped > 0 {
            notes.push(format!(
                "CPU {cpu}: {dropped} gaps came faster than they could be read: raise the threshold of {} ns",
                self.settings.threshold_ns
            ));
        }
        self.tally.counted(counted);
        CpuNoise { last_gaps: self.tally.last(), ..self.tally.so_far() }
    }
}

/// Verdict without tracepoints: other threads had the core while the thread was ready to run; the rest is
/// unexplained.
fn by_wait(gap: Gap, waited_ns: u64) -> GapVerdict {
    let waited_ns = waited_ns.min(gap.duration_ns());
    let thread = Interference {
        class: Class::Thread,
        name: "(any thread)".to_owned(),
        pid: 0,
        priority: 0,
        start_ns: gap.start_ns,
        duration_ns: waited_ns,
    };
    GapVerdict {
        gap,
        interferences: (waited_ns > 0).then_some(thread).into_iter().collect(),
        hardware_ns: 0,
        unexplained_ns: gap.duration_ns() - waited_ns,
        is_doubtful: false,
    }
}
