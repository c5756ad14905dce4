//! The worker's end of a wave: it lends the operators of its run, carries chunks itself, and takes the operators home.

use super::stage::{ChainEnds, Failed, Item, Stage};
use super::{
    BYTES, Block, Hand, Kit, MOST, Wave, WaveOutcome, WaveRequest, WaveState, at_next, lock, stages,
};
use crate::Error;
use crate::base::slot::PartSlot;
use crate::engine::pool::Help;
use crate::operator::context::{Context, NONE};
use crate::operator::inline::SendChunk;
use crate::operator::ports::Ports;
use crate::operator::{Operator, Step};
use onbeat_queue::TicketedPipeline;
use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// The worker's end of a wave.
pub(crate) struct WaveOwner {
    wave: Arc<Wave>,
    block: Block,
}

/// Where the source sends, and where the last of the operators inside does.
pub(crate) struct Edges<'e> {
    pub begin: &'e mut dyn SendChunk,
    pub out: &'e mut dyn SendChunk,
}

/// Stands where an operator was lent.
struct Away;

impl Operator for Away {
    fn ports(&mut self, _: &mut Ports) {}

    fn step(&mut self, _: &mut Context) -> Result<Step, Error> {
        Ok(Step::Done)
    }
}

impl WaveOwner {
    /// For a run with so many operators, its ends among them, whose numbers are given; with a context for each thread.
    pub fn new(ends: ChainEnds, contexts: Vec<Context>) -> Self {
        let (threads, ChainEnds { source, sink }) = (contexts.len(), ends);
        let operators = (sink - source) as usize + 1;
        let hand = |cx| {
            CachePadded::new(Hand {
                kit: Mutex::new(Kit { cx, block: Block::new() }),
                slot: PartSlot::default(),
            })
        };
        let stages = (0..stages(threads, operators)).map(|_| Stage::new(operators, MOST * threads));
        let wave = Wave {
            relay: TicketedPipeline::new(stages),
            is_open: CachePadded::new(AtomicBool::new(false)),
            lender: AtomicU32::new(0),
            direct: contexts.into_iter().map(hand).collect(),
            ends,
        };
        WaveOwner { wave: Arc::new(wave), block: Block::new() }
    }

    pub fn help(&self) -> Arc<dyn Help> {
        Arc::clone(&self.wave) as Arc<dyn Help>
    }

    /// Lets messages go in a wave. `ends` are where the source sends, and where the last of those inside does.
    pub fn run(
        &mut self,
        cx: &mut Context,
        state: &mut WaveState<'_>,
        edges: &mut Edges<'_>,
        request: &WaveRequest<'_>,
    ) -> WaveOutcome {
        let mut outcome =
            WaveOutcome { begun: 0, whole: 0, through: 0, by_others: 0, is_usual: false, failed: None };
        if !self.equip(cx, edges, request) {
            self.strip(cx, request.place);
            return outcome;
        }
        let mut own = 0;
        let is_back = self.lend(state, request)
            && loop {
                match self.carry(cx, state.slot, request) {
                    None => break false,
                    Some(is_usual) => outcome.is_usual = is_usual,
                }
                own += self.block.gone as u64;
                if !outcome.is_usual || own >= request.most || (request.leaves)(own) {
                    break true;
                }
            };
        // Relaxed: a hint.
        self.wave.is_open.store(false, Ordering::Relaxed);
        let Some(mut left) = is_back.then(|| self.take_back(state, request, &mut outcome)).flatten() else {
            // Where the operators are somebody is who does not come back.
            return outcome;
        };
        outcome.by_others = outcome.whole - own;
        outcome.is_usual &= left.is_empty() && outcome.failed.is_none();
        // Those that are through the one that failed were before its message; those that are not come to nothing, as the run does.
        let is_before = |item: &Item, failed: &Failed| item.next > failed.operator();
        for item in left.drain(..) {
            if outcome.failed.as_ref().is_none_or(|failed| is_before(&item, failed)) {
                outcome.failed = self.push(cx, state, edges, item, &mut outcome.through).or(outcome.failed);
            }
        }
        drop(left);
        self.strip(cx, request.place);
        outcome
    }

    /// Chunks for all threads. False where there are too few for this one.
    fn equip(&mut self, cx: &Context, edges: &Edges<'_>, request: &WaveRequest<'_>) -> bool {
        let place = request.place;
        let Edges { begin, out } = edges;
        let Some(chunk) = begin.chunk_if_free(cx) else { return false };
        let bytes = chunk.capacity();
        drop(chunk);
        // What does not go all the way is to have room on one of the edges.
        let room = begin.room(cx).min(out.room(cx)) / self.wave.direct.len();
        let messages = (BYTES / bytes.max(1)).clamp(1, MOST).min(request.at_once).min(room);
        if messages == 0 || !self.block.equip(&**begin, cx, messages) {
            return false;
        }
        for (_, hand) in self.wave.direct.iter().enumerate().filter(|(other, _)| *other != place) {
            let Kit { cx: their, block } = &mut *lock(&hand.kit);
            (their.start_ns, their.stopping) = (cx.start_ns, cx.stopping);
            their.shifts_ns.copy_from_slice(&cx.shifts_ns);
            if !block.equip(&**begin, cx, messages) {
                block.strip();
            }
        }
        true
    }

    /// All chunks go home, this thread's own last: these are what it takes next. What others had to say is said.
    fn strip(&mut self, cx: &mut Context, place: usize) {
        for (_, hand) in self.wave.direct.iter().enumerate().filter(|(other, _)| *other != place) {
            let Kit { cx: their, block } = &mut *lock(&hand.kit);
            block.strip();
            cx.notes.append(&mut their.notes);
        }
        self.block.strip();
    }

    /// Brings the operators to their stations.
    fn lend(&self, state: &mut WaveState<'_>, request: &WaveRequest<'_>) -> bool {
        let (source_number, sequence) = (state.node.source_number, state.node.sequence);
        let mut number = state.numbers[0];
        let Some(mut runner) = self.wave.begin(request) else { return false };
        let mut operators = state.all().zip(request.stages).peekable();
        for station in 0..self.wave.relay.len() {
            let fill = |stage: &mut Stage| {
                stage.open(number);
                while let Some((operator, _)) = operators.next_if(|(_, stage)| **stage <= station) {
                    stage.operators.push(std::mem::replace(operator, Box::new(Away)));
                    number += 1;
                }
                if station == 0 {
                    (stage.source_number, stage.counts.sequence, stage.is_open) =
                        (source_number, sequence, true);
                }
            };
            if at_next(&mut runner, |looks| self.wave.waits(request, looks), fill).is_none() {
                return false;
            }
        }
        // Relaxed: hints.
        self.wave.lender.store(request.place as u32, Ordering::Relaxed);
        self.wave.is_open.store(true, Ordering::Relaxed);
        true
    }

    /// This thread's chunks go once from station to station.
    fn carry(&mut self, cx: &mut Context, slot: &PartSlot, request: &WaveRequest<'_>) -> Option<bool> {
        let wave = &self.wave;
        let runner = wave.begin(request)?;
        wave.run(runner, (cx, &mut self.block, slot), |looks| wave.waits(request, looks))
    }

    /// Takes the operators home from their stations: behind this nobody is on the state. Gives what did not go through, in order.
    fn take_back(
        &self,
        state: &mut WaveState<'_>,
        request: &WaveRequest<'_>,
        outcome: &mut WaveOutcome,
    ) -> Option<Vec<Item>> {
        let mut runner = self.wave.begin(request)?;
        let mut left = Vec::new();
        let mut sequence = state.node.sequence;
        let mut homes = state.all();
        for station in 0..self.wave.relay.len() {
            let empty = |stage: &mut Stage| {
                if station == 0 {
                    (stage.is_open, sequence) = (false, stage.counts.sequence);
                }
                // In this order: a home that is asked for is used up.
                for (operator, home) in stage.operators.drain(..).zip(homes.by_ref()) {
                    *home = operator;
                }
                outcome.whole += stage.counts.whole;
                outcome.failed = stage.failed.take().or(outcome.failed.take());
                left.append(&mut stage.left);
            };
            at_next(&mut runner, |looks| self.wave.waits(request, looks), empty)?;
        }
        drop(homes);
        outcome.begun = sequence - state.node.sequence;
        state.node.sequence = sequence;
        Some(left)
    }

    /// A message that did not come through goes on over an edge, behind what is left of its way inside.
    fn push(
        &self,
        cx: &mut Context,
        state: &mut WaveState<'_>,
        edges: &mut Edges<'_>,
        mut item: Item,
        through: &mut u64,
    ) -> Option<Failed> {
        let [source, first] = state.numbers;
        (cx.stamp, cx.keys, cx.stamped_edge) = (item.stamp, item.keys, NONE);
        if item.next == first {
            cx.current = source;
            state.slot.enter(source);
            return edges.begin.push(cx, item.chunk).err().map(|error| Failed::Error(source, error));
        }
        let last = first + state.inside.len() as u32 - 1;
        let (samples, info) = item.chunk.parts().expect("nobody else has it");
        for inline in state.inside[(item.next - first) as usize..].iter_mut().filter_map(|it| it.inline()) {
            state.slot.enter(item.next);
            if let Err(error) = inline.edit(samples, info) {
                return Some(Failed::Error(item.next, error));
            }
            item.next += 1;
        }
        *through += 1;
        cx.current = last;
        state.slot.enter(last);
        edges.out.push(cx, item.chunk).err().map(|error| Failed::Error(last, error))
    }
}
