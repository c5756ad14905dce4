//! Reads the lines of a tracer until the time is over, a limit is hit, or the watcher stops it.

use super::instance::{EVERY, TracerInstance};
use super::lines::{TracerLine, line, time_ns};
use crate::error::NoiseError;
use crate::session::MeasuringLimits;
use crate::watch::{LimitHit, Observer};
use onbeat_os::clock;
use onbeat_trace::KernelEvent;
use std::collections::VecDeque;

/// Results that the lines are collected into, by core.
pub(super) trait LineSink<C> {
    /// Takes in a line. Returns a limit that was hit.
    fn take(&mut self, line: TracerLine) -> Option<LimitHit>;

    /// Called with the limit that ended the measurement.
    fn ended_by(&mut self, _stopped: &LimitHit) {}

    /// Results so far.
    fn so_far(&self) -> Vec<C>;
}

/// Result of reading.
pub(super) struct Reading {
    pub stopped: Option<LimitHit>,
    pub hits: u64,
    pub kept: RecentLines,
}

/// Reads lines until the measurement is over.
pub(super) fn read<C>(
    instance: &mut TracerInstance,
    begin_ns: u64,
    limits: &MeasuringLimits,
    cores: &mut dyn LineSink<C>,
    watch: &mut dyn Observer<C>,
) -> Result<Reading, NoiseError> {
    let whole_ns = limits.duration_ns.map_or(u64::MAX, |ns| ns.saturating_add(limits.warm_up_ns));
    let mut reading = Reading { stopped: None, hits: 0, kept: RecentLines::new(limits.keep_events) };
    loop {
        std::thread::sleep(EVERY);
        let elapsed_ns = clock::monotonic_ns().saturating_sub(begin_ns);
        let is_on = instance.is_on();
        let mut over = None;
        for text in instance.lines() {
            if elapsed_ns >= limits.warm_up_ns {
                let line = line(&text);
                reading.kept.line(&text, line.as_ref());
                over = over.or(line.and_then(|line| cores.take(line)));
            }
        }
        if limits.goes_on && (over.is_some() || !is_on) {
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
        let is_over = (!is_on && !limits.goes_on) || elapsed_ns >= whole_ns;
        if is_over || reading.stopped.is_some() || watch.is_stopped() {
            return Ok(reading);
        }
        watch.at(&|| cores.so_far(), elapsed_ns.saturating_sub(limits.warm_up_ns));
    }
}

/// Last lines and events, for a trace.
pub(super) struct RecentLines {
    most: usize,
    pub events: VecDeque<KernelEvent>,
    pub lines: VecDeque<(u64, String)>,
}

impl RecentLines {
    fn new(most: usize) -> Self {
        RecentLines { most, events: VecDeque::new(), lines: VecDeque::new() }
    }

    fn line(&mut self, text: &str, line: Option<&TracerLine>) {
        if self.most == 0 {
            return;
        }
        if let Some(TracerLine::Event(event)) = line {
            self.events.push_back(event.clone());
            self.events.drain(..self.events.len().saturating_sub(self.most));
        }
        // A line without a time belongs to the line before it.
        let time_ns = time_ns(text).or(self.lines.back().map(|(time_ns, _)| *time_ns)).unwrap_or(0);
        self.lines.push_back((time_ns, text.to_owned()));
        self.lines.drain(..self.lines.len().saturating_sub(self.most));
    }
}
