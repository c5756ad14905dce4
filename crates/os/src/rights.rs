//! Why the kernel refuses a policy or a memory lock, and what would grant it.
//!
//! The kernel has one word, `EPERM`, for half a dozen reasons. [`Rights`] are the facts that tell them apart, and
//! [`explain`] is a function of nothing else.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use rustix::process::{Resource, getrlimit};

use crate::cores::CoreSet;
use crate::policy::{Policy, PolicyFlags};

/// What this thread may do, and what the machine allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights {
    /// `CAP_SYS_NICE`: it may have any policy.
    pub sys_nice: bool,
    /// `CAP_IPC_LOCK`: it may lock any memory.
    pub ipc_lock: bool,
    /// `RLIMIT_RTPRIO`: the highest priority that it may have without the capability.
    pub rtprio_limit: u64,
    /// `RLIMIT_MEMLOCK` in bytes; `None` for no limit.
    pub memlock_limit_bytes: Option<u64>,
    /// The control group whose real-time run time is 0: its folder.
    pub cgroup_without_runtime: Option<PathBuf>,
    /// `kernel.sched_rt_runtime_us`: of each period; -1 for no limit.
    pub rt_runtime_us: i64,
    /// `kernel.sched_rt_period_us`.
    pub rt_period_us: i64,
    /// Cores that this thread may run on.
    pub cores: CoreSet,
    /// Cores that are online: the root domain, where nothing is partitioned.
    pub online: CoreSet,
    /// A filter of system calls refuses `sched_setattr` whatever it is asked.
    pub filtered: bool,
}

impl Rights {
    /// Of the calling thread, now. What cannot be read counts as allowed.
    #[must_use]
    pub fn read() -> Self {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let field = |name: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map_or("", |rest| rest.trim_start_matches(':').trim())
        };
        let capabilities = u64::from_str_radix(field("CapEff"), 16).unwrap_or(0);
        let number = |name: &str, default| {
            let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
            text.trim().parse::<i64>().unwrap_or(default)
        };
        Rights {
            sys_nice: capabilities & (1 << 23) != 0,
            ipc_lock: capabilities & (1 << 14) != 0,
            rtprio_limit: getrlimit(Resource::Rtprio).current.unwrap_or(u64::MAX),
            memlock_limit_bytes: getrlimit(Resource::Memlock).current,
            cgroup_without_runtime: cgroup_without_runtime(),
            rt_runtime_us: number("sched_rt_runtime_us", 950_000),
            rt_period_us: number("sched_rt_period_us", 1_000_000),
            cores: CoreSet::allowed().unwrap_or_default(),
            online: CoreSet::online().unwrap_or_default(),
            filtered: field("Seccomp") == "2" && refuses_what_is_there(),
        }
    }
}

/// Everybody may have the policy that he has: if that is refused, it is not the kernel's scheduler that does so.
fn refuses_what_is_there() -> bool {
    let (policy, flags) = Policy::of_this_thread().unwrap_or((Policy::Other(0), PolicyFlags::default()));
    policy.set(flags).is_err()
}

/// The group of this process in the first version of control groups, if it has no real-time run time.
fn cgroup_without_runtime() -> Option<PathBuf> {
    let own = fs::read_to_string("/proc/thread-self/cgroup").ok()?;
    let path = own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let controllers = parts.next()?;
        controllers.split(',').any(|controller| controller == "cpu").then(|| parts.next()).flatten()
    })?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mount = mounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let is_it =
            fields.len() > 3 && fields[2] == "cgroup" && fields[3].split(',').any(|option| option == "cpu");
        is_it.then(|| fields[1])
    })?;
    let folder = PathBuf::from(mount).join(path.trim_start_matches('/'));
    let runtime = fs::read_to_string(folder.join("cpu.rt_runtime_us")).ok()?;
    (runtime.trim() == "0").then_some(folder)
}

/// Why something was refused, and what would grant it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Why, in a sentence.
    pub why: String,
    /// What to do.
    pub fix: String,
    /// The flag of `docker run` or `podman run`, where the process is in a container.
    pub container: Option<String>,
    /// The lines of a systemd unit, where it is a service.
    pub service: Option<String>,
}

impl Refusal {
    fn new(why: impl Into<String>, fix: impl Into<String>) -> Self {
        Refusal { why: why.into(), fix: fix.into(), container: None, service: None }
    }

    fn container(self, flag: impl Into<String>) -> Self {
        Refusal { container: Some(flag.into()), ..self }
    }

    fn service(self, lines: impl Into<String>) -> Self {
        Refusal { service: Some(lines.into()), ..self }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.why, self.fix)?;
        if let Some(flag) = &self.container {
            write!(f, "; in a container: {flag}")?;
        }
        if let Some(lines) = &self.service {
            write!(f, "; as a service: {lines}")?;
        }
        Ok(())
    }
}

/// Why `sched_setattr` with this policy gave the error `errno`.
#[must_use]
pub fn explain(policy: &Policy, errno: i32, rights: &Rights) -> Refusal {
    match errno {
        libc::EPERM | libc::EACCES | libc::ENOSYS if rights.filtered => Refusal::new(
            "a filter of system calls (seccomp) forbids sched_setattr",
            "allow sched_setattr, sched_getattr and sched_setscheduler in it",
        )
        .container("--security-opt seccomp=PROFILE.json, with a profile that allows them")
        .service("SystemCallFilter=@resources"),
        libc::EPERM => not_permitted(policy, rights),
        libc::EBUSY => busy(policy, rights),
        libc::EINVAL => Refusal::new(
            format!("the kernel does not take {policy} (EINVAL)"),
            "a DEADLINE period must lie between kernel.sched_deadline_period_min_us and \
             kernel.sched_deadline_period_max_us (see sysctl), 100 us to 4.19 s by default",
        ),
        libc::ENOSYS => Refusal::new("this kernel has no sched_setattr (ENOSYS)", "use Linux 3.14 or later"),
        errno => Refusal::new(std::io::Error::from_raw_os_error(errno).to_string(), "see sched_setattr(2)"),
    }
}

fn not_permitted(policy: &Policy, rights: &Rights) -> Refusal {
    let capability = "sudo setcap cap_sys_nice,cap_ipc_lock+ep \"$(command -v onbeat)\"";
    let is_deadline = matches!(policy, Policy::Deadline { .. });
    match policy.priority().map(u64::from) {
        _ if rights.sys_nice => {}
        None if is_deadline => {
            return Refusal::new(
                "SCHED_DEADLINE needs the capability CAP_SYS_NICE, which this process has not",
                format!("grant it: {capability}"),
            )
            .container("--cap-add SYS_NICE")
            .service("AmbientCapabilities=CAP_SYS_NICE");
        }
        None => {
            return Refusal::new(
                "a lower niceness needs the capability CAP_SYS_NICE or the limit RLIMIT_NICE",
                format!("grant it: {capability}"),
            )
            .container("--cap-add SYS_NICE")
            .service("AmbientCapabilities=CAP_SYS_NICE");
        }
        Some(priority) if priority > rights.rtprio_limit => {
            let limit = rights.rtprio_limit;
            let lower =
                if limit > 0 { format!(", or ask for a priority up to {limit}") } else { String::new() };
            return Refusal::new(
                format!(
                    "priority {priority} is above the limit RLIMIT_RTPRIO, which is {limit}, and the capability \
                     CAP_SYS_NICE is missing"
                ),
                format!(
                    "grant it: sudo prlimit --pid $$ --rtprio={priority} for this shell, or {capability}{lower}"
                ),
            )
            .container(format!("--ulimit rtprio={priority} --cap-add SYS_NICE"))
            .service(format!("LimitRTPRIO={priority}"));
        }
        Some(_) => {}
    }
    if let (false, Some(folder)) = (is_deadline, &rights.cgroup_without_runtime) {
        let folder = folder.display();
        return Refusal::new(
            format!("the control group {folder} has no real-time run time (cpu.rt_runtime_us is 0)"),
            format!(
                "grant it, in the groups above first: echo 400000 | sudo tee {folder}/cpu.rt_runtime_us; or boot with \
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
        let (cores, online) = (&rights.cores, &rights.online);
        return Refusal::new(
            format!(
                "a SCHED_DEADLINE thread may not be bound to a part of its root domain: this one may run on {cores} of {online}"
            ),
            format!(
                "name no `cores` for its pool, or make a root domain of them: echo {cores} > cpuset.cpus and echo root > \
                 cpuset.cpus.partition in its control group"
            ),
        )
        .container("no --cpuset-cpus")
        .service("no CPUAffinity= and no AllowedCPUs=");
    }
    Refusal::new(
        "the kernel does not permit it (EPERM), though the capability is there",
        "with CONFIG_RT_GROUP_SCHED and control groups of version 2 only the root group has real-time run time: boot with \
         rt_group_sched=0, or start it in the root group",
    )
    .container("none: this is the host's kernel")
    .service("none: this is the host's kernel")
}

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
            "not enough bandwidth (EBUSY): {policy} asks for {asked:.0} % of a core, and all SCHED_DEADLINE threads \
             together may have {limit:.0} % of each of {cores} cores"
        ),
        "lower the run time, lengthen the period, or raise the limit: sudo sysctl kernel.sched_rt_runtime_us=980000",
    )
    .container("none: the host's kernel counts")
    .service("none: the host's kernel counts")
}

/// Why memory could not be locked.
#[must_use]
pub fn explain_lock(errno: i32, rights: &Rights) -> Refusal {
    let limit = rights.memlock_limit_bytes.map_or("none".to_owned(), |bytes| format!("{bytes} bytes"));
    match errno {
        libc::EPERM | libc::ENOMEM | libc::EAGAIN if !rights.ipc_lock => Refusal::new(
            format!("the limit on locked memory (RLIMIT_MEMLOCK) is {limit}, and the capability CAP_IPC_LOCK is missing"),
            "grant it: sudo prlimit --pid $$ --memlock=unlimited for this shell, or sudo setcap \
             cap_sys_nice,cap_ipc_lock+ep \"$(command -v onbeat)\"",
        )
        .container("--ulimit memlock=-1 --cap-add IPC_LOCK")
        .service("LimitMEMLOCK=infinity"),
        libc::EPERM | libc::ENOSYS => Refusal::new(
            "a filter of system calls (seccomp) forbids mlockall",
            "allow mlockall and munlockall in it",
        )
        .container("--security-opt seccomp=PROFILE.json, with a profile that allows them")
        .service("SystemCallFilter=@memlock"),
        errno => Refusal::new(
            std::io::Error::from_raw_os_error(errno).to_string(),
            "the machine has too little memory for it: lower `store`, capacities or quanta",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Rights {
        Rights {
            sys_nice: true,
            ipc_lock: true,
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
            (
                deadline,
                libc::EINVAL,
                all(),
                "does not take d:9ms:10ms",
                "sched_deadline_period_min_us",
                "",
                "",
            ),
        ] {
            let refusal = explain(&policy, errno, &rights);
            assert!(refusal.why.contains(why), "{refusal}");
            assert!(refusal.fix.contains(fix), "{refusal}");
            assert!(refusal.container.as_deref().unwrap_or("").contains(container), "{refusal}");
            assert!(refusal.service.as_deref().unwrap_or("").contains(service), "{refusal}");
        }
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
        assert!(explain_lock(libc::ENOMEM, &all()).to_string().contains("too little memory"));
    }

    #[test]
    fn this_thread_has_rights_of_some_kind() {
        let rights = Rights::read();
        assert!(!rights.cores.is_empty() && rights.rt_period_us > 0, "{rights:?}");
    }
}
