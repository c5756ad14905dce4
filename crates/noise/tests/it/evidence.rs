//! Kernel events for questions after the fact.

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
    // A new thread has its creator's name until it sets its own; and some kernels omit some events.
    let own =
        |class| events.iter().filter(|event| event.pid == pid && event.class == class).collect::<Vec<_>>();
    let turns = own(Class::Thread);
    assert!(turns.iter().filter(|turn| turn.name == "wanted").count() >= 5, "{events:?}");
    // Each sleep ends with a wake-up, which precedes the switch.
    let wakes = own(Class::Wakeup);
    assert!(wakes.len() >= 5 && wakes.iter().all(|wake| wake.duration_ns == 0), "{events:?}");
    let waits = |wake: &&&KernelEvent| turns.iter().any(|turn| turn.start_ns >= wake.start_ns);
    assert!(wakes.iter().filter(waits).count() >= 5, "{events:?}");
    assert!(events.is_sorted_by_key(|event| event.start_ns));
    assert!(events.iter().all(|event| event.cpu == core as u32 && event.start_ns <= end_ns));
    assert_eq!(evidence.lost(), 0);
    assert!(evidence.events(core as u32, end_ns + 1_000_000_000..end_ns + 2_000_000_000).is_empty());
    assert!(evidence.events(8191, 0..u64::MAX).is_empty(), "it has no events of other cores");
}

/// Written pages count as the process's own once they are present; pages that are only read may not.
#[test]
fn page_faults_of_a_followed_thread_are_told_with_what_they_took() {
    const PAGE: usize = 4096;
    const PAGES: usize = 32;
    let core = thread::cores().unwrap().iter().next().unwrap();
    let mut evidence = match TracepointEvidence::open(&[core], 1 << 20, Extent::Cores) {
        Ok(evidence) => evidence,
        Err(refused) => return eprintln!("skipped: {}; {}", refused.why, refused.fix),
    };
    let (told, waits) = std::sync::mpsc::channel();
    let (go, begins) = std::sync::mpsc::channel();
    let touches = thread::spawn("touches", move || {
        told.send(thread::current_id()).unwrap();
        begins.recv().unwrap();
        // More than the allocator keeps: these pages have never been present.
        let mut memory = vec![0u8; 64 << 20];
        let begin_ns = clock::monotonic_ns();
        memory.iter_mut().step_by(PAGE).take(PAGES).for_each(|byte| *byte = std::hint::black_box(1));
        begin_ns..clock::monotonic_ns()
    });
    let tid = waits.recv().unwrap();
    evidence.follow(&[tid]);
    go.send(()).unwrap();
    let at = touches.unwrap().join().unwrap();
    Evidence::drain(&mut evidence);
    let faults = evidence.page_faults(at.clone());
    if faults.is_empty() {
        return eprintln!("skipped: this kernel reports no page faults");
    }
    assert!(faults.iter().all(|fault| fault.tid == tid && at.contains(&fault.at_ns)), "{faults:?}");
    assert!(faults.is_sorted_by_key(|fault| fault.at_ns));
    // With large pages, one fault covers many.
    assert!(faults.len() <= PAGES + 2, "{faults:?}");
    let took_ns: u64 = faults.iter().filter_map(|fault| fault.took_ns).sum();
    assert!(took_ns <= at.end - at.start, "no two overlap: {faults:?}");
    let told = faults.iter().filter(|fault| fault.took_ns.is_some()).count();
    // Before 6.2 the kernel reported each 64th.
    if told <= 1 && faults.len() > PAGES / 2 {
        return eprintln!("skipped: this kernel does not report the end of a page fault");
    }
    assert!(told * 2 > faults.len(), "{faults:?}");
}
