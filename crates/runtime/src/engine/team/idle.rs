//! How long a worker looks for something to do before it sleeps.

use crate::base::idle::Idle;
use crate::base::quiescence::NEVER;
use onbeat_os::{Parker, Unparked};

/// Looks at what others tell between two at the clock: that costs more.
pub(crate) const LOOKS: u32 = 8;

impl Idle {
    /// Waits on a thread of its own until `up`, or until the run's clock comes to `alarm_ns` (`u64::MAX` for never).
    pub fn wait(self, parker: &Parker, alarm_ns: u64, up: impl Fn() -> bool, now_ns: impl Fn() -> u64) {
        self.spin(alarm_ns, &up, &now_ns);
        while !up() {
            if alarm_ns == NEVER {
                parker.park();
            } else if self.park_until(parker, alarm_ns, &up, &now_ns) == Unparked::TimedOut {
                return;
            }
        }
    }

    /// The part of the wait that leaves the core to others, until an alarm, and what this way of waiting does shortly before that.
    pub fn park_until(
        self,
        parker: &Parker,
        alarm_ns: u64,
        up: impl Fn() -> bool,
        now_ns: impl Fn() -> u64,
    ) -> Unparked {
        let early_ns = if let Idle::Early(early_ns) = self { early_ns } else { 0 };
        let until_ns = alarm_ns.saturating_sub(early_ns);
        let unparked = if now_ns() >= until_ns { Unparked::TimedOut } else { parker.park_until(until_ns) };
        if unparked == Unparked::TimedOut && early_ns > 0 {
            look(alarm_ns, 1, 1, up, now_ns);
        }
        unparked
    }

    /// The part of the wait that keeps the core busy. Says whether `up` came true in it, or the time is over.
    pub fn spin(self, alarm_ns: u64, up: impl Fn() -> bool, now_ns: impl Fn() -> u64) -> bool {
        let spin_ns = match self {
            Idle::Park | Idle::Early(_) => return up(),
            Idle::SpinFor(spin_ns) => spin_ns,
            Idle::Spin => NEVER,
        };
        let end_ns = now_ns().saturating_add(spin_ns).min(alarm_ns);
        look(end_ns, LOOKS, 1, up, now_ns) || end_ns == alarm_ns
    }
}

/// Looks until `up` or until the time comes, so many pauses of the processor after each other, and at the clock at every so many
/// looks. Says whether `up` came true.
pub(crate) fn look(
    end_ns: u64,
    every: u32,
    pauses: u32,
    mut up: impl FnMut() -> bool,
    now_ns: impl Fn() -> u64,
) -> bool {
    let mut turns = 0u32;
    while !up() {
        turns = turns.wrapping_add(1);
        if turns.is_multiple_of(every) && now_ns() >= end_ns {
            return false;
        }
        (0..pauses).for_each(|_| std::hint::spin_loop());
    }
    true
}
