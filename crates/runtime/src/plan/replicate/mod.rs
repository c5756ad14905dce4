//! The recipe `replicated`: operators without a state are there once per worker, and each worker carries messages through all
//! of them.
//!
//! A *stretch* is a chain of such operators. The plan finds the stretches ([`find`](mod@find)), and makes another graph of the
//! given one, in which each is there as often as there are workers ([`expand`](mod@expand)): from there on it is a graph like any
//! other, with one part per worker, and nothing in the engine knows better. What keeps the order are the *ends* of a stretch:
//!
//! | what is at both ends | ends | file |
//! |---|---|---|
//! | a source and a sink that have replicas | copies of their own: no order among them | none |
//! | a source and a sink that have none | the one operator goes from worker to worker, in turn | `turns` |
//! | anything else | two operators of their own, on the first worker: `spread` and `gather` | `operator/link/spread` |
//!
//! The copies of an operator have one name: rows of the record with the same name are added up.

mod block;
mod expand;
mod find;
mod turns;

pub(crate) use block::Way;
pub(crate) use expand::{apply, expand};
pub(crate) use find::find;
pub(crate) use turns::{End, Upcoming};

/// What is to be done to a graph. Places are those of operators in the graph, plain data.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Recipe {
    pub workers: usize,
    /// By edge: capacity, and quantum where chunks travel on it.
    pub edges: Vec<(usize, Option<usize>)>,
    pub stretches: Vec<Stretch>,
}

impl Recipe {
    /// Stretches with a spread and a gather.
    fn rests(&self) -> usize {
        self.stretches.iter().filter(|stretch| stretch.ends == Ends::Rest).count()
    }
}

/// A chain of operators without a state.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stretch {
    /// Down the chain.
    pub operators: Vec<usize>,
    pub ends: Ends,
}

/// What is at the ends of a stretch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Ends {
    /// Source and sink, each once per worker.
    Copies { source: usize, sink: usize },
    /// Source and sink, each once, with the workers in turn.
    Turns { source: usize, sink: usize },
    /// The rest of the graph.
    Rest,
}

impl Stretch {
    /// Operators that are there once per worker, ends included.
    fn lane(&self) -> Vec<usize> {
        match self.ends {
            Ends::Copies { source, sink } | Ends::Turns { source, sink } => {
                [source].into_iter().chain(self.operators.iter().copied()).chain([sink]).collect()
            }
            Ends::Rest => self.operators.clone(),
        }
    }
}
