//! Parameter changes of the copies of an operator: all copies make a change at the same sample.
//!
//! Each copy gets each order from outside, sooner or later. The first one that gets an order leaves it in
//! the slot of its operator. The spread gives it a sample that no copy has got yet. Each copy finds it
//! there before that sample.

use super::{LaneSlot, SlotState};
use crate::operator::changes::WAITING;
use crate::{Error, Value};
use onbeat_queue::sync::atomic::Ordering;
use std::collections::VecDeque;

/// Orders that at least one copy has not taken yet.
#[derive(Debug, Default)]
pub(super) struct Orders {
    list: VecDeque<LaneOrder>,
    /// Number of orders before those in the list.
    gone: u64,
}

/// A parameter change.
#[derive(Debug, Clone)]
pub(crate) struct LaneOrder {
    pub name: String,
    pub value: Value,
    /// Number of the first sample with the new value; until it is placed, the one that was asked for.
    pub sample: u64,
    /// Why it was refused.
    refused: Option<String>,
    /// Number of copies that have not taken it.
    open: u32,
}

/// What a copy knows of the orders.
#[derive(Debug)]
pub(crate) struct LaneCopy {
    pub slot: LaneSlot,
    /// Number of orders that it has got from outside, and of those that it has found placed.
    given: u64,
    taken: u64,
}

impl LaneCopy {
    pub fn new(slot: LaneSlot) -> Self {
        slot.0.copies.fetch_add(1, Ordering::Relaxed);
        LaneCopy { slot, given: 0, taken: 0 }
    }

    /// Gives an order to all copies, unless another one has done so. `waiting` is the number of changes that
    /// wait for their sample here.
    pub fn give(
        &mut self,
        name: &str,
        value: &Value,
        sample: Option<u64>,
        waiting: usize,
    ) -> Result<(), Error> {
        let state = &*self.slot.0;
        let number = self.given;
        self.given += 1;
        let mut orders = state.orders.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Some(place) = number.checked_sub(orders.gone) else { return Ok(()) };
        if place == orders.list.len() as u64 {
            let order = LaneOrder {
                name: name.to_string(),
                value: value.clone(),
                sample: sample.unwrap_or(0),
                refused: state.refusal(sample, waiting),
                open: state.copies.load(Ordering::Relaxed),
            };
            orders.list.push_back(order);
            // Relaxed: the lock orders what the spread reads next.
            state.flow.given.fetch_add(1, Ordering::Relaxed);
        }
        match orders.list.get(place as usize).and_then(|order| order.refused.clone()) {
            Some(why) => Err(Error::new(why)),
            None => Ok(()),
        }
    }

    /// Whether orders have been placed that this copy has not taken.
    #[inline]
    pub fn has_placed(&self) -> bool {
        // Acquire: with the Release of `place`.
        self.slot.0.placed.load(Ordering::Acquire) != self.taken
    }

    /// Takes the orders that have been placed, without those that were refused.
    #[cold]
    pub fn take_placed(&mut self) -> Vec<LaneOrder> {
        let state = &*self.slot.0;
        let mut orders = state.orders.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let placed = state.placed.load(Ordering::Acquire);
        let first = (self.taken - orders.gone) as usize;
        let count = (placed - self.taken) as usize;
        self.taken = placed;
        let mut taken = Vec::new();
        for order in orders.list.iter_mut().skip(first).take(count) {
            order.open -= 1;
            if order.refused.is_none() {
                taken.push(order.clone());
            }
        }
        taken
    }
}

impl SlotState {
    fn refusal(&self, sample: Option<u64>, waiting: usize) -> Option<String> {
        if waiting >= WAITING {
            return Some(format!("{WAITING} changes wait for their samples already: wait for some of them"));
        }
        let next = self.scale(self.flow.end.load(Ordering::Relaxed));
        let sample = sample.filter(|&sample| sample < next)?;
        Some(format!("sample {sample} has gone by: sample {next} comes next"))
    }

    /// Places all orders. `end` is the number of the next sample that the spread hands out.
    pub(super) fn place(&self, end: u64) {
        let mut orders = self.orders.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let placed = self.placed.load(Ordering::Relaxed);
        let first = (placed - orders.gone) as usize;
        for order in orders.list.iter_mut().skip(first) {
            order.sample = order.sample.max(self.scale(end));
        }
        // Release: with the Acquire of `has_placed`.
        self.placed.store(orders.gone + orders.list.len() as u64, Ordering::Release);
        // A copy that gets an order after all have taken it finds it gone.
        while orders.list.len() > WAITING && orders.list.front().is_some_and(|order| order.open == 0) {
            orders.list.pop_front();
            orders.gone += 1;
        }
    }
}
