//! Why the kernel refuses a policy or a memory lock, and how to get the right.
//!
//! The kernel has one error, `EPERM`, for half a dozen reasons. [`Rights`] are the facts that tell them
//! apart, and [`explain`] is a pure function of them.

mod explain;

pub use explain::{explain, explain_lock, over_the_limit};

use std::fmt;
use std::fs;
use std::path::PathBuf;

use rustix::process::{Resource, getrlimit};

use crate::cores::CoreSet;
use crate::policy::{Policy, PolicyFlags};

const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_NICE: u32 = 23;

/// Number of the initial user namespace, built into the kernel.
const FIRST_USER_NAMESPACE: &str = "user:[4026531837]";

/// Rights of this thread, and limits of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights {
    /// `CAP_SYS_NICE` in the initial user namespace: grants any policy.
    pub sys_nice: bool,
    /// `CAP_IPC_LOCK` in the initial user namespace: grants locking of any memory.
    pub ipc_lock: bool,
    /// The thread is in a user namespace of its own, as in a rootless container. Its capabilities count only
    /// inside; policies and locks need them outside.
    pub user_namespace: bool,
    /// `RLIMIT_RTPRIO`: highest priority without the capability.
    pub rtprio_limit: u64,
    /// `RLIMIT_MEMLOCK` in bytes; `None` for no limit.
    pub memlock_limit_bytes: Option<u64>,
    /// Folder of the control group whose real-time run time is 0.
    pub cgroup_without_runtime: Option<PathBuf>,
    /// `kernel.sched_rt_runtime_us`: run time per period; -1 for no limit.
    pub rt_runtime_us: i64,
    /// `kernel.sched_rt_period_us`.
    pub rt_period_us: i64,
    /// Cores that this thread may run on.
    pub cores: CoreSet,
    /// Cores that are online: the root domain, unless the machine is partitioned.
    pub online: CoreSet,
    /// Whether a system call filter refuses every `sched_setattr`.
    pub filtered: bool,
}

impl Rights {
    /// Reads the rights of the calling thread. Unreadable ones count as granted.
    #[must_use]
    pub fn read() -> Self {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let field = |name: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map_or("", |rest| rest.trim_start_matches(':').trim())
        };
        let user_namespace =
            fs::read_link("/proc/self/ns/user").is_ok_and(|link| link.as_os_str() != FIRST_USER_NAMESPACE);
        let capabilities = u64::from_str_radix(field("CapEff"), 16).unwrap_or(0);
        let has = |capability: u32| !user_namespace && capabilities & (1 << capability) != 0;
        let number = |name: &str, default| {
            let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
            text.trim().parse::<i64>().unwrap_or(default)
        };
        Rights {
            sys_nice: has(CAP_SYS_NICE),
            ipc_lock: has(CAP_IPC_LOCK),
            user_namespace,
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

/// Whether the kernel refuses the thread's own policy. The scheduler always allows it, so the refusal comes
/// from a filter.
fn refuses_what_is_there() -> bool {
    let (policy, flags) = Policy::of_this_thread().unwrap_or((Policy::Other(0), PolicyFlags::default()));
    policy.set(flags).is_err()
}

/// Returns the cgroup v1 of this process, if it has no real-time run time.
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

/// Why a right was refused, and how to get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Reason, in a sentence.
    pub why: String,
    /// What to do.
    pub fix: String,
    /// Flag of `docker run` or `podman run`, for a process in a container.
    pub container: Option<String>,
    /// Lines of a systemd unit, for a service.
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

#[cfg(test)]
mod tests;
