//! [`GraphError`]: mistakes in a graph, each with its operator and port.

/// Reason why a graph cannot be run. Every message names the thing, its value, the limit and the fix.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// The graph has no operators.
    #[error("the graph `{0}` has no operators")]
    Empty(String),
    /// A mistake in building the graph.
    #[error("{0}")]
    Mistake(String),
    /// A clock that is too fast or too slow, or virtual and scaled.
    #[error(
        "the clock's `scale` is {0}: it must be 1e-6 to 1e6, and 1 if time is virtual, because virtual time goes as fast as it can"
    )]
    Scale(f64),
    /// Cores or a number of workers that this machine or scheduler cannot provide.
    #[error("{0}")]
    Cores(String),
    /// House-keeping cores that do not exist, or that leave no core for workers.
    #[error("{0}")]
    HouseKeeping(String),
    /// A pool that cannot be made as requested.
    #[error("{text}")]
    Pool {
        /// Name of the pool.
        pool: String,
        /// Key of the pool that is wrong.
        key: &'static str,
        /// Operator that the pool names, if the mistake concerns one.
        operator: Option<String>,
        /// The mistake and its fix.
        text: String,
    },
    /// An initial message of another type.
    #[error("the edge {edge} carries {message}: its initial message is {found}")]
    Initial {
        /// The edge.
        edge: String,
        /// Its message type.
        message: String,
        /// The message that was given.
        found: String,
    },
    /// More initial messages than the edge can hold.
    #[error("the edge {edge} has {count} initial messages and a capacity of {capacity}: raise the capacity")]
    InitialCount {
        /// The edge.
        edge: String,
        /// Number of initial messages.
        count: usize,
        /// Capacity of the edge.
        capacity: usize,
    },
    /// Two operators have the same name.
    #[error("two operators are called `{0}`: names are unique in a graph")]
    DuplicateName(String),
    /// A name that cannot be used.
    #[error(
        "`{0}` cannot name an operator: a name has at least one character, and no `.`, blank or line break"
    )]
    BadName(String),
    /// No such operator.
    #[error("there is no operator `{name}`{hint}")]
    UnknownOperator {
        /// The requested name.
        name: String,
        /// ": did you mean …?", or empty.
        hint: String,
    },
    /// No such port.
    #[error("operator `{operator}` has no {direction}{}{hint}", quoted(port))]
    UnknownPort {
        /// The operator.
        operator: String,
        /// "input" or "output".
        direction: &'static str,
        /// The requested port.
        port: String,
        /// The ports that the operator has, as the end of the message.
        hint: String,
    },
    /// The operator has several ports, and the edge names none of them.
    #[error("`{operator}` has {count} {direction}s ({known}): say which, as `{operator}.{first}`")]
    WhichPort {
        /// The operator.
        operator: String,
        /// "input" or "output".
        direction: &'static str,
        /// Number of ports in this direction.
        count: usize,
        /// Their names.
        known: String,
        /// The first of them.
        first: String,
    },
    /// The ends of an edge have different message types.
    #[error("`{from}` sends {from_type}, `{to}` takes {to_type}: put an operator between them that converts")]
    Types {
        /// Sending port.
        from: String,
        /// Message type of the sending port.
        from_type: String,
        /// Receiving port.
        to: String,
        /// Message type of the receiving port.
        to_type: String,
    },
    /// A port that must be connected is not.
    #[error("{direction} `{port}` ({message}) is not connected")]
    Unconnected {
        /// "input" or "output".
        direction: &'static str,
        /// The port.
        port: String,
        /// Its message type.
        message: String,
        /// The only port that lacks its other end, if there is one.
        other: Option<String>,
    },
    /// The same edge twice, or two edges into a port that takes one.
    #[error(
        "input `{port}` is connected twice, from `{first}` and `{second}`: it takes one edge; {}",
        joining(message)
    )]
    ConnectedTwice {
        /// The port.
        port: String,
        /// One producer.
        first: String,
        /// The other.
        second: String,
        /// Type of the messages.
        message: String,
    },
    /// A cycle in which every operator waits for the one before it.
    #[error(
        "the cycle {} can never start: each operator waits for the one before it; give one of its edges an `initial` message",
        .0.join(" → ")
    )]
    Cycle(Vec<String>),
    /// A capacity of 0, or one above the limit.
    #[error("the edge {edge} has capacity {capacity}: it must be 1 to {limit} messages", limit = 1 << 24)]
    Capacity {
        /// The edge.
        edge: String,
        /// The requested capacity, in messages.
        capacity: usize,
    },
    /// A quantum on an edge without chunks.
    #[error("the edge {edge} carries {message}, not chunks: it has no quantum")]
    NoQuantum {
        /// The edge.
        edge: String,
        /// Its message type.
        message: String,
    },
    /// A quantum that is smaller than one sample.
    #[error("the edge {edge} has a quantum of {quantum} bytes: a {message} needs at least {least}")]
    QuantumTooSmall {
        /// The edge.
        edge: String,
        /// Its message type.
        message: String,
        /// The requested quantum, in bytes.
        quantum: usize,
        /// Bytes of one sample.
        least: usize,
    },
    /// One chunk is larger than the limit for all chunk stores.
    #[error(
        "the edge {edge} has a quantum of {quantum} bytes, which is larger than the chunk store ({limit} bytes): lower the quantum or raise `store`"
    )]
    QuantumTooLarge {
        /// The edge.
        edge: String,
        /// The requested quantum, in bytes.
        quantum: usize,
        /// Size limit of the chunk stores, in bytes.
        limit: usize,
    },
    /// The chunks of all edges exceed the limit for all chunk stores.
    #[error(
        "the plan needs {needed} bytes of chunks ({detail}), and the chunk store may have {limit}: lower capacities or quanta, or raise `store`"
    )]
    StoreTooSmall {
        /// Bytes that the plan needs.
        needed: usize,
        /// Number of chunks per quantum.
        detail: String,
        /// Size limit of the chunk stores, in bytes.
        limit: usize,
    },
    /// A path whose end cannot be reached from its begin.
    #[error(
        "there is no way from `{from}` to `{to}`: a path goes along the edges, from a source to a later operator"
    )]
    NoPath {
        /// Begin of the path.
        from: String,
        /// End of the path.
        to: String,
    },
    /// A path on which messages in flight cannot be counted.
    #[error("`max_in_flight` of the path from `{from}` to `{to}` cannot be kept: {why}")]
    InFlight {
        /// Begin of the path.
        from: String,
        /// End of the path.
        to: String,
        /// The reason.
        why: String,
    },
    /// `on_miss = "degrade"` on a path: only an operator can degrade.
    #[error(
        "on_miss = \"degrade\" of the path from `{from}` to `{to}`: a path cannot do less, an operator can; give it a `deadline` and \
         `on_miss`"
    )]
    PathDegrades {
        /// Begin of the path.
        from: String,
        /// End of the path.
        to: String,
    },
    /// A path that does not begin at a source.
    #[error(
        "the path from `{from}` to `{to}` does not begin at a source: `{from}` has inputs; begin it at {sources}"
    )]
    PathStart {
        /// Begin of the path.
        from: String,
        /// End of the path.
        to: String,
        /// The sources from which the end can be reached.
        sources: String,
    },
    /// Under `strict`: a setting was requested and not obtained.
    #[error("strict: {0}")]
    Strict(String),
}

/// The name of a port behind what it is; nothing without a name.
fn quoted(port: &str) -> String {
    if port.is_empty() { String::new() } else { format!(" `{port}`") }
}

/// How to join streams of messages of a type.
fn joining(message: &str) -> &'static str {
    if message.starts_with("Chunk<") {
        "put an operator before it that makes one stream of two: `add`, `sum` or `interleave`"
    } else {
        "put a `merge` operator before it"
    }
}
