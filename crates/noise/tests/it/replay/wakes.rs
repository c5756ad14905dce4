//! Wake-ups and the causes of their delay.

use onbeat_noise::analysis::{Analysis, StepKind, TimerWake, analyse, analyse_by_wait};
use onbeat_trace::{Class, KernelEvent};
use proptest::prelude::*;

fn event(class: Class, name: &str, pid: i32, start_ns: u64, duration_ns: u64) -> KernelEvent {
    KernelEvent { cpu: 1, start_ns, duration_ns, class, name: name.into(), pid, priority: 120, depth: 0 }
}

fn steps(analysis: &Analysis) -> Vec<(StepKind, &str, u64)> {
    analysis.steps.iter().map(|step| (step.what, step.name.as_str(), step.ns)).collect()
}

fn wake(irq_ns: u64, thread_ns: u64, user_ns: u64) -> TimerWake {
    TimerWake { cpu: 1, due_ns: 1000, irq_ns: Some(irq_ns), thread_ns: Some(thread_ns), user_ns }
}

#[test]
fn from_an_idle_core() {
    let events = [
        event(Class::Thread, "swapper/1", 0, 500, 560),
        event(Class::Irq, "local_timer", 0, 1020, 30),
        event(Class::Softirq, "SCHED", 0, 1060, 10),
    ];
    // The idle task has [500, 1020), [1050, 1060) and [1070, 1100).
    let events =
        [KernelEvent { duration_ns: 560, ..events[0].clone() }, events[1].clone(), events[2].clone()];
    let analysis = analyse(wake(1020, 1100, 1104), &events);
    let expected = [
        (StepKind::IdleExit, "", 20),
        (StepKind::TimerIrq, "local_timer", 30),
        (StepKind::BlockingThread, "swapper/1", 40),
        (StepKind::Softirq, "SCHED", 10),
        (StepKind::Return, "", 4),
    ];
    assert_eq!(steps(&analysis), expected);
}

#[test]
fn behind_another_thread_and_an_interrupt_before() {
    let events = [
        event(Class::Irq, "disk", 0, 990, 25),
        event(Class::Irq, "local_timer", 0, 1020, 10),
        event(Class::Nmi, "nmi", 0, 1040, 5),
        // [900, 990), [1015, 1020), [1030, 1040), [1045, 1080)
        event(Class::Thread, "make", 9, 900, 140),
    ];
    let analysis = analyse(wake(1020, 1080, 1083), &events);
    let expected = [
        (StepKind::PreviousIrq, "disk", 15),
        (StepKind::HandlerDelay, "", 5),
        (StepKind::TimerIrq, "local_timer", 10),
        (StepKind::BlockingThread, "make", 45),
        (StepKind::Nmi, "nmi", 5),
        (StepKind::Return, "", 3),
    ];
    assert_eq!(steps(&analysis), expected);
}

#[test]
fn by_a_handler_that_had_begun_for_another_timer() {
    let events =
        [event(Class::Thread, "swapper/1", 0, 500, 490), event(Class::Irq, "local_timer", 0, 990, 30)];
    let analysis = analyse(wake(990, 1030, 1035), &events);
    assert_eq!(analysis.wake.irq_latency_ns(), Some(0));
    assert_eq!(
        steps(&analysis),
        [(StepKind::TimerIrq, "local_timer", 20), (StepKind::Switch, "", 10), (StepKind::Return, "", 5)]
    );
}

#[test]
fn nothing_is_made_up_where_nothing_was_seen() {
    let wake = TimerWake { cpu: 1, due_ns: 1000, irq_ns: None, thread_ns: None, user_ns: 1050 };
    assert_eq!(steps(&analyse(wake, &[])), [(StepKind::Unexplained, "", 50)]);
    assert_eq!(
        steps(&analyse_by_wait(wake, 30)),
        [(StepKind::RunQueue, "", 30), (StepKind::Unexplained, "", 20)]
    );
    assert_eq!(
        steps(&analyse_by_wait(wake, 999)),
        [(StepKind::RunQueue, "", 50), (StepKind::Unexplained, "", 0)]
    );
    assert_eq!((wake.irq_latency_ns(), wake.thread_latency_ns(), wake.user_latency_ns()), (None, None, 50));
}

proptest! {
    #[test]
    fn the_steps_sum_to_the_latency(
        irq in prop::option::of(0u64..2000), thread in prop::option::of(0u64..2000), user_ns in 1000u64..2000,
        events in prop::collection::vec((0u64..2000, 0u64..300, 0usize..4, 0i32..3), 0..20),
    ) {
        let classes = [Class::Nmi, Class::Irq, Class::Softirq, Class::Thread];
        let events: Vec<KernelEvent> = events
            .into_iter()
            .map(|(start, duration, class, pid)| event(classes[class], "x", pid, start, duration))
            .collect();
        let wake = TimerWake { cpu: 1, due_ns: 1000, irq_ns: irq, thread_ns: thread, user_ns };
        let sum: u64 = analyse(wake, &events).steps.iter().map(|step| step.ns).sum();
        prop_assert_eq!(sum, wake.user_latency_ns());
    }
}
