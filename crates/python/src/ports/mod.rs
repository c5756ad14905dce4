//! Ports of Python operators: their types are words, known when the class is read.
//!
//! | file | contents |
//! |---|---|
//! | `chunks` | ports for samples: arrays over chunks |
//! | `in_place` | the port of an operator that changes chunks in place |
//! | `lent` | a chunk that a step may write to |
//! | `values` | ports for single values, and for Python objects |

mod chunks;
mod in_place;
mod lent;
mod values;

pub use in_place::InPlacePort;
pub use values::Emitter;

use crate::object::Object;
use chunks::{ChunkInlet, ChunkOutlet};
use in_place::ChunkInPlace;
use num_complex::Complex;
use onbeat::{Context, Error, Info, Ports, Stamp};
use pyo3::prelude::*;
use values::{ValueInlet, ValueOutlet};

/// An input of a Python operator.
pub trait Inlet: Send {
    fn declare(&mut self, name: &str, p: &mut Ports<'_>);

    /// Takes the next message if nothing is in hand. Returns what is in hand: a number of samples, or 1 for a
    /// message; 0 if there is nothing.
    fn fetch(&mut self, cx: &mut Context) -> usize;

    /// Whether nothing more will come.
    fn is_ended(&self, cx: &Context) -> bool;

    /// Head of the chunk in hand, and how many of its samples are used up; `None` for other messages.
    fn info(&self) -> Option<(&Info, usize)>;

    /// Stamp of what is in hand.
    fn stamp(&self) -> Stamp;

    /// Makes the argument for a step: the next `count` samples, or the message.
    fn lend<'py>(&mut self, py: Python<'py>, count: usize) -> PyResult<Bound<'py, PyAny>>;

    /// Takes the argument back after the step, which has used this many samples.
    ///
    /// # Errors
    /// If the step has kept it without saying so.
    fn take_back(&mut self, argument: &Bound<'_, PyAny>, used: usize, name: &str) -> PyResult<()>;

    /// Asks for more samples before the next step, in one piece with those in hand.
    fn starve(&mut self);

    /// Tells the engine whether something is in hand after the step. Returns the same.
    fn hold(&self, cx: &mut Context) -> bool;
}

/// Head of what a step sends: rate and tags, with their index in the output.
#[derive(Default)]
pub struct OutHead {
    pub rate_hz: f64,
    pub tags: Vec<onbeat::Tag>,
    pub shape: [u32; 3],
}

/// Error of a port: one of Python's, or one of the engine's.
pub enum PortError {
    Python(PyErr),
    Engine(Error),
}

impl From<PyErr> for PortError {
    fn from(error: PyErr) -> Self {
        PortError::Python(error)
    }
}

impl From<Error> for PortError {
    fn from(error: Error) -> Self {
        PortError::Engine(error)
    }
}

/// An output of a Python operator.
pub trait Outlet: Send {
    fn declare(&mut self, name: &str, p: &mut Ports<'_>);

    /// Takes a chunk to fill. Returns the number of samples that fit; `None` if no chunk is left. An output
    /// for messages has room for as many as its edges.
    fn open(&mut self, cx: &mut Context) -> Option<usize>;

    /// Whether it sends samples.
    fn has_samples(&self) -> bool;

    /// Makes the argument for a step: an array for `count` samples, in this shape if there is one, or an
    /// [`Emitter`].
    fn lend<'py>(&mut self, py: Python<'py>, count: usize, shape: [u32; 3]) -> PyResult<Bound<'py, PyAny>>;

    /// Takes the argument back after a step that failed.
    fn revoke(&mut self, argument: &Bound<'_, PyAny>);

    /// Takes the argument back, and sends the samples that the step made, or its messages.
    ///
    /// # Errors
    /// If the step has kept the array, if a value has the wrong type, or if an edge refuses the message.
    fn send(
        &mut self,
        cx: &mut Context,
        argument: &Bound<'_, PyAny>,
        made: usize,
        head: &OutHead,
        name: &str,
    ) -> Result<(), PortError>;
}

/// Rows, columns and planes as the dimensions of an array; the plain length if there is no shape.
fn dims(shape: [u32; 3], count: usize) -> Vec<usize> {
    let dims: Vec<usize> =
        shape.iter().map(|&length| length as usize).take_while(|&length| length > 0).collect();
    if !dims.is_empty() && dims.iter().product::<usize>() == count { dims } else { vec![count] }
}

/// Makes the port types of a word.
macro_rules! of_words {
    ($word:expr, $chunk:ident, $value:ident; $($chunk_word:literal: $sample:ty),*; $($value_word:literal: $message:ty),*) => {
        match $word {
            $($chunk_word => Some(Box::<$chunk<$sample>>::default()),)*
            $($value_word => Some(Box::<$value<$message>>::default()),)*
            _ => None,
        }
    };
}

/// Makes an input for messages of the type that this word names.
pub fn inlet(word: &str) -> Option<Box<dyn Inlet>> {
    of_words!(word, ChunkInlet, ValueInlet;
        "real": f32, "complex": Complex<f32>, "bytes": u8, "int16": i16, "int32": i32, "real64": f64,
        "complex128": Complex<f64>;
        "float": f64, "int": u64, "bool": bool, "str": String, "object": Object)
}

/// Makes an output for messages of the type that this word names.
pub fn outlet(word: &str) -> Option<Box<dyn Outlet>> {
    of_words!(word, ChunkOutlet, ValueOutlet;
        "real": f32, "complex": Complex<f32>, "bytes": u8, "int16": i16, "int32": i32, "real64": f64,
        "complex128": Complex<f64>;
        "float": f64, "int": u64, "bool": bool, "str": String, "object": Object)
}

/// Makes the port of an operator that changes samples of this type in place.
pub fn in_place(word: &str) -> Option<Box<dyn InPlacePort>> {
    Some(match word {
        "real" => Box::<ChunkInPlace<f32>>::default(),
        "complex" => Box::<ChunkInPlace<Complex<f32>>>::default(),
        "bytes" => Box::<ChunkInPlace<u8>>::default(),
        "int16" => Box::<ChunkInPlace<i16>>::default(),
        "int32" => Box::<ChunkInPlace<i32>>::default(),
        "real64" => Box::<ChunkInPlace<f64>>::default(),
        "complex128" => Box::<ChunkInPlace<Complex<f64>>>::default(),
        _ => return None,
    })
}
