//! Edges as the user states them, before the plan.

use crate::operator::link::Initial;
use crate::operator::message::{Message, Value};
use onbeat_trace::record::WhenFull;

/// An edge as the user states it.
pub(crate) struct EdgeDef {
    pub from: PortRef,
    pub to: PortRef,
    pub capacity: Option<usize>,
    pub quantum: Option<usize>,
    pub when_full: WhenFull,
    /// Messages in the edge before the first step.
    pub initial: Vec<Initial>,
}

/// One end of an edge.
#[derive(Debug, Clone)]
pub(crate) enum PortRef {
    /// Operator and port by number.
    Number(usize, usize),
    /// "operator.port"
    Name(String),
}

/// Options of an edge. The options that are not set have the defaults of the run.
pub struct EdgeOptions<'g>(pub(super) Option<&'g mut EdgeDef>);

impl EdgeOptions<'_> {
    /// Sets the capacity in messages. Default: [`Options::capacity`](crate::Options::capacity).
    pub fn capacity(mut self, messages: usize) -> Self {
        if let Some(edge) = &mut self.0 {
            edge.capacity = Some(messages);
        }
        self
    }

    /// Sets the quantum: the largest size of a chunk's samples, in bytes. Default:
    /// [`Options::quantum`](crate::Options::quantum), or the size of a frame if that is known and larger
    /// ([`Operator::frame_behind`](crate::Operator::frame_behind)).
    pub fn quantum(mut self, bytes: usize) -> Self {
        if let Some(edge) = &mut self.0 {
            edge.quantum = Some(bytes);
        }
        self
    }

    /// Adds a message before the first step. An edge that closes a cycle needs one; otherwise every operator
    /// of the cycle would wait for the one before. The stamp of a message from such an edge yields to the
    /// stamps of messages that it is joined with.
    ///
    /// ```
    /// use onbeat_runtime::{Context, Error, Graph, Input, Operator, Options, Output, Ports, Step};
    ///
    /// /// Adds each number to the sum so far.
    /// #[derive(Default)]
    /// struct Sum { input: Input<u64>, before: Input<u64>, out: Output<u64> }
    /// impl Operator for Sum {
    ///     fn ports(&mut self, p: &mut Ports) {
    ///         p.input("in", &mut self.input);
    ///         p.input("before", &mut self.before);
    ///         p.output("out", &mut self.out);
    ///     }
    ///     fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
    ///         if let (Some(x), Some(sum)) = (self.input.pop(cx), self.before.pop(cx)) {
    ///             self.out.push(cx, x + sum)?;
    ///         }
    ///         Ok(Step::Wait)
    ///     }
    /// }
    ///
    /// let mut graph = Graph::new("sum");
    /// let mut n = 0u64;
    /// let numbers = graph.source("numbers", move || { n += 1; (n <= 3).then_some(n) });
    /// let sum = graph.add("sum", Sum::default());
    /// let end = graph.sink("end", |sum: u64| assert!([101, 103, 106].contains(&sum)));
    /// graph.connect(numbers, |s| &s.out, sum, |s| &s.input);
    /// graph.connect(sum, |s| &s.out, sum, |s| &s.before).initial(100u64);
    /// graph.connect(sum, |s| &s.out, end, |e| &e.input);
    /// assert_eq!(graph.run(&Options::default())?.edges[2].received, 3);
    /// # Ok::<(), onbeat_runtime::RunError>(())
    /// ```
    pub fn initial<M: Message>(self, message: M) -> Self {
        self.begin_with(Initial::Typed(Box::new(message)))
    }

    /// Adds a message like [`initial`](EdgeOptions::initial), for an edge of a type that is not known at
    /// compile time. The value is a number or boolean; for chunks, a number of samples of 0.
    pub fn initial_value(self, value: Value) -> Self {
        self.begin_with(Initial::Value(value))
    }

    fn begin_with(mut self, message: Initial) -> Self {
        if let Some(edge) = &mut self.0 {
            edge.initial.push(message);
        }
        self
    }

    /// Sets the rule for a message that finds the edge full. Default: the producer waits.
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        if let Some(edge) = &mut self.0 {
            edge.when_full = when_full;
        }
        self
    }
}
