//! Barrier of the threads of a run: before the first step, after the last, and between their stops.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Like the barrier of the standard library, but a member that does not come can be counted out.
pub(crate) struct Barrier {
    members: Mutex<Vec<Member>>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    /// Has not come yet.
    Away,
    Waiting,
    /// Was counted out: its thread does not return.
    GivenUp,
    /// Has left: its thread is about to end.
    Gone,
}

impl Barrier {
    pub fn new(members: usize) -> Self {
        Barrier { members: Mutex::new(vec![Member::Away; members]), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for all members that count. False for a member that does not count any more: it must touch
    /// nothing.
    pub fn wait(&self, member: usize) -> bool {
        let mut members = self.lock();
        if members[member] != Member::Away {
            return false;
        }
        members[member] = Member::Waiting;
        self.open_if_full(&mut members);
        while members[member] == Member::Waiting {
            members = self.changed.wait(members).unwrap_or_else(PoisonError::into_inner);
        }
        true
    }

    fn open_if_full(&self, members: &mut [Member]) {
        if !members.contains(&Member::Away) {
            for member in members.iter_mut().filter(|member| **member == Member::Waiting) {
                *member = Member::Away;
            }
        }
        self.changed.notify_all();
    }

    /// Counts a member out. False if it waits here after all, or is out already.
    pub fn give_up(&self, member: usize) -> bool {
        self.take_out(member, Member::GivenUp)
    }

    /// Counts a member out whose thread ends, for any reason.
    pub fn leave(&self, member: usize) {
        self.take_out(member, Member::Gone);
    }

    fn take_out(&self, member: usize, how: Member) -> bool {
        let mut members = self.lock();
        let is_expected = members[member] == Member::Away;
        if is_expected {
            members[member] = how;
            self.open_if_full(&mut members);
        }
        is_expected
    }

    /// Waits until a member's thread is about to end. False if the member was given up.
    pub fn await_end(&self, member: usize) -> bool {
        let mut members = self.lock();
        while !matches!(members[member], Member::Gone | Member::GivenUp) {
            members = self.changed.wait(members).unwrap_or_else(PoisonError::into_inner);
        }
        members[member] == Member::Gone
    }

    pub fn is_given_up(&self, member: usize) -> bool {
        self.lock()[member] == Member::GivenUp
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_queue::sync::atomic::{AtomicU32, Ordering};
    use std::sync::Arc;

    #[test]
    fn the_other_members_continue() {
        for members in 1..5usize {
            for lost in 0..members {
                let barrier = Arc::new(Barrier::new(members));
                let passed = Arc::new(AtomicU32::new(0));
                let others = members as u32 - 1;
                let threads: Vec<_> = (0..members)
                    .filter(|&member| member != lost)
                    .map(|member| {
                        let (barrier, passed) = (Arc::clone(&barrier), Arc::clone(&passed));
                        onbeat_os::thread::spawn("waits", move || {
                            for round in 0..50u32 {
                                assert!(barrier.wait(member));
                                // No member is ahead of those that have not come.
                                assert!(
                                    passed.fetch_add(1, Ordering::Relaxed)
                                        >= round.saturating_sub(1) * others
                                );
                            }
                            barrier.leave(member);
                        })
                        .unwrap()
                    })
                    .collect();
                assert!(barrier.give_up(lost) && !barrier.give_up(lost));
                for thread in threads {
                    thread.join().unwrap();
                }
                assert_eq!(passed.load(Ordering::Relaxed), 50 * others);
                assert!(!barrier.wait(lost) && !barrier.await_end(lost) && barrier.is_given_up(lost));
                assert!((0..members).all(|member| member == lost || barrier.await_end(member)));
            }
        }
    }
}
