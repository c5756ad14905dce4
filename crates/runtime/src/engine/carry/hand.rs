//! Chunks that go from hand to hand, and lie in no queue.

use super::{Came, Way};
use crate::Error;
use crate::base::slot::PartSlot;
use crate::operator::chunk::Info;
use crate::operator::context::{Context, NONE};
use crate::operator::{Operator, Step};
use onbeat_queue::Meta;

/// How many passes may follow the first one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct More {
    /// Without a look at what the worker is told from outside.
    pub blind: u32,
    /// With such looks on the way, from hand to hand.
    pub seeing: u32,
}

impl More {
    pub const NONE: More = More { blind: 0, seeing: 0 };
}

/// Chunks that went from hand to hand, and lay in no queue.
#[derive(Debug, Default)]
pub(crate) struct Hands {
    pub from_source: u64,
    pub to_sink: u64,
    /// All of [`Way::whole`] did, at both ends, and are not counted here yet; and so does the one under way.
    pub all: bool,
}

impl Hands {
    /// The pass under way is over: it was the last of so many that went as far as they go, and went itself from the source, to the sink.
    pub fn count(&mut self, whole: u64, from_source: bool, to_sink: bool) {
        if std::mem::take(&mut self.all) {
            self.from_source += whole + u64::from(from_source);
            self.to_sink += whole + u64::from(to_sink);
        }
    }
}

/// Passes from the source, through those inside, to the sink, all with these samples, which are filled again and again. `None` before one
/// that does not go as usual, whose turn has begun; [`Came::Through`] where the sink does not take what it was shown. Says also whether
/// that is in the spare samples: those inside may write others where it is said so (`AFRESH`).
///
/// By itself, and of bytes: what is needed from one call to the next is in registers.
#[inline(never)]
pub(super) fn pass<const AFRESH: bool>(
    cx: &mut Context,
    way: &mut Way<'_>,
    (samples, spare): (&mut [u8], &mut [u8]),
    info: &mut Info,
    more: More,
) -> (Option<Came>, bool) {
    let [source, first, sink] = way.numbers;
    let (Some(from), Some(to)) = (&mut way.source, &mut way.sink) else { return (None, false) };
    let afresh = way.afresh;
    let mut is_swapped = false;
    let (inside, slot, node) = (&mut *way.inside, way.slot, &mut *way.node);
    let (outside, whole) = (&mut way.outside, &mut *way.whole);
    let mut blind = more.blind;
    outside.go_on_for(more.seeing.saturating_sub(blind));
    (cx.next, cx.popped) = (NONE, 1);
    way.hands.all = true;
    let (came, is_drained) = loop {
        cx.current = source;
        slot.enter(source);
        let is_filled = from.fill(cx, samples, info);
        if cx.next != NONE {
            break (Some(Came::FromSource(Err(did_more_than_fill()))), false);
        }
        if !is_filled {
            break (None, false);
        }
        node.sequence += 1;
        let changed = if AFRESH {
            rewrite(cx, (samples, spare), info, inside, (first, afresh), slot, None)
        } else {
            edit(cx, samples, info, inside, first, slot, None).map(|()| false)
        };
        match changed {
            Ok(swapped) => is_swapped = swapped,
            Err((through, error)) => break (Some(Came::Failed(through, error)), false),
        }
        cx.current = sink;
        slot.enter(sink);
        if !to.drain(cx, if AFRESH && is_swapped { spare } else { samples }, info) {
            break (Some(Came::Through), false);
        }
        if !cx.is_usual() || cx.wishes != 0 || !cx.ready.is_empty() {
            break (Some(Came::ToSink(Ok(Step::Wait))), true);
        }
        if blind == 0 {
            blind = outside.look(cx);
            if blind == 0 {
                break (Some(Came::ToSink(Ok(Step::Wait))), true);
            }
        }
        blind -= 1;
        info.reset();
        *whole += 1;
        node.begin_turn(cx);
    };
    let is_filled = matches!(came, Some(Came::Failed(..) | Came::Through)) || is_drained;
    way.hands.count(*way.whole, is_filled, is_drained);
    (came, is_swapped)
}

/// The samples of a chunk, through all of these, which are numbered from `first` on and shown in the slot. Says how many it went through
/// before one failed, and how. Which of them is under way is in the slot alone.
#[inline(always)]
pub(super) fn edit(
    cx: &Context,
    samples: &mut [u8],
    info: &Info,
    operators: &mut [Box<dyn Operator>],
    first: u32,
    slot: &PartSlot,
    mut times_ns: Option<&mut [u64]>,
) -> Result<(), (usize, Error)> {
    for (number, operator) in (first..).zip(operators) {
        slot.enter(number);
        if let Some(times_ns) = &mut times_ns {
            times_ns[(number - first) as usize] = cx.clock.now_ns();
        }
        operator.edit(samples, info).map_err(|error| ((number - first) as usize, error))?;
    }
    Ok(())
}

/// As [`edit`], where some write other samples, to the spare ones: those among them that the bits say, the first of them lowest. Says
/// whether what they came to is in these.
#[inline(always)]
pub(super) fn rewrite(
    cx: &Context,
    (mut samples, mut spare): (&mut [u8], &mut [u8]),
    info: &mut Info,
    operators: &mut [Box<dyn Operator>],
    (first, afresh): (u32, u64),
    slot: &PartSlot,
    mut times_ns: Option<&mut [u64]>,
) -> Result<bool, (usize, Error)> {
    let (mut left, mut is_swapped) = (afresh, false);
    for (number, operator) in (first..).zip(operators) {
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
pub(crate) fn did_more_than_fill() -> Error {
    Error::new(
        "its `fill` sent a message or took a chunk: it fills the one that it is given, and who wants more does that in `step`",
    )
}
