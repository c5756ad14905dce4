//! Samples of several inputs that a step takes together although they do not belong together.
//!
//! An operator that pops a chunk from each of two inputs, and combines their samples one by one, is right
//! only as long as both streams are cut into the same chunks. Nothing but this check would show that they are
//! not. Operators that align their streams use [`Input::pop_stamped`](crate::Input::pop_stamped), which is
//! not checked.

use super::{Context, STARVED};
use crate::Error;

/// Place of a chunk in its stream: number of its first sample, number of samples, and their rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SampleSpan {
    pub start: u64,
    pub samples: usize,
    pub rate_hz: f64,
}

/// What the current step of an operator with several inputs took.
#[derive(Debug, Default)]
pub(crate) struct PairCheck {
    /// The edge and the place of the first chunk.
    first: Option<(u32, SampleSpan)>,
    /// Two edges whose chunks do not match.
    torn: Option<[(u32, SampleSpan); 2]>,
    /// Edge that had ended when the step asked it for a message.
    ended: Option<u32>,
    /// Edge that a message was taken from.
    taken: Option<u32>,
}

impl Context {
    /// Begins a step of an operator with several inputs.
    pub(crate) fn begin_pairs(&mut self) {
        self.sent_away = false;
        let pairs = &mut self.joining.pairs;
        // One by one: only the tags of the options are written, in each step of such an operator.
        pairs.first = None;
        pairs.torn = None;
        pairs.ended = None;
        pairs.taken = None;
    }

    fn has_sent(&self) -> bool {
        self.next < STARVED || self.sent_away
    }

    /// Notes that a step took a message of an edge. `span` is the place of a chunk.
    pub(crate) fn note_taken(&mut self, edge: u32, span: Option<SampleSpan>) {
        let has_sent = self.has_sent();
        let pairs = &mut self.joining.pairs;
        pairs.taken.get_or_insert(edge);
        let Some(span) = span else { return };
        match pairs.first {
            Some((other, first)) if other != edge && first != span && !has_sent => {
                pairs.torn = Some([(other, first), (edge, span)]);
            }
            Some((other, _)) if other != edge && !has_sent => {}
            _ => pairs.first = Some((edge, span)),
        }
    }

    /// Notes that a step asked an edge that has ended for a message.
    pub(crate) fn note_ended(&mut self, edge: u32) {
        self.joining.pairs.ended = Some(edge);
    }

    /// Returns the error of a step that sent something made of chunks that do not match.
    pub(crate) fn check_pairs(&mut self) -> Result<(), Error> {
        let Some([(a, first), (b, second)]) = self.joining.pairs.torn.take().filter(|_| self.has_sent())
        else {
            return Ok(());
        };
        let words = |SampleSpan { start, samples, rate_hz }: SampleSpan| {
            format!("samples {start} to {} at {rate_hz} Hz", start + samples.saturating_sub(1) as u64)
        };
        let (a, b) = (self.input_name(a), self.input_name(b));
        Err(Error::new(format!(
            "it made its output of {} of `{a}` and {} of `{b}`, which do not belong together: write a `Combine`, which \
             gets samples of the same positions, or take the chunks with `pop_stamped` if they are aligned elsewhere",
            words(first),
            words(second)
        )))
    }

    /// Returns what to note of a step that took a message while another input had ended, and sent nothing.
    pub(crate) fn unpaired(&mut self) -> Option<String> {
        let pairs = &self.joining.pairs;
        let (ended, taken) = pairs.ended.zip(pairs.taken).filter(|(ended, taken)| ended != taken)?;
        if self.has_sent() {
            return None;
        }
        let (ended, taken) = (self.input_name(ended), self.input_name(taken));
        Some(format!(
            "it takes messages of `{taken}` although `{ended}` has ended, and sends nothing for them: if each needs \
             one of both, look at `is_empty` before `pop`"
        ))
    }

    /// Name of the port that an edge leads to.
    fn input_name(&self, edge: u32) -> &str {
        let text = self.names.edges.get(edge as usize).map_or("", String::as_str);
        text.rsplit_once('.').map_or(text, |(_, port)| port)
    }
}
