//! The facts of the machine that explain a number.

mod facts;
mod virtualisation;

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// The machine on which something was measured, read from `/proc`, `/sys` and `/etc/os-release`.
///
/// Reading needs no privilege and never fails: a fact that this machine does not tell is `None`,
/// `null` in JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name for itself.
    pub cpu_model: Option<String>,
    /// Hardware threads that the kernel uses now.
    pub cores_online: Option<u32>,
    /// Hardware threads that it could use, those that are off included.
    pub cores_possible: Option<u32>,
    /// The cores that `isolcpus=` keeps the scheduler off, as the kernel lists them (`2-3,6`); empty
    /// for none.
    pub cores_isolated: Option<String>,
    /// The cores without a periodic tick (`nohz_full=`), as the kernel lists them; empty for none.
    pub cores_nohz_full: Option<String>,
    /// Whether two hardware threads share a physical core.
    pub smt: Option<bool>,
    /// Size of the first-level data cache of core 0, in bytes.
    pub l1d_bytes: Option<u64>,
    /// Size of the second-level cache of core 0, in bytes.
    pub l2_bytes: Option<u64>,
    /// Size of the third-level cache that core 0 can reach, in bytes.
    pub l3_bytes: Option<u64>,
    /// What the processor promises of its time-stamp counter; `None` on a processor without one.
    pub tsc: Option<Tsc>,
    /// What the kernel takes the time from: `tsc`, `kvm-clock`, `hpet`.
    pub clock_source: Option<String>,
    /// How the clock rate of core 0 is chosen: `performance`, `powersave`, ... A virtual machine seldom
    /// has one.
    pub governor: Option<String>,
    /// Who runs this machine: `none` on bare metal, else the hypervisor as far as it is known.
    pub virtualisation: Option<String>,
    /// Main memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// How the kernel was built to be preempted: `PREEMPT_RT`, `PREEMPT_DYNAMIC`, `PREEMPT`; with the
    /// mode in force in parentheses where it may be read (as root).
    pub preemption: Option<String>,
    /// The kernel's taint bits: 0 if nothing is odd about it.
    pub tainted: Option<u64>,
    /// Those parameters on the kernel's command line that change its timing, in their order. The others
    /// are left out, for they may name hosts and disks.
    pub kernel_parameters: Option<Vec<String>>,
    /// The distribution's name for itself.
    pub distribution: Option<String>,
}

/// What an x86 processor promises of its time-stamp counter, from the flags in `/proc/cpuinfo`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tsc {
    /// `constant_tsc`: it counts at one rate whatever the clock rate of the core.
    pub constant: bool,
    /// `nonstop_tsc`: it goes on counting while the core sleeps.
    pub nonstop: bool,
    /// `tsc_reliable`: the kernel was told to trust it, by the hypervisor for instance.
    pub reliable: bool,
    /// `tsc_known_freq`: its rate is stated and need not be measured.
    pub known_frequency: bool,
}

impl Machine {
    /// The facts of the machine that this runs on.
    #[must_use]
    pub fn read() -> Self {
        Self::read_from(Path::new("/"))
    }

    /// As [`read`](Self::read), read once: the first call takes a third of a millisecond. What somebody changes while the process
    /// runs, a governor perhaps, is not seen.
    pub fn of_this_process() -> &'static Self {
        static MACHINE: OnceLock<Machine> = OnceLock::new();
        MACHINE.get_or_init(Self::read)
    }

    /// The facts below `root`, which has a `proc`, a `sys` and an `etc`: for tests, and for what was
    /// copied from another machine.
    #[must_use]
    pub fn read_from(root: &Path) -> Self {
        facts::read(root)
    }
}

/// The content of a file below `root` without white space and zero bytes around it; `None` if it
/// cannot be read.
fn text(root: &Path, path: &str) -> Option<String> {
    let bytes = fs::read(root.join(path)).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned())
}
