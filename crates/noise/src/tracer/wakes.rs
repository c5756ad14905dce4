//! Wake-ups, assembled from the lines of the kernel's timerlat tracer: one for the interrupt, one for the
//! thread, one for its return to its own code, and interferences between them.

use super::{LineContext, TracerLine, over, reading};
use crate::analysis::{Analysis, TimerWake, analyse};
use crate::source::CoreCounters;
use crate::timerlat::{CpuLatency, LatencySettings, LatencyTally, Task};
use crate::watch::LimitHit;
use onbeat_trace::{Class, KernelEvent};
use std::collections::{BTreeMap, VecDeque};

/// Events of a core that are kept until their wake-up is complete.
const EVENTS: usize = 4096;
/// An interrupt handler that was running when the timer was due may have begun this long before.
const BEFORE_NS: u64 = 1_000_000;

/// A wake-up whose lines are not complete.
#[derive(Debug, Clone, Default)]
struct Pending {
    due_ns: u64,
    irq_ns: u64,
    thread_ns: Option<u64>,
    user_ns: Option<u64>,
    stack: Vec<String>,
}

pub(super) struct WakeCore {
    tally: LatencyTally,
    events: VecDeque<KernelEvent>,
    pending: Option<Pending>,
    /// Whether the pending wake-up ended the measurement.
    is_over: bool,
    task: Option<(String, i32)>,
    before: CoreCounters,
    lost: u64,
    total: u64,
}

/// Wake-ups of all measured cores.
pub(super) struct WakeCores<'s> {
    settings: &'s LatencySettings,
    cores: BTreeMap<u32, WakeCore>,
    /// Core of the last stack, to which frames belong.
    stack_of: Option<u32>,
}

impl<'s> WakeCores<'s> {
    pub fn new(settings: &'s LatencySettings, cores: BTreeMap<u32, WakeCore>) -> Self {
        WakeCores { settings, cores, stack_of: None }
    }

    /// Threads that had the cores last.
    pub fn tasks(&self) -> Vec<Task> {
        self.cores.iter().filter_map(|(cpu, core)| core.task(*cpu)).collect()
    }

    pub fn finish(self, notes: &mut Vec<String>) -> Vec<CpuLatency> {
        self.cores.into_iter().map(|(cpu, core)| core.finish(cpu, notes)).collect()
    }
}

impl reading::LineSink<CpuLatency> for WakeCores<'_> {
    fn take(&mut self, line: TracerLine) -> Option<LimitHit> {
        if let TracerLine::Frame(frame) = line {
            if let Some(core) = self.stack_of.and_then(|cpu| self.cores.get_mut(&cpu)) {
                core.frame(frame);
            }
            return None;
        }
        self.stack_of = None;
        match line {
            TracerLine::Event(event) => {
                let core = self.cores.get_mut(&event.cpu)?;
                core.events.push_back(event);
                core.events.drain(..core.events.len().saturating_sub(EVENTS));
                core.total += 1;
            }
            TracerLine::Latency { cpu, context, latency_ns, time_ns, task } => {
                let core = self.cores.get_mut(&cpu)?;
                core.total += 1;
                core.task = Some(task);
                core.latency(context, latency_ns, time_ns);
                let (what, limit_ns) = match context {
                    LineContext::Irq => ("the latency of the timer's interrupt", self.settings.stop_irq_ns),
                    LineContext::Thread | LineContext::User => {
                        ("the latency of the thread", self.settings.stop_thread_ns)
                    }
                };
                return over(cpu, what, latency_ns, limit_ns);
            }
            TracerLine::Lost { cpu, count } => self.cores.get_mut(&cpu)?.lost += count,
            TracerLine::Stack { cpu } => self.stack_of = Some(cpu),
            TracerLine::Gap(_) | TracerLine::Period { .. } | TracerLine::Frame(_) => {}
        }
        None
    }

    fn ended_by(&mut self, stopped: &LimitHit) {
        if let Some(core) = self.cores.get_mut(&stopped.cpu) {
            core.is_over = true;
        }
    }

    fn so_far(&self) -> Vec<CpuLatency> {
        self.cores.values().map(|core| core.tally.so_far()).collect()
    }
}

impl WakeCore {
    pub fn new(tally: LatencyTally, before: CoreCounters) -> Self {
        let (events, lost, total) = (VecDeque::new(), 0, 0);
        WakeCore { tally, events, pending: None, is_over: false, task: None, before, lost, total }
    }

    fn latency(&mut self, context: LineContext, latency_ns: u64, time_ns: u64) {
        if context == LineContext::Irq {
            self.close();
            // The line is written at once, so its time is that of the interrupt.
            let due_ns = time_ns.saturating_sub(latency_ns);
            self.pending = Some(Pending { due_ns, irq_ns: due_ns + latency_ns, ..Pending::default() });
            return;
        }
        // The first lines may lack the interrupt.
        let Some(pending) = &mut self.pending else { return };
        let at_ns = Some(pending.due_ns + latency_ns);
        match context {
            LineContext::Thread => pending.thread_ns = at_ns,
            _ => pending.user_ns = at_ns,
        }
    }

    fn frame(&mut self, frame: String) {
        if let Some(pending) = &mut self.pending {
            pending.stack.push(frame);
        }
    }

    /// Completes the pending wake-up: no more lines of it will come.
    fn close(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        let is_whole = pending.thread_ns.is_some();
        // An interrupt without its thread is the last one, or lines were lost.
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
        let counted = CoreCounters::read(cpu as usize).since(&self.before);
        let mut latency = self.tally.so_far();
        (latency.steal_ns, latency.events, latency.events_lost) = (counted.steal_ns, self.total, self.lost);
        if self.lost > 0 {
            notes.push(format!("CPU {cpu}: {} tracer lines were lost", self.lost));
        }
        if latency.count == 0 {
            notes.push(format!("CPU {cpu}: no thread waited for the kernel's timer"));
        }
        latency
    }
}

/// Analyses a wake-up. The tracer reports the latency from within the handler, so the delay until the
/// handler's start comes from the handler's own event.
fn analysed(cpu: u32, pending: &Pending, events: &[KernelEvent]) -> Analysis {
    const SLACK_NS: u64 = 10_000;
    let user_ns = pending.user_ns.or(pending.thread_ns).unwrap_or(pending.irq_ns);
    let wake = TimerWake {
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
    let told = TimerWake { irq_ns: handler_ns.or(wake.irq_ns), ..wake };
    Analysis { wake, stack: pending.stack.clone(), ..analyse(told, events) }
}

#[cfg(test)]
mod tests {
    use super::super::line;
    use super::super::reading::LineSink as _;
    use super::*;
    use crate::analysis::StepKind;

    /// Lines of a core, as a kernel wrote them; the numbers of the second wake-up are made up.
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

    fn core(settings: &LatencySettings) -> (CpuLatency, Option<LimitHit>, Vec<String>) {
        let tally = LatencyTally::new(2, 1000, 1000, 5);
        let cores = BTreeMap::from([(2, WakeCore::new(tally, CoreCounters::default()))]);
        let mut cores = WakeCores::new(settings, cores);
        let mut stopped = None;
        for text in LINES.lines() {
            let line = line(text).unwrap_or_else(|| panic!("{text}"));
            stopped = stopped.or(cores.take(line));
        }
        let mut notes = Vec::new();
        let [latency] = cores.finish(&mut notes).try_into().expect("one core");
        (latency, stopped, notes)
    }

    #[test]
    fn wake_ups_are_put_together_and_taken_apart() {
        let (latency, stopped, notes) = core(&LatencySettings::default());
        assert_eq!((latency.count, latency.events_lost, stopped), (2, 3, None));
        assert_eq!(notes, ["CPU 2: 3 tracer lines were lost"]);
        assert_eq!((latency.irq.histogram.max_ns, latency.thread.histogram.max_ns), (125_270, 406_060));
        assert_eq!((latency.user.histogram.count, latency.user.histogram.max_ns), (1, 160_000));
        let latest = &latency.samples[0];
        assert_eq!(latest.stack, ["timerlat_irq", "__hrtimer_run_queues"]);
        assert_eq!(latest.steps.iter().map(|step| step.ns).sum::<u64>(), 406_060);
        let ns = |what| latest.steps.iter().filter(|step| step.what == what).map(|step| step.ns).sum::<u64>();
        assert_eq!((ns(StepKind::TimerIrq), ns(StepKind::BlockingThread)), (80_583, 181_162));
    }

    #[test]
    fn limits_are_the_kernel_s() {
        for (irq_ns, thread_ns, what) in [
            (Some(125_000), None, Some(("the latency of the timer's interrupt", 125_270))),
            (Some(126_000), None, None),
            (None, Some(406_000), Some(("the latency of the thread", 406_060))),
            (None, Some(407_000), None),
        ] {
            let settings = LatencySettings {
                stop_irq_ns: irq_ns,
                stop_thread_ns: thread_ns,
                ..LatencySettings::default()
            };
            let found = core(&settings).1.map(|stopped| (stopped.what, stopped.value_ns));
            assert_eq!(found, what.map(|(what, ns)| (what.to_owned(), ns)));
        }
    }
}
