//! The measured cases: a chain under a mode, and its limit.

use super::settings::{Mode, SaxpyForm, SaxpySettings, Whose};

/// A chain, independent of the runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChainShape {
    /// Number of cores.
    pub cores: usize,
    /// Number of saxpy operators.
    pub kernels: usize,
    /// Chunk size in bytes.
    pub quantum: usize,
    /// In place or out of place.
    pub form: SaxpyForm,
}

/// A case of onbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaxpyCase {
    /// The scheduler.
    pub mode: Mode,
    /// The chain.
    pub shape: ChainShape,
    /// Number of chunks that circulate between cores, if the chain is split.
    pub buffers: Option<usize>,
    /// Origin of the saxpy operator.
    pub whose: Whose,
}

/// A measurement without an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// The kernel, applied repeatedly to the same samples.
    Kernel(ChainShape),
    /// A chain of calls of trait objects on one core.
    Chain(ChainShape),
    /// The chain split between cores, with this number of buffers in a circle of lock-free rings.
    HandOver(ChainShape, usize),
    /// The whole chain on each core, each with its own buffer.
    Replicated(ChainShape),
}

impl ChainShape {
    /// Name in figures: "n2.m3.q16k".
    pub(super) fn name(&self) -> String {
        format!("n{}.m{}.q{}", self.cores, self.kernels, size(self.quantum))
    }

    /// Samples per chunk.
    pub(super) fn samples(&self) -> usize {
        self.quantum / size_of::<f32>()
    }

    /// Number of operators on each core if the chain is split: the first cores have one more.
    pub(super) fn parts(&self) -> Vec<usize> {
        let (least, more) = (self.kernels / self.cores, self.kernels % self.cores);
        (0..self.cores).map(|core| least + usize::from(core < more)).collect()
    }
}

/// Formats a size briefly: "16k", "1000".
fn size(bytes: usize) -> String {
    if bytes.is_multiple_of(1024) { format!("{}k", bytes / 1024) } else { bytes.to_string() }
}

impl SaxpyCase {
    /// Name in figures: "saxpy.pinned.n2.m3.q64k.b8.in_place".
    pub(super) fn name(&self) -> String {
        let buffers = self.buffers.map_or(String::new(), |buffers| format!(".b{buffers}"));
        let own = if self.whose == Whose::Own { ".own" } else { "" };
        let (mode, form) = (self.mode.name(), self.shape.form.name());
        format!("saxpy.{mode}.{}{buffers}.{form}{own}", self.shape.name())
    }

    /// The limit without an engine.
    pub(super) fn limit(&self) -> Limit {
        match (self.mode, self.buffers) {
            (Mode::Pinned, Some(buffers)) => Limit::HandOver(self.shape, buffers),
            (Mode::Replicated | Mode::ReplicatedInOrder, _) if self.shape.cores > 1 => {
                Limit::Replicated(self.shape)
            }
            _ => Limit::Chain(ChainShape { cores: 1, ..self.shape }),
        }
    }

    /// The same chain on one core under `greedy`.
    pub(super) fn alone(&self) -> SaxpyCase {
        SaxpyCase {
            mode: Mode::Greedy,
            shape: ChainShape { cores: 1, ..self.shape },
            buffers: None,
            whose: self.whose,
        }
    }

    /// The kernel alone.
    pub(super) fn kernel(&self) -> Limit {
        Limit::Kernel(ChainShape { cores: 1, kernels: 1, ..self.shape })
    }
}

impl Limit {
    /// Name in figures: "bare.chain.n1.m3.q16k.in_place".
    pub(super) fn name(&self) -> String {
        match self {
            Limit::Kernel(shape) => format!("bare.kernel.q{}.{}", size(shape.quantum), shape.form.name()),
            Limit::Chain(shape) => format!("bare.chain.{}.{}", shape.name(), shape.form.name()),
            Limit::HandOver(shape, buffers) => {
                format!("bare.hand_over.{}.b{buffers}.{}", shape.name(), shape.form.name())
            }
            Limit::Replicated(shape) => format!("bare.replicated.{}.{}", shape.name(), shape.form.name()),
        }
    }
}

/// All cases; those that are compared are next to each other.
pub(super) fn cases(settings: &SaxpySettings) -> Vec<SaxpyCase> {
    let mut cases = Vec::new();
    for &quantum in &settings.quanta {
        for &form in &settings.forms {
            for &kernels in &settings.kernels {
                for &mode in &settings.modes {
                    for &cores in &settings.cores {
                        let shape = ChainShape { cores, kernels, quantum, form };
                        for &whose in &settings.operators {
                            for buffers in buffers(settings, mode, &shape) {
                                cases.push(SaxpyCase { mode, shape, buffers, whose });
                            }
                        }
                    }
                }
            }
        }
    }
    cases
}

/// Numbers of buffers with which a mode runs on this many cores; empty if it does not.
fn buffers(settings: &SaxpySettings, mode: Mode, shape: &ChainShape) -> Vec<Option<usize>> {
    match (mode, shape.cores) {
        (Mode::Greedy, 1) | (Mode::Event | Mode::Replicated, _) | (Mode::ReplicatedInOrder, 2..) => {
            vec![None]
        }
        // With fewer operators than cores there is nothing to split. Out of place, the samples are not
        // changed.
        (Mode::Pinned, 2..) if shape.kernels >= shape.cores => {
            let mut all = Vec::new();
            for &buffers in &settings.buffers {
                // With fewer, a core would wait for its own buffer.
                let buffers = if buffers == 0 { shape.cores + 1 } else { buffers.max(2) };
                if !all.contains(&Some(buffers)) {
                    all.push(Some(buffers));
                }
            }
            all
        }
        (Mode::Greedy | Mode::Pinned | Mode::ReplicatedInOrder, _) => Vec::new(),
    }
}
