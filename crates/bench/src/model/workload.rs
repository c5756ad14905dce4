//! Work of a graph, from the record of a run under `greedy`.

use super::MachineCosts;
use onbeat_trace::Record;

/// Work of a graph per iteration.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GraphLoad {
    /// Operators in topological order.
    pub operators: Vec<OperatorLoad>,
    /// Edges in the graph's order.
    pub edges: Vec<EdgeLoad>,
    /// Engine cost per step in that run.
    pub hop_ns: f64,
    /// Name of the edge whose messages count as iterations.
    pub counted: String,
    /// Iterations per second of that run.
    pub rate: f64,
    /// Share of the run in which its worker was idle: 0 to 1. Above a few hundredths, the sources set the
    /// pace.
    pub idle: f64,
}

/// One operator.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OperatorLoad {
    /// Its name.
    pub name: String,
    /// Steps per iteration.
    pub steps: f64,
    /// Time of a step in nanoseconds, without the engine.
    pub step_ns: f64,
    /// Whether the operator has no inputs.
    pub is_source: bool,
}

/// One edge.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EdgeLoad {
    /// Index of the sending operator.
    pub from: usize,
    /// Index of the receiving operator.
    pub to: usize,
    /// Messages per iteration.
    pub messages: f64,
    /// Bytes of samples per message; 0 for messages without samples.
    pub bytes: f64,
    /// Capacity in messages.
    pub capacity: f64,
}

impl OperatorLoad {
    /// Time of the operator per iteration.
    #[must_use]
    pub fn work_ns(&self) -> f64 {
        self.steps * self.step_ns
    }
}

impl GraphLoad {
    /// Computes the workload from a run with one worker; `None` if nothing was sent.
    #[must_use]
    pub fn of(record: &Record, costs: &MachineCosts) -> Option<GraphLoad> {
        let place = |end: &str| {
            // "operator.port": operator names can contain dots, port names cannot.
            let name = end.rsplit_once('.').map_or(end, |(operator, _)| operator);
            record.operators.iter().position(|operator| operator.name == name)
        };
        let ends: Vec<(usize, usize)> = record
            .edges
            .iter()
            .map(|edge| Some((place(&edge.from)?, place(&edge.to)?)))
            .collect::<Option<_>>()?;
        let is_source: Vec<bool> =
            (0..record.operators.len()).map(|at| ends.iter().all(|(_, to)| *to != at)).collect();
        let counted = (0..ends.len())
            .filter(|&at| is_source[ends[at].0])
            .max_by_key(|&at| (record.edges[at].received, std::cmp::Reverse(at)))?;
        let iterations = record.edges[counted].received as f64;
        let duration_ns = record.result.duration_ns as f64;
        if iterations == 0.0 || duration_ns == 0.0 {
            return None;
        }
        let idle_ns: f64 = record.threads.iter().map(|thread| thread.idle_ns as f64).sum();
        let work_ns = (duration_ns - idle_ns).max(duration_ns * 1e-3) / iterations;
        let mut operators: Vec<OperatorLoad> = record
            .operators
            .iter()
            .zip(&is_source)
            .map(|(operator, &is_source)| OperatorLoad {
                name: operator.name.clone(),
                steps: operator.steps as f64 / iterations,
                step_ns: (operator.step.mean_ns - costs.clock_ns).max(0.5),
                is_source,
            })
            .collect();
        // The remaining time is the engine's. A sample of steps can also come out longer than the steps were.
        let steps: f64 = operators.iter().map(|operator| operator.steps).sum();
        let sum: f64 = operators.iter().map(OperatorLoad::work_ns).sum();
        let least_ns = costs.hop_ns * 0.5 * steps;
        if sum + least_ns > work_ns {
            let factor = ((work_ns - least_ns) / sum).max(0.05);
            operators.iter_mut().for_each(|operator| operator.step_ns *= factor);
        }
        let sum: f64 = operators.iter().map(OperatorLoad::work_ns).sum();
        let edges = record.edges.iter().zip(&ends).map(|(edge, &(from, to))| EdgeLoad {
            from,
            to,
            messages: edge.received as f64 / iterations,
            bytes: edge.quantum_bytes.unwrap_or(0) as f64,
            capacity: edge.capacity as f64,
        });
        Some(GraphLoad {
            operators,
            edges: edges.collect(),
            hop_ns: ((work_ns - sum) / steps).max(0.0),
            counted: format!("{} → {}", record.edges[counted].from, record.edges[counted].to),
            rate: iterations * 1e9 / duration_ns,
            idle: (idle_ns / duration_ns).clamp(0.0, 1.0),
        })
    }

    /// Time of all operators per iteration, without the engine.
    #[must_use]
    pub fn work_ns(&self) -> f64 {
        self.operators.iter().map(OperatorLoad::work_ns).sum()
    }

    /// Times of the operators, including the engine's cost per step.
    pub(super) fn with_hop(&self, hop_ns: f64) -> Vec<f64> {
        self.operators.iter().map(|operator| operator.steps * (operator.step_ns + hop_ns)).collect()
    }

    /// The longest path from a source to an end, measured in the time that one message takes in each operator
    /// on it.
    #[must_use]
    pub fn longest_path_ns(&self) -> f64 {
        let mut until = vec![0.0_f64; self.operators.len()];
        let mut most = 0.0_f64;
        // Operators are in topological order; edges that close a cycle are skipped.
        for at in 0..self.operators.len() {
            let before = self.edges.iter().filter(|edge| edge.to == at && edge.from < at);
            let begin = before.map(|edge| until[edge.from]).fold(0.0, f64::max);
            until[at] = begin + self.operators[at].step_ns + self.hop_ns;
            most = most.max(until[at]);
        }
        most
    }

    /// Whether the sources set the pace, and not the machine.
    #[must_use]
    pub fn is_paced(&self) -> bool {
        self.idle > 0.1
    }
}
