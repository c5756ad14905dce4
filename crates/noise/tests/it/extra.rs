//! Further kernel events: requests, refusals, and their lines.

#![allow(clippy::disallowed_macros, reason = "a test says what it skips")]

use onbeat_noise::extra::{EventRequest, Extra, TraceClock};
use onbeat_os::CoreSet;

fn event(text: &str, filter: Option<&str>, trigger: Option<&str>) -> EventRequest {
    let asked = EventRequest::parse(text).expect(text);
    EventRequest { filter: filter.map(str::to_owned), trigger: trigger.map(str::to_owned), ..asked }
}

#[test]
fn events_are_named_as_the_kernel_does() {
    for (text, system, name) in
        [("sched", "sched", None), ("sched:sched_switch", "sched", Some("sched_switch"))]
    {
        let asked = EventRequest::parse(text).expect(text);
        assert_eq!((asked.system.as_str(), asked.name.as_deref()), (system, name));
    }
    for text in ["", ":", "sched:", ":x", "../x", "sched:a/b", "a b"] {
        assert!(EventRequest::parse(text).is_err_and(|why| why.contains("SYSTEM:EVENT")), "{text}");
    }
}

#[test]
fn they_come_with_their_moments_and_are_counted() {
    let cpus: Vec<usize> = CoreSet::online().expect("CPUs").iter().collect();
    let open = |asked: &[EventRequest]| Extra::open(asked, &cpus, 1 << 20, TraceClock::Monotonic);
    let switches = |trigger| [event("sched:sched_switch", Some("prev_pid != 0"), trigger)];
    let (extra, is_counted) = match (open(&switches(Some("hist:keys=prev_comm"))), open(&switches(None))) {
        (Ok(extra), _) => (extra, true),
        (Err(error), Ok(extra)) => {
            assert!(error.to_string().contains("CONFIG_HIST_TRIGGERS"), "{error}");
            eprintln!("skipped: counts: {error}");
            (extra, false)
        }
        (_, Err(error)) => return eprintln!("skipped: {error}"),
    };
    let before_ns = onbeat_os::clock::monotonic_ns();
    for _ in 0..20 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    extra.stop().expect("it can be stopped");
    let after_ns = onbeat_os::clock::monotonic_ns();
    let lines = extra.lines().expect("lines");
    let within = |(time_ns, line): &&(u64, String)| {
        (before_ns - 1_000_000_000..=after_ns + 1000).contains(time_ns) && line.contains("sched_switch:")
    };
    assert!(lines.iter().filter(within).count() >= 20, "{} lines: {:?}", lines.len(), lines.first());
    assert!(lines.iter().all(|(_, line)| !line.contains("prev_pid=0 ")), "the filter has no effect");
    let counted = extra.counted().expect("counts");
    assert_eq!(counted.len(), usize::from(is_counted));
    for counted in counted {
        assert_eq!(counted.file, "sched_sched_switch_hist.txt");
        assert!(counted.text.contains("prev_comm"), "{}", counted.text);
    }
    drop(extra);
    for (asked, part) in [
        (event("sched:no_such_event", None, None), "has no such event"),
        (event("sched:sched_switch", Some("nothing == 7"), None), "filter `nothing == 7`"),
        (event("sched:sched_switch", None, Some("explode")), "trigger `explode`"),
        (event("sched", None, Some("stacktrace")), "not a system's"),
    ] {
        let error = open(&[asked]).expect_err(part).to_string();
        assert!(error.contains(part), "{error}");
    }
}
