//! Timer latency by the kernel's timerlat tracer: of its own threads, or of a program's threads that wait on
//! its `timerlat_fd`.

use super::instance::{TracerInstance, find, set_policy};
use super::reading;
use super::wakes::{WakeCore, WakeCores};
use super::{INTERFERENCES, asked_for};
use crate::error::NoiseError;
use crate::place::{self, House};
use crate::source::{CoreCounters, SourceRefusal, left};
use crate::threads::{MeasuringThread, Signals};
use crate::timerlat::{CpuLatency, IdleLimits, LatencyRecord, LatencySettings, LatencyTally, Workload};
use crate::watch::Observer;
use onbeat_os::{Policy, clock};
use onbeat_queue::sync::atomic::Ordering;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Policy of the kernel's threads by default.
const USUAL: Policy = Policy::Fifo(95);

/// Measures until the duration is over, a limit is hit, or the watcher stops it.
///
/// # Errors
/// If the kernel has no such tracer, does not let this process use it, or lacks a feature that was asked for.
pub(crate) fn measure(
    settings: &LatencySettings,
    watch: &mut dyn Observer<CpuLatency>,
) -> Result<LatencyRecord, NoiseError> {
    let cpus = place::cpus(settings.cpus.as_ref())?;
    let tracefs = find("timerlat")?;
    let house = House::keep(settings.house_keeping.as_ref(), &cpus)?;
    let policy = match settings.workload {
        Workload::Users => "the user's own".to_owned(),
        Workload::Kernel | Workload::Threads => settings.policy.unwrap_or(USUAL).to_string(),
    };
    let mut record = LatencyRecord::new(settings, policy, asked_for());
    record.notes.extend(house.note.iter().cloned());
    let idle_limits = IdleLimits::set(settings, &cpus, &mut record.notes);
    let mut instance = TracerInstance::new(&tracefs, &INTERFERENCES, &cpus, settings.ring_bytes)?;
    record.notes.extend(left(instance.cleaned()));
    prepare(&mut instance, settings)?;
    let new = |cpu: &usize| {
        let tally = LatencyTally::new(*cpu as u32, settings.bucket_ns, settings.entries, settings.samples);
        (*cpu as u32, WakeCore::new(tally, CoreCounters::read(*cpu)))
    };
    let mut cores = WakeCores::new(settings, cpus.iter().map(new).collect());
    record.started_unix_ns = clock::realtime_unix_ns();
    instance.start("timerlat")?;
    record.begin_ns = clock::monotonic_ns();
    // When the tracer ends, the kernel kills threads that wait on its files. So the threads are dropped
    // before the instance.
    let mut members = Vec::new();
    let signals = Signals::default();
    match settings.workload {
        Workload::Kernel => {
            let policy = settings.policy.filter(|policy| *policy != USUAL);
            record.notes.extend(policy.and_then(|policy| set_policy("timerlat", &cpus, policy)));
        }
        Workload::Threads => {
            for cpu in &cpus {
                members.push(waiter(*cpu, tracefs.root(), settings, &signals)?);
            }
            let refused: BTreeSet<String> = members.iter().filter_map(|member| member.note.clone()).collect();
            record.notes.extend(refused);
            signals.go.store(true, Ordering::Release);
        }
        Workload::Users => {}
    }
    let read = reading::read(&mut instance, record.begin_ns, &settings.limits(), &mut cores, watch);
    record.duration_ns = clock::monotonic_ns().saturating_sub(record.begin_ns + settings.warm_up_ns);
    signals.end();
    drop(members);
    let stopped = instance.stop();
    drop(idle_limits);
    let reading = read?;
    stopped?;
    drop(instance);
    if reading.stopped.is_some() {
        record.tasks = cores.tasks();
    }
    record.cpus = cores.finish(&mut record.notes);
    (record.stopped, record.hits) = (reading.stopped, reading.hits);
    (record.events, record.lines) = (reading.kept.events.into(), reading.kept.lines.into());
    Ok(record)
}

fn prepare(instance: &mut TracerInstance, settings: &LatencySettings) -> Result<(), NoiseError> {
    let refused = |why: &str, fix: &str| {
        let refused = SourceRefusal { why: why.to_owned(), fix: fix.to_owned() };
        Err(NoiseError::Backend { backend: "tracer", refused })
    };
    let us = |ns: u64| (ns / 1000).to_string();
    instance.set("timerlat_period_us", &us(settings.period_ns))?;
    instance.set("stop_tracing_us", &us(settings.stop_irq_ns.unwrap_or(0)))?;
    instance.set("stop_tracing_total_us", &us(settings.stop_thread_ns.unwrap_or(0)))?;
    instance.set("print_stack", &us(settings.stack_ns.unwrap_or(0)))?;
    if settings.workload != Workload::Kernel {
        if !instance.has("per_cpu") {
            return refused(
                "this kernel has no timerlat_fd for a program's threads to wait on",
                "measure the kernel's own threads with -k, or use kernel 6.6 or later",
            );
        }
        instance.option("NO_OSNOISE_WORKLOAD", "OSNOISE_WORKLOAD")?;
    }
    if let Some(aligned_ns) = settings.aligned_ns {
        if !instance.has("timerlat_align_us") {
            return refused(
                "this kernel's timerlat tracer cannot align its timers",
                "leave -A out, or leave --backend tracer out: onbeat's own threads can be aligned",
            );
        }
        instance.set("timerlat_align_us", &us(aligned_ns))?;
        instance.option("TIMERLAT_ALIGN", "NO_TIMERLAT_ALIGN")?;
    }
    Ok(())
}

/// Starts a thread that waits on a core's `timerlat_fd`. Each read ends with the timer, and the next read
/// tells the kernel that the thread was back in its own code.
fn waiter(
    cpu: usize,
    root: &Path,
    settings: &LatencySettings,
    signals: &Signals,
) -> Result<MeasuringThread, NoiseError> {
    let path: PathBuf = root.join(format!("osnoise/per_cpu/cpu{cpu}/timerlat_fd"));
    let shared = signals.clone();
    let body = move || {
        let mut bytes = [0; 64];
        // An error shows in the result: there are no wake-ups.
        let Ok(mut file) = File::open(&path) else { return };
        while !shared.is_over() {
            match file.read(&mut bytes) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    };
    MeasuringThread::start(cpu, "timerlatu", settings.policy, signals, body)
}
