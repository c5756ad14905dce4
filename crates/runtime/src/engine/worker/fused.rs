//! Operators that are run as one step: see [`carry`](crate::engine::carry).
//!
//! A run is a shortcut and nothing else. Its operators are there as any others are, with their edges, and are stepped one by one
//! as soon as anything is out of the ordinary: an end, a failure, a message between two of them. Then the run is *loose*, until all
//! edges in it are empty again. How chunks go through, from the source before a run and to the sink behind it: see
//! [`pass`](super::pass).

use super::{Failure, Pace, Worker};
use crate::Error;
use crate::base::slot::within;
use crate::engine::carry::{Carrier, Hands, Short};
use crate::engine::wave::{Rode, Tide};
use crate::operator::context::{Context, DONE, Held, NONE, flag};
use std::ops::RangeInclusive;

/// Neighbours on one worker, by rising number.
pub(crate) struct Run {
    /// Those that change chunks.
    pub first: u32,
    pub last: u32,
    /// The operator before them, where that is a source that is run along; else the first of them.
    pub source: u32,
    /// The operator behind them, where that is a sink that is run along; else the last of them.
    pub sink: u32,
    pub carrier: Carrier,
    /// Those that write other chunks, by bit, the first of them lowest.
    pub afresh: u64,
    /// Steps that were made in passes since the counters were brought up to date: of those that change chunks, of the source, and
    /// of the sink.
    passes: u64,
    pub begun: u64,
    ended: u64,
    /// Passes that are not among these yet.
    pub whole: u64,
    /// Chunks that went through, by edge from one to the next.
    carried: Box<[u64]>,
    pub hands: Hands,
    pub pace: Pace,
    pub short: Short,
    /// Passes until one is timed.
    pub left: u32,
    /// Where others may carry chunks, too: whether they are to.
    pub tide: Option<Box<Tide>>,
    /// Something may lie between two of them.
    pub is_loose: bool,
    /// A chunk is on its way: from the source or not, and to the sink or not.
    pub in_pass: Option<(bool, bool)>,
}

impl Run {
    /// Of those that change chunks, and of all with their ends.
    pub fn new(inside: RangeInclusive<u32>, all: RangeInclusive<u32>, carrier: Carrier) -> Self {
        let ((first, last), (source, sink)) = (inside.into_inner(), all.into_inner());
        Run {
            first,
            last,
            source,
            sink,
            carrier,
            afresh: 0,
            passes: 0,
            begun: 0,
            ended: 0,
            whole: 0,
            carried: vec![0; (last - first) as usize].into(),
            hands: Hands::default(),
            pace: Pace::default(),
            short: Short::default(),
            left: 1,
            tide: None,
            is_loose: false,
            in_pass: None,
        }
    }

    /// Messages went along with others; none is under way any more.
    pub fn rode(&mut self, rode: &Rode) {
        self.in_pass = None;
        self.begun += rode.begun;
        self.passes += rode.whole + rode.through;
        self.ended += rode.whole;
        self.hands.from_source += rode.whole + rode.through;
        self.hands.to_sink += rode.whole;
    }

    /// The pass that was under way ended: through all those that change chunks or not, and in a step of the sink or not. Says how many
    /// there were before it, and whether messages of these lie before the sink.
    pub fn pass_ended(&mut self, through: bool, ended: bool) -> (u64, bool) {
        let Some((from_source, to_sink)) = self.in_pass.take() else { return (0, false) };
        let whole = std::mem::take(&mut self.whole);
        let Short { of_source, of_sink } = std::mem::take(&mut self.short);
        self.begun += if from_source { whole + 1 - of_source } else { 0 };
        self.passes += whole + u64::from(through);
        self.ended += if to_sink { whole - of_sink } else { 0 } + u64::from(ended);
        (whole, of_sink > 0)
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
        let (unmet, flags) = all(cx, first, last);
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
        if !self.is_equipped(cx, first) {
            return Ok(false);
        }
        self.go_through(cx, first, false).map(|()| true)
    }

    /// Whether those that write other chunks have one to write to. Where they have not, they are stepped one by one, and each waits for
    /// one.
    #[inline]
    pub(super) fn is_equipped(&mut self, cx: &Context, first: u32) -> bool {
        let Some(run) = &mut self.runs[first as usize] else { return false };
        let is_equipped = run.afresh == 0 || run.carrier.0.equip(cx);
        run.is_loose |= !is_equipped;
        is_equipped
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

    /// The source before a run has its turn, or an operator of it other than the first is ready. Where nothing lies before that one,
    /// its turn has come because something lets the whole run go on.
    fn step_member(&mut self, cx: &mut Context, operator: u32) -> Result<bool, Failure> {
        let first = self.nodes[operator as usize].run;
        let Some(run) = first.and_then(|first| self.runs[first as usize].as_mut()) else { return Ok(false) };
        if operator < run.first {
            return self.step_source(cx, operator);
        }
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

    /// The source before a run has its turn: what it sends goes through at once, if nothing hinders that.
    fn step_source(&mut self, cx: &mut Context, source: u32) -> Result<bool, Failure> {
        let Some(run) = self.run_of(source) else { return Ok(false) };
        let (first, last) = (run.first, run.last);
        let (unmet, flags) = all(cx, source, last);
        if flags & !flag::RECORDED != flag::RUN | flag::SOURCE || unmet != 0 || run.is_loose {
            return Ok(false);
        }
        if !self.is_equipped(cx, first) {
            return Ok(false);
        }
        cx.hot[source as usize].left = 1;
        self.go_through(cx, first, true).map(|()| true)
    }

    /// The run that an operator is in, or at an end of.
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

    /// One of them failed: those up to it were stepped.
    #[cold]
    pub(super) fn fail_run(&mut self, cx: &mut Context, first: u32, through: usize, error: Error) -> Failure {
        let last = self.runs[first as usize].as_ref().map_or(first, |run| run.last);
        let failed = (first + through as u32).min(last);
        self.count_failed(first, failed);
        cx.current = failed;
        Failure::Operator(failed, error)
    }

    pub(super) fn count_failed(&mut self, first: u32, failed: u32) {
        self.bring_up(first);
        let Some(run) = &mut self.runs[first as usize] else { return };
        run.left = 1;
        if failed < run.first || failed > run.last {
            // The steps of the ends are counted with the pass.
            return;
        }
        run.carried.iter_mut().take((failed - first) as usize).for_each(|carried| *carried += 1);
        for operator in first..=failed {
            self.meters[operator as usize].add(1);
        }
    }

    /// The operator whose code is under way, or was when it panicked. While chunks are changed in a pass the slot alone says that.
    pub fn in_code(&self, cx: &Context) -> u32 {
        let shown = self.slot.within() & within::OPERATOR;
        let run = self.runs.iter().flatten().find(|run| run.in_pass.is_some());
        match run.is_some_and(|run| (run.source..=run.sink).contains(&shown)) {
            true => shown,
            false => cx.current,
        }
    }

    /// An operator has panicked, in a run or not.
    #[cold]
    pub(super) fn note_panic(&mut self, operator: u32) {
        let Some(run) = self.nodes.get(operator as usize).and_then(|node| node.run) else { return };
        if let Some(run) = self.runs[run as usize].as_mut().filter(|run| run.in_pass.is_some()) {
            let behind = operator > run.last;
            run.hands.count(run.whole, operator >= run.first, behind);
            run.pass_ended(behind, behind);
            let first = run.first;
            self.count_failed(first, operator);
        }
    }

    /// Counts what went through for each of them.
    pub(super) fn bring_up(&mut self, first: u32) {
        let Some(run) = &mut self.runs[first as usize] else { return };
        let passes = std::mem::take(&mut run.passes);
        for (end, steps) in [(run.source, &mut run.begun), (run.sink, &mut run.ended)] {
            self.meters[end as usize].add(std::mem::take(steps));
        }
        if passes > 0 {
            for operator in run.first..=run.last {
                self.meters[operator as usize].add(passes);
            }
            run.carried.iter_mut().for_each(|carried| *carried += passes);
        }
    }

    /// Steps of an operator that it made in a run and that are not counted yet.
    pub fn passes(&self, operator: u32) -> u64 {
        self.run_of(operator).map_or(0, |run| match operator {
            _ if operator < run.first => run.begun,
            _ if operator > run.last => run.ended,
            _ => run.passes,
        })
    }

    /// Messages that went from one operator of a run to the next without lying in the queue between them, by number of the latter.
    pub fn carried(&self, to: u32) -> u64 {
        self.run_of(to).map_or(0, |run| match to {
            _ if to < run.first => 0,
            _ if to == run.first => run.hands.from_source,
            _ if to > run.last => run.hands.to_sink,
            _ => run.passes + run.carried[(to - run.first - 1) as usize],
        })
    }
}

/// What is not met, and what is flagged, for any of several.
#[inline]
fn all(cx: &Context, first: u32, last: u32) -> (u32, u32) {
    let all = &cx.hot[first as usize..=last as usize];
    all.iter().fold((0, 0), |(unmet, flags), hot| (unmet | hot.unmet, flags | hot.flags))
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
