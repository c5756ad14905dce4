//! The operators that come with onbeat.
//!
//! [`registry`] has all of them by the names under which a pipeline file asks for them; `onbeat operators NAME` shows
//! the parameters of one. Where there are two types of samples, the ending says which is meant.
//!
//! | kind | in → out | does | parameters |
//! |---|---|---|---|
//! | `sigmf.source` | → complex | plays a SigMF recording, annotations as tags: [`SigmfSource`] | `path`, `pace`, `repeat`, `verify`, `sample_rate` |
//! | `wav.sink` | real → | writes a WAV file: [`WavSink`] | `path`, `format` |
//! | `freq.shift` | complex | moves every frequency: [`dsp::Shift`] | `shift` |
//! | `fir.filter`, `fir.filter.real` | complex, real | low-pass filter: [`dsp::FirDecimator`] | `cutoff`, `transition`, `attenuation` |
//! | `fir.decimate`, `fir.decimate.real` | complex, real | the same, and keeps every n-th sample | `factor`, `cutoff`, `transition`, `attenuation` |
//! | `quad.demod` | complex → real | frequency demodulation: [`dsp::QuadDemod`] | `deviation` |
//! | `deemphasis` | real | treble cut of an FM receiver: [`dsp::Deemphasis`] | `tau` |
//! | `resample`, `resample.complex` | real, complex | changes the sample rate: [`dsp::Resampler`] | `rate` or `up`, `down`; `pass_band`, `attenuation` |
//! | `saxpy` | real | a · x + b: [`dsp::Saxpy`] | `a`, `b` |
//! | `add` | real `a`, `b` → real | sum of two streams: [`Add`] | |
//! | `tap` | real | statistics of what passes: [`Tap`] | `path`, `every` |
//! | `throttle`, `throttle.complex` | real, complex | holds chunks back to a rate: [`Throttle`] | `rate` |
//! | `load`, `load.count` | real, numbers | keeps the core busy: [`Load`] | `busy` or `count` |
//! | `counter` | → numbers | 0, 1, 2, ...: [`Counter`] | `count`, `start`, `rate`, `pace` |
//! | `timer` | → numbers | ticks with a period: [`Timer`] | `period`, `count`, `overrun` |
//! | `merge` | numbers | several streams in one order: [`Merge`] | |
//! | `pid` | ticks, value → value | a controller: [`Pid`] | `setpoint`, `kp`, `ki`, `kd`, `least`, `most` |
//! | `lag` | value | a first-order lag: [`Lag`] | `gain`, `tau` |
//! | `route` | value → `high`, `low` | one of two outputs: [`Route`] | `threshold` |
//! | `value.sink` | value → | single values, some to a file: [`ValueSink`] | `path`, `every` |
//! | `null.source`, `null.source.complex` | → real, complex | chunks that nobody wrote: [`NullSource`] | `count`, `size`, `rate`, `pace` |
//! | `null.sink`, `null.sink.complex`, `count.sink` | real, complex, numbers → | lets go of what comes: [`NullSink`] | |
//!
//! Real is `Chunk<f32>`, complex is `Chunk<Complex<f32>>`, numbers are `u64`, a value is an `f64`. Nothing is allocated in a step, but for
//! tags, notes and the lines of a tap.
//!
//! [`dsp`] holds the signal-processing kernels, plain state machines over slices of samples;
//! [`recording`] makes the signal of the FM receiver example.
#![forbid(unsafe_code)]

mod add;
mod check;
mod control;
mod counter;
pub mod dsp;
mod filters;
mod load;
mod merge;
pub mod mode_s;
mod null;
mod part;
pub mod recording;
mod sigmf;
mod tap;
mod throttle;
mod timer;
mod wav;

pub use add::Add;
pub use control::{Gains, Lag, Pid, Route, ValueSink};
pub use counter::Counter;
pub use load::{Load, Work};
pub use merge::Merge;
pub use null::{NullSink, NullSource};
pub use onbeat_runtime::Overrun;
pub use sigmf::SigmfSource;
pub use tap::Tap;
pub use throttle::Throttle;
pub use timer::Timer;
pub use wav::{WavFormat, WavSink};

use onbeat_runtime::Registry;

/// All kinds of this crate.
///
/// ```
/// let registry = onbeat_operators::registry();
/// let (inputs, outputs) = registry.get("quad.demod").unwrap().ports();
/// assert_eq!((inputs[0].message.as_str(), outputs[0].message.as_str()), ("Chunk<Complex<f32>>", "Chunk<f32>"));
/// ```
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    for kind in
        [sigmf::kind(), wav::kind(), add::kind(), tap::kind(), counter::kind(), timer::kind(), merge::kind()]
    {
        registry.add(kind);
    }
    control::add_kinds(&mut registry);
    filters::add_kinds(&mut registry);
    throttle::add_kinds(&mut registry);
    load::add_kinds(&mut registry);
    null::add_kinds(&mut registry);
    registry
}
