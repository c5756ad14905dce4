//! Graphs inside of graphs.

use super::{EdgeDef, Graph, Handle, Node, PathDef, PortRef};
use std::marker::PhantomData;

/// The operators of a graph that was added to another.
#[derive(Debug, Clone, Copy)]
pub struct Subgraph {
    offset: usize,
}

impl Subgraph {
    /// Converts a handle of the inner graph to one of the outer graph.
    pub fn handle<O>(&self, inner: Handle<O>) -> Handle<O> {
        Handle { number: inner.number + self.offset, operator: PhantomData }
    }
}

impl Graph {
    /// Adds all operators of a graph under the names "name/operator".
    ///
    /// ```
    /// # use onbeat_runtime::{Graph, Options};
    /// let mut inner = Graph::new("inner");
    /// inner.map("half", |n: u64| n / 2);
    /// inner.expose("in", "half.in");
    /// inner.expose("out", "half.out");
    ///
    /// let mut graph = Graph::new("outer");
    /// let mut n = 0u64;
    /// graph.source("numbers", move || { n += 1; (n < 9).then_some(n) });
    /// graph.add_graph("one", inner);
    /// graph.sink("end", |n: u64| assert!(n < 5));
    /// graph.connect_names("numbers.out", "one.in");
    /// graph.connect_names("one.out", "end.in");
    /// graph.run(&Options::default())?;
    /// # Ok::<(), onbeat_runtime::RunError>(())
    /// ```
    pub fn add_graph(&mut self, name: &str, inner: Graph) -> Subgraph {
        let offset = self.operators.len();
        let outer = |inner: &str| format!("{name}/{inner}");
        self.operators
            .extend(inner.operators.into_iter().map(|node| Node { name: outer(&node.name), ..node }));
        let moved = |port| match port {
            PortRef::Number(operator, port) => PortRef::Number(operator + offset, port),
            PortRef::Name(port) => PortRef::Name(outer(&port)),
        };
        self.edges.extend(inner.edges.into_iter().map(|edge| EdgeDef {
            from: moved(edge.from),
            to: moved(edge.to),
            ..edge
        }));
        self.paths.extend(inner.paths.into_iter().map(|path| PathDef {
            from: outer(&path.from),
            to: outer(&path.to),
            ..path
        }));
        for (port, target) in inner.exposed {
            // Exposed ports of an inner subgraph get the prefix "name/"; those of this graph become
            // "name.port".
            let port = if port.contains('.') { outer(&port) } else { format!("{name}.{port}") };
            self.exposed.insert(port, outer(&target));
        }
        self.gates.extend(inner.gates.into_iter().map(|(name, gate)| (outer(&name), gate)));
        self.events.extend(inner.events.into_iter().map(|(name, event)| (outer(&name), event)));
        self.mistakes.extend(inner.mistakes);
        Subgraph { offset }
    }

    /// Exposes an inner port as a port of this graph, for a graph that contains it.
    pub fn expose(&mut self, port: &str, inner: &str) {
        if port.contains(['.', '/']) {
            self.mistakes
                .push(format!("`{port}` cannot be the name of an exposed port: it has a `.` or `/` in it"));
        }
        if self.exposed.insert(port.to_string(), inner.to_string()).is_some() {
            self.mistakes.push(format!("the port `{port}` is exposed twice"));
        }
    }
}
