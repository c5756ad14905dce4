//! Results of a benchmark, in one form for all benchmarks.

pub use onbeat_trace::Machine;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Results of one benchmark, with everything that explains its figures.
///
/// ```
/// use onbeat_report::{BenchResult, Figure};
/// let mut result = BenchResult::new("overhead", onbeat_report::bench::Machine::default());
/// result.add("steady.greedy.tx_rx", &[9.0, 8.0, 13.0], "ns");
/// let figure = Figure { value: 9.0, unit: "ns".into(), min: 8.0, max: 13.0, runs: 3 };
/// assert_eq!(result.figures["steady.greedy.tx_rx"], figure);
/// assert_eq!(result.raw["steady.greedy.tx_rx"][2], 13.0);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchResult {
    /// Name of the benchmark, as on the command line.
    pub bench: String,
    /// Machine on which it ran.
    pub machine: Machine,
    /// Parameters, including defaults.
    pub parameters: Map<String, Value>,
    /// Figures by dotted name, from the general to the particular: `steady.greedy.tx_rx`.
    pub figures: BTreeMap<String, Figure>,
    /// Notes for reading the figures: omissions and their reasons, replacements, load from other programs.
    pub notes: Vec<String>,
    /// Values of all runs, by the name of the figure, in the order of the runs.
    pub raw: Map<String, Value>,
}

/// Median of several runs, with its range.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Median of the runs.
    pub value: f64,
    /// Unit: `ns`, `1/iteration`, `%`.
    pub unit: String,
    /// Smallest value of the runs.
    pub min: f64,
    /// Largest value of the runs.
    pub max: f64,
    /// Number of runs.
    pub runs: usize,
}

impl BenchResult {
    /// Creates an empty result of a benchmark on a machine.
    #[must_use]
    pub fn new(bench: impl Into<String>, machine: Machine) -> Self {
        BenchResult {
            bench: bench.into(),
            machine,
            parameters: Map::new(),
            figures: BTreeMap::new(),
            notes: Vec::new(),
            raw: Map::new(),
        }
    }

    /// Adds the values of the runs as a figure. Adds nothing if none of them is finite.
    pub fn add(&mut self, name: &str, runs: &[f64], unit: &str) {
        if let Some(figure) = Figure::of(runs, unit) {
            self.figures.insert(name.to_owned(), figure);
            self.raw.insert(name.to_owned(), runs.into());
        }
    }

    /// Returns the value of a figure.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<f64> {
        self.figures.get(name).map(|figure| figure.value)
    }
}

impl Figure {
    /// Returns the median, smallest and largest of the finite values; `None` if there are none. The median of
    /// an even number of values is the mean of the middle two.
    #[must_use]
    pub fn of(runs: &[f64], unit: impl Into<String>) -> Option<Figure> {
        let mut sorted: Vec<f64> = runs.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Figure { value: low + (high - low) / 2.0, unit: unit.into(), min, max, runs: sorted.len() })
    }
}
