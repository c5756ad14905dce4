//! How a work queue is to be.

use super::{WorkQueue, WorkQueueError};
use crate::Idle;
use onbeat_os::{CoreSet, Policy};

/// Heads that threads are spread over, so that they keep off each other's cache lines. Measured with 8
/// producers; more cost the worker a look each, per pass.
pub(super) const SLOTS: usize = 8;

/// How the thread of a [`WorkQueue`] is to be. From [`WorkQueue::named`].
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

    /// The cores that it runs on. Without: those of the thread that starts it.
    #[must_use]
    pub fn cores(self, cores: CoreSet) -> Self {
        WorkQueueSettings { cores: Some(cores), ..self }
    }

    /// How the kernel schedules it. Without: as the thread that starts it. What the kernel refuses is in
    /// [`obtained`](WorkQueue::obtained), unless [`strict`](Self::strict).
    #[must_use]
    pub fn policy(self, policy: Policy) -> Self {
        WorkQueueSettings { policy: Some(policy), ..self }
    }

    /// How it waits when there is nothing to run. Without: it parks. Where items come in bursts it looks for
    /// 7 µs more before, so that a burst wakes it once and not again and again.
    #[must_use]
    pub fn idle(self, idle: Idle) -> Self {
        WorkQueueSettings { idle, ..self }
    }

    /// The memory node that its stack lies on, as far as that has room.
    #[must_use]
    pub fn stack_node(self, node: usize) -> Self {
        WorkQueueSettings { node: Some(node), ..self }
    }

    /// One order for all threads: what is scheduled first runs first, whoever did it. Costs more when many
    /// threads schedule at once. Without, each thread has its order.
    #[must_use]
    pub fn fifo(self) -> Self {
        WorkQueueSettings { is_fifo: true, ..self }
    }

    /// What was asked for and not obtained is an error.
    #[must_use]
    pub fn strict(self) -> Self {
        WorkQueueSettings { is_strict: true, ..self }
    }

    /// Allows a real-time policy together with [`Idle::Spin`] on cores that are not isolated. Such a thread
    /// never lets others run there; the kernel takes the core away from it, for 50 ms of each second by
    /// default.
    #[must_use]
    pub fn spin_for_ever(self) -> Self {
        WorkQueueSettings { spins_for_ever: true, ..self }
    }

    /// Starts its thread.
    ///
    /// # Errors
    /// [`WorkQueueError`]: a name that the kernel would cut, cores that are not there, no room for a thread,
    /// a thread that would keep others off a core for ever; where [`strict`](Self::strict), a policy or node
    /// that was refused.
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
                 away for 50 ms of each second; take idle spin:20us, a core that is isolated (isolcpus), or say spin_for_ever()"
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
