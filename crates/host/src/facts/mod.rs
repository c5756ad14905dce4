//! What is known of a machine: plain data, read once, by functions of nothing but its files.

mod cpus;
mod interrupts;
mod kernel;
mod memory;
mod place;
mod power;
mod scheduler;
mod threads;

pub use cpus::Cpus;
pub use interrupts::{Interrupts, Irq};
pub use kernel::{Config, Kernel};
pub use memory::Memory;
pub use place::{Place, Quota};
pub use power::{IdleState, Power};
pub use scheduler::Scheduler;
pub use threads::Thread;

use crate::fact::Fact;
use crate::tree::Tree;

/// A machine.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The kernel, how it was built and booted.
    pub kernel: Kernel,
    /// Its cores.
    pub cpus: Cpus,
    /// Clocks, clock rates and sleep.
    pub power: Power,
    /// Settings of its scheduler.
    pub scheduler: Scheduler,
    /// Settings of its memory.
    pub memory: Memory,
    /// Interrupts and the kernel's own work.
    pub interrupts: Interrupts,
    /// Container, hypervisor, control group.
    pub place: Place,
    /// All threads.
    pub threads: Fact<Vec<Thread>>,
}

impl Facts {
    /// Reads all of it. What cannot be read says why.
    #[must_use]
    pub fn read(tree: &dyn Tree) -> Self {
        let cpus = Cpus::read(tree);
        Facts {
            kernel: Kernel::read(tree),
            power: Power::read(tree, &cpus),
            scheduler: Scheduler::read(tree),
            memory: Memory::read(tree),
            interrupts: Interrupts::read(tree),
            place: Place::read(tree),
            threads: threads::read(tree),
            cpus,
        }
    }

    /// Whether it is a guest of a hypervisor; `None` where nothing says so.
    #[must_use]
    pub fn is_guest(&self) -> Option<bool> {
        self.cpus.flags.known().map(|flags| flags.iter().any(|flag| flag == "hypervisor"))
    }
}
