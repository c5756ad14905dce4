//! Neighbours that change chunks in place, run as one step: the chunk is taken once, each of them changes it, and it is sent on
//! once. What happens to it on the way is the same, and so is what is measured.

use crate::chunk::{Chunk, Sample};
use crate::context::Context;
use crate::operator::Operator;
use crate::run::PartSlot;
use crate::{Error, Input, Output};
use std::any::Any;

/// Takes chunks where the first of several operators takes them, and sends them where the last one does. Made by those that change
/// samples in place ([`InPlace`](crate::InPlace)).
pub struct Carrier(pub(crate) Box<dyn Carry>);

/// See [`Carrier`].
pub(crate) trait Carry: Send {
    /// One chunk, through all of these, which are numbered from `first` on and shown in the slot. Says how many it went through
    /// before one failed, and how; 0 and no error where no chunk came. Notes when each of them begins, if that is asked for.
    fn carry(
        &mut self,
        cx: &mut Context,
        operators: &mut [Box<dyn Operator>],
        first: u32,
        slot: &PartSlot,
        times_ns: Option<&mut [u64]>,
    ) -> (usize, Result<(), Error>);

    /// To be told where the last one sends to.
    fn as_any(&mut self) -> &mut dyn Any;

    /// Whether a chunk waits.
    fn has_input(&self, cx: &Context) -> bool;
}

/// For chunks of one sample type.
struct Typed<T: Sample> {
    input: Input<Chunk<T>>,
    out: Output<Chunk<T>>,
}

impl Carrier {
    /// From where this input takes.
    pub(crate) fn from_input<T: Sample>(input: &Input<Chunk<T>>) -> Self {
        Carrier(Box::new(Typed { input: input.share(), out: Output::default() }))
    }

    /// To where this output sends.
    pub(crate) fn send_to<T: Sample>(&mut self, out: &Output<Chunk<T>>) {
        if let Some(typed) = self.0.as_any().downcast_mut::<Typed<T>>() {
            typed.out = out.share();
        }
    }
}

impl<T: Sample> Carry for Typed<T> {
    #[inline]
    fn carry(
        &mut self,
        cx: &mut Context,
        operators: &mut [Box<dyn Operator>],
        first: u32,
        slot: &PartSlot,
        mut times_ns: Option<&mut [u64]>,
    ) -> (usize, Result<(), Error>) {
        cx.current = first;
        let Some(mut chunk) = self.input.pop(cx) else { return (0, Ok(())) };
        let (rate_hz, start) = (chunk.rate_hz(), chunk.info().start);
        let samples = match chunk.edit(cx) {
            Ok(samples) => bytemuck::cast_slice_mut::<T, u8>(samples),
            Err(error) => return (0, Err(error)),
        };
        for (done, operator) in operators.iter_mut().enumerate() {
            cx.current = first + done as u32;
            slot.enter(cx.current);
            if let Some(times_ns) = &mut times_ns {
                times_ns[done] = cx.clock.now_ns();
            }
            if let Err(error) = operator.edit(samples, rate_hz, start) {
                return (done, Err(error));
            }
        }
        (operators.len(), self.out.push(cx, chunk))
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn has_input(&self, cx: &Context) -> bool {
        !self.input.is_empty(cx)
    }
}
