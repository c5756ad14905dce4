//! Measurements of properties that no file reports.

use crate::fact::Fact;
use onbeat_noise::record::{CauseTotal, NoiseRecord};
use onbeat_noise::source::CoreCounters;
use onbeat_noise::{Backend, timerlat};
use onbeat_os::{CoreSet, Policy, clock};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Results of all measurements.
#[derive(Debug, Clone, Default)]
pub struct Measurements {
    /// Cost of a clock read, in nanoseconds.
    pub clock_read_ns: Fact<f64>,
    /// Latency of a timer that wakes a thread, with the machine's current settings.
    pub wake: Fact<WakeLatency>,
    /// The same latency while idle cores are kept awake.
    pub wake_awake: Fact<WakeLatency>,
    /// Time that the hypervisor reports as stolen from the cores.
    pub steal: Fact<StolenTime>,
    /// Interrupts of each core in one second, by name.
    pub interrupts: Fact<Vec<(usize, InterruptCounts)>>,
    /// Time that the system took from a busy thread on each of the cores.
    pub noise: Fact<NoiseSummary>,
    /// System management interrupts during the measurement.
    pub smi: Fact<u64>,
}

/// Number of interrupts, by name.
pub type InterruptCounts = Vec<(String, u64)>;

/// Wake-up latency, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WakeLatency {
    /// Median.
    pub median_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Maximum.
    pub max_ns: u64,
}

/// Time that the hypervisor reports as stolen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StolenTime {
    /// Stolen time, in steps of 10 ms.
    pub stolen_ns: u64,
    /// Measurements time, summed over all cores.
    pub of_ns: u64,
}

/// Noise of the cores.
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseSummary {
    /// Measurements time, summed over all cores.
    pub runtime_ns: u64,
    /// Time that was taken away.
    pub noise_ns: u64,
    /// Longest gap.
    pub max_single_ns: u64,
    /// Gaps without any kernel event.
    pub hardware_ns: u64,
    /// Causes, the largest first.
    pub causes: Vec<CauseTotal>,
    /// Whether the causes have names.
    pub is_named: bool,
}

/// Follows the measurement, and can stop it.
pub trait MeasurementWatch {
    /// Called when a measurement of `what` begins.
    fn now(&mut self, what: &'static str);
    /// Whether to stop measuring.
    fn is_stopped(&self) -> bool;
}

impl Measurements {
    /// Measures these cores: about nine seconds.
    pub fn now(cpus: &CoreSet, watch: &mut dyn MeasurementWatch) -> Self {
        let all = CoreSet::online().unwrap_or_default();
        let before = stolen(&all);
        let begin_ns = clock::monotonic_ns();
        let smi_before = smi_count();
        watch.now("the clock");
        let clock_read_ns = Fact::Known(clock_read_ns());
        watch.now("interrupts, for a second");
        let interrupts = Fact::Known(interrupts(cpus));
        watch.now("wake-ups, for two seconds");
        let (wake, wake_awake) = (wake(cpus, None, watch), wake(cpus, Some(0), watch));
        watch.now("noise, for five seconds");
        let noise = noise(cpus, watch);
        let of_ns = (clock::monotonic_ns() - begin_ns).saturating_mul(all.len() as u64);
        let steal = Fact::Known(StolenTime { stolen_ns: stolen(&all).saturating_sub(before), of_ns });
        let smi = smi_before.and_then(|before| smi_count().map(|after| after.saturating_sub(before)));
        Measurements { clock_read_ns, wake, wake_awake, steal, interrupts, noise, smi }
    }

    /// Nothing was measured, for this reason.
    #[must_use]
    pub fn not(why: &str) -> Self {
        let why = || why.to_owned();
        Measurements {
            clock_read_ns: Fact::Unknown(why()),
            wake: Fact::Unknown(why()),
            wake_awake: Fact::Unknown(why()),
            steal: Fact::Unknown(why()),
            interrupts: Fact::Unknown(why()),
            noise: Fact::Unknown(why()),
            smi: Fact::Unknown(why()),
        }
    }
}

/// Minimum of several rounds: the rest is interference, not the clock.
fn clock_read_ns() -> f64 {
    const LOOKS: u32 = 1000;
    let round = |_| {
        let begin_ns = clock::monotonic_ns();
        for _ in 0..LOOKS {
            std::hint::black_box(clock::monotonic_ns());
        }
        (clock::monotonic_ns() - begin_ns) as f64 / f64::from(LOOKS + 1)
    };
    (0..10).map(round).fold(f64::INFINITY, f64::min)
}

fn stolen(cpus: &CoreSet) -> u64 {
    cpus.iter().map(|cpu| CoreCounters::read(cpu).steal_ns).fold(0, u64::saturating_add)
}

fn interrupts(cpus: &CoreSet) -> Vec<(usize, Vec<(String, u64)>)> {
    let before: Vec<CoreCounters> = cpus.iter().map(CoreCounters::read).collect();
    clock::sleep_until(clock::monotonic_ns() + 1_000_000_000);
    let more = |(cpu, before): (usize, &CoreCounters)| {
        let mut counts: Vec<(String, u64)> =
            CoreCounters::read(cpu).since(before).interrupts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        (cpu, counts)
    };
    cpus.iter().zip(&before).map(more).collect()
}

/// Adapter that ends a noise measurement when the watcher says so.
struct Until<'w>(&'w mut dyn MeasurementWatch);

impl<C> onbeat_noise::Observer<C> for Until<'_> {
    fn at(&mut self, _: &dyn Fn() -> Vec<C>, _: u64) {}
    fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }
}

fn wake(cpus: &CoreSet, dma_latency_us: Option<u32>, watch: &mut dyn MeasurementWatch) -> Fact<WakeLatency> {
    let settings = timerlat::LatencySettings {
        cpus: Some(cpus.clone()),
        policy: Some(Policy::Fifo(95)),
        duration_ns: Some(1_000_000_000),
        warm_up_ns: 50_000_000,
        dma_latency_us,
        samples: 0,
        // // Rings would add to the latency that is measured.
        backend: Backend::Proc,
        ..timerlat::LatencySettings::default()
    };
    let record = match timerlat::measure(&settings, &mut Until(watch)) {
        Ok(record) => record,
        Err(error) => return Fact::Unknown(error.to_string()),
    };
    let refused = record.notes.iter().find(|note| note.contains("not obtained"));
    if let (Some(_), Some(note)) = (dma_latency_us, refused.filter(|note| note.contains("dma-latency"))) {
        return Fact::Unknown(note.clone());
    }
    let summaries: Vec<_> =
        record.cpus.iter().map(|cpu| cpu.user.summary).filter(|summary| summary.count > 0).collect();
    let most = |of: fn(&onbeat_trace::Summary) -> u64| summaries.iter().map(of).max().unwrap_or(0);
    match summaries.is_empty() {
        true => Fact::Unknown("no thread was woken".to_owned()),
        false => Fact::Known(WakeLatency {
            median_ns: most(|summary| summary.median_ns),
            p99_ns: most(|summary| summary.p99_ns),
            max_ns: most(|summary| summary.max_ns),
        }),
    }
}

fn noise(cpus: &CoreSet, watch: &mut dyn MeasurementWatch) -> Fact<NoiseSummary> {
    let settings = onbeat_noise::NoiseSettings {
        cpus: Some(cpus.clone()),
        duration_ns: Some(5_000_000_000),
        samples: 0,
        ..onbeat_noise::NoiseSettings::default()
    };
    match onbeat_noise::measure(&settings, &mut Until(watch)) {
        Ok(record) => Fact::Known(summed(&record)),
        Err(error) => Fact::Unknown(error.to_string()),
    }
}

fn summed(record: &NoiseRecord) -> NoiseSummary {
    let mut causes: Vec<CauseTotal> = Vec::new();
    for cause in record.cpus.iter().flat_map(|cpu| &cpu.causes) {
        match causes.iter_mut().find(|known| known.class == cause.class && known.name == cause.name) {
            Some(known) => {
                known.count += cause.count;
                known.total_ns += cause.total_ns;
                known.max_ns = known.max_ns.max(cause.max_ns);
            }
            None => causes.push(cause.clone()),
        }
    }
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.total_ns));
    let sum =
        |of: fn(&onbeat_noise::CpuNoise) -> u64| record.cpus.iter().map(of).fold(0, u64::saturating_add);
    NoiseSummary {
        runtime_ns: sum(|cpu| cpu.runtime_ns),
        noise_ns: sum(|cpu| cpu.noise_ns),
        max_single_ns: record.cpus.iter().map(|cpu| cpu.max_single_ns).max().unwrap_or(0),
        hardware_ns: sum(|cpu| cpu.parts.hardware.ns),
        causes,
        is_named: record.source.backend != Backend::Proc,
    }
}

/// Reads model-specific register 0x34, which counts SMIs on Intel processors.
fn smi_count() -> Fact<u64> {
    const SMI_COUNT: u64 = 0x34;
    let path = "/dev/cpu/0/msr";
    let mut bytes = [0; 8];
    match File::open(path).and_then(|file| file.read_exact_at(&mut bytes, SMI_COUNT)) {
        Ok(()) => Fact::Known(u64::from_le_bytes(bytes)),
        Err(error) => Fact::Unknown(format!("{path}: {error}; sudo modprobe msr")),
    }
}
