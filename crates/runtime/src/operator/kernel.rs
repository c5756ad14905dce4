//! Streams of samples without chunks: what a signal-processing operator implements.
//!
//! A [`Kernel`] or a [`Map`] sees slices of samples and keeps its own state. The adapters [`crate::Stream`]
//! and [`crate::InPlace`] make operators of them: they carry chunks, tags, sample rate and stamps, so that
//! what comes out cannot depend on where chunks begin and end.

use crate::{Error, Sample, Value};

/// A change of a kernel that is made later: see [`tried`].
pub type Change<K> = Box<dyn FnOnce(&mut K) -> Result<(), Error> + Send>;

/// A change that was tried on a copy: what cannot be is refused when it is asked for, and not at its sample.
///
/// # Errors
/// What the trial says.
pub fn tried<K: Clone>(
    kernel: &K,
    change: impl Fn(&mut K) -> Result<(), Error> + Send + 'static,
) -> Result<Change<K>, Error> {
    change(&mut kernel.clone())?;
    Ok(Box::new(change))
}

/// For a name that is not among those that can be changed, which the engine asks for before.
pub(crate) fn not_settable(name: &str) -> Error {
    Error::new(format!("`{name}` cannot be changed while it runs"))
}

/// What one call of [`Kernel::process`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Input samples that are used up and will not be offered again.
    pub consumed: usize,
    /// Output samples written, from the start of the output slice.
    pub produced: usize,
}

/// How many output samples come for how many input samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio {
    /// Output samples.
    pub up: u32,
    /// Input samples.
    pub down: u32,
}

/// A stream operator whose output has a type or rate of its own.
///
/// Output sample `k` belongs to the instant of input sample `k * down / up`: a filter leaves out its own
/// group delay at the start and pays it back in [`finish`](Kernel::finish). `N` input samples give `ceil(N *
/// up / down)` output samples, whatever the sizes of the slices were.
pub trait Kernel: Send + 'static {
    /// Type of an input sample.
    type In: Sample;
    /// Type of an output sample.
    type Out: Sample;

    /// Called before the first sample, with the sample rate in hertz that came with it (0 when there is
    /// none). After a failure that the run survives it is called once more: what came before is to be
    /// forgotten.
    ///
    /// # Errors
    /// When the kernel cannot work at this rate: name the rate, the limit and the parameter to change.
    fn start(&mut self, rate_hz: f64) -> Result<(), Error> {
        let _ = rate_hz;
        Ok(())
    }

    /// Output samples per input samples, fixed after [`start`](Kernel::start).
    fn ratio(&self) -> Ratio {
        Ratio { up: 1, down: 1 }
    }

    /// Uses up some of `input`, fills some of `output`. It goes on until one of both is used up; it may
    /// consume without producing, or produce without consuming.
    fn process(&mut self, input: &[Self::In], output: &mut [Self::Out]) -> Progress;

    /// The stream has ended: writes what is still inside to `output` and returns how many samples that were.
    /// Called again until it returns 0.
    fn finish(&mut self, output: &mut [Self::Out]) -> usize {
        let _ = output;
        0
    }

    /// What was odd about the samples, for people: asked once at the end of a run that has not failed.
    fn note(&self) -> Option<String> {
        None
    }

    /// Another one that does the same, where it has no state: what becomes of a sample depends on that sample
    /// and the parameters alone. See [`Operator::replica`](crate::Operator::replica). The kernel gives one
    /// sample for each, at once, and has nothing to [`finish`](Kernel::finish). Asked when the operator is
    /// made, too.
    fn replica(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Names of the parameters that can be changed while the stream runs.
    fn settable(&self) -> &'static [&'static str] {
        &[]
    }

    /// The change that sets a parameter, one of [`settable`](Kernel::settable). The adapter makes it between
    /// two samples.
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
    /// When the parameter cannot have this value: name the value, the limit and the fix.
    fn change(&self, name: &str, value: &Value) -> Result<Change<Self>, Error>
    where
        Self: Sized,
    {
        let _ = value;
        Err(not_settable(name))
    }
}

/// A stream operator that changes samples in place: one in, one out, same type.
pub trait Map: Send + 'static {
    /// Type of a sample.
    type Sample: Sample;

    /// As [`Kernel::start`].
    ///
    /// # Errors
    /// As [`Kernel::start`].
    fn start(&mut self, rate_hz: f64) -> Result<(), Error> {
        let _ = rate_hz;
        Ok(())
    }

    /// Replaces every sample by its result, in order.
    fn map(&mut self, samples: &mut [Self::Sample]);

    /// As [`Kernel::note`].
    fn note(&self) -> Option<String> {
        None
    }

    /// Another one that does the same, where it has no state: what becomes of a sample depends on that sample
    /// and the parameters alone. See [`Operator::replica`](crate::Operator::replica).
    fn replica(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// As [`Kernel::settable`].
    fn settable(&self) -> &'static [&'static str] {
        &[]
    }

    /// As [`Kernel::change`].
    ///
    /// # Errors
    /// As [`Kernel::change`].
    fn change(&self, name: &str, value: &Value) -> Result<Change<Self>, Error>
    where
        Self: Sized,
    {
        let _ = value;
        Err(not_settable(name))
    }
}
