//! The streams that a [`Combine`](super::Combine) reads: a tuple of sample types, or a slice of one type.

use super::reading::{Common, HeldStream, StreamState};
use crate::operator::chunk::{Chunk, Sample, Tag};
use crate::operator::message::Stamp;
use crate::operator::port::Input;
use crate::operator::ports::Ports;
use crate::{Context, Error};

/// Input streams of a [`Combine`](crate::Combine): `(f32, f32)` and other tuples of two to four sample types,
/// or `[f32]`, any number of streams of one type.
pub trait Streams: Send + 'static {
    /// The samples of all streams at some positions: slices of one length.
    type Slices<'s>;
    /// The inputs.
    type Inputs: Send;
    /// The chunks that are being read.
    #[doc(hidden)]
    type Chunks: Send;

    /// Returns the names of the inputs, unless the operator has others.
    fn names() -> Vec<String>;
    /// Makes the inputs.
    #[doc(hidden)]
    fn inputs(names: &[String]) -> (Self::Inputs, Self::Chunks);
    #[doc(hidden)]
    fn show(inputs: &mut Self::Inputs, names: &[String], p: &mut Ports);
    /// Takes chunks until every stream has samples, and returns how many all have.
    #[doc(hidden)]
    fn take(
        inputs: &mut Self::Inputs,
        chunks: &mut Self::Chunks,
        common: &mut Common,
        names: &[String],
        cx: &mut Context,
    ) -> Result<Option<usize>, Error>;
    #[doc(hidden)]
    fn slices(chunks: &Self::Chunks, count: usize) -> Self::Slices<'_>;
    /// Shows the tags on the next samples with the number of their stream, and their offsets.
    #[doc(hidden)]
    fn tags(chunks: &Self::Chunks, count: usize, each: &mut dyn FnMut(usize, usize, &Tag));
    /// Returns the oldest stamp of all streams.
    #[doc(hidden)]
    fn stamp(chunks: &Self::Chunks) -> Stamp;
    #[doc(hidden)]
    fn consume(chunks: &mut Self::Chunks, count: usize);
    /// Returns whether a stream has samples, and whether it has ended.
    #[doc(hidden)]
    fn state(inputs: &Self::Inputs, chunks: &Self::Chunks, stream: usize, cx: &Context) -> (bool, bool);
    /// Waits no longer for the streams that have samples.
    #[doc(hidden)]
    fn keep(inputs: &Self::Inputs, chunks: &Self::Chunks, cx: &mut Context);
}

/// Slices of any number of streams of one type, at the same positions.
#[derive(Clone, Copy)]
pub struct Slices<'s, T: Sample> {
    streams: &'s [HeldStream<T>],
    count: usize,
}

impl<'s, T: Sample> Slices<'s, T> {
    /// Returns the number of streams.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Returns the samples of a stream.
    ///
    /// # Panics
    /// If there is no such stream.
    pub fn of(&self, stream: usize) -> &'s [T] {
        self.streams[stream].samples(self.count)
    }

    /// Returns the samples of each stream in turn.
    pub fn each(&self) -> impl Iterator<Item = &'s [T]> + use<'s, T> {
        let count = self.count;
        self.streams.iter().map(move |held| held.samples(count))
    }
}

impl<T: Sample> Streams for [T] {
    type Slices<'s> = Slices<'s, T>;
    type Inputs = Vec<Input<Chunk<T>>>;
    type Chunks = Vec<HeldStream<T>>;

    fn names() -> Vec<String> {
        vec!["in0".into(), "in1".into()]
    }

    fn inputs(names: &[String]) -> (Self::Inputs, Self::Chunks) {
        (
            names.iter().map(|_| Input::default()).collect(),
            names.iter().map(|_| HeldStream::default()).collect(),
        )
    }

    fn show(inputs: &mut Self::Inputs, names: &[String], p: &mut Ports) {
        for (input, name) in inputs.iter_mut().zip(names) {
            p.input(name, input);
        }
    }

    fn take(
        inputs: &mut Self::Inputs,
        chunks: &mut Self::Chunks,
        common: &mut Common,
        names: &[String],
        cx: &mut Context,
    ) -> Result<Option<usize>, Error> {
        take_all(inputs, chunks, common, |stream| names[stream].clone(), cx)
    }

    fn slices(chunks: &Self::Chunks, count: usize) -> Slices<'_, T> {
        Slices { streams: chunks, count }
    }

    fn tags(chunks: &Self::Chunks, count: usize, each: &mut dyn FnMut(usize, usize, &Tag)) {
        for (stream, held) in chunks.iter().enumerate() {
            held.tags(count).for_each(|(at, tag)| each(stream, at, tag));
        }
    }

    fn stamp(chunks: &Self::Chunks) -> Stamp {
        oldest(chunks)
    }

    fn consume(chunks: &mut Self::Chunks, count: usize) {
        chunks.iter_mut().for_each(|held| held.consume(count));
    }

    fn state(inputs: &Self::Inputs, chunks: &Self::Chunks, stream: usize, cx: &Context) -> (bool, bool) {
        (chunks[stream].has_samples(), inputs[stream].is_ended(cx))
    }

    fn keep(inputs: &Self::Inputs, chunks: &Self::Chunks, cx: &mut Context) {
        keep_all(inputs, chunks, cx);
    }
}

/// Takes chunks until every stream has samples, and returns how many all have.
pub(super) fn take_all<T: Sample>(
    inputs: &mut [Input<Chunk<T>>],
    chunks: &mut [HeldStream<T>],
    common: &mut Common,
    name: impl Fn(usize) -> String,
    cx: &mut Context,
) -> Result<Option<usize>, Error> {
    let mut all = Some(usize::MAX);
    for (stream, (input, held)) in inputs.iter_mut().zip(chunks).enumerate() {
        let rest = held.take(input, common, || name(stream), cx)?;
        all = all.zip(rest).map(|(all, rest)| all.min(rest));
    }
    Ok(all)
}

/// Returns the oldest stamp of all streams.
pub(super) fn oldest<T: Sample>(chunks: &[HeldStream<T>]) -> Stamp {
    chunks.iter().filter_map(HeldStream::stamp).reduce(Stamp::older).unwrap_or_default()
}

/// Waits no longer for the streams that have samples.
pub(super) fn keep_all<T: Sample>(inputs: &[Input<Chunk<T>>], chunks: &[HeldStream<T>], cx: &mut Context) {
    for (input, _) in inputs.iter().zip(chunks).filter(|(_, held)| held.has_samples()) {
        input.keep(cx);
    }
}

macro_rules! tuples {
    ($(($($type:ident $name:literal $at:tt),+))*) => { $(
        impl<$($type: Sample),+> Streams for ($($type,)+) {
            type Slices<'s> = ($(&'s [$type],)+);
            type Inputs = ($(Input<Chunk<$type>>,)+);
            type Chunks = ($(HeldStream<$type>,)+);

            fn names() -> Vec<String> {
                vec![$($name.into()),+]
            }

            fn inputs(_: &[String]) -> (Self::Inputs, Self::Chunks) {
                (Default::default(), Default::default())
            }

            fn show(inputs: &mut Self::Inputs, names: &[String], p: &mut Ports) {
                $(p.input(&names[$at], &mut inputs.$at);)+
            }

            fn take(
                inputs: &mut Self::Inputs,
                chunks: &mut Self::Chunks,
                common: &mut Common,
                names: &[String],
                cx: &mut Context,
            ) -> Result<Option<usize>, Error> {
                let mut all = Some(usize::MAX);
                $(
                    let rest = chunks.$at.take(&mut inputs.$at, common, || names[$at].clone(), cx)?;
                    all = all.zip(rest).map(|(all, rest)| all.min(rest));
                )+
                Ok(all)
            }

            fn slices(chunks: &Self::Chunks, count: usize) -> Self::Slices<'_> {
                ($(chunks.$at.samples(count),)+)
            }

            fn tags(chunks: &Self::Chunks, count: usize, each: &mut dyn FnMut(usize, usize, &Tag)) {
                $(chunks.$at.tags(count).for_each(|(at, tag)| each($at, at, tag));)+
            }

            fn stamp(chunks: &Self::Chunks) -> Stamp {
                [$(chunks.$at.stamp()),+].into_iter().flatten().reduce(Stamp::older).unwrap_or_default()
            }

            fn consume(chunks: &mut Self::Chunks, count: usize) {
                $(chunks.$at.consume(count);)+
            }

            fn state(inputs: &Self::Inputs, chunks: &Self::Chunks, stream: usize, cx: &Context) -> (bool, bool) {
                match stream {
                    $($at => (chunks.$at.has_samples(), inputs.$at.is_ended(cx)),)+
                    _ => (false, true),
                }
            }

            fn keep(inputs: &Self::Inputs, chunks: &Self::Chunks, cx: &mut Context) {
                $(if chunks.$at.has_samples() {
                    inputs.$at.keep(cx);
                })+
            }
        }
    )* };
}

tuples! {
    (A "a" 0, B "b" 1)
    (A "a" 0, B "b" 1, C "c" 2)
    (A "a" 0, B "b" 1, C "c" 2, D "d" 3)
}

/// State of a stream, for the search for the end.
pub(super) fn waiting<S: Streams + ?Sized>(
    inputs: &S::Inputs,
    chunks: &S::Chunks,
    stream: usize,
    cx: &Context,
) -> StreamState {
    let (has_samples, has_ended) = S::state(inputs, chunks, stream, cx);
    StreamState { has_samples, has_ended }
}
