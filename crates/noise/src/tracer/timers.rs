//! Timer latency by the kernel's timerlat tracer: its own threads, or those of a program that wait on its `timerlat_fd`.

use super::instance::{EVERY, Instance, find, set_policy};
use super::{Context, INTERFERENCES, Kept, Line, asked_for, line, over};
use crate::analysis::{Analysis, Wake, analyse};
use crate::crew::{Member, Signals};
use crate::error::Error;
use crate::place::{self, House};
use crate::record::Stopped;
use crate::source::{Counters, Refused};
use crate::timerlat::{
    Awake, CpuLatency, LatencyRecord, SCHEMA, Settings, Tally, Task, VERSION, Watch, Workload,
};
use onbeat_os::{Policy, clock};
use onbeat_queue::sync::atomic::Ordering;
use onbeat_trace::{Class, KernelEvent, Machine};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Events of a core that are kept until the wake-up that they have to do with is over.
const EVENTS: usize = 4096;
/// The policy that the kernel gives to its threads.
const USUAL: Policy = Policy::Fifo(95);
/// What was being handled when the timer was due may have begun so much before.
const BEFORE_NS: u64 = 1_000_000;

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

/// A wake-up of which not everything has been told yet.
#[derive(Debug, Clone, Default)]
struct Pending {
    due_ns: u64,
    irq_ns: u64,
    thread_ns: Option<u64>,
    user_ns: Option<u64>,
    stack: Vec<String>,
}

struct Core {
    tally: Tally,
    events: VecDeque<KernelEvent>,
    pending: Option<Pending>,
    /// Whether the pending one is what ended it.
    is_over: bool,
    task: Option<(String, i32)>,
    before: Counters,
    lost: u64,
    total: u64,
}

/// Says whether a limit was hit.
fn take(line: Line, cores: &mut BTreeMap<u32, Core>, settings: &Settings) -> Option<Stopped> {
    match line {
        Line::Event(event) => {
            let core = cores.get_mut(&event.cpu)?;
            core.events.push_back(event);
            core.events.drain(..core.events.len().saturating_sub(EVENTS));
            core.total += 1;
            None
        }
        Line::Latency { cpu, context, latency_ns, time_ns, task } => {
            let core = cores.get_mut(&cpu)?;
            core.total += 1;
            core.task = Some(task);
            core.latency(context, latency_ns, time_ns);
            match context {
                Context::Irq => {
                    over(cpu, "the latency of the timer's interrupt", latency_ns, settings.stop_irq_ns)
                }
                Context::Thread | Context::User => {
                    over(cpu, "the latency of the thread", latency_ns, settings.stop_thread_ns)
                }
            }
        }
        Line::Lost { cpu, count } => {
            cores.get_mut(&cpu)?.lost += count;
            None
        }
        Line::Gap(_) | Line::Period { .. } | Line::Stack { .. } | Line::Frame(_) => None,
    }
}

impl Core {
    fn new(tally: Tally, before: Counters) -> Self {
        let (events, lost, total) = (VecDeque::new(), 0, 0);
        Core { tally, events, pending: None, is_over: false, task: None, before, lost, total }
    }

    fn latency(&mut self, context: Context, latency_ns: u64, time_ns: u64) {
        if context == Context::Irq {
            self.close();
            // It is written at once, so the moment that it tells of is that of the line.
            let due_ns = time_ns.saturating_sub(latency_ns);
            self.pending = Some(Pending { due_ns, irq_ns: due_ns + latency_ns, ..Pending::default() });
            return;
        }
        // The first lines may lack the interrupt.
        let Some(pending) = &mut self.pending else { return };
        let at_ns = Some(pending.due_ns + latency_ns);
        match context {
            Context::Thread => pending.thread_ns = at_ns,
            _ => pending.user_ns = at_ns,
        }
    }

    fn frame(&mut self, frame: String) {
        if let Some(pending) = &mut self.pending {
            pending.stack.push(frame);
        }
    }

    /// All that there is to tell of the pending wake-up has been told.
    fn close(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        let is_whole = pending.thread_ns.is_some();
        // An interrupt whose thread nobody saw is that of the end, or of lost lines.
        if !is_whole && !self.is_over {
            return;
        }
        let analysis = analysed(self.tally.cpu(), &pending, self.events.make_contiguous());
        if self.is_over {
            self.tally.stopped(analysis.clone());
        }
        if is_whole {
            self.tally.wake(analysis, pending.user_ns.is_some());
        }
        let gone = |event: &KernelEvent| event.start_ns + event.duration_ns + BEFORE_NS < pending.due_ns;
        while self.events.front().is_some_and(gone) {
            self.events.pop_front();
        }
    }

    fn task(&self, cpu: u32) -> Option<Task> {
        self.task.clone().map(|(name, pid)| Task { cpu, name, pid })
    }

    fn finish(mut self, cpu: u32, notes: &mut Vec<String>) -> CpuLatency {
        self.close();
        let counted = Counters::read(cpu as usize).since(&self.before);
        let mut latency = self.tally.so_far();
        (latency.steal_ns, latency.events, latency.events_lost) = (counted.steal_ns, self.total, self.lost);
        if self.lost > 0 {
            notes.push(format!("CPU {cpu}: {} lines of the tracer were lost", self.lost));
        }
        if latency.count == 0 {
            notes.push(format!("CPU {cpu}: no thread has waited for the kernel's timer"));
        }
        latency
    }
}

/// What delayed it. The tracer tells the latency from within the handler; what delayed the handler's begin is told by its own event.
fn analysed(cpu: u32, pending: &Pending, events: &[KernelEvent]) -> Analysis {
    const SLACK_NS: u64 = 10_000;
    let user_ns = pending.user_ns.or(pending.thread_ns).unwrap_or(pending.irq_ns);
    let wake = Wake {
        cpu,
        due_ns: pending.due_ns,
        irq_ns: Some(pending.irq_ns),
        thread_ns: pending.thread_ns,
        user_ns,
    };
    let around = |event: &&KernelEvent| {
        let end_ns = event.start_ns + event.duration_ns;
        event.class == Class::Irq && event.start_ns <= pending.irq_ns && end_ns + SLACK_NS >= pending.irq_ns
    };
    let handler_ns = events.iter().rfind(around).map(|event| event.start_ns);
    let told = Wake { irq_ns: handler_ns.or(wake.irq_ns), ..wake };
    Analysis { wake, stack: pending.stack.clone(), ..analyse(told, events) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::What;

    /// A core's lines, as a kernel wrote them; the numbers of the second wake-up are made up.
    const LINES: &str = "\
          <idle>-0       [002] d..h1..   108.978075: #1569  context    irq timer_latency    125270 ns
          <idle>-0       [002] dn.h2..   108.978143: irq_noise: local_timer:236 start 108.978059283 duration 80583 ns
          <idle>-0       [002] d...3..   108.978323: thread_noise: swapper/2:0 start 108.978067445 duration 181162 ns
      timerlat/2-191     [002] .......   108.978350: #1569  context thread timer_latency    406060 ns
      timerlat/2-191     [002] .......   108.978351: <stack trace>
 => timerlat_irq
 => __hrtimer_run_queues
            busy-77      [002] d..h1..   108.979000: #1570  context    irq timer_latency     50000 ns
CPU:2 [LOST 3 EVENTS]
      timerlat/2-191     [002] .......   108.979100: #1570  context thread timer_latency    150000 ns
      timerlat/2-191     [002] .......   108.979110: #1570  context user-ret timer_latency    160000 ns
";

    fn core(settings: &Settings) -> (CpuLatency, Option<Stopped>, Vec<String>) {
        let tally = Tally::new(2, 1000, 1000, 5);
        let mut cores = BTreeMap::from([(2, Core::new(tally, Counters::default()))]);
        let mut stopped = None;
        for text in LINES.lines() {
            match line(text) {
                Some(Line::Frame(frame)) => cores.get_mut(&2).unwrap().frame(frame),
                Some(line) => stopped = stopped.or(take(line, &mut cores, settings)),
                None => panic!("{text}"),
            }
        }
        let mut notes = Vec::new();
        let latency = cores.remove(&2).unwrap().finish(2, &mut notes);
        (latency, stopped, notes)
    }

    #[test]
    fn wake_ups_are_put_together_and_taken_apart() {
        let (latency, stopped, notes) = core(&Settings::default());
        assert_eq!((latency.count, latency.events_lost, stopped), (2, 3, None));
        assert_eq!(notes, ["CPU 2: 3 lines of the tracer were lost"]);
        assert_eq!((latency.irq.histogram.max_ns, latency.thread.histogram.max_ns), (125_270, 406_060));
        assert_eq!((latency.user.histogram.count, latency.user.histogram.max_ns), (1, 160_000));
        let latest = &latency.samples[0];
        assert_eq!(latest.stack, ["timerlat_irq", "__hrtimer_run_queues"]);
        assert_eq!(latest.steps.iter().map(|step| step.ns).sum::<u64>(), 406_060);
        let ns = |what| latest.steps.iter().filter(|step| step.what == what).map(|step| step.ns).sum::<u64>();
        assert_eq!((ns(What::TimerIrq), ns(What::BlockingThread)), (80_583, 181_162));
    }

    #[test]
    fn limits_are_the_kernel_s() {
        for (irq_ns, thread_ns, what) in [
            (Some(125_000), None, Some(("the latency of the timer's interrupt", 125_270))),
            (Some(126_000), None, None),
            (None, Some(406_000), Some(("the latency of the thread", 406_060))),
            (None, Some(407_000), None),
        ] {
            let settings = Settings { stop_irq_ns: irq_ns, stop_thread_ns: thread_ns, ..Settings::default() };
            let found = core(&settings).1.map(|stopped| (stopped.what, stopped.value_ns));
            assert_eq!(found, what.map(|(what, ns)| (what.to_owned(), ns)));
        }
    }
}
