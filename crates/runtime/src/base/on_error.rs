//! The setting of how a run continues after an operator fails.

use serde::{Deserialize, Serialize};

/// How the run continues after an operator's step returns an error or panics. The default is
/// [`Stop`](OnError::Stop).
///
/// If an operator cannot start, or cannot finish its work in `stop`, the run fails in any case. Set with
/// [`Graph::on_error`](crate::Graph::on_error).
///
/// ```
/// use onbeat_runtime::{Graph, OnError, Options, Restart};
///
/// let mut graph = Graph::new("shaky");
/// let mut n = 0u64;
/// let numbers = graph.source("numbers", move || { n += 1; (n <= 4).then_some(n) });
/// let shaky = graph.map("shaky", |n: u64| if n == 2 { panic!("no twos") } else { n });
/// let end = graph.sink("end", |_: u64| ());
/// graph.connect(numbers, |s| &s.out, shaky, |s| &s.input);
/// graph.connect(shaky, |s| &s.out, end, |e| &e.input);
/// graph.on_error(shaky, OnError::Restart(Restart { delay_ns: 1_000_000, ..Restart::default() }));
///
/// let record = graph.run(&Options::default())?;
/// assert_eq!((record.operators[1].restarts, record.edges[1].received), (1, 3));
/// assert_eq!(record.faults[0].text, "panicked: no twos");
/// # Ok::<(), onbeat_runtime::RunError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The run ends with an error.
    #[default]
    Stop,
    /// The operator is restarted after a delay ([`Operator::restart`](crate::Operator::restart)). Messages
    /// that the failed step took are lost. New messages wait.
    Restart(Restart),
    /// The run goes on without the operator. Its outputs close, and messages to it are no longer read.
    /// Operators that send only to it end as well. Its `stop` gets [`Ending::Failed`](crate::Ending::Failed).
    Isolate,
}

/// How often an operator is restarted, and after which delay.
///
/// Failures that follow each other closely form a *row*. The default allows 5 restarts in a row, the first
/// after 100 ms, and a row ends after 60 s without a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Restart {
    /// Most restarts in a row. After one more failure `then` applies. Default: 5.
    pub limit: u32,
    /// Delay before the first restart of a row, in nanoseconds on the run's clock. Each further delay of the
    /// row is twice as long as the one before, up to an hour. Default: 100 ms.
    pub delay_ns: u64,
    /// Time without a failure after the last restart that ends a row, in nanoseconds on the run's clock.
    /// Default: 60 s.
    pub within_ns: u64,
    /// How the run continues after too many failures in a row. Default: [`Then::Stop`].
    pub then: Then,
}

/// How the run continues if restarts do not help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// As [`OnError::Stop`].
    #[default]
    Stop,
    /// As [`OnError::Isolate`].
    Isolate,
}

/// Longest delay that doubling gives: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

impl Default for Restart {
    fn default() -> Self {
        Restart { limit: 5, delay_ns: 100_000_000, within_ns: 60_000_000_000, then: Then::Stop }
    }
}

impl Restart {
    /// Returns the delay before restart number `number` of a row, from 1 on.
    pub(crate) fn delay_ns(&self, number: u32) -> u64 {
        let doubled = 1u64.checked_shl(number - 1).unwrap_or(u64::MAX);
        // A longer delay is kept if the user asked for it.
        self.delay_ns.saturating_mul(doubled).min(LONGEST_NS.max(self.delay_ns))
    }
}

/// State of an operator that may have failed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Trouble {
    /// Whether the operator failed and waits for its restart.
    pub restarting: bool,
    /// Whether the run goes on without the operator.
    pub isolated: bool,
    /// Number of restarts in the run.
    pub restarts: u64,
    /// Number of failures in the current row.
    pub row: u32,
    /// Time of the last restart, on the run's clock.
    pub restarted_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_restart_of_a_row_waits_twice_as_long_up_to_an_hour() {
        let restart = Restart { delay_ns: 100, ..Restart::default() };
        let delays: Vec<u64> = [1, 2, 3, 30, 64, 65, u32::MAX].map(|n| restart.delay_ns(n)).into();
        assert_eq!(delays, [100, 200, 400, 53_687_091_200, LONGEST_NS, LONGEST_NS, LONGEST_NS]);
        let restart = Restart { delay_ns: 2 * LONGEST_NS, ..restart };
        assert_eq!(restart.delay_ns(3), 2 * LONGEST_NS);
        assert_eq!(Restart { delay_ns: 0, ..restart }.delay_ns(9), 0);
    }
}
