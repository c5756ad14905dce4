//! A trace instance of our own, on this kernel.

#![allow(clippy::disallowed_macros, reason = "a test says what it skips")]

use onbeat_os::ftrace::Instance;
use onbeat_os::tracefs::Tracefs;
use onbeat_os::{CoreSet, clock, thread};

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
fn pages_come_on_our_clock_and_the_folder_goes_again() {
    let cpu = thread::cores().unwrap().iter().next().unwrap();
    let made = Tracefs::find().and_then(|tracefs| {
        Instance::open(&tracefs, &[("sched", "sched_switch"), ("sched", "no_such_event")], &[cpu], |_| {
            1 << 20
        })
    });
    let mut made = match made {
        Ok(made) => made,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    let refused: Vec<usize> = made.refused.iter().map(|(at, _)| *at).collect();
    assert_eq!(refused, [1]);
    assert!(made.refused[0].1.to_string().contains("no_such_event"), "{:?}", made.refused);
    let (instance, mut bytes) = (&mut made.instance, Vec::new());
    let folder = instance.folder().to_owned();
    sleeper_on(cpu);
    assert_eq!(instance.drain(0, &mut bytes), 0, "not enabled yet");
    let before_ns = clock::monotonic_ns();
    instance.enable().unwrap();
    sleeper_on(cpu);
    instance.disable().unwrap();
    let after_ns = clock::monotonic_ns();
    assert_eq!(instance.drain(0, &mut bytes), bytes.len());
    let page_bytes = instance.pages().page_bytes;
    assert!(!bytes.is_empty() && bytes.len().is_multiple_of(page_bytes), "{}", bytes.len());
    for page in bytes.chunks(page_bytes) {
        let time_ns = u64::from_ne_bytes(page[..8].try_into().unwrap());
        assert!((before_ns..=after_ns).contains(&time_ns), "{before_ns} <= {time_ns} <= {after_ns}");
    }
    sleeper_on(cpu);
    assert_eq!(instance.drain(0, &mut bytes), 0, "disabled");
    assert!(folder.exists());
    drop(made);
    assert!(!folder.exists(), "{} is left", folder.display());
}

#[test]
fn without_tracefs_there_is_none() {
    let folder = std::env::temp_dir().join(format!("onbeat-no-tracefs-{}", std::process::id()));
    let error = Instance::open(&Tracefs::at(&folder), &[], &[0], |_| 1 << 20).unwrap_err();
    assert!(error.to_string().contains("header_page"), "{error}");
}
