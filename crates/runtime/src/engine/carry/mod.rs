//! Neighbours that change chunks in place, or write others and have no state, run as one step: the chunk is taken once, goes through each
//! of them, and is sent on once. Those that write others have a spare chunk, which changes places with the one in hand. What happens to
//! it on the way is the same, and so is what is measured; but a step that is timed goes over the edges at both ends, also where chunks go
//! from hand to hand else, and so it takes some nanoseconds longer than those.

mod hand;

pub(crate) use hand::{Hands, More, did_more_than_fill};

use crate::base::slot::PartSlot;
use crate::engine::wave::{Crest, Help, Ride, Rode};
use crate::engine::worker::{NodeState, Outside};
use crate::operator::chunk::{Chunk, Sample};
use crate::operator::context::{Context, NONE};
use crate::operator::message::{LAST, Message};
use crate::operator::{Operator, Step};
use crate::{Error, Input, Output};
use hand::{edit, rewrite};
use std::any::Any;
use std::sync::Arc;

/// Takes chunks where the first of several operators takes them, and sends them where the last one does. Made by those that change
/// samples in place ([`InPlace`](crate::InPlace)), or write others and have no state ([`Stream`](crate::Stream) of a kernel with a
/// [`replica`](crate::Kernel::replica)). Where a source or a sink is run along that says where its chunks go out or come
/// in, they go from hand to hand there too: see [`Operator::fill`] and [`Operator::drain`].
pub struct Carrier(pub(crate) Box<dyn Carry>);

/// See [`Carrier`].
pub(crate) trait Carry: Send {
    /// One chunk from the source, whose turn has begun, or one that lies before the first of those that change chunks, through them, and to
    /// the sink; and so many more as `more` says, as long as there are some and all is as usual. Notes when each step begins behind that
    /// of the source, if that is asked for.
    fn pass(&mut self, cx: &mut Context, way: &mut Way<'_>, more: More, times_ns: Option<&mut [u64]>)
    -> Came;

    /// To be told where the last one sends to.
    fn as_any(&mut self) -> &mut dyn Any;

    /// The source that is run along sends here.
    fn begin_at(&mut self, out: &dyn Any);

    /// The sink that is run along takes here.
    fn end_at(&mut self, input: &dyn Any);

    /// Whether a chunk waits.
    fn has_input(&self, cx: &Context) -> bool;

    /// Some of them write other chunks, of so many bytes.
    fn writes_afresh(&mut self, bytes: u32);

    /// Whether there is a chunk for them to write to; they are stepped one by one where there is none.
    fn equip(&mut self, cx: &Context) -> bool;

    /// Threads with these contexts may carry chunks together from now on, if all that come from the source's hand may go to that of the
    /// sink. The ends have these numbers.
    fn share(&mut self, ends: (u32, u32), contexts: Vec<Context>) -> Option<Arc<dyn Help>>;

    /// They do, for a while: see [`wave`](crate::engine::wave). `None` where something lies on the edges.
    fn ride(&mut self, cx: &mut Context, way: &mut Way<'_>, ride: &Ride<'_>) -> Option<Rode>;
}

/// What a pass needs of a worker, taken apart once for several of them.
pub(crate) struct Way<'w> {
    /// Where the chunks come from it now, and do not lie before those that change them.
    pub source: Option<&'w mut Box<dyn Operator>>,
    /// Those that change chunks.
    pub inside: &'w mut [Box<dyn Operator>],
    /// Where it is run along, and nothing is in its way. What changes that is followed up before the next pass.
    pub sink: Option<&'w mut Box<dyn Operator>>,
    /// Of the source, of the first of those inside, of the sink.
    pub numbers: [u32; 3],
    /// Those inside that write other chunks, by bit.
    pub afresh: u64,
    /// Of the source.
    pub node: &'w mut NodeState,
    pub slot: &'w PartSlot,
    pub outside: Outside<'w>,
    /// Passes before the last one, which went as far as they go.
    pub whole: &'w mut u64,
    /// Where the sink has turns with those of other workers.
    pub short: Option<&'w mut Short>,
    pub hands: &'w mut Hands,
}

/// Passes that had less than others. A sink that has turns with those of other workers is not stepped while chunks of the same turn lie
/// before the run: all of them go through first, and then into its turn at once.
#[derive(Debug, Default)]
pub(crate) struct Short {
    /// Without a step of the source, which had sent several in one.
    pub of_source: u64,
    /// Without a step of the sink, for which messages lie there now.
    pub of_sink: u64,
}

impl Way<'_> {
    /// Those of one pass, in order.
    pub fn all(&mut self) -> impl Iterator<Item = &mut Box<dyn Operator>> {
        let Way { source, inside, sink, .. } = self;
        source
            .iter_mut()
            .map(|it| &mut **it)
            .chain(inside.iter_mut())
            .chain(sink.iter_mut().map(|it| &mut **it))
    }
}

/// How far a pass came.
pub(crate) enum Came {
    /// The source had its step, which ended in this way.
    FromSource(Result<Step, Error>),
    /// There was no chunk.
    Nowhere,
    /// Through so many of those that change chunks; the next one failed.
    Failed(usize, Error),
    /// Through the run, and no further.
    Through,
    /// To the sink, whose step ended in this way.
    ToSink(Result<Step, Error>),
}

/// For chunks of one sample type.
struct Typed<T: Sample> {
    input: Input<Chunk<T>>,
    out: Output<Chunk<T>>,
    /// Where a source sends whose chunks come from its hand.
    begin: Option<Output<Chunk<T>>>,
    /// Bytes up to which chunks go to the sink's hand.
    end: Option<usize>,
    /// All that come from the one hand may go to the other.
    is_between_hands: bool,
    /// Where some write other chunks: how large these are, and the one that is written next.
    spare_bytes: Option<u32>,
    spare: Option<Chunk<T>>,
    /// Where other threads carry chunks, too.
    crest: Option<Crest<T>>,
}

impl Carrier {
    /// From where this input takes.
    pub(crate) fn from_input<T: Sample>(input: &Input<Chunk<T>>) -> Self {
        Carrier(Box::new(Typed {
            input: input.share(),
            out: Output::default(),
            begin: None,
            end: None,
            is_between_hands: false,
            spare_bytes: None,
            spare: None,
            crest: None,
        }))
    }

    /// The source before the first of them sends here: see [`Operator::fill`]. Nothing comes of it where the edge is not a plain one, on one
    /// worker and to that operator alone, or is for other samples than theirs.
    pub fn begin_at<M: Message>(&mut self, out: &Output<M>) {
        self.0.begin_at(out);
    }

    /// The sink behind the last of them takes here: see [`Operator::drain`]. Nothing comes of it where
    /// [`begin_at`](Self::begin_at) says so.
    pub fn end_at<M: Message>(&mut self, input: &Input<M>) {
        self.0.end_at(input);
    }

    /// To where this output sends.
    pub(crate) fn send_to<T: Sample>(&mut self, out: &Output<Chunk<T>>) {
        if let Some(typed) = self.0.as_any().downcast_mut::<Typed<T>>() {
            typed.out = out.share();
        }
    }
}

impl<T: Sample> Typed<T> {
    /// Passes from the hand of the source to that of the sink, through one chunk that is filled again and again: as many as go as usual.
    /// `None` before one that does not, whose turn has begun.
    #[inline(always)]
    fn pass_by_hand(&mut self, cx: &mut Context, way: &mut Way<'_>, more: More) -> Option<Came> {
        if self.spare_bytes.is_some() && self.spare.is_none() {
            return None;
        }
        // What lies on an edge comes first.
        let out = self.begin.as_ref().filter(|out| out.is_clear(cx) && self.out.is_clear(cx))?;
        let mut chunk = out.chunk_if_free(cx)?;
        // Nobody else has it, and nobody gets it: those that fill, change and drain it see what is in it.
        let (samples, info) = chunk.parts()?;
        let samples = bytemuck::cast_slice_mut(samples);
        let (came, is_swapped) = match self.spare.as_mut().and_then(Chunk::edit_unique) {
            None => hand::pass::<false>(cx, way, (samples, &mut []), info, more),
            Some(spare) => {
                let spare = &mut bytemuck::cast_slice_mut(spare)[..samples.len()];
                hand::pass::<true>(cx, way, (samples, spare), info, more)
            }
        };
        if !matches!(came, Some(Came::Through)) {
            return came;
        }
        if is_swapped {
            chunk = self.swapped(chunk)?;
        }
        Some(self.send_undrained(cx, way, chunk).0)
    }

    /// What is in the spare chunk goes on, with what travelled with this one, which is the next one to write to. (Measured, where it came from
    /// another core: to have only read it, and let it go home where it is written again, takes up to three times as long.)
    fn swapped(&mut self, mut chunk: Chunk<T>) -> Option<Chunk<T>> {
        let mut other = self.spare.take()?;
        other.truncate(chunk.len());
        std::mem::swap(other.info_mut(), chunk.info_mut());
        let is_as_large = self.spare_bytes.is_some_and(|bytes| chunk.block_bytes() == bytes as usize);
        self.spare = (is_as_large && chunk.renew()).then_some(chunk);
        Some(other)
    }

    #[inline(always)]
    fn pass_with(
        &mut self,
        cx: &mut Context,
        way: &mut Way<'_>,
        more: More,
        mut times_ns: Option<&mut [u64]>,
    ) -> Came {
        let [source, first, sink] = way.numbers;
        // Between two looks at the clock there is a step, and no shortcut.
        let by_hand = times_ns.is_none();
        let mut fills = by_hand && self.begin.is_some();
        if by_hand && self.is_between_hands && way.sink.is_some() {
            if let Some(came) = self.pass_by_hand(cx, way, more) {
                return came;
            }
            // The source had its chance.
            fills = false;
        }
        // Those from hand to hand are among them.
        let mut left = more.blind.saturating_sub(*way.whole as u32);
        loop {
            let mut filled = None;
            if let Some(operator) = &mut way.source {
                cx.begin_step(source, way.slot);
                let out = self.begin.as_ref().filter(|out| fills && out.is_clear(cx));
                if let Some(mut chunk) = out.and_then(|out| out.chunk_if_free(cx))
                    && let Some((samples, info)) = chunk.parts()
                {
                    let is_filled = operator.fill(cx, bytemuck::cast_slice_mut(samples), info);
                    if cx.next != NONE {
                        return Came::FromSource(Err(did_more_than_fill()));
                    }
                    filled = is_filled.then_some(chunk);
                }
                if filled.is_some() {
                    way.hands.from_source += 1;
                } else {
                    let outcome = operator.step(cx);
                    if !matches!(outcome, Ok(Step::Again)) || cx.next != first {
                        return Came::FromSource(outcome);
                    }
                }
                way.node.sequence += 1;
            }
            (cx.current, cx.next, cx.popped) = (first, NONE, u64::from(filled.is_some()));
            let Some(mut chunk) = filled.or_else(|| self.input.pop(cx)) else { return Came::Nowhere };
            if let Err(error) = chunk.edit(cx) {
                return Came::Failed(0, error);
            }
            let (samples, info) = chunk.parts().expect("it was made its own");
            let samples = bytemuck::cast_slice_mut::<T, u8>(samples);
            let times = times_ns.as_deref_mut();
            if self.spare_bytes.is_none() {
                if let Err((through, error)) = edit(cx, samples, info, way.inside, first, way.slot, times) {
                    return Came::Failed(through, error);
                }
            } else {
                let Some(spare) = self.spare.as_mut().and_then(Chunk::edit_unique) else {
                    return Came::Failed(0, Error::new("there is no chunk to write to"));
                };
                let spare = &mut bytemuck::cast_slice_mut(spare)[..samples.len()];
                let numbers = (first, way.afresh);
                match rewrite(cx, (samples, spare), info, way.inside, numbers, way.slot, times) {
                    Err((through, error)) => return Came::Failed(through, error),
                    Ok(false) => {}
                    Ok(true) => chunk = self.swapped(chunk).expect("it was just written"),
                }
                self.equip(cx);
            }
            let (samples, info) = chunk.parts().expect("it was made its own");
            let samples = bytemuck::cast_slice_mut::<T, u8>(samples);
            let (came, is_usual) = match &mut way.sink {
                Some(operator)
                    if by_hand
                        && self.end.is_some_and(|most| samples.len() <= most)
                        && self.out.is_clear(cx) =>
                {
                    cx.current = sink;
                    way.slot.enter(sink);
                    way.hands.to_sink += 1;
                    if operator.drain(cx, samples, info) {
                        (Came::ToSink(Ok(Step::Wait)), cx.is_usual())
                    } else {
                        way.hands.to_sink -= 1;
                        self.send_undrained(cx, way, chunk)
                    }
                }
                _ => self.send(cx, way, chunk, times_ns.as_deref_mut()),
            };
            if left == 0 || !is_usual || !self.equip(cx) || !goes_on(cx, way) {
                return came;
            }
            left -= 1;
        }
    }

    /// The sink was shown a chunk and does not take it from the hand.
    fn send_undrained(&mut self, cx: &mut Context, way: &mut Way<'_>, chunk: Chunk<T>) -> (Came, bool) {
        // It is the last of them that sends it.
        way.slot.enter(way.numbers[1] + way.inside.len() as u32 - 1);
        self.send(cx, way, chunk, None)
    }

    /// A chunk goes on over the edge behind the last of them, and the sink is stepped where it is run along. Says also whether all of
    /// this was as usual: all that was sent is with its consumer, and nobody is to know.
    #[inline(always)]
    fn send(
        &mut self,
        cx: &mut Context,
        way: &mut Way<'_>,
        chunk: Chunk<T>,
        times_ns: Option<&mut [u64]>,
    ) -> (Came, bool) {
        let [_, first, sink] = way.numbers;
        let last = first + way.inside.len() as u32 - 1;
        cx.current = last;
        if let Err(error) = self.out.push(cx, chunk) {
            return (Came::Failed(way.inside.len(), error), false);
        }
        match &mut way.sink {
            None => (Came::Through, cx.next == NONE && cx.hot[last as usize].unmet == 0),
            Some(_) if cx.next != sink => (Came::Through, false),
            // Others wait for the sink's turn while it lasts, and there is more of it.
            Some(_)
                if way.short.is_some()
                    && cx.stamp.origin & LAST == 0
                    && times_ns.is_none()
                    && !self.input.is_empty(cx) =>
            {
                (Came::Through, cx.hot[last as usize].unmet == 0)
            }
            Some(operator) => {
                if let Some(times_ns) = times_ns {
                    times_ns[way.inside.len()] = cx.now_ns();
                }
                cx.begin_step(sink, way.slot);
                let outcome = operator.step(cx);
                let is_usual = matches!(outcome, Ok(Step::Wait)) && cx.popped != 0 && cx.is_usual();
                (Came::ToSink(outcome), is_usual)
            }
        }
    }
}

/// Behind a pass that went as usual: whether there is another one, which begins.
#[inline(always)]
fn goes_on(cx: &mut Context, way: &mut Way<'_>) -> bool {
    let first = way.numbers[1];
    // What a turn of the source had more of lies before the first one.
    let is_left = way.short.is_some() && cx.ready.contains(first);
    let from_source = way.source.is_some() && !is_left;
    let goes_on = if from_source { cx.ready.is_empty() } else { cx.ready.is_only(first) };
    if cx.wishes != 0 || !goes_on {
        return false;
    }
    *way.whole += 1;
    if let Some(short) = &mut way.short {
        short.of_sink += u64::from(cx.next != NONE);
        way.source = way.source.take().filter(|_| from_source);
        short.of_source += u64::from(way.source.is_none());
    }
    if from_source {
        way.node.begin_turn(cx);
    } else {
        cx.ready.clear(first);
    }
    true
}

impl<T: Sample> Carry for Typed<T> {
    fn pass(
        &mut self,
        cx: &mut Context,
        way: &mut Way<'_>,
        more: More,
        times_ns: Option<&mut [u64]>,
    ) -> Came {
        match times_ns {
            None => self.pass_with(cx, way, more, None),
            times_ns => self.pass_with(cx, way, more, times_ns),
        }
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn begin_at(&mut self, out: &dyn Any) {
        self.begin = out.downcast_ref::<Output<Chunk<T>>>().filter(|out| out.is_direct()).map(Output::share);
    }

    fn end_at(&mut self, input: &dyn Any) {
        let quantum = self.out.direct_quantum();
        let is_direct = input.downcast_ref::<Input<Chunk<T>>>().is_some_and(Input::is_direct);
        self.end = quantum.filter(|_| is_direct).map(|bytes| bytes as usize);
        let begin = self.begin.as_ref().and_then(Output::direct_quantum);
        self.is_between_hands = begin.is_some() && self.end.is_some() && begin <= quantum;
    }

    fn has_input(&self, cx: &Context) -> bool {
        !self.input.is_empty(cx)
    }

    fn writes_afresh(&mut self, bytes: u32) {
        self.spare_bytes = Some(bytes);
    }

    #[inline]
    fn equip(&mut self, cx: &Context) -> bool {
        if self.spare_bytes.is_some() && self.spare.is_none() {
            self.spare = cx.chunk_if_free(self.spare_bytes);
        }
        self.spare_bytes.is_none() || self.spare.is_some()
    }

    fn share(&mut self, ends: (u32, u32), contexts: Vec<Context>) -> Option<Arc<dyn Help>> {
        let crest = self.is_between_hands.then(|| Crest::new(ends, contexts))?;
        let help = crest.help();
        self.crest = Some(crest);
        Some(help)
    }

    fn ride(&mut self, cx: &mut Context, way: &mut Way<'_>, ride: &Ride<'_>) -> Option<Rode> {
        let begin = self.begin.as_ref().filter(|out| out.is_clear(cx) && self.out.is_clear(cx))?;
        if way.source.is_none() || way.sink.is_none() {
            return None;
        }
        (cx.next, cx.popped) = (NONE, 1);
        Some(self.crest.as_mut()?.ride(cx, way, (begin, &self.out), ride))
    }
}
