//! Whatever is put in, in whatever order: the parts sum to the lateness, and nothing takes longer than there
//! was time.

use onbeat_runtime::explain::{Case, EdgeFacts, OperatorFacts, Scheduling, ThreadFacts, explain, sentence};
use onbeat_trace::{Class, KernelEvent, Left, OffCpu, Span};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

fn span() -> impl Strategy<Value = Span> {
    (
        0..4u32,
        0..3u32,
        0..3u64,
        prop_oneof![Just(Span::NO_DUE), 0..3000u64],
        0..3000u64,
        0..800u64,
        0..3u32,
        0..3000u64,
    )
        .prop_map(|(operator, worker, sequence, due_ns, start_ns, ns, held_by, held_ns)| Span {
            operator,
            worker,
            sequence,
            due_ns,
            start_ns,
            end_ns: start_ns + ns,
            held_by: if held_by == 0 { 0 } else { Span::NONE },
            held_ns,
            ..Span::default()
        })
}

fn event() -> impl Strategy<Value = KernelEvent> {
    let class = select(vec![Class::Hardware, Class::Nmi, Class::Irq, Class::Softirq, Class::Thread]);
    (class, 0..2u32, 0..4i32, -1..140i32, 0..3000u64, 0..600u64).prop_map(
        |(class, cpu, pid, priority, start_ns, duration_ns)| KernelEvent {
            cpu,
            start_ns,
            duration_ns,
            class,
            name: format!("{class:?}"),
            pid,
            priority,
            depth: 0,
        },
    )
}

fn off_cpu() -> impl Strategy<Value = OffCpu> {
    let why = select(vec![Left::Taken, Left::Asleep, Left::Blocked, Left::Stopped]);
    (why, 0..4i32, 0..3000u64, 0..500u64, 0..500u64, 0..2u32, 0..2u32, any::<bool>()).prop_map(
        |(why, tid, out_ns, asleep_ns, waits_ns, from_cpu, cpu, is_open)| OffCpu {
            tid,
            is_begin_known: !is_open,
            is_end_known: out_ns % 3 > 0,
            out_ns,
            runnable_ns: if is_open { u64::MAX } else { out_ns + asleep_ns },
            in_ns: if is_open { u64::MAX } else { out_ns + asleep_ns + waits_ns },
            why,
            from_cpu,
            cpu,
            woken_by: None,
        },
    )
}

proptest! {
    #[test]
    fn parts_sum_to_the_lateness(
        spans in vec(span(), 0..8),
        way in vec(0..8usize, 0..5),
        events in vec(event(), 0..12),
        off_cpu in vec(off_cpu(), 0..6),
        (due_ns, took_ns, limit_ns) in (0..3000u64, 0..3000u64, 0..3000u64),
        usual_ns in prop_oneof![Just(None), (0..400u64).prop_map(Some)],
        scheduling in select(vec![Scheduling::Fair, Scheduling::RealTime, Scheduling::Deadline]),
        is_complete in any::<bool>(),
    ) {
        let way: Vec<Span> = way.iter().filter_map(|&at| spans.get(at)).copied().collect();
        let operators: Vec<OperatorFacts> = (0..4)
            .map(|at| OperatorFacts { name: at.to_string(), is_source: at == 0, awaits_descriptors: at == 0 && limit_ns % 2 == 0, budget_ns: None, usual_ns })
            .collect();
        let threads: Vec<ThreadFacts> =
            (0..2).map(|tid| ThreadFacts { tid: tid + 1, core: (tid == 0).then_some(0), scheduling, has_quota: tid == 1 }).collect();
        let edges = [(1, 3), (0, 3)].map(|(from, to)| EdgeFacts { name: "edge".into(), from, to, is_awaited: true });
        let case = Case {
            due_ns,
            end_ns: due_ns + took_ns,
            limit_ns,
            way: &way,
            spans: &spans,
            threads: &threads,
            operators: &operators,
            edges: &edges,
            events: &events,
            off_cpu: &off_cpu,
            is_complete,
            ..Case::default()
        };
        let parts = explain(&case);
        let late_ns = took_ns.saturating_sub(limit_ns);
        prop_assert_eq!(parts.iter().map(|part| part.late_ns).sum::<u64>(), late_ns);
        prop_assert!(parts.iter().all(|part| part.took_ns <= took_ns && part.late_ns <= part.took_ns), "{:#?}", parts);
        prop_assert!(parts.iter().map(|part| part.took_ns).sum::<u64>() <= took_ns, "{:#?}", parts);
        prop_assert!(!sentence("a", 0, late_ns, &parts).is_empty());
        prop_assert_eq!(explain(&case), parts);
    }
}
