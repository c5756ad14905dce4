//! What a doctor looks at: a machine, what was measured and tried on it, and what for.

use crate::causes::Causes;
use crate::facts::Facts;
use crate::measured::Measured;
use crate::pipeline::Pipeline;
use crate::tried::Tried;
use onbeat_os::CoreSet;

/// Everything that findings are made of.
#[derive(Debug, Clone, Default)]
pub struct Case {
    /// The machine.
    pub facts: Facts,
    /// What was measured.
    pub measured: Measured,
    /// What was tried.
    pub tried: Tried,
    /// The cores that are to be quiet.
    pub cpus: CoreSet,
    /// Why these.
    pub why_cpus: String,
    /// The pipeline at hand.
    pub pipeline: Option<Pipeline>,
    /// What a record says of a run.
    pub causes: Option<Causes>,
}

impl Case {
    /// The cores that are online; those that are to be quiet where nobody knows.
    #[must_use]
    pub fn online(&self) -> CoreSet {
        self.facts.cpus.online.known().unwrap_or(&self.cpus).clone()
    }

    /// The cores that are left to the system: neither to be quiet nor on the same physical core as one that is.
    #[must_use]
    pub fn house(&self) -> CoreSet {
        let left = self.online().without(&self.cpus);
        let apart = left.without(&self.facts.cpus.siblings_of(&self.cpus));
        if apart.is_empty() { left } else { apart }
    }

    /// Chooses the cores that are to be quiet: those asked for, those of the pipeline, those that are isolated, or all but the first
    /// physical core.
    pub fn choose_cpus(&mut self, asked: Option<&CoreSet>) {
        let isolated = self.facts.cpus.isolated.known().cloned().unwrap_or_default();
        let online = self.online();
        let pipeline = self.pipeline.as_ref().map(Pipeline::critical_cores).unwrap_or_default();
        let (cpus, why) = if let Some(asked) = asked {
            (asked.clone(), "asked for")
        } else if !pipeline.is_empty() {
            (pipeline, "those of the pipeline")
        } else if !isolated.common(&online).is_empty() {
            (isolated.common(&online), "those that are isolated")
        } else {
            let first = CoreSet::from_cores(online.iter().take(1)).unwrap_or_default();
            let house = first.and(&self.facts.cpus.siblings_of(&first));
            let rest = online.without(&house);
            match rest.is_empty() {
                true => (online, "all there are"),
                false => (rest, "all but the first; choose with --cpus"),
            }
        };
        (self.cpus, self.why_cpus) = (cpus, why.to_owned());
    }
}
