//! The lines of a tracer, taken in for as long as was asked for, until a limit is hit, or until whoever watches says so.

use super::instance::{EVERY, Instance};
use super::lines::{Line, line, time_ns};
use crate::error::Error;
use crate::record::Stopped;
use crate::watch::Watch;
use onbeat_os::clock;
use onbeat_trace::KernelEvent;
use std::collections::VecDeque;

/// What its lines are put together to, core by core.
pub(super) trait Cores<C> {
    /// Takes a line in, and says whether a limit was hit.
    fn take(&mut self, line: Line) -> Option<Stopped>;

    /// The limit that ended it was hit.
    fn ended_by(&mut self, _stopped: &Stopped) {}

    /// How things stand.
    fn so_far(&self) -> Vec<C>;
}

/// How long it goes on, and what is kept.
pub(super) struct Extent {
    pub duration_ns: Option<u64>,
    /// So much at the begin is not counted.
    pub warm_up_ns: u64,
    /// A limit that is hit is told to whoever watches, and it goes on.
    pub goes_on: bool,
    /// How many of the last lines and events are kept for a trace.
    pub keep: usize,
}

/// What is known when it is over.
pub(super) struct Reading {
    pub stopped: Option<Stopped>,
    pub hits: u64,
    pub kept: Kept,
}

/// Takes lines in until it is over.
pub(super) fn read<C>(
    instance: &mut Instance,
    begin_ns: u64,
    extent: &Extent,
    cores: &mut dyn Cores<C>,
    watch: &mut dyn Watch<C>,
) -> Result<Reading, Error> {
    let whole_ns = extent.duration_ns.map_or(u64::MAX, |ns| ns.saturating_add(extent.warm_up_ns));
    let mut reading = Reading { stopped: None, hits: 0, kept: Kept::new(extent.keep) };
    loop {
        std::thread::sleep(EVERY);
        let elapsed_ns = clock::monotonic_ns().saturating_sub(begin_ns);
        let is_on = instance.is_on();
        let mut over = None;
        for text in instance.lines() {
            if elapsed_ns >= extent.warm_up_ns {
                let line = line(&text);
                reading.kept.line(&text, line.as_ref());
                over = over.or(line.and_then(|line| cores.take(line)));
            }
        }
        if extent.goes_on && (over.is_some() || !is_on) {
            reading.hits += 1;
            if let Some(over) = over.take() {
                watch.hit(&over, reading.kept.events.make_contiguous());
            }
            instance.go_on()?;
        }
        if let Some(over) = &over {
            cores.ended_by(over);
        }
        reading.stopped = over;
        let is_over = (!is_on && !extent.goes_on) || elapsed_ns >= whole_ns;
        if is_over || reading.stopped.is_some() || watch.is_stopped() {
            return Ok(reading);
        }
        watch.at(&|| cores.so_far(), elapsed_ns.saturating_sub(extent.warm_up_ns));
    }
}

/// The last lines and events, for a trace.
pub(super) struct Kept {
    most: usize,
    pub events: VecDeque<KernelEvent>,
    pub lines: VecDeque<(u64, String)>,
}

impl Kept {
    fn new(most: usize) -> Self {
        Kept { most, events: VecDeque::new(), lines: VecDeque::new() }
    }

    fn line(&mut self, text: &str, line: Option<&Line>) {
        if self.most == 0 {
            return;
        }
        if let Some(Line::Event(event)) = line {
            self.events.push_back(event.clone());
            self.events.drain(..self.events.len().saturating_sub(self.most));
        }
        // What has no time of its own belongs to the line before it.
        let time_ns = time_ns(text).or(self.lines.back().map(|(time_ns, _)| *time_ns)).unwrap_or(0);
        self.lines.push_back((time_ns, text.to_owned()));
        self.lines.drain(..self.lines.len().saturating_sub(self.most));
    }
}
