//! Operators that are run as one step: see [`carry`](crate::carry).
//!
//! A run is a shortcut and nothing else. Its operators are there as any others are, with their edges, and are stepped one by one
//! as soon as anything is out of the ordinary: an end, a failure, a message between two of them. Then the run is *loose*, until all
//! edges in it are empty again.

use super::{Failure, Worker};
use crate::Error;
use crate::carry::Carrier;
use crate::context::{Context, DONE, Held, NONE, flag};
use std::ops::Range;

/// Most operators of one run.
pub(crate) const MOST: usize = 64;

/// Neighbours on one worker, by rising number.
pub(crate) struct Run {
    pub first: u32,
    pub last: u32,
    pub carrier: Carrier,
    /// Chunks that went through since the counters were brought up to date.
    passes: u64,
    /// Chunks that went through, by edge from one to the next.
    pub carried: Box<[u64]>,
    /// Passes until one is timed.
    left: u32,
    /// Something may lie between two of them.
    is_loose: bool,
    /// A chunk is on its way.
    in_pass: bool,
}

impl Run {
    pub fn new(first: u32, last: u32, carrier: Carrier) -> Self {
        let carried = vec![0; (last - first) as usize].into();
        Run { first, last, carrier, passes: 0, carried, left: 1, is_loose: false, in_pass: false }
    }
}

impl Worker {
    /// One step of a run, if that is what is to be done for this operator of it. False when it is to be stepped by itself.
    #[inline]
    pub(super) fn step_run(&mut self, cx: &mut Context, operator: u32) -> Result<bool, Failure> {
        let Some(run) = &mut self.runs[operator as usize] else {
            return self.step_member(cx, operator);
        };
        let (first, last) = (run.first, run.last);
        let all = &cx.hot[first as usize..=last as usize];
        let (unmet, flags) =
            all.iter().fold((0, 0), |(unmet, flags), hot| (unmet | hot.unmet, flags | hot.flags));
        if flags & !flag::RECORDED != flag::RUN || run.is_loose {
            return self.step_loose(cx, operator, flags);
        }
        cx.hot[first as usize].left = 1;
        (cx.next, cx.popped) = (NONE, 0);
        if unmet != 0 {
            hold_run(cx, first, last);
            self.note_hold_of_run(cx, first, last);
            return Ok(true);
        }
        run.left -= 1;
        if run.left == 0 {
            return self.pass_timed(cx, first).map(|()| true);
        }
        run.in_pass = true;
        let operators = &mut self.operators[first as usize..=last as usize];
        let (through, outcome) = run.carrier.0.carry(cx, operators, first, &self.slot, None);
        run.in_pass = false;
        if let Err(error) = outcome {
            return Err(self.fail_run(cx, first, through, error));
        }
        run.passes += u64::from(through > 0);
        Ok(true)
    }

    /// Something was, or is, out of the ordinary.
    #[cold]
    fn step_loose(&mut self, cx: &mut Context, first: u32, flags: u32) -> Result<bool, Failure> {
        let is_tight = flags & !flag::RECORDED == flag::RUN
            && self.runs[first as usize].as_ref().is_some_and(|run| self.is_tight(cx, run));
        if let Some(run) = &mut self.runs[first as usize] {
            run.is_loose = !is_tight;
        }
        if is_tight { self.step_run(cx, first) } else { Ok(false) }
    }

    /// An operator of a run other than the first is ready. Where nothing lies before it, its turn has come because
    /// something lets the whole run go on.
    fn step_member(&mut self, cx: &mut Context, operator: u32) -> Result<bool, Failure> {
        let first = self.nodes[operator as usize].run;
        let Some(run) = first.and_then(|first| self.runs[first as usize].as_mut()) else { return Ok(false) };
        let waits = self.nodes[operator as usize]
            .inputs
            .iter()
            .any(|&edge| self.edges[edge as usize].probe.len(&cx.owner) > 0);
        if cx.hot[operator as usize].flags & !flag::RECORDED != flag::RUN || waits {
            run.is_loose = true;
            return Ok(false);
        }
        cx.hot[operator as usize].left = 1;
        (cx.next, cx.popped) = (NONE, 0);
        if run.carrier.0.has_input(cx) {
            cx.ready.set(run.first);
        }
        Ok(true)
    }

    /// The run that an operator is in.
    fn run_of(&self, operator: u32) -> Option<&Run> {
        self.nodes.get(operator as usize)?.run.and_then(|first| self.runs[first as usize].as_ref())
    }

    /// Lets the run of an operator go on that was started anew.
    pub(super) fn poke_run(&mut self, cx: &mut Context, operator: u32) {
        if let Some(run) = self.run_of(operator).filter(|run| run.carrier.0.has_input(cx)) {
            cx.ready.set(run.first);
        }
    }

    /// Whether all edges from one to the next are empty, and none of them has anything to do for itself.
    fn is_tight(&self, cx: &Context, run: &Run) -> bool {
        (run.first + 1..=run.last).all(|operator| {
            let inputs = &self.nodes[operator as usize].inputs;
            inputs.iter().all(|&edge| self.edges[edge as usize].probe.len(&cx.owner) == 0)
        })
    }

    /// A pass with a look at the clock between any two of them.
    #[inline(never)]
    fn pass_timed(&mut self, cx: &mut Context, first: u32) -> Result<(), Failure> {
        let begin_ns = self.step_begins(cx);
        let Some(run) = &mut self.runs[first as usize] else { return Ok(()) };
        run.left = 1;
        let last = run.last;
        let mut times_ns = [0; MOST];
        run.in_pass = true;
        let operators = &mut self.operators[first as usize..=last as usize];
        let (through, outcome) = run.carrier.0.carry(cx, operators, first, &self.slot, Some(&mut times_ns));
        run.in_pass = false;
        if let Err(error) = outcome {
            return Err(self.fail_run(cx, first, through, error));
        }
        if through == 0 {
            return Ok(());
        }
        run.passes += 1;
        self.bring_up(first);
        let end_ns = cx.now_ns();
        // What comes before the first of them is its own, and what comes after the last one's too.
        times_ns[0] = begin_ns;
        let begins_ns = &times_ns[..(last - first + 1) as usize];
        let is_exact = self.is_exact(cx, first, last, (begin_ns, end_ns));
        for (operator, at) in (first..).zip(each(begins_ns, end_ns)) {
            self.note_step_of(cx, operator, at, is_exact);
        }
        let left = self.meters[first as usize].left().max(1);
        if let Some(run) = &mut self.runs[first as usize] {
            run.left = left;
        }
        self.look_around(cx, end_ns);
        Ok(())
    }

    /// One of them failed: those up to it were stepped.
    #[cold]
    fn fail_run(&mut self, cx: &mut Context, first: u32, through: usize, error: Error) -> Failure {
        let last = self.runs[first as usize].as_ref().map_or(first, |run| run.last);
        let failed = (first + through as u32).min(last);
        self.count_failed(first, failed);
        cx.current = failed;
        Failure::Operator(failed, error)
    }

    fn count_failed(&mut self, first: u32, failed: u32) {
        self.bring_up(first);
        let Some(run) = &mut self.runs[first as usize] else { return };
        run.left = 1;
        run.in_pass = false;
        run.carried.iter_mut().take((failed - first) as usize).for_each(|carried| *carried += 1);
        for operator in first..=failed {
            self.meters[operator as usize].add(1);
        }
    }

    /// An operator has panicked, in a run or not.
    #[cold]
    pub(super) fn note_panic(&mut self, operator: u32) {
        if let Some(first) = self.run_of(operator).filter(|run| run.in_pass).map(|run| run.first) {
            self.count_failed(first, operator);
        }
    }

    /// Counts what went through for each of them.
    fn bring_up(&mut self, first: u32) {
        let Some(run) = &mut self.runs[first as usize] else { return };
        let passes = std::mem::take(&mut run.passes);
        if passes > 0 {
            for operator in run.first..=run.last {
                self.meters[operator as usize].add(passes);
            }
            run.carried.iter_mut().for_each(|carried| *carried += passes);
        }
    }

    /// Steps of an operator that it made in a run and that are not counted yet.
    pub fn passes(&self, operator: u32) -> u64 {
        self.run_of(operator).map_or(0, |run| run.passes)
    }

    /// Messages that went over an edge inside a run, by number of its consumer.
    pub fn carried(&self, to: u32) -> u64 {
        let inside = self.run_of(to).filter(|run| run.first < to);
        inside.map_or(0, |run| run.passes + run.carried[(to - run.first - 1) as usize])
    }
}

/// From when to when each of several had its turn, given when they began and when the last one ended.
fn each(begins_ns: &[u64], end_ns: u64) -> impl Iterator<Item = Range<u64>> {
    let ends_ns = begins_ns.iter().skip(1).copied().chain([end_ns]);
    begins_ns.iter().zip(ends_ns).map(|(&begin_ns, end_ns)| begin_ns..end_ns.max(begin_ns))
}

/// One of them may not be stepped, so none is: the one that is let go on lets the first one do so.
#[cold]
fn hold_run(cx: &mut Context, first: u32, last: u32) {
    for operator in first..=last {
        let unmet = cx.hot[operator as usize].unmet;
        if unmet != 0 && unmet < DONE && cx.held[operator as usize] == Held::No {
            cx.held[operator as usize] = Held::Ready;
        }
    }
}
