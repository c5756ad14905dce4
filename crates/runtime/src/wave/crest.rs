//! The worker's end of a wave: it lends the operators of its run, carries chunks itself, and takes the operators home.

use super::leg::{Ends, Failed, Item, Leg};
use super::{BYTES, Block, Hand, Help, Kit, MOST, Ride, Rode, Wave, at_next, legs, lock};
use crate::carry::Way;
use crate::chunk::{Chunk, Sample};
use crate::context::{Context, NONE};
use crate::operator::{Operator, Step};
use crate::ports::Ports;
use crate::run::PartSlot;
use crate::{Error, Output};
use onbeat_queue::TicketedPipeline;
use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// The worker's end of a wave.
pub(crate) struct Crest<T: Sample> {
    wave: Arc<Wave<T>>,
    block: Block<T>,
}

/// Stands where an operator was lent.
struct Away;

impl Operator for Away {
    fn ports(&mut self, _: &mut Ports) {}

    fn step(&mut self, _: &mut Context) -> Result<Step, Error> {
        Ok(Step::Done)
    }
}

impl<T: Sample> Crest<T> {
    /// For a run with so many operators, its ends among them, whose numbers are given; with a context for each thread.
    pub fn new(ends: (u32, u32), contexts: Vec<Context>) -> Self {
        let (threads, (source, sink)) = (contexts.len(), ends);
        let operators = (sink - source) as usize + 1;
        let hand = |cx| {
            CachePadded::new(Hand {
                kit: Mutex::new(Kit { cx, block: Block::new() }),
                slot: PartSlot::default(),
            })
        };
        let legs = (0..legs(threads, operators)).map(|_| Leg::new(operators, MOST * threads));
        let wave = Wave {
            relay: TicketedPipeline::new(legs),
            is_open: CachePadded::new(AtomicBool::new(false)),
            lender: AtomicU32::new(0),
            hands: contexts.into_iter().map(hand).collect(),
            ends: Ends { source, sink },
        };
        Crest { wave: Arc::new(wave), block: Block::new() }
    }

    pub fn help(&self) -> Arc<dyn Help> {
        Arc::clone(&self.wave) as Arc<dyn Help>
    }

    /// Lets messages go in a wave. `ends` are where the source sends, and where the last of those inside does.
    pub fn ride(
        &mut self,
        cx: &mut Context,
        way: &mut Way<'_>,
        (begin, out): (&Output<Chunk<T>>, &Output<Chunk<T>>),
        ride: &Ride<'_>,
    ) -> Rode {
        let mut rode = Rode { begun: 0, whole: 0, through: 0, by_others: 0, is_usual: false, failed: None };
        if !self.equip(cx, (begin, out), ride) {
            self.strip(cx, ride.place);
            return rode;
        }
        let mut own = 0;
        let is_back = self.lend(way, ride)
            && loop {
                match self.carry(cx, way.slot, ride) {
                    None => break false,
                    Some(is_usual) => rode.is_usual = is_usual,
                }
                own += self.block.gone as u64;
                if !rode.is_usual || own >= ride.most || (ride.leaves)(own) {
                    break true;
                }
            };
        // Relaxed: a hint.
        self.wave.is_open.store(false, Ordering::Relaxed);
        let Some(mut left) = is_back.then(|| self.take_back(way, ride, &mut rode)).flatten() else {
            // Where the operators are somebody is who does not come back.
            return rode;
        };
        rode.by_others = rode.whole - own;
        rode.is_usual &= left.is_empty() && rode.failed.is_none();
        // Those that are through the one that failed were before its message; those that are not come to nothing, as the run does.
        let is_before = |item: &Item<T>, failed: &Failed| item.next > failed.operator();
        for item in left.drain(..) {
            if rode.failed.as_ref().is_none_or(|failed| is_before(&item, failed)) {
                rode.failed = self.push(cx, way, (begin, out), item, &mut rode.through).or(rode.failed);
            }
        }
        drop(left);
        self.strip(cx, ride.place);
        rode
    }

    /// Chunks for all threads. False where there are too few for this one.
    fn equip(
        &mut self,
        cx: &Context,
        edges: (&Output<Chunk<T>>, &Output<Chunk<T>>),
        ride: &Ride<'_>,
    ) -> bool {
        let place = ride.place;
        let (begin, out) = edges;
        let Some(chunk) = begin.chunk_if_free(cx) else { return false };
        let bytes = chunk.capacity() * size_of::<T>();
        drop(chunk);
        // What does not go all the way is to have room on one of the edges.
        let room = begin.room(cx).min(out.room(cx)) / self.wave.hands.len();
        let messages = (BYTES / bytes.max(1)).clamp(1, MOST).min(ride.at_once).min(room);
        if messages == 0 || !self.block.equip(begin, cx, messages) {
            return false;
        }
        for (_, hand) in self.wave.hands.iter().enumerate().filter(|(other, _)| *other != place) {
            let Kit { cx: their, block } = &mut *lock(&hand.kit);
            (their.start_ns, their.stopping) = (cx.start_ns, cx.stopping);
            their.shifts_ns.copy_from_slice(&cx.shifts_ns);
            if !block.equip(begin, cx, messages) {
                block.strip();
            }
        }
        true
    }

    /// All chunks go home, this thread's own last: these are what it takes next. What others had to say is said.
    fn strip(&mut self, cx: &mut Context, place: usize) {
        for (_, hand) in self.wave.hands.iter().enumerate().filter(|(other, _)| *other != place) {
            let Kit { cx: their, block } = &mut *lock(&hand.kit);
            block.strip();
            cx.notes.append(&mut their.notes);
        }
        self.block.strip();
    }

    /// Brings the operators to their stations.
    fn lend(&self, way: &mut Way<'_>, ride: &Ride<'_>) -> bool {
        let (source_number, sequence) = (way.node.source_number, way.node.sequence);
        let mut number = way.numbers[0];
        let Some(mut runner) = self.wave.begin(ride) else { return false };
        let mut operators = way.all().zip(ride.legs).peekable();
        for station in 0..self.wave.relay.len() {
            let fill = |leg: &mut Leg<T>| {
                leg.open(number);
                while let Some((operator, _)) = operators.next_if(|(_, leg)| **leg <= station) {
                    leg.operators.push(std::mem::replace(operator, Box::new(Away)));
                    number += 1;
                }
                if station == 0 {
                    (leg.source_number, leg.counts.sequence, leg.is_open) = (source_number, sequence, true);
                }
            };
            if at_next(&mut runner, |looks| self.wave.waits(ride, looks), fill).is_none() {
                return false;
            }
        }
        // Relaxed: hints.
        self.wave.lender.store(ride.place as u32, Ordering::Relaxed);
        self.wave.is_open.store(true, Ordering::Relaxed);
        true
    }

    /// This thread's chunks go once from station to station.
    fn carry(&mut self, cx: &mut Context, slot: &PartSlot, ride: &Ride<'_>) -> Option<bool> {
        let wave = &self.wave;
        let runner = wave.begin(ride)?;
        wave.run(runner, (cx, &mut self.block, slot), |looks| wave.waits(ride, looks))
    }

    /// Takes the operators home from their stations: behind this nobody is on the way. Gives what did not go through, in order.
    fn take_back(&self, way: &mut Way<'_>, ride: &Ride<'_>, rode: &mut Rode) -> Option<Vec<Item<T>>> {
        let mut runner = self.wave.begin(ride)?;
        let mut left = Vec::new();
        let mut sequence = way.node.sequence;
        let mut homes = way.all();
        for station in 0..self.wave.relay.len() {
            let empty = |leg: &mut Leg<T>| {
                if station == 0 {
                    (leg.is_open, sequence) = (false, leg.counts.sequence);
                }
                // In this order: a home that is asked for is used up.
                for (operator, home) in leg.operators.drain(..).zip(homes.by_ref()) {
                    *home = operator;
                }
                rode.whole += leg.counts.whole;
                rode.failed = leg.failed.take().or(rode.failed.take());
                left.append(&mut leg.left);
            };
            at_next(&mut runner, |looks| self.wave.waits(ride, looks), empty)?;
        }
        drop(homes);
        rode.begun = sequence - way.node.sequence;
        way.node.sequence = sequence;
        Some(left)
    }

    /// A message that did not come through goes on over an edge, behind what is left of its way inside.
    fn push(
        &self,
        cx: &mut Context,
        way: &mut Way<'_>,
        (begin, out): (&Output<Chunk<T>>, &Output<Chunk<T>>),
        mut item: Item<T>,
        through: &mut u64,
    ) -> Option<Failed> {
        let [source, first, _] = way.numbers;
        (cx.stamp, cx.keys, cx.carried) = (item.stamp, item.keys, NONE);
        if item.next == first {
            cx.current = source;
            way.slot.enter(source);
            return begin.share().push(cx, item.chunk).err().map(|error| Failed::Error(source, error));
        }
        let last = first + way.inside.len() as u32 - 1;
        let (samples, info) = item.chunk.parts().expect("nobody else has it");
        let samples = bytemuck::cast_slice_mut::<T, u8>(samples);
        for operator in &mut way.inside[(item.next - first) as usize..] {
            way.slot.enter(item.next);
            if let Err(error) = operator.edit(samples, info) {
                return Some(Failed::Error(item.next, error));
            }
            item.next += 1;
        }
        *through += 1;
        cx.current = last;
        way.slot.enter(last);
        out.share().push(cx, item.chunk).err().map(|error| Failed::Error(last, error))
    }
}
