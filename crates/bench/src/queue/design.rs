//! The queues to compare.

/// A way to pass items to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Design {
    /// Model with a lock, a list and a counting semaphore.
    Before,
    /// Model with the batching change.
    After,
    /// The work queue with default settings: one head per producer slot.
    Slots,
    /// The same with a worker that never sleeps.
    SlotsSpin,
    /// The work queue with one order for all producers.
    Fifo,
    /// The work queue, 16 items per access.
    Many,
    /// The work queue with reference-counted items.
    Shared,
    /// The work queue with owned items.
    Owned,
    /// The work queue with owned items, 16 per access.
    OwnedMany,
    /// The standard library's channel.
    StdMpsc,
    /// crossbeam's unbounded channel.
    Crossbeam,
}

impl Design {
    /// All designs, the models first.
    pub const ALL: [Design; 11] = [
        Design::Before,
        Design::After,
        Design::Slots,
        Design::SlotsSpin,
        Design::Fifo,
        Design::Many,
        Design::Shared,
        Design::Owned,
        Design::OwnedMany,
        Design::StdMpsc,
        Design::Crossbeam,
    ];

    /// Name in figures.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Design::Before => "model_before",
            Design::After => "model_after",
            Design::Slots => "onbeat",
            Design::SlotsSpin => "onbeat_spin",
            Design::Fifo => "onbeat_fifo",
            Design::Many => "onbeat_many",
            Design::Shared => "onbeat_shared",
            Design::Owned => "onbeat_owned",
            Design::OwnedMany => "onbeat_owned_many",
            Design::StdMpsc => "std_mpsc",
            Design::Crossbeam => "crossbeam",
        }
    }

    /// Description.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Design::Before => "model: counting semaphore",
            Design::After => "model: batching change",
            Design::Slots => "onbeat",
            Design::SlotsSpin => "onbeat, spinning",
            Design::Fifo => "onbeat, one order",
            Design::Many => "onbeat, 16 at once",
            Design::Shared => "onbeat, shared items",
            Design::Owned => "onbeat, owned items",
            Design::OwnedMany => "onbeat, 16 owned at once",
            Design::StdMpsc => "std mpsc",
            Design::Crossbeam => "crossbeam unbounded",
        }
    }

    /// Locked instructions per item by construction, for its schedule and its run. Excludes the callback's
    /// own, those shared by all items of a pass, retries, and wake-ups. `None` if not counted.
    #[must_use]
    pub fn locked_operations(self) -> Option<f64> {
        match self {
            // The list's lock and the semaphore's, on both sides.
            Design::Before => Some(4.0),
            Design::After => Some(1.0),
            // Begin pending, push, end pending.
            Design::Slots | Design::SlotsSpin | Design::Fifo => Some(3.0),
            Design::Many => Some(2.0 + 1.0 / super::load::BATCH as f64),
            Design::Shared => Some(5.0),
            Design::Owned => Some(1.0),
            Design::OwnedMany => Some(1.0 / super::load::BATCH as f64),
            Design::StdMpsc | Design::Crossbeam => None,
        }
    }
}
