//! The scheduler `replicated`: each worker has a copy of the operators without state or with a finite memory,
//! and carries messages through all of them.
//!
//! A *stretch* is a chain of such operators. The plan finds the stretches ([`find`](mod@find)). Then it makes
//! a second graph with one copy of each stretch per worker ([`expand`](mod@expand)). The engine runs it like
//! any other graph, with one part per worker. The *ends* of a stretch keep the order of the messages:
//!
//! | neighbours of the stretch | ends | file |
//! |---|---|---|
//! | a source and a sink with replicas | one copy per worker: no order among them | none |
//! | a source and a sink without replicas | the one operator goes from worker to worker, in turn | `turns` |
//! | other operators | two added operators on the first worker: `spread` and `gather` | `operator/link/spread` |
//! | any, if an operator of the stretch remembers samples | the same, for blocks of chunks | `operator/link/blocks` |
//!
//! The scheduler `event` has stretches in blocks too: the first copy is a part together with spread and
//! gather, and each further one is a part of its own.
//!
//! The copies of an operator have the same name: the record adds up rows with equal names.

mod block;
mod expand;
mod find;
mod turns;

pub(crate) use block::Way;
pub(crate) use expand::{Expanded, apply, expand};
pub(crate) use find::find;
pub(crate) use turns::{End, Upcoming};

/// Changes that make the replicated graph. Operators are given by place in the original graph.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Recipe {
    pub workers: usize,
    /// Capacity of each edge, and its quantum if it carries chunks.
    pub edges: Vec<(usize, Option<usize>)>,
    pub stretches: Vec<Stretch>,
    /// Whether copies other than the first are used only if that is faster.
    pub is_tried: bool,
}

impl Recipe {
    /// Number of stretches with a spread and a gather.
    fn rests(&self) -> usize {
        self.stretches.iter().filter(|stretch| stretch.ends == Ends::Rest).count()
    }
}

/// A chain of operators with copies.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stretch {
    /// Operators of the chain, in order.
    pub operators: Vec<usize>,
    pub ends: Ends,
    /// Whether workers get blocks of chunks.
    pub in_blocks: bool,
}

/// Kind of the ends of a stretch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Ends {
    /// Source and sink with one copy per worker.
    Copies { source: usize, sink: usize },
    /// Source and sink without copies, which go from worker to worker in turn.
    Turns { source: usize, sink: usize },
    /// Other operators: a spread and a gather are added.
    Rest,
}

impl Stretch {
    /// Operators with one copy or turn per worker, ends included.
    fn lane(&self) -> Vec<usize> {
        match self.ends {
            Ends::Copies { source, sink } | Ends::Turns { source, sink } => {
                [source].into_iter().chain(self.operators.iter().copied()).chain([sink]).collect()
            }
            Ends::Rest => self.operators.clone(),
        }
    }
}
