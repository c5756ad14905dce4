//! What a worker notes of its steps for whoever is to say why something was late.

use super::Worker;
use crate::engine::flight::{About, Late, Noted};
use crate::graph::limits::OnMiss;
use crate::operator::context::Skips;
use crate::operator::context::{Context, flag};
use crate::operator::message::Stamp;
use onbeat_queue::sync::atomic::Ordering;
use std::ops::Range;

impl Worker {
    /// The time at which a step begins that is timed: the end of the one before, where it follows at once and each of its steps is
    /// timed, so that nothing lies between the two.
    #[inline(always)]
    pub(super) fn step_begins(&self, cx: &Context) -> u64 {
        match &self.flight {
            Some(flight) if flight.last_end_ns != 0 && flight.last == cx.current => flight.last_end_ns,
            _ => cx.now_ns(),
        }
    }

    /// A step that was timed has ended, or those that were run as one from `operator` to `last`, of which the first began then. Whether
    /// each step of it is to be timed.
    #[inline(always)]
    pub(super) fn is_exact(
        &mut self,
        cx: &Context,
        operator: u32,
        last: u32,
        (begin_ns, end_ns): (u64, u64),
    ) -> bool {
        let flags = cx.hot[operator as usize].flags;
        let has_deadline = flags & flag::EXACT != 0;
        let Some(flight) = self.flight.as_mut().filter(|_| flags & flag::RECORDED != 0) else {
            return has_deadline;
        };
        let steps = self.meters[operator as usize].steps_so_far();
        let is_exact = flight.is_exact(operator, begin_ns, steps) || has_deadline;
        flight.ends(last, end_ns, is_exact);
        self.is_sampled_unless(is_exact);
        is_exact
    }

    /// Notes a step that was timed: what it took is counted by whoever reads that, or here.
    #[inline(always)]
    pub(super) fn note_step_of(&mut self, cx: &mut Context, operator: u32, at: Range<u64>, is_exact: bool) {
        let flags = cx.hot[operator as usize].flags;
        let step_ns = at.end.saturating_sub(at.start);
        let is_noted = self.flight.as_mut().filter(|_| flags & flag::RECORDED != 0).is_some_and(|flight| {
            let noted = Noted {
                worker: self.slot.worker() as u32,
                stamp: cx.stamp,
                has_message: flags & flag::SOURCE != 0 || cx.popped != 0,
                start_ns: at.start,
                end_ns: at.end,
            };
            flight.note(&mut cx.owner, operator, noted)
        });
        let meter = &mut self.meters[operator as usize];
        if !is_noted {
            meter.histogram.record(step_ns);
        }
        meter.timed(step_ns, is_exact);
        self.weigh(cx, operator, step_ns);
    }

    /// Says so where not every step is timed.
    #[inline]
    fn is_sampled_unless(&self, is_exact: bool) {
        if !is_exact && !self.control.is_sampled.load(Ordering::Relaxed) {
            self.control.is_sampled.store(true, Ordering::Relaxed);
        }
    }

    /// An operator has work and may not be stepped.
    pub(super) fn note_hold(&mut self, cx: &Context, operator: u32) {
        self.note_hold_by(cx, operator, operator);
    }

    /// Several that are run as one step have work and may not be stepped: the first of them waits, for one of those.
    pub(super) fn note_hold_of_chain(&mut self, cx: &Context, first: u32, last: u32) {
        for operator in (first..=last).rev() {
            self.note_hold_by(cx, first, operator);
        }
    }

    /// `held` waits for room behind `operator`, if there is none.
    fn note_hold_by(&mut self, cx: &Context, held: u32, operator: u32) {
        if self.flight.is_none() || cx.hot[operator as usize].flags & flag::RECORDED == 0 {
            return;
        }
        let outputs = &self.nodes[operator as usize].outputs;
        let Some(&full) = outputs.iter().find(|&&edge| self.is_full(cx, edge)) else { return };
        let (edge, now_ns) = (self.edges[full as usize].plan, cx.now_ns());
        if let Some(flight) = &mut self.flight {
            flight.hold(held, edge, now_ns);
        }
    }

    /// When the step that has just ended did so: a look at the clock is spared where that was noted.
    #[inline]
    pub(super) fn ended_ns(&self, cx: &Context, operator: u32) -> u64 {
        match &self.flight {
            Some(flight) if flight.last_end_ns != 0 && flight.last == operator => flight.last_end_ns,
            _ => cx.now_ns(),
        }
    }

    /// A message is finished: for paths and deadlines that end here.
    pub(super) fn finished(&mut self, cx: &mut Context, operator: u32, stamp: Stamp, now_ns: u64) {
        self.tracker.finished(operator, stamp, now_ns, cx.start_ns);
        while let Some(late) = self.tracker.take_fresh() {
            if let Some(flight) = &self.flight {
                flight.miss(&mut cx.owner, late);
            }
            if matches!(late.about, About::Miss(_)) && late.on_miss != OnMiss::Record {
                self.act_on(operator, &late);
            }
        }
    }

    /// Does what the graph wants done when something was missed.
    #[cold]
    fn act_on(&mut self, operator: u32, late: &Late) {
        let limits = &self.control.limits;
        let late_ns = late.late_ns();
        match late.on_miss {
            OnMiss::Record => {}
            OnMiss::Skip => limits.skips.get(late.source as usize).into_iter().for_each(Skips::ask),
            OnMiss::Degrade => self.operators[operator as usize].degrade(late_ns),
            OnMiss::Stop => {
                let (name, sequence) = (self.tracker.name(late), late.sequence);
                let late = crate::base::wording::time(late_ns);
                limits.stop(|| {
                    format!("message {sequence} of {name} was {late} late, which ends the run (on_miss)")
                });
                self.control.ask_to_stop();
            }
        }
    }
}
