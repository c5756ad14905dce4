//! What is measured: one chain under one mode, and what it is compared with.

use super::settings::{Form, Mode, Settings, Whose};

/// The chain, whoever runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    /// How many cores.
    pub cores: usize,
    /// How many saxpy operators.
    pub kernels: usize,
    /// Bytes in a chunk.
    pub quantum: usize,
    /// What a saxpy does with its chunk.
    pub form: Form,
}

/// One of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// Who steps it.
    pub mode: Mode,
    /// What is stepped.
    pub shape: Shape,
    /// Where the chain is split: chunks that go from core to core.
    pub buffers: Option<usize>,
    /// Whose saxpy it is.
    pub whose: Whose,
}

/// One without an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// The kernel, again and again on the same samples.
    Kernel(Shape),
    /// A chain of calls of trait objects on one core.
    Chain(Shape),
    /// The chain split between cores, with so many buffers in a circle of lock-free rings.
    HandOver(Shape, usize),
    /// The whole chain on each core, each with a buffer of its own.
    Replicated(Shape),
}

impl Shape {
    /// In figures: "n2.m3.q16k".
    pub(super) fn name(&self) -> String {
        format!("n{}.m{}.q{}", self.cores, self.kernels, size(self.quantum))
    }

    /// Samples in a chunk.
    pub(super) fn samples(&self) -> usize {
        self.quantum / size_of::<f32>()
    }

    /// How many operators each core has where the chain is split: the first ones have one more.
    pub(super) fn parts(&self) -> Vec<usize> {
        let (least, more) = (self.kernels / self.cores, self.kernels % self.cores);
        (0..self.cores).map(|core| least + usize::from(core < more)).collect()
    }
}

/// "16k", "1000": short enough for a name.
fn size(bytes: usize) -> String {
    if bytes.is_multiple_of(1024) { format!("{}k", bytes / 1024) } else { bytes.to_string() }
}

impl Case {
    /// In figures: "saxpy.pinned.n2.m3.q64k.b8.in_place".
    pub(super) fn name(&self) -> String {
        let buffers = self.buffers.map_or(String::new(), |buffers| format!(".b{buffers}"));
        let own = if self.whose == Whose::Own { ".own" } else { "" };
        let (mode, form) = (self.mode.name(), self.shape.form.name());
        format!("saxpy.{mode}.{}{buffers}.{form}{own}", self.shape.name())
    }

    /// What the machine would do without an engine.
    pub(super) fn limit(&self) -> Limit {
        match (self.mode, self.buffers) {
            (Mode::Pinned, Some(buffers)) => Limit::HandOver(self.shape, buffers),
            (Mode::Replicated | Mode::ReplicatedInOrder, _) if self.shape.cores > 1 => {
                Limit::Replicated(self.shape)
            }
            _ => Limit::Chain(Shape { cores: 1, ..self.shape }),
        }
    }

    /// The same chain on one core under `greedy`.
    pub(super) fn alone(&self) -> Case {
        Case { mode: Mode::Greedy, shape: Shape { cores: 1, ..self.shape }, buffers: None, whose: self.whose }
    }

    /// The kernel alone.
    pub(super) fn kernel(&self) -> Limit {
        Limit::Kernel(Shape { cores: 1, kernels: 1, ..self.shape })
    }
}

impl Limit {
    /// In figures: "bare.chain.n1.m3.q16k.in_place".
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

/// All cases, those that are compared with each other side by side.
pub(super) fn cases(settings: &Settings) -> Vec<Case> {
    let mut cases = Vec::new();
    for &quantum in &settings.quanta {
        for &form in &settings.forms {
            for &kernels in &settings.kernels {
                for &mode in &settings.modes {
                    for &cores in &settings.cores {
                        let shape = Shape { cores, kernels, quantum, form };
                        for &whose in &settings.operators {
                            for buffers in buffers(settings, mode, &shape) {
                                cases.push(Case { mode, shape, buffers, whose });
                            }
                        }
                    }
                }
            }
        }
    }
    cases
}

/// With which numbers of buffers a mode runs on so many cores; none where it does not.
fn buffers(settings: &Settings, mode: Mode, shape: &Shape) -> Vec<Option<usize>> {
    match (mode, shape.cores) {
        (Mode::Greedy, 1) | (Mode::Event | Mode::Replicated, _) | (Mode::ReplicatedInOrder, 2..) => {
            vec![None]
        }
        // With fewer operators than cores there is nothing to split; the samples are not changed on the way out of place.
        (Mode::Pinned, 2..) if shape.kernels >= shape.cores => {
            let mut all = Vec::new();
            for &buffers in &settings.buffers {
                // Below that a core would wait for its own.
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
