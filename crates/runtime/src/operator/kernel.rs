//! Traits for signal processing: kernels and maps see slices of samples, not chunks.
//!
//! A [`Kernel`] or a [`Map`] keeps its own state. The adapters [`crate::Stream`] and [`crate::InPlace`] make
//! operators of them. The adapters handle chunks, tags, sample rate and stamps, so the output does not depend
//! on where chunks begin and end.

use crate::{Error, Sample, Value};

/// A change of a kernel's parameter that is made later; see [`tried`].
pub type Change<K> = Box<dyn FnOnce(&mut K) -> Result<(), Error> + Send>;

/// Tries a change on a copy of the kernel, and returns it for later. An invalid value is refused when it is
/// requested, not at its sample.
///
/// # Errors
/// The error of the trial.
pub fn tried<K: Clone>(
    kernel: &K,
    change: impl Fn(&mut K) -> Result<(), Error> + Send + 'static,
) -> Result<Change<K>, Error> {
    change(&mut kernel.clone())?;
    Ok(Box::new(change))
}

/// The error for a parameter that cannot be changed. The engine checks the name first.
pub fn not_settable(name: &str) -> Error {
    Error::new(format!("`{name}` cannot be changed while it runs"))
}

/// Result of one call of [`Kernel::process`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Number of input samples consumed. They are not offered again.
    pub consumed: usize,
    /// Number of output samples written, from the start of the output slice.
    pub produced: usize,
}

/// Number of output samples per number of input samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio {
    /// Output samples.
    pub up: u32,
    /// Input samples.
    pub down: u32,
}

/// A kernel or map that can continue a stream anywhere: see [`Kernel::finite`].
///
/// An output sample depends on the input samples of a window around its own instant and on the number of its
/// sample, and on nothing else. It is computed as soon as the window is complete, so the number of outputs
/// after a number of inputs is always the same.
///
/// ```
/// use onbeat_runtime::{FiniteMemory, Map};
///
/// /// The change from one sample to the next.
/// #[derive(Clone, Default)]
/// struct Difference { last: f32 }
///
/// impl Map for Difference {
///     type Sample = f32;
///     fn map(&mut self, samples: &mut [f32]) {
///         for x in samples {
///             *x -= std::mem::replace(&mut self.last, *x);
///         }
///     }
///     fn replica(&self) -> Option<Self> {
///         Some(Difference::default())
///     }
///     fn finite(&mut self) -> Option<&mut dyn FiniteMemory> {
///         Some(self)
///     }
/// }
///
/// impl FiniteMemory for Difference {
///     fn memory(&self) -> usize {
///         1
///     }
///     fn resume(&mut self, _position: u64) {
///         self.last = 0.0;
///     }
/// }
/// ```
pub trait FiniteMemory {
    /// Returns the number of input samples in the window of an output sample, less one. Fixed after the
    /// start.
    fn memory(&self) -> usize;

    /// Forgets all samples. The next input is sample number `position` of the stream, and the next output
    /// belongs to the same instant. `position` is a multiple of [`Ratio::down`].
    ///
    /// If it is not 0, outputs whose windows begin before `position` may have any value: another worker has
    /// sent them.
    fn resume(&mut self, position: u64);

    /// Begins with samples that no other worker gets. Those since [`resume`](FiniteMemory::resume) were
    /// samples of the past: a kernel that counts samples for its note does not count them. The default does
    /// nothing.
    fn begin(&mut self) {}
}

/// A stream operator whose output may have another sample type or rate than its input.
///
/// Output sample `k` belongs to the instant of input sample `k * down / up`: a filter drops its group delay
/// at the start and adds it in [`finish`](Kernel::finish). `N` input samples give `ceil(N * up / down)`
/// output samples, whatever the sizes of the slices were.
pub trait Kernel: Send + 'static {
    /// Type of an input sample.
    type In: Sample;
    /// Type of an output sample.
    type Out: Sample;

    /// Prepares for a stream with this sample rate in hertz; 0 if it has none. Called before the first
    /// sample. If the run survives a failure of the operator, it is called again: the kernel must then reset
    /// its state.
    ///
    /// # Errors
    /// If the kernel cannot work at this rate: the text names the rate, the limit and the parameter to
    /// change.
    fn start(&mut self, rate_hz: f64) -> Result<(), Error> {
        let _ = rate_hz;
        Ok(())
    }

    /// Returns the ratio of output samples to input samples, fixed after [`start`](Kernel::start). The
    /// default is 1:1.
    fn ratio(&self) -> Ratio {
        Ratio { up: 1, down: 1 }
    }

    /// Returns the number of output samples in a row, fixed after [`start`](Kernel::start). The default is 1.
    ///
    /// A kernel with longer rows sends whole rows only: `output` has room for a whole number of rows, and `N`
    /// input samples give `ceil(N / down)` times `up` output samples, where `up` is a multiple of a row.
    /// Chunks of its output have the shape `[rows, samples of a row, 0]`.
    fn row(&self) -> usize {
        1
    }

    /// Reads from `input` and writes to `output` until one of them is used up. It may consume without
    /// producing, or produce without consuming.
    fn process(&mut self, input: &[Self::In], output: &mut [Self::Out]) -> Progress;

    /// Writes the remaining samples to `output` after the end of the stream, and returns their number. Called
    /// until it returns 0. The default returns 0.
    fn finish(&mut self, output: &mut [Self::Out]) -> usize {
        let _ = output;
        0
    }

    /// Returns a note for the record, for example on samples that were not finite. Called once, at the end of
    /// a run that has not failed. The default is `None`.
    fn note(&self) -> Option<String> {
        None
    }

    /// Makes another kernel that does the same, for a kernel without state or with a
    /// [`finite`](Kernel::finite) memory. The default is `None`. Also called when the operator is made.
    ///
    /// Without state, each output sample depends only on its input sample and the parameters. Such a kernel
    /// gives one output sample per input sample, in the same call of [`process`](Kernel::process), and
    /// nothing in [`finish`](Kernel::finish).
    fn replica(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Returns the kernel as one that can continue a stream anywhere, if its outputs depend on a limited
    /// number of input samples, or on their number in the stream. The default is `None`.
    ///
    /// With [`replica`](Kernel::replica), several workers then share the stream: each gets some chunks after
    /// another worker's, and before them a few samples of the past. The output has the same bytes as that of
    /// one worker.
    fn finite(&mut self) -> Option<&mut dyn FiniteMemory> {
        None
    }

    /// Returns the names of the parameters that can be changed during a run. The default is none.
    fn settable(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the change that sets one of the [`settable`](Kernel::settable) parameters. The adapter makes
    /// it between two samples.
    ///
    /// ```
    /// use onbeat_runtime::{Change, Decibels, Error, Map, Value, tried};
    ///
    /// #[derive(Clone)]
    /// struct Gain { factor: f32 }
    /// impl Map for Gain {
    ///     type Sample = f32;
    ///     fn map(&mut self, samples: &mut [f32]) {
    ///         samples.iter_mut().for_each(|x| *x *= self.factor);
    ///     }
    ///     fn settable(&self) -> &'static [&'static str] {
    ///         &["gain"]
    ///     }
    ///     fn change(&self, name: &str, value: &Value) -> Result<Change<Self>, Error> {
    ///         let Decibels(gain_db) = value.read(name)?;
    ///         tried(self, move |it| { it.factor = 10f32.powf(gain_db as f32 / 20.0); Ok(()) })
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// If the parameter cannot have this value: the text names the value, the limit and the fix.
    fn change(&self, name: &str, value: &Value) -> Result<Change<Self>, Error>
    where
        Self: Sized,
    {
        let _ = value;
        Err(not_settable(name))
    }
}

/// A stream operator that changes samples in place: one output sample per input sample, of the same type.
pub trait Map: Send + 'static {
    /// Type of a sample.
    type Sample: Sample;

    /// Like [`Kernel::start`].
    ///
    /// # Errors
    /// Like [`Kernel::start`].
    fn start(&mut self, rate_hz: f64) -> Result<(), Error> {
        let _ = rate_hz;
        Ok(())
    }

    /// Replaces every sample by its result, in order.
    fn map(&mut self, samples: &mut [Self::Sample]);

    /// Like [`Kernel::note`].
    fn note(&self) -> Option<String> {
        None
    }

    /// Makes another map that does the same, for a map without state (each output sample depends only on its
    /// input sample and the parameters) or with a [`finite`](Map::finite) memory. The default is `None`.
    fn replica(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Like [`Kernel::finite`].
    fn finite(&mut self) -> Option<&mut dyn FiniteMemory> {
        None
    }

    /// Like [`Kernel::settable`].
    fn settable(&self) -> &'static [&'static str] {
        &[]
    }

    /// Like [`Kernel::change`].
    ///
    /// # Errors
    /// Like [`Kernel::change`].
    fn change(&self, name: &str, value: &Value) -> Result<Change<Self>, Error>
    where
        Self: Sized,
    {
        let _ = value;
        Err(not_settable(name))
    }
}
