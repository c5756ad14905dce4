//! Waits of a thread: polling, then parking, as the idle setting says.

use crate::base::idle::Idle;
use crate::base::quiescence::NEVER;
use onbeat_os::{Parker, Unparked};

/// Polls of other state from one reading of the clock to the next, which costs more.
pub(crate) const POLLS: u32 = 8;

impl Idle {
    /// Waits until `up`, or until the clock reaches `alarm_ns` (`u64::MAX` for never). For a part with a
    /// thread of its own.
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

    /// Parks until `alarm_ns`; with [`Idle::Early`], parks until shortly before that, then spins.
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
            spin_until(alarm_ns, 1, 1, up, now_ns);
        }
        unparked
    }

    /// Spins if and as long as this setting says. Returns whether `up` came true or the alarm is due.
    pub fn spin(self, alarm_ns: u64, up: impl Fn() -> bool, now_ns: impl Fn() -> u64) -> bool {
        let spin_ns = match self {
            Idle::Park | Idle::Early(_) => return up(),
            Idle::SpinFor(spin_ns) => spin_ns,
            Idle::Spin => NEVER,
        };
        let end_ns = now_ns().saturating_add(spin_ns).min(alarm_ns);
        spin_until(end_ns, POLLS, 1, up, now_ns) || end_ns == alarm_ns
    }
}

/// Polls until `up` is true or the clock reaches `end_ns`, with a number of spin-loop hints (`pauses`)
/// between two polls. Reads the clock at every `every`-th poll. Returns whether `up` came true.
pub(crate) fn spin_until(
    end_ns: u64,
    every: u32,
    pauses: u32,
    mut up: impl FnMut() -> bool,
    now_ns: impl Fn() -> u64,
) -> bool {
    let mut polls = 0u32;
    while !up() {
        polls = polls.wrapping_add(1);
        if polls.is_multiple_of(every) && now_ns() >= end_ns {
            return false;
        }
        (0..pauses).for_each(|_| std::hint::spin_loop());
    }
    true
}
