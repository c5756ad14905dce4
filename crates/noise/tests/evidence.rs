//! Kernel events for whoever asks after the fact.

#![allow(clippy::disallowed_macros, reason = "a test says what it skips")]

use onbeat_noise::TracepointEvidence;
use onbeat_noise::decode::Extent;
use onbeat_os::{CoreSet, clock, thread};
use onbeat_trace::{Class, Evidence, KernelEvent};

#[test]
fn a_thread_that_ran_is_found_by_its_name() {
    let core = thread::cores().unwrap().iter().next().unwrap();
    let mut evidence = match TracepointEvidence::open(&[core], 1 << 20, Extent::Threads) {
        Ok(evidence) => evidence,
        Err(refused) => return eprintln!("skipped: {}; {}", refused.why, refused.fix),
    };
    assert!(["ftrace", "perf"].contains(&evidence.source()));
    let begin_ns = clock::monotonic_ns();
    let cores = CoreSet::from_cores([core]).unwrap();
    let ran = thread::spawn("wanted", move || {
        thread::set_cores(&cores).unwrap();
        for _ in 0..20 {
            clock::sleep_until(clock::monotonic_ns() + 200_000);
        }
        thread::current_id()
    });
    let pid = ran.unwrap().join().unwrap();
    let end_ns = clock::monotonic_ns();
    let events = evidence.events(core as u32, begin_ns..end_ns);
    // It has the name of the one who made it until it gives itself its own; and some kernels leave some out.
    let own =
        |class| events.iter().filter(|event| event.pid == pid && event.class == class).collect::<Vec<_>>();
    let turns = own(Class::Thread);
    assert!(turns.iter().filter(|turn| turn.name == "wanted").count() >= 5, "{events:?}");
    // Each sleep ends with a wake-up, which comes before the turn.
    let wakes = own(Class::Wakeup);
    assert!(wakes.len() >= 5 && wakes.iter().all(|wake| wake.duration_ns == 0), "{events:?}");
    let waits = |wake: &&&KernelEvent| turns.iter().any(|turn| turn.start_ns >= wake.start_ns);
    assert!(wakes.iter().filter(waits).count() >= 5, "{events:?}");
    assert!(events.is_sorted_by_key(|event| event.start_ns));
    assert!(events.iter().all(|event| event.cpu == core as u32 && event.start_ns <= end_ns));
    assert_eq!(evidence.lost(), 0);
    assert!(evidence.events(core as u32, end_ns + 1_000_000_000..end_ns + 2_000_000_000).is_empty());
    assert!(evidence.events(8191, 0..u64::MAX).is_empty(), "of other cores it knows nothing");
}
