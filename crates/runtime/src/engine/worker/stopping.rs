//! The end of a run, as one worker sees it.

use super::Worker;
use crate::operator::context::Context;

/// State of the end of a run.
#[derive(Default)]
pub(crate) struct Stopping {
    /// Time on the run's clock at which sources end, if the run has a duration.
    pub end_ns: Option<u64>,
    /// Whether the sources here have been ended.
    pub is_stopping: bool,
    /// Time since which all sources here are paused.
    pub halted_ns: Option<u64>,
    /// Steps in a row, since sources ended, that returned `Again` and neither took nor sent anything.
    pub fruitless: u32,
    /// Operators that end now; empty except while operators end.
    pub ending: Vec<u32>,
}

impl Stopping {
    /// State before the first step, with room for this number of operators.
    pub fn new(operators: usize) -> Self {
        Stopping { ending: Vec::with_capacity(operators), ..Stopping::default() }
    }
}

impl Worker {
    /// Ends the sources if a stop was requested or the time is over. Messages in flight are still processed.
    pub(super) fn check_stop(&mut self, cx: &mut Context, now_ns: u64) {
        if self.stop.is_stopping
            || !(self.control.is_stop_requested()
                || self.open_end_ns().is_some_and(|end_ns| now_ns >= end_ns))
        {
            return;
        }
        self.resume_all(cx);
        self.stop.is_stopping = true;
        (cx.stopping, cx.stopped_real_ns) = (true, cx.clock.real_ns());
        self.control.set_stopped();
        // Parts without sources have no end of their own; their operators may wait for a descriptor.
        if cx.clock.is_real() {
            self.seat.team.wake_all();
        }
        for operator in 0..self.nodes.len() as u32 {
            let node = &self.nodes[operator as usize];
            if node.source || node.circular {
                self.finish(cx, operator);
            }
        }
        // Operators that wait for a time or a descriptor are stepped and may end their wait. Gates are open
        // from now on.
        self.fire_timers(cx, u64::MAX);
        for operator in 0..self.nodes.len() as u32 {
            if self.nodes[operator as usize].awaits_descriptor {
                self.step_again(cx, operator);
            }
        }
        for operator in 0..self.nodes.len() as u32 {
            if self.conditions[operator as usize].is_some() {
                self.recheck(cx, operator);
            }
        }
    }

    /// Time at which the sources end. None while all of them are paused.
    pub(super) fn open_end_ns(&self) -> Option<u64> {
        self.stop.end_ns.filter(|_| !self.stop.is_stopping && self.stop.halted_ns.is_none())
    }
}
