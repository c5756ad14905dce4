//! What connects: operators, edges and paths, before anything is decided.

pub(crate) mod closure;
mod edge;
pub(crate) mod kind;
pub(crate) mod limits;

pub use edge::EdgeOptions;
pub(crate) use edge::{EdgeDef, PortRef};

use crate::base::on_error::OnError;
use crate::graph::limits::{OnMiss, PathLimits};
use crate::operator::Operator;
use crate::operator::inline::Role;
use crate::operator::message::Message;
use crate::operator::ports::{Described, Ports};
use crate::operator::when::{Event, Gate, When};
use crate::{Input, Output};
use onbeat_trace::record::WhenFull;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// Operators and what connects them.
///
/// ```
/// use onbeat_runtime::{Graph, Options};
/// let mut graph = Graph::new("count");
/// let mut n = 0u64;
/// let numbers = graph.source("numbers", move || { n += 1; (n <= 3).then_some(n) });
/// let double = graph.map("double", |n: u64| 2 * n);
/// let print = graph.sink("print", |n: u64| println!("{n}"));
/// graph.connect(numbers, |s| &s.out, double, |d| &d.input);
/// graph.connect(double, |d| &d.out, print, |p| &p.input).capacity(8);
/// let record = graph.run(&Options::default())?;
/// assert_eq!(record.edges[0].received, 3);
/// # Ok::<(), onbeat_runtime::RunError>(())
/// ```
///
/// Ports of different types do not connect:
///
/// ```compile_fail,E0308
/// # use onbeat_runtime::Graph;
/// let mut graph = Graph::new("wrong");
/// let numbers = graph.source("numbers", || Some(1u64));
/// let print = graph.sink("print", |x: f32| println!("{x}"));
/// graph.connect(numbers, |s| &s.out, print, |p| &p.input);
/// ```
pub struct Graph {
    pub(crate) name: String,
    pub(crate) operators: Vec<Node>,
    pub(crate) edges: Vec<EdgeDef>,
    pub(crate) paths: Vec<PathDef>,
    /// Names under which a subgraph shows inner ports: "radio.in" → "radio/demod.in".
    pub(crate) exposed: BTreeMap<String, String>,
    /// By name: what others let operators go on by.
    pub(crate) gates: BTreeMap<String, Gate>,
    pub(crate) events: BTreeMap<String, Event>,
    /// Mistakes made while building, reported by the plan.
    pub(crate) mistakes: Vec<String>,
    /// What the record shows as the resolved configuration.
    pub(crate) config: serde_json::Value,
}

/// One operator in a graph.
pub(crate) struct Node {
    pub name: String,
    pub kind: String,
    pub operator: Box<dyn Operator>,
    /// What it can do in a chain of neighbours.
    pub role: Option<Role>,
    pub ports: Described,
    pub deadline_ns: Option<u64>,
    pub budget_ns: Option<u64>,
    /// What happens when the deadline was missed.
    pub on_miss: OnMiss,
    /// In nanoseconds per message of its source, as the user states it.
    pub cost_ns: Option<u64>,
    /// Its conditions beside the usual ones.
    pub when: Vec<When>,
    pub on_error: OnError,
}

/// A path as it was asked for.
#[derive(Debug, Clone)]
pub(crate) struct PathDef {
    pub from: String,
    pub to: String,
    pub limits: PathLimits,
}

/// Names an operator in its graph, and knows its type.
pub struct Handle<O> {
    pub(crate) number: usize,
    operator: PhantomData<fn() -> O>,
}

impl<O> Clone for Handle<O> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<O> Copy for Handle<O> {}

impl Graph {
    /// A graph without operators.
    pub fn new(name: impl Into<String>) -> Self {
        Graph {
            name: name.into(),
            operators: Vec::new(),
            edges: Vec::new(),
            paths: Vec::new(),
            exposed: BTreeMap::new(),
            gates: BTreeMap::new(),
            events: BTreeMap::new(),
            mistakes: Vec::new(),
            config: serde_json::Value::Null,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Puts an operator in, under a name of its own.
    pub fn add<O: Operator>(&mut self, name: impl Into<String>, operator: O) -> Handle<O> {
        let kind = crate::operator::message::type_label::<O>();
        let number =
            self.add_boxed(name, kind.split('<').next().unwrap_or("").to_string(), Box::new(operator));
        Handle { number, operator: PhantomData }
    }

    /// Puts an operator in whose type is not known here; `kind` is shown in tables. Its ports are connected
    /// by name.
    pub fn add_boxed(
        &mut self,
        name: impl Into<String>,
        kind: impl Into<String>,
        mut operator: Box<dyn Operator>,
    ) -> usize {
        let mut ports = Described::default();
        operator.ports(&mut Ports::describe(&mut ports));
        let (name, kind) = (name.into(), kind.into());
        let role = Role::of(&mut *operator);
        self.operators.push(Node {
            name,
            kind,
            operator,
            role,
            ports,
            deadline_ns: None,
            budget_ns: None,
            on_miss: OnMiss::default(),
            cost_ns: None,
            when: Vec::new(),
            on_error: OnError::Stop,
        });
        self.operators.len() - 1
    }

    /// Connects an output to an input of the same message type.
    pub fn connect<A: Operator, B: Operator, M: Message>(
        &mut self,
        from: Handle<A>,
        out: impl FnOnce(&A) -> &Output<M>,
        to: Handle<B>,
        input: impl FnOnce(&B) -> &Input<M>,
    ) -> EdgeOptions<'_> {
        let from_port = self.typed(from).map(|operator| out(operator).index);
        let to_port = self.typed(to).map(|operator| input(operator).index);
        let (Some(from_port), Some(to_port)) = (from_port, to_port) else {
            self.mistakes.push("a handle of another graph was used to connect two operators".to_string());
            return EdgeOptions(None);
        };
        for (port, number, what) in [(from_port, from.number, "output"), (to_port, to.number, "input")] {
            if port == usize::MAX {
                let name = &self.operators[number].name;
                self.mistakes.push(format!(
                    "operator `{name}` has an {what} that its `ports` does not name: add a line `p.{what}(\"...\", &mut self....)`"
                ));
                return EdgeOptions(None);
            }
        }
        self.push_edge(PortRef::Number(from.number, from_port), PortRef::Number(to.number, to_port))
    }

    /// Connects "operator.port" to "operator.port". The port may be left out where there is only one.
    pub fn connect_names(&mut self, from: impl Into<String>, to: impl Into<String>) -> EdgeOptions<'_> {
        self.push_edge(PortRef::Name(from.into()), PortRef::Name(to.into()))
    }

    fn push_edge(&mut self, from: PortRef, to: PortRef) -> EdgeOptions<'_> {
        self.edges.push(EdgeDef {
            from,
            to,
            capacity: None,
            quantum: None,
            when_full: WhenFull::Wait,
            initial: Vec::new(),
        });
        EdgeOptions(self.edges.last_mut())
    }

    fn typed<O: Operator>(&self, handle: Handle<O>) -> Option<&O> {
        let operator: &dyn Any = &*self.operators.get(handle.number)?.operator;
        operator.downcast_ref()
    }

    /// States how late an operator may be: from the source's due time to the end of its step, in nanoseconds.
    pub fn deadline<O>(&mut self, handle: Handle<O>, deadline_ns: u64) {
        self.deadline_of(handle.number, deadline_ns);
    }

    /// States how long a step of an operator may compute, in nanoseconds: what is beyond it makes a late
    /// message its fault. Where none is stated, what its steps usually take counts.
    pub fn budget<O>(&mut self, handle: Handle<O>, budget_ns: u64) {
        self.budget_of(handle.number, budget_ns);
    }

    /// States what happens when an operator missed its deadline. It is noted in any case.
    pub fn on_miss<O>(&mut self, handle: Handle<O>, on_miss: OnMiss) {
        self.on_miss_of(handle.number, on_miss);
    }

    pub(crate) fn on_miss_of(&mut self, number: usize, on_miss: OnMiss) {
        if let Some(node) = self.operators.get_mut(number) {
            node.on_miss = on_miss;
        }
    }

    pub(crate) fn budget_of(&mut self, number: usize, budget_ns: u64) {
        if let Some(node) = self.operators.get_mut(number) {
            node.budget_ns = Some(budget_ns);
        }
    }

    pub(crate) fn deadline_of(&mut self, number: usize, deadline_ns: u64) {
        if let Some(node) = self.operators.get_mut(number) {
            node.deadline_ns = Some(deadline_ns);
        }
    }

    /// States what an operator costs for each message of its source, in nanoseconds: `pinned` cuts the graph
    /// into parts of about the same cost. Operators that state none count as 1 µs; sources and sinks as
    /// nothing.
    pub fn cost<O>(&mut self, handle: Handle<O>, cost_ns: u64) {
        self.cost_of(handle.number, cost_ns);
    }

    pub(crate) fn cost_of(&mut self, number: usize, cost_ns: u64) {
        if let Some(node) = self.operators.get_mut(number) {
            node.cost_ns = Some(cost_ns);
        }
    }

    /// Has an operator wait for more than messages and room; see [`When`]. Called several times, all
    /// conditions must hold.
    pub fn when<O>(&mut self, handle: Handle<O>, condition: When) {
        self.when_of(handle.number, condition);
    }

    pub(crate) fn when_of(&mut self, number: usize, condition: When) {
        if let Some(node) = self.operators.get_mut(number) {
            node.when.push(condition);
        }
    }

    /// States what becomes of the run when an operator fails or panics in a step; see [`OnError`].
    pub fn on_error<O>(&mut self, handle: Handle<O>, on_error: OnError) {
        self.on_error_of(handle.number, on_error);
    }

    pub(crate) fn on_error_of(&mut self, number: usize, on_error: OnError) {
        if let Some(node) = self.operators.get_mut(number) {
            node.on_error = on_error;
        }
    }

    /// The gate of this name, which is open at first; made when it is asked for. The run shows it to those
    /// who control it ([`RunHandle::gate`](crate::RunHandle::gate)).
    pub fn gate(&mut self, name: &str) -> Gate {
        self.gates.entry(name.to_string()).or_insert_with(|| Gate::named(true, name.to_string())).clone()
    }

    /// The event of this name; made when it is asked for. The run shows it to those who control it
    /// ([`RunHandle::event`](crate::RunHandle::event)), so there is always somebody who can ring it.
    pub fn event(&mut self, name: &str) -> Event {
        self.events.entry(name.to_string()).or_insert_with(|| Event::named(name.to_string())).clone()
    }

    /// Watches the way from a source to a sink, both by name; a message that takes longer than
    /// `max_latency_ns` from its due time to the end of the sink's step is a miss. Paths that nobody names
    /// are watched without a limit.
    pub fn path(&mut self, from: impl Into<String>, to: impl Into<String>, max_latency_ns: Option<u64>) {
        self.limit(from, to, PathLimits { max_latency_ns, ..PathLimits::default() });
    }

    /// As [`path`](Graph::path), with all limits that a path may have.
    ///
    /// ```
    /// use onbeat_runtime::{Graph, Options, PathLimits};
    /// use onbeat_trace::record::InFlightLimit;
    /// let mut graph = Graph::new("few at once");
    /// let mut left = 100u32;
    /// let numbers = graph.source("numbers", move || { left -= 1; (left > 0).then_some(left) });
    /// let double = graph.map("double", |n: u32| 2 * n);
    /// let end = graph.sink("end", |_: u32| ());
    /// graph.connect(numbers, |s| &s.out, double, |d| &d.input);
    /// graph.connect(double, |d| &d.out, end, |e| &e.input);
    /// let limits = PathLimits { max_in_flight: Some(InFlightLimit::Messages(2)), ..PathLimits::default() };
    /// graph.limit("numbers", "end", limits);
    /// let record = graph.run(&Options::default())?;
    /// assert!(record.paths[0].in_flight_most.unwrap() <= 2);
    /// # Ok::<(), onbeat_runtime::RunError>(())
    /// ```
    pub fn limit(&mut self, from: impl Into<String>, to: impl Into<String>, limits: PathLimits) {
        self.paths.push(PathDef { from: from.into(), to: to.into(), limits });
    }

    /// What the record shows as the resolved configuration.
    pub fn set_config(&mut self, config: serde_json::Value) {
        self.config = config;
    }

    /// Puts a whole graph in: its operators are then called "name/operator".
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
            // An inner subgraph's own exposed ports keep their longer name; this graph's become "name.port".
            let port = if port.contains('.') { outer(&port) } else { format!("{name}.{port}") };
            self.exposed.insert(port, outer(&target));
        }
        self.gates.extend(inner.gates.into_iter().map(|(name, gate)| (outer(&name), gate)));
        self.events.extend(inner.events.into_iter().map(|(name, event)| (outer(&name), event)));
        self.mistakes.extend(inner.mistakes);
        Subgraph { offset }
    }

    /// Shows an inner port as a port of this graph, for when it is put into another.
    pub fn expose(&mut self, port: &str, inner: &str) {
        if port.contains(['.', '/']) {
            self.mistakes
                .push(format!("`{port}` cannot be the name of an exposed port: it has a `.` or `/` in it"));
        }
        if self.exposed.insert(port.to_string(), inner.to_string()).is_some() {
            self.mistakes.push(format!("the port `{port}` is exposed twice"));
        }
    }

    /// Names of the operators, in the order in which they were added.
    pub fn operators(&self) -> impl Iterator<Item = &str> {
        self.operators.iter().map(|node| node.name.as_str())
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph({}: {} operators, {} edges)", self.name, self.operators.len(), self.edges.len())
    }
}

/// A graph that was put into another.
#[derive(Debug, Clone, Copy)]
pub struct Subgraph {
    offset: usize,
}

impl Subgraph {
    /// A handle of the inner graph, made valid for the outer one.
    pub fn handle<O>(&self, inner: Handle<O>) -> Handle<O> {
        Handle { number: inner.number + self.offset, operator: PhantomData }
    }
}
