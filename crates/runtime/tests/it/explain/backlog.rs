//! A worker that other threads keep from its core, until it has a backlog: the causes of its late messages.

use onbeat_runtime::explain::{Case, EdgeFacts, OperatorFacts, ThreadFacts, explain, sentence};
use onbeat_trace::cause::Part;
use onbeat_trace::{CauseClass, Class, KernelEvent, Left, OffCpu, Span};

const MS: u64 = 1_000_000;
const PERIOD_NS: u64 = 10 * MS;
const SOURCE: u32 = 0;
const WORK: u32 = 1;
const SINK: u32 = 2;
/// Threads of the workers, by worker.
const TIDS: [i32; 2] = [50, 51];

/// Thread that takes turns with a worker, as normal threads do.
#[derive(Debug, Clone, Copy)]
struct Neighbour {
    name: &'static str,
    /// Longest computing time of the worker without a turn of this thread, and the duration of its turn.
    after_ns: u64,
    turn_ns: u64,
}

/// What happened, as the runtime and the kernel record it.
#[derive(Debug, Default)]
struct Recording {
    now_ns: u64,
    spans: Vec<Span>,
    events: Vec<KernelEvent>,
    off_cpu: Vec<OffCpu>,
    neighbours: Vec<Neighbour>,
    /// Computing time since the last turn of each of them.
    since_ns: Vec<u64>,
    /// Time until which the neighbours have turns.
    until_ns: u64,
}

impl Recording {
    fn beside(neighbours: &[Neighbour], until_ns: u64) -> Self {
        Recording {
            neighbours: neighbours.to_vec(),
            since_ns: vec![0; neighbours.len()],
            until_ns,
            ..Recording::default()
        }
    }

    /// A step of worker 0 that computes for `cpu_ns`.
    fn step(&mut self, operator: u32, sequence: u64, mut cpu_ns: u64) {
        let start_ns = self.now_ns;
        while cpu_ns > 0 {
            let left_ns =
                |(at, one): (usize, &Neighbour)| (one.after_ns.saturating_sub(self.since_ns[at]), at);
            let next = self.neighbours.iter().enumerate().map(left_ns).min();
            let run_ns = next.map_or(cpu_ns, |(left_ns, _)| left_ns.min(cpu_ns));
            self.now_ns += run_ns;
            cpu_ns -= run_ns;
            self.since_ns.iter_mut().for_each(|ns| *ns += run_ns);
            if let Some((left_ns, at)) = next.filter(|(left_ns, _)| *left_ns <= run_ns) {
                assert!(left_ns <= run_ns);
                self.since_ns[at] = 0;
                if self.now_ns < self.until_ns {
                    self.turn_of(at);
                }
            }
        }
        let due_ns = sequence * PERIOD_NS;
        let (end_ns, held_by) = (self.now_ns, Span::NONE);
        self.spans.push(Span { operator, sequence, due_ns, start_ns, end_ns, held_by, ..Span::default() });
    }

    fn turn_of(&mut self, at: usize) {
        let Neighbour { name, turn_ns, .. } = self.neighbours[at];
        let (start_ns, end_ns) = (self.now_ns, self.now_ns + turn_ns);
        self.now_ns = end_ns;
        self.events.push(thread(name, start_ns, turn_ns));
        self.off_cpu.push(taken(TIDS[0], start_ns, end_ns));
    }

    /// Messages that need `cpu_ns` each, the source on the same worker.
    fn messages(&mut self, count: u64, cpu_ns: u64) {
        for sequence in 0..count {
            self.now_ns = self.now_ns.max(sequence * PERIOD_NS);
            self.step(SOURCE, sequence, 10_000);
            self.step(WORK, sequence, cpu_ns);
            self.step(SINK, sequence, 10_000);
        }
    }

    /// Drops the steps before those of a message, and the events before its first step. Switches are known
    /// for longer, as in a run.
    fn forget_before(&mut self, sequence: u64) {
        self.spans.retain(|span| span.sequence >= sequence);
        let first_ns = self.spans[0].start_ns;
        self.events.retain(|event| event.start_ns >= first_ns);
    }

    /// Parts of a message that must arrive within `limit_ns`.
    fn parts(&self, sequence: u64, limit_ns: u64, budget_ns: u64) -> Vec<Part> {
        let is_it = |span: &&Span| span.sequence == sequence;
        let way: Vec<Span> = self.spans.iter().filter(is_it).copied().collect();
        self.parts_of(&way, limit_ns, budget_ns)
    }

    fn parts_of(&self, way: &[Span], limit_ns: u64, budget_ns: u64) -> Vec<Part> {
        let operators: Vec<OperatorFacts> = ["tick", "work", "end"]
            .into_iter()
            .map(|name| OperatorFacts {
                name: name.into(),
                is_source: name == "tick",
                awaits_descriptors: false,
                budget_ns: Some(budget_ns).filter(|_| name == "work"),
                usual_ns: Some(10_000),
            })
            .collect();
        let fact = |tid| ThreadFacts { tid, core: Some(1), ..ThreadFacts::default() };
        let edges = [EdgeFacts { name: "tick.out → work.in".into(), to: WORK, ..EdgeFacts::default() }];
        let (due_ns, end_ns) = (way[0].due_ns, way[way.len() - 1].end_ns);
        let parts = explain(&Case {
            due_ns,
            end_ns,
            limit_ns,
            way,
            spans: &self.spans,
            threads: &TIDS.map(fact),
            operators: &operators,
            edges: &edges,
            events: &self.events,
            off_cpu: &self.off_cpu,
            is_complete: true,
            has_fair_server: true,
            ..Case::default()
        });
        let late_ns = end_ns - due_ns - limit_ns;
        assert_eq!(parts.iter().map(|part| part.late_ns).sum::<u64>(), late_ns, "{parts:#?}");
        parts
    }
}

fn thread(name: &str, start_ns: u64, duration_ns: u64) -> KernelEvent {
    let class = Class::Thread;
    KernelEvent { cpu: 1, start_ns, duration_ns, class, name: name.into(), pid: 77, priority: 120, depth: 0 }
}

fn taken(tid: i32, out_ns: u64, in_ns: u64) -> OffCpu {
    OffCpu {
        tid,
        out_ns,
        is_begin_known: true,
        runnable_ns: out_ns,
        in_ns,
        is_end_known: true,
        why: Left::Taken,
        from_cpu: 1,
        cpu: 1,
        woken_by: None,
    }
}

/// Time that the parts of a class and name have, in nanoseconds.
fn took_ns(parts: &[Part], class: CauseClass, name: &str) -> u64 {
    parts.iter().filter(|part| part.class == class && part.name == name).map(|part| part.took_ns).sum()
}

#[track_caller]
fn is_about(found_ns: u64, true_ns: u64, parts: &[Part]) {
    assert!(found_ns.abs_diff(true_ns) * 20 <= true_ns, "{found_ns} of {true_ns}: {parts:#?}");
}

#[test]
fn a_normal_thread_is_the_cause_up_to_the_last_message_of_a_backlog() {
    let hog = Neighbour { name: "fair-hog", after_ns: 4 * MS, turn_ns: 4 * MS };
    let mut recording = Recording::beside(&[hog], u64::MAX);
    recording.messages(160, 6 * MS);
    for sequence in [5, 30, 101, 159] {
        let parts = recording.parts(sequence, 8 * MS, 7 * MS);
        let end_ns = recording.spans[sequence as usize * 3 + 2].end_ns;
        // Without the thread each message would take 6.02 ms.
        let true_ns = end_ns - sequence * PERIOD_NS - 6 * MS - 20_000;
        is_about(took_ns(&parts, CauseClass::Preempted, "fair-hog"), true_ns, &parts);
        assert_eq!(took_ns(&parts, CauseClass::OwnCompute, "work"), 0, "{parts:#?}");
        let text = sentence("tick → end", sequence, 1, &parts);
        assert!(text.contains("was kept off core 1") && text.contains("fair-hog (o:0)"), "{text}");
    }
}

#[test]
fn several_threads_have_their_shares_of_a_backlog() {
    let one = Neighbour { name: "one", after_ns: 4 * MS, turn_ns: 3 * MS };
    let nice = Neighbour { name: "nice", after_ns: 4 * MS, turn_ns: MS };
    let mut recording = Recording::beside(&[one, nice], u64::MAX);
    recording.messages(160, 6 * MS);
    let parts = recording.parts(120, 8 * MS, 7 * MS);
    let (one_ns, nice_ns) =
        (took_ns(&parts, CauseClass::Preempted, "one"), took_ns(&parts, CauseClass::Preempted, "nice"));
    is_about(one_ns, 3 * nice_ns, &parts);
    let true_ns = recording.spans[120 * 3 + 2].end_ns - 120 * PERIOD_NS - 6 * MS - 20_000;
    is_about(one_ns + nice_ns, true_ns, &parts);
}

#[test]
fn a_backlog_is_followed_to_what_began_it_long_before() {
    // The thread has turns for 200 ms. The worker then needs 9 ms of 10, and takes long to catch up.
    let hog = Neighbour { name: "fair-hog", after_ns: 4 * MS, turn_ns: 4 * MS };
    let mut recording = Recording::beside(&[hog], 200 * MS);
    recording.messages(100, 9 * MS);
    for sequence in [25, 60, 90] {
        let parts = recording.parts(sequence, 10 * MS, 10 * MS);
        assert_eq!((parts[0].class, &*parts[0].name), (CauseClass::Preempted, "fair-hog"), "{parts:#?}");
        let true_ns = recording.spans[sequence as usize * 3 + 2].end_ns - sequence * PERIOD_NS - 9_020_000;
        is_about(parts[0].took_ns, true_ns, &parts);
    }
}

#[test]
fn a_time_before_the_first_known_step_is_no_wait_for_a_core() {
    let hog = Neighbour { name: "fair-hog", after_ns: 4 * MS, turn_ns: 4 * MS };
    let mut recording = Recording::beside(&[hog], u64::MAX);
    recording.messages(160, 6 * MS);
    // The first step that is known waited for 200 ms of which no events are known.
    recording.forget_before(100);
    let parts = recording.parts(130, 8 * MS, 7 * MS);
    for class in [CauseClass::RunQueueWait, CauseClass::Hardware] {
        assert_eq!(took_ns(&parts, class, ""), 0, "{parts:#?}");
    }
    assert!(took_ns(&parts, CauseClass::Preempted, "fair-hog") >= 96 * MS, "{parts:#?}");
}

#[test]
fn an_operator_that_computes_too_long_is_the_cause_of_its_backlog() {
    let mut recording = Recording::default();
    for sequence in 0..50 {
        recording.now_ns = recording.now_ns.max(sequence * PERIOD_NS);
        recording.step(SOURCE, sequence, 10_000);
        recording.step(WORK, sequence, if sequence == 3 { 60 * MS } else { 8 * MS });
    }
    for sequence in [3, 5, 20] {
        let parts = recording.parts(sequence, 9 * MS, 8 * MS);
        assert_eq!((parts[0].class, &*parts[0].name), (CauseClass::OwnCompute, "work"), "{parts:#?}");
    }
}

#[test]
fn more_work_than_time_is_a_queue() {
    let mut recording = Recording::default();
    recording.messages(60, 12 * MS);
    let parts = recording.parts(50, 13 * MS, 13 * MS);
    assert_eq!((parts[0].class, &*parts[0].name), (CauseClass::QueueWait, "work"), "{parts:#?}");
}

#[test]
fn an_edge_is_full_because_the_consumer_has_no_core() {
    // The source has a worker of its own, and room for two messages.
    let hog = Neighbour { name: "fair-hog", after_ns: 4 * MS, turn_ns: 4 * MS };
    let mut recording = Recording::beside(&[hog], u64::MAX);
    let mut sources = Vec::new();
    for sequence in 0..60u64 {
        let taken_ns = |sequence: u64| recording.spans[sequence as usize].start_ns;
        let room_ns = sequence.checked_sub(2).map_or(0, taken_ns);
        let due_ns = sequence * PERIOD_NS;
        let start_ns = room_ns.max(due_ns);
        let held_by = if start_ns > due_ns { 0 } else { Span::NONE };
        let held_ns = sources.last().map_or(0, |span: &Span| span.end_ns).max(due_ns);
        sources.push(Span {
            operator: SOURCE,
            worker: 1,
            sequence,
            due_ns,
            start_ns,
            end_ns: start_ns + 10_000,
            held_by,
            held_ns,
            ..Span::default()
        });
        recording.now_ns = recording.now_ns.max(start_ns + 10_000);
        recording.step(WORK, sequence, 6 * MS);
    }
    let way = [sources[50], recording.spans[50]];
    recording.spans.extend(sources);
    let parts = recording.parts_of(&way, 8 * MS, 7 * MS);
    is_about(
        took_ns(&parts, CauseClass::Preempted, "fair-hog"),
        way[1].end_ns - way[0].due_ns - 6_010_000,
        &parts,
    );
}

#[test]
fn a_message_that_nobody_had_is_not_a_wait_for_a_core() {
    // The worker slept for a second, and nothing woke it.
    let way = [Span { worker: 0, due_ns: 0, held_by: Span::NONE, end_ns: 10_000, ..Span::default() }, {
        let (start_ns, end_ns) = (1000 * MS, 1000 * MS + 10_000);
        Span { operator: WORK, start_ns, end_ns, held_by: Span::NONE, ..Span::default() }
    }];
    let mut recording = Recording { spans: way.to_vec(), ..Recording::default() };
    let asleep =
        OffCpu { why: Left::Asleep, runnable_ns: 1000 * MS - 5_000, ..taken(TIDS[0], 12_000, 1000 * MS) };
    recording.off_cpu.push(asleep);
    let parts = recording.parts_of(&way, MS, MS);
    assert_eq!(parts.last().unwrap().class, CauseClass::Unexplained, "{parts:#?}");
    assert_eq!(took_ns(&parts, CauseClass::RunQueueWait, ""), 5_000, "{parts:#?}");
    assert!(parts.iter().all(|part| part.name != "wake-up"), "{parts:#?}");
}
