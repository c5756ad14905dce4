//! Random graphs, each determined by a number.

use super::operators::{Stateful, Stateless};
use crate::trial::Maker;
use onbeat_operators::{NullSink, NullSource};
use onbeat_runtime::{Chunk, Graph, Idle, Input, Options, Output};
use std::fmt;

/// A random graph: a source, a trunk of operators, optionally two branches, and a sink at each end.
#[derive(Debug, Clone)]
pub struct GraphShape {
    quantum: usize,
    idle: Idle,
    trunk: Vec<DrawnOperator>,
    /// Two branches, if any. Without branches the trunk ends in a sink; otherwise each branch does.
    branches: Vec<Vec<DrawnOperator>>,
}

/// One operator.
#[derive(Debug, Clone, Copy)]
struct DrawnOperator {
    /// Rounds of arithmetic per step, 1 to 2 ns each.
    rounds: u64,
    has_state: bool,
    /// Number of input chunks per output chunk.
    every: u64,
}

/// Marsaglia's xorshift, 64 bits. The only requirement is that graphs are the same on every machine.
struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        // The upper bits are the better ones.
        (self.0 >> 16) % end
    }

    /// Uniformly distributed on a logarithmic scale.
    fn between(&mut self, least: f64, most: f64) -> f64 {
        let part = self.below(10_000) as f64 / 10_000.0;
        least * (most / least).powf(part)
    }
}

impl GraphShape {
    /// Returns the graph of this number.
    #[must_use]
    pub fn draw(number: u64, idle: Idle) -> GraphShape {
        let mut random = Xorshift(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..8 {
            random.below(2);
        }
        let quantum = [4, 8, 16, 32][random.below(4) as usize] << 10;
        // Whether its operators are light, heavy, or mixed.
        let weight = random.below(3);
        let mut trunk: Vec<DrawnOperator> =
            (0..2 + random.below(4)).map(|_| DrawnOperator::draw(weight, &mut random)).collect();
        if random.below(3) == 0 {
            let middle = trunk.len() / 2;
            trunk[middle].has_state = true;
        }
        if random.below(3) == 0 {
            let last = trunk.len() - 1;
            (trunk[last].has_state, trunk[last].every) = (true, 2 + random.below(3));
        }
        let branches = match random.below(3) {
            0 => (0..2)
                .map(|_| (0..=random.below(2)).map(|_| DrawnOperator::draw(weight, &mut random)).collect())
                .collect(),
            _ => Vec::new(),
        };
        GraphShape { quantum, idle, trunk, branches }
    }
}

impl DrawnOperator {
    fn draw(weight: u64, random: &mut Xorshift) -> DrawnOperator {
        let is_heavy = match weight {
            0 => false,
            1 => true,
            _ => random.below(2) == 0,
        };
        let rounds = if is_heavy { random.between(8e3, 4e4) } else { random.between(20.0, 400.0) };
        DrawnOperator { rounds: rounds as u64, has_state: false, every: 1 }
    }

    fn add(self, graph: &mut Graph, name: &str) {
        let rounds = self.rounds;
        if self.has_state {
            let (input, out) = (Input::default(), Output::default());
            graph.add(name, Stateful { input, out, rounds, every: self.every, seen: 0, sum: 0 });
        } else {
            graph.add(name, Stateless { rounds, ..Stateless::default() });
        }
    }
}

impl Maker for GraphShape {
    fn make(&mut self) -> Result<(Graph, Options), String> {
        let mut graph = Graph::new("shape");
        graph.add("source", NullSource::<f32>::new(None));
        let chain = |graph: &mut Graph, nodes: &[DrawnOperator], mut last: String, prefix: &str| {
            for (at, node) in nodes.iter().enumerate() {
                let name = format!("{prefix}{at}");
                node.add(graph, &name);
                graph.connect_names(&*last, &*name);
                last = name;
            }
            last
        };
        let end = |graph: &mut Graph, last: String, name: &str| {
            graph.add(name, NullSink::<Chunk<f32>>::default());
            graph.connect_names(last, name);
        };
        let last = chain(&mut graph, &self.trunk, "source".to_owned(), "trunk");
        for (at, branch) in self.branches.iter().enumerate() {
            let last = chain(&mut graph, branch, last.clone(), &format!("branch{at}_"));
            end(&mut graph, last, &format!("sink{at}"));
        }
        if self.branches.is_empty() {
            end(&mut graph, last, "sink");
        }
        Ok((graph, Options { quantum: self.quantum, idle: self.idle, ..Options::default() }))
    }
}

/// Formats a graph: "16 KiB: 90, 12k s, 300 s/2 → (80 | 75, 90)": rounds, `s` for an operator with state,
/// `/n` for one that sends one chunk per n.
impl fmt::Display for GraphShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = |nodes: &[DrawnOperator]| {
            nodes.iter().map(DrawnOperator::to_string).collect::<Vec<_>>().join(", ")
        };
        write!(f, "{} KiB: {}", self.quantum >> 10, nodes(&self.trunk))?;
        if !self.branches.is_empty() {
            let branches: Vec<String> = self.branches.iter().map(|branch| nodes(branch)).collect();
            write!(f, " → ({})", branches.join(" | "))?;
        }
        Ok(())
    }
}

impl fmt::Display for DrawnOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rounds {
            rounds if rounds < 1000 => write!(f, "{rounds}")?,
            rounds => write!(f, "{:.1}k", rounds as f64 / 1e3)?,
        }
        if self.has_state {
            f.write_str(" s")?;
        }
        if self.every > 1 {
            write!(f, "/{}", self.every)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::GraphShape;
    use onbeat_runtime::Idle;

    #[test]
    fn drawn_graphs_are_of_all_kinds_and_the_same_each_time() {
        let texts: Vec<String> =
            (1..60).map(|number| GraphShape::draw(number, Idle::Spin).to_string()).collect();
        assert_eq!(texts[6], GraphShape::draw(7, Idle::Park).to_string());
        for part in [" s", "/2", "→", "|", "k", "32 KiB", "4 KiB"] {
            let with = texts.iter().filter(|text| text.contains(part)).count();
            assert!(with > 3 && with < texts.len(), "{part}: {with} of {}", texts.len());
        }
    }
}
