//! Numbers of messages that a source makes, alone or beside others of its kind.

use crate::Context;
use crate::operator::message::SEQUENCE_MASK;
use onbeat_queue::Ranges;
use std::ops::Range;
use std::sync::Arc;

/// How many numbers a source takes at a time: so seldom that those who share them hardly ever meet.
const WIDTH: u64 = 64;

/// What a source counts its messages with that can make each of them by its number: shared by its
/// [replicas](crate::Operator::replica), each of which takes some numbers at a time. No number is taken
/// twice, and none left out.
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

    /// For a replica: what one of both takes the other does not.
    #[must_use]
    pub fn share(&self) -> Self {
        Numbers { shared: Arc::clone(&self.shared), own: 0..0, ahead: 0..0 }
    }

    /// The number of the message to make; the same one until it is [used](Numbers::used). `None` when there
    /// are no more.
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

    /// The message is made and will be pushed in this step: its stamp has this number.
    #[inline]
    pub fn used(&mut self, cx: &mut Context) {
        cx.stamp.origin = cx.stamp.origin & !SEQUENCE_MASK | self.own.start & SEQUENCE_MASK;
        self.own.start += 1;
        if self.own.is_empty() {
            self.own = std::mem::replace(&mut self.ahead, 0..0);
        }
    }
}
