//! Recorder: the thread that keeps the last seconds of a run. This file has its handle, `work` its loop.

use super::findings::Findings;
use super::work::Work;
use crate::base::helper::Helper;
use crate::engine::control::Control;
use crate::engine::flight::Rings;
use crate::plan::Plan;
use onbeat_queue::Owner;
use onbeat_trace::record::ThreadRecord;
use onbeat_trace::{Evidence, Histogram};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

/// Name of the thread.
const NAME: &str = "onbeat-explain";

/// Room in the rings for the spans between two visits: of all parts together, and bounds for each part.
const SPANS: usize = 1 << 16;
const SPANS_LEAST: usize = 1 << 10;
const SPANS_MOST: usize = 1 << 14;

/// Handle of the recorder's thread.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// Dropped to end it.
    end: Sender<()>,
    thread: JoinHandle<((Findings, Vec<Histogram>), ThreadRecord)>,
}

/// Results of the recorder.
#[derive(Debug)]
pub(crate) struct RecorderReport {
    pub findings: Findings,
    /// By operator of the plan: durations of the steps that the recorder counted instead of the worker.
    pub steps: Vec<Histogram>,
    pub thread: ThreadRecord,
}

/// Makes a ring pair for each of these owners. Returns them with the owner that empties them.
pub(crate) fn rings<'o>(parts: impl ExactSizeIterator<Item = &'o Owner>) -> (Vec<Rings>, Owner) {
    let recorder = Owner::new();
    let spans = (SPANS / parts.len().max(1)).clamp(SPANS_LEAST, SPANS_MOST);
    let waits = Arc::default();
    (parts.map(|part| Rings::new(part, &recorder, spans, &waits)).collect(), recorder)
}

impl Recorder {
    /// Starts the thread. The workers' threads exist already.
    pub fn start(
        plan: &Arc<Plan>,
        control: &Arc<Control>,
        rings: Vec<Rings>,
        owner: Owner,
        evidence: Box<dyn Evidence>,
    ) -> io::Result<Self> {
        let (end, ended) = mpsc::channel();
        let (plan, control) = (Arc::clone(plan), Arc::clone(control));
        let house_keeping = plan.house_keeping();
        let helper = Helper { name: NAME, purpose: "explains why messages were late", house_keeping };
        let thread = helper.start_with(move || {
            // Without this right, the recorder sometimes delays workers, and its verdicts name it.
            let _ = onbeat_os::policy::stand_back();
            Work::new(&plan, &control, rings, owner, evidence).run(&ended)
        })?;
        Ok(Recorder { end, thread })
    }

    /// Ends the thread, after the workers have ended. `None` if it has panicked.
    pub fn end(self) -> Option<RecorderReport> {
        drop(self.end);
        let ((findings, steps), thread) = self.thread.join().ok()?;
        Some(RecorderReport { findings, steps, thread })
    }
}
