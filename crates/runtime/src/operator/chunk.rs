//! Chunks: pooled, aligned runs of samples that are moved, shared and edited in place.

use crate::operator::message::{Message, Value};
use crate::{Context, Error};
use bytemuck::Pod;
use onbeat_queue::{Block, Meta};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A plain sample: any bytes are a value of it, and it has no padding.
pub trait Sample: Pod + Send + Sync {
    /// The samples that these bytes are: what [`Operator::drain`](crate::Operator::drain) is given.
    ///
    /// # Panics
    /// When the bytes are not those of whole samples, or not aligned as they are. Those of a chunk of this
    /// type always are.
    fn samples(bytes: &[u8]) -> &[Self] {
        bytemuck::cast_slice(bytes)
    }

    /// The same, to change: what [`Operator::fill`](crate::Operator::fill) is given.
    ///
    /// ```
    /// use onbeat_runtime::Sample;
    /// let mut bytes = [0; 3];
    /// u8::samples_mut(&mut bytes)[1] = 7;
    /// assert_eq!(u8::samples(&bytes), [0, 7, 0]);
    /// ```
    ///
    /// # Panics
    /// As [`samples`](Sample::samples).
    fn samples_mut(bytes: &mut [u8]) -> &mut [Self] {
        bytemuck::cast_slice_mut(bytes)
    }
}
impl<T: Pod + Send + Sync> Sample for T {}

/// A mark on one sample of a stream: it stays on that sample through rate changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Tag {
    /// Which sample of the chunk, from 0.
    pub offset: usize,
    /// What the mark is about.
    pub key: Arc<str>,
    /// What it says.
    pub value: Value,
}

/// What travels in the head of a chunk.
// In this order start and rate, which every source sets, share a cache line with the rest of the head.
#[derive(Debug, Clone, Default)]
#[repr(C)]
pub struct Info {
    /// Index in its stream of the first sample.
    pub start: u64,
    /// Samples per second; 0 where the stream has no rate.
    pub rate_hz: f64,
    /// Rows, columns and planes of a shaped chunk; `[0, 0, 0]` for a plain run of samples.
    pub shape: [u32; 3],
    /// Marks on samples, by rising offset.
    pub tags: Vec<Tag>,
}

impl Meta for Info {
    #[inline]
    fn reset(&mut self) {
        self.start = 0;
        self.rate_hz = 0.0;
        // Shapes and tags are rare: a look costs less than a store, and letting go of no tags is a call all
        // the same.
        if self.shape != [0; 3] {
            self.shape = [0; 3];
        }
        if !self.tags.is_empty() {
            self.tags.clear();
        }
    }
}

/// A run of samples from a chunk store: 64-byte aligned, one word to move, a slice to read.
///
/// It goes back to its store when the last handle is dropped, on whatever thread. A clone shares the samples;
/// [`edit`](Chunk::edit) of a shared chunk works on a copy, which is counted in the record.
///
/// ```
/// use onbeat_runtime::{Chunk, Context, Error, Input, Operator, Output, Ports, Step};
///
/// #[derive(Default)]
/// struct Square { input: Input<Chunk<f32>>, out: Output<Chunk<f32>> }
///
/// impl Operator for Square {
///     fn ports(&mut self, p: &mut Ports) {
///         p.input("in", &mut self.input);
///         p.output("out", &mut self.out);
///     }
///     fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
///         if let Some(mut chunk) = self.input.pop(cx) {
///             chunk.edit(cx)?.iter_mut().for_each(|x| *x *= *x);
///             self.out.push(cx, chunk)?;
///         }
///         Ok(Step::Wait)
///     }
/// }
/// ```
pub struct Chunk<T: Sample>(Block<T, Info>);

impl<T: Sample> Chunk<T> {
    pub(crate) fn from_block(block: Block<T, Info>) -> Self {
        Chunk(block)
    }

    /// The samples, to change: in place when no other operator has this chunk, else in a copy that takes its
    /// place.
    ///
    /// # Errors
    /// When a copy is needed and the chunk store has none left (an operator holds more chunks than it
    /// declared).
    #[inline]
    pub fn edit(&mut self, cx: &Context) -> Result<&mut [T], Error> {
        if !self.0.is_unique() {
            cx.copy_chunk(&mut self.0)?;
        }
        Ok(self.0.edit().expect("unique by now"))
    }

    /// The samples, to change, if no other operator has this chunk. A chunk fresh from
    /// [`Output::chunk`](crate::Output::chunk) is such a one.
    #[inline]
    pub fn edit_unique(&mut self) -> Option<&mut [T]> {
        self.0.edit()
    }

    /// Samples that fit: the quantum of its store.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Keeps the first `len` samples and the tags on them.
    ///
    /// # Panics
    /// When the chunk is shared.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
        if !self.0.meta().tags.is_empty() {
            self.info_mut().tags.retain(|tag| tag.offset < len);
        }
    }

    /// The same chunk, seen as samples of another type.
    #[inline(always)]
    pub(crate) fn cast<U: Sample>(self) -> Chunk<U> {
        Chunk(self.0.cast())
    }

    /// As one that is fresh from its store, with room for all samples that fit. False while it is shared.
    pub(crate) fn renew(&mut self) -> bool {
        self.0.renew()
    }

    pub(crate) fn block_bytes(&self) -> usize {
        self.0.block_bytes()
    }

    /// What travels with the samples.
    #[inline]
    pub fn info(&self) -> &Info {
        self.0.meta()
    }

    /// What travels with the samples, to change.
    ///
    /// # Panics
    /// When the chunk is shared: [`edit`](Chunk::edit) makes it unique.
    #[inline]
    pub fn info_mut(&mut self) -> &mut Info {
        self.0.meta_mut().expect("a shared chunk cannot be marked: edit it first")
    }

    /// Samples and what travels with them, both to change; `None` while the chunk is shared.
    #[inline]
    pub fn parts(&mut self) -> Option<(&mut [T], &mut Info)> {
        self.0.parts()
    }

    /// Samples per second; 0 where the stream has no rate.
    #[inline]
    pub fn rate_hz(&self) -> f64 {
        self.0.meta().rate_hz
    }

    /// Marks on samples.
    #[inline]
    pub fn tags(&self) -> &[Tag] {
        &self.0.meta().tags
    }
}

impl<T: Sample> Deref for Chunk<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Sample> Clone for Chunk<T> {
    #[inline]
    fn clone(&self) -> Self {
        Chunk(self.0.clone())
    }
}

impl<T: Sample> Message for Chunk<T> {
    const SAMPLE_BYTES: Option<usize> = Some(size_of::<T>());

    #[inline(always)]
    fn fetch(&self, bytes: usize) {
        self.0.fetch(bytes);
    }

    #[inline(always)]
    fn chunk_bytes(&self) -> usize {
        self.0.len() * size_of::<T>()
    }

    fn takes_value(value: &Value) -> bool {
        matches!(value, Value::Int(samples) if *samples >= 0)
    }

    fn from_value(value: &Value, cx: &mut crate::Context, quantum: u32) -> Option<Self> {
        let Value::Int(samples) = value else { return None };
        let mut chunk: Chunk<T> = cx.new_chunk(Some(quantum))?;
        chunk.truncate(usize::try_from(*samples).ok()?);
        chunk.edit_unique()?.fill(T::zeroed());
        Some(chunk)
    }
}

impl<T: Sample + fmt::Debug> fmt::Debug for Chunk<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
