//! Reference for random graphs: the expected output, computed on whole streams, one node after the other.

use crate::operators::{pattern, tagged};
use crate::spec::{Node, Spec};

/// Output of one node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Data {
    pub samples: Vec<f32>,
    /// Index of a tagged sample, and the tag's value.
    pub tags: Vec<(u64, i64)>,
    /// Time, sequence, value.
    pub messages: Vec<(u64, u64, u64)>,
}

impl Data {
    /// Where two of them differ first, for a message.
    pub fn difference(&self, other: &Data) -> String {
        let at = self.samples.iter().zip(&other.samples).position(|(x, y)| x.to_bits() != y.to_bits());
        let tag = self.tags.iter().zip(&other.tags).position(|(x, y)| x != y);
        let lengths = |data: &Data| [data.samples.len(), data.tags.len(), data.messages.len()];
        format!(
            "sample {at:?}, tag {tag:?}, of {:?} samples, tags, messages where {:?} are expected",
            lengths(self),
            lengths(other)
        )
    }

    /// Whether both are equal bit by bit.
    pub fn same_as(&self, other: &Data) -> bool {
        let bits = |data: &Data| data.samples.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        bits(self) == bits(other) && self.tags == other.tags && self.messages == other.messages
    }
}

pub fn evaluate(spec: &Spec) -> Vec<Data> {
    let mut done: Vec<Data> = Vec::new();
    for node in &spec.nodes {
        let data = match node {
            Node::Samples { seed, len } => Data {
                samples: (0..*len).map(|n| pattern(*seed, n)).collect(),
                tags: (0..*len).filter(|&n| tagged(*seed, n)).map(|n| (n, n as i64)).collect(),
                ..Data::default()
            },
            Node::Messages { len, period } => {
                Data { messages: (0..*len).map(|n| (n * period, n, n)).collect(), ..Data::default() }
            }
            Node::Scale { input, a } => {
                let input = &done[*input];
                Data { samples: input.samples.iter().map(|x| a * x).collect(), ..input.clone() }
            }
            Node::Keep { input, k } => kept(&done[*input], *k),
            Node::Repeat { input, k } => repeated(&done[*input], *k),
            Node::Average { input, n } => averaged(&done[*input], *n),
            Node::Symmetric { input, reach, k } => summed(&done[*input], *reach, *k),
            Node::Saw { input, period } => {
                let input = &done[*input];
                let samples = input.samples.iter().zip(0..).map(|(x, n)| x + (n % period) as f32);
                Data { samples: samples.collect(), ..input.clone() }
            }
            Node::Add { a, b } => {
                let (a, b) = (&done[*a], &done[*b]);
                let samples: Vec<f32> = a.samples.iter().zip(&b.samples).map(|(x, y)| x + y).collect();
                let tags = a.tags.iter().filter(|&&(at, _)| at < samples.len() as u64).copied().collect();
                Data { samples, tags, ..Data::default() }
            }
            Node::Filter { input, modulus } => {
                let messages = done[*input].messages.iter().filter(|m| m.2 % modulus == 0).copied().collect();
                Data { messages, ..Data::default() }
            }
            Node::Total { input, start } => {
                let mut total = *start;
                let messages = done[*input].messages.iter().map(|&(time, sequence, value)| {
                    total = total.wrapping_add(value);
                    (time, sequence, total)
                });
                Data { messages: messages.collect(), ..Data::default() }
            }
            Node::Merge { inputs } => merged(inputs.iter().map(|&input| &done[input])),
        };
        done.push(data);
    }
    done
}

fn kept(input: &Data, k: u32) -> Data {
    let samples: Vec<f32> = input.samples.iter().step_by(k as usize).copied().collect();
    // On the next sample that is kept, if there is one.
    let tags = input.tags.iter().map(|&(at, value)| (at.div_ceil(u64::from(k)), value));
    Data { tags: tags.filter(|&(at, _)| at < samples.len() as u64).collect(), samples, ..Data::default() }
}

fn repeated(input: &Data, k: u32) -> Data {
    Data {
        samples: input.samples.iter().flat_map(|&x| std::iter::repeat_n(x, k as usize)).collect(),
        tags: input.tags.iter().map(|&(at, value)| (at * u64::from(k), value)).collect(),
        ..Data::default()
    }
}

fn summed(input: &Data, reach: usize, k: u32) -> Data {
    let sum = |at: usize| {
        // In the order of arrival.
        let zeros = |count: usize| std::iter::repeat_n(0.0, count);
        let (begin, end) = (at.saturating_sub(reach), (at + reach + 1).min(input.samples.len()));
        let window = zeros(reach - (at - begin)).chain(input.samples[begin..end].iter().copied());
        window.chain(zeros(at + reach + 1 - end)).sum::<f32>()
    };
    let samples: Vec<f32> = (0..input.samples.len()).step_by(k as usize).map(sum).collect();
    Data { samples, ..kept(input, k) }
}

fn averaged(input: &Data, n: usize) -> Data {
    let mean = |at: usize| {
        // In the order of arrival, as the operator adds: f32 sums depend on it.
        let last = &input.samples[(at + 1).saturating_sub(n)..=at];
        let zeros = n - last.len();
        std::iter::repeat_n(0.0, zeros).chain(last.iter().copied()).sum::<f32>() / n as f32
    };
    Data { samples: (0..input.samples.len()).map(mean).collect(), ..input.clone() }
}

/// Merges by time, then sequence, then edge.
fn merged<'a>(inputs: impl Iterator<Item = &'a Data>) -> Data {
    let mut rest: Vec<_> = inputs.map(|input| input.messages.iter().peekable()).collect();
    let mut messages = Vec::new();
    loop {
        let next =
            rest.iter_mut().enumerate().filter_map(|(edge, input)| input.peek().map(|m| (m.0, m.1, edge)));
        let Some((_, _, edge)) = next.min() else { break };
        messages.extend(rest[edge].next());
    }
    Data { messages, ..Data::default() }
}
