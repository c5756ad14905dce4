//! Migrating end: a source or sink without copies that goes from worker to worker in turn. The n-th message
//! in is the n-th out.
//!
//! A turn is one message, or a [`block`](super::block) of them. The source marks the last one by a bit in its
//! stamp. After that message both ends go on to the next worker.

use super::block::{TurnBlock, TurnPace, Way};
use crate::operator::context::{Context, STARVED};
use crate::operator::link::{Notifier, Probe, not_one_for_one};
use crate::operator::message::{LAST, SEQUENCE_MASK};
use crate::operator::ports::BoundEnd;
use crate::operator::{Ending, Operator, Step};
use crate::{Error, Ports, Value};
use onbeat_queue::{MemberEntry, MemberGuard, TurnMember, TurnWatch};
use std::any::Any;
use std::sync::Arc;

/// Longest wait for the step of another worker.
const PATIENCE_NS: u64 = 1_000_000_000;

/// The operator and its state, which go from worker to worker.
struct MigratingEnd {
    operator: Box<dyn Operator>,
    /// Worker whose ports the operator has; `None` between two turns.
    at: Option<u32>,
    is_started: bool,
    is_stopped: bool,
    /// Number of messages sent or taken, which is the number of the next one.
    count: u64,
    /// For a source: messages left in this turn; 0 before it begins.
    left: u32,
    /// For a source: rate of its messages.
    pace: TurnPace,
    /// For a sink: whether it has taken the message of this step.
    is_served: bool,
    /// For a sink: whether that message was the last of this turn.
    is_last: bool,
    /// For a source: time of its next step, if it asked for one.
    until_ns: Option<u64>,
    /// For a source: whether it waits for something that cannot come.
    is_idle: bool,
}

/// End of a stretch on one worker.
pub(crate) struct End {
    seat: TurnMember<MigratingEnd>,
    /// Connections of its ports on this worker, while the operator has none of them.
    ends: Vec<BoundEnd>,
    /// Notifiers of all workers, by place.
    notifiers: Vec<Notifier>,
    /// For a sink: the incoming edge.
    edge: Option<(u32, Arc<dyn Probe>)>,
    /// For a source: number of messages in a turn.
    block: TurnBlock,
    /// For a sink: the turn of the source, which comes next on this worker.
    ahead: Option<Upcoming>,
    /// Its bit in [`Replicas::pending_turns`]; 0 if its worker does not poll for turns.
    pending_bit: u64,
    settable: &'static [&'static str],
}

impl End {
    /// Makes one end for each worker.
    pub fn all(operator: Box<dyn Operator>, workers: usize) -> Vec<End> {
        let settable = operator.settable();
        let state = MigratingEnd {
            operator,
            at: None,
            is_started: false,
            is_stopped: false,
            count: 0,
            left: 0,
            pace: TurnPace::default(),
            is_served: false,
            is_last: false,
            until_ns: None,
            is_idle: false,
        };
        let end = |seat| End {
            seat,
            ends: Vec::new(),
            notifiers: Vec::new(),
            edge: None,
            block: TurnBlock::ONE,
            ahead: None,
            pending_bit: 0,
            settable,
        };
        TurnMember::round_robin_with(workers, state, |state| &*state.operator).into_iter().map(end).collect()
    }

    /// Returns the end, if the operator is one.
    pub fn of(operator: &mut dyn Operator) -> Option<&mut End> {
        let any: &mut dyn Any = operator;
        any.downcast_mut()
    }

    /// Connects the end: notifiers by place, for a sink the incoming edge, for a source the outgoing one.
    pub fn seat(&mut self, notifiers: Vec<Notifier>, edge: Option<(u32, Arc<dyn Probe>)>, way: Option<Way>) {
        (self.notifiers, self.edge) = (notifiers, edge);
        self.block = way.map_or(TurnBlock::ONE, |way| TurnBlock::new(way, self.notifiers.len()));
    }

    /// Tells a sink the source of its stretch on the same worker.
    pub fn follow(&mut self, source: &End) {
        self.ahead = Some(Upcoming(source.seat.watch()));
    }

    /// Gives up a turn that was kept: the worker is about to do something longer.
    pub fn release(&mut self) {
        self.seat.release();
    }

    /// Makes the worker poll for its turn while this bit is set in [`Replicas::pending_turns`].
    pub fn watch(&mut self, pending_bit: u64) -> Upcoming {
        self.pending_bit = pending_bit;
        Upcoming(self.seat.watch())
    }

    /// Calls `act` with the operator, outside turns. A worker is in a turn for the time of a step; if it
    /// stays much longer, its step may never end.
    fn with_operator<R>(
        &mut self,
        act: impl FnOnce(&mut MigratingEnd, &mut TurnEnds<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let place = self.seat.place() as u32;
        let begin_ns = onbeat_os::clock::monotonic_ns();
        loop {
            if let Some(mut state) = self.seat.take_over() {
                return act(&mut state, &mut TurnEnds { place, bound: &mut self.ends });
            }
            if onbeat_os::clock::monotonic_ns().saturating_sub(begin_ns) > PATIENCE_NS {
                return Err(Error::new("another worker is in a step of it that does not end"));
            }
            std::thread::yield_now();
        }
    }

    /// Calls `act` on the first worker only: for all ends together, once.
    fn on_first_worker(
        &mut self,
        act: impl FnOnce(&mut MigratingEnd, &mut TurnEnds<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.seat.place() == 0 { self.with_operator(act) } else { Ok(()) }
    }
}

/// View of an end's turn, for its worker.
pub(crate) struct Upcoming(TurnWatch<MigratingEnd>);

impl Upcoming {
    #[inline]
    pub fn is_up(&self) -> bool {
        self.0.is_up()
    }

    /// Arms the notification; false if the turn has come already.
    pub fn wait(&self) -> bool {
        self.0.wait()
    }
}

/// Connections of the ports of one worker's end, while they are not in the operator.
struct TurnEnds<'e> {
    place: u32,
    bound: &'e mut [BoundEnd],
}

impl MigratingEnd {
    /// Connects the ports to those of this worker.
    #[inline]
    fn attach(&mut self, ends: &mut TurnEnds<'_>) {
        if self.at != Some(ends.place) {
            self.operator.ports(&mut Ports::swap(ends.bound));
            self.at = Some(ends.place);
        }
    }

    /// Disconnects the ports at the end of a turn.
    fn detach(&mut self, ends: &mut TurnEnds<'_>) {
        self.operator.ports(&mut Ports::swap(ends.bound));
        self.at = None;
    }

    /// Calls `act` with the ports connected to this worker, also in the turn of another worker.
    fn with_ports<R>(&mut self, ends: &mut TurnEnds<'_>, act: impl FnOnce(&mut dyn Operator) -> R) -> R {
        let is_there = self.at == Some(ends.place);
        if !is_there {
            self.operator.ports(&mut Ports::swap(ends.bound));
        }
        let result = act(&mut *self.operator);
        if !is_there {
            self.operator.ports(&mut Ports::swap(ends.bound));
        }
        result
    }
}

fn notify(notifiers: &[Notifier], places: impl IntoIterator<Item = usize>) {
    places.into_iter().filter_map(|place| notifiers.get(place)).for_each(Notifier::notify);
}

impl Operator for End {
    fn ports(&mut self, p: &mut Ports) {
        self.ends.extend(p.take_ends());
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.on_first_worker(|state, ends| {
            state.is_started = true;
            state.with_ports(ends, |operator| operator.start(cx))
        })
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        cx.replicas.pending_turns &= !self.pending_bit;
        loop {
            let End { seat, ends, notifiers, edge, block, ahead, .. } = self;
            let ends = TurnEnds { place: seat.place() as u32, bound: ends };
            match seat.enter() {
                MemberEntry::Closed => return Ok(Step::Done),
                MemberEntry::Turn(turn) => {
                    return match edge {
                        None => send(turn, ends, notifiers, cx, block),
                        Some((edge, probe)) => {
                            take(turn, ends, (notifiers, ahead.as_ref()), cx, (*edge, &**probe))
                        }
                    };
                }
                MemberEntry::NotYet => {}
            }
            cx.replicas.pending_turns |= self.pending_bit;
            if self.pending_bit != 0 || self.seat.wait() {
                return Ok(Step::Wait);
            }
        }
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.with_operator(|state, ends| {
            if !state.is_started || std::mem::replace(&mut state.is_stopped, true) {
                return Ok(());
            }
            state.with_ports(ends, |operator| operator.stop(cx, ending))
        })
    }

    fn settable(&self) -> &'static [&'static str] {
        self.settable
    }

    fn set(&mut self, cx: &mut Context, name: &str, value: &Value) -> Result<(), Error> {
        self.on_first_worker(|state, ends| state.with_ports(ends, |operator| operator.set(cx, name, value)))
    }

    fn set_at(&mut self, cx: &mut Context, name: &str, value: &Value, sample: u64) -> Result<(), Error> {
        self.on_first_worker(|state, ends| {
            state.with_ports(ends, |operator| operator.set_at(cx, name, value, sample))
        })
    }
}

/// Runs the turn of a source. If it stops early, the turn stays with this worker.
fn send(
    mut turn: MemberGuard<'_, MigratingEnd>,
    mut ends: TurnEnds<'_>,
    notifiers: &[Notifier],
    cx: &mut Context,
    block: &TurnBlock,
) -> Result<Step, Error> {
    if let Some(until_ns) = turn.until_ns
        && cx.now_ns() < until_ns
        && !cx.is_stopping()
    {
        return Ok(cx.until(until_ns));
    }
    if turn.is_idle {
        return Ok(Step::Wait);
    }
    turn.until_ns = None;
    if turn.left == 0 {
        let MigratingEnd { pace, count, left, .. } = &mut *turn;
        *left = block.begin(cx, pace, *count);
    }
    turn.attach(&mut ends);
    let (outcome, sent) = turn.send_messages(cx, block);
    match outcome? {
        Step::Done => {
            turn.detach(&mut ends);
            notify(notifiers, turn.close());
            Ok(Step::Done)
        }
        step if sent > 0 => {
            turn.until_ns = (step == Step::Until).then_some(cx.waiting.until_ns);
            turn.is_idle = step == Step::Wait && !cx.is_starved();
            if turn.left == 0 {
                turn.detach(&mut ends);
                notify(notifiers, turn.pass());
            }
            Ok(Step::Again)
        }
        step => Ok(step),
    }
}

impl MigratingEnd {
    /// Steps the source for the rest of its turn, while it asks for it and its edge has room.
    /// Returns the outcome of the last step and the number of messages sent.
    fn send_messages(&mut self, cx: &mut Context, block: &TurnBlock) -> (Result<Step, Error>, u32) {
        let begun = cx.stamp;
        let mut sent = 0;
        loop {
            let last = if self.left == 1 { LAST } else { 0 };
            cx.stamp.origin = cx.stamp.origin & !(SEQUENCE_MASK | LAST) | self.count & SEQUENCE_MASK | last;
            let before = block.sent(cx);
            let outcome = self.operator.step(cx);
            let is_sent = match block.sent(cx) {
                None => cx.next < STARVED || cx.sent_away,
                now => now != before,
            };
            if !is_sent {
                return (outcome, sent);
            }
            (self.count, self.left, sent) = (self.count + 1, self.left - 1, sent + 1);
            if self.left > 0 && matches!(outcome, Ok(Step::Until | Step::Wait)) && !cx.is_starved() {
                // The source is no longer as fast as it can be: the next message ends this turn.
                self.pace.calm();
                self.left = 1;
            }
            if self.left == 0 || !matches!(outcome, Ok(Step::Again)) || !block.has_room(cx) {
                return (outcome, sent);
            }
            cx.stamp = begun;
            if cx.keys.is_some() {
                cx.keys = None;
            }
        }
    }
}

/// Takes the queued messages of a sink's turn. After the last one, the next worker has its turn.
fn take(
    mut turn: MemberGuard<'_, MigratingEnd>,
    mut ends: TurnEnds<'_>,
    (notifiers, ahead): (&[Notifier], Option<&Upcoming>),
    cx: &mut Context,
    (edge, probe): (u32, &dyn Probe),
) -> Result<Step, Error> {
    loop {
        let is_here = probe.len(&cx.owner) > 0 && !turn.is_served;
        if !is_here && !turn.is_served && !cx.edges[edge as usize].closed {
            return Ok(Step::Wait);
        }
        // No more messages come here; other workers only have earlier ones.
        let is_end = !is_here && !turn.is_served;
        (cx.replicas.visible, cx.replicas.is_last) = (u32::from(is_here), is_end);
        turn.attach(&mut ends);
        let outcome = turn.operator.step(cx);
        if is_here && cx.replicas.visible == 0 {
            if cx.stamp.origin & SEQUENCE_MASK != turn.count & SEQUENCE_MASK {
                return Err(not_one_for_one("others"));
            }
            turn.is_last = cx.stamp.origin & LAST != 0;
            turn.is_served = true;
            turn.count += 1;
        }
        match outcome? {
            // The sink has not finished with the message.
            Step::Again => return Ok(Step::Again),
            step if step == Step::Done || step == Step::Wait && is_end => {
                turn.detach(&mut ends);
                notify(notifiers, turn.close());
                return Ok(Step::Done);
            }
            step => match std::mem::take(&mut turn.is_served) {
                true if turn.is_last => {
                    turn.detach(&mut ends);
                    notify(notifiers, turn.pass());
                    // This fetches the cache line of the source's turn in advance.
                    let _hint = ahead.map(Upcoming::is_up);
                    return Ok(step);
                }
                // This message ends here, before the next one.
                true if step == Step::Wait && cx.is_usual() && probe.len(&cx.owner) > 0 => {
                    // The loop steps the sink for the next message.
                    cx.ready.clear(cx.current);
                }
                true => {
                    // The next message comes soon: keep the turn.
                    turn.keep();
                    return Ok(step);
                }
                false => return Ok(step),
            },
        }
    }
}
