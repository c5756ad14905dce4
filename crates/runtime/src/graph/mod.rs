//! Graphs: operators, edges and paths as the user states them, before the plan.

pub(crate) mod closure;
pub mod declared;
mod edge;
pub(crate) mod kind;
pub(crate) mod limits;
mod subgraph;
pub(crate) mod values;

pub use edge::EdgeOptions;
pub(crate) use edge::{EdgeDef, PortRef};
pub use subgraph::Subgraph;

use crate::base::on_error::OnError;
use crate::graph::limits::{OnMiss, PathLimits};
use crate::graph::values::NamedValues;
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

/// A dataflow graph: operators, and the edges that connect them.
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
    /// Names under which a subgraph exposes inner ports: "radio.in" → "radio/demod.in".
    pub(crate) exposed: BTreeMap<String, String>,
    /// Gates by name.
    pub(crate) gates: BTreeMap<String, Gate>,
    pub(crate) events: BTreeMap<String, Event>,
    /// Mistakes made while building. The plan reports them.
    pub(crate) mistakes: Vec<String>,
    /// Resolved configuration, for the record.
    pub(crate) config: serde_json::Value,
    /// Parameters that can be changed during a run, as far as a file gives them.
    pub(crate) values: NamedValues,
}

/// One operator in a graph.
pub(crate) struct Node {
    pub name: String,
    pub kind: String,
    pub operator: Box<dyn Operator>,
    /// Shortcut of the operator in a chain, if it has one.
    pub role: Option<Role>,
    pub ports: Described,
    pub deadline_ns: Option<u64>,
    pub budget_ns: Option<u64>,
    /// Reaction to a missed deadline.
    pub on_miss: OnMiss,
    /// Cost in nanoseconds per message of its source, if the user states one.
    pub cost_ns: Option<u64>,
    /// Conditions besides the usual ones.
    pub when: Vec<When>,
    pub on_error: OnError,
}

/// A path from a source to a sink, and its limits.
#[derive(Debug, Clone)]
pub(crate) struct PathDef {
    pub from: String,
    pub to: String,
    pub limits: PathLimits,
}

/// Reference to an operator of a graph, with the operator's type.
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
    /// Makes a graph without operators.
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
            values: Vec::new(),
        }
    }

    /// Returns the graph's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds an operator under a name that no other operator of the graph has.
    pub fn add<O: Operator>(&mut self, name: impl Into<String>, operator: O) -> Handle<O> {
        let kind = crate::operator::message::type_label::<O>();
        let number =
            self.add_boxed(name, kind.split('<').next().unwrap_or("").to_string(), Box::new(operator));
        Handle { number, operator: PhantomData }
    }

    /// Adds an operator of a type that is not known at compile time. Tables show `kind`. Its ports are
    /// connected by name.
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

    /// Connects "operator.port" to "operator.port". If there is only one port, it can be left out.
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

    /// Sets the deadline of an operator: nanoseconds from the source's due time to the end of the operator's
    /// step.
    pub fn deadline<O>(&mut self, handle: Handle<O>, deadline_ns: u64) {
        self.deadline_of(handle.number, deadline_ns);
    }

    /// Sets the budget of an operator: nanoseconds that one step may compute. A longer step counts as the
    /// cause of a late message. Default: the usual time of its steps.
    pub fn budget<O>(&mut self, handle: Handle<O>, budget_ns: u64) {
        self.budget_of(handle.number, budget_ns);
    }

    /// Sets the reaction to a missed deadline of an operator. Each miss is recorded in any case.
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

    /// Sets the cost of an operator in nanoseconds per message of its source. `pinned` cuts the graph into
    /// parts of about equal cost. Default: 1 µs; 0 for sources and sinks.
    pub fn cost<O>(&mut self, handle: Handle<O>, cost_ns: u64) {
        self.cost_of(handle.number, cost_ns);
    }

    pub(crate) fn cost_of(&mut self, number: usize, cost_ns: u64) {
        if let Some(node) = self.operators.get_mut(number) {
            node.cost_ns = Some(cost_ns);
        }
    }

    /// Adds a condition to an operator; see [`When`]. If it has several, all of them must hold.
    pub fn when<O>(&mut self, handle: Handle<O>, condition: When) {
        self.when_of(handle.number, condition);
    }

    pub(crate) fn when_of(&mut self, number: usize, condition: When) {
        if let Some(node) = self.operators.get_mut(number) {
            node.when.push(condition);
        }
    }

    /// Sets how the run continues after a step of an operator fails or panics; see [`OnError`].
    pub fn on_error<O>(&mut self, handle: Handle<O>, on_error: OnError) {
        self.on_error_of(handle.number, on_error);
    }

    pub(crate) fn on_error_of(&mut self, number: usize, on_error: OnError) {
        if let Some(node) = self.operators.get_mut(number) {
            node.on_error = on_error;
        }
    }

    /// Returns the gate of this name, and makes an open gate if there is none. Other threads control it
    /// during the run with [`RunHandle::gate`](crate::RunHandle::gate).
    pub fn gate(&mut self, name: &str) -> Gate {
        self.gates.entry(name.to_string()).or_insert_with(|| Gate::named(true, name.to_string())).clone()
    }

    /// Returns the event of this name, and makes it if there is none. Other threads can ring it at any time
    /// during the run with [`RunHandle::event`](crate::RunHandle::event).
    pub fn event(&mut self, name: &str) -> Event {
        self.events.entry(name.to_string()).or_insert_with(|| Event::named(name.to_string())).clone()
    }

    /// Adds a path from a source to a sink, both by name. A message is a miss if it takes longer than
    /// `max_latency_ns` from its due time to the end of the sink's step. All other paths are measured without
    /// a limit.
    pub fn path(&mut self, from: impl Into<String>, to: impl Into<String>, max_latency_ns: Option<u64>) {
        self.limit(from, to, PathLimits { max_latency_ns, ..PathLimits::default() });
    }

    /// Adds a path like [`path`](Graph::path), with all limits that a path can have.
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

    /// Sets the resolved configuration that the record contains.
    pub fn set_config(&mut self, config: serde_json::Value) {
        self.config = config;
    }

    /// Returns the names of the operators, in the order in which they were added.
    pub fn operators(&self) -> impl Iterator<Item = &str> {
        self.operators.iter().map(|node| node.name.as_str())
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph({}: {} operators, {} edges)", self.name, self.operators.len(), self.edges.len())
    }
}
