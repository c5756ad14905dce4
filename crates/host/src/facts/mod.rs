//! Facts of a machine: plain data, read once from its files.

mod cpus;
mod interrupts;
mod kernel;
mod memory;
mod place;
mod power;
mod scheduler;
mod threads;

pub use cpus::CpuFacts;
pub use interrupts::{InterruptFacts, Irq};
pub use kernel::{Config, KernelFacts};
pub use memory::MemoryFacts;
pub use place::{Environment, Quota};
pub use power::{IdleState, PowerFacts};
pub use scheduler::SchedulerFacts;
pub use threads::SystemThread;

use crate::fact::Fact;
use crate::tree::Tree;

/// All facts of a machine.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The kernel's build and boot.
    pub kernel: KernelFacts,
    /// Its cores.
    pub cpus: CpuFacts,
    /// Clocks, clock rates and idle states.
    pub power: PowerFacts,
    /// Settings of the scheduler.
    pub scheduler: SchedulerFacts,
    /// Settings of memory.
    pub memory: MemoryFacts,
    /// Interrupts and background work of the kernel.
    pub interrupts: InterruptFacts,
    /// Container, hypervisor, control group.
    pub environment: Environment,
    /// All threads.
    pub threads: Fact<Vec<SystemThread>>,
}

impl Facts {
    /// Reads all facts. A value that cannot be read says why.
    #[must_use]
    pub fn read(tree: &dyn Tree) -> Self {
        let cpus = CpuFacts::read(tree);
        Facts {
            kernel: KernelFacts::read(tree),
            power: PowerFacts::read(tree, &cpus),
            scheduler: SchedulerFacts::read(tree),
            memory: MemoryFacts::read(tree),
            interrupts: InterruptFacts::read(tree),
            environment: Environment::read(tree),
            threads: threads::read(tree),
            cpus,
        }
    }

    /// Whether it is a guest of a hypervisor; `None` if no file says so.
    #[must_use]
    pub fn is_guest(&self) -> Option<bool> {
        self.cpus.flags.known().map(|flags| flags.iter().any(|flag| flag == "hypervisor"))
    }
}
