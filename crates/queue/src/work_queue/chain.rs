//! Several links in one push.

use super::turn::ItemNode;
use crate::list::{Link, Sleeper, WorkList};
use std::ptr::NonNull;

/// Links to be pushed together. If it is dropped half-way (an iterator has panicked), it pushes the links it
/// has.
pub(super) struct LinkChain<'l, S: Sleeper> {
    pub list: &'l WorkList<S>,
    pub slot: usize,
    /// The newest and the oldest link.
    pub ends: Option<(NonNull<Link>, NonNull<Link>)>,
    pub count: usize,
}

impl<S: Sleeper> LinkChain<'_, S> {
    /// Adds a link that is the caller's alone: pending by its own call, or owned.
    #[inline]
    pub fn add(&mut self, link: NonNull<Link>) {
        let (next, oldest) = match self.ends {
            Some((newest, oldest)) => (Some(newest), oldest),
            None => (None, link),
        };
        // SAFETY: it is ours alone, so it is valid and no other thread touches `next`.
        unsafe { Link::set_next(link, next) };
        self.ends = Some((link, oldest));
        self.count += 1;
    }

    /// Takes the newest link out again.
    pub fn pop(&mut self) -> Option<NonNull<Link>> {
        let (newest, oldest) = self.ends?;
        // SAFETY: the links of a chain are its own.
        let next = if newest == oldest { None } else { unsafe { Link::next(newest) } };
        self.ends = next.map(|next| (next, oldest));
        Some(newest)
    }

    /// Pushes the chain. False if the list is closed: then the links stay here.
    pub fn try_push(&mut self) -> bool {
        let Some((newest, oldest)) = self.ends else { return true };
        // SAFETY: they are valid and the chain's own; `schedule_many` was promised the rest.
        let pushed = unsafe { self.list.push(self.slot, newest, oldest) };
        if pushed {
            self.ends = None;
        }
        pushed
    }

    pub fn push(mut self) -> usize {
        if self.try_push() { self.count } else { 0 }
    }
}

impl<S: Sleeper> Drop for LinkChain<'_, S> {
    fn drop(&mut self) {
        if !self.try_push() {
            while let Some(link) = self.pop() {
                // SAFETY: it was not pushed, and its links are the first fields of nodes.
                unsafe { ItemNode::give_back(link.cast()) };
            }
        }
    }
}
