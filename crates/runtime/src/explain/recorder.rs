//! The thread that keeps the last seconds of a run, from outside.

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

/// The thread's name.
const NAME: &str = "onbeat-explain";

/// Spans that fit into the rings of all parts together between two visits, and of each at least.
const SPANS: usize = 1 << 16;
const SPANS_LEAST: usize = 1 << 10;
const SPANS_MOST: usize = 1 << 14;

/// The thread, from outside.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// Dropped to end it.
    end: Sender<()>,
    thread: JoinHandle<((Findings, Vec<Histogram>), ThreadRecord)>,
}

/// What it leaves.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub findings: Findings,
    /// What the steps took that the workers have noted and not counted, by number in the plan.
    pub steps: Vec<Histogram>,
    pub thread: ThreadRecord,
}

/// Rings for all parts, made by these owners, and who empties them.
pub(crate) fn rings<'o>(parts: impl ExactSizeIterator<Item = &'o Owner>) -> (Vec<Rings>, Owner) {
    let recorder = Owner::new();
    let spans = (SPANS / parts.len().max(1)).clamp(SPANS_LEAST, SPANS_MOST);
    (parts.map(|part| Rings::new(part, &recorder, spans)).collect(), recorder)
}

impl Recorder {
    /// Starts it. The workers have begun: their threads are known.
    pub fn start(
        plan: &Arc<Plan>,
        control: &Arc<Control>,
        rings: Vec<Rings>,
        owner: Owner,
        evidence: Box<dyn Evidence>,
    ) -> io::Result<Self> {
        let (end, ended) = mpsc::channel();
        let (plan, control) = (Arc::clone(plan), Arc::clone(control));
        let house_keeping = plan.options.house_keeping.clone();
        let helper = Helper { name: NAME, purpose: "finds out why something was late", house_keeping };
        let thread = helper.start_with(move || {
            // Where it may not, it is in the way now and then, and names itself.
            let _ = onbeat_os::policy::stand_back();
            Work::new(&plan, &control, rings, owner, evidence).until(&ended)
        })?;
        Ok(Recorder { end, thread })
    }

    /// Ends the thread, when the workers have ended. `None` where it has panicked.
    pub fn end(self) -> Option<Recorded> {
        drop(self.end);
        let ((findings, steps), thread) = self.thread.join().ok()?;
        Some(Recorded { findings, steps, thread })
    }
}
