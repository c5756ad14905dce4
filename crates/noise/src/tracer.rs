//! The kernel's own osnoise and timerlat tracers: their threads, gaps and events, read as text from an own
//! trace instance.
//!
//! The lines are the kernel's interface (`Documentation/trace/osnoise-tracer.rst` and `timerlat-tracer.rst`).
//! Gaps and events are on the tracer's clock, so they are attributed like any others.

mod instance;
mod lines;
mod reading;
mod timers;
mod wakes;

pub(crate) use lines::time_ns;
pub use lines::{LineContext, TracerLine, line};
pub(crate) use timers::measure as measure_timers;

use crate::attribute::{GapThread, attribute};
use crate::error::NoiseError;
use crate::place::{self, House};
use crate::record::{CpuNoise, NoiseRecord};
use crate::sampler::PeriodTotals;
use crate::settings::NoiseSettings;
use crate::source::{Backend, Chosen, CoreCounters, left};
use crate::tally::NoiseTally;
use crate::watch::{LimitHit, Observer};
use instance::TracerInstance;
use onbeat_os::clock;
use onbeat_trace::KernelEvent;
use std::collections::BTreeMap;

/// Events of a core that are kept for a gap that is reported later.
const EVENTS: usize = 1 << 16;
/// The tracer's events about interferences.
const INTERFERENCES: [&str; 4] = ["irq_noise", "softirq_noise", "nmi_noise", "thread_noise"];

/// Measures with the kernel's threads; with interrupts off if `is_hw`.
///
/// # Errors
/// If the kernel has no such tracer, or does not let this process use it.
pub fn measure(
    settings: &NoiseSettings,
    is_hw: bool,
    watch: &mut dyn Observer<CpuNoise>,
) -> Result<NoiseRecord, NoiseError> {
    let cpus = place::cpus(settings.cpus.as_ref())?;
    let never_sleeps = settings.runtime_ns == settings.period_ns;
    place::check_policy(settings.policy, never_sleeps, &cpus)?;
    let tracefs = instance::find("osnoise")?;
    let house = House::keep(settings.house_keeping.as_ref(), &cpus)?;
    let policy = settings.policy.map_or("the kernel's own".to_owned(), |policy| policy.to_string());
    let mut record = NoiseRecord::new(settings, policy, asked_for());
    record.notes.extend(house.note.iter().cloned());
    let mut events = vec!["sample_threshold"];
    events.extend(INTERFERENCES);
    let mut instance = TracerInstance::new(&tracefs, &events, &cpus, settings.ring_bytes)?;
    prepare(&mut instance, settings, is_hw)?;
    record.notes.extend(left(instance.cleaned()));
    let new = |cpu: &usize| {
        let tally = NoiseTally::new(*cpu as u32, settings.bucket_ns, settings.entries, settings.samples);
        (
            *cpu as u32,
            NoiseCore {
                tally,
                events: Vec::new(),
                before: CoreCounters::read(*cpu),
                open_ns: 0,
                lost: 0,
                total: 0,
            },
        )
    };
    let mut cores = NoiseCores { settings, cores: cpus.iter().map(new).collect() };
    record.started_unix_ns = clock::realtime_unix_ns();
    // The kernel takes tens of milliseconds to start and to end its threads: that time is not part of the
    // measurement.
    instance.start("osnoise")?;
    record.begin_ns = clock::monotonic_ns();
    record.notes.extend(settings.policy.and_then(|policy| instance::set_policy("osnoise", &cpus, policy)));
    let reading = reading::read(&mut instance, record.begin_ns, &settings.limits(), &mut cores, watch)?;
    record.duration_ns = clock::monotonic_ns().saturating_sub(record.begin_ns + settings.warm_up_ns);
    instance.stop()?;
    drop(instance);
    // Time that the kernel's threads spent measuring.
    let looked_ns =
        u128::from(record.duration_ns) * u128::from(settings.runtime_ns) / u128::from(settings.period_ns);
    for (cpu, core) in cores.cores {
        record.cpus.push(core.finish(cpu, looked_ns as u64, &mut record.notes));
    }
    (record.stopped, record.hits) = (reading.stopped, reading.hits);
    (record.events, record.lines) = (reading.kept.events.into(), reading.kept.lines.into());
    Ok(record)
}

fn asked_for() -> Chosen {
    Chosen { backend: Backend::Tracer, why: "it was asked for".to_owned(), fix: None, missing: Vec::new() }
}

fn prepare(instance: &mut TracerInstance, settings: &NoiseSettings, is_hw: bool) -> Result<(), NoiseError> {
    let us = |ns: u64| (ns / 1000).to_string();
    let stop = |limit_ns: Option<u64>| us(limit_ns.unwrap_or(0));
    // The kernel checks each of the two values against the other: period, run time, then the period again.
    instance.set("period_us", &us(settings.period_ns.max(1_000_000_000)))?;
    instance.set("runtime_us", &us(settings.runtime_ns))?;
    instance.set("period_us", &us(settings.period_ns))?;
    instance.set("stop_tracing_us", &stop(settings.stop_single_ns))?;
    instance.set("stop_tracing_total_us", &stop(settings.stop_total_ns))?;
    instance.set_beside("tracing_thresh", &us(settings.threshold_ns.max(1000)))?;
    if is_hw {
        instance.option("OSNOISE_IRQ_DISABLE", "NO_OSNOISE_IRQ_DISABLE")?;
    }
    Ok(())
}

struct NoiseCores<'s> {
    settings: &'s NoiseSettings,
    cores: BTreeMap<u32, NoiseCore>,
}

struct NoiseCore {
    tally: NoiseTally,
    events: Vec<KernelEvent>,
    before: CoreCounters,
    /// Gaps of the unfinished period.
    open_ns: u64,
    lost: u64,
    total: u64,
}

impl NoiseCore {
    fn finish(mut self, cpu: u32, looked_ns: u64, notes: &mut Vec<String>) -> CpuNoise {
        self.tally.counted(CoreCounters::read(cpu as usize).since(&self.before));
        let noise = self.tally.noise_mut();
        // The kernel reports a period at its end, but gaps at once. The gaps of the last period need its run
        // time.
        noise.runtime_ns += looked_ns.saturating_sub(noise.runtime_ns).max(self.open_ns);
        (noise.events, noise.events_lost) = (self.total, self.lost);
        if self.lost > 0 {
            notes.push(format!("CPU {cpu}: {} tracer lines were lost", self.lost));
        }
        self.tally.so_far()
    }
}

/// Applies the kernel's own rule for limits: in whole microseconds, and reaching the limit counts.
fn over(cpu: u32, what: &str, value_ns: u64, limit_ns: Option<u64>) -> Option<LimitHit> {
    let limit_ns = limit_ns.filter(|limit_ns| value_ns / 1000 >= limit_ns / 1000)?;
    Some(LimitHit { cpu, what: what.to_owned(), value_ns, limit_ns })
}

impl reading::LineSink<CpuNoise> for NoiseCores<'_> {
    fn take(&mut self, line: TracerLine) -> Option<LimitHit> {
        match line {
            TracerLine::Event(event) => {
                let core = self.cores.get_mut(&event.cpu)?;
                let surplus = core.events.len().saturating_sub(EVENTS);
                core.events.drain(..surplus);
                core.events.push(event);
                core.total += 1;
                None
            }
            TracerLine::Gap(gap) => {
                let core = self.cores.get_mut(&gap.cpu)?;
                let verdict = attribute(gap, &core.events, GapThread::Fair);
                core.events.clear();
                core.open_ns += gap.duration_ns();
                core.tally.gap(verdict);
                over(gap.cpu, "one gap", gap.duration_ns(), self.settings.stop_single_ns)
            }
            TracerLine::Period { cpu, runtime_ns, noise_ns } => {
                let core = self.cores.get_mut(&cpu)?;
                core.open_ns = 0;
                core.tally.period(&PeriodTotals { runtime_ns, noise_ns, looks: 0 });
                over(cpu, "the noise of a period", noise_ns, self.settings.stop_total_ns)
            }
            TracerLine::Lost { cpu, count } => {
                self.cores.get_mut(&cpu)?.lost += count;
                None
            }
            TracerLine::Latency { .. } | TracerLine::Stack { .. } | TracerLine::Frame(_) => None,
        }
    }

    fn so_far(&self) -> Vec<CpuNoise> {
        self.cores.values().map(|core| core.tally.so_far()).collect()
    }
}
