//! What a bench found: the same form for every bench, so that one reader serves all of them.

pub use onbeat_trace::Machine;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One bench, run once, with everything that explains its figures.
///
/// ```
/// use onbeat_report::{BenchResult, Figure};
/// let mut result = BenchResult::new("overhead", onbeat_report::bench::Machine::default());
/// result.add("steady.greedy.tx_rx", &[9.0, 8.0, 13.0], "ns");
/// assert_eq!(result.figures["steady.greedy.tx_rx"], Figure { value: 9.0, unit: "ns".into(), min: 8.0, max: 13.0, runs: 3 });
/// assert_eq!(result.raw["steady.greedy.tx_rx"][2], 13.0);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchResult {
    /// Which bench: the name that the command line has for it.
    pub bench: String,
    /// The machine that it ran on.
    pub machine: Machine,
    /// What it was asked to do, defaults included.
    pub parameters: Map<String, Value>,
    /// By dotted name, from the general to the particular: `steady.greedy.tx_rx`.
    pub figures: BTreeMap<String, Figure>,
    /// What a reader of the figures has to know: what was left out and why, what was substituted, who else was busy.
    pub notes: Vec<String>,
    /// What the figures were made of: by the name of a figure the value of each run, in their order.
    pub raw: Map<String, Value>,
}

/// One number, with how far it can be trusted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The median over the runs.
    pub value: f64,
    /// What it is counted in: `ns`, `1/iteration`, `%`.
    pub unit: String,
    /// The smallest of all runs.
    pub min: f64,
    /// The largest of all runs.
    pub max: f64,
    /// How many runs there were.
    pub runs: usize,
}

impl BenchResult {
    /// Of that bench on that machine; nothing measured yet.
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

    /// Adds what the runs gave. Nothing where there was no run, or none with a finite value.
    pub fn add(&mut self, name: &str, runs: &[f64], unit: &str) {
        if let Some(figure) = Figure::of(runs, unit) {
            self.figures.insert(name.to_owned(), figure);
            self.raw.insert(name.to_owned(), runs.into());
        }
    }

    /// The value of a figure.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<f64> {
        self.figures.get(name).map(|figure| figure.value)
    }
}

impl Figure {
    /// Median, smallest and largest of these; `None` where none of them is finite. Of an even number the median is between
    /// the two in the middle.
    #[must_use]
    pub fn of(runs: &[f64], unit: impl Into<String>) -> Option<Figure> {
        let mut sorted: Vec<f64> = runs.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Figure { value: low + (high - low) / 2.0, unit: unit.into(), min, max, runs: sorted.len() })
    }
}
