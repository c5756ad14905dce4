//! Operators made of closures.

use crate::graph::{Graph, Handle};
use crate::operator::message::Message;
use crate::operator::ports::{Merge, Ports};
use crate::operator::{Operator, Step};
use crate::{Context, Error, Input, Output};

/// A source made of a closure: each call returns the next message, and `None` ends the source. See
/// [`Graph::source`].
pub struct FnSource<M: Message, F> {
    /// Output port of the closure's messages.
    pub out: Output<M>,
    next: F,
}

impl<M: Message, F: FnMut() -> Option<M> + Send + 'static> Operator for FnSource<M, F> {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    #[inline]
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        match (self.next)() {
            Some(message) => {
                self.out.push(cx, message)?;
                Ok(Step::Again)
            }
            None => Ok(Step::Done),
        }
    }
}

/// A map made of a closure: one message in, one out. See [`Graph::map`].
pub struct FnMap<A: Message, B: Message, F> {
    /// Input port. Messages of several edges are taken in the order of their source times.
    pub input: Input<A>,
    /// Output port of the closure's messages.
    pub out: Output<B>,
    map: F,
}

impl<A: Message, B: Message, F: FnMut(A) -> B + Send + 'static> Operator for FnMap<A, B, F> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input).many(Merge::Ordered);
        p.output("out", &mut self.out);
    }

    #[inline]
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(message) = self.input.pop(cx) {
            let result = (self.map)(message);
            self.out.push(cx, result)?;
        }
        Ok(Step::Wait)
    }
}

/// A sink made of a closure. See [`Graph::sink`].
pub struct FnSink<M: Message, F> {
    /// Input port. Messages of several edges are taken in the order of their source times.
    pub input: Input<M>,
    take: F,
}

impl<M: Message, F: FnMut(M) + Send + 'static> Operator for FnSink<M, F> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input).many(Merge::Ordered);
    }

    #[inline]
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(message) = self.input.pop(cx) {
            (self.take)(message);
        }
        Ok(Step::Wait)
    }
}

impl Graph {
    /// Adds a source whose messages a closure makes, until it returns `None`. Its output is called `out`.
    pub fn source<M: Message, F: FnMut() -> Option<M> + Send + 'static>(
        &mut self,
        name: impl Into<String>,
        next: F,
    ) -> Handle<FnSource<M, F>> {
        self.add(name, FnSource { out: Output::default(), next })
    }

    /// Adds an operator that converts each message with a closure. Its ports are called `in` and `out`.
    pub fn map<A: Message, B: Message, F: FnMut(A) -> B + Send + 'static>(
        &mut self,
        name: impl Into<String>,
        map: F,
    ) -> Handle<FnMap<A, B, F>> {
        self.add(name, FnMap { input: Input::default(), out: Output::default(), map })
    }

    /// Adds a sink that passes each message to a closure. Its input is called `in`.
    pub fn sink<M: Message, F: FnMut(M) + Send + 'static>(
        &mut self,
        name: impl Into<String>,
        take: F,
    ) -> Handle<FnSink<M, F>> {
        self.add(name, FnSink { input: Input::default(), take })
    }
}
