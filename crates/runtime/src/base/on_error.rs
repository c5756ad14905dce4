//! What becomes of a run when one of its operators fails.

use serde::{Deserialize, Serialize};

/// What becomes of the run when an operator's step returns an error or panics. An operator that cannot start, or cannot
/// finish its work at the end, fails the run in any case.
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
    /// The operator is started anew after a while ([`Operator::restart`](crate::Operator::restart)). What the step had taken is
    /// lost; what comes meanwhile waits.
    Restart(Restart),
    /// The run goes on without the operator: it ends, its outputs close, and what comes to it is not read any more. Operators
    /// that send to it alone end as well. At the end its `stop` is told of a failure.
    Isolate,
}

/// How often an operator is started anew, and after what time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Restart {
    /// Restarts in a row. One failure more, and `then` happens.
    pub limit: u32,
    /// Before the first of a row; each further one of the row waits twice as long as the one before, up to an hour. In nanoseconds on
    /// the run's clock.
    pub delay_ns: u64,
    /// A row ends when this time has gone by since the last restart without a failure. In nanoseconds on the run's clock.
    pub within_ns: u64,
    /// What becomes of the run when the row is too long.
    pub then: Then,
}

/// What becomes of the run when restarts do not help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// As [`OnError::Stop`].
    #[default]
    Stop,
    /// As [`OnError::Isolate`].
    Isolate,
}

/// Longest time before a restart.
const LONGEST_NS: u64 = 3_600_000_000_000;

impl Default for Restart {
    fn default() -> Self {
        Restart { limit: 5, delay_ns: 100_000_000, within_ns: 60_000_000_000, then: Then::Stop }
    }
}

impl Restart {
    /// The time before restart number `number` of a row, from 1 on.
    pub(crate) fn delay_ns(&self, number: u32) -> u64 {
        let doubled = 1u64.checked_shl(number - 1).unwrap_or(u64::MAX);
        // A delay that was asked for is kept, however long.
        self.delay_ns.saturating_mul(doubled).min(LONGEST_NS.max(self.delay_ns))
    }
}

/// What has become of an operator that failed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Trouble {
    /// It has failed, and is to be started anew.
    pub restarting: bool,
    /// The run goes on without it.
    pub isolated: bool,
    /// In all.
    pub restarts: u64,
    /// Failures of this row.
    pub row: u32,
    /// When it was started anew last, on the run's clock.
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
