//! Lanes from which other workers take.

/// Where an operator hands out messages to other workers.
#[derive(Debug)]
pub(crate) struct Lane {
    pub operator: u32,
    /// The edges on which it does.
    pub edges: Vec<u32>,
    /// Messages on them when it was found dry last.
    pub sent: u64,
    /// It was filled first since then.
    pub was_first: bool,
    /// Picks until it is looked at again, and how many it will be when nothing has come there until then.
    pub pause: u32,
    pub pauses: u32,
}

impl Lane {
    pub fn new(operator: u32, edges: Vec<u32>) -> Self {
        Lane { operator, edges, sent: 0, was_first: false, pause: 0, pauses: 0 }
    }

    pub fn operator(&self) -> u32 {
        self.operator
    }
}
