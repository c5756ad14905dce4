//! Chunks go through a run: from the source that makes them, where that is run along, to the sink that takes them.
//!
//! The ends are stepped as they are elsewhere, and what they send and take goes over the edges that are there, or from hand to hand where
//! they can do that (see [`Operator::fill`](crate::Operator::fill)). What is saved is all that lies between two steps. What is out of the
//! ordinary about an end is followed up as everywhere; then it is stepped by itself, and a pass has one end less.

use super::{Failure, Meter, Outside, Worker};
use crate::engine::carry::{Came, Carrier, More, Way};
use crate::operator::Step;
use crate::operator::context::{Context, NONE, flag};
use crate::operator::message::NO_DUE;
use crate::plan::RUN_MOST;
use std::ops::Range;

/// Most passes in a row with looks at what is told from outside: so long what went through is not counted yet. (Measured: to begin anew
/// takes 60 ns and some lines of cache.)
const SEEING: u32 = 1023;

impl Worker {
    /// Lets chunks through the run that begins with `first`: one, or several where nobody else waits for a turn, until it is time to look
    /// around.
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
        if from_source && run.tide.is_some() && self.is_high_tide(cx, first) {
            return self.ride(cx, first);
        }
        let Some(run) = &mut self.runs[first as usize] else { return Ok(()) };
        let left = run.left - 1;
        let may_go_on = !from_source || cx.turn.is_only(source) && cx.ready.is_empty();
        let more = if may_go_on && !(self.seat.pool.is_some() && self.heavy) {
            let blind = if from_source { self.blind } else { left };
            let turns = if self.seat.pool.is_some() { self.turns } else { left };
            // What others write on edges to and from here is looked at elsewhere.
            let sees_all = from_source && self.watched.is_empty() && cx.full.is_empty();
            let until_asked = run.tide.as_ref().map_or(SEEING, |tide| tide.passes_alone().min(SEEING));
            More {
                blind: left.min(blind).min(turns),
                seeing: if sees_all { left.min(until_asked) } else { 0 },
            }
        } else {
            More::NONE
        };
        let (came, more) = self.pass(cx, first, from_source, more, None);
        // Each of them is a turn.
        if let Some(run) = &mut self.runs[first as usize] {
            run.left = (run.left - more).max(1);
            if let Some(tide) = &mut run.tide {
                tide.went(more);
            }
        }
        if from_source {
            self.blind = self.blind.saturating_sub(more);
        }
        self.turns -= more.min(self.turns.saturating_sub(1));
        if from_source && !matches!(came, Came::FromSource(_)) {
            self.on_turn = NONE;
        }
        let came = self.follow_up(cx, first, came, None)?;
        self.track_end(cx, first, &came);
        Ok(())
    }

    /// One pass, and so many more as `more` says: see [`Carry::pass`](crate::engine::carry::Carry::pass). Says also how many more these were.
    #[inline]
    fn pass(
        &mut self,
        cx: &mut Context,
        first: u32,
        from_source: bool,
        more: More,
        times_ns: Option<&mut [u64]>,
    ) -> (Came, u32) {
        let Some((mut way, carrier)) = self.way(cx, first, from_source) else { return (Came::Nowhere, 0) };
        let came = carrier.0.pass(cx, &mut way, more, times_ns);
        let to_sink = matches!(came, Came::ToSink(_));
        let mut whole = 0;
        if let Some(run) = &mut self.runs[first as usize] {
            let (before, waits) = run.pass_ended(to_sink || matches!(came, Came::Through), to_sink);
            whole = before;
            if waits && !to_sink && run.sink != cx.next {
                cx.ready.set(run.sink);
            }
        }
        (came, whole as u32)
    }

    #[inline]
    pub(super) fn way(
        &mut self,
        cx: &Context,
        first: u32,
        from_source: bool,
    ) -> Option<(Way<'_>, &mut Carrier)> {
        let alarm_ns = self.alarm_ns();
        let run = self.runs[first as usize].as_mut()?;
        let (before, rest) = self.operators.split_at_mut(first as usize);
        let (inside, behind) = rest.split_at_mut((run.last - first) as usize + 1);
        let hot = &cx.hot[run.sink as usize];
        let to_sink = run.sink > run.last && hot.unmet == 0 && hot.flags & flag::SLOW == 0;
        run.in_pass = Some((from_source, to_sink));
        let has_turns = to_sink && self.nodes[run.sink as usize].has_turns;
        let way = Way {
            source: before.last_mut().filter(|_| from_source),
            inside,
            sink: behind.first_mut().filter(|_| to_sink),
            numbers: [run.source, first, run.sink],
            afresh: run.afresh,
            node: &mut self.nodes[run.source as usize],
            slot: &self.slot,
            outside: Outside::new(
                (&self.seat, &self.control),
                alarm_ns,
                (self.stopping, self.long != 0),
                &mut run.pace,
            ),
            whole: &mut run.whole,
            short: has_turns.then_some(&mut run.short),
            hands: &mut run.hands,
        };
        Some((way, &mut run.carrier))
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
                if !self.is_equipped(cx, first) {
                    return Ok(Came::FromSource(Ok(Step::Wait)));
                }
                let (came, _) = self.pass(cx, first, false, More::NONE, times_ns);
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
        let mut times_ns = [0; RUN_MOST];
        let (begin, inside) = if from_source { (source, 1) } else { (first, 0) };
        if from_source {
            self.begin_turn(cx, source);
            self.follow(cx, source, begin_ns);
        }
        let (came, _) = self.pass(cx, first, from_source, More::NONE, Some(&mut times_ns[inside..]));
        if from_source && !matches!(came, Came::FromSource(_)) {
            self.on_turn = NONE;
        }
        let mut end_ns = cx.now_ns();
        let source_end_ns = end_ns;
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
        let left = if is_exact { 1 } else { self.passes_until_timed(begin, reached) };
        if let Some(run) = &mut self.runs[first as usize] {
            run.left = left;
        }
        self.look_around(cx, end_ns);
        self.track_end(cx, first, &came);
        Ok(())
    }

    /// Passes through these until one is timed, so that this costs less than 1 % of what they take.
    fn passes_until_timed(&mut self, begin: u32, reached: u32) -> u32 {
        let meters = &mut self.meters[begin as usize..=reached as usize];
        let sum = |of: fn(&Meter) -> u64| meters.iter().map(of).sum();
        let (cost_ns, mean_ns) = (sum(Meter::cost_ns), sum(Meter::mean_ns));
        meters[0].passes(cost_ns, mean_ns)
    }
}

/// From when to when each of several had its turn, given when they began and when the last one ended.
fn each(begins_ns: &[u64], end_ns: u64) -> impl Iterator<Item = Range<u64>> {
    let ends_ns = begins_ns.iter().skip(1).copied().chain([end_ns]);
    begins_ns.iter().zip(ends_ns).map(|(&begin_ns, end_ns)| begin_ns..end_ns.max(begin_ns))
}
