//! What an operator did.

use super::keep::Kept;
use super::{Log, NAME, label, locked, unknown};
use crate::operator::chunk::Sample;
use crate::operator::message::{Message, Value};
use crate::operator::{Ending, Step};
use onbeat_trace::Record;
use std::sync::{Arc, Mutex};

/// One message that an operator sent: a chunk without its samples, or when a plain message came.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Piece {
    /// Index in the stream of its first sample.
    pub start: u64,
    /// How many samples it had; 1 for a plain message.
    pub length: usize,
    /// Samples per second.
    pub rate_hz: f64,
    /// Rows, columns and planes.
    pub shape: [u32; 3],
    /// Marks by their sample in the stream.
    pub tags: Vec<Mark>,
    /// Its source time.
    pub time_ns: u64,
    /// When it was taken, on the run's clock.
    pub at_ns: u64,
    /// Steps that the operator had begun by then, from 1: the step that sent it.
    pub step: usize,
}

/// A tag: its sample in the stream, its key, its value.
pub type Mark = (u64, String, Value);

/// What came to one output, to compare: its name, the bytes, the tags, the rate.
pub(super) type Whole = (String, Vec<u8>, Vec<Mark>, f64);

/// What an operator under test did: see [`Trial`](super::Trial).
pub struct Seen {
    record: Record,
    notes: Vec<String>,
    log: Log,
    outputs: Vec<(String, Arc<Mutex<Kept>>)>,
}

impl Seen {
    pub(super) fn new(record: Record, log: Log, outputs: Vec<(String, Arc<Mutex<Kept>>)>) -> Self {
        let prefix = format!("{NAME}: ");
        let notes = record.notes.iter().map(|note| note.strip_prefix(&prefix).unwrap_or(note).to_string());
        Seen { notes: notes.collect(), record, log, outputs }
    }

    fn kept(&self, output: &str) -> &Mutex<Kept> {
        let found = self.outputs.iter().find(|(name, _)| name == output);
        let known = || self.outputs.iter().map(|(name, _)| name.as_str());
        &found.unwrap_or_else(|| panic!("{}", unknown("output", output, known()))).1
    }

    fn values<T: Clone + 'static>(&self, output: &str, what: &str) -> Vec<T> {
        let kept = locked(self.kept(output));
        let values = kept.values.as_ref().and_then(|values| values.downcast_ref::<Vec<T>>());
        values
            .unwrap_or_else(|| panic!("the output `{output}` does not send {what} {}", label::<T>()))
            .clone()
    }

    /// All samples of a stream, without the cuts between chunks.
    ///
    /// # Panics
    /// When it has samples of another type, and when a chunk does not begin where the one before ended.
    pub fn samples<T: Sample>(&self, output: &str) -> Vec<T> {
        if let Some((piece, expected)) = self.gap(output) {
            panic!("a chunk of `{output}` begins at sample {} and not at {expected}", piece.start);
        }
        self.values(output, "samples of type")
    }

    /// The first chunk that does not begin where the one before ended, and where that was.
    pub(super) fn gap(&self, output: &str) -> Option<(Piece, u64)> {
        let kept = locked(self.kept(output));
        let mut next = kept.pieces.first()?.start;
        kept.pieces.iter().filter(|_| kept.is_chunks).find_map(|piece| {
            let expected = std::mem::replace(&mut next, piece.start + piece.length as u64);
            (piece.start != expected).then(|| (piece.clone(), expected))
        })
    }

    /// All messages.
    ///
    /// # Panics
    /// When they are of another type.
    pub fn messages<M: Message>(&self, output: &str) -> Vec<M> {
        self.values(output, "messages of type")
    }

    /// One for each message: where and when it came, and what a chunk had beside its samples.
    pub fn pieces(&self, output: &str) -> Vec<Piece> {
        locked(self.kept(output)).pieces.clone()
    }

    /// How many samples each chunk had.
    pub fn lengths(&self, output: &str) -> Vec<usize> {
        locked(self.kept(output)).pieces.iter().map(|piece| piece.length).collect()
    }

    /// Marks, by their sample in the stream.
    pub fn tags(&self, output: &str) -> Vec<Mark> {
        locked(self.kept(output)).pieces.iter().flat_map(|piece| piece.tags.clone()).collect()
    }

    /// Samples per second, of the last chunk; 0 where none came.
    pub fn rate_hz(&self, output: &str) -> f64 {
        locked(self.kept(output)).pieces.last().map_or(0.0, |piece| piece.rate_hz)
    }

    /// What the steps returned, one after the other. [`Piece::step`] says which of them sent a message.
    pub fn steps(&self) -> &[Step] {
        &self.log.steps
    }

    /// Whether it said itself that it is done. One that ends because its inputs did has not.
    pub fn is_done(&self) -> bool {
        self.log.steps.last() == Some(&Step::Done)
    }

    /// What it was told when it was stopped.
    pub fn ending(&self) -> Option<Ending> {
        self.log.ending
    }

    /// What it noted, without its name.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Data that it lost although no setting permits a loss: number, unit, reason.
    pub fn losses(&self) -> Vec<(u64, &str, &str)> {
        let of = self.record.operators.iter().find(|operator| operator.name == NAME);
        let losses = of.into_iter().flat_map(|operator| &operator.losses);
        losses.map(|loss| (loss.count, loss.unit.as_str(), loss.reason.as_str())).collect()
    }

    /// A figure that it measured itself: value and unit.
    pub fn measured(&self, what: &str) -> Option<(f64, &str)> {
        let of = self.record.operators.iter().find(|operator| operator.name == NAME);
        let found = of.into_iter().flat_map(|operator| &operator.measured).find(|one| one.what == what);
        found.map(|one| (one.value, one.unit.as_str()))
    }

    /// Everything that was measured. The operator is called `it`, what feeds it `feed0`, `feed1`, and so on.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// By output: what came, as bytes to compare, and its tags.
    pub(super) fn all(&self) -> Vec<Whole> {
        let one = |name: &String| {
            let bytes = locked(self.kept(name)).bytes.clone();
            (name.clone(), bytes, self.tags(name), self.rate_hz(name))
        };
        self.outputs.iter().map(|(name, _)| one(name)).collect()
    }
}
