//! Each reason against facts that were made up for it.

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

#[test]
fn one_error_number_has_many_reasons() {
    let fifo: Policy = "f:80".parse().unwrap();
    let deadline: Policy = "d:9ms:10ms".parse().unwrap();
    let group = Some(PathBuf::from("/sys/fs/cgroup/cpu/radio"));
    for (policy, errno, rights, why, fix, container, service) in [
        (
            fifo,
            libc::EPERM,
            none(),
            "priority 80 is above the limit RLIMIT_RTPRIO, which is 0",
            "--rtprio=80",
            "--ulimit rtprio=80",
            "LimitRTPRIO=80",
        ),
        (
            fifo,
            libc::EPERM,
            Rights { rtprio_limit: 10, ..none() },
            "RLIMIT_RTPRIO, which is 10",
            "or ask for a priority up to 10",
            "--ulimit rtprio=80",
            "LimitRTPRIO=80",
        ),
        (
            deadline,
            libc::EPERM,
            none(),
            "CAP_SYS_NICE",
            "setcap",
            "--cap-add SYS_NICE",
            "AmbientCapabilities=",
        ),
        (
            fifo,
            libc::EPERM,
            Rights { user_namespace: true, ..none() },
            "CAP_SYS_NICE does not count inside a user namespace",
            "a line `USER - rtprio 80` in /etc/security/limits.d",
            "--ulimit rtprio=80",
            "",
        ),
        (
            deadline,
            libc::EPERM,
            Rights { user_namespace: true, ..none() },
            "does not count inside a user namespace",
            "a container with root",
            "",
            "",
        ),
        (Policy::Other(-5), libc::EPERM, none(), "RLIMIT_NICE", "setcap", "SYS_NICE", "CAP_SYS_NICE"),
        (
            fifo,
            libc::EPERM,
            Rights { cgroup_without_runtime: group.clone(), ..all() },
            "/sys/fs/cgroup/cpu/radio has no real-time run time",
            "sudo tee /sys/fs/cgroup/cpu/radio/cpu.rt_runtime_us",
            "--cpu-rt-runtime=",
            "ExecStartPre=",
        ),
        (
            deadline,
            libc::EPERM,
            Rights { cores: "2".parse().unwrap(), ..all() },
            "may run on 2 of 0-5",
            "name no `cores`",
            "--cpuset-cpus",
            "CPUAffinity=",
        ),
        (
            fifo,
            libc::EPERM,
            Rights { rt_runtime_us: 0, ..all() },
            "sched_rt_runtime_us is 0",
            "sysctl",
            "",
            "",
        ),
        (fifo, libc::EPERM, all(), "though the capability is there", "rt_group_sched=0", "host", "host"),
        (
            fifo,
            libc::EPERM,
            Rights { filtered: true, ..none() },
            "seccomp",
            "allow sched_setattr",
            "--security-opt seccomp=",
            "SystemCallFilter=",
        ),
        (
            deadline,
            libc::EBUSY,
            all(),
            "asks for 90 % of a core, and all SCHED_DEADLINE threads together may have 95 % of each of 6",
            "sysctl",
            "host",
            "host",
        ),
        (deadline, libc::EINVAL, all(), "does not take d:9ms:10ms", "sched_deadline_period_min_us", "", ""),
    ] {
        let refusal = explain(&policy, errno, &rights);
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
