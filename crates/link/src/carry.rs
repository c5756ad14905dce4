//! Messages that links carry.

use crate::frame::{ChunkHead, Constant, MessageHead};
use num_complex::Complex;
use onbeat_queue::BlockPlace;
use onbeat_runtime::{Chunk, Context, Error, Info, LentChunks, Message, Output, Sample, Tag};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Most bytes of a message that is not a chunk.
pub const VALUE_LIMIT: usize = 16 << 20;

/// A message type that a link can carry to another process.
pub trait Carried: Message {
    /// Name of the type; both ends must have the same.
    const NAME: &'static str;

    /// A message whose bytes are coming.
    type Arriving: Arriving;

    /// Returns the head of a chunk.
    fn chunk_head(&self) -> Option<ChunkHead> {
        None
    }

    /// Returns the bytes of a chunk.
    fn samples(&self) -> &[u8] {
        &[]
    }

    /// Returns where another process finds the samples of a chunk, if it can map them.
    fn place(&self) -> Option<BlockPlace<'_>> {
        None
    }

    /// Makes a message of a chunk in a store of another process, with `bytes` bytes of samples. `None` if
    /// there is no such chunk, or it was lent before.
    fn borrow(head: &mut MessageHead, chunk: usize, bytes: usize, store: &LentChunks) -> Option<Self> {
        let _ = (head, chunk, bytes, store);
        None
    }

    /// Most bytes of a message that the edges of `out` allow; `None` if the chunk store is empty.
    fn room(out: &Output<Self>, cx: &mut Context) -> Option<usize> {
        let _ = (out, cx);
        Some(VALUE_LIMIT)
    }

    /// Appends the bytes of a message that is not a chunk.
    ///
    /// # Errors
    /// If it is longer than [`VALUE_LIMIT`].
    fn write(&self, bytes: &mut Vec<u8>) -> Result<(), Error> {
        let _ = bytes;
        Ok(())
    }

    /// Begins to receive a message with a body of `length` bytes, in the place that an earlier one has left.
    /// `None` if the chunk store is empty.
    ///
    /// # Errors
    /// If the message is longer than an edge of `out` allows.
    fn arrive(
        head: &mut MessageHead,
        length: usize,
        left: Option<Self::Arriving>,
        out: &Output<Self>,
        cx: &mut Context,
    ) -> Result<Option<Self::Arriving>, Error>;

    /// Makes the message, when all bytes are there. Returns the place too, if it can be used again.
    ///
    /// # Errors
    /// If the bytes are not a message of this type.
    fn finish(arrived: Self::Arriving) -> Result<(Self, Option<Self::Arriving>), Error>;
}

/// A message whose bytes are coming.
pub trait Arriving: Send {
    /// Returns the place of the bytes.
    fn bytes(&mut self) -> &mut [u8];
}

/// A sample type with a name on links.
pub trait CarriedSample: Sample {
    /// Name of the chunks.
    const NAME: &'static str;
}

impl CarriedSample for f32 {
    const NAME: &'static str = "real";
}
impl CarriedSample for Complex<f32> {
    const NAME: &'static str = "complex";
}
impl CarriedSample for u8 {
    const NAME: &'static str = "bytes";
}

impl<T: CarriedSample> Carried for Chunk<T> {
    const NAME: &'static str = T::NAME;
    type Arriving = Chunk<T>;

    fn chunk_head(&self) -> Option<ChunkHead> {
        let info = self.info();
        let tag = |tag: &Tag| (tag.offset as u64, tag.key.to_string(), Constant::from(&tag.value));
        Some(ChunkHead {
            start: info.start,
            rate_hz: info.rate_hz,
            shape: info.shape,
            tags: info.tags.iter().map(tag).collect(),
        })
    }

    fn samples(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }

    fn arrive(
        head: &mut MessageHead,
        length: usize,
        _: Option<Self::Arriving>,
        out: &Output<Self>,
        cx: &mut Context,
    ) -> Result<Option<Self::Arriving>, Error> {
        let Some(mut chunk) = out.chunk(cx) else { return Ok(None) };
        let size = size_of::<T>();
        if length > chunk.capacity() * size {
            return Err(too_long(length, chunk.capacity() * size));
        }
        if !length.is_multiple_of(size) {
            let text = format!("a chunk of {length} bytes came: samples have {size} bytes");
            return Err(Error::new(text));
        }
        chunk.truncate(length / size);
        let samples = chunk.len();
        describe(head.chunk.take().unwrap_or_default(), samples, chunk.info_mut());
        Ok(Some(chunk))
    }

    fn place(&self) -> Option<BlockPlace<'_>> {
        Chunk::place(self)
    }

    fn borrow(head: &mut MessageHead, chunk: usize, bytes: usize, store: &LentChunks) -> Option<Self> {
        let samples = bytes / size_of::<T>();
        let found = head.chunk.take().unwrap_or_default();
        store.lend(chunk, samples, |info| describe(found, samples, info))
    }

    fn room(out: &Output<Self>, cx: &mut Context) -> Option<usize> {
        out.chunk(cx).map(|chunk| chunk.capacity() * size_of::<T>())
    }

    fn finish(arrived: Chunk<T>) -> Result<(Self, Option<Self>), Error> {
        Ok((arrived, None))
    }
}

/// The error for a chunk that is longer than those of this run.
pub(crate) fn too_long(bytes: usize, room: usize) -> Error {
    Error::new(format!(
        "a chunk of {bytes} bytes came, and chunks have at most {room} here: give the pipelines of both ends the \
         same `quantum`"
    ))
}

/// Enters what came with a chunk.
fn describe(found: ChunkHead, samples: usize, info: &mut Info) {
    (info.start, info.rate_hz, info.shape) = (found.start, found.rate_hz, found.shape);
    let tags = found.tags.into_iter().filter(|(offset, ..)| *offset < samples as u64);
    info.tags.extend(tags.map(|(offset, key, value)| Tag {
        offset: offset as usize,
        key: key.into(),
        value: value.into(),
    }));
}

impl<T: CarriedSample> Arriving for Chunk<T> {
    fn bytes(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(self.edit_unique().unwrap_or_default())
    }
}

impl Arriving for Vec<u8> {
    fn bytes(&mut self) -> &mut [u8] {
        self
    }
}

/// Appends a value in postcard's format.
///
/// # Errors
/// If it is longer than [`VALUE_LIMIT`].
pub fn write_value<T: Serialize>(value: &T, bytes: &mut Vec<u8>) -> Result<(), Error> {
    let begin = bytes.len();
    let written = postcard::to_extend(value, std::mem::take(bytes));
    *bytes = written.map_err(|error| Error::with_source("cannot write the message", error))?;
    let length = bytes.len() - begin;
    if length > VALUE_LIMIT {
        return Err(Error::new(format!(
            "a message of {length} bytes is too long for a link: the limit is {VALUE_LIMIT} bytes"
        )));
    }
    Ok(())
}

/// Reads a value that [`write_value`] wrote.
///
/// # Errors
/// If the bytes are not a value of this type.
pub fn read_value<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, Error> {
    let cannot = |error| Error::with_source(format!("what came is not a message of type {name}"), error);
    postcard::from_bytes(bytes).map_err(cannot)
}

/// Lets links carry types that serde can write and read, each with its name on links.
///
/// ```
/// #[derive(Clone, serde::Serialize, serde::Deserialize)]
/// pub struct Detection { pub frequency_hz: f64 }
/// impl onbeat_runtime::Message for Detection {}
/// onbeat_link::carry_values!(Detection: "detection");
///
/// let mut registry = onbeat_runtime::Registry::default();
/// onbeat_link::add_kinds_of::<Detection>(&mut registry, "link.sink.detection", "link.source.detection");
/// ```
#[macro_export]
macro_rules! carry_values {
    ($($type:ty: $name:literal),* $(,)?) => { $(
        impl $crate::Carried for $type {
            const NAME: &'static str = $name;
            type Arriving = Vec<u8>;

            fn write(&self, bytes: &mut Vec<u8>) -> Result<(), ::onbeat_runtime::Error> {
                $crate::write_value(self, bytes)
            }

            fn arrive(
                _: &mut $crate::MessageHead,
                length: usize,
                left: Option<Vec<u8>>,
                _: &::onbeat_runtime::Output<Self>,
                _: &mut ::onbeat_runtime::Context,
            ) -> Result<Option<Vec<u8>>, ::onbeat_runtime::Error> {
                let mut bytes = left.unwrap_or_default();
                bytes.resize(length, 0);
                Ok(Some(bytes))
            }

            fn finish(arrived: Vec<u8>) -> Result<(Self, Option<Vec<u8>>), ::onbeat_runtime::Error> {
                let message = $crate::read_value($name, &arrived)?;
                Ok((message, Some(arrived)))
            }
        }
    )* };
}

carry_values!(u64: "numbers", f64: "value", String: "text");
