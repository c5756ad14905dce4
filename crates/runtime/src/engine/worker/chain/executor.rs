//! Takes chunks through a chain: from the edge before it or from its source, to the edge after it or to its
//! sink.
//!
//! Operators that write other chunks get a spare one, which changes places with the present chunk. A timed
//! pass always goes over the edges at both ends: it takes some nanoseconds longer than a pass with direct
//! hand-over.

use super::direct::{self, did_more_than_fill, edit, rewrite};
use super::state::{PassBatch, PassOutcome, PassState};
use super::wave::{ChainEnds, WaveEdges, WaveOutcome, WaveOwner, WaveRequest, WaveState};
use crate::Error;
use crate::engine::pool::WaveHelp;
use crate::operator::Step;
use crate::operator::chunk::Chunk;
use crate::operator::context::{Context, NONE};
use crate::operator::inline::{ChunkInput, ChunkOutput, InputEdge, SendChunk, TakeChunk};
use crate::operator::message::LAST;
use std::sync::Arc;

/// The ends of a chain, and what it needs from one pass to the next.
pub(crate) struct Executor {
    /// Before the first operator inside.
    input: Box<dyn TakeChunk>,
    /// After the last operator inside.
    out: Box<dyn SendChunk>,
    /// Where the source sends, if it can fill chunks that are handed over directly.
    begin: Option<Box<dyn SendChunk>>,
    /// Bytes of the largest chunk that can be handed to the sink directly, if any can.
    end_bytes: Option<usize>,
    /// Whether all chunks from the source can be handed to the sink directly.
    is_direct: bool,
    /// Bytes of the spare chunk, if operators write other chunks.
    spare_bytes: Option<u32>,
    /// The chunk that is written next.
    spare: Option<Chunk<u8>>,
    /// Owner's end of waves, if other threads can take chunks through the chain, too.
    wave: Option<WaveOwner>,
}

impl Executor {
    /// For the edges before and after the operators inside.
    pub fn new(ChunkInput(input): ChunkInput, ChunkOutput(out): ChunkOutput) -> Self {
        Executor {
            input,
            out,
            begin: None,
            end_bytes: None,
            is_direct: false,
            spare_bytes: None,
            spare: None,
            wave: None,
        }
    }

    /// Has the source fill chunks that are handed over directly, if its edge allows that.
    pub fn begin_at(&mut self, ChunkOutput(begin): ChunkOutput) {
        let is_same_edge = begin.direct().is_some() && begin.direct() == self.input.direct();
        self.begin = Some(begin).filter(|_| is_same_edge);
    }

    /// Has chunks handed to the sink directly, if its edge allows that.
    pub fn end_at(&mut self, InputEdge(end): InputEdge) {
        let edge = self.out.direct().filter(|&edge| end == Some(edge));
        self.end_bytes = edge.map(|edge| edge.quantum as usize);
        let begin = self.begin.as_ref().and_then(|begin| begin.direct());
        self.is_direct = begin.is_some_and(|begin| edge.is_some_and(|edge| begin.quantum <= edge.quantum));
    }

    /// Has operators write other chunks, of this many bytes.
    pub fn set_spare_bytes(&mut self, bytes: u32) {
        self.spare_bytes = Some(bytes);
    }

    /// Whether a chunk is queued before the first operator inside.
    pub fn has_input(&self, cx: &Context) -> bool {
        !self.input.is_empty(cx)
    }

    /// Whether there is a chunk to write to. If not, the operators have to be stepped one by one.
    #[inline]
    pub fn equip(&mut self, cx: &Context) -> bool {
        if self.spare_bytes.is_some() && self.spare.is_none() {
            self.spare = cx.chunk_if_free(self.spare_bytes);
        }
        self.spare_bytes.is_none() || self.spare.is_some()
    }

    /// Lets threads with these contexts take chunks through the chain together from now on, if all its chunks
    /// can be handed over directly. The ends of the chain have these numbers.
    pub fn share(&mut self, ends: ChainEnds, contexts: Vec<Context>) -> Option<Arc<dyn WaveHelp>> {
        let wave = self.is_direct.then(|| WaveOwner::new(ends, contexts))?;
        let help = wave.help();
        self.wave = Some(wave);
        Some(help)
    }

    /// Runs a wave: see [`wave`](super::wave). Returns `None` if messages are queued on the edges.
    pub fn run_wave(
        &mut self,
        cx: &mut Context,
        state: &mut WaveState<'_>,
        request: &WaveRequest<'_>,
    ) -> Option<WaveOutcome> {
        let begin = self.begin.as_mut().filter(|out| out.is_clear(cx) && self.out.is_clear(cx))?;
        (cx.next, cx.popped) = (NONE, 1);
        let mut edges = WaveEdges { begin: &mut **begin, out: &mut *self.out };
        Some(self.wave.as_mut()?.run(cx, state, &mut edges, request))
    }

    /// Takes one chunk through the chain, and as many more as `batch` allows while everything is as usual.
    ///
    /// The chunk comes from the source, whose turn has begun, or from the edge before the first operator
    /// inside. `times_ns` gets the time at which each step after that of the source begins.
    pub fn pass(
        &mut self,
        cx: &mut Context,
        state: &mut PassState<'_>,
        batch: PassBatch,
        times_ns: Option<&mut [u64]>,
    ) -> PassOutcome {
        match times_ns {
            None => self.pass_with(cx, state, batch, None),
            times_ns => self.pass_with(cx, state, batch, times_ns),
        }
    }

    #[inline(always)]
    fn pass_with(
        &mut self,
        cx: &mut Context,
        state: &mut PassState<'_>,
        batch: PassBatch,
        mut times_ns: Option<&mut [u64]>,
    ) -> PassOutcome {
        // In a timed pass there is one step between two readings of the clock, and no shortcut.
        let may_be_direct = times_ns.is_none();
        let mut fills = may_be_direct && self.begin.is_some();
        if may_be_direct && self.is_direct && state.sink.is_some() {
            if let Some(outcome) = self.pass_directly(cx, state, batch) {
                return outcome;
            }
            // The source had the chance to fill a chunk; now it is stepped.
            fills = false;
        }
        // Passes by direct hand-over count, too.
        let mut left = batch.unpolled.saturating_sub(*state.whole as u32);
        loop {
            let mut filled = None;
            if state.source.is_some() {
                match self.step_source(cx, state, fills) {
                    Ok(chunk) => filled = chunk,
                    Err(outcome) => return PassOutcome::FromSource(outcome),
                }
            }
            (cx.current, cx.next, cx.popped) = (state.numbers[1], NONE, u64::from(filled.is_some()));
            let Some(chunk) = filled.or_else(|| self.input.pop(cx)) else { return PassOutcome::Nowhere };
            let chunk = match self.go_inside(cx, state, chunk, times_ns.as_deref_mut()) {
                Ok(chunk) => chunk,
                Err((through, error)) => return PassOutcome::Failed(through, error),
            };
            let (outcome, is_usual) = self.deliver(cx, state, chunk, times_ns.as_deref_mut());
            if left == 0 || !is_usual || !self.equip(cx) || !goes_on(cx, state) {
                return outcome;
            }
            left -= 1;
        }
    }

    /// Makes passes by direct hand-over while everything is as usual. Returns `None` before a pass that is
    /// not, whose turn has begun.
    #[inline(always)]
    fn pass_directly(
        &mut self,
        cx: &mut Context,
        state: &mut PassState<'_>,
        batch: PassBatch,
    ) -> Option<PassOutcome> {
        if self.spare_bytes.is_some() && self.spare.is_none() {
            return None;
        }
        // Chunks that are queued on an edge come first.
        let out = self.begin.as_ref().filter(|out| out.is_clear(cx) && self.out.is_clear(cx))?;
        let mut chunk = out.chunk_if_free(cx)?;
        // Nothing else refers to the chunk.
        let (samples, info) = chunk.parts()?;
        let (outcome, is_swapped) = match self.spare.as_mut().and_then(Chunk::edit_unique) {
            None => direct::pass::<false>(cx, state, (samples, &mut []), info, batch),
            Some(spare) => {
                let spare = &mut spare[..samples.len()];
                direct::pass::<true>(cx, state, (samples, spare), info, batch)
            }
        };
        if !matches!(outcome, Some(PassOutcome::Through)) {
            return outcome;
        }
        if is_swapped {
            chunk = self.swapped(chunk)?;
        }
        Some(self.send_undrained(cx, state, chunk).0)
    }

    /// One step of the source, or a call of its `fill`. Returns the filled chunk.
    ///
    /// # Errors
    /// Result of the step, if the chain does not get a chunk by it.
    #[inline(always)]
    fn step_source(
        &mut self,
        cx: &mut Context,
        state: &mut PassState<'_>,
        fills: bool,
    ) -> Result<Option<Chunk<u8>>, Result<Step, Error>> {
        let [source, first, _] = state.numbers;
        let Some(operator) = &mut state.source else { return Ok(None) };
        let mut filled = None;
        cx.begin_step(source, state.slot);
        let out = self.begin.as_ref().filter(|out| fills && out.is_clear(cx));
        if let Some(mut chunk) = out.and_then(|out| out.chunk_if_free(cx))
            && let (Some((samples, info)), Some(inline)) = (chunk.parts(), operator.inline())
        {
            let is_filled = inline.fill(cx, samples, info);
            if cx.next != NONE {
                return Err(Err(did_more_than_fill()));
            }
            filled = is_filled.then_some(chunk);
        }
        if filled.is_some() {
            state.direct.from_source += 1;
        } else {
            let outcome = operator.step(cx);
            if !matches!(outcome, Ok(Step::Again)) || cx.next != first {
                return Err(outcome);
            }
        }
        state.node.sequence += 1;
        Ok(filled)
    }

    /// Takes a chunk through the operators inside.
    #[inline(always)]
    fn go_inside(
        &mut self,
        cx: &mut Context,
        state: &mut PassState<'_>,
        mut chunk: Chunk<u8>,
        times_ns: Option<&mut [u64]>,
    ) -> Result<Chunk<u8>, (usize, Error)> {
        let first = state.numbers[1];
        chunk.edit(cx).map_err(|error| (0, error))?;
        let (samples, info) = chunk.parts().expect("it was made unique");
        if self.spare_bytes.is_none() {
            edit(cx, samples, info, state.inside, first, state.slot, times_ns)?;
            return Ok(chunk);
        }
        let Some(spare) = self.spare.as_mut().and_then(Chunk::edit_unique) else {
            return Err((0, Error::new("there is no chunk to write to")));
        };
        let spare = &mut spare[..samples.len()];
        let numbers = (first, state.rewriting);
        if rewrite(cx, (samples, spare), info, state.inside, numbers, state.slot, times_ns)? {
            chunk = self.swapped(chunk).expect("it was just written");
        }
        self.equip(cx);
        Ok(chunk)
    }

    /// Exchanges the chunk and the spare one: the spare one continues, with the info of this chunk, which is
    /// written next.
    ///
    /// (Measured, for a chunk from another core: to only read it and return it to its store, where it is
    /// written again, takes up to three times as long.)
    fn swapped(&mut self, mut chunk: Chunk<u8>) -> Option<Chunk<u8>> {
        let mut other = self.spare.take()?;
        other.truncate(chunk.len());
        std::mem::swap(other.info_mut(), chunk.info_mut());
        let is_as_large = self.spare_bytes.is_some_and(|bytes| chunk.block_bytes() == bytes as usize);
        self.spare = (is_as_large && chunk.renew()).then_some(chunk);
        Some(other)
    }

    /// Hands a chunk to the sink, directly or over the edge. Returns also whether everything was as usual.
    #[inline(always)]
    fn deliver(
        &mut self,
        cx: &mut Context,
        state: &mut PassState<'_>,
        mut chunk: Chunk<u8>,
        times_ns: Option<&mut [u64]>,
    ) -> (PassOutcome, bool) {
        let may_drain = times_ns.is_none()
            && self.end_bytes.is_some_and(|most| chunk.len() <= most)
            && self.out.is_clear(cx);
        let sink = state.numbers[2];
        if let Some(inline) = state.sink.as_mut().filter(|_| may_drain).and_then(|sink| sink.inline()) {
            let (samples, info) = chunk.parts().expect("it was made unique");
            cx.current = sink;
            state.slot.enter(sink);
            state.direct.to_sink += 1;
            if inline.drain(cx, samples, info) {
                return (PassOutcome::ToSink(Ok(Step::Wait)), cx.is_usual());
            }
            state.direct.to_sink -= 1;
            return self.send_undrained(cx, state, chunk);
        }
        self.send(cx, state, chunk, times_ns)
    }

    /// Sends a chunk that the sink was shown and did not take.
    fn send_undrained(
        &mut self,
        cx: &mut Context,
        state: &mut PassState<'_>,
        chunk: Chunk<u8>,
    ) -> (PassOutcome, bool) {
        // The last operator inside sends it.
        state.slot.enter(state.numbers[1] + state.inside.len() as u32 - 1);
        self.send(cx, state, chunk, None)
    }

    /// Sends a chunk over the edge after the last operator inside, and steps the sink if it belongs to the
    /// chain.
    ///
    /// Returns also whether everything was as usual: the consumer has all that was sent, and nobody measures
    /// the message.
    #[inline(always)]
    fn send(
        &mut self,
        cx: &mut Context,
        state: &mut PassState<'_>,
        chunk: Chunk<u8>,
        times_ns: Option<&mut [u64]>,
    ) -> (PassOutcome, bool) {
        let [_, first, sink] = state.numbers;
        let last = first + state.inside.len() as u32 - 1;
        cx.current = last;
        if let Err(error) = self.out.push(cx, chunk) {
            return (PassOutcome::Failed(state.inside.len(), error), false);
        }
        match &mut state.sink {
            None => (PassOutcome::Through, cx.next == NONE && cx.hot[last as usize].unmet == 0),
            Some(_) if cx.next != sink => (PassOutcome::Through, false),
            // Other workers wait for the sink's turn while it lasts, and there are more chunks for it.
            Some(_)
                if state.partial.is_some()
                    && cx.stamp.origin & LAST == 0
                    && times_ns.is_none()
                    && !self.input.is_empty(cx) =>
            {
                (PassOutcome::Through, cx.hot[last as usize].unmet == 0)
            }
            Some(operator) => {
                if let Some(times_ns) = times_ns {
                    times_ns[state.inside.len()] = cx.now_ns();
                }
                cx.begin_step(sink, state.slot);
                let outcome = operator.step(cx);
                let is_usual = matches!(outcome, Ok(Step::Wait)) && cx.popped != 0 && cx.is_usual();
                (PassOutcome::ToSink(outcome), is_usual)
            }
        }
    }
}

/// After a pass that went as usual: whether another one follows. If so, it begins.
#[inline(always)]
fn goes_on(cx: &mut Context, state: &mut PassState<'_>) -> bool {
    let first = state.numbers[1];
    // If the source sent several messages in its turn, the rest is queued before the first operator inside.
    let is_left = state.partial.is_some() && cx.ready.contains(first);
    let from_source = state.source.is_some() && !is_left;
    let goes_on = if from_source { cx.ready.is_empty() } else { cx.ready.is_only(first) };
    if cx.replicas.pending_turns != 0 || !goes_on {
        return false;
    }
    *state.whole += 1;
    if let Some(partial) = &mut state.partial {
        partial.without_sink += u64::from(cx.next != NONE);
        state.source = state.source.take().filter(|_| from_source);
        partial.without_source += u64::from(state.source.is_none());
    }
    if from_source {
        state.node.begin_turn(cx);
    } else {
        cx.ready.clear(first);
    }
    true
}
