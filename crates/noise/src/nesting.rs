//! From records to kernel events: what had a core, each event without the events that interrupted it.
//!
//! An NMI interrupts everything else, an interrupt interrupts softirqs and threads, a softirq interrupts
//! threads; never the other way round. Time is counted once, for the innermost event: the time of an
//! interruption is subtracted from the interrupted event.
//!
//! The stream has holes: a full ring loses records, some kernels omit switches around the idle task, and one
//! tracepoint has no end. So every record is compared with the known state. A contradiction is a *break*:
//! open events are closed at the last time at which they were certain, and the rest of the time has no event.
//! The times of the break are kept, so that verdicts in them can be marked.

use crate::decode::{Id, RecordKind, RingRecord};
use onbeat_trace::{Class, KernelEvent};
use std::borrow::Cow;
use std::collections::HashMap;
use std::mem;
use std::ops::Range;

/// State of one core.
#[derive(Debug)]
pub struct Nesting {
    cpu: u32,
    /// Measured threads: their own time makes no event.
    own: Vec<i32>,
    thread: Option<Running>,
    /// Events that interrupt it, the innermost last.
    stack: Vec<Open>,
    /// Softirqs of threads that lost the core within one, which happens on kernels with `PREEMPT_RT`.
    parked: HashMap<i32, Vec<(Id, Cow<'static, str>)>>,
    names: HashMap<i32, (String, i32)>,
    /// Whether the kernel had already decided to switch threads when it wrote the last record.
    is_going: bool,
    /// Whether a begin was seen: an end before that belongs to an event from before the recording.
    has_begun: bool,
    now_ns: u64,
    lost: u64,
    breaks: u64,
    broken: Vec<Range<u64>>,
    /// Since when a measured thread sleeps, and the times in which one has slept voluntarily.
    sleeps_ns: Option<u64>,
    slept: Vec<Range<u64>>,
}

#[derive(Debug)]
struct Running {
    pid: i32,
    start_ns: u64,
    inner_ns: u64,
    /// Last time at which it certainly had the core.
    seen_ns: u64,
    /// Whether its begin was seen.
    is_whole: bool,
}

#[derive(Debug)]
struct Open {
    id: Id,
    name: Cow<'static, str>,
    start_ns: u64,
    inner_ns: u64,
}

/// Limit on the number of thread names kept.
const NAMES: usize = 4096;
/// Limit on the number of breaks and of sleeps kept until they are taken.
const STRETCHES: usize = 4096;

/// Id of the idle task.
const IDLE: i32 = 0;

/// Name of a thread that no record has named.
pub(crate) fn nameless(pid: i32) -> String {
    format!("pid {pid}")
}

impl Nesting {
    /// Starts with an unknown state of core `cpu`.
    #[must_use]
    pub fn new(cpu: u32) -> Self {
        Nesting {
            cpu,
            own: Vec::new(),
            thread: None,
            stack: Vec::new(),
            parked: HashMap::new(),
            names: HashMap::new(),
            is_going: false,
            has_begun: false,
            now_ns: 0,
            lost: 0,
            breaks: 0,
            broken: Vec::new(),
            sleeps_ns: None,
            slept: Vec::new(),
        }
    }

    /// Marks these threads as measured: no event is made of them.
    pub fn measure(&mut self, pids: &[i32]) {
        self.own = pids.to_vec();
    }

    /// Number of records that the kernel had no room for.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Number of records that contradicted the known state.
    #[must_use]
    pub fn breaks(&self) -> u64 {
        self.breaks
    }

    /// Returns the times of breaks since the last call.
    pub fn take_broken(&mut self) -> Vec<Range<u64>> {
        mem::take(&mut self.broken)
    }

    /// Returns the times, since the last call, in which a measured thread slept voluntarily.
    pub fn take_slept(&mut self) -> Vec<Range<u64>> {
        mem::take(&mut self.slept)
    }

    /// Takes in the next record, and adds the events that end with it.
    pub fn record(&mut self, record: RingRecord, events: &mut Vec<KernelEvent>) {
        if let RecordKind::Lost(lost) = record.kind {
            self.lost += lost;
            // Any open event may have ended in between.
            let from = self.certain_ns();
            self.stack.clear();
            self.parked.clear();
            self.thread = None;
            self.sleeps_ns = None;
            self.broken(from..self.now_ns.max(from));
            return;
        }
        // Rings are written in order, but a clock read within an NMI may be slightly behind.
        let time_ns = record.time_ns.max(self.now_ns);
        self.now_ns = time_ns;
        let before = if let RecordKind::Switch { prev, .. } = record.kind { prev } else { record.pid };
        self.has_core(before, time_ns, events);
        self.is_going = record.is_going;
        match record.kind {
            RecordKind::Enter(id, name) => {
                self.has_begun = true;
                self.close_what_cannot_be_interrupted(id, time_ns);
                self.stack.push(Open { id, name, start_ns: time_ns, inner_ns: 0 });
            }
            RecordKind::Exit(id) => self.exit(id, time_ns, events),
            RecordKind::Point(class, name) => self.emit(class, name.into(), time_ns, 0, events),
            RecordKind::Nmi { duration_ns } => {
                let start_ns = time_ns.saturating_sub(duration_ns);
                self.emit(Class::Nmi, "nmi".into(), start_ns, duration_ns, events);
                self.inner(duration_ns);
            }
            RecordKind::Switch { prev, was, is_prev_runnable, next, comm, priority } => {
                was.into_iter().for_each(|(comm, priority)| self.learn(prev, &comm, priority));
                if self.own.contains(&prev) {
                    self.sleeps_ns = (!is_prev_runnable).then_some(time_ns);
                }
                if self.own.contains(&next) {
                    self.sleeps_no_more(time_ns);
                }
                self.switch(next, comm, priority, time_ns, events);
            }
            RecordKind::Woken { pid, comm, priority, core } => {
                self.learn(pid, &comm, priority);
                self.told(Class::Wakeup, core, (pid, comm, priority), time_ns, events);
            }
            RecordKind::Migrated { pid, comm, priority, core } => {
                self.told(Class::Migration, core, (pid, comm, priority), time_ns, events);
            }
            RecordKind::PageFault { is_user } => {
                let name = if is_user { "page_fault_user" } else { "page_fault_kernel" };
                let who = (record.pid, name.to_owned(), 0);
                self.told(Class::PageFault, self.cpu, who, time_ns, events);
            }
            RecordKind::Lost(_) => {}
        }
    }

    /// Time up to which the stream is known.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Takes in a time stamp of a measured thread: it had the core then. A stamp older than the last record
    /// has no effect.
    pub fn stamp(&mut self, pid: i32, time_ns: u64, events: &mut Vec<KernelEvent>) {
        if time_ns < self.now_ns {
            return;
        }
        self.now_ns = time_ns;
        self.sleeps_no_more(time_ns);
        if !self.stack.is_empty() {
            // The thread runs, so nothing interrupts it.
            let from = self.stack[0].start_ns;
            self.stack.clear();
            self.broken(from..time_ns);
        }
        self.has_core(pid, time_ns, events);
    }

    /// Takes in the thread that a record names. If it is not the thread of the last switch, a switch is
    /// missing.
    fn has_core(&mut self, pid: i32, time_ns: u64, events: &mut Vec<KernelEvent>) {
        match &mut self.thread {
            Some(thread) if thread.pid == pid => thread.seen_ns = time_ns,
            Some(thread) => {
                let (from, whole, was_idle) = (thread.seen_ns, thread.is_whole, thread.pid == IDLE);
                // Some kernels omit the switch away from the idle task. If a switch was due, another thread
                // got the core then.
                let begin_ns = if was_idle && self.is_going { from } else { time_ns };
                self.stack.clear();
                self.end_thread(from, whole, events);
                self.broken(from..time_ns);
                self.begin_thread(pid, begin_ns, true);
            }
            None => self.begin_thread(pid, time_ns, false),
        }
    }

    /// Thread that has the core: id, start and name.
    #[must_use]
    pub fn running(&self) -> Option<(i32, u64, String)> {
        let thread = self.thread.as_ref()?;
        Some((thread.pid, thread.start_ns, self.name(thread.pid).0))
    }

    fn name(&self, pid: i32) -> (String, i32) {
        match self.names.get(&pid) {
            _ if pid == IDLE => (format!("swapper/{}", self.cpu), 120),
            Some((name, priority)) => (name.clone(), *priority),
            None => (nameless(pid), 0),
        }
    }

    /// Keeps the name of a thread, in case the switch to it is missing.
    fn learn(&mut self, pid: i32, comm: &str, priority: i32) {
        if self.names.len() < NAMES && !self.names.contains_key(&pid) {
            self.names.insert(pid, (comm.to_owned(), priority));
        }
    }

    fn begin_thread(&mut self, pid: i32, start_ns: u64, is_whole: bool) {
        self.thread = Some(Running { pid, start_ns, inner_ns: 0, seen_ns: start_ns, is_whole });
    }

    fn end_thread(&mut self, end_ns: u64, is_known: bool, events: &mut Vec<KernelEvent>) {
        let Some(thread) = self.thread.take() else { return };
        if self.own.contains(&thread.pid) || !is_known {
            return;
        }
        let (name, priority) = self.name(thread.pid);
        events.push(KernelEvent {
            cpu: self.cpu,
            start_ns: thread.start_ns,
            duration_ns: (end_ns - thread.start_ns).saturating_sub(thread.inner_ns),
            class: Class::Thread,
            name,
            pid: thread.pid,
            priority,
            depth: 0,
        });
    }

    fn switch(
        &mut self,
        next: i32,
        comm: String,
        priority: i32,
        time_ns: u64,
        events: &mut Vec<KernelEvent>,
    ) {
        let prev = self.thread.as_ref().map_or(-1, |thread| thread.pid);
        if let Some(wrong) = self.stack.iter().position(|open| open.id.class != Class::Softirq) {
            let from = self.stack[wrong].start_ns;
            self.stack.truncate(wrong);
            self.broken(from..time_ns);
        }
        let mut parked = Vec::new();
        while let Some(open) = self.stack.pop() {
            parked.push((open.id, open.name.clone()));
            self.close(open, time_ns, events);
        }
        if !parked.is_empty() {
            self.parked.insert(prev, parked);
        }
        let is_whole = self.thread.as_ref().is_some_and(|thread| thread.is_whole);
        self.end_thread(time_ns, is_whole, events);
        if self.names.len() >= NAMES && !self.names.contains_key(&next) {
            self.names.clear();
            self.parked.clear();
        }
        self.names.insert(next, (comm, priority));
        self.begin_thread(next, time_ns, true);
        // Softirqs of the new thread that were parked continue as new events; the outermost was parked last.
        let goes_on = self.parked.remove(&next).unwrap_or_default();
        let again = |(id, name)| Open { id, name, start_ns: time_ns, inner_ns: 0 };
        self.stack = goes_on.into_iter().rev().map(again).collect();
    }

    /// Closes an event. If the end does not fit the innermost event, the events above the matching one have
    /// lost their ends.
    fn exit(&mut self, id: Id, time_ns: u64, events: &mut Vec<KernelEvent>) {
        let Some(at) = self.stack.iter().rposition(|open| open.id == id) else {
            if self.has_begun {
                self.broken(self.certain_ns()..time_ns);
            }
            return;
        };
        if at + 1 < self.stack.len() {
            let from = self.stack[at + 1].start_ns;
            self.stack.truncate(at + 1);
            self.broken(from..time_ns);
        }
        let open = self.stack.pop().expect("it was found there");
        self.close(open, time_ns, events);
    }

    fn close(&mut self, open: Open, time_ns: u64, events: &mut Vec<KernelEvent>) {
        let gross_ns = time_ns - open.start_ns;
        let net_ns = gross_ns.saturating_sub(open.inner_ns);
        self.emit(open.id.class, open.name, open.start_ns, net_ns, events);
        self.inner(gross_ns);
    }

    /// Closes events that cannot be interrupted by `id`. An ARM core reports an IPI within the handler of the
    /// interrupt it came with.
    fn close_what_cannot_be_interrupted(&mut self, id: Id, time_ns: u64) {
        let may = |open: &Open| {
            id.class < open.id.class || (id.number == Id::IPI && id.class == open.id.class && open.id != id)
        };
        if let Some(wrong) = self.stack.iter().position(|open| !may(open)) {
            let from = self.stack[wrong].start_ns;
            self.stack.truncate(wrong);
            self.broken(from..time_ns);
        }
    }

    fn emit(
        &self,
        class: Class,
        name: Cow<'static, str>,
        start_ns: u64,
        duration_ns: u64,
        events: &mut Vec<KernelEvent>,
    ) {
        events.push(KernelEvent {
            cpu: self.cpu,
            start_ns,
            duration_ns,
            class,
            name: name.into_owned(),
            pid: 0,
            priority: 0,
            depth: self.stack.len() as u32,
        });
    }

    /// Adds an event about a thread on any core; it takes no time.
    fn told(
        &self,
        class: Class,
        cpu: u32,
        (pid, name, priority): (i32, String, i32),
        start_ns: u64,
        events: &mut Vec<KernelEvent>,
    ) {
        let depth = self.stack.len() as u32;
        events.push(KernelEvent { cpu, start_ns, duration_ns: 0, class, name, pid, priority, depth });
    }

    /// Subtracts time from the interrupted event.
    fn inner(&mut self, ns: u64) {
        match (self.stack.last_mut(), &mut self.thread) {
            (Some(open), _) => open.inner_ns += ns,
            (None, Some(thread)) => thread.inner_ns += ns,
            (None, None) => {}
        }
    }

    fn certain_ns(&self) -> u64 {
        self.thread.as_ref().map_or(self.now_ns, |thread| thread.seen_ns.min(self.now_ns))
    }

    fn sleeps_no_more(&mut self, time_ns: u64) {
        let since_ns = self.sleeps_ns.take().filter(|_| self.slept.len() < STRETCHES);
        self.slept.extend(since_ns.map(|since_ns| since_ns..time_ns));
    }

    fn broken(&mut self, range: Range<u64>) {
        self.breaks += 1;
        if self.broken.len() < STRETCHES {
            self.broken.push(range);
        }
    }
}
