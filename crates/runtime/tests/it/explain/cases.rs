//! One case per class of cause. Times are nanoseconds; the message is due at 1000.

use onbeat_runtime::explain::{Case, EdgeFacts, OperatorFacts, Scheduling, ThreadFacts, explain, sentence};
use onbeat_trace::{
    CauseClass, Class, Counted, KernelEvent, Left, LinkArrival, LockWait, OffCpu, PageFault, Span, WakeSource,
};

/// What a case is made of, so that each test says only what is special.
#[derive(Clone)]
struct Story {
    spans: Vec<Span>,
    /// Of the spans.
    way: Vec<usize>,
    events: Vec<KernelEvent>,
    off_cpu: Vec<OffCpu>,
    faults: Vec<PageFault>,
    scheduling: Scheduling,
    budget_ns: Option<u64>,
    has_fair_server: bool,
    /// Whether the source takes its data from a socket.
    has_socket: bool,
    counted: Vec<Counted>,
    lock_waits: Vec<LockWait>,
    arrivals: Vec<LinkArrival>,
}

const SOURCE: u32 = 0;
const DEMOD: u32 = 1;
const SINK: u32 = 2;
const OTHER: u32 = 3;
const TID: i32 = 50;

fn span(operator: u32, start_ns: u64, end_ns: u64) -> Span {
    Span { operator, due_ns: 1000, start_ns, end_ns, held_by: Span::NONE, ..Span::default() }
}

fn event(class: Class, name: &str, pid: i32, priority: i32, start_ns: u64, duration_ns: u64) -> KernelEvent {
    KernelEvent { cpu: 1, start_ns, duration_ns, class, name: name.into(), pid, priority, depth: 0 }
}

fn off(why: Left, out_ns: u64, runnable_ns: u64, in_ns: u64) -> OffCpu {
    OffCpu {
        tid: TID,
        is_begin_known: true,
        is_end_known: true,
        out_ns,
        runnable_ns,
        in_ns,
        why,
        from_cpu: 1,
        cpu: 1,
        woken_by: None,
    }
}

impl Story {
    /// A source of 10, an operator of 100 and a sink of 10, each right behind the other; the source begins
    /// after `late_ns`, the operator takes `more_ns` more.
    fn new(late_ns: u64, more_ns: u64) -> Self {
        let at = 1000 + late_ns;
        let spans = vec![
            span(SOURCE, at, at + 10),
            span(DEMOD, at + 10, at + 110 + more_ns),
            span(SINK, at + 110 + more_ns, at + 120 + more_ns),
        ];
        Story {
            spans,
            way: vec![0, 1, 2],
            events: Vec::new(),
            off_cpu: Vec::new(),
            faults: Vec::new(),
            scheduling: Scheduling::RealTime,
            budget_ns: None,
            has_fair_server: true,
            has_socket: false,
            counted: Vec::new(),
            lock_waits: Vec::new(),
            arrivals: Vec::new(),
        }
    }

    /// The first part: class, name, what it took; and the sentence.
    #[track_caller]
    fn verdict(&self) -> (CauseClass, String, u64, String) {
        let usual = [10, 100, 10, 200];
        let operators: Vec<OperatorFacts> = ["iq", "demod", "audio", "other"]
            .into_iter()
            .zip(usual)
            .map(|(name, usual_ns)| OperatorFacts {
                name: name.into(),
                is_source: name == "iq",
                awaits_descriptors: name == "iq" && self.has_socket,
                usual_ns: Some(usual_ns),
                budget_ns: self.budget_ns.filter(|_| name == "demod"),
            })
            .collect();
        let threads =
            [ThreadFacts { tid: TID, core: Some(1), scheduling: self.scheduling, has_quota: false }];
        let edges = [EdgeFacts { name: "demod.out → audio.in".into(), to: SINK, ..EdgeFacts::default() }];
        let way: Vec<Span> = self.way.iter().map(|&at| self.spans[at]).collect();
        let end_ns = way.last().unwrap().end_ns;
        let case = Case {
            due_ns: 1000,
            end_ns,
            limit_ns: 120,
            way: &way,
            spans: &self.spans,
            threads: &threads,
            operators: &operators,
            edges: &edges,
            events: &self.events,
            off_cpu: &self.off_cpu,
            lock_waits: &self.lock_waits,
            arrivals: &self.arrivals,
            faults: &self.faults,
            is_complete: true,
            has_fair_server: self.has_fair_server,
            fault_ns: 7,
            counted: &self.counted,
        };
        let parts = explain(&case);
        let late_ns = end_ns - 1120;
        assert_eq!(parts.iter().map(|part| part.late_ns).sum::<u64>(), late_ns, "{parts:#?}");
        let first = &parts[0];
        (first.class, first.name.clone(), first.took_ns, sentence("iq → audio", 8121, late_ns, &parts))
    }

    #[track_caller]
    fn is(&self, class: CauseClass, name: &str, took_ns: u64) -> String {
        let (found, named, took, text) = self.verdict();
        assert_eq!((found, named.as_str(), took), (class, name, took_ns), "{text}");
        text
    }
}

#[test]
fn a_thread_that_took_the_core_is_named() {
    let mut story = Story::new(0, 400_000);
    story.off_cpu.push(off(Left::Taken, 1050, 1050, 392_050));
    story.events.push(event(Class::Thread, "kworker/1:2", 77, 120, 1050, 391_000 - 14_000));
    story.events.push(event(Class::Irq, "virtio1-req.0", 0, 0, 5_000, 14_000));
    story.scheduling = Scheduling::Fair;
    let text = story.is(CauseClass::Preempted, "kworker/1:2", 377_000);
    assert_eq!(
        text,
        "message 8121 of iq → audio was 400 µs late: demod was kept off core 1 for 377 µs by kworker/1:2 (o:0), IRQ \
         virtio1-req.0 took 14 µs, demod computed 9 µs over its usual 100 ns"
    );
    // Workers of other runs are called as the own ones.
    story.events[0].name = "onbeat-w0".into();
    story.is(CauseClass::Preempted, "onbeat-w0 of another run", 377_000);
}

#[test]
fn an_interrupt_and_a_softirq_are_named_within_the_step() {
    let mut story = Story::new(0, 40_000);
    story.events.push(event(Class::Thread, "worker", TID, 79, 900, 10_000));
    story.events.push(event(Class::Softirq, "NET_RX", 0, 0, 2000, 20_000));
    story.events.push(event(Class::Irq, "eth0", 0, 0, 3000, 10_000));
    story.is(CauseClass::Softirq, "NET_RX", 20_000);
}

#[test]
fn computing_too_long_is_the_operators_own() {
    let text = Story::new(0, 5_000).is(CauseClass::OwnCompute, "demod", 5_000);
    assert!(text.ends_with("demod computed 5 µs over its usual 100 ns; no interference was found"), "{text}");
    let story = Story { budget_ns: Some(1_100), ..Story::new(0, 5_000) };
    assert!(story.is(CauseClass::OwnCompute, "demod", 4_000).contains("over its budget of 1.1 µs"));
}

#[test]
fn page_faults_are_counted_and_their_cost_is_estimated() {
    let mut story = Story::new(0, 700);
    let fault = |tid, at_ns| PageFault { tid, at_ns, took_ns: None };
    let faults = (0..100).map(|at| fault(TID, 1020 + at));
    story.faults = faults.chain([fault(TID + 1, 1030), fault(TID, 5000)]).collect();
    story.is(CauseClass::PageFault, "demod", 700);
    // One may cost four times the estimate, and no more; there are 101 of them now.
    let story = Story { faults: story.faults, ..Story::new(0, 7_000) };
    story.is(CauseClass::OwnCompute, "demod", 4_172);
}

#[test]
fn page_faults_that_were_seen_to_end_cost_what_they_took() {
    let fault = |at_ns, took_ns| PageFault { tid: TID, at_ns, took_ns: Some(took_ns) };
    // 50 of 100 ns, and 7 for the way there and back.
    let faults: Vec<_> = (0..50).map(|at| fault(1020 + 120 * at, 100)).collect();
    let story = Story { faults: faults.clone(), ..Story::new(0, 7_000) };
    let text = story.is(CauseClass::PageFault, "demod", 5_350);
    assert!(text.contains("50 page faults at about 107 ns each"), "{text}");
    // They made a step long that the message only waited for.
    let mut story = Story { faults, ..Story::new(6_000, 0) };
    story.spans.push(Span { due_ns: Span::NO_DUE, sequence: 7, ..span(OTHER, 1000, 7_000) });
    story.is(CauseClass::PageFault, "other", 5_350);
}

#[test]
fn an_idle_core_in_a_step_is_a_sleep_or_a_budget_that_was_used_up() {
    let events = vec![event(Class::Thread, "swapper/1", 0, 120, 1050, 600)];
    let story = Story { events, ..Story::new(0, 600) };
    story.is(CauseClass::SystemCall, "demod", 600);
    let story = Story { scheduling: Scheduling::Deadline, ..story };
    story.is(CauseClass::DeadlineBudget, "", 600);
}

#[test]
fn counts_take_the_place_of_what_nobody_could_tell() {
    let counted = |run_queue_ns, page_faults| {
        vec![Counted { tid: TID, from_ns: 0, to_ns: 9_000, run_queue_ns, page_faults }]
    };
    let story = Story { counted: counted(500, 3), ..Story::new(0, 700) };
    let text = story.is(CauseClass::RunQueueWait, "", 500);
    assert!(text.contains("200"), "the rest is the operator's: {text}");
    // No more than there was, whatever was counted.
    Story { counted: counted(50_000, 0), ..Story::new(0, 700) }.is(CauseClass::RunQueueWait, "", 700);
    Story { counted: counted(0, 80), ..Story::new(0, 700) }.is(CauseClass::PageFault, "demod", 560);
    // Another thread's.
    let other = vec![Counted { tid: TID + 1, ..counted(500, 0)[0] }];
    Story { counted: other, ..Story::new(0, 700) }.is(CauseClass::OwnCompute, "demod", 700);
}

#[test]
fn waiting_for_another_step_names_it() {
    let mut story = Story::new(200, 0);
    story.spans.push(Span { due_ns: Span::NO_DUE, sequence: 7, ..span(OTHER, 1000, 1200) });
    story.is(CauseClass::QueueWait, "other", 200);
    // The step in the way took longer than it usually does: that is it.
    let mut story = Story::new(5_000, 0);
    story.spans.push(Span { due_ns: Span::NO_DUE, sequence: 7, ..span(OTHER, 1000, 6_000) });
    story.is(CauseClass::OwnCompute, "other", 4_800);
}

#[test]
fn what_delayed_the_message_before_is_the_cause_of_the_next() {
    // The step before began in time, lost its core to a thread, and ended in this message's time.
    let mut story = Story::new(500, 0);
    story.spans.push(Span { due_ns: 400, sequence: 7, ..span(DEMOD, 400, 1500) });
    story.off_cpu.push(off(Left::Taken, 450, 450, 1450));
    story.events.push(event(Class::Thread, "hog", 77, 49, 450, 1000));
    let (class, name, _, text) = story.verdict();
    assert_eq!((class, name.as_str()), (CauseClass::Preempted, "hog"), "{text}");
}

#[test]
fn a_full_edge_names_itself_and_who_did_not_take() {
    let mut story = Story::new(0, 0);
    story.spans = vec![
        span(SOURCE, 1000, 1010),
        Span { held_by: 0, held_ns: 1010, ..span(DEMOD, 9_010, 9_110) },
        Span { worker: 1, ..span(SINK, 9_110, 9_120) },
        // The sink takes something at 9000.
        Span { worker: 1, sequence: 7, ..span(SINK, 9_000, 9_005) },
    ];
    story.off_cpu.push(off(Left::Asleep, 1010, 9_000, 9_005));
    let text = story.is(CauseClass::DownstreamFull, "demod.out → audio.in", 7_990);
    assert!(text.contains("(audio did not take)"), "{text}");
}

#[test]
fn a_timer_that_comes_late_is_told_from_a_source_that_waits() {
    let mut story = Story::new(3_000, 0);
    story.off_cpu.push(off(Left::Asleep, 100, 3_500, 4_000));
    story.is(CauseClass::TimerLate, "", 2_500);
    // Data that were in its socket until the worker woke.
    story.has_socket = true;
    let text = story.is(CauseClass::SocketWait, "iq", 2_500);
    assert!(text.contains("what iq took had been in its socket for"), "{text}");
    // Another thread that then had the core is told apart.
    story.events.push(event(Class::Thread, "other", 77, 50, 3_500, 500));
    story.is(CauseClass::SocketWait, "iq", 2_500);
    let mut story = Story::new(0, 0);
    story.spans[0].end_ns = 8_010;
    story.spans[1] = span(DEMOD, 8_010, 8_110);
    story.spans[2] = span(SINK, 8_110, 8_120);
    story.off_cpu.push(off(Left::Asleep, 1_005, 8_000, 8_005));
    story.is(CauseClass::InputLate, "iq", 6_995);
}

#[test]
fn a_lock_names_its_holder_and_a_system_call_does_not() {
    let mut story = Story::new(0, 9_000);
    let asleep = off(Left::Asleep, 1_050, 10_000, 10_000);
    story.off_cpu.push(OffCpu {
        woken_by: Some(WakeSource { tid: 60, name: "logger".into(), is_interrupt: false, is_ours: true }),
        ..asleep.clone()
    });
    story.is(CauseClass::Lock, "logger", 8_950);
    story.off_cpu = vec![OffCpu {
        woken_by: Some(WakeSource { tid: 0, name: "swapper/0".into(), is_interrupt: true, is_ours: false }),
        ..asleep
    }];
    assert!(story.is(CauseClass::SystemCall, "demod", 8_950).contains("(woken by an interrupt)"));
}

#[test]
fn a_known_lock_names_its_holder_with_and_without_kernel_events() {
    let mut story = Story::new(0, 9_000);
    story.lock_waits.push(LockWait { tid: TID, from_ns: 1_020, to_ns: 10_000, holder: "hog".into() });
    // A wait of another thread counts for nothing.
    story.lock_waits.push(LockWait { tid: 7, from_ns: 1_020, to_ns: 10_050, holder: "other".into() });
    let text = story.is(CauseClass::GilWait, "hog", 8_980);
    assert!(text.contains("demod waited 8.98 µs for the Python lock, which hog had"), "{text}");
    // The thread that has its core meanwhile does not count. The time after the wake-up has its own cause.
    story.off_cpu.push(off(Left::Asleep, 1_030, 9_000, 10_000));
    story.events.push(event(Class::Thread, "neighbour", 77, 50, 1_030, 8_970));
    story.is(CauseClass::GilWait, "hog", 7_980);
}

/// A message that was due at 1,000, and taken from a link at 9,005.
fn linked(sent_ns: u64, least_ns: u64) -> Story {
    let mut story = Story::new(8_000, 0);
    story.has_socket = true;
    let (link, node, origin) = ("iq→demod".into(), "radio:7".into(), 4711);
    let arrival = LinkArrival { tid: TID, sent_ns, came_ns: 9_005, least_ns, origin, link, node };
    story.arrivals.push(arrival);
    story
}

#[test]
fn what_comes_over_a_link_names_the_other_run_or_the_network() {
    let text = linked(8_500, 300).is(CauseClass::OtherNode, "radio:7", 7_500);
    assert!(text.contains("it left radio:7 7.5 µs after it was due there"), "{text}");
    // The worker slept until it came.
    let mut slept = linked(1_500, 300);
    slept.off_cpu.push(off(Left::Asleep, 900, 8_990, 9_000));
    let text = slept.is(CauseClass::Network, "iq→demod", 7_490);
    assert!(text.contains("link iq→demod took 7.49 µs"), "{text}");
    // It came, and another thread had the core.
    let mut preempted = linked(1_500, 300);
    preempted.off_cpu.push(off(Left::Taken, 1_900, 1_900, 8_900));
    preempted.events.push(event(Class::Thread, "thief", 77, 50, 1_900, 7_000));
    preempted.is(CauseClass::Preempted, "thief", 7_000);
}

#[test]
fn a_stop_a_move_and_a_long_wake_up_have_their_classes() {
    for (off, class, name) in [
        (off(Left::Stopped, 1_050, 9_000, 9_000), CauseClass::Stopped, ""),
        (
            OffCpu { from_cpu: 0, ..off(Left::Taken, 1_050, 1_050, 9_000) },
            CauseClass::Migration,
            "core 0 → 1",
        ),
        (off(Left::Taken, 1_050, 1_050, 9_000), CauseClass::RunQueueWait, ""),
    ] {
        let mut story = Story::new(0, 9_000);
        story.off_cpu.push(off);
        story.is(class, name, 7_950);
    }
}

#[test]
fn the_kernels_own_limits_are_told_from_threads() {
    let mut story = Story::new(0, 9_000);
    story.off_cpu.push(off(Left::Taken, 1_050, 1_050, 9_000));
    story.events.push(event(Class::Thread, "hog", 77, 120, 1_050, 7_950));
    story.is(CauseClass::RtThrottling, "fair server", 7_950);
    story.has_fair_server = false;
    story.is(CauseClass::RtThrottling, "rt-throttle", 7_950);
    story.scheduling = Scheduling::Deadline;
    story.is(CauseClass::DeadlineBudget, "", 7_950);
    story.events[0] = event(Class::Thread, "swapper/1", 0, 120, 1_050, 7_950);
    story.is(CauseClass::DeadlineBudget, "", 7_950);
}

#[test]
fn a_worker_that_stands_still_between_steps_is_the_machines() {
    Story::new(60_000, 0).is(CauseClass::Hardware, "", 60_000);
    Story::new(600, 0).is(CauseClass::Unexplained, "", 600);
}

#[test]
fn a_limit_below_what_is_needed_is_told() {
    let usual = [OperatorFacts { name: "a".into(), usual_ns: Some(50), ..OperatorFacts::default() }];
    let way = [span(0, 1000, 1050)];
    let case = Case {
        due_ns: 1000,
        end_ns: 1050,
        limit_ns: 30,
        way: &way,
        spans: &way,
        operators: &usual,
        threads: &[ThreadFacts::default()],
        ..Case::default()
    };
    let parts = explain(&case);
    assert_eq!((parts[0].class, parts[0].took_ns, parts[0].late_ns), (CauseClass::OwnCompute, 50, 20));
    assert!(sentence("a", 0, 20, &parts).contains("as usual, and the limit leaves no more"));
}

#[test]
fn nothing_known_is_said() {
    let parts = explain(&Case { due_ns: 0, end_ns: 5_000, limit_ns: 1_000, ..Case::default() });
    assert_eq!((parts[0].class, parts[0].late_ns, parts.len()), (CauseClass::Unexplained, 4_000, 1));
    assert_eq!(sentence("a", 3, 4_000, &parts), "message 3 of a was 4 µs late; 5 µs unexplained");
}
