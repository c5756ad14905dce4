//! What can be wrong with a graph, each with the operator and port it is about.

/// Why a graph cannot be run. Every message names the thing, its value, the limit and what to do.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// Nothing to run.
    #[error("the graph `{0}` has no operators")]
    Empty(String),
    /// A mistake in building the graph.
    #[error("{0}")]
    Mistake(String),
    /// A clock that is too fast or too slow, or virtual and scaled.
    #[error(
        "the clock's `scale` is {0}: it must be 1e-6 to 1e6, and 1 where time is virtual, which goes as fast as it can"
    )]
    Scale(f64),
    /// A core that cannot be used as asked.
    #[error("{0}")]
    Cores(String),
    /// Cores for house-keeping that cannot be, or that leave none to workers.
    #[error("{0}")]
    HouseKeeping(String),
    /// A pool that cannot be as it is asked for.
    #[error("{text}")]
    Pool {
        /// Its name.
        pool: String,
        /// Which of its keys it is about.
        key: &'static str,
        /// Which of the operators that it names, if it is about one.
        operator: Option<String>,
        /// What is wrong, and what to do.
        text: String,
    },
    /// An initial message of another type.
    #[error("the edge {edge} carries {message}: its initial message is {found}")]
    Initial {
        /// The edge.
        edge: String,
        /// Its message type.
        message: String,
        /// What was given.
        found: String,
    },
    /// More initial messages than the edge can hold.
    #[error("the edge {edge} has {count} initial messages and a capacity of {capacity}: raise the capacity")]
    InitialCount {
        /// The edge.
        edge: String,
        /// How many there are.
        count: usize,
        /// Its capacity.
        capacity: usize,
    },
    /// Two operators have one name.
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
        /// What was asked for.
        name: String,
        /// ": did you mean …?", or nothing.
        hint: String,
    },
    /// No such port.
    #[error("operator `{operator}` has no {direction} `{port}`{hint}")]
    UnknownPort {
        /// The operator.
        operator: String,
        /// "input" or "output".
        direction: &'static str,
        /// What was asked for.
        port: String,
        /// Which ports there are.
        hint: String,
    },
    /// A port has to be named.
    #[error("`{operator}` has {count} {direction}s ({known}): say which, as `{operator}.{first}`")]
    WhichPort {
        /// The operator.
        operator: String,
        /// "input" or "output".
        direction: &'static str,
        /// How many there are.
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
        /// What it sends.
        from_type: String,
        /// Receiving port.
        to: String,
        /// What it takes.
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
    },
    /// The same edge twice, or two edges into a port for one.
    #[error(
        "input `{port}` is connected twice, from `{first}` and `{second}`: it takes one edge; put a `merge` operator before it"
    )]
    ConnectedTwice {
        /// The port.
        port: String,
        /// One producer.
        first: String,
        /// The other.
        second: String,
    },
    /// Every operator in a circle waits for the one before it.
    #[error(
        "the cycle {} can never start: each operator waits for the one before it; give one of its edges an `initial` message",
        .0.join(" → ")
    )]
    Cycle(Vec<String>),
    /// An edge that holds nothing, or too much.
    #[error("the edge {edge} has capacity {capacity}: it must be 1 to {limit} messages", limit = 1 << 24)]
    Capacity {
        /// The edge.
        edge: String,
        /// What was asked for.
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
    /// A quantum that holds no sample.
    #[error("the edge {edge} has a quantum of {quantum} bytes: a {message} needs at least {least}")]
    QuantumTooSmall {
        /// The edge.
        edge: String,
        /// Its message type.
        message: String,
        /// What was asked for.
        quantum: usize,
        /// Bytes of one sample.
        least: usize,
    },
    /// One chunk is larger than all chunk stores may be.
    #[error(
        "the edge {edge} has a quantum of {quantum} bytes, which is larger than the chunk store ({limit} bytes): lower the quantum or raise `store`"
    )]
    QuantumTooLarge {
        /// The edge.
        edge: String,
        /// What was asked for.
        quantum: usize,
        /// The limit.
        limit: usize,
    },
    /// The chunks of all edges are larger than all chunk stores may be.
    #[error(
        "the plan needs {needed} bytes of chunks ({detail}), and the chunk store may have {limit}: lower capacities or quanta, or raise `store`"
    )]
    StoreTooSmall {
        /// What is needed.
        needed: usize,
        /// Per quantum.
        detail: String,
        /// The limit.
        limit: usize,
    },
    /// A path that leads nowhere.
    #[error(
        "there is no way from `{from}` to `{to}`: a path goes along the edges, from a source to a later operator"
    )]
    NoPath {
        /// Its begin.
        from: String,
        /// Its end.
        to: String,
    },
    /// A path on which it cannot be told what is under way.
    #[error("`max_in_flight` of the path from `{from}` to `{to}` cannot be kept: {why}")]
    InFlight {
        /// Its begin.
        from: String,
        /// Its end.
        to: String,
        /// Why.
        why: String,
    },
    /// A path of which something is asked that is an operator's.
    #[error(
        "on_miss = \"degrade\" of the path from `{from}` to `{to}`: a path cannot do less, an operator can; give it a `deadline` and \
         `on_miss`"
    )]
    PathDegrades {
        /// Its begin.
        from: String,
        /// Its end.
        to: String,
    },
    /// A path that does not begin at a source.
    #[error(
        "the path from `{from}` to `{to}` does not begin at a source: `{from}` has inputs; begin it at {sources}"
    )]
    PathStart {
        /// Its begin.
        from: String,
        /// Its end.
        to: String,
        /// The sources that lead there.
        sources: String,
    },
    /// Under `strict`: something was asked for and not obtained.
    #[error("strict: {0}")]
    Strict(String),
}
