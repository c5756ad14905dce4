//! Notes of a worker about its steps, from which misses are explained later.

use super::Worker;
use crate::engine::flight::{About, Late, StepNote};
use crate::graph::limits::OnMiss;
use crate::operator::context::Skips;
use crate::operator::context::{Context, flag};
use crate::operator::message::Stamp;
use onbeat_queue::sync::atomic::Ordering;
use std::ops::Range;

impl Worker {
    /// Begin of a timed step: the end of the previous step, if this step follows at once and each step is
    /// timed. Nothing happened between the two then.
    #[inline(always)]
    pub(super) fn step_begin_ns(&self, cx: &Context) -> u64 {
        match &self.flight {
            Some(flight) if flight.last_end_ns != 0 && flight.last == cx.current => flight.last_end_ns,
            _ => cx.now_ns(),
        }
    }

    /// Notes the end of a timed step, or of a pass from `operator` to `last`. Returns whether each step
    /// should be timed.
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
        flight.note_end(last, end_ns, is_exact);
        self.note_sampling_unless(is_exact);
        is_exact
    }

    /// Notes a timed step. Its duration is counted by the reader of the flight recorder, or here if there is
    /// none.
    #[inline(always)]
    pub(super) fn note_timed_step(
        &mut self,
        cx: &mut Context,
        operator: u32,
        at: Range<u64>,
        is_exact: bool,
    ) {
        let flags = cx.hot[operator as usize].flags;
        let step_ns = at.end.saturating_sub(at.start);
        let is_noted = self.flight.as_mut().filter(|_| flags & flag::RECORDED != 0).is_some_and(|flight| {
            let note = StepNote {
                worker: self.slot.worker() as u32,
                stamp: cx.stamp,
                has_message: flags & flag::SOURCE != 0 || cx.popped != 0,
                start_ns: at.start,
                end_ns: at.end,
            };
            flight.note(&mut cx.owner, operator, note)
        });
        let meter = &mut self.meters[operator as usize];
        if !is_noted {
            meter.histogram.record(step_ns);
        }
        meter.timed(step_ns, is_exact);
        self.classify_steps(cx, operator, step_ns);
    }

    /// Notes that not every step is timed, unless it is.
    #[inline]
    fn note_sampling_unless(&self, is_exact: bool) {
        if !is_exact && !self.control.is_sampled.load(Ordering::Relaxed) {
            self.control.is_sampled.store(true, Ordering::Relaxed);
        }
    }

    /// Notes that an operator has work and may not be stepped.
    pub(super) fn note_hold(&mut self, cx: &Context, operator: u32) {
        self.note_hold_by(cx, operator, operator);
    }

    /// Notes that a chain has work and may not be stepped: the first operator waits for room after one of the
    /// operators.
    pub(super) fn note_hold_of_chain(&mut self, cx: &Context, first: u32, last: u32) {
        for operator in (first..=last).rev() {
            self.note_hold_by(cx, first, operator);
        }
    }

    /// Notes that `held` waits for room after `operator`, if there is none.
    fn note_hold_by(&mut self, cx: &Context, held: u32, operator: u32) {
        if self.flight.is_none() || cx.hot[operator as usize].flags & flag::RECORDED == 0 {
            return;
        }
        let outputs = &self.nodes[operator as usize].outputs;
        let Some(&full) = outputs.iter().find(|&&edge| self.is_full(cx, edge)) else { return };
        let (edge, now_ns) = (self.edges[full as usize].plan, cx.now_ns());
        if let Some(flight) = &mut self.flight {
            flight.note_hold(held, edge, now_ns);
        }
    }

    /// End of the last step. Reads the clock only if the end was not noted.
    #[inline]
    pub(super) fn ended_ns(&self, cx: &Context, operator: u32) -> u64 {
        match &self.flight {
            Some(flight) if flight.last_end_ns != 0 && flight.last == operator => flight.last_end_ns,
            _ => cx.now_ns(),
        }
    }

    /// Records a finished message for paths and deadlines that end here.
    pub(super) fn record_arrival(&mut self, cx: &mut Context, operator: u32, stamp: Stamp, now_ns: u64) {
        self.tracker.record(operator, stamp, now_ns, cx.start_ns);
        while let Some(late) = self.tracker.take_fresh() {
            if let Some(flight) = &self.flight {
                flight.note_late(&mut cx.owner, late);
            }
            if matches!(late.about, About::Miss(_)) && late.on_miss != OnMiss::Record {
                self.act_on(operator, &late);
            }
        }
    }

    /// Acts on a miss, as the graph says (`on_miss`).
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
                self.control.request_stop();
            }
        }
    }
}
