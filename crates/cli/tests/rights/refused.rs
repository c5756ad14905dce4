//! Every way in which the kernel refuses: what is said, what would grant it, and the exit status, with `strict` and without.

use super::harness::Place;
use super::{alone, may, place, record, shown};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// Runs the pipeline with and without `strict`, through a command that takes rights away (`{}` is where the command goes).
fn refused(place: &Place, through: &str, settings: &[&str], parts: &[&str]) {
    // Somebody else must be able to read and write there.
    let everybody = fs::Permissions::from_mode(0o777);
    fs::set_permissions(place.path(""), everybody).expect("our folder");
    for strict in [false, true] {
        let own = place.path(if strict { "strict" } else { "loose" });
        let mut run = format!("{} run pools.toml --set output=out", command(place));
        for setting in settings {
            run += &format!(" --set '{setting}'");
        }
        if strict {
            run += " --strict";
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", &through.replace("{}", &run)]).current_dir(place.path(""));
        let _ = fs::remove_dir_all(place.path("out"));
        let file = |name: &str| fs::File::create(place.path(name)).expect("a file there");
        let child = shell.stdout(file("stdout.txt")).stderr(file("stderr.txt")).spawn().expect("a shell");
        let answer = place.end(child);
        let said = shown(&answer);
        assert_eq!(answer.status, Some(i32::from(strict)), "{own:?}: {said}");
        for part in parts {
            assert!(answer.stderr.contains(part), "strict {strict}: {part}: {said}");
        }
        assert_eq!(answer.stderr.contains("strict: "), strict, "{said}");
        if strict {
            assert!(!answer.stdout.contains("ended after"), "{answer:?}");
            continue;
        }
        let record = record(place, "pools");
        assert_eq!(record["edges"][0]["received"], 3, "the run went on");
        let settings = record["obtained"].as_array().expect("a list");
        let missing: Vec<_> =
            settings.iter().filter(|setting| setting["asked"] != setting["obtained"]).collect();
        assert_eq!(missing.len(), 1, "{missing:?}");
        let reason = missing[0]["reason"].as_str().expect("a reason");
        assert!(parts.iter().all(|part| reason.contains(part)), "{reason}");
        assert!(answer.stdout.contains("not obtained"), "the table says it too: {answer:?}");
    }
}

#[test]
fn somebody_without_rights() {
    let _alone = alone();
    if !may(&[]) {
        return;
    }
    let parts = [
        "priority 80 is above the limit RLIMIT_RTPRIO, which is 0, and the capability CAP_SYS_NICE is missing",
        "sudo prlimit --pid $$ --rtprio=80",
        "setcap cap_sys_nice,cap_ipc_lock+ep",
        "in a container: --ulimit rtprio=80 --cap-add SYS_NICE",
        "as a service: LimitRTPRIO=80",
    ];
    refused(
        &reachable(),
        "prlimit --rtprio=0 setpriv --reuid=65534 --regid=65534 --clear-groups {}",
        &["pool.radio.policy=f:80"],
        &parts,
    );
}

#[test]
fn a_limit_of_ten() {
    let _alone = alone();
    if !may(&[]) {
        return;
    }
    let raised = Command::new("prlimit").args(["--rtprio=10", "true"]).status();
    if !raised.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: the limit RLIMIT_RTPRIO cannot be raised to 10 here (CAP_SYS_RESOURCE)");
    }
    let through = "prlimit --rtprio=10 setpriv --reuid=65534 --regid=65534 --clear-groups {}";
    let parts =
        ["priority 11 is above the limit RLIMIT_RTPRIO, which is 10", "or ask for a priority up to 10"];
    refused(&reachable(), through, &["pool.radio.policy=f:11"], &parts);
    // Up to it, it is granted.
    let place = reachable();
    fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o777)).expect("our folder");
    let run = format!("{} run pools.toml --strict --quiet --set pool.radio.policy=r:10", command(&place));
    let status =
        Command::new("sh").args(["-c", &through.replace("{}", &run)]).current_dir(place.path("")).status();
    assert!(status.expect("a shell").success());
}

#[test]
fn a_group_without_real_time() {
    let _alone = alone();
    let parent = PathBuf::from("/sys/fs/cgroup/cpu");
    if !may(&["f:1"]) {
        return;
    }
    if !parent.join("cpu.rt_runtime_us").exists() {
        return eprintln!("skipped: this machine has no control groups with real-time run time");
    }
    let group = parent.join(format!("onbeat-test-{}", std::process::id()));
    if let Err(error) = fs::create_dir(&group) {
        return eprintln!("skipped: no control group can be made here: {error}");
    }
    let through = format!("echo $$ > {}/cgroup.procs && exec {{}}", group.display());
    let parts = [
        "has no real-time run time (cpu.rt_runtime_us is 0)",
        "cpu.rt_runtime_us; or boot with rt_group_sched=0",
        "in a container: --cpu-rt-runtime=",
        "as a service: ExecStartPre=",
    ];
    let ran = std::panic::catch_unwind(|| refused(&place(), &through, &["pool.radio.policy=f:5"], &parts));
    fs::remove_dir(&group).expect("nobody is left in it");
    ran.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

#[test]
fn a_deadline_on_some_cores() {
    let _alone = alone();
    if !may(&["d:1ms:100ms"]) || !super::two_cores() {
        return;
    }
    let parts = [
        "a SCHED_DEADLINE thread may not be bound to a part of its root domain",
        "name no `cores` for its pool",
        "in a container: no --cpuset-cpus",
        "as a service: no CPUAffinity=",
    ];
    refused(&place(), "{}", &["pool.radio.policy=d:1ms:100ms", "pool.radio.cores=[1]"], &parts);
}

#[test]
fn a_deadline_beyond_the_bandwidth() {
    let _alone = alone();
    if !may(&["d:1ms:100ms"]) {
        return;
    }
    let limit = fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").unwrap_or_default();
    if limit.trim() != "950000" {
        return eprintln!("skipped: kernel.sched_rt_runtime_us is {}, not 950000", limit.trim());
    }
    let cores = onbeat_os::CoreSet::online().expect("cores").len();
    let place = place();
    // One thread may have no more than a core has, and all together no more than all have.
    let numbers: String = (0..=cores).map(|number| format!("\"n{number}\",")).collect();
    let mut text = "name = \"pools\"\nscheduler = \"custom\"\n".to_string();
    text += &format!(
        "[[pool]]\nname = \"radio\"\nworkers = {}\npolicy = \"d:99ms:100ms\"\noperators = [{numbers}]\n",
        cores + 1
    );
    for number in 0..=cores {
        text += &format!("[[operator]]\nname = \"n{number}\"\nkind = \"counter\"\ncount = 3\n");
        text += &format!("[[operator]]\nname = \"e{number}\"\nkind = \"count.sink\"\n");
        text += &format!("[[edge]]\nfrom = \"n{number}\"\nto = \"e{number}\"\n");
    }
    fs::write(place.path("pools.toml"), text).expect("a file");
    let loose = place.onbeat(&["run", "pools.toml"]);
    assert_eq!(loose.status, Some(0), "{}", shown(&loose));
    let strict = place.onbeat(&["run", "pools.toml", "--strict"]);
    assert_eq!(strict.status, Some(1), "{}", shown(&strict));
    for part in [
        "not enough bandwidth (EBUSY): d:99ms:100ms asks for 99 % of a core",
        "may have 95 % of each of",
        "sudo sysctl kernel.sched_rt_runtime_us=",
        "in a container: none",
    ] {
        assert!(loose.stderr.contains(part), "{part}: {}", shown(&loose));
        assert!(strict.stderr.contains(part), "{part}: {}", shown(&strict));
    }
}

/// What cannot be is an error in any case.
#[test]
fn a_deadline_in_the_wrong_order() {
    let place = place();
    for strict in [&["--strict"][..], &[]] {
        let mut arguments = vec!["run", "pools.toml", "--set", "pool.radio.policy=d:16ms:2ms:1ms"];
        arguments.extend(strict);
        let answer = place.onbeat(&arguments);
        assert_eq!(
            shown(&answer),
            "exit status Some(1)\n--set pool.radio.policy=d:16ms:2ms:1ms: `policy` of pool `radio`: policy `d:16ms:2ms:1ms`: \
             the run time must be at most the deadline, and that at most the period; in this order it is d:1ms:2ms:16ms\n    \
             1 | pool.radio.policy=d:16ms:2ms:1ms\n      |                   ^^^^^^^^^^^^^^\n"
        );
    }
}

#[test]
fn a_limit_on_locked_memory() {
    let _alone = alone();
    if !may(&[]) {
        return;
    }
    let parts = [
        "the limit on locked memory (RLIMIT_MEMLOCK) is 65536 bytes, and the capability CAP_IPC_LOCK is missing",
        "sudo prlimit --pid $$ --memlock=unlimited",
        "in a container: --ulimit memlock=-1 --cap-add IPC_LOCK",
        "as a service: LimitMEMLOCK=infinity",
    ];
    let through = "prlimit --memlock=65536 setpriv --reuid=65534 --regid=65534 --clear-groups {}";
    refused(&reachable(), through, &["lock_memory=true"], &parts);
}

#[test]
fn a_filter_of_system_calls() {
    let _alone = alone();
    if !may(&["f:1"]) {
        return;
    }
    if !cfg!(target_arch = "x86_64") {
        return eprintln!("skipped: the filter of this test is for x86-64");
    }
    let place = place();
    // Loads the number of the call; 314 is sched_setattr: EPERM; else it is allowed.
    let filter = r#"
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
code = b"".join(struct.pack("HBBI", *i) for i in [(0x20, 0, 0, 0), (0x15, 0, 1, 314), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7fff0000)])
memory = ctypes.create_string_buffer(code)
program = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(memory))
program = ctypes.create_string_buffer(program)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
    sys.exit("no filter: " + os.strerror(ctypes.get_errno()))
os.execv(sys.argv[1], sys.argv[1:])
"#;
    fs::write(place.path("filter.py"), filter).expect("a file");
    let works = Command::new("python3").args(["filter.py", "/bin/true"]).current_dir(place.path("")).status();
    if !works.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: no filter of system calls can be set here (with python3)");
    }
    let parts = [
        "a filter of system calls (seccomp) forbids sched_setattr",
        "allow sched_setattr",
        "in a container: --security-opt seccomp=",
        "as a service: SystemCallFilter=@resources",
    ];
    refused(&place, "python3 filter.py {}", &["pool.radio.policy=f:5"], &parts);
}

/// With a copy of the command, where somebody without rights can come to it.
fn reachable() -> Place {
    let place = place();
    fs::copy(env!("CARGO_BIN_EXE_onbeat"), place.path("onbeat")).expect("a copy");
    place
}

/// The command, or the copy that is there.
fn command(place: &Place) -> String {
    let copy = place.path("onbeat");
    if copy.exists() { copy.display().to_string() } else { env!("CARGO_BIN_EXE_onbeat").to_string() }
}
