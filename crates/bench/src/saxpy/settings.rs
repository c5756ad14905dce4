//! Settings of the bench.

use onbeat_runtime::Idle;
use std::path::PathBuf;

/// Settings of the bench. The default takes a minute or two.
#[derive(Debug, Clone)]
pub struct SaxpySettings {
    /// Numbers of cores.
    pub cores: Vec<usize>,
    /// Cores to use, in order; empty: those that the process may use.
    pub on: Vec<usize>,
    /// Numbers of saxpy operators.
    pub kernels: Vec<usize>,
    /// Chunk sizes in bytes.
    pub quanta: Vec<usize>,
    /// Schedulers.
    pub modes: Vec<Mode>,
    /// In place or out of place.
    pub forms: Vec<SaxpyForm>,
    /// Origin of the saxpy operator.
    pub operators: Vec<Whose>,
    /// Numbers of chunks that circulate between cores if the chain is split. 0 stands for one more than there
    /// are cores.
    pub buffers: Vec<usize>,
    /// Waiting of idle workers.
    pub idle: Idle,
    /// Duration of one measurement in seconds; at least 0.2 for a peer. Short and frequent measurements are
    /// best, because the load of other users changes within tens of milliseconds.
    pub seconds: f64,
    /// Number of rounds.
    pub rounds: usize,
    /// How often disturbed measurements are repeated.
    pub again: usize,
    /// Folder with the peers' programs.
    pub peers: Option<PathBuf>,
}

/// Scheduler of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// One worker steps everything.
    Greedy,
    /// Each worker has its part of the chain, and chunks stay in order: the rule of the published benchmark.
    Pinned,
    /// Any worker steps any operator; the operators declare nothing.
    Event,
    /// Each worker carries chunks through all operators, which are declared stateless; both ends are claimed
    /// in ranges.
    Replicated,
    /// Like `Replicated`, but both ends are serial and ordered.
    ReplicatedInOrder,
}

/// In place or out of place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SaxpyForm {
    /// Changes its chunk in place.
    InPlace,
    /// Writes another chunk.
    OutOfPlace,
}

/// Origin of the saxpy operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whose {
    /// The operator that comes with onbeat.
    BuiltIn,
    /// An operator written as a user would: `impl Operator`.
    Own,
}

macro_rules! names {
    ($type:ident: $($variant:ident = $name:literal),+) => {
        impl $type {
            /// All of them.
            pub const ALL: &'static [$type] = &[$($type::$variant),+];

            /// Name in figures and on the command line.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name),+
                }
            }

            /// Returns the one with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|it| it.name() == name)
            }
        }
    };
}

names!(Mode: Greedy = "greedy", Pinned = "pinned", Event = "event", Replicated = "replicated",
    ReplicatedInOrder = "replicated_in_order");
names!(SaxpyForm: InPlace = "in_place", OutOfPlace = "out_of_place");
names!(Whose: BuiltIn = "built_in", Own = "own");

impl Default for SaxpySettings {
    fn default() -> Self {
        SaxpySettings {
            cores: vec![1, 2],
            on: Vec::new(),
            kernels: (1..=6).collect(),
            quanta: vec![16 << 10],
            modes: Mode::ALL.to_vec(),
            forms: SaxpyForm::ALL.to_vec(),
            operators: vec![Whose::BuiltIn],
            buffers: vec![0, 8],
            idle: Idle::Spin,
            seconds: 0.02,
            rounds: 15,
            again: 3,
            peers: None,
        }
    }
}

impl SaxpySettings {
    /// Description of the first invalid setting, if any.
    pub(super) fn fault(&self) -> Option<String> {
        let lists =
            [("cores", &self.cores), ("kernels", &self.kernels), ("quantum", &self.quanta), ("on", &self.on)];
        for (name, list) in lists {
            if name != "on" && (list.is_empty() || list.contains(&0)) {
                return Some(format!("{name}: give at least one number, each 1 or more"));
            }
            if list.iter().enumerate().any(|(at, item)| list[..at].contains(item)) {
                return Some(format!("{name}: a number occurs twice"));
            }
        }
        if let Some(quantum) = self.quanta.iter().find(|&quantum| quantum % 4 != 0 || *quantum > 1 << 30) {
            return Some(format!(
                "quantum: {quantum} bytes: it must be a multiple of 4, the size of a sample, and at most 1 \
                 GiB"
            ));
        }
        if self.kernels.iter().any(|&kernels| kernels > 1000) {
            return Some("kernels: at most 1000".to_owned());
        }
        if self.cores.iter().any(|&cores| cores > 1024) {
            return Some("cores: at most 1024".to_owned());
        }
        if self.buffers.iter().any(|&buffers| buffers > 10_000) {
            return Some("buffers: at most 10000".to_owned());
        }
        if self.modes.is_empty() || self.forms.is_empty() || self.operators.is_empty() || self.rounds == 0 {
            return Some("modes, forms, operators and rounds must not be empty or 0".to_owned());
        }
        if !(0.001..=60.0).contains(&self.seconds) {
            return Some(format!("seconds: {}: it must be from 0.001 to 60", self.seconds));
        }
        None
    }
}
