//! Loop of the recorder's thread: it keeps the last seconds of a run, and explains each miss after its end.

use super::case::{Case, EdgeFacts, OperatorFacts, ThreadFacts};
use super::findings::{CauseSums, Findings, key};
use super::kept::{KeptSpans, LateHistory};
use super::machine::{fault_cost_ns, has_fair_server, scheduling};
use super::quota::Quotas;
use super::slowest::Slowest;
use super::strays::Strays;
use super::{explain, route, sentence};
use crate::engine::control::Control;
use crate::engine::control::lateness::LateMessage;
use crate::engine::flight::Rings;
use crate::engine::flight::{About, Late};
use crate::plan::Plan;
use onbeat_queue::Owner;
use onbeat_queue::sync::atomic::{AtomicU32, Ordering};
use onbeat_trace::cause::{Explained, Part, Verdict};
use onbeat_trace::record::MissKind;
use onbeat_trace::{CauseClass, Evidence, Histogram, KernelEvent, OffCpu, Span};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// Interval between visits to the rings.
const VISIT: Duration = Duration::from_millis(20);

/// Interval between checks of whether all worker threads have started.
const START_POLL: Duration = Duration::from_micros(200);

/// Time from the end of a miss to its explanation: by then the kernel's events of it have arrived.
const SETTLED_NS: u64 = 5_000_000;

/// Time before a message's due time up to which a backlog is followed back.
const FOLLOWED_NS: u64 = 2_000_000_000;

/// The same for one message of each visit that has no cause in this time.
const FOLLOWED_FAR_NS: u64 = 10_000_000_000;

/// Time of one visit in which backlogs are followed back; at the end of the run. Later messages of the visit
/// are explained without.
const FOLLOWING: Duration = Duration::from_millis(10);
const FOLLOWING_AT_END: Duration = Duration::from_millis(500);

/// Largest age of a thread's last switch from which its core is known.
const SWITCH_NS: u64 = 2_000_000_000;

/// Time after which a kernel event that has begun is over and known: events are reported at their end.
const OVER_NS: u64 = 200_000_000;

/// Largest number of misses explained at one visit. More are only counted.
const AT_ONCE: usize = 50;

/// Largest number of verdicts kept for the record.
const VERDICTS: usize = 4096;

/// State of the recorder's thread.
pub(super) struct Work<'w> {
    plan: &'w Plan,
    control: &'w Control,
    owner: Owner,
    rings: Vec<Rings>,
    evidence: Box<dyn Evidence>,
    spans: KeptSpans,
    waiting: VecDeque<Late>,
    /// Spans of the last visit, if a listener follows all steps.
    fresh: Vec<Span>,
    /// By operator: durations of its steps.
    steps: Vec<Histogram>,
    /// Until when backlogs are followed back at this visit, and whether one was followed far.
    follows_until_ns: u64,
    has_followed_far: bool,
    threads: Vec<ThreadFacts>,
    quotas: Quotas,
    edges: Vec<EdgeFacts>,
    has_fair_server: bool,
    fault_ns: u64,
    start_ns: Option<u64>,
    slowest: Slowest,
    strays: Strays,
    /// End of the time whose kernel events the listener has.
    followed_ns: u64,
    causes: CauseSums,
    verdicts: Vec<(Late, Verdict)>,
    explained: u64,
    left_out: u64,
    seen: u64,
}

impl<'w> Work<'w> {
    pub fn new(
        plan: &'w Plan,
        control: &'w Control,
        rings: Vec<Rings>,
        owner: Owner,
        evidence: Box<dyn Evidence>,
    ) -> Self {
        let edge = |(edge, wire): (&crate::EdgePlan, &crate::plan::Wire)| EdgeFacts {
            name: format!("{} → {}", edge.from, edge.to),
            from: wire.from as u32,
            to: wire.to as u32,
            is_awaited: wire.required,
        };
        Work {
            spans: KeptSpans::new(rings.iter().map(|rings| rings.spans.capacity())),
            follows_until_ns: 0,
            has_followed_far: false,
            edges: plan.edges.iter().zip(&plan.wires).map(edge).collect(),
            steps: plan.operators.iter().map(|_| Histogram::new()).collect(),
            has_fair_server: has_fair_server(),
            fault_ns: 0,
            plan,
            control,
            owner,
            rings,
            evidence,
            waiting: VecDeque::new(),
            fresh: Vec::new(),
            threads: Vec::new(),
            quotas: Quotas::default(),
            start_ns: None,
            slowest: Slowest::new(plan),
            strays: Strays::default(),
            followed_ns: onbeat_os::clock::monotonic_ns(),
            causes: CauseSums::default(),
            verdicts: Vec::new(),
            explained: 0,
            left_out: 0,
            seen: 0,
        }
    }

    /// Runs until the sender of `ended` is dropped. Returns the findings and, by operator of the plan, the
    /// durations of the steps that were counted here instead of by the worker.
    pub fn run(mut self, ended: &Receiver<()>) -> (Findings, Vec<Histogram>) {
        self.find_threads(ended);
        loop {
            let is_over = ended.recv_timeout(VISIT) != Err(RecvTimeoutError::Timeout);
            self.drain();
            let now_ns = onbeat_os::clock::monotonic_ns();
            let settled = |late: &Late| is_over || late.end_ns + SETTLED_NS <= now_ns;
            let ready = self.waiting.iter().take_while(|late| settled(late)).count();
            let mut explained = 0;
            let follows = if is_over { FOLLOWING_AT_END } else { FOLLOWING };
            self.follows_until_ns = now_ns + follows.as_nanos() as u64;
            self.has_followed_far = false;
            for late in self.waiting.drain(..ready).collect::<Vec<_>>() {
                let About::Miss(kind) = late.about else {
                    self.add_slow(&late);
                    continue;
                };
                if explained < AT_ONCE || is_over && explained < VERDICTS {
                    self.explain_miss(late, kind);
                } else {
                    self.left_out += 1;
                }
                explained += 1;
            }
            let start_ns = self.start_ns.unwrap_or(u64::MAX);
            self.strays.examine(&mut *self.evidence, &self.threads, self.plan, start_ns..now_ns);
            if explained > 0 {
                self.control.misses.set_causes(self.causes.table());
            }
            if self.control.misses.has_flight_listener() {
                self.report_flight(if is_over { now_ns } else { now_ns.saturating_sub(OVER_NS) });
            }
            if is_over {
                return self.findings();
            }
            self.spans.drop_old(now_ns);
        }
    }

    /// Waits until all worker threads have started, which is before the first step, and takes down their
    /// facts.
    fn find_threads(&mut self, ended: &Receiver<()>) {
        let has_begun = |thread: &AtomicU32| thread.load(Ordering::Relaxed) != 0;
        while !self.control.threads.iter().all(has_begun)
            && ended.recv_timeout(START_POLL) == Err(RecvTimeoutError::Timeout)
        {}
        let tid = |worker: usize| self.control.threads[worker].load(Ordering::Relaxed).cast_signed();
        let facts = |(worker, thread): (usize, &crate::WorkerPlan)| ThreadFacts {
            tid: tid(worker),
            core: thread.core.map(|core| core as u32),
            scheduling: scheduling(tid(worker)),
            has_quota: false,
        };
        self.threads = self.plan.workers.iter().enumerate().map(facts).collect();
        let own = onbeat_os::thread::current_id();
        let tids: Vec<i32> = self.threads.iter().map(|thread| thread.tid).chain([own]).collect();
        self.evidence.follow(&tids);
        // This thread is followed too, because tracing makes a fault more expensive.
        self.fault_ns = fault_cost_ns();
    }

    fn drain(&mut self) {
        self.start_ns = self.control.start_ns.get().copied();
        let is_followed = self.control.misses.has_flight_listener();
        for (part, rings) in self.rings.iter().enumerate() {
            let Work { owner, fresh, steps, spans, seen, .. } = self;
            rings.spans.poll(owner);
            let count = rings.spans.drain(owner, |span| {
                if is_followed {
                    fresh.push(span);
                }
                steps[span.operator as usize].record(span.end_ns - span.start_ns);
                spans.push(part, span);
            });
            rings.spans.release(owner);
            *seen += count as u64;
            while let Some(late) = rings.misses.pop(&mut self.owner) {
                self.waiting.push_back(late);
            }
        }
        self.evidence.drain();
    }

    /// Gives the listener all steps since the last visit, and the kernel events that began before `until_ns`.
    fn report_flight(&mut self, until_ns: u64) {
        let window = self.followed_ns..until_ns.max(self.followed_ns);
        let mut events = Vec::new();
        for core in self.cores(&[]) {
            events.extend(self.evidence.events(core, window.clone()));
        }
        events.retain(|event| window.contains(&event.start_ns));
        self.control.misses.report_flight(&self.fresh, &events);
        self.fresh.clear();
        self.followed_ns = window.end;
    }

    fn add_slow(&mut self, late: &Late) {
        let spans = self.spans.of(late, self.spans.history(late, 0).from_ns);
        self.slowest.add(late, &route::route(late, &spans, self.plan), self.plan);
    }

    /// Cores of the workers: bound or visited. All cores if none is known.
    fn cores(&self, off_cpu: &[OffCpu]) -> Vec<u32> {
        let mut cores: Vec<u32> = off_cpu.iter().flat_map(|off| [off.from_cpu, off.cpu]).collect();
        cores.extend(self.threads.iter().filter_map(|thread| thread.core));
        if cores.is_empty() {
            let online = onbeat_os::CoreSet::online();
            cores.extend(online.iter().flat_map(onbeat_os::CoreSet::iter).map(|core| core as u32));
        }
        cores.sort_unstable();
        cores.dedup();
        cores
    }

    fn explain_miss(&mut self, late: Late, kind: MissKind) {
        let follows = onbeat_os::clock::monotonic_ns() < self.follows_until_ns;
        let history = self.spans.history(&late, if follows { FOLLOWED_NS } else { 0 });
        let mut parts = self.parts_of(&late, history);
        if history.is_cut && follows && !self.has_followed_far && is_mostly_queue(&parts) {
            self.has_followed_far = true;
            parts = self.parts_of(&late, self.spans.history(&late, FOLLOWED_FAR_NS));
        }
        self.conclude(late, kind, parts);
    }

    /// Explains a miss by the steps and the evidence since a time.
    fn parts_of(&mut self, late: &Late, LateHistory { from_ns, backlog_ns, .. }: LateHistory) -> Vec<Part> {
        let spans = self.spans.of(late, from_ns);
        let way = route::route(late, &spans, self.plan);
        // The first of these steps may have begun before.
        let from_ns = spans.iter().map(|span| span.start_ns).fold(from_ns, u64::min);
        let window = from_ns..late.end_ns + 1;
        let switches_ns = from_ns.min(late.due_ns.saturating_sub(SWITCH_NS));
        let off_cpu = self.evidence.off_cpu(switches_ns..window.end);
        let cores = self.cores(&off_cpu);
        let events: Vec<KernelEvent> =
            cores.iter().flat_map(|core| self.evidence.events(*core, window.clone())).collect();
        let faults = self.evidence.page_faults(window.clone());
        let lock_waits = self.rings.first().map_or(Vec::new(), |rings| rings.waits.within(&window));
        let arrivals = self.rings.first().map_or(Vec::new(), |rings| rings.waits.arrivals(&window));
        let counted = self.evidence.counted(backlog_ns..window.end);
        self.quotas.refresh(&mut self.threads);
        let operators = self.operators();
        explain(&Case {
            due_ns: late.due_ns,
            end_ns: late.end_ns,
            limit_ns: late.limit_ns,
            way: &way,
            spans: &spans,
            threads: &self.threads,
            operators: &operators,
            edges: &self.edges,
            events: &events,
            off_cpu: &off_cpu,
            lock_waits: &lock_waits,
            arrivals: &arrivals,
            faults: &faults,
            counted: &counted,
            is_complete: self.is_complete(),
            has_fair_server: self.has_fair_server,
            fault_ns: self.fault_ns,
        })
    }

    /// Whether the evidence is complete: an event that was not seen did not happen.
    fn is_complete(&self) -> bool {
        self.unread() == 0
            && matches!(self.evidence.source(), "ftrace" | "perf")
            && !self.control.is_sampled.load(Ordering::Relaxed)
            && self.evidence.lack().is_none()
    }

    /// Number of steps that the workers could not record because their rings were full.
    fn unread(&self) -> u64 {
        // Relaxed: the counters order no other data.
        self.rings.iter().map(|rings| rings.unread.load(Ordering::Relaxed)).sum()
    }

    /// Facts on the operators, as known by now.
    fn operators(&self) -> Vec<OperatorFacts> {
        let slots = &self.control.board.operators;
        let facts =
            |(number, (operator, steps)): (usize, (&crate::OperatorPlan, &Histogram))| OperatorFacts {
                name: operator.name.clone(),
                is_source: operator.source,
                // Relaxed: a wait of which this does not know yet is explained less well.
                awaits_descriptors: slots[number].awaits_descriptors.load(Ordering::Relaxed),
                budget_ns: operator.budget_ns,
                // Fewer than 3 steps give no usual duration.
                usual_ns: Some(steps.summary()).filter(|steps| steps.count > 2).map(|steps| steps.median_ns),
            };
        self.plan.operators.iter().zip(&self.steps).enumerate().map(facts).collect()
    }

    fn conclude(&mut self, late: Late, kind: MissKind, parts: Vec<Part>) {
        let name = match kind {
            MissKind::Path => format!("{} → {}", self.plan.paths[late.of].from, self.plan.paths[late.of].to),
            MissKind::Deadline => self.plan.operators[late.of].name.clone(),
        };
        let late_ns = late.late_ns();
        self.causes.add(&parts, &self.threads);
        self.explained += 1;
        let sentence = sentence(&name, late.sequence, late_ns, &parts);
        let verdict = Verdict { sentence, parts };
        if self.verdicts.len() < VERDICTS {
            self.verdicts.push((late, verdict.clone()));
        }
        let time_ns = late.end_ns.saturating_sub(self.start_ns.unwrap_or(0));
        let message = LateMessage { kind, name, sequence: late.sequence, time_ns, late_ns, verdict };
        self.control.misses.report(message);
    }

    fn findings(self) -> (Findings, Vec<Histogram>) {
        let start_ns = self.start_ns.unwrap_or(0);
        let causes = self.causes.table();
        let unread = self.unread();
        let left_out =
            self.left_out + self.rings.iter().map(|rings| rings.misses.missed(&self.owner)).sum::<u64>();
        let (why, fix) = self.evidence.lack().unzip();
        let explained = Explained {
            source: self.evidence.source().to_owned(),
            why,
            fix,
            exact: Vec::new(),
            sampled: Vec::new(),
            misses: self.explained,
            left_out,
            spans: self.seen + unread,
            unread,
            lost: self.evidence.lost(),
        };
        let findings = Findings {
            verdicts: self
                .verdicts
                .into_iter()
                .map(|(late, verdict)| (key(&late, start_ns), verdict))
                .collect(),
            slowest: self.slowest.since(start_ns),
            notes: self.strays.notes,
            causes,
            explained: Some(explained),
            recorded: self.steps.iter().map(|steps| steps.count() > 0).collect(),
        };
        (findings, self.steps)
    }
}

/// Whether most of the lateness is a wait for other steps, of which the reason is not known.
fn is_mostly_queue(parts: &[Part]) -> bool {
    let is_queue = |part: &&Part| matches!(part.class, CauseClass::QueueWait | CauseClass::DownstreamFull);
    let all_ns: u64 = parts.iter().map(|part| part.late_ns).sum();
    parts.iter().filter(is_queue).map(|part| part.late_ns).sum::<u64>() * 2 > all_ns
}
