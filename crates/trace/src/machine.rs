//! Facts of the machine that explain a number.

mod facts;
mod virtualisation;

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// Machine of a measurement, read from `/proc`, `/sys` and `/etc/os-release`.
///
/// Reading needs no privilege and never fails: a fact that this machine does not report is `None`, `null` in
/// JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's own name.
    pub cpu_model: Option<String>,
    /// Hardware threads that the kernel uses now.
    pub cores_online: Option<u32>,
    /// Hardware threads that it could use, including those that are off.
    pub cores_possible: Option<u32>,
    /// Cores that `isolcpus=` keeps the scheduler off, as the kernel lists them (`2-3,6`); empty for none.
    pub cores_isolated: Option<String>,
    /// Cores without a periodic tick (`nohz_full=`), as the kernel lists them; empty for none.
    pub cores_nohz_full: Option<String>,
    /// Whether two hardware threads share a physical core.
    pub smt: Option<bool>,
    /// Size of the first-level data cache of core 0, in bytes.
    pub l1d_bytes: Option<u64>,
    /// Size of the second-level cache of core 0, in bytes.
    pub l2_bytes: Option<u64>,
    /// Size of the third-level cache that core 0 can reach, in bytes.
    pub l3_bytes: Option<u64>,
    /// Properties of the processor's time stamp counter; `None` on a processor without one.
    pub tsc: Option<Tsc>,
    /// The kernel's clock source: `tsc`, `kvm-clock`, `hpet`.
    pub clock_source: Option<String>,
    /// Governor of core 0's clock rate: `performance`, `powersave`, ... Most virtual machines have none.
    pub governor: Option<String>,
    /// Hypervisor, as far as it is known; `none` on bare metal.
    pub virtualisation: Option<String>,
    /// Main memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// Preemption model of the kernel's build: `PREEMPT_RT`, `PREEMPT_DYNAMIC`, `PREEMPT`; with the mode in
    /// force in parentheses if it is readable (as root).
    pub preemption: Option<String>,
    /// The kernel's taint bits: 0 for none.
    pub tainted: Option<u64>,
    /// Parameters of the kernel's command line that change its timing, in their order. The others are left
    /// out, because they may name hosts and disks.
    pub kernel_parameters: Option<Vec<String>>,
    /// The distribution's own name.
    pub distribution: Option<String>,
}

/// Properties of an x86 processor's time stamp counter, from the flags in `/proc/cpuinfo`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tsc {
    /// `constant_tsc`: it counts at one rate, whatever the clock rate of the core.
    pub constant: bool,
    /// `nonstop_tsc`: it keeps counting while the core sleeps.
    pub nonstop: bool,
    /// `tsc_reliable`: the kernel was told to trust it, by the hypervisor for instance.
    pub reliable: bool,
    /// `tsc_known_freq`: its rate is given and need not be measured.
    pub known_frequency: bool,
}

impl Machine {
    /// Reads the facts of this machine.
    #[must_use]
    pub fn read() -> Self {
        Self::read_from(Path::new("/"))
    }

    /// Returns the facts of this machine, read once: the first call takes a third of a millisecond. A later
    /// change, of the governor perhaps, is not seen.
    pub fn of_this_process() -> &'static Self {
        static MACHINE: OnceLock<Machine> = OnceLock::new();
        MACHINE.get_or_init(Self::read)
    }

    /// Reads the facts below `root`, which has a `proc`, a `sys` and an `etc`: for tests, and for copies from
    /// another machine.
    #[must_use]
    pub fn read_from(root: &Path) -> Self {
        facts::read(root)
    }
}

/// Returns the content of a file below `root` without surrounding white space and zero bytes; `None` if it is
/// unreadable.
fn text(root: &Path, path: &str) -> Option<String> {
    let bytes = fs::read(root.join(path)).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned())
}
