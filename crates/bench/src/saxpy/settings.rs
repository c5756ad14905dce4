//! What is to be measured, and how.

use onbeat_runtime::Idle;
use std::path::PathBuf;

/// What is to be measured. The default takes a minute or two.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How many cores, one number after the other.
    pub cores: Vec<usize>,
    /// Which cores these are, from the first; empty: those that the process may use.
    pub on: Vec<usize>,
    /// How many saxpy operators, one number after the other.
    pub kernels: Vec<usize>,
    /// Bytes in a chunk, one number after the other.
    pub quanta: Vec<usize>,
    /// Who steps the operators.
    pub modes: Vec<Mode>,
    /// What a saxpy does with its chunk.
    pub forms: Vec<Form>,
    /// Whose saxpy it is.
    pub operators: Vec<Whose>,
    /// Chunks that go from core to core where the chain is split. 0 stands for one more than there are cores.
    pub buffers: Vec<usize>,
    /// How workers wait.
    pub idle: Idle,
    /// How long one measurement takes; one of a peer takes 0.2 s at least. Short and often: what others take of a machine changes within tens of
    /// milliseconds.
    pub seconds: f64,
    /// How often everything is measured.
    pub rounds: usize,
    /// How often that is measured again which was measured while the machine gave less than it can.
    pub again: usize,
    /// The folder with the peers' programs.
    pub peers: Option<PathBuf>,
}

/// Who steps the operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// One worker steps everything.
    Greedy,
    /// Each worker has its part of the chain, chunks stay in order: the rule of the published benchmark.
    Pinned,
    /// Any worker steps any operator; nothing is declared about them.
    Event,
    /// Each worker carries chunks through all operators, which declare that they have no state; both ends are claimed in ranges.
    Replicated,
    /// The same where both ends are serial and in order.
    ReplicatedInOrder,
}

/// What a saxpy does with its chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// Changes it.
    InPlace,
    /// Writes another one.
    OutOfPlace,
}

/// Whose saxpy it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whose {
    /// The one that comes with onbeat.
    BuiltIn,
    /// One that is written as a user writes it: `impl Operator`.
    Own,
}

macro_rules! names {
    ($type:ident: $($variant:ident = $name:literal),+) => {
        impl $type {
            /// All of them.
            pub const ALL: &'static [$type] = &[$($type::$variant),+];

            /// In figures and on the command line.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name),+
                }
            }

            /// The one of this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|it| it.name() == name)
            }
        }
    };
}

names!(Mode: Greedy = "greedy", Pinned = "pinned", Event = "event", Replicated = "replicated",
    ReplicatedInOrder = "replicated_in_order");
names!(Form: InPlace = "in_place", OutOfPlace = "out_of_place");
names!(Whose: BuiltIn = "built_in", Own = "own");

impl Default for Settings {
    fn default() -> Self {
        Settings {
            cores: vec![1, 2],
            on: Vec::new(),
            kernels: (1..=6).collect(),
            quanta: vec![16 << 10],
            modes: Mode::ALL.to_vec(),
            forms: Form::ALL.to_vec(),
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

impl Settings {
    /// What is wrong with it, if anything.
    pub(super) fn fault(&self) -> Option<String> {
        let lists =
            [("cores", &self.cores), ("kernels", &self.kernels), ("quantum", &self.quanta), ("on", &self.on)];
        for (name, list) in lists {
            if name != "on" && (list.is_empty() || list.contains(&0)) {
                return Some(format!("{name}: give one number or more, each 1 or more"));
            }
            if list.iter().enumerate().any(|(at, item)| list[..at].contains(item)) {
                return Some(format!("{name}: a number is there twice"));
            }
        }
        if let Some(quantum) = self.quanta.iter().find(|&quantum| quantum % 4 != 0 || *quantum > 1 << 30) {
            return Some(format!(
                "quantum: {quantum} bytes: it must be a multiple of 4, the size of a sample, and 1 GiB at most"
            ));
        }
        if self.kernels.iter().any(|&kernels| kernels > 1000) {
            return Some("kernels: 1000 at most".to_owned());
        }
        if self.cores.iter().any(|&cores| cores > 1024) {
            return Some("cores: 1024 at most".to_owned());
        }
        if self.buffers.iter().any(|&buffers| buffers > 10_000) {
            return Some("buffers: 10000 at most".to_owned());
        }
        if self.modes.is_empty() || self.forms.is_empty() || self.operators.is_empty() || self.rounds == 0 {
            return Some("modes, forms, operators and rounds are 1 or more each".to_owned());
        }
        if !(0.001..=60.0).contains(&self.seconds) {
            return Some(format!("seconds: {}: give 0.001 to 60", self.seconds));
        }
        None
    }
}
