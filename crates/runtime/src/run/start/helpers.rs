//! Threads of a run besides the workers: the watchdog, and the recorder that explains misses.

use crate::engine::control::Control;
use crate::engine::flight::Rings;
use crate::engine::worker::WorkerPool;
use crate::explain::Recorder;
use crate::plan::{self, Plan};
use crate::run::bind::BoundPart;
use crate::run::hang::Watch;
use onbeat_queue::Owner;
use onbeat_trace::Evidence;
use std::io;
use std::sync::Arc;

/// Helper threads of a run; `None` for those that it does not need.
pub(super) struct Helpers {
    pub watch: Option<Watch>,
    pub recorder: Option<Recorder>,
}

/// Rings that the recorder empties, and the identity by which it reads them.
pub(super) type RecorderRings = (Vec<Rings>, Owner);

impl Helpers {
    /// Starts both threads while the workers start, so it costs them no time.
    ///
    /// # Errors
    /// The error of the watchdog's thread, otherwise that of the recorder's.
    pub fn start(
        plan: &Arc<Plan>,
        control: &Arc<Control>,
        pools: Vec<Option<Arc<WorkerPool>>>,
        rings: Option<RecorderRings>,
        evidence: Box<dyn Evidence>,
    ) -> io::Result<Self> {
        let recorder = rings.map(|(rings, owner)| Recorder::start(plan, control, rings, owner, evidence));
        let watch = Watch::start(plan, control, pools)?;
        Ok(Helpers { watch, recorder: recorder.transpose()? })
    }
}

/// Gives rings to the parts whose misses the recorder explains; `None` if there are none.
pub(super) fn attach_rings(plan: &Plan, parts: &mut [BoundPart]) -> Option<RecorderRings> {
    let recorded = plan::recorded_parts(plan);
    let mut chosen: Vec<&mut BoundPart> =
        parts.iter_mut().zip(recorded).filter(|(_, recorded)| *recorded).map(|(part, _)| part).collect();
    if chosen.is_empty() {
        return None;
    }
    let (rings, owner) = crate::explain::rings(chosen.iter().map(|part| &part.owner));
    chosen.iter_mut().zip(&rings).for_each(|(part, rings)| part.rings = Some(rings.clone()));
    Some((rings, owner))
}
