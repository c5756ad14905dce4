//! Chunks go through a run: from the source that makes them, where that is run along, to the sink that takes them.
//!
//! The ends are stepped as they are elsewhere, and what they send and take goes over the edges that are there. What is saved is all
//! that lies between two steps. What is out of the ordinary about an end is followed up as everywhere; then it is stepped by itself,
//! and a pass has one end less.

use super::fused::{MOST, Run};
use super::{Failure, NodeState, Worker};
use crate::Error;
use crate::context::{Context, NONE, flag};
use crate::message::NO_DUE;
use crate::operator::{Operator, Step};
use crate::run::PartSlot;
use std::ops::Range;

/// How far a pass came.
enum Came {
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

/// What a pass needs of a worker, taken apart once for several of them.
struct Way<'w> {
    run: &'w mut Run,
    /// All operators up to those that change chunks, these, and all behind them.
    before: &'w mut [Box<dyn Operator>],
    inside: &'w mut [Box<dyn Operator>],
    behind: &'w mut [Box<dyn Operator>],
    /// Of the source.
    node: &'w mut NodeState,
    slot: &'w PartSlot,
    /// The sink is run along, and nothing is in its way. What changes that is followed up before the next pass.
    to_sink: bool,
}

impl Way<'_> {
    /// A step of the source.
    #[inline(always)]
    fn step_source(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let source = self.run.source;
        self.run.begun += 1;
        cx.next = NONE;
        cx.popped = 0;
        cx.current = source;
        self.slot.enter(source);
        match self.before.last_mut() {
            Some(source) => source.step(cx),
            None => Ok(Step::Wait),
        }
    }

    /// A chunk that lies before those that change it goes on from there.
    #[inline(always)]
    fn go_on(&mut self, cx: &mut Context, mut times_ns: Option<&mut [u64]>) -> Came {
        let Run { first, sink, .. } = *self.run;
        cx.next = NONE;
        cx.popped = 0;
        let carrier = &mut self.run.carrier.0;
        let (through, outcome) = carrier.carry(cx, self.inside, first, self.slot, times_ns.as_deref_mut());
        match outcome {
            Err(error) => return Came::Failed(through, error),
            Ok(()) if through == 0 => return Came::Nowhere,
            Ok(()) => self.run.passes += 1,
        }
        if !self.to_sink || cx.next != sink {
            return Came::Through;
        }
        let Some(operator) = self.behind.first_mut() else { return Came::Through };
        self.run.ended += 1;
        if let Some(times_ns) = times_ns {
            times_ns[(sink - first) as usize] = cx.now_ns();
        }
        cx.next = NONE;
        cx.popped = 0;
        cx.current = sink;
        self.slot.enter(sink);
        Came::ToSink(operator.step(cx))
    }
}

impl Came {
    /// It came to the sink, which took the message and waits for the next one, and nobody is to know.
    #[inline(always)]
    fn is_usual(&self, cx: &Context) -> bool {
        matches!(self, Came::ToSink(Ok(Step::Wait)))
            && cx.next == NONE
            && cx.popped != 0
            && cx.stamp.due_ns == NO_DUE
            && cx.earlier.is_empty()
    }
}

impl Worker {
    /// Lets chunks through the run that begins with `first`: one, or several from a source that nobody else waits for, until it is time
    /// to look around.
    #[inline]
    pub(super) fn go_through(
        &mut self,
        cx: &mut Context,
        first: u32,
        from_source: bool,
    ) -> Result<(), Failure> {
        let Some(run) = &mut self.runs[first as usize] else { return Ok(()) };
        let source = run.source;
        run.left -= 1;
        if run.left == 0 {
            return self.pass_timed(cx, first, from_source);
        }
        let mut left = self.blind.min(run.left - 1);
        if !(cx.turn.is_only(source) && cx.ready.is_empty()) || self.heavy {
            left = 0;
        }
        let most = left;
        let Some(mut way) = self.way(cx, first) else { return Ok(()) };
        way.run.in_pass = true;
        let came = if from_source {
            loop {
                way.node.begin_turn(cx);
                let outcome = way.step_source(cx);
                if !matches!(outcome, Ok(Step::Again)) || cx.next != first {
                    break Came::FromSource(outcome);
                }
                way.node.sequence += 1;
                let came = way.go_on(cx, None);
                if left == 0 || !came.is_usual(cx) || !cx.ready.is_empty() {
                    break came;
                }
                left -= 1;
            }
        } else {
            way.go_on(cx, None)
        };
        // Each of them is a turn.
        let more = most - left;
        way.run.left = (way.run.left - more).max(1);
        way.run.in_pass = false;
        self.blind -= more;
        self.turns -= more.min(self.turns.saturating_sub(1));
        if from_source && !matches!(came, Came::FromSource(_)) {
            self.on_turn = NONE;
        }
        let came = self.follow_up(cx, first, came, None)?;
        self.track_end(cx, first, &came);
        Ok(())
    }

    #[inline]
    fn way(&mut self, cx: &Context, first: u32) -> Option<Way<'_>> {
        let run = self.runs[first as usize].as_mut()?;
        let (before, rest) = self.operators.split_at_mut(first as usize);
        let (inside, behind) = rest.split_at_mut((run.last - first) as usize + 1);
        let node = &mut self.nodes[run.source as usize];
        let hot = &cx.hot[run.sink as usize];
        let to_sink = run.sink > run.last && hot.unmet == 0 && hot.flags & flag::SLOW == 0;
        Some(Way { run, before, inside, behind, node, slot: &self.slot, to_sink })
    }

    /// What follows the last step of a pass, and how far that came in the end: a message of a source that wants something else than
    /// another turn goes on after that was done.
    #[inline]
    fn follow_up(
        &mut self,
        cx: &mut Context,
        first: u32,
        came: Came,
        times_ns: Option<&mut [u64]>,
    ) -> Result<Came, Failure> {
        match came {
            Came::ToSink(Ok(Step::Wait)) if cx.next == NONE => Ok(came),
            Came::Through | Came::Nowhere => Ok(came),
            came => self.follow_up_other(cx, first, came, times_ns),
        }
    }

    #[inline(never)]
    fn follow_up_other(
        &mut self,
        cx: &mut Context,
        first: u32,
        came: Came,
        times_ns: Option<&mut [u64]>,
    ) -> Result<Came, Failure> {
        let Some(run) = &mut self.runs[first as usize] else { return Ok(came) };
        let (source, sink) = (run.source, run.sink);
        match came {
            Came::FromSource(outcome) => {
                let is_done = matches!(outcome, Ok(Step::Done));
                self.after(cx, source, outcome)?;
                let flags = cx.hot[first as usize].flags;
                if is_done || cx.next != first || flags & !flag::RECORDED != flag::RUN {
                    return Ok(Came::FromSource(Ok(Step::Wait)));
                }
                let Some(mut way) = self.way(cx, first) else { return Ok(Came::Nowhere) };
                way.run.in_pass = true;
                let came = way.go_on(cx, times_ns);
                way.run.in_pass = false;
                self.follow_up(cx, first, came, None)
            }
            Came::Failed(through, error) => Err(self.fail_run(cx, first, through, error)),
            Came::ToSink(outcome) => {
                self.after(cx, sink, outcome)?;
                Ok(Came::ToSink(Ok(Step::Wait)))
            }
            came => Ok(came),
        }
    }

    /// Where a path ends with the sink, and a pass came to it.
    #[inline(always)]
    fn track_end(&mut self, cx: &mut Context, first: u32, came: &Came) {
        if (cx.stamp.due_ns != NO_DUE || !cx.earlier.is_empty()) && matches!(came, Came::ToSink(_)) {
            let Some(sink) = self.runs[first as usize].as_ref().map(|run| run.sink) else { return };
            if cx.hot[sink as usize].flags & flag::END != 0 {
                self.track(cx, sink);
            }
        }
    }

    /// A pass with a look at the clock between any two steps.
    #[inline(never)]
    fn pass_timed(&mut self, cx: &mut Context, first: u32, from_source: bool) -> Result<(), Failure> {
        let begin_ns = self.step_begins(cx);
        let Some(run) = &mut self.runs[first as usize] else { return Ok(()) };
        run.left = 1;
        let (source, last, sink) = (run.source, run.last, run.sink);
        let mut times_ns = [0; MOST];
        let (begin, inside) = if from_source { (source, 1) } else { (first, 0) };
        let mut source_end_ns = begin_ns;
        if from_source {
            self.begin_turn(cx, source);
            self.follow(cx, source, begin_ns);
        }
        let Some(mut way) = self.way(cx, first) else { return Ok(()) };
        way.run.in_pass = true;
        let came = if from_source {
            let outcome = way.step_source(cx);
            source_end_ns = cx.now_ns();
            if matches!(outcome, Ok(Step::Again)) && cx.next == first {
                way.node.sequence += 1;
                way.go_on(cx, Some(&mut times_ns[inside..]))
            } else {
                Came::FromSource(outcome)
            }
        } else {
            way.go_on(cx, Some(&mut times_ns[inside..]))
        };
        way.run.in_pass = false;
        if from_source && !matches!(came, Came::FromSource(_)) {
            self.on_turn = NONE;
        }
        let mut end_ns = cx.now_ns();
        let was_from_source = matches!(came, Came::FromSource(_));
        let came = self.follow_up(cx, first, came, Some(&mut times_ns[inside..]))?;
        if was_from_source {
            end_ns = cx.now_ns();
        }
        let (reached, end_ns) = match came {
            Came::Nowhere => return Ok(()),
            Came::FromSource(_) => (source, source_end_ns),
            Came::Failed(..) | Came::Through => (last, end_ns),
            Came::ToSink(_) => (sink, end_ns),
        };
        self.bring_up(first);
        // What comes before the first of them is its own, and what comes after the last one's too.
        times_ns[0] = begin_ns;
        let begins_ns = &times_ns[..(reached - begin + 1) as usize];
        let is_exact = self.is_exact(cx, begin, reached, (begin_ns, end_ns));
        for (operator, at) in (begin..).zip(each(begins_ns, end_ns)) {
            self.note_step_of(cx, operator, at, is_exact);
        }
        let left = (begin..=reached).map(|operator| self.meters[operator as usize].left()).min();
        if let Some(run) = &mut self.runs[first as usize] {
            run.left = left.unwrap_or(1).max(1);
        }
        self.look_around(cx, end_ns);
        self.track_end(cx, first, &came);
        Ok(())
    }
}

/// From when to when each of several had its turn, given when they began and when the last one ended.
fn each(begins_ns: &[u64], end_ns: u64) -> impl Iterator<Item = Range<u64>> {
    let ends_ns = begins_ns.iter().skip(1).copied().chain([end_ns]);
    begins_ns.iter().zip(ends_ns).map(|(&begin_ns, end_ns)| begin_ns..end_ns.max(begin_ns))
}
