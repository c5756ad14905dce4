//! The plan as a drawing in the DOT language of Graphviz.

use super::Plan;
use onbeat_trace::record::WhenFull;
use std::fmt::Write;

impl Plan {
    /// Draws the plan in the DOT language. Boxes are operators, frames are pools.
    /// Edges between parts are bold; edges with initial messages are dashed.
    ///
    /// ```
    /// # use onbeat_runtime::{Graph, Options};
    /// # let mut graph = Graph::new("tiny");
    /// # let ones = graph.source("ones", || Some(1u8));
    /// # let end = graph.sink("end", |_: u8| ());
    /// # graph.connect(ones, |s| &s.out, end, |e| &e.input);
    /// let plan = graph.plan(&Options::default())?;
    /// assert!(plan.dot().contains("o0 -> o1"));
    /// # Ok::<(), onbeat_runtime::GraphError>(())
    /// ```
    pub fn dot(&self) -> String {
        let mut dot = String::new();
        // Writing to a String does not fail.
        let _ = self.write_dot(&mut dot);
        dot
    }

    fn write_dot(&self, dot: &mut String) -> std::fmt::Result {
        writeln!(dot, "digraph {} {{", quoted(&self.name))?;
        writeln!(dot, "  rankdir=LR;")?;
        writeln!(dot, "  node [shape=box, fontname=\"sans-serif\"];")?;
        writeln!(dot, "  edge [fontname=\"sans-serif\", fontsize=10];")?;
        for (number, pool) in self.pools.iter().enumerate() {
            writeln!(dot, "  subgraph cluster_{number} {{")?;
            writeln!(dot, "    label={};", quoted(&self.workers_of(pool).join(" and ")))?;
            let here = |part: usize| self.parts[part].pool == number;
            for (place, operator) in self.operators.iter().enumerate().filter(|(_, o)| here(o.part)) {
                let label = format!("{}\n{}", operator.name, operator.kind);
                writeln!(dot, "    o{place} [label={}];", quoted(&label))?;
            }
            writeln!(dot, "  }}")?;
        }
        for (edge, wire) in self.edges.iter().zip(&self.wires) {
            let mut label = format!("{}\n{} of {}", edge.queue, edge.capacity, edge.message);
            if let Some(quantum) = edge.quantum_bytes {
                write!(label, "\n{quantum} B")?;
            }
            if edge.when_full != WhenFull::Wait {
                write!(label, "\n{}", edge.when_full)?;
            }
            if edge.initial > 0 {
                write!(label, "\n{} initial", edge.initial)?;
            }
            let crosses = self.operators[wire.from].part != self.operators[wire.to].part;
            let style = match (crosses, wire.feedback) {
                (true, true) => ", style=\"bold,dashed\"",
                (true, false) => ", style=bold",
                (false, true) => ", style=dashed",
                (false, false) => "",
            };
            writeln!(dot, "  o{} -> o{} [label={}{style}];", wire.from, wire.to, quoted(&label))?;
        }
        writeln!(dot, "}}")
    }
}

/// A string in the DOT language: quotes and backslashes escaped, line breaks as `\n`.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
