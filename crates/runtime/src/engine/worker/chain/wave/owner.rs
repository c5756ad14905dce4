//! Owner of a wave: lends the operators of its chain, carries chunks itself, and takes the operators back.

use super::stage::{ChainEnds, StageFailure, WaveItem, WaveStage};
use super::{
    BYTES, Kit, MOST, MessageGroup, Wave, WaveOutcome, WaveRequest, WaveState, WaveThread, at_next, lock,
    stage_count,
};
use crate::Error;
use crate::base::slot::PartSlot;
use crate::engine::pool::WaveHelp;
use crate::operator::context::{Context, NONE};
use crate::operator::inline::SendChunk;
use crate::operator::ports::Ports;
use crate::operator::{Operator, Step};
use onbeat_queue::TicketedPipeline;
use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// State of the worker that owns a chain's waves.
pub(crate) struct WaveOwner {
    wave: Arc<Wave>,
    group: MessageGroup,
}

/// Edges after the source (`begin`), and after the last operator inside (`out`).
pub(crate) struct WaveEdges<'e> {
    pub begin: &'e mut dyn SendChunk,
    pub out: &'e mut dyn SendChunk,
}

/// Placeholder for an operator that was lent.
struct Away;

impl Operator for Away {
    fn ports(&mut self, _: &mut Ports) {}

    fn step(&mut self, _: &mut Context) -> Result<Step, Error> {
        Ok(Step::Done)
    }
}

impl WaveOwner {
    /// Waves of a chain with these ends, with a context for each thread of the pool.
    pub fn new(ends: ChainEnds, contexts: Vec<Context>) -> Self {
        let (threads, ChainEnds { source, sink }) = (contexts.len(), ends);
        let operators = (sink - source) as usize + 1;
        let thread = |cx| {
            CachePadded::new(WaveThread {
                kit: Mutex::new(Kit { cx, group: MessageGroup::new() }),
                slot: PartSlot::default(),
            })
        };
        let stages = (0..stage_count(threads, operators)).map(|_| WaveStage::new(operators, MOST * threads));
        let wave = Wave {
            stations: TicketedPipeline::new(stages),
            is_open: CachePadded::new(AtomicBool::new(false)),
            lender: AtomicU32::new(0),
            threads: contexts.into_iter().map(thread).collect(),
            ends,
        };
        WaveOwner { wave: Arc::new(wave), group: MessageGroup::new() }
    }

    pub fn help(&self) -> Arc<dyn WaveHelp> {
        Arc::clone(&self.wave) as Arc<dyn WaveHelp>
    }

    /// Runs a wave until it has closed.
    pub fn run(
        &mut self,
        cx: &mut Context,
        state: &mut WaveState<'_>,
        edges: &mut WaveEdges<'_>,
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
                own += self.group.gone as u64;
                if !outcome.is_usual || own >= request.most || (request.leaves)(own) {
                    break true;
                }
            };
        // Relaxed: a hint.
        self.wave.is_open.store(false, Ordering::Relaxed);
        let Some(mut left) = is_back.then(|| self.take_back(state, request, &mut outcome)).flatten() else {
            // A thread that does not return has the operators.
            return outcome;
        };
        outcome.by_others = outcome.whole - own;
        outcome.is_usual &= left.is_empty() && outcome.failed.is_none();
        // Messages beyond the operator that failed came before its message, and continue. The others are
        // dropped.
        let is_before = |item: &WaveItem, failed: &StageFailure| item.next > failed.operator();
        for item in left.drain(..) {
            if outcome.failed.as_ref().is_none_or(|failed| is_before(&item, failed)) {
                outcome.failed = self.push(cx, state, edges, item, &mut outcome.through).or(outcome.failed);
            }
        }
        drop(left);
        self.strip(cx, request.place);
        outcome
    }

    /// Gets chunks for all threads. False if there are too few for this thread.
    fn equip(&mut self, cx: &Context, edges: &WaveEdges<'_>, request: &WaveRequest<'_>) -> bool {
        let place = request.place;
        let WaveEdges { begin, out } = edges;
        let Some(chunk) = begin.chunk_if_free(cx) else { return false };
        let bytes = chunk.capacity();
        drop(chunk);
        // Messages that do not go all the way need room on one of the edges.
        let room = begin.room(cx).min(out.room(cx)) / self.wave.threads.len();
        let messages = (BYTES / bytes.max(1)).clamp(1, MOST).min(request.at_once).min(room);
        if messages == 0 || !self.group.equip(&**begin, cx, messages) {
            return false;
        }
        for (_, thread) in self.wave.threads.iter().enumerate().filter(|(other, _)| *other != place) {
            let Kit { cx: their, group } = &mut *lock(&thread.kit);
            (their.start_ns, their.stopping) = (cx.start_ns, cx.stopping);
            their.shifts_ns.copy_from_slice(&cx.shifts_ns);
            if !group.equip(&**begin, cx, messages) {
                group.strip();
            }
        }
        true
    }

    /// Returns all chunks to their store, this thread's own last, which it will take next. Takes over the
    /// notes of other threads.
    fn strip(&mut self, cx: &mut Context, place: usize) {
        for (_, thread) in self.wave.threads.iter().enumerate().filter(|(other, _)| *other != place) {
            let Kit { cx: their, group } = &mut *lock(&thread.kit);
            group.strip();
            cx.notes.append(&mut their.notes);
        }
        self.group.strip();
    }

    /// Brings the operators to their stations, and opens the wave. False if a thread there does not return.
    fn lend(&self, state: &mut WaveState<'_>, request: &WaveRequest<'_>) -> bool {
        let (source_number, sequence) = (state.node.source_number, state.node.sequence);
        let mut number = state.numbers[0];
        let Some(mut ticket) = self.wave.begin(request) else { return false };
        let mut operators = state.all().zip(request.stages).peekable();
        for station in 0..self.wave.stations.len() {
            let fill = |stage: &mut WaveStage| {
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
            if at_next(&mut ticket, |polls| self.wave.waits(request, polls), fill).is_none() {
                return false;
            }
        }
        // Relaxed: hints.
        self.wave.lender.store(request.place as u32, Ordering::Relaxed);
        self.wave.is_open.store(true, Ordering::Relaxed);
        true
    }

    /// Takes this thread's chunks once from station to station. Returns whether everything was as usual.
    fn carry(&mut self, cx: &mut Context, slot: &PartSlot, request: &WaveRequest<'_>) -> Option<bool> {
        let wave = &self.wave;
        let ticket = wave.begin(request)?;
        wave.run(ticket, (cx, &mut self.group, slot), |polls| wave.waits(request, polls))
    }

    /// Takes the operators back from their stations. No other thread is there afterwards. Returns messages
    /// that did not go through, in order.
    fn take_back(
        &self,
        state: &mut WaveState<'_>,
        request: &WaveRequest<'_>,
        outcome: &mut WaveOutcome,
    ) -> Option<Vec<WaveItem>> {
        let mut ticket = self.wave.begin(request)?;
        let mut left = Vec::new();
        let mut sequence = state.node.sequence;
        let mut homes = state.all();
        for station in 0..self.wave.stations.len() {
            let empty = |stage: &mut WaveStage| {
                if station == 0 {
                    (stage.is_open, sequence) = (false, stage.counts.sequence);
                }
                // In this order: `zip` must not take a home without an operator.
                for (operator, home) in stage.operators.drain(..).zip(homes.by_ref()) {
                    *home = operator;
                }
                outcome.whole += stage.counts.whole;
                outcome.failed = stage.failed.take().or(outcome.failed.take());
                left.append(&mut stage.left);
            };
            at_next(&mut ticket, |polls| self.wave.waits(request, polls), empty)?;
        }
        drop(homes);
        outcome.begun = sequence - state.node.sequence;
        state.node.sequence = sequence;
        Some(left)
    }

    /// Takes a message that did not come through through the remaining operators inside, and sends it over an
    /// edge.
    fn push(
        &self,
        cx: &mut Context,
        state: &mut WaveState<'_>,
        edges: &mut WaveEdges<'_>,
        mut item: WaveItem,
        through: &mut u64,
    ) -> Option<StageFailure> {
        let [source, first] = state.numbers;
        (cx.stamp, cx.keys, cx.stamped_edge) = (item.stamp, item.keys, NONE);
        if item.next == first {
            cx.current = source;
            state.slot.enter(source);
            return edges.begin.push(cx, item.chunk).err().map(|error| StageFailure::Error(source, error));
        }
        let last = first + state.inside.len() as u32 - 1;
        let (samples, info) = item.chunk.parts().expect("the chunk has one owner");
        for inline in state.inside[(item.next - first) as usize..].iter_mut().filter_map(|it| it.inline()) {
            state.slot.enter(item.next);
            if let Err(error) = inline.edit(samples, info) {
                return Some(StageFailure::Error(item.next, error));
            }
            item.next += 1;
        }
        *through += 1;
        cx.current = last;
        state.slot.enter(last);
        edges.out.push(cx, item.chunk).err().map(|error| StageFailure::Error(last, error))
    }
}
