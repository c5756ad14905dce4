//! Rings of tracepoints, on this kernel.

#![allow(clippy::disallowed_macros, reason = "a test says what it skips")]

use onbeat_os::perf::PerfRing;
use onbeat_os::tracefs::Tracefs;
use onbeat_os::{CoreSet, clock, thread};

/// Two tracepoints that every kernel has: switches, and the numbers of softirqs.
fn open(cpu: usize) -> Option<(PerfRing, u64)> {
    let opened = Tracefs::find().and_then(|tracefs| {
        let switch = tracefs.format("sched", "sched_switch")?.ok_or(std::io::ErrorKind::NotFound)?;
        let softirq = tracefs.format("irq", "softirq_entry")?.ok_or(std::io::ErrorKind::NotFound)?;
        Ok((PerfRing::open(cpu, &[switch.id, softirq.id], 1 << 20)?, switch.id))
    });
    match opened {
        Ok((opened, id)) => {
            assert!(opened.refused.is_empty(), "{:?}", opened.refused);
            Some((opened.ring, id))
        }
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

/// Type, time and tracepoint of each record.
fn records(bytes: &[u8]) -> Vec<(u32, u64, u16)> {
    let mut found = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let kind = u32::from_ne_bytes(rest[0..4].try_into().unwrap());
        let size = usize::from(u16::from_ne_bytes(rest[6..8].try_into().unwrap()));
        assert!(size >= 8 && size <= rest.len(), "a whole record, {size} of {}", rest.len());
        if kind == 9 {
            let time_ns = u64::from_ne_bytes(rest[16..24].try_into().unwrap());
            found.push((kind, time_ns, u16::from_ne_bytes(rest[28..30].try_into().unwrap())));
        }
        rest = &rest[size..];
    }
    found
}

fn sleeper_on(cpu: usize) {
    let core = CoreSet::from_cores([cpu]).unwrap();
    let sleeper = thread::spawn("sleeper", move || {
        thread::set_cores(&core).unwrap();
        for _ in 0..50 {
            clock::sleep_until(clock::monotonic_ns() + 100_000);
        }
    });
    sleeper.unwrap().join().unwrap();
}

#[test]
fn switches_are_seen_on_our_clock_between_enable_and_disable() {
    let cpu = thread::cores().unwrap().iter().next().unwrap();
    let Some((mut ring, switch)) = open(cpu) else { return };
    assert_eq!((ring.cpu(), ring.bytes()), (cpu, 1 << 20));
    let mut bytes = Vec::new();
    sleeper_on(cpu);
    assert_eq!(ring.drain(&mut bytes), 0, "not enabled yet");
    let before_ns = clock::monotonic_ns();
    ring.enable().unwrap();
    sleeper_on(cpu);
    ring.disable().unwrap();
    let after_ns = clock::monotonic_ns();
    assert_eq!(ring.drain(&mut bytes), bytes.len());
    let records = records(&bytes);
    let switches = records.iter().filter(|(.., id)| u64::from(*id) == switch).count();
    assert!(switches >= 50, "{switches}");
    assert!(records.iter().all(|(_, time_ns, _)| (before_ns..=after_ns).contains(time_ns)));
    sleeper_on(cpu);
    assert_eq!(ring.drain(&mut bytes), 0, "disabled");
}

#[test]
fn a_ring_goes_round() {
    let cpu = thread::cores().unwrap().iter().next().unwrap();
    let Some((mut ring, _)) = open(cpu) else { return };
    ring.enable().unwrap();
    let (mut all, mut last_ns) = (0, 0);
    // Several times as much as fits.
    for _ in 0..4000 {
        let mut bytes = Vec::new();
        sleeper_on(cpu);
        all += ring.drain(&mut bytes);
        for (_, time_ns, _) in records(&bytes) {
            assert!(time_ns + 1_000_000 > last_ns, "times do not jump back");
            last_ns = time_ns;
        }
        if all > 3 * ring.bytes() {
            return;
        }
    }
    eprintln!("skipped: {all} bytes only");
}

#[test]
fn a_core_that_is_not_there_is_an_error() {
    let Some((ring, switch)) = open(0) else { return };
    drop(ring);
    assert!(PerfRing::open(8191, &[switch], 1 << 20).is_err());
}
