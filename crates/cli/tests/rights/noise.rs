//! Noise and timer latency without rights, and after a killed process.

use super::harness::{Answer, until};
use super::refused::{command, reachable};
use super::{alone, has_tracefs, may, two_cores};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Runs a command through one that removes rights (`{}` is the place of our command), in a folder that all
/// users can write.
fn through(taker: &str, arguments: &str) -> Answer {
    let place = reachable();
    fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o777)).expect("our folder");
    let run = format!("{} {arguments}", command(&place));
    let file = |name: &str| fs::File::create(place.path(name)).expect("a file there");
    let mut shell = Command::new("sh");
    shell.args(["-c", &taker.replace("{}", &run)]).current_dir(place.path(""));
    let child = shell.stdout(file("stdout.txt")).stderr(file("stderr.txt")).spawn().expect("a shell");
    place.end(child)
}

const NOBODY: &str = "setpriv --reuid=65534 --regid=65534 --clear-groups {}";
const SHORT: &str = "hist -c 0 -d 200ms -T 1";

#[test]
fn nobody_gets_classes_and_the_command_that_grants_more() {
    let _alone = alone();
    if !may(&[]) || !has_tracefs() {
        return;
    }
    for kind in ["noise", "timerlat"] {
        let answer = through(NOBODY, &format!("{kind} hist -c 0 -d 200ms"));
        assert_eq!(answer.status, Some(0), "{answer:?}");
        assert!(answer.stdout.contains("count:") && answer.stdout.contains("/proc ("), "{answer:?}");
        for part in ["Permission denied", "run as root", "note: "] {
            assert!(answer.stderr.contains(part), "{part}: {answer:?}");
        }
    }
    let answer = through(NOBODY, "noise hist -c 0 -d 200ms --backend perf");
    assert_eq!((answer.status, &*answer.stdout), (Some(1), ""), "{answer:?}");
    assert!(
        answer.stderr.contains("the backend `perf` is not available: ") && answer.stderr.contains("; "),
        "{answer:?}"
    );
    // Without the right to be FIFO a timer is still measured.
    let answer = through(&format!("prlimit --rtprio=0 {NOBODY}"), "timerlat top -c 0 -d 200ms");
    assert_eq!(answer.status, Some(0), "{answer:?}");
    assert!(answer.stderr.contains("policy f:95 was asked for and not obtained"), "{answer:?}");
}

#[test]
fn without_the_capability_the_level_and_the_fix_are_named() {
    let _alone = alone();
    if !may(&[]) || !has_tracefs() {
        return;
    }
    // Root that may read tracefs, as `setcap` or a group would let somebody, but not trace.
    let taker = "setpriv --inh-caps=-perfmon,-sys_admin --bounding-set=-perfmon,-sys_admin {}";
    let answer = through(taker, &format!("noise {SHORT} --backend perf"));
    if answer.status == Some(0) {
        let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
        return eprintln!("skipped: kernel.perf_event_paranoid is {}, so everybody may trace", level.trim());
    }
    assert_eq!(answer.status, Some(1), "{answer:?}");
    for part in
        ["kernel.perf_event_paranoid is ", "CAP_PERFMON is missing", "cap_perfmon+ep", "--cap-add PERFMON"]
    {
        assert!(answer.stderr.contains(part), "{part}: {answer:?}");
    }
    let answer = through(taker, &format!("noise {SHORT}"));
    assert_eq!(answer.status, Some(0), "{answer:?}");
    // A trace instance takes no capability, but tracefs that may be written.
    let is_traced = answer.stdout.contains("(ftrace)");
    assert!(is_traced || answer.stderr.contains("cap_perfmon+ep"), "{answer:?}");
}

#[test]
fn without_tracefs_it_is_said_how_to_mount_it() {
    let _alone = alone();
    if !may(&[]) {
        return;
    }
    // Where it is not mounted nothing has to be hidden.
    let hide = "unshare --mount sh -c 'umount -l /sys/kernel/tracing 2> /dev/null; umount -l /sys/kernel/debug/tracing 2> /dev/null; \
                umount -l /sys/kernel/debug 2> /dev/null; [ ! -d /sys/kernel/tracing/events ] || exit 99; {}'";
    let answer = through(hide, &format!("noise {SHORT}"));
    if answer.status == Some(99) || answer.stderr.contains("unshare") {
        return eprintln!("skipped: tracefs cannot be hidden here: {}", answer.stderr.trim());
    }
    assert_eq!(answer.status, Some(0), "{answer:?}");
    assert!(answer.stderr.contains("mount -t tracefs none /sys/kernel/tracing"), "{answer:?}");
}

/// Simulates a kernel: files under `/proc/sys/kernel`, and whether it is a real-time kernel. It uses a mount
/// namespace that ends with its shell.
fn said_by_a_kernel(files: &[(&str, &str)], is_real_time: bool) -> String {
    let mut script = String::new();
    for (name, value) in files {
        script +=
            &format!("echo {value} > {name} && mount --bind {name} /proc/sys/kernel/{name} || exit 99; ");
    }
    // Replaces the whole folder, since files cannot be added to sysfs.
    if is_real_time {
        script += "mount -t tmpfs tmpfs /sys/kernel && echo 1 > /sys/kernel/realtime || exit 99; ";
    }
    format!("unshare --mount sh -c '{script}{{}}'")
}

#[test]
fn busy_real_time_loops_leave_a_core_or_sleep() {
    let _alone = alone();
    if !may(&["f:1"]) || !two_cores() {
        return;
    }
    let unlimited = ("sched_rt_runtime_us", "-1");
    let limited = ("sched_rt_runtime_us", "950000");
    let (old, new) = (("osrelease", "6.1.0-rt"), ("osrelease", "6.12.0-rt"));
    let no_limit = "kernel.sched_rt_runtime_us is -1, so busy real-time threads on all CPUs";
    let no_server = "(PREEMPT_RT, 6.12 or later) timers are threads of priority f:1";
    for (kernel, is_real_time, arguments, why) in [
        (&[unlimited][..], false, "hist -P f:1", Some(no_limit)),
        (&[unlimited], false, "top -P r:98", Some(no_limit)),
        (&[unlimited], false, "experiment", Some(no_limit)),
        (&[unlimited], false, "hist -P f:1 -c 1", None),
        (&[unlimited], false, "hist -P f:1 -p 20ms -r 10ms", None),
        (&[unlimited], false, "hist -P o:0", None),
        (&[limited], false, "hist -P f:1", None),
        (&[limited, new], true, "hist -P f:1", Some(no_server)),
        (&[limited, new], true, "hist -P f:1 -c 1", None),
        (&[limited, old], true, "hist -P f:1", None),
        (&[unlimited, old], true, "hist -P f:1", Some(no_limit)),
    ] {
        // If a refusal is missing, the command still ends: this kernel's own limit applies.
        let answer = through(&said_by_a_kernel(kernel, is_real_time), &format!("noise {arguments} -d 100ms"));
        if answer.status == Some(99) || answer.stderr.contains("unshare") {
            return eprintln!("skipped: {}", answer.stderr);
        }
        let case = format!("{kernel:?}, real-time {is_real_time}, {arguments}");
        let Some(why) = why else {
            assert_eq!(answer.status, Some(0), "{case}: {answer:?}");
            continue;
        };
        assert_eq!((answer.status, &*answer.stdout), (Some(1), ""), "{case}: {answer:?}");
        for part in [
            why,
            "leave a CPU out with -c, or, in `noise top` and `noise hist`, let them sleep with -r below -p",
        ] {
            assert!(answer.stderr.contains(part), "{case}, {part}: {answer:?}");
        }
    }
}

#[test]
fn a_kernel_without_the_tracer_says_so() {
    let _alone = alone();
    let tracers = fs::read_to_string("/sys/kernel/tracing/available_tracers").unwrap_or_default();
    if !may(&[]) || tracers.is_empty() || tracers.contains("osnoise") {
        return eprintln!("skipped: this kernel has the tracer, or does not say");
    }
    for arguments in [&["noise", "hist", "--backend", "tracer"][..], &["noise", "hw"]] {
        let answer = reachable().onbeat(arguments);
        assert_eq!(answer.status, Some(1), "{answer:?}");
        for part in ["no osnoise tracer", "CONFIG_OSNOISE_TRACER", "leave --backend out"] {
            assert!(answer.stderr.contains(part), "{part}: {answer:?}");
        }
    }
}

#[test]
fn the_next_one_takes_away_what_a_killed_one_left() {
    let _alone = alone();
    if !may(&[]) {
        return;
    }
    let text = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let state = || (text("/sys/kernel/tracing/current_tracer"), text("/sys/kernel/tracing/set_event"));
    let instances = |id: u32| -> Vec<String> {
        let Ok(entries) = fs::read_dir("/sys/kernel/tracing/instances") else { return Vec::new() };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter(|name| name.starts_with(&format!("onbeat-{id}-"))).collect()
    };
    let before = state();
    for kind in ["noise", "timerlat"] {
        let place = reachable();
        let child = place
            .start(&[kind, "top", "-c", "0", "--dma-latency", "0"][..if kind == "noise" { 4 } else { 6 }]);
        let id = child.id();
        let measures = || {
            let tasks = fs::read_dir(format!("/proc/{id}/task")).ok()?;
            let mut names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
            names.any(|name| name.trim() == format!("{kind}/0")).then_some(())
        };
        until("it measures", measures).expect("a thread that measures");
        let killed = Command::new("kill").args(["-KILL", &id.to_string()]).status();
        assert!(killed.is_ok_and(|status| status.success()));
        assert_eq!(place.end(child).status, None);
        let left = instances(id);
        let answer = place.onbeat(&["noise", "hist", "-c", "0", "-d", "10ms"]);
        assert_eq!(answer.status, Some(0), "{answer:?}");
        for name in &left {
            assert!(answer.stderr.contains(&format!("{name} is gone")), "{name}: {answer:?}");
        }
        assert_eq!(instances(id), Vec::<String>::new());
    }
    assert_eq!(state(), before);
}
