//! Timer latency by the kernel's timerlat tracer: its own threads, or those of a program that wait on its `timerlat_fd`.

use super::instance::{EVERY, Instance, find, set_policy};
use super::wakes::{Core, take};
use super::{INTERFERENCES, Kept, Line, asked_for, line};
use crate::crew::{Member, Signals};
use crate::error::Error;
use crate::place::{self, House};
use crate::record::Stopped;
use crate::source::{Counters, Refused};
use crate::timerlat::{Awake, LatencyRecord, SCHEMA, Settings, Tally, VERSION, Watch, Workload};
use onbeat_os::{Policy, clock};
use onbeat_queue::sync::atomic::Ordering;
use onbeat_trace::Machine;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The policy that the kernel gives to its threads.
const USUAL: Policy = Policy::Fifo(95);

/// Measures until the time is over, a limit is hit, or whoever watches says so.
///
/// # Errors
/// Where the kernel has no such tracer, does not let us use it, or cannot do what was asked for.
pub(crate) fn measure(settings: &Settings, watch: &mut dyn Watch) -> Result<LatencyRecord, Error> {
    let cpus = place::cpus(settings.cpus.as_ref())?;
    let tracefs = find("timerlat")?;
    let house = House::keep(settings.house_keeping.as_ref(), &cpus)?;
    let mut notes: Vec<String> = house.note.iter().cloned().collect();
    let awake = Awake::keep(settings, &cpus, &mut notes);
    let mut instance = Instance::new(&tracefs, &INTERFERENCES, &cpus, settings.ring_bytes)?;
    notes.extend(instance.cleaned().iter().map(|line| format!("left by a process that was killed: {line}")));
    prepare(&mut instance, settings)?;
    let new = |cpu: &usize| {
        let tally = Tally::new(*cpu as u32, settings.bucket_ns, settings.entries, settings.samples);
        (*cpu as u32, Core::new(tally, Counters::read(*cpu)))
    };
    let mut cores: BTreeMap<u32, Core> = cpus.iter().map(new).collect();
    let started_unix_ns = clock::realtime_unix_ns();
    let begin_ns = clock::monotonic_ns();
    instance.start("timerlat")?;
    // The kernel kills who still waits on its files when the tracer ends, so these are dropped before the instance.
    let mut members = Vec::new();
    let signals = Signals::default();
    match settings.workload {
        Workload::Kernel => {
            let policy = settings.policy.filter(|policy| *policy != USUAL);
            notes.extend(policy.and_then(|policy| set_policy("timerlat", &cpus, policy)));
        }
        Workload::Threads => {
            for cpu in &cpus {
                members.push(waiter(*cpu, tracefs.root(), settings, &signals)?);
            }
            let refused: BTreeSet<String> = members.iter().filter_map(|member| member.note.clone()).collect();
            notes.extend(refused);
            signals.go.store(true, Ordering::Release);
        }
        Workload::Users => {}
    }
    let mut reading =
        Reading { settings, begin_ns, hits: 0, stopped: None, kept: Kept::new(settings.keep_events) };
    let read = reading.read(&mut instance, &mut cores, watch);
    signals.end();
    drop(members);
    let stopped = instance.stop();
    drop(awake);
    read.and(stopped)?;
    let duration_ns = clock::monotonic_ns().saturating_sub(begin_ns + settings.warm_up_ns);
    drop(instance);
    let tasks = if reading.stopped.is_some() {
        cores.iter().filter_map(|(cpu, core)| core.task(*cpu)).collect()
    } else {
        Vec::new()
    };
    let finished = cores.into_iter().map(|(cpu, core)| core.finish(cpu, &mut notes));
    let Reading { hits, stopped, kept, .. } = reading;
    let policy = settings.policy.unwrap_or(USUAL).to_string();
    Ok(LatencyRecord {
        schema: SCHEMA.to_owned(),
        version: VERSION,
        name: String::new(),
        started_unix_ns,
        begin_ns,
        duration_ns,
        machine: Machine::read(),
        period_ns: settings.period_ns,
        policy: if settings.workload == Workload::Users { "the user's own".to_owned() } else { policy },
        source: asked_for(),
        stopped,
        hits,
        tasks,
        cpus: finished.collect(),
        notes,
        events: kept.events.into(),
        lines: kept.lines.into(),
    })
}

fn prepare(instance: &mut Instance, settings: &Settings) -> Result<(), Error> {
    let refused = |why: &str, fix: &str| {
        let refused = Refused { why: why.to_owned(), fix: fix.to_owned() };
        Err(Error::Backend { backend: "tracer", refused })
    };
    let us = |ns: u64| (ns / 1000).to_string();
    instance.set("timerlat_period_us", &us(settings.period_ns))?;
    instance.set("stop_tracing_us", &us(settings.stop_irq_ns.unwrap_or(0)))?;
    instance.set("stop_tracing_total_us", &us(settings.stop_thread_ns.unwrap_or(0)))?;
    instance.set("print_stack", &us(settings.stack_ns.unwrap_or(0)))?;
    if settings.workload != Workload::Kernel {
        if !instance.has("per_cpu") {
            return refused(
                "this kernel has no timerlat_fd, on which threads of a program could wait",
                "take its own threads with -k, or a kernel from 6.6 on",
            );
        }
        instance.option("NO_OSNOISE_WORKLOAD", "OSNOISE_WORKLOAD")?;
    }
    if let Some(aligned_ns) = settings.aligned_ns {
        if !instance.has("timerlat_align_us") {
            return refused(
                "this kernel's timerlat tracer cannot align its timers",
                "leave -A out; or --backend tracer, our own threads can",
            );
        }
        instance.set("timerlat_align_us", &us(aligned_ns))?;
        instance.option("TIMERLAT_ALIGN", "NO_TIMERLAT_ALIGN")?;
    }
    Ok(())
}

/// A thread that waits on a core's `timerlat_fd`, again and again: each read ends with the timer, and the next one tells the kernel
/// that the thread was back in its own code.
fn waiter(cpu: usize, root: &Path, settings: &Settings, signals: &Signals) -> Result<Member, Error> {
    let path: PathBuf = root.join(format!("osnoise/per_cpu/cpu{cpu}/timerlat_fd"));
    let shared = signals.clone();
    let body = move || {
        let mut bytes = [0; 64];
        // What goes wrong shows: there are no wake-ups.
        let Ok(mut file) = File::open(&path) else { return };
        while !shared.is_over() {
            match file.read(&mut bytes) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    };
    Member::start(cpu, "timerlatu", settings.policy, signals, body)
}

/// Lines as they come in.
struct Reading<'s> {
    settings: &'s Settings,
    begin_ns: u64,
    hits: u64,
    stopped: Option<Stopped>,
    kept: Kept,
}

impl Reading<'_> {
    fn read(
        &mut self,
        instance: &mut Instance,
        cores: &mut BTreeMap<u32, Core>,
        watch: &mut dyn Watch,
    ) -> Result<(), Error> {
        let settings = self.settings;
        let whole_ns = settings.duration_ns.map_or(u64::MAX, |ns| ns.saturating_add(settings.warm_up_ns));
        // Frames belong to the core whose stack was told last.
        let mut stack_of = None;
        loop {
            std::thread::sleep(EVERY);
            let elapsed_ns = clock::monotonic_ns().saturating_sub(self.begin_ns);
            let is_on = instance.is_on();
            let mut stopped = None;
            for text in instance.lines() {
                if elapsed_ns < settings.warm_up_ns {
                    continue;
                }
                let line = line(&text);
                self.kept.line(&text, line.as_ref());
                match line {
                    Some(Line::Stack { cpu }) => stack_of = Some(cpu),
                    Some(Line::Frame(frame)) => {
                        if let Some(core) = stack_of.and_then(|cpu| cores.get_mut(&cpu)) {
                            core.frame(frame);
                        }
                    }
                    Some(line) => {
                        stack_of = None;
                        stopped = stopped.or(take(line, cores, settings));
                    }
                    None => {}
                }
            }
            if settings.goes_on && (stopped.is_some() || !is_on) {
                self.hits += 1;
                if let Some(over) = stopped.take() {
                    watch.hit(&over, self.kept.events.make_contiguous());
                }
                instance.go_on()?;
            }
            if let Some(over) = stopped {
                if let Some(core) = cores.get_mut(&over.cpu) {
                    core.is_over = true;
                }
                self.stopped = Some(over);
            }
            let is_over = (!is_on && !settings.goes_on) || elapsed_ns >= whole_ns;
            if is_over || self.stopped.is_some() || watch.is_stopped() {
                return Ok(());
            }
            let so_far = || cores.values().map(|core| core.tally.so_far()).collect();
            watch.at(&so_far, elapsed_ns.saturating_sub(settings.warm_up_ns));
        }
    }
}
