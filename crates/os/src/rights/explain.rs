//! Explains an error number by the rights of a thread: a reason and a fix, as pure functions.

use super::{Refusal, Rights};
use crate::policy::Policy;

/// Explains why `sched_setattr` with this policy returned `errno`.
#[must_use]
pub fn explain(policy: &Policy, errno: i32, rights: &Rights) -> Refusal {
    match errno {
        libc::EPERM | libc::EACCES | libc::ENOSYS if rights.filtered => Refusal::new(
            "a system call filter (seccomp) forbids sched_setattr",
            "allow sched_setattr, sched_getattr and sched_setscheduler in the filter",
        )
        .container("--security-opt seccomp=PROFILE.json, with a profile that allows them")
        .service("SystemCallFilter=@resources"),
        libc::EPERM => not_permitted(policy, rights),
        libc::EBUSY => busy(policy, rights),
        libc::EINVAL => Refusal::new(
            format!("the kernel rejects {policy} (EINVAL)"),
            "a DEADLINE period must be between kernel.sched_deadline_period_min_us and \
             kernel.sched_deadline_period_max_us (see sysctl), 100 us to 4.19 s by default",
        ),
        libc::ENOSYS => Refusal::new("this kernel has no sched_setattr (ENOSYS)", "use Linux 3.14 or later"),
        errno => Refusal::new(std::io::Error::from_raw_os_error(errno).to_string(), "see sched_setattr(2)"),
    }
}

/// All capabilities that any part of onbeat needs, since each `setcap` replaces the one before.
const SET_CAPABILITIES: &str =
    "sudo setcap cap_sys_nice,cap_ipc_lock,cap_perfmon+ep \"$(command -v onbeat)\"";

/// Says that a capability is missing.
fn lacks(capability: &str, rights: &Rights) -> String {
    match rights.user_namespace {
        true => format!("the capability {capability} does not count inside a user namespace"),
        false => format!("the capability {capability} is missing"),
    }
}

/// Explains `EPERM`.
fn not_permitted(policy: &Policy, rights: &Rights) -> Refusal {
    let is_deadline = matches!(policy, Policy::Deadline { .. });
    let by_limit = policy.priority().is_some_and(|priority| u64::from(priority) <= rights.rtprio_limit);
    if !rights.sys_nice && !by_limit {
        return match policy.priority() {
            Some(priority) => above_the_priority_limit(u64::from(priority), rights),
            None => without_the_capability(is_deadline, rights),
        };
    }
    if let (false, Some(folder)) = (is_deadline, &rights.cgroup_without_runtime) {
        let folder = folder.display();
        return Refusal::new(
            format!("the control group {folder} has no real-time run time (cpu.rt_runtime_us is 0)"),
            format!(
                "grant it, starting with the groups above: echo 400000 | sudo tee {folder}/cpu.rt_runtime_us; or boot with \
                 rt_group_sched=0"
            ),
        )
        .container("--cpu-rt-runtime=400000 --cap-add SYS_NICE")
        .service("ExecStartPre=+/bin/sh -c 'echo 400000 > .../cpu.rt_runtime_us'");
    }
    if rights.rt_runtime_us == 0 {
        return Refusal::new(
            "kernel.sched_rt_runtime_us is 0: this machine has no real-time run time",
            "grant it: sudo sysctl kernel.sched_rt_runtime_us=950000",
        );
    }
    if is_deadline && rights.online.iter().any(|core| !rights.cores.contains(core)) {
        return pinned_deadline(rights);
    }
    Refusal::new(
        "the kernel refuses it (EPERM), although the capability is there",
        "with CONFIG_RT_GROUP_SCHED and cgroup v2, only the root group has real-time run time: boot with rt_group_sched=0, or \
         start the program in the root group",
    )
    .container("none: this is the host's kernel")
    .service("none: this is the host's kernel")
}

/// A policy without a priority needs the capability.
fn without_the_capability(is_deadline: bool, rights: &Rights) -> Refusal {
    let lacks = lacks("CAP_SYS_NICE", rights);
    let why = match is_deadline {
        true => format!("no resource limit grants SCHED_DEADLINE, and {lacks}"),
        false => format!("the niceness is outside what RLIMIT_NICE grants, and {lacks}"),
    };
    match rights.user_namespace {
        true => Refusal::new(why, "start it outside, or in a container with root"),
        false => Refusal::new(why, format!("grant it: {SET_CAPABILITIES}"))
            .container("--cap-add SYS_NICE")
            .service("AmbientCapabilities=CAP_SYS_NICE"),
    }
}

/// A real-time priority needs the capability or a resource limit.
fn above_the_priority_limit(priority: u64, rights: &Rights) -> Refusal {
    let limit = rights.rtprio_limit;
    let lower = match limit {
        0 => String::new(),
        limit => format!(", or ask for a priority up to {limit}"),
    };
    let why = format!(
        "priority {priority} is above the limit RLIMIT_RTPRIO, which is {limit}, and {}",
        lacks("CAP_SYS_NICE", rights)
    );
    match rights.user_namespace {
        true => Refusal::new(
            why,
            format!(
                "raise the user's limit outside, with a line `USER - rtprio {priority}` in /etc/security/limits.d{lower}"
            ),
        )
        .container(format!("--ulimit rtprio={priority}")),
        false => Refusal::new(
            why,
            format!(
                "grant it: sudo prlimit --pid $$ --rtprio={priority} for this shell, or {SET_CAPABILITIES}{lower}"
            ),
        )
        .container(format!("--ulimit rtprio={priority} --cap-add SYS_NICE"))
        .service(format!("LimitRTPRIO={priority}")),
    }
}

/// A `SCHED_DEADLINE` thread needs all cores of its root domain.
fn pinned_deadline(rights: &Rights) -> Refusal {
    let (cores, online) = (&rights.cores, &rights.online);
    Refusal::new(
        format!(
            "a SCHED_DEADLINE thread must not be pinned to a part of its root domain: this one may run on {cores} of {online}"
        ),
        format!(
            "set no `cores` for its pool, or make a root domain of them: echo {cores} > cpuset.cpus and echo root > \
             cpuset.cpus.partition in its control group"
        ),
    )
    .container("no --cpuset-cpus")
    .service("no CPUAffinity= and no AllowedCPUs=")
}

/// Explains `EBUSY`.
fn busy(policy: &Policy, rights: &Rights) -> Refusal {
    let Policy::Deadline { runtime_ns, period_ns, .. } = *policy else {
        return Refusal::new("the kernel is busy (EBUSY)", "try again");
    };
    let percent = |part: f64, whole: f64| 100.0 * part / whole.max(1.0);
    let asked = percent(runtime_ns as f64, period_ns as f64);
    let limit = match rights.rt_runtime_us {
        ..0 => 100.0,
        runtime_us => percent(runtime_us as f64, rights.rt_period_us as f64),
    };
    let cores = rights.online.len();
    Refusal::new(
        format!(
            "not enough bandwidth (EBUSY): {policy} asks for {asked:.0} % of a core; all SCHED_DEADLINE threads together \
             may have {limit:.0} % of each of {cores} cores"
        ),
        "shorten the run time, lengthen the period, or raise the limit: sudo sysctl kernel.sched_rt_runtime_us=980000",
    )
    .container("none: the host's kernel counts")
    .service("none: the host's kernel counts")
}

/// Explains why `mlockall` returned `errno`.
#[must_use]
pub fn explain_lock(errno: i32, rights: &Rights) -> Refusal {
    match errno {
        libc::EPERM | libc::ENOMEM | libc::EAGAIN if !rights.ipc_lock => over_the_limit(rights),
        libc::EPERM | libc::ENOSYS => Refusal::new(
            "a system call filter (seccomp) forbids mlockall",
            "allow mlockall and munlockall in the filter",
        )
        .container("--security-opt seccomp=PROFILE.json, with a profile that allows them")
        .service("SystemCallFilter=@memlock"),
        errno => Refusal::new(
            std::io::Error::from_raw_os_error(errno).to_string(),
            "the machine has too little memory for this: lower `store`, capacities or quanta",
        ),
    }
}

/// Explains why memory cannot be locked beyond the limit, or why later allocations cannot be locked.
#[must_use]
pub fn over_the_limit(rights: &Rights) -> Refusal {
    let limit = rights.memlock_limit_bytes.map_or("none".to_owned(), |bytes| format!("{bytes} bytes"));
    let why = format!(
        "the limit on locked memory (RLIMIT_MEMLOCK) is {limit}, and {}",
        lacks("CAP_IPC_LOCK", rights)
    );
    match rights.user_namespace {
        true => Refusal::new(
            why,
            "raise the user's limit outside, with a line `USER - memlock unlimited` in /etc/security/limits.d",
        )
        .container("--ulimit memlock=-1"),
        false => Refusal::new(
            why,
            format!("grant it: sudo prlimit --pid $$ --memlock=unlimited for this shell, or {SET_CAPABILITIES}"),
        )
        .container("--ulimit memlock=-1 --cap-add IPC_LOCK")
        .service("LimitMEMLOCK=infinity"),
    }
}
