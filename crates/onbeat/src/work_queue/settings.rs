//! Settings of a work queue.

use super::{WorkQueue, WorkQueueError};
use crate::Idle;
use onbeat_os::{CoreSet, Policy};

/// Number of heads, over which the threads are distributed to avoid shared cache lines. Measured with 8
/// producers. More heads cost the worker one poll each per pass.
pub(super) const SLOTS: usize = 8;

/// Settings of a [`WorkQueue`] and its thread, made by [`WorkQueue::named`].
///
/// ```
/// use onbeat::{Idle, WorkQueue};
/// let queue = WorkQueue::named("radio-events")
///     .idle(Idle::SpinFor(20_000))
///     .policy("f:50".parse()?)
///     .fifo()
///     .start()?;
/// for setting in queue.obtained() {
///     println!("{}: {} asked for, {} obtained", setting.what, setting.asked, setting.obtained);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct WorkQueueSettings {
    pub(super) name: String,
    pub(super) cores: Option<CoreSet>,
    pub(super) policy: Option<Policy>,
    pub(super) idle: Idle,
    pub(super) node: Option<usize>,
    pub(super) is_fifo: bool,
    pub(super) is_strict: bool,
    spins_for_ever: bool,
}

impl WorkQueueSettings {
    pub(super) fn new(name: String) -> Self {
        WorkQueueSettings {
            name,
            cores: None,
            policy: None,
            idle: Idle::Park,
            node: None,
            is_fifo: false,
            is_strict: false,
            spins_for_ever: false,
        }
    }

    /// Sets the cores of the thread. Default: those of the thread that starts it.
    #[must_use]
    pub fn cores(self, cores: CoreSet) -> Self {
        WorkQueueSettings { cores: Some(cores), ..self }
    }

    /// Sets the scheduling policy. Default: that of the thread that starts it. A refused policy is reported
    /// in [`obtained`](WorkQueue::obtained), or as an error with [`strict`](Self::strict).
    #[must_use]
    pub fn policy(self, policy: Policy) -> Self {
        WorkQueueSettings { policy: Some(policy), ..self }
    }

    /// Sets how the thread waits for items. Default: it parks. If items arrive in bursts, it polls for
    /// another 7 µs before, so that a burst wakes it only once.
    #[must_use]
    pub fn idle(self, idle: Idle) -> Self {
        WorkQueueSettings { idle, ..self }
    }

    /// Sets the memory node of the stack, as far as it has room.
    #[must_use]
    pub fn stack_node(self, node: usize) -> Self {
        WorkQueueSettings { node: Some(node), ..self }
    }

    /// Makes one order for all threads: items run in the order in which they were scheduled. This costs more
    /// if many threads schedule at once. Default: each thread has its own order.
    #[must_use]
    pub fn fifo(self) -> Self {
        WorkQueueSettings { is_fifo: true, ..self }
    }

    /// Makes a requested setting that is not obtained an error.
    #[must_use]
    pub fn strict(self) -> Self {
        WorkQueueSettings { is_strict: true, ..self }
    }

    /// Allows a real-time policy together with [`Idle::Spin`] on cores that are not isolated. Such a thread
    /// never lets others run there. The kernel takes the core away from it, by default for 50 ms of each
    /// second.
    #[must_use]
    pub fn spin_for_ever(self) -> Self {
        WorkQueueSettings { spins_for_ever: true, ..self }
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// [`WorkQueueError`]: the name is too long, cores do not exist, the thread cannot be created, or it
    /// would block a core for ever. With [`strict`](Self::strict), also a refused policy or node.
    pub fn start(self) -> Result<WorkQueue, WorkQueueError> {
        self.check()?;
        WorkQueue::start_with(self)
    }

    fn check(&self) -> Result<(), WorkQueueError> {
        let Some(policy) = self.policy.filter(Policy::is_real_time) else { return Ok(()) };
        if self.idle != Idle::Spin || self.spins_for_ever || self.is_isolated() {
            return Ok(());
        }
        let cores = self.cores.as_ref().map_or("any core".to_owned(), |cores| format!("the cores {cores}"));
        Err(WorkQueueError::Settings {
            queue: self.name.clone(),
            reason: format!(
                "policy {policy} with idle spin on {cores} never lets other threads run there, and the kernel takes the core \
                 away for 50 ms of each second; use idle spin:20us, an isolated core (isolcpus), or spin_for_ever()"
            ),
        })
    }

    fn is_isolated(&self) -> bool {
        let text = std::fs::read_to_string("/sys/devices/system/cpu/isolated").unwrap_or_default();
        let isolated: CoreSet = text.parse().unwrap_or_default();
        self.cores
            .as_ref()
            .is_some_and(|cores| !cores.is_empty() && cores.iter().all(|core| isolated.contains(core)))
    }
}
