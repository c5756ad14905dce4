//! Input of the doctor: a machine, measurements and attempts on it, and the pipeline it should run.

use crate::causes::Causes;
use crate::facts::Facts;
use crate::measured::Measurements;
use crate::pipeline::PipelineNeeds;
use crate::tried::Attempts;
use onbeat_os::CoreSet;

/// Everything that findings are based on.
#[derive(Debug, Clone, Default)]
pub struct MachineCase {
    /// The machine.
    pub facts: Facts,
    /// Measurements.
    pub measured: Measurements,
    /// Attempts to use rights.
    pub tried: Attempts,
    /// The quiet cores: those kept free for the pipeline.
    pub cpus: CoreSet,
    /// How the quiet cores were chosen.
    pub why_cpus: String,
    /// Needs of the pipeline.
    pub pipeline: Option<PipelineNeeds>,
    /// Causes of late frames, from the record of a run.
    pub causes: Option<Causes>,
}

impl MachineCase {
    /// Returns the online cores; the quiet cores if the online ones are unknown.
    #[must_use]
    pub fn online(&self) -> CoreSet {
        self.facts.cpus.online.known().unwrap_or(&self.cpus).clone()
    }

    /// Returns the cores left to the system: not quiet, and not on the same physical core as a quiet one.
    #[must_use]
    pub fn house(&self) -> CoreSet {
        let left = self.online().without(&self.cpus);
        let apart = left.without(&self.facts.cpus.siblings_of(&self.cpus));
        if apart.is_empty() { left } else { apart }
    }

    /// Chooses the quiet cores: those asked for, those of the pipeline, the isolated ones, or all except the
    /// first physical core.
    pub fn choose_cpus(&mut self, asked: Option<&CoreSet>) {
        let isolated = self.facts.cpus.isolated.known().cloned().unwrap_or_default();
        let online = self.online();
        let pipeline = self.pipeline.as_ref().map(PipelineNeeds::critical_cores).unwrap_or_default();
        let (cpus, why) = if let Some(asked) = asked {
            (asked.clone(), "asked for")
        } else if !pipeline.is_empty() {
            (pipeline, "cores of the pipeline")
        } else if !isolated.common(&online).is_empty() {
            (isolated.common(&online), "isolated cores")
        } else {
            let first = CoreSet::from_cores(online.iter().take(1)).unwrap_or_default();
            let house = first.and(&self.facts.cpus.siblings_of(&first));
            let rest = online.without(&house);
            match rest.is_empty() {
                true => (online, "all cores"),
                false => (rest, "all but the first; choose with --cpus"),
            }
        };
        (self.cpus, self.why_cpus) = (cpus, why.to_owned());
    }
}
