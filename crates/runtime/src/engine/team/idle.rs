//! Waits of a thread: polling, then parking, as the idle setting says.

use crate::base::descriptors::Descriptors;
use crate::base::idle::Idle;
use crate::base::quiescence::NEVER;
use onbeat_os::{Parker, Unparked};
use std::cell::Cell;

/// Polls of other state from one reading of the clock to the next, which costs more.
pub(crate) const POLLS: u32 = 8;

/// Where a thread waits: at its parker, and at the descriptors that it watches.
pub(crate) struct WaitPlace<'t> {
    pub parker: &'t Parker,
    /// `None` if another thread of the pool watches them.
    pub descriptors: Option<&'t Descriptors>,
}

impl WaitPlace<'_> {
    /// Parks until an unparker wakes the thread, a descriptor is ready, or the deadline.
    fn park(&self, deadline_ns: Option<u64>, now_ns: impl Fn() -> u64) -> Unparked {
        let watched = self.descriptors.and_then(|descriptors| Some((descriptors, descriptors.poll()?)));
        match (watched, deadline_ns) {
            (Some((descriptors, poll)), _) => {
                let unparked = self.parker.park_polling(poll, deadline_ns);
                if unparked == Unparked::Ready && descriptors.look_now(now_ns()) {
                    poll.silence();
                }
                unparked
            }
            (None, Some(deadline_ns)) => self.parker.park_until(deadline_ns),
            (None, None) => {
                self.parker.park();
                Unparked::Notified
            }
        }
    }

    /// Wraps what a spinning thread polls: it looks at the descriptors, too, at every few polls.
    fn with_looks(&self, up: impl Fn() -> bool) -> impl Fn() -> bool {
        let polls = Cell::new(0u32);
        move || {
            if let Some(descriptors) = self.descriptors {
                polls.set(polls.get().wrapping_add(1));
                if polls.get().is_multiple_of(POLLS) {
                    descriptors.look();
                }
            }
            up()
        }
    }
}

impl Idle {
    /// Waits until `up`, or until the clock reaches `alarm_ns` (`u64::MAX` for never). For a part with a
    /// thread of its own.
    pub(crate) fn wait(
        self,
        at: &WaitPlace<'_>,
        alarm_ns: u64,
        up: impl Fn() -> bool,
        now_ns: impl Fn() -> u64,
    ) {
        self.spin_at(at, alarm_ns, &up, &now_ns);
        while !up() {
            if self.park_until(at, alarm_ns, &up, &now_ns) == Unparked::TimedOut {
                return;
            }
        }
    }

    /// Parks until `alarm_ns` (`u64::MAX` for never); with [`Idle::Early`], parks until shortly before that,
    /// then spins.
    pub(crate) fn park_until(
        self,
        at: &WaitPlace<'_>,
        alarm_ns: u64,
        up: impl Fn() -> bool,
        now_ns: impl Fn() -> u64,
    ) -> Unparked {
        if alarm_ns == NEVER {
            return at.park(None, now_ns);
        }
        let early_ns = if let Idle::Early(early_ns) = self { early_ns } else { 0 };
        let until_ns = alarm_ns.saturating_sub(early_ns);
        let unparked =
            if now_ns() >= until_ns { Unparked::TimedOut } else { at.park(Some(until_ns), &now_ns) };
        if unparked == Unparked::TimedOut && early_ns > 0 {
            spin_until(alarm_ns, 1, 1, at.with_looks(up), now_ns);
        }
        unparked
    }

    /// [`spin`](Self::spin), with looks at the descriptors.
    pub(crate) fn spin_at(
        self,
        at: &WaitPlace<'_>,
        alarm_ns: u64,
        up: impl Fn() -> bool,
        now_ns: impl Fn() -> u64,
    ) -> bool {
        self.spin(alarm_ns, at.with_looks(up), now_ns)
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
