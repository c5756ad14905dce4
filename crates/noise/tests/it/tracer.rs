//! Lines of the kernel's osnoise tracer, and the error without the tracer.

use onbeat_noise::tracer::{LineContext, TracerLine, line};
use onbeat_noise::{Backend, Gap};
use onbeat_trace::{Class, KernelEvent};
use proptest::prelude::*;

fn event(cpu: u32, class: Class, name: &str, pid: i32, start_ns: u64, duration_ns: u64) -> TracerLine {
    TracerLine::Event(KernelEvent {
        cpu,
        start_ns,
        duration_ns,
        class,
        name: name.into(),
        pid,
        priority: 0,
        depth: 0,
    })
}

fn latency(context: LineContext, latency_ns: u64, time_ns: u64, name: &str, pid: i32) -> TracerLine {
    TracerLine::Latency { cpu: 2, context, latency_ns, time_ns, task: (name.to_owned(), pid) }
}

#[test]
fn lines_are_understood() {
    for (text, expected) in [
        (
            "          <idle>-0       [002] d...3..   108.978323: thread_noise: swapper/2:0 start 108.978067445 duration 181162 ns",
            Some(event(2, Class::Thread, "swapper/2", 0, 108_978_067_445, 181_162)),
        ),
        (
            "       osnoise/2-180     [002] ....1    80.694952: sample_threshold: start 80.685660050 duration 9290114 ns interference 0",
            Some(TracerLine::Gap(Gap { cpu: 2, start_ns: 80_685_660_050, end_ns: 80_694_950_164 })),
        ),
        (" a [9]: b-7 [001] d.h.. 5.000001: softirq_noise:   RCU:9 start 5.000000001 duration 12 ns", None),
        (
            "  osnoise/1-7 [001] d.h.. 5.000001: softirq_noise:     RCU:9 start 5.000000001 duration 12 ns",
            Some(event(1, Class::Softirq, "RCU", 0, 5_000_000_001, 12)),
        ),
        (
            "  osnoise/1-7 [001] d.h.. 5.000001: irq_noise: virtio1-req.0:36 start 5.000000001 duration 12 ns",
            Some(event(1, Class::Irq, "virtio1-req.0", 0, 5_000_000_001, 12)),
        ),
        (
            "  osnoise/1-7 [001] d.h.. 5.000001: nmi_noise: start 5.000000001 duration 12 ns",
            Some(event(1, Class::Nmi, "nmi", 0, 5_000_000_001, 12)),
        ),
        (
            "  osnoise/1-7 [001] d.h.. 5.000001: thread_noise: a start b:c:41 start 5.000000001 duration 12 ns",
            None,
        ),
        (
            "         osnoise/0-1167    [000] .......  1757.549000:    1000000          190  99.98100                9     18      0   1007     18      1",
            Some(TracerLine::Period { cpu: 0, runtime_ns: 1_000_000_000, noise_ns: 190_000 }),
        ),
        ("       osnoise/2-180     [002] ....1    80.695094: osnoise_main: stop tracing hit on cpu 2", None),
        ("CPU:1 [LOST 5 EVENTS]", Some(TracerLine::Lost { cpu: 1, count: 5 })),
        (
            "          <idle>-0       [002] d..h1..   108.978075: #1569  context    irq timer_latency    125270 ns",
            Some(latency(LineContext::Irq, 125_270, 108_978_075_000, "<idle>", 0)),
        ),
        (
            "      timerlat/2-191     [002] .......   108.978350: #1569  context thread timer_latency    406060 ns",
            Some(latency(LineContext::Thread, 406_060, 108_978_350_000, "timerlat/2", 191)),
        ),
        (
            "        a-b [1]-7        [002] .......   108.978350: #9  context user-ret timer_latency    7 ns",
            Some(latency(LineContext::User, 7, 108_978_350_000, "a-b [1]", 7)),
        ),
        (
            "          <idle>-0       [002] d..h1..   108.978075: #1569  context    else timer_latency    1 ns",
            None,
        ),
        (
            "          <idle>-0       [003] d..h1..   108.978075: <stack trace>",
            Some(TracerLine::Stack { cpu: 3 }),
        ),
        (" => __hrtimer_run_queues", Some(TracerLine::Frame("__hrtimer_run_queues".into()))),
        ("", None),
    ] {
        if let Some(expected) = expected {
            assert_eq!(line(text), Some(expected), "{text}");
        } else {
            // A malformed line may be skipped, but must not be taken for another kind.
            assert!(!matches!(line(text), Some(TracerLine::Gap(_) | TracerLine::Period { .. })), "{text}");
        }
    }
}

#[test]
fn a_kernel_without_it_says_what_to_do() {
    struct Nobody;
    impl onbeat_noise::Observer<onbeat_noise::CpuNoise> for Nobody {
        fn at(&mut self, _: &dyn Fn() -> Vec<onbeat_noise::CpuNoise>, _: u64) {}
        fn is_stopped(&self) -> bool {
            true
        }
    }
    let settings = onbeat_noise::NoiseSettings { backend: Backend::Tracer, ..Default::default() };
    // If the kernel has the tracer, this is a short measurement.
    if let Err(error) = onbeat_noise::measure(&settings, &mut Nobody) {
        let error = error.to_string();
        assert!(
            error.starts_with("the backend `tracer` is not available: ") && error.contains("; "),
            "{error}"
        );
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_fall(text in ".{0,120}", body in "[a-z_: .0-9\\[\\]-]{0,120}") {
        let _ = line(&text);
        let _ = line(&format!("x-1 [001] d..  1.0: {body}"));
    }
}
