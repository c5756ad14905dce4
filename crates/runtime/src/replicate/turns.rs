//! A source or sink that is there once, at one end of a replicated stretch, and goes from worker to worker: each has its turn
//! after the one before, so the n-th message in is the n-th out.

use super::spread::not_one_for_one;
use crate::context::{Context, STARVED};
use crate::link::{Bell, Probe};
use crate::message::SEQUENCE_MASK;
use crate::operator::{Ending, Operator, Step};
use crate::ports::Bound;
use crate::{Error, Ports, Value};
use onbeat_queue::{Entry, Seat, Taking};
use std::sync::Arc;

/// How long the step of another worker is waited for.
const PATIENCE_NS: u64 = 1_000_000_000;

/// The operator, and what goes with it from worker to worker.
struct Guest {
    operator: Box<dyn Operator>,
    is_started: bool,
    is_stopped: bool,
    /// Messages that it has sent or taken: the number of the next one.
    count: u64,
    /// Of this turn: it has sent its message, or taken it.
    is_served: bool,
    /// A source that said when it is to be stepped again.
    until_ns: Option<u64>,
    /// A source that waits for what cannot come.
    is_idle: bool,
}

/// One worker's end of a stretch.
pub(crate) struct End {
    seat: Seat<Guest>,
    /// What its ports are connected to on this worker, while it is not here.
    ends: Vec<Bound>,
    /// How the other workers are told, by place.
    bells: Vec<Bell>,
    /// Of a sink: the edge that leads here.
    edge: Option<(u32, Arc<dyn Probe>)>,
    settable: &'static [&'static str],
}

impl End {
    /// One for each worker.
    pub fn all(operator: Box<dyn Operator>, workers: usize) -> Vec<End> {
        let settable = operator.settable();
        let guest = Guest {
            operator,
            is_started: false,
            is_stopped: false,
            count: 0,
            is_served: false,
            until_ns: None,
            is_idle: false,
        };
        let end = |seat| End { seat, ends: Vec::new(), bells: Vec::new(), edge: None, settable };
        Seat::rota(workers, guest).into_iter().map(end).collect()
    }

    /// How it tells the others, by place; and for a sink, where its messages come from.
    pub fn seat(&mut self, bells: Vec<Bell>, edge: Option<(u32, Arc<dyn Probe>)>) {
        (self.bells, self.edge) = (bells, edge);
    }

    /// Does something with the operator, whoever's turn it is. Others are in a turn for the time of a step; one that is in it for
    /// much longer may never come back.
    fn with_guest<R>(
        &mut self,
        act: impl FnOnce(&mut Guest, &mut [Bound]) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let begin_ns = onbeat_os::clock::monotonic_ns();
        loop {
            if let Some(mut guest) = self.seat.take_over() {
                return act(&mut guest, &mut self.ends);
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

/// Does something with the operator while its ports are those of this worker.
fn at_home<R>(guest: &mut Guest, ends: &mut [Bound], act: impl FnOnce(&mut dyn Operator) -> R) -> R {
    guest.operator.ports(&mut Ports::swap(ends));
    let result = act(&mut *guest.operator);
    guest.operator.ports(&mut Ports::swap(ends));
    result
}

fn tell(bells: &[Bell], places: impl IntoIterator<Item = usize>) {
    places.into_iter().filter_map(|place| bells.get(place)).for_each(Bell::ring);
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
            at_home(guest, ends, |operator| operator.start(cx))
        })
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        loop {
            let End { seat, ends, bells, edge, .. } = self;
            match seat.enter() {
                Entry::Closed => return Ok(Step::Done),
                Entry::Turn(turn) => {
                    return match edge {
                        None => send(turn, ends, bells, cx),
                        Some((edge, probe)) => take(turn, ends, bells, cx, (*edge, &**probe)),
                    };
                }
                Entry::Others => {}
            }
            if self.seat.wait() {
                return Ok(Step::Wait);
            }
        }
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.with_guest(|guest, ends| {
            if !guest.is_started || std::mem::replace(&mut guest.is_stopped, true) {
                return Ok(());
            }
            at_home(guest, ends, |operator| operator.stop(cx, ending))
        })
    }

    fn settable(&self) -> &'static [&'static str] {
        self.settable
    }

    fn set(&mut self, cx: &mut Context, name: &str, value: &Value) -> Result<(), Error> {
        if !self.is_first() {
            return Ok(());
        }
        self.with_guest(|guest, ends| at_home(guest, ends, |operator| operator.set(cx, name, value)))
    }

    fn set_at(&mut self, cx: &mut Context, name: &str, value: &Value, sample: u64) -> Result<(), Error> {
        if !self.is_first() {
            return Ok(());
        }
        self.with_guest(|guest, ends| {
            at_home(guest, ends, |operator| operator.set_at(cx, name, value, sample))
        })
    }
}

/// A turn of a source: one message, then the next worker's.
fn send(
    mut turn: Taking<'_, Guest>,
    ends: &mut [Bound],
    bells: &[Bell],
    cx: &mut Context,
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
    cx.stamp.origin = cx.stamp.origin & !SEQUENCE_MASK | turn.count & SEQUENCE_MASK;
    let outcome = at_home(&mut turn, ends, |operator| operator.step(cx));
    let is_sent = cx.next < STARVED || cx.sent_away;
    turn.count += u64::from(is_sent);
    match outcome? {
        Step::Done => {
            tell(bells, turn.close());
            Ok(Step::Done)
        }
        step if is_sent => {
            turn.until_ns = (step == Step::Until).then_some(cx.until_ns);
            turn.is_idle = step == Step::Wait;
            tell(bells, turn.pass());
            Ok(Step::Again)
        }
        // It is still this worker's turn.
        step => Ok(step),
    }
}

/// A turn of a sink: one message, then the next worker's.
fn take(
    mut turn: Taking<'_, Guest>,
    ends: &mut [Bound],
    bells: &[Bell],
    cx: &mut Context,
    (edge, probe): (u32, &dyn Probe),
) -> Result<Step, Error> {
    let is_here = probe.len(&cx.owner) > 0 && !turn.is_served;
    // Nothing more comes here, and others have only what was handed out before it.
    let is_end = probe.len(&cx.owner) == 0 && cx.edges[edge as usize].closed && !turn.is_served;
    if !is_here && !is_end && !turn.is_served {
        return Ok(Step::Wait);
    }
    (cx.visible, cx.is_last) = (u32::from(is_here), is_end);
    let outcome = at_home(&mut turn, ends, |operator| operator.step(cx));
    if is_here && cx.visible == 0 {
        if cx.stamp.origin & SEQUENCE_MASK != turn.count & SEQUENCE_MASK {
            return Err(not_one_for_one("others"));
        }
        turn.is_served = true;
        turn.count += 1;
    }
    match outcome? {
        Step::Done => {
            tell(bells, turn.close());
            Ok(Step::Done)
        }
        Step::Wait if is_end => {
            tell(bells, turn.close());
            Ok(Step::Done)
        }
        // It is not done with the message.
        Step::Again => Ok(Step::Again),
        step => {
            if std::mem::take(&mut turn.is_served) {
                tell(bells, turn.pass());
            }
            Ok(step)
        }
    }
}
