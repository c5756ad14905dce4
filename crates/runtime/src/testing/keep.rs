//! The ends that keep what an operator sends.

use super::seen::Piece;
use super::{Log, locked};
use crate::operator::chunk::{Chunk, Sample};
use crate::operator::message::Message;
use crate::operator::ports::Ports;
use crate::operator::{Operator, Step};
use crate::{Context, Error, Input};
use num_complex::Complex;
use std::any::{Any, TypeId};
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

/// What came to one end.
#[derive(Default)]
pub(super) struct Kept {
    /// The messages themselves, as a `Vec<M>`; of chunks, the samples, as a `Vec<T>`.
    pub values: Option<Box<dyn Any + Send>>,
    /// Of a chunk: what it had beside its samples. Of a message: when and in which step it came.
    pub pieces: Vec<Piece>,
    /// All of it as text or bytes, to compare two runs.
    pub bytes: Vec<u8>,
    pub is_chunks: bool,
}

type Shared = Arc<Mutex<Kept>>;

/// Makes an end for messages of one type.
pub(super) struct Keeper(fn(Shared, Arc<Mutex<Log>>) -> Box<dyn Operator>);

impl Keeper {
    pub fn messages<M: Message + Debug>() -> Self {
        Keeper(|kept, log| Box::new(KeepMessages::<M> { input: Input::default(), kept, log }))
    }

    fn chunks<T: Sample>() -> Self {
        Keeper(|kept, log| Box::new(KeepChunks::<T> { input: Input::default(), kept, log }))
    }

    /// For the types that operators usually send.
    pub fn known(message: TypeId) -> Option<Self> {
        macro_rules! known {
            (samples: $($sample:ty),*; messages: $($message:ty),*) => {
                $(if message == TypeId::of::<Chunk<$sample>>() {
                    return Some(Self::chunks::<$sample>());
                })*
                $(if message == TypeId::of::<$message>() {
                    return Some(Self::messages::<$message>());
                })*
            };
        }
        known! {
            samples: f32, f64, Complex<f32>, Complex<f64>, u8, i8, u16, i16, u32, i32, u64, i64;
            messages: (), bool, u8, i8, u16, i16, u32, i32, u64, i64, usize, isize, f32, f64, String, char
        }
        None
    }

    pub fn into_operator(self, log: Arc<Mutex<Log>>) -> (Box<dyn Operator>, Shared) {
        let kept = Shared::default();
        (self.0(Arc::clone(&kept), log), kept)
    }
}

fn values<T: Send + 'static>(kept: &mut Kept) -> Option<&mut Vec<T>> {
    kept.values.get_or_insert_with(|| Box::new(Vec::<T>::new())).downcast_mut()
}

struct KeepChunks<T: Sample> {
    input: Input<Chunk<T>>,
    kept: Shared,
    log: Arc<Mutex<Log>>,
}

impl<T: Sample> Operator for KeepChunks<T> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        let mut kept = locked(&self.kept);
        kept.is_chunks = true;
        values::<T>(&mut kept);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(chunk) = self.input.pop(cx) else { return Ok(Step::Wait) };
        let step = locked(&self.log).begun;
        let mut kept = locked(&self.kept);
        let info = chunk.info();
        let tag = |tag: &crate::Tag| (info.start + tag.offset as u64, tag.key.to_string(), tag.value.clone());
        kept.pieces.push(Piece {
            start: info.start,
            length: chunk.len(),
            rate_hz: info.rate_hz,
            shape: info.shape,
            tags: info.tags.iter().map(tag).collect(),
            time_ns: cx.stamp().time_ns,
            at_ns: cx.now_ns(),
            step,
        });
        kept.bytes.extend_from_slice(bytemuck::cast_slice(&chunk));
        if let Some(samples) = values(&mut kept) {
            samples.extend_from_slice(&chunk);
        }
        Ok(Step::Wait)
    }
}

struct KeepMessages<M: Message> {
    input: Input<M>,
    kept: Shared,
    log: Arc<Mutex<Log>>,
}

impl<M: Message + Debug> Operator for KeepMessages<M> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        values::<M>(&mut locked(&self.kept));
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(message) = self.input.pop(cx) else { return Ok(Step::Wait) };
        let step = locked(&self.log).begun;
        let mut kept = locked(&self.kept);
        let (time_ns, at_ns) = (cx.stamp().time_ns, cx.now_ns());
        kept.pieces.push(Piece { length: 1, time_ns, at_ns, step, ..Piece::default() });
        kept.bytes.extend_from_slice(format!("{message:?}\n").as_bytes());
        if let Some(messages) = values(&mut kept) {
            messages.push(message);
        }
        Ok(Step::Wait)
    }
}
