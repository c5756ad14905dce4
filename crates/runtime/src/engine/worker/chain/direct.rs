//! Direct hand-over: one chunk is filled, changed and drained again and again, and never queued.

use super::state::{Inside, PassBatch, PassOutcome, PassState};
use crate::Error;
use crate::base::slot::PartSlot;
use crate::operator::Step;
use crate::operator::chunk::Info;
use crate::operator::context::{Context, NONE};
use onbeat_queue::Meta;

/// Makes passes from the source to the sink, all with the same samples.
///
/// Returns `None` before a pass that is out of the ordinary, whose turn has begun, and
/// [`PassOutcome::Through`] if the sink does not take the chunk that it was shown. The flag says whether the
/// result is in the spare samples: operators inside may write other chunks if `REWRITES` is set.
///
/// This function is not inlined and works on bytes, so that its state from pass to pass stays in registers.
#[inline(never)]
pub(super) fn pass<const REWRITES: bool>(
    cx: &mut Context,
    state: &mut PassState<'_>,
    (samples, spare): (&mut [u8], &mut [u8]),
    info: &mut Info,
    batch: PassBatch,
) -> (Option<PassOutcome>, bool) {
    let [source, first, sink] = state.numbers;
    let ends =
        (state.source.as_mut().and_then(|it| it.inline()), state.sink.as_mut().and_then(|it| it.inline()));
    let (Some(from), Some(to)) = ends else { return (None, false) };
    let rewriting = state.rewriting;
    let mut is_swapped = false;
    let (inside, slot, node) = (&mut *state.inside, state.slot, &mut *state.node);
    let (poller, whole) = (&mut state.poller, &mut *state.whole);
    let mut unpolled = batch.unpolled;
    poller.allow(batch.polled.saturating_sub(unpolled));
    (cx.next, cx.popped) = (NONE, 1);
    state.direct.all = true;
    let (outcome, is_drained) = loop {
        cx.current = source;
        slot.enter(source);
        let is_filled = from.fill(cx, samples, info);
        if cx.next != NONE {
            break (Some(PassOutcome::FromSource(Err(did_more_than_fill()))), false);
        }
        if !is_filled {
            break (None, false);
        }
        node.sequence += 1;
        let changed = if REWRITES {
            rewrite(cx, (samples, spare), info, inside, (first, rewriting), slot, None)
        } else {
            edit(cx, samples, info, inside, first, slot, None).map(|()| false)
        };
        match changed {
            Ok(swapped) => is_swapped = swapped,
            Err((through, error)) => break (Some(PassOutcome::Failed(through, error)), false),
        }
        cx.current = sink;
        slot.enter(sink);
        if !to.drain(cx, if REWRITES && is_swapped { spare } else { samples }, info) {
            break (Some(PassOutcome::Through), false);
        }
        if !cx.is_usual() || cx.replicas.pending_turns != 0 || !cx.ready.is_empty() {
            break (Some(PassOutcome::ToSink(Ok(Step::Wait))), true);
        }
        if unpolled == 0 {
            unpolled = poller.poll(cx);
            if unpolled == 0 {
                break (Some(PassOutcome::ToSink(Ok(Step::Wait))), true);
            }
        }
        unpolled -= 1;
        info.reset();
        *whole += 1;
        node.begin_turn(cx);
    };
    let is_filled = matches!(outcome, Some(PassOutcome::Failed(..) | PassOutcome::Through)) || is_drained;
    state.direct.count(*state.whole, is_filled, is_drained);
    (outcome, is_swapped)
}

/// Takes the samples of a chunk through the operators inside, which are numbered from `first` on and shown in
/// the slot.
///
/// # Errors
/// Number of operators before the one that failed, and the error. Only the slot says which operator is
/// running.
#[inline(always)]
pub(super) fn edit(
    cx: &Context,
    samples: &mut [u8],
    info: &Info,
    inside: &mut Inside<'_>,
    first: u32,
    slot: &PartSlot,
    mut times_ns: Option<&mut [u64]>,
) -> Result<(), (usize, Error)> {
    for (number, operator) in (first..).zip(inside.iter_mut().flatten()) {
        slot.enter(number);
        if let Some(times_ns) = &mut times_ns {
            times_ns[(number - first) as usize] = cx.clock.now_ns();
        }
        operator.edit(samples, info).map_err(|error| ((number - first) as usize, error))?;
    }
    Ok(())
}

/// Like [`edit`], if some operators write other samples: those whose bit is set in `rewriting`, lowest first.
/// Returns whether the result is in the spare samples.
#[inline(always)]
pub(super) fn rewrite(
    cx: &Context,
    (mut samples, mut spare): (&mut [u8], &mut [u8]),
    info: &mut Info,
    inside: &mut Inside<'_>,
    (first, rewriting): (u32, u64),
    slot: &PartSlot,
    mut times_ns: Option<&mut [u64]>,
) -> Result<bool, (usize, Error)> {
    let (mut left, mut is_swapped) = (rewriting, false);
    for (number, operator) in (first..).zip(inside.iter_mut().flatten()) {
        slot.enter(number);
        if let Some(times_ns) = &mut times_ns {
            times_ns[(number - first) as usize] = cx.clock.now_ns();
        }
        let changed = if left & 1 == 0 {
            operator.edit(samples, info)
        } else {
            (samples, spare) = (spare, samples);
            is_swapped = !is_swapped;
            operator.rewrite(spare, samples, info)
        };
        changed.map_err(|error| ((number - first) as usize, error))?;
        left >>= 1;
    }
    Ok(is_swapped)
}

#[cold]
pub(super) fn did_more_than_fill() -> Error {
    Error::new(
        "its `fill` sent a message or took a chunk: it only fills the chunk that it is given; do the rest in `step`",
    )
}
