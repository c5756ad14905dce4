//! Sum of two streams.

use onbeat_runtime::{Chunk, Context, Error, Input, Kind, Operator, Output, Ports, Stamp, Step, Tag};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds two streams sample by sample: output `k` is `a[k] + b[k]`, independent of chunk borders.
///
/// Both streams must have the same sample rate. Tags of both stay on their samples; on the same sample, tags
/// of `a` come first. The operator ends with the shorter stream, and a note says that the rest of the other
/// was not read.
#[derive(Default)]
pub struct Add {
    /// First summand.
    pub a: Input<Chunk<f32>>,
    /// Second summand.
    pub b: Input<Chunk<f32>>,
    /// The sum.
    pub out: Output<Chunk<f32>>,
    held_a: Option<Held>,
    held_b: Option<Held>,
    rate_hz: Option<f64>,
    sent: u64,
}

/// A chunk in hand, how much of it is used up, and the stamp that it came with.
struct Held {
    chunk: Chunk<f32>,
    used: usize,
    stamp: Stamp,
}

impl Held {
    /// Makes sure that there is one with samples left. Says whether there is.
    fn take(held: &mut Option<Held>, input: &mut Input<Chunk<f32>>, cx: &mut Context) -> bool {
        while held.as_ref().is_none_or(|held| held.used == held.chunk.len()) {
            *held = input.pop_stamped(cx).map(|(chunk, stamp)| Held { chunk, used: 0, stamp });
            if held.is_none() {
                return false;
            }
        }
        true
    }

    fn rest(&self) -> &[f32] {
        &self.chunk[self.used..]
    }

    /// Moves the tags on the next `count` samples.
    fn take_tags(&self, count: usize, tags: &mut Vec<Tag>) {
        let next = self.used..self.used + count;
        let on_them = self.chunk.tags().iter().filter(|tag| next.contains(&tag.offset));
        tags.extend(on_them.map(|tag| Tag { offset: tag.offset - self.used, ..tag.clone() }));
    }
}

impl Add {
    /// Creates a sum of two streams.
    pub fn new() -> Self {
        Add::default()
    }

    fn check_rates(&mut self) -> Result<(), Error> {
        let (Some(a), Some(b)) = (&self.held_a, &self.held_b) else { return Ok(()) };
        let (a_hz, b_hz) = (a.chunk.rate_hz(), b.chunk.rate_hz());
        let known_hz = *self.rate_hz.get_or_insert(a_hz);
        if a_hz == known_hz && b_hz == known_hz {
            return Ok(());
        }
        Err(Error::new(format!(
            "the sample rates of `a` and `b` are {a_hz} Hz and {b_hz} Hz (at the start: {known_hz} Hz): both \
             streams must have the same rate; resample one of them"
        )))
    }

    /// Adds as many samples as both have, up to a chunk. Says whether it did.
    fn add(&mut self, cx: &mut Context, sum: &mut Chunk<f32>) -> usize {
        let (Some(a), Some(b)) = (&mut self.held_a, &mut self.held_b) else { return 0 };
        let count = a.rest().len().min(b.rest().len()).min(sum.capacity());
        sum.truncate(count);
        let samples = sum.edit_unique().expect("a new chunk is not shared");
        for ((y, a), b) in samples.iter_mut().zip(a.rest()).zip(b.rest()) {
            *y = a + b;
        }
        let info = sum.info_mut();
        info.start = self.sent;
        info.rate_hz = a.chunk.rate_hz();
        if !a.chunk.tags().is_empty() || !b.chunk.tags().is_empty() {
            a.take_tags(count, &mut info.tags);
            b.take_tags(count, &mut info.tags);
            info.tags.sort_by_key(|tag| tag.offset);
        }
        cx.set_stamp(a.stamp.older(b.stamp));
        (a.used, b.used) = (a.used + count, b.used + count);
        self.sent += count as u64;
        count
    }

    /// Whether one stream has ended. Adds a note if the other has samples left.
    fn ended(&mut self, cx: &mut Context, has_a: bool, has_b: bool) -> bool {
        let a_ended = !has_a && self.a.is_ended(cx);
        let b_ended = !has_b && self.b.is_ended(cx);
        match (a_ended, b_ended) {
            (false, false) => return false,
            (true, true) => return true,
            // The other stream may have ended too without having signalled it yet: wait for it.
            (true, false) if !has_b && self.b.is_empty(cx) => return false,
            (false, true) if !has_a && self.a.is_empty(cx) => return false,
            _ => {}
        }
        let (ended, other) = if a_ended { ("a", "b") } else { ("b", "a") };
        cx.note(format!("`{ended}` ended after {} samples; the rest of `{other}` is not read", self.sent));
        true
    }
}

impl Operator for Add {
    fn ports(&mut self, p: &mut Ports) {
        p.input("a", &mut self.a);
        p.input("b", &mut self.b);
        p.output("out", &mut self.out).fresh();
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        loop {
            let has_a = Held::take(&mut self.held_a, &mut self.a, cx);
            let has_b = Held::take(&mut self.held_b, &mut self.b, cx);
            if !has_a || !has_b {
                if self.ended(cx, has_a, has_b) {
                    return Ok(Step::Done);
                }
                // The one in hand need not have a message for the next step.
                if has_a {
                    self.a.keep(cx);
                } else if has_b {
                    self.b.keep(cx);
                }
                return Ok(Step::Wait);
            }
            self.check_rates()?;
            if self.out.room(cx) == 0 {
                return Ok(Step::Again);
            }
            let Some(mut sum) = self.out.chunk(cx) else { return Ok(Step::Again) };
            if self.add(cx, &mut sum) > 0 {
                self.out.push(cx, sum)?;
            }
        }
    }
}

/// `add` has no parameters.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AddParameters {}

pub(crate) fn kind() -> Kind {
    Kind::new("add", "y = a + b, sample by sample", "", |_: &AddParameters, _| Ok(Add::new()))
}
