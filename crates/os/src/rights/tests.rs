//! Each reason, with made-up rights that cause it.

use super::*;

fn all() -> Rights {
    Rights {
        sys_nice: true,
        ipc_lock: true,
        user_namespace: false,
        rtprio_limit: 0,
        memlock_limit_bytes: Some(8 << 20),
        cgroup_without_runtime: None,
        rt_runtime_us: 950_000,
        rt_period_us: 1_000_000,
        cores: "0-5".parse().unwrap(),
        online: "0-5".parse().unwrap(),
        filtered: false,
    }
}

fn none() -> Rights {
    Rights { sys_nice: false, ipc_lock: false, ..all() }
}

const FIFO: &str = "f:80";
const DEADLINE: &str = "d:9ms:10ms";

/// Policy, error number, rights; parts of the reason, the fix, the container's flag, the service's lines.
type Example = (&'static str, i32, Rights, [&'static str; 4]);

fn without_rights() -> Vec<Example> {
    let inside = Rights { user_namespace: true, ..none() };
    let limit_10 = Rights { rtprio_limit: 10, ..none() };
    vec![
        (
            FIFO,
            libc::EPERM,
            none(),
            [
                "priority 80 is above the limit RLIMIT_RTPRIO, which is 0",
                "--rtprio=80",
                "--ulimit rtprio=80",
                "LimitRTPRIO=80",
            ],
        ),
        (
            FIFO,
            libc::EPERM,
            limit_10,
            [
                "RLIMIT_RTPRIO, which is 10",
                "or ask for a priority up to 10",
                "--ulimit rtprio=80",
                "LimitRTPRIO=80",
            ],
        ),
        (
            DEADLINE,
            libc::EPERM,
            none(),
            ["CAP_SYS_NICE", "setcap", "--cap-add SYS_NICE", "AmbientCapabilities="],
        ),
        (
            FIFO,
            libc::EPERM,
            inside.clone(),
            [
                "CAP_SYS_NICE does not count inside a user namespace",
                "a line `USER - rtprio 80` in /etc/security/limits.d",
                "--ulimit rtprio=80",
                "",
            ],
        ),
        (
            DEADLINE,
            libc::EPERM,
            inside,
            ["does not count inside a user namespace", "a container with root", "", ""],
        ),
        ("o:-5", libc::EPERM, none(), ["RLIMIT_NICE", "setcap", "SYS_NICE", "CAP_SYS_NICE"]),
    ]
}

fn with_the_capability() -> Vec<Example> {
    let group = Some(PathBuf::from("/sys/fs/cgroup/cpu/radio"));
    let pinned = Rights { cores: "2".parse().unwrap(), ..all() };
    let filtered = Rights { filtered: true, ..none() };
    vec![
        (
            FIFO,
            libc::EPERM,
            Rights { cgroup_without_runtime: group, ..all() },
            [
                "/sys/fs/cgroup/cpu/radio has no real-time run time",
                "sudo tee /sys/fs/cgroup/cpu/radio/cpu.rt_runtime_us",
                "--cpu-rt-runtime=",
                "ExecStartPre=",
            ],
        ),
        (
            DEADLINE,
            libc::EPERM,
            pinned,
            ["may run on 2 of 0-5", "set no `cores`", "--cpuset-cpus", "CPUAffinity="],
        ),
        (
            FIFO,
            libc::EPERM,
            Rights { rt_runtime_us: 0, ..all() },
            ["sched_rt_runtime_us is 0", "sysctl", "", ""],
        ),
        (FIFO, libc::EPERM, all(), ["although the capability is there", "rt_group_sched=0", "host", "host"]),
        (
            FIFO,
            libc::EPERM,
            filtered,
            ["seccomp", "allow sched_setattr", "--security-opt seccomp=", "SystemCallFilter="],
        ),
        (
            DEADLINE,
            libc::EBUSY,
            all(),
            [
                "asks for 90 % of a core; all SCHED_DEADLINE threads together may have 95 % of each of 6",
                "sysctl",
                "host",
                "host",
            ],
        ),
        (DEADLINE, libc::EINVAL, all(), ["rejects d:9ms:10ms", "sched_deadline_period_min_us", "", ""]),
    ]
}

#[test]
fn one_error_number_has_many_reasons() {
    for (policy, errno, rights, [why, fix, container, service]) in
        without_rights().into_iter().chain(with_the_capability())
    {
        let refusal = explain(&policy.parse().unwrap(), errno, &rights);
        assert!(refusal.why.contains(why), "{refusal}");
        assert!(refusal.fix.contains(fix), "{refusal}");
        assert!(refusal.container.as_deref().unwrap_or("").contains(container), "{refusal}");
        assert!(refusal.service.as_deref().unwrap_or("").contains(service), "{refusal}");
    }
}

#[test]
fn a_limit_of_ten_is_explained_in_full() {
    let refusal = explain(&Policy::Fifo(11), libc::EPERM, &Rights { rtprio_limit: 10, ..none() });
    assert_eq!(
        refusal.to_string(),
        "priority 11 is above the limit RLIMIT_RTPRIO, which is 10, and the capability CAP_SYS_NICE is missing; grant it: \
         sudo prlimit --pid $$ --rtprio=11 for this shell, or sudo setcap cap_sys_nice,cap_ipc_lock,cap_perfmon+ep \"$(command -v onbeat)\", \
         or ask for a priority up to 10; in a container: --ulimit rtprio=11 --cap-add SYS_NICE; as a service: LimitRTPRIO=11"
    );
}

#[test]
fn locks_are_explained() {
    let refusal = explain_lock(libc::ENOMEM, &none()).to_string();
    for part in [
        "RLIMIT_MEMLOCK) is 8388608 bytes",
        "--memlock=unlimited",
        "--ulimit memlock=-1",
        "LimitMEMLOCK=infinity",
    ] {
        assert!(refusal.contains(part), "{part}: {refusal}");
    }
    let inside = over_the_limit(&Rights { user_namespace: true, ..none() }).to_string();
    assert!(inside.contains("does not count") && inside.contains("`USER - memlock unlimited`"), "{inside}");
    assert!(explain_lock(libc::EPERM, &all()).to_string().contains("seccomp"));
    assert!(explain_lock(libc::ENOMEM, &all()).to_string().contains("too little memory"));
}

#[test]
fn this_thread_has_rights_of_some_kind() {
    let rights = Rights::read();
    assert!(!rights.cores.is_empty() && rights.rt_period_us > 0, "{rights:?}");
}
