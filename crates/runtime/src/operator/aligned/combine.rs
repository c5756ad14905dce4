//! Operators that make a sample out of the samples at the same position of several streams.

use super::reading::{self, Common};
use super::streams::{Streams, waiting};
use crate::operator::changes::Changes;
use crate::operator::chunk::{Chunk, Sample, Tag};
use crate::operator::kernel::{Change, not_settable};
use crate::operator::message::Stamp;
use crate::operator::port::Output;
use crate::operator::ports::Ports;
use crate::operator::stream::say;
use crate::operator::{Ending, Operator, Step};
use crate::{Context, Error, Value};
use std::marker::PhantomData;

/// A function of several streams, sample by sample. [`Combined::new`] makes an operator of it.
///
/// ```
/// use onbeat_runtime::testing::{Feed, Trial};
/// use onbeat_runtime::{Combine, Combined};
///
/// /// y = a · b
/// struct Product;
///
/// impl Combine for Product {
///     type In = (f32, f32);
///     type Out = f32;
///     fn combine(&mut self, (a, b): (&[f32], &[f32]), out: &mut [f32]) {
///         for ((y, a), b) in out.iter_mut().zip(a).zip(b) {
///             *y = a * b;
///         }
///     }
/// }
///
/// let a = Feed::samples([1.0f32, 2.0, 3.0]).cut(&[2]);
/// let b = Feed::samples([4.0f32, 5.0, 6.0]).cut(&[1]);
/// let seen = Trial::new(Combined::new(Product)).feed("a", a).feed("b", b).run();
/// assert_eq!(seen.samples::<f32>("out"), [4.0, 10.0, 18.0]);
/// ```
pub trait Combine: Send + 'static {
    /// Types of the streams: `(f32, f32)`, another tuple of two to four sample types, or `[f32]` for any
    /// number of streams of one type.
    type In: Streams + ?Sized;
    /// Type of an output sample.
    type Out: Sample;

    /// Returns the names of the inputs. The default is `a`, `b`, `c`, `d` for a tuple, and `in0`, `in1` for a
    /// slice type; a slice type has as many inputs as names.
    fn inputs(&self) -> Vec<String> {
        Self::In::names()
    }

    /// Like [`Kernel::start`](crate::Kernel::start).
    ///
    /// # Errors
    /// Like [`Kernel::start`](crate::Kernel::start).
    fn start(&mut self, rate_hz: f64) -> Result<(), Error> {
        let _ = rate_hz;
        Ok(())
    }

    /// Returns the number of output samples for one sample of each stream. The default is 1.
    fn outputs(&self) -> usize {
        1
    }

    /// Returns the output position of a tag on a sample of a stream. The default is that of the first output
    /// sample that it has a part in.
    fn place(&self, sample: usize, stream: usize) -> usize {
        let _ = stream;
        sample * self.outputs()
    }

    /// Writes the output for some samples of each stream, all at the same positions. `out` has
    /// [`outputs`](Combine::outputs) samples for each.
    fn combine(&mut self, inputs: <Self::In as Streams>::Slices<'_>, out: &mut [Self::Out]);

    /// Like [`Kernel::note`](crate::Kernel::note).
    fn note(&self) -> Option<String> {
        None
    }

    /// Like [`Kernel::settable`](crate::Kernel::settable).
    fn settable(&self) -> &'static [&'static str] {
        &[]
    }

    /// Like [`Kernel::change`](crate::Kernel::change).
    ///
    /// # Errors
    /// Like [`Kernel::change`](crate::Kernel::change).
    fn change(&self, name: &str, value: &Value) -> Result<Change<Self>, Error>
    where
        Self: Sized,
    {
        let _ = value;
        Err(not_settable(name))
    }
}

/// A function of two streams, as a [`Combine`].
pub struct FnCombine<A, B, Y, F> {
    function: F,
    types: PhantomData<fn(A, B) -> Y>,
}

impl<A, B, Y, F> Combine for FnCombine<A, B, Y, F>
where
    A: Sample,
    B: Sample,
    Y: Sample,
    F: FnMut(&[A], &[B], &mut [Y]) + Send + 'static,
{
    type In = (A, B);
    type Out = Y;

    fn combine(&mut self, (a, b): (&[A], &[B]), out: &mut [Y]) {
        (self.function)(a, b, out);
    }
}

/// An operator made of a [`Combine`]: its output `k` is made of sample `k` of every stream, independent of
/// chunk borders.
///
/// All streams must have the same sample rate. Tags of all streams stay on their samples; on the same sample,
/// they are in the order of the streams. Output samples have the oldest of the streams' stamps. The operator
/// ends with the shortest stream, and a note names it.
pub struct Combined<C: Combine> {
    /// The inputs.
    pub inputs: <C::In as Streams>::Inputs,
    /// The output.
    pub out: Output<Chunk<C::Out>>,
    combine: C,
    chunks: <C::In as Streams>::Chunks,
    names: Vec<String>,
    common: Common,
    /// Sample rate that the function was started with.
    started_hz: Option<f64>,
    changes: Changes<C>,
}

impl<A, B, Y, F> Combined<FnCombine<A, B, Y, F>>
where
    A: Sample,
    B: Sample,
    Y: Sample,
    F: FnMut(&[A], &[B], &mut [Y]) + Send + 'static,
{
    /// Makes an operator of a function of two streams, with the ports `a`, `b` and `out`.
    ///
    /// ```
    /// use onbeat_runtime::Combined;
    /// let difference = Combined::of(|a: &[f32], b: &[f32], out: &mut [f32]| {
    ///     out.iter_mut().zip(a.iter().zip(b)).for_each(|(y, (a, b))| *y = a - b);
    /// });
    /// ```
    pub fn of(function: F) -> Self {
        Combined::new(FnCombine { function, types: PhantomData })
    }
}

impl<C: Combine> Combined<C> {
    /// Makes an operator with the inputs that `combine` names, and the output `out`.
    pub fn new(combine: C) -> Self {
        let names = combine.inputs();
        let (inputs, chunks) = C::In::inputs(&names);
        Combined {
            inputs,
            out: Output::default(),
            combine,
            chunks,
            names,
            common: Common::default(),
            started_hz: None,
            changes: Changes::default(),
        }
    }

    /// Takes chunks until all streams have samples, and returns how many all have.
    fn take(&mut self, cx: &mut Context) -> Result<Option<usize>, Error> {
        let most = C::In::take(&mut self.inputs, &mut self.chunks, &mut self.common, &self.names, cx)?;
        if most.is_some() && self.started_hz != self.common.rate_hz.or(Some(0.0)) {
            self.start_at(self.common.rate_hz.unwrap_or(0.0))?;
        }
        Ok(most)
    }

    #[cold]
    fn start_at(&mut self, rate_hz: f64) -> Result<(), Error> {
        if let Some(known_hz) = self.started_hz {
            return Err(Error::new(format!(
                "the sample rate of its inputs changed from {known_hz} Hz to {rate_hz} Hz: give all of them a rate from the \
                 start"
            )));
        }
        self.started_hz = Some(rate_hz);
        self.combine.start(rate_hz)
    }

    /// Fills a chunk with what the streams have, beginning with `most` samples. Returns whether there was a
    /// chunk.
    fn send(&mut self, most: usize, cx: &mut Context) -> Result<bool, Error> {
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(false) };
        let per = self.combine.outputs();
        let room = self.room(chunk.capacity())?;
        self.changes.make(self.common.taken, &mut self.combine)?;
        chunk.info_mut().start = self.common.taken * per as u64;
        let (mut filled, mut stamp, mut next) = (0, None, Ok(Some(most)));
        while let Ok(Some(most)) = next {
            let count = self.changes.before_next(self.common.taken, most.min(room - filled));
            self.append(&mut chunk, filled, count);
            let own = C::In::stamp(&self.chunks);
            stamp = Some(stamp.map_or(own, |stamp: Stamp| stamp.older(own)));
            C::In::consume(&mut self.chunks, count);
            self.common.taken += count as u64;
            filled += count;
            let is_full = filled == room || count < most || self.is_even(cx);
            next = if is_full { Ok(None) } else { self.take(cx) };
        }
        chunk.truncate(filled * per);
        let info = chunk.info_mut();
        info.rate_hz = self.common.rate_hz.unwrap_or(0.0) * per as f64;
        info.tags.sort_by_key(|tag| tag.offset);
        cx.set_stamp(stamp.unwrap_or_default());
        self.out.push(cx, chunk)?;
        next.map(|_| true)
    }

    /// Number of samples of each stream that a chunk of this size has room for.
    fn room(&self, capacity: usize) -> Result<usize, Error> {
        let per = self.combine.outputs();
        if capacity >= per {
            return Ok(capacity / per);
        }
        Err(Error::new(format!(
            "the quantum of its edge has room for {capacity} samples, but it sends {per} at a time: raise it to {} bytes \
             or more",
            per * size_of::<C::Out>()
        )))
    }

    /// Combines the next `count` samples behind the first `filled`.
    fn append(&mut self, chunk: &mut Chunk<C::Out>, filled: usize, count: usize) {
        let per = self.combine.outputs();
        let out = chunk.edit_unique().expect("a new chunk is not shared");
        self.combine.combine(C::In::slices(&self.chunks, count), &mut out[filled * per..][..count * per]);
        let tags = &mut chunk.info_mut().tags;
        C::In::tags(&self.chunks, count, &mut |stream, at, tag| {
            tags.push(Tag { offset: filled * per + self.combine.place(at, stream), ..tag.clone() });
        });
    }

    /// Whether all streams are at the end of a chunk. There, the output's chunk ends as well, so that streams
    /// that are cut alike keep their cuts. In a cycle, the ends of chunks of both streams would stay for
    /// ever, and cut the samples into more and more pieces, until no edge had room.
    fn is_even(&self, cx: &Context) -> bool {
        (0..self.names.len()).all(|stream| !C::In::state(&self.inputs, &self.chunks, stream, cx).0)
    }

    fn wait(&mut self, cx: &mut Context) -> Step {
        let (count, names) = (self.names.len(), &self.names);
        let state = |stream: usize| waiting::<C::In>(&self.inputs, &self.chunks, stream, cx);
        if let Some(end) = reading::end(count, state) {
            end.say(count, &self.common, |stream| names[stream].clone(), cx);
            return Step::Done;
        }
        C::In::keep(&self.inputs, &self.chunks, cx);
        Step::Wait
    }
}

impl<C: Combine> Operator for Combined<C> {
    fn ports(&mut self, p: &mut Ports) {
        C::In::show(&mut self.inputs, &self.names, p);
        p.output("out", &mut self.out).fresh();
    }

    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        self.combine.start(rate_hz)?;
        Ok(Some(rate_hz * self.combine.outputs() as f64))
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        loop {
            let Some(most) = self.take(cx)? else { return Ok(self.wait(cx)) };
            if self.out.room(cx) == 0 || !self.send(most, cx)? {
                return Ok(Step::Again);
            }
        }
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        say(self.combine.note(), cx, ending);
        say(self.changes.note(self.common.taken), cx, ending);
        Ok(())
    }

    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        // The chunks stay: the streams would lose their alignment.
        self.started_hz.map_or(Ok(()), |rate_hz| self.combine.start(rate_hz))
    }

    fn settable(&self) -> &'static [&'static str] {
        self.combine.settable()
    }

    fn set(&mut self, _: &mut Context, name: &str, value: &Value) -> Result<(), Error> {
        self.combine.change(name, value)?(&mut self.combine)
    }

    fn set_at(&mut self, _: &mut Context, name: &str, value: &Value, sample: u64) -> Result<(), Error> {
        let change = self.combine.change(name, value)?;
        self.changes.add(sample, self.common.taken, change)
    }
}
