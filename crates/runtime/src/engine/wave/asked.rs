//! Whether a source and a sink can do without queues, asked before there are any.

use super::{Help, Ride, Rode};
use crate::engine::carry::{Came, Carrier, Carry, More, Way};
use crate::operator::Operator;
use crate::operator::context::Context;
use std::any::Any;
use std::sync::Arc;

/// Notes what it is told.
#[derive(Default)]
struct Asked {
    fills: bool,
    drains: bool,
}

/// Whether chunks may go from the hand of this source to that of this sink: see [`Operator::fill`] and [`Operator::drain`].
pub(crate) fn go_from_hand_to_hand(source: &dyn Operator, sink: &dyn Operator) -> bool {
    let mut carrier = Carrier(Box::<Asked>::default());
    source.fills(&mut carrier);
    sink.drains(&mut carrier);
    carrier.0.as_any().downcast_ref::<Asked>().is_some_and(|asked| asked.fills && asked.drains)
}

impl Carry for Asked {
    fn pass(&mut self, _: &mut Context, _: &mut Way<'_>, _: More, _: Option<&mut [u64]>) -> Came {
        Came::Nowhere
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn begin_at(&mut self, _: &dyn Any) {
        self.fills = true;
    }

    fn end_at(&mut self, _: &dyn Any) {
        self.drains = true;
    }

    fn has_input(&self, _: &Context) -> bool {
        false
    }

    fn writes_afresh(&mut self, _: u32) {}

    fn equip(&mut self, _: &Context) -> bool {
        false
    }

    fn share(&mut self, _: (u32, u32), _: Vec<Context>) -> Option<Arc<dyn Help>> {
        None
    }

    fn ride(&mut self, _: &mut Context, _: &mut Way<'_>, _: &Ride<'_>) -> Option<Rode> {
        None
    }
}
