//! The conditions of one operator, as its worker keeps them.

use super::Compiled;

/// The conditions of one operator.
pub(crate) struct Conditions {
    pub list: Vec<Compiled>,
    /// By port.
    pub inputs: Vec<InputEdges>,
    /// Places of the chunk stores that its outputs are filled from.
    pub stores: Vec<usize>,
    /// Whether something outside of the graph can make one hold.
    pub outside: bool,
    pub steps: u64,
    /// The operator has asked to be stepped at this time at the latest.
    pub until_ns: Option<u64>,
    /// The operator has asked to be stepped again, message or not.
    pub again: bool,
    /// The place of the first one that did not hold when they were asked last.
    pub unmet: u32,
}

/// The edges into one port.
pub(crate) struct InputEdges {
    pub name: String,
    pub edges: Vec<u32>,
    /// The usual condition goes for it: each edge has a message.
    pub usual: bool,
}

impl Conditions {
    /// The place of an input; the first one for `""`.
    pub fn input(&self, name: &str) -> Option<usize> {
        if name.is_empty() { Some(0) } else { self.inputs.iter().position(|input| input.name == name) }
    }
}
