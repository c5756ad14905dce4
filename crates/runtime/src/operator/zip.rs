//! Pairs of messages of two inputs, by their source time.

use crate::operator::message::{Message, Stamp};
use crate::operator::port::{Input, Output};
use crate::operator::ports::Ports;
use crate::operator::{Ending, Operator, Step};
use crate::{Context, Error};

/// Which messages belong together.
#[derive(Debug, Clone, Copy)]
enum Rule {
    /// Those whose source times differ by at most this, in nanoseconds.
    Within(u64),
    /// Each of `a`, with the last one of `b` that is not younger.
    Held,
}

/// An operator on pairs of messages of two inputs, `a` and `b`, that belong together by their source times:
/// [`Zip::new`] pairs messages of equal time, [`within`](Zip::within) those of almost equal time, and
/// [`held`](Zip::held) each of `a` with the last one of `b`.
///
/// The inputs must come in the order of time. The output has the older one of both stamps. A message without
/// a partner is left out; a note says how many there were. The operator ends when no further pair can come.
///
/// ```
/// use onbeat_runtime::Zip;
/// use onbeat_runtime::testing::{Feed, Trial};
///
/// let difference = Zip::new(|a: f64, b: f64| a - b);
/// let seen = Trial::new(difference)
///     .feed("a", Feed::messages([5.0, 6.0, 7.0]))
///     .feed("b", Feed::messages([1.0, 2.0, 3.0]))
///     .run();
/// assert_eq!(seen.messages::<f64>("out"), [4.0, 4.0, 4.0]);
/// ```
pub struct Zip<A: Message, B: Message, Y: Message, F> {
    /// The first message of each pair.
    pub a: Input<A>,
    /// The second one.
    pub b: Input<B>,
    /// What the function made of each pair.
    pub out: Output<Y>,
    function: F,
    rule: Rule,
    next_a: Option<(A, Stamp)>,
    next_b: Option<(B, Stamp)>,
    last: Option<B>,
    alone: [u64; 2],
}

impl<A: Message, B: Message, Y: Message, F: FnMut(A, B) -> Y + Send + 'static> Zip<A, B, Y, F> {
    /// Pairs messages of the same source time.
    pub fn new(function: F) -> Self {
        Zip {
            a: Input::default(),
            b: Input::default(),
            out: Output::default(),
            function,
            rule: Rule::Within(0),
            next_a: None,
            next_b: None,
            last: None,
            alone: [0; 2],
        }
    }

    /// Pairs messages whose source times differ by at most `ns` nanoseconds. Of two that could be the partner
    /// the earlier one is taken, so it should be less than half of the time between two messages.
    #[must_use]
    pub fn within(mut self, ns: u64) -> Self {
        self.rule = Rule::Within(ns);
        self
    }

    /// Pairs each message of `a` with the last one of `b` whose source time is not later. It waits for the
    /// next one of `b`, or for its end, to know which one that is.
    #[must_use]
    pub fn held(mut self) -> Self {
        self.rule = Rule::Held;
        self
    }

    fn fill(&mut self, cx: &mut Context) {
        if self.next_a.is_none() {
            self.next_a = self.a.pop_stamped(cx);
        }
        if self.next_b.is_none() {
            self.next_b = self.b.pop_stamped(cx);
        }
    }

    fn send(&mut self, (a, stamp): (A, Stamp), b: B, cx: &mut Context) -> Result<(), Error> {
        cx.set_stamp(stamp);
        let message = (self.function)(a, b);
        self.out.push(cx, message)
    }

    /// Sends the next pair, or leaves out a message. Returns whether there may be more to do.
    fn pair(&mut self, within_ns: u64, cx: &mut Context) -> Result<bool, Error> {
        let (Some((_, a)), Some((_, b))) = (&self.next_a, &self.next_b) else { return Ok(false) };
        let (a_ns, b_ns, stamp) = (a.time_ns, b.time_ns, a.older(*b));
        if a_ns.abs_diff(b_ns) <= within_ns {
            if let (Some((a, _)), Some((b, _))) = (self.next_a.take(), self.next_b.take()) {
                self.send((a, stamp), b, cx)?;
            }
        } else if a_ns < b_ns {
            self.next_a = None;
            self.alone[0] += 1;
        } else {
            self.next_b = None;
            self.alone[1] += 1;
        }
        Ok(true)
    }

    /// [`pair`](Self::pair), with the last message of `b`.
    fn pair_held(&mut self, cx: &mut Context) -> Result<bool, Error> {
        let Some((_, Stamp { time_ns, .. })) = self.next_a else { return Ok(false) };
        match self.next_b.take_if(|(_, b)| b.time_ns <= time_ns) {
            Some((b, _)) => self.last = Some(b),
            None if self.next_b.is_some() || self.b.is_ended(cx) => {
                match (self.next_a.take(), self.last.clone()) {
                    (Some(a), Some(b)) => self.send(a, b, cx)?,
                    _ => self.alone[0] += 1,
                }
            }
            None => return Ok(false),
        }
        Ok(true)
    }
}

impl<A: Message, B: Message, Y: Message, F: FnMut(A, B) -> Y + Send + 'static> Operator for Zip<A, B, Y, F> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("a", &mut self.a);
        p.input("b", &mut self.b);
        p.output("out", &mut self.out);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        loop {
            if self.out.room(cx) == 0 {
                return Ok(Step::Again);
            }
            self.fill(cx);
            let goes_on = match self.rule {
                Rule::Within(ns) => self.pair(ns, cx)?,
                Rule::Held => self.pair_held(cx)?,
            };
            if !goes_on {
                break;
            }
        }
        let a_is_over = self.next_a.is_none() && self.a.is_ended(cx);
        let b_is_over = self.next_b.is_none() && self.b.is_ended(cx) && matches!(self.rule, Rule::Within(_));
        if a_is_over || b_is_over {
            return Ok(Step::Done);
        }
        if self.next_a.is_some() {
            self.a.keep(cx);
        }
        if self.next_b.is_some() {
            self.b.keep(cx);
        }
        Ok(Step::Wait)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.alone[0] += u64::from(self.next_a.take().is_some());
        self.alone[1] += u64::from(self.next_b.take().is_some() && matches!(self.rule, Rule::Within(_)));
        let [a, b] = std::mem::take(&mut self.alone);
        if a + b == 0 || ending == Ending::Failed {
            return Ok(());
        }
        cx.note(match self.rule {
            Rule::Within(ns) => {
                format!(
                    "{a} messages of `a` and {b} of `b` have no partner within {ns} ns, and were left out"
                )
            }
            Rule::Held => format!("{a} messages of `a` came before the first one of `b`, and were left out"),
        });
        Ok(())
    }
}
