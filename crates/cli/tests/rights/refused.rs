//! All refusals of the kernel: message, fix and exit status, with and without `strict`.

use super::harness::{Answer, Place};
use super::{alone, may, place, record, shown, two_cores};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// Runs the pipeline with and without `strict`, through a command that removes rights (`{}` is the place of
/// our command). Compares the output and the exit status with the snapshot of that name. Differences between
/// machines are hidden.
fn refused(name: &str, place: &Place, through: &str, settings: &[&str], hidden: &[(&str, &str)]) {
    // Somebody else must be able to read and write there.
    let everybody = fs::Permissions::from_mode(0o777);
    fs::set_permissions(place.path(""), everybody).expect("our folder");
    let mut all = String::new();
    for strict in [false, true] {
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
        all += &format!("{}\n{}\n", if strict { "--strict" } else { "not strict" }, shown(&answer));
        if strict {
            assert!(answer.stdout.is_empty() || answer.stdout.contains("failed after 0 ns"), "{answer:?}");
        } else {
            everywhere(place, &answer);
        }
    }
    for (text, instead) in hidden {
        all = all.replace(text, instead);
    }
    insta::assert_snapshot!(name, all);
}

/// A setting that is not obtained is in the record with its reason, in the table, and on stderr.
fn everywhere(place: &Place, answer: &Answer) {
    let record = record(place, "pools");
    assert!(record["edges"][0]["received"].as_u64() >= Some(3), "the run went on");
    let settings = record["obtained"].as_array().expect("a list");
    let missing: Vec<_> = settings.iter().filter(|setting| setting["asked"] != setting["obtained"]).collect();
    assert!(!missing.is_empty(), "{settings:?}");
    for setting in missing {
        let reason = setting["reason"].as_str().expect("a reason");
        assert!(answer.stderr.contains(reason), "{reason}: {answer:?}");
        assert!(answer.stdout.contains(reason), "{reason}: {answer:?}");
    }
}

/// Runs a command as an unprivileged user.
const NOBODY: &str = "setpriv --reuid=65534 --regid=65534 --clear-groups {}";

#[test]
fn somebody_without_rights() {
    let _alone = alone();
    if may(&[]) {
        let through = format!("prlimit --rtprio=0 {NOBODY}");
        refused("no_right_to_fifo", &reachable(), &through, &["pool.radio.policy=f:80"], &[]);
        refused("no_right_to_deadline", &reachable(), &through, &["pool.radio.policy=d:1ms:10ms"], &[]);
        refused("no_right_to_niceness", &reachable(), &through, &["pool.radio.policy=o:-5"], &[]);
    }
}

/// As in a rootless container: capabilities exist, but have no effect.
#[test]
fn root_of_a_user_namespace() {
    let _alone = alone();
    if !may(&[]) {
        return;
    }
    let made = Command::new("unshare").args(["--user", "--map-root-user", "true"]).status();
    if !made.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: no user namespace can be made here");
    }
    let through = "prlimit --rtprio=0 --memlock=65536 unshare --user --map-root-user {}";
    let settings = ["pool.radio.policy=f:80", "lock_memory=true"];
    refused("user_namespace", &place(), through, &settings, &[]);
}

#[test]
fn a_limit_of_ten() {
    let _alone = alone();
    if !may(&[]) {
        return;
    }
    // A hard limit is raised by CAP_SYS_RESOURCE of the first user namespace only: root without it cannot,
    // and no namespace helps.
    let raised = Command::new("prlimit").args(["--rtprio=10:10", "true"]).output().expect("prlimit");
    if !raised.status.success() {
        let limit = hard_limit("Max realtime priority");
        let why = String::from_utf8_lossy(&raised.stderr).trim().to_string();
        return eprintln!(
            "skipped: the hard limit RLIMIT_RTPRIO is {limit}, and raising it to 10 needs the capability CAP_SYS_RESOURCE, which \
             this process has not: {why}"
        );
    }
    let through = format!("prlimit --rtprio=10:10 {NOBODY}");
    refused("limit_of_ten", &reachable(), &through, &["pool.radio.policy=f:11"], &[]);
    // Up to it, it is granted.
    let place = reachable();
    fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o777)).expect("our folder");
    let run = format!("{} run pools.toml --strict --quiet --set pool.radio.policy=r:10", command(&place));
    let status =
        Command::new("sh").args(["-c", &through.replace("{}", &run)]).current_dir(place.path("")).status();
    assert!(status.expect("a shell").success());
}

/// Returns a limit of this process from `/proc`.
fn hard_limit(name: &str) -> String {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().nth(1).unwrap_or("unknown").to_string()
}

#[test]
fn a_group_without_real_time() {
    let _alone = alone();
    let parent = PathBuf::from("/sys/fs/cgroup/cpu");
    if !may(&["f:1"]) {
        return;
    }
    if !parent.join("cpu.rt_runtime_us").exists() {
        return eprintln!(
            "skipped: {} has no cpu.rt_runtime_us: a kernel without CONFIG_RT_GROUP_SCHED, or control groups of version 2",
            parent.display()
        );
    }
    let group = parent.join(format!("onbeat-test-{}", std::process::id()));
    if let Err(error) = fs::create_dir(&group) {
        return eprintln!("skipped: no control group can be made here: {error}");
    }
    let shown = group.display().to_string();
    let through = format!("echo $$ > {shown}/cgroup.procs && exec {{}}");
    let ran = std::panic::catch_unwind(|| {
        let place = place();
        refused(
            "group_without_real_time",
            &place,
            &through,
            &["pool.radio.policy=f:5"],
            &[(&shown, "GROUP")],
        );
        // And what it says would grant it does.
        if let Err(error) = fs::write(group.join("cpu.rt_runtime_us"), "400000") {
            return eprintln!("skipped: the group with real-time run time: {error}");
        }
        let run = format!("{} run pools.toml --strict --quiet --set pool.radio.policy=f:5", command(&place));
        let mut shell = Command::new("sh");
        shell.args(["-c", &through.replace("{}", &run)]).current_dir(place.path(""));
        assert!(shell.status().expect("a shell").success());
    });
    fs::remove_dir(&group).expect("nobody is left in it");
    ran.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

#[test]
fn a_deadline_on_some_cores() {
    let _alone = alone();
    if !may(&["d:1ms:100ms"]) || !two_cores() {
        return;
    }
    let online = format!("of {}", onbeat_os::CoreSet::online().expect("cores"));
    let settings = ["pool.radio.policy=d:1ms:100ms", "pool.radio.cores=[1]"];
    refused("deadline_on_some_cores", &place(), "{}", &settings, &[(&online, "of ALL")]);
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
    // One thread may have no more than a core has, and all together no more than all have: these are too many
    // by a little.
    let cores = onbeat_os::CoreSet::online().expect("cores").len();
    let pools: Vec<usize> = (0..=cores).collect();
    let mut text = "name = \"pools\"\nscheduler = \"custom\"\n".to_string();
    for number in pools {
        text += &format!(
            "[[pool]]\nname = \"p{number}\"\npolicy = \"d:94ms:100ms\"\noperators = [\"n{number}\", \"e{number}\"]\n\
             [[operator]]\nname = \"n{number}\"\nkind = \"counter\"\ncount = 3\n\
             [[operator]]\nname = \"e{number}\"\nkind = \"count.sink\"\n\
             [[edge]]\nfrom = \"n{number}\"\nto = \"e{number}\"\n"
        );
    }
    let place = place();
    fs::write(place.path("pools.toml"), text).expect("a file");
    // Which one comes last, nobody knows.
    let names: Vec<String> = (0..=cores).map(|number| format!("policy of p{number}:")).collect();
    let mut hidden: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "policy of ONE:")).collect();
    let number = format!("each of {cores} cores");
    hidden.push((&number, "each of ALL cores"));
    refused("deadline_beyond_the_bandwidth", &place, "{}", &[], &hidden);
}

/// Impossible settings are errors in any case.
#[test]
fn what_cannot_be() {
    let place = place();
    let mut all = String::new();
    for setting in [
        "pool.radio.policy=d:16ms:2ms:1ms",
        "pool.radio.policy=d:3ms:2ms",
        "pool.radio.policy=f:99",
        "pool.radio.policy=f:0",
        "pool.radio.policy=fifo",
        "pool.radio.cores=[4096]",
        "house_keeping=[4096]",
    ] {
        for strict in [&["--strict"][..], &[]] {
            let mut arguments = vec!["run", "pools.toml", "--set", setting];
            arguments.extend(strict);
            let answer = place.onbeat(&arguments);
            let has = onbeat_os::CoreSet::online().expect("cores");
            all += &shown(&answer).replace(&format!("it has {has}"), "it has THESE");
        }
    }
    insta::assert_snapshot!("what_cannot_be", all);
}

#[test]
fn a_limit_on_locked_memory() {
    let _alone = alone();
    if !may(&[]) {
        return;
    }
    let through = format!("prlimit --memlock=65536 {NOBODY}");
    refused("limit_on_locked_memory", &reachable(), &through, &["lock_memory=true"], &[]);
    // Enough for what there is at the start, and not for whatever may come.
    let raised =
        Command::new("prlimit").args(["--memlock=4294967296:4294967296", "true"]).output().expect("prlimit");
    if !raised.status.success() {
        return eprintln!(
            "skipped: a limit of 4 GiB: the hard one is {} bytes, and raising it needs the capability CAP_SYS_RESOURCE, which this \
             process has not",
            hard_limit("Max locked memory")
        );
    }
    let through = format!("prlimit --memlock=4294967296:4294967296 {NOBODY}");
    refused("limit_on_later_memory", &reachable(), &through, &["lock_memory=true"], &[]);
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
    fs::write(place.path("filter.py"), FILTER).expect("a file");
    let works = Command::new("python3").args(["filter.py", "/bin/true"]).current_dir(place.path("")).status();
    if !works.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: no filter of system calls can be set here (with python3)");
    }
    refused("filter_of_system_calls", &place, "python3 filter.py {}", &["pool.radio.policy=f:5"], &[]);
}

/// Filter of system calls: EPERM for 314, which is sched_setattr; others are allowed.
const FILTER: &str = r#"
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

/// Calls `act` with a copy of the command that an unprivileged user can run.
pub fn reachable() -> Place {
    let place = place();
    fs::copy(env!("CARGO_BIN_EXE_onbeat"), place.path("onbeat")).expect("a copy");
    place
}

/// Path of the command or its copy.
pub fn command(place: &Place) -> String {
    let copy = place.path("onbeat");
    if copy.exists() { copy.display().to_string() } else { env!("CARGO_BIN_EXE_onbeat").to_string() }
}
