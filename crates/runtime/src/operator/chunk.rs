//! Chunks: pooled, aligned runs of samples that are moved, shared and edited in place.

use crate::operator::lanes::Marks;
use crate::operator::message::{Message, Value};
use crate::{Context, Error};
use bytemuck::Pod;
use onbeat_queue::{Block, BlockPlace, Meta};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A plain sample: any bytes are a value of it, and it has no padding.
pub trait Sample: Pod + Send + Sync {
    /// Converts the bytes that [`Inline::drain`](crate::Inline::drain) gets to samples.
    ///
    /// # Panics
    /// If the bytes are not whole samples, or not aligned like them. The bytes of a chunk of this type always
    /// are both.
    fn samples(bytes: &[u8]) -> &[Self] {
        bytemuck::cast_slice(bytes)
    }

    /// Converts the bytes that [`Inline::fill`](crate::Inline::fill) gets to mutable samples.
    ///
    /// ```
    /// use onbeat_runtime::Sample;
    /// let mut bytes = [0; 3];
    /// u8::samples_mut(&mut bytes)[1] = 7;
    /// assert_eq!(u8::samples(&bytes), [0, 7, 0]);
    /// ```
    ///
    /// # Panics
    /// Like [`samples`](Sample::samples).
    fn samples_mut(bytes: &mut [u8]) -> &mut [Self] {
        bytemuck::cast_slice_mut(bytes)
    }
}
impl<T: Pod + Send + Sync> Sample for T {}

/// A mark on one sample of a stream: it stays on that sample through rate changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Tag {
    /// Index of the sample in the chunk, from 0.
    pub offset: usize,
    /// Name of the mark.
    pub key: Arc<str>,
    /// Value of the mark.
    pub value: Value,
}

/// Head of a chunk: position, sample rate, shape and tags of its samples.
// In this order start and rate, which every source sets, share a cache line with the rest of the head.
#[derive(Debug, Clone, Default)]
#[repr(C)]
pub struct Info {
    /// Index of the first sample in its stream.
    pub start: u64,
    /// Samples per second; 0 if the stream has no rate.
    pub rate_hz: f64,
    /// Rows, columns and planes of a shaped chunk; `[0, 0, 0]` for a plain run of samples.
    pub shape: [u32; 3],
    /// What the chunk means in a lane of a replicated stretch.
    pub(crate) marks: Marks,
    /// Marks on samples, by rising offset.
    pub tags: Vec<Tag>,
}

impl Meta for Info {
    #[inline]
    fn reset(&mut self) {
        self.start = 0;
        self.rate_hz = 0.0;
        // Shapes and tags are rare. A check costs less than a store, and freeing an empty list of tags is
        // still a call.
        if self.shape != [0; 3] {
            self.shape = [0; 3];
        }
        if self.marks != Marks::NONE {
            self.marks = Marks::NONE;
        }
        if !self.tags.is_empty() {
            self.tags.clear();
        }
    }
}

/// A run of samples from a chunk store: 64-byte aligned, one word to move, a slice to read.
///
/// The chunk goes back to its store when the last handle is dropped, on any thread. A clone shares the
/// samples. [`edit`](Chunk::edit) of a shared chunk works on a copy, and the record contains the number of
/// copies.
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

    /// Returns the samples for changes: in place if no other operator has this chunk, otherwise in a copy
    /// that replaces it.
    ///
    /// # Errors
    /// If a copy is needed and the chunk store is empty (an operator holds more chunks than it declared).
    #[inline]
    pub fn edit(&mut self, cx: &Context) -> Result<&mut [T], Error> {
        if !self.0.is_unique() {
            cx.copy_chunk(&mut self.0)?;
        }
        Ok(self.0.edit().expect("unique by now"))
    }

    /// Returns the samples for changes if no other operator has this chunk. That is always so for a chunk
    /// just taken from [`Output::chunk`](crate::Output::chunk).
    #[inline]
    pub fn edit_unique(&mut self) -> Option<&mut [T]> {
        self.0.edit()
    }

    /// Returns the number of samples that fit: the block size of its store.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Keeps the first `len` samples and the tags on them.
    ///
    /// # Panics
    /// If the chunk is shared.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
        if !self.0.meta().tags.is_empty() {
            self.info_mut().tags.retain(|tag| tag.offset < len);
        }
    }

    /// Converts the handle to one with another sample type.
    #[inline(always)]
    pub(crate) fn cast<U: Sample>(self) -> Chunk<U> {
        Chunk(self.0.cast())
    }

    /// Resets the chunk to the state of one just taken from its store, with room for all samples that fit.
    /// Returns `false` if it is shared.
    pub(crate) fn renew(&mut self) -> bool {
        self.0.renew()
    }

    pub(crate) fn block_bytes(&self) -> usize {
        self.0.block_bytes()
    }

    /// Returns where another process finds the samples, if the chunk's store is in a file (see
    /// [`InputPort::shared`](crate::InputPort::shared)).
    pub fn place(&self) -> Option<BlockPlace<'_>> {
        self.0.place()
    }

    /// Returns the head of the chunk.
    #[inline]
    pub fn info(&self) -> &Info {
        self.0.meta()
    }

    /// Returns the head of the chunk for changes.
    ///
    /// # Panics
    /// If the chunk is shared. [`edit`](Chunk::edit) makes it unique.
    #[inline]
    pub fn info_mut(&mut self) -> &mut Info {
        self.0.meta_mut().expect("a shared chunk cannot be marked: edit it first")
    }

    /// Returns the samples and the head for changes; `None` if the chunk is shared.
    #[inline]
    pub fn parts(&mut self) -> Option<(&mut [T], &mut Info)> {
        self.0.parts()
    }

    /// Returns the samples per second; 0 if the stream has no rate.
    #[inline]
    pub fn rate_hz(&self) -> f64 {
        self.0.meta().rate_hz
    }

    /// Returns the marks on samples.
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

    fn span(&self) -> Option<(u64, usize, f64)> {
        Some((self.info().start, self.len(), self.rate_hz()))
    }

    fn into_bytes(self) -> Option<Chunk<u8>> {
        Some(self.cast())
    }

    fn from_bytes(chunk: Chunk<u8>) -> Option<Self> {
        Some(chunk.cast())
    }

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
