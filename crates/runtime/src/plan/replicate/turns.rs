//! A source or sink that is there once, at one end of a replicated stretch, and goes from worker to worker: each has its turn
//! after the one before, so the n-th message in is the n-th out.
//!
//! A turn is one message, or a [`block`](super::block) of them. The source's worker says which one is the last, by a bit in its stamp; behind
//! that one both ends go on to the next worker.

use super::block::{Block, Pace, Way};
use crate::operator::context::{Context, STARVED};
use crate::operator::link::not_one_for_one;
use crate::operator::link::{Notifier, Probe};
use crate::operator::message::{LAST, SEQUENCE_MASK};
use crate::operator::ports::BoundEnd;
use crate::operator::{Ending, Operator, Step};
use crate::{Error, Ports, Value};
use onbeat_queue::{MemberEntry, MemberGuard, TurnMember, TurnWatch};
use std::any::Any;
use std::sync::Arc;

/// How long the step of another worker is waited for.
const PATIENCE_NS: u64 = 1_000_000_000;

/// The operator, and what goes with it from worker to worker.
struct Guest {
    operator: Box<dyn Operator>,
    /// Whose ports it has, while a turn goes on; between two turns it has none.
    at: Option<u32>,
    is_started: bool,
    is_stopped: bool,
    /// Messages that it has sent or taken: the number of the next one.
    count: u64,
    /// Of a source: messages that are still to come in this turn; 0 where it has not begun.
    left: u32,
    /// Of a source: how its messages follow each other.
    pace: Pace,
    /// Of a sink: it has taken the message that it is stepped for.
    is_served: bool,
    /// Of a sink: that was the last one of this turn.
    is_last: bool,
    /// A source that said when it is to be stepped again.
    until_ns: Option<u64>,
    /// A source that waits for what cannot come.
    is_idle: bool,
}

/// One worker's end of a stretch.
pub(crate) struct End {
    seat: TurnMember<Guest>,
    /// What its ports are connected to on this worker, while it is not here.
    ends: Vec<BoundEnd>,
    /// How the other workers are told, by place.
    bells: Vec<Notifier>,
    /// Of a sink: the edge that leads here.
    edge: Option<(u32, Arc<dyn Probe>)>,
    /// Of a source: how many messages a turn of it has.
    block: Block,
    /// Of a sink: the turn of the source, which comes next on this worker.
    ahead: Option<Upcoming>,
    /// Its bit in [`Replicas::pending_turns`], where its worker looks whether its turn has come.
    wish: u64,
    settable: &'static [&'static str],
}

impl End {
    /// One for each worker.
    pub fn all(operator: Box<dyn Operator>, workers: usize) -> Vec<End> {
        let settable = operator.settable();
        let guest = Guest {
            operator,
            at: None,
            is_started: false,
            is_stopped: false,
            count: 0,
            left: 0,
            pace: Pace::default(),
            is_served: false,
            is_last: false,
            until_ns: None,
            is_idle: false,
        };
        let end = |seat| End {
            seat,
            ends: Vec::new(),
            bells: Vec::new(),
            edge: None,
            block: Block::ONE,
            ahead: None,
            wish: 0,
            settable,
        };
        TurnMember::round_robin_with(workers, guest, |guest| &*guest.operator).into_iter().map(end).collect()
    }

    /// The one that an operator is, if it is one.
    pub fn of(operator: &mut dyn Operator) -> Option<&mut End> {
        let any: &mut dyn Any = operator;
        any.downcast_mut()
    }

    /// How it tells the others, by place; for a sink, where its messages come from; for a source, where they go.
    pub fn seat(&mut self, bells: Vec<Notifier>, edge: Option<(u32, Arc<dyn Probe>)>, way: Option<Way>) {
        (self.bells, self.edge) = (bells, edge);
        self.block = way.map_or(Block::ONE, |way| Block::new(way, self.bells.len()));
    }

    /// For a sink: the source of the same stretch, on the same worker.
    pub fn follow(&mut self, source: &End) {
        self.ahead = Some(Upcoming(source.seat.watch()));
    }

    /// Its worker is about to do something else for longer: what others want of the operator is not to wait for that.
    pub fn release(&mut self) {
        self.seat.release();
    }

    /// Its worker looks for its turn from now on, where this bit is set in [`Replicas::pending_turns`].
    pub fn watch(&mut self, wish: u64) -> Upcoming {
        self.wish = wish;
        Upcoming(self.seat.watch())
    }

    /// Does something with the operator, whoever's turn it is. Others are in a turn for the time of a step; one that is in it for
    /// much longer may never come back.
    fn with_guest<R>(
        &mut self,
        act: impl FnOnce(&mut Guest, &mut Ends<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let place = self.seat.place() as u32;
        let begin_ns = onbeat_os::clock::monotonic_ns();
        loop {
            if let Some(mut guest) = self.seat.take_over() {
                return act(&mut guest, &mut Ends { place, bound: &mut self.ends });
            }
            if onbeat_os::clock::monotonic_ns().saturating_sub(begin_ns) > PATIENCE_NS {
                return Err(Error::new("another worker is in a step of it that does not end"));
            }
            std::thread::yield_now();
        }
    }

    fn is_first(&self) -> bool {
        self.seat.place() == 0
    }
}

/// For an end's worker: whether its turn has come.
pub(crate) struct Upcoming(TurnWatch<Guest>);

impl Upcoming {
    #[inline]
    pub fn is_up(&self) -> bool {
        self.0.is_up()
    }

    /// Asks for the bell; false when it is up already.
    pub fn wait(&self) -> bool {
        self.0.wait()
    }
}

/// What the ports of one worker's end are connected to, while they are not in the operator.
struct Ends<'e> {
    place: u32,
    bound: &'e mut [BoundEnd],
}

impl Guest {
    /// Its ports are those of this worker from now on.
    #[inline]
    fn come(&mut self, ends: &mut Ends<'_>) {
        if self.at != Some(ends.place) {
            self.operator.ports(&mut Ports::swap(ends.bound));
            self.at = Some(ends.place);
        }
    }

    /// It has none of its own any more: the turn ends.
    fn go(&mut self, ends: &mut Ends<'_>) {
        self.operator.ports(&mut Ports::swap(ends.bound));
        self.at = None;
    }

    /// Does something with the operator while its ports are those of this worker, also in the turn of another one.
    fn at_home<R>(&mut self, ends: &mut Ends<'_>, act: impl FnOnce(&mut dyn Operator) -> R) -> R {
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

fn tell(bells: &[Notifier], places: impl IntoIterator<Item = usize>) {
    places.into_iter().filter_map(|place| bells.get(place)).for_each(Notifier::notify);
}

impl Operator for End {
    fn ports(&mut self, p: &mut Ports) {
        self.ends.extend(p.take_ends());
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        if !self.is_first() {
            return Ok(());
        }
        self.with_guest(|guest, ends| {
            guest.is_started = true;
            guest.at_home(ends, |operator| operator.start(cx))
        })
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        cx.replicas.pending_turns &= !self.wish;
        loop {
            let End { seat, ends, bells, edge, block, ahead, .. } = self;
            let ends = Ends { place: seat.place() as u32, bound: ends };
            match seat.enter() {
                MemberEntry::Closed => return Ok(Step::Done),
                MemberEntry::Turn(turn) => {
                    return match edge {
                        None => send(turn, ends, bells, cx, block),
                        Some((edge, probe)) => {
                            take(turn, ends, (bells, ahead.as_ref()), cx, (*edge, &**probe))
                        }
                    };
                }
                MemberEntry::NotYet => {}
            }
            cx.replicas.pending_turns |= self.wish;
            if self.wish != 0 || self.seat.wait() {
                return Ok(Step::Wait);
            }
        }
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.with_guest(|guest, ends| {
            if !guest.is_started || std::mem::replace(&mut guest.is_stopped, true) {
                return Ok(());
            }
            guest.at_home(ends, |operator| operator.stop(cx, ending))
        })
    }

    fn settable(&self) -> &'static [&'static str] {
        self.settable
    }

    fn set(&mut self, cx: &mut Context, name: &str, value: &Value) -> Result<(), Error> {
        if !self.is_first() {
            return Ok(());
        }
        self.with_guest(|guest, ends| guest.at_home(ends, |operator| operator.set(cx, name, value)))
    }

    fn set_at(&mut self, cx: &mut Context, name: &str, value: &Value, sample: u64) -> Result<(), Error> {
        if !self.is_first() {
            return Ok(());
        }
        self.with_guest(|guest, ends| {
            guest.at_home(ends, |operator| operator.set_at(cx, name, value, sample))
        })
    }
}

/// A turn of a source, or a part of one that ends early: then it is still this worker's.
fn send(
    mut turn: MemberGuard<'_, Guest>,
    mut ends: Ends<'_>,
    bells: &[Notifier],
    cx: &mut Context,
    block: &Block,
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
        let Guest { pace, count, left, .. } = &mut *turn;
        *left = block.begin(cx, pace, *count);
    }
    turn.come(&mut ends);
    let (outcome, sent) = turn.send_messages(cx, block);
    match outcome? {
        Step::Done => {
            turn.go(&mut ends);
            tell(bells, turn.close());
            Ok(Step::Done)
        }
        step if sent > 0 => {
            turn.until_ns = (step == Step::Until).then_some(cx.waiting.until_ns);
            turn.is_idle = step == Step::Wait && !cx.is_starved();
            if turn.left == 0 {
                turn.go(&mut ends);
                tell(bells, turn.pass());
            }
            Ok(Step::Again)
        }
        step => Ok(step),
    }
}

impl Guest {
    /// Steps the source for what is left of its turn, as long as it asks for that and what it sends has room. Says what the last step
    /// wants, and how many messages there were.
    fn send_messages(&mut self, cx: &mut Context, block: &Block) -> (Result<Step, Error>, u32) {
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
                // It takes its time from here on: the next message is the last one of this turn.
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

/// Messages of a sink's turn, as many as lie there; behind the last one comes the next worker's.
fn take(
    mut turn: MemberGuard<'_, Guest>,
    mut ends: Ends<'_>,
    (bells, ahead): (&[Notifier], Option<&Upcoming>),
    cx: &mut Context,
    (edge, probe): (u32, &dyn Probe),
) -> Result<Step, Error> {
    loop {
        let is_here = probe.len(&cx.owner) > 0 && !turn.is_served;
        if !is_here && !turn.is_served && !cx.edges[edge as usize].closed {
            return Ok(Step::Wait);
        }
        // Nothing more comes here, and others have only what was handed out before it.
        let is_end = !is_here && !turn.is_served;
        (cx.replicas.visible, cx.replicas.is_last) = (u32::from(is_here), is_end);
        turn.come(&mut ends);
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
            // It is not done with the message.
            Step::Again => return Ok(Step::Again),
            step if step == Step::Done || step == Step::Wait && is_end => {
                turn.go(&mut ends);
                tell(bells, turn.close());
                return Ok(Step::Done);
            }
            step => match std::mem::take(&mut turn.is_served) {
                true if turn.is_last => {
                    turn.go(&mut ends);
                    tell(bells, turn.pass());
                    // What that one needs comes over on the way there.
                    let _hint = ahead.map(Upcoming::is_up);
                    return Ok(step);
                }
                // What is followed ends here, before the next one.
                true if step == Step::Wait && cx.is_usual() && probe.len(&cx.owner) > 0 => {
                    // It is stepped for that one now.
                    cx.ready.clear(cx.current);
                }
                true => {
                    // The next one comes in a moment.
                    turn.keep();
                    return Ok(step);
                }
                false => return Ok(step),
            },
        }
    }
}
