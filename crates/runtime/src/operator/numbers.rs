//! Numbers of messages of a source, alone or shared with its replicas.

use crate::Context;
use crate::operator::message::SEQUENCE_MASK;
use onbeat_queue::Ranges;
use std::ops::Range;
use std::sync::Arc;

/// Count of numbers that a source takes at a time: enough that replicas rarely compete for them.
const WIDTH: u64 = 64;

/// Message counter of a source that can make each message from its number. It is shared by the source's
/// [replicas](crate::Operator::replica), each of which takes some numbers at a time. No number is taken
/// twice, and none is skipped.
///
/// ```
/// use onbeat_runtime::{Context, Error, Numbers, Operator, Output, Ports, Step};
///
/// /// The squares of the numbers below a limit.
/// struct Squares { out: Output<u64>, numbers: Numbers }
///
/// impl Operator for Squares {
///     fn ports(&mut self, p: &mut Ports) {
///         p.output("out", &mut self.out);
///     }
///     fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
///         let Some(n) = self.numbers.next() else { return Ok(Step::Done) };
///         self.numbers.used(cx);
///         self.out.push(cx, n * n)?;
///         Ok(Step::Again)
///     }
///     fn replica(&self) -> Option<Box<dyn Operator>> {
///         Some(Box::new(Squares { out: Output::default(), numbers: self.numbers.share() }))
///     }
/// }
/// let squares = Squares { out: Output::default(), numbers: Numbers::below(Some(1000)) };
/// ```
#[derive(Debug)]
pub struct Numbers {
    shared: Arc<Ranges>,
    own: Range<u64>,
    /// Those behind them, where it was asked for.
    ahead: Range<u64>,
}

impl Numbers {
    /// The numbers from 0 up, below `limit` if there is one.
    #[must_use]
    pub fn below(limit: Option<u64>) -> Self {
        Numbers { shared: Arc::new(Ranges::new(limit.unwrap_or(u64::MAX), WIDTH)), own: 0..0, ahead: 0..0 }
    }

    /// Makes a counter for a replica: each number goes to only one of both.
    #[must_use]
    pub fn share(&self) -> Self {
        Numbers { shared: Arc::clone(&self.shared), own: 0..0, ahead: 0..0 }
    }

    /// Returns the number of the message to make. It stays the same until it is [used](Numbers::used). `None`
    /// if no numbers are left.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "asking does not use a number up")]
    pub fn next(&mut self) -> Option<u64> {
        if self.own.is_empty() {
            self.own = self.shared.claim();
        }
        (!self.own.is_empty()).then_some(self.own.start)
    }

    /// As [`next`](Numbers::next), where it is known that another number follows; `None` also where that is
    /// not known.
    #[inline]
    pub fn next_of_several(&mut self) -> Option<u64> {
        if self.own.end - self.own.start == 1 && self.ahead.is_empty() {
            self.ahead = self.shared.claim();
        }
        let several = self.own.end - self.own.start > 1 || !(self.own.is_empty() || self.ahead.is_empty());
        several.then_some(self.own.start)
    }

    /// Counts the number as used. The stamp of the messages that this step pushes gets it.
    #[inline]
    pub fn used(&mut self, cx: &mut Context) {
        cx.stamp.origin = cx.stamp.origin & !SEQUENCE_MASK | self.own.start & SEQUENCE_MASK;
        self.own.start += 1;
        if self.own.is_empty() {
            self.own = std::mem::replace(&mut self.ahead, 0..0);
        }
    }
}
