//! The operators that come with onbeat.
//!
//! [`registry`] has all of them by the names under which a pipeline file asks for them; `onbeat operators NAME` shows
//! the parameters of one. Where there are two types of samples, the ending says which is meant.
//!
//! | kind | in → out | does | parameters |
//! |---|---|---|---|
//! | `sigmf.source`, `sigmf.source.real` | → complex, real | plays a SigMF recording, annotations as tags: [`SigmfSource`] | `path`, `pace`, `repeat`, `verify`, `sample_rate`, `channel`, `channels` |
//! | `sigmf.sink`, `sigmf.sink.real` | complex, real → | writes one, tags as annotations: [`SigmfSink`] | `path`, `format`, `channels`, `description` |
//! | `iq.source`, `iq.source.real` | → complex, real | plays a file of nothing but samples: [`IqSource`] | `path`, `format`, `sample_rate`, `pace`, `repeat`, `offset`, `count`, `channels`, `channel` |
//! | `iq.sink`, `iq.sink.real` | complex, real → | writes one: [`IqSink`] | `path`, `format`, `channels` |
//! | `wav.source` | → real | plays a WAV file: [`WavSource`] | `path`, `channel`, `channels`, `pace`, `repeat` |
//! | `wav.sink` | real → | writes a WAV file: [`WavSink`] | `path`, `format`, `channels` |
//! | `npy.source`, `npy.source.complex` | → real, complex | plays an array of NumPy, frame by frame: [`NpySource`] | `path`, `rate`, `pace`, `repeat` |
//! | `npy.sink`, `npy.sink.complex` | real, complex → | writes one: [`NpySink`] | `path` |
//! | `png.sink` | real → | makes pictures of frames or rows: [`PngSink`] | `path`, `min`, `max`, `map`, `rows` |
//! | `waterfall.sink` | real → | draws spectra over time, with axes: [`Waterfall`] | `path`, `min`, `max`, `centre`, `rows` |
//! | `freq.shift` | complex | moves every frequency: [`dsp::Shift`] | `shift` |
//! | `fir.filter`, `fir.filter.real` | complex, real | low-pass filter: [`dsp::FirDecimator`] | `cutoff`, `transition`, `attenuation` |
//! | `fir.decimate`, `fir.decimate.real` | complex, real | the same, and keeps every n-th sample | `factor`, `cutoff`, `transition`, `attenuation` |
//! | `magnitude` | complex → real | size, or power: [`dsp::Magnitude`] | `power` |
//! | `quad.demod` | complex → real | frequency demodulation: [`dsp::QuadDemod`] | `deviation` |
//! | `deemphasis` | real | treble cut of an FM receiver: [`dsp::Deemphasis`] | `tau` |
//! | `resample`, `resample.complex` | real, complex | changes the sample rate: [`dsp::Resampler`] | `rate` or `up`, `down`; `pass_band`, `attenuation` |
//! | `agc`, `agc.complex` | real, complex | brings a signal to a level: [`dsp::Agc`] | `target`, `attack`, `decay`, `most` |
//! | `fft`, `fft.real` | complex, real → complex | transforms of frames: [`spectral::Fft`] | `size`, `hop`, `window` |
//! | `spectrum`, `spectrum.real` | complex, real → real | power by frequency: [`spectral::Spectrum`] | `size`, `hop`, `window`, `average` |
//! | `saxpy` | real | a · x + b: [`dsp::Saxpy`] | `a`, `b` |
//! | `add` | real `a`, `b` → real | sum of two streams: [`Add`] | |
//! | `sum` | real `in0`, `in1`, ... → real | sum of streams: [`lanes::Sum`] | `inputs` |
//! | `interleave` | real `in0`, `in1`, ... → real | streams in turn: [`lanes::Interleave`] | `inputs` |
//! | `deinterleave` | real → real `out0`, `out1`, ... | every n-th sample: [`lanes::Deinterleave`] | `outputs` |
//! | `delay`, `delay.complex` | real, complex | later: [`Delay`] | `samples` or `time` |
//! | `squelch`, `squelch.complex` | real, complex | silence without a signal: [`Squelch`] | `open`, `close`, `tau`, `closed` |
//! | `tap` | real | statistics of what passes: [`Tap`] | `path`, `every` |
//! | `throttle`, `throttle.complex` | real, complex | holds chunks back to a rate: [`Throttle`] | `rate` |
//! | `load`, `load.count` | real, numbers | keeps the core busy: [`Load`] | `busy`, `cpu` or `count` |
//! | `counter` | → numbers | 0, 1, 2, ...: [`Counter`] | `count`, `start`, `rate`, `pace` |
//! | `timer` | → numbers | ticks with a period: [`Timer`] | `period`, `count`, `overrun` |
//! | `merge` | numbers | several streams in one order: [`Merge`] | |
//! | `pid` | ticks, value → value | a controller: [`Pid`] | `setpoint`, `kp`, `ki`, `kd`, `least`, `most` |
//! | `lag` | value | a first-order lag: [`Lag`] | `gain`, `tau` |
//! | `route` | value → `high`, `low` | one of two outputs: [`Route`] | `threshold` |
//! | `value.sink` | value → | single values, some to a file: [`ValueSink`] | `path`, `every` |
//! | `text.source` | → text | lines of a file or of stdin: [`TextSource`] | `path` |
//! | `text.sink`, `jsonl.sink` | text → | lines to a file or to stdout: [`TextSink`] | `path` |
//! | `file.sink`, `file.sink.complex`, `file.sink.bytes` | real, complex, bytes → | chunks as they are: [`FileSink`] | `path` |
//! | `stdin.source`, `stdin.source.complex` | → real, complex | samples from stdin: [`StdinSource`] | `format`, `sample_rate` |
//! | `stdout.sink`, `stdout.sink.complex` | real, complex → | samples to stdout: [`StdoutSink`] | `format` |
//! | `udp.source`, `udp.source.complex` | → real, complex | samples from datagrams, lost ones counted: [`UdpSource`] | `bind`, `format`, `header`, `sample_rate`, `timeout` |
//! | `udp.sink`, `udp.sink.complex` | real, complex → | samples into datagrams: [`UdpSink`] | `address`, `format`, `header`, `size` |
//! | `tcp.source`, `tcp.source.complex` | → real, complex | samples from a connection: [`TcpSource`] | `connect` or `listen`, `framing`, `format`, `sample_rate`, `patience` |
//! | `tcp.sink`, `tcp.sink.complex` | real, complex → | samples into a connection: [`TcpSink`] | `connect` or `listen`, `framing`, `format`, `patience` |
//! | `mode_s.demod`, `mode_s.demod.complex` | real, complex → frames | finds the frames of aircraft: [`mode_s::Demod`] | `remember` |
//! | `mode_s.decode` | frames → text | what they say, as lines of JSON: [`mode_s::Decode`] | |
//! | `mode_s.null` | frames → | lets go of frames | |
//! | `null.source`, `null.source.complex` | → real, complex | chunks that nobody wrote: [`NullSource`] | `count`, `size`, `rate`, `pace` |
//! | `null.sink`, `null.sink.complex`, `count.sink` | real, complex, numbers → | lets go of what comes: [`NullSink`] | |
//!
//! Real is `Chunk<f32>`, complex is `Chunk<Complex<f32>>`, numbers are `u64`, a value is an `f64`. Nothing is allocated in a step, but for
//! tags, notes, lines of text and pictures.
//!
//! A sample that is NaN or infinite goes through most operators as it is, or spoils what is made of it and nothing that
//! comes after. `agc`, `deemphasis`, `fft`, `mode_s.demod`, `quad.demod`, `spectrum` and `squelch`, where it would spoil
//! more, take it as 0. Those, sources and sinks of files and `tap` count such samples, and the record says at the end how
//! many there were.
//!
//! [`dsp`] holds the signal-processing kernels, plain state machines over slices of samples;
//! [`recording`] makes the signal of the FM receiver example.
#![forbid(unsafe_code)]

mod add;
mod check;
mod control;
mod counter;
mod delay;
pub mod dsp;
mod filters;
mod format;
mod iq;
pub mod lanes;
mod load;
mod merge;
pub mod mode_s;
mod note;
mod npy;
mod null;
mod part;
mod png;
pub mod recording;
mod sigmf;
pub mod spectral;
mod squelch;
mod streams;
mod tap;
mod throttle;
mod timer;
mod value_sink;
mod waterfall;
mod wav;
mod wav_source;

pub use add::Add;
pub use control::{Gains, Lag, Pid, Route};
pub use counter::Counter;
pub use delay::{Delay, Lag as DelayLag};
pub use format::{FileSample, SampleFormat};
pub use iq::{IqSink, IqSource};
pub use load::{Load, Work};
pub use merge::Merge;
pub use npy::{NpySink, NpySource};
pub use null::{NullSink, NullSource};
pub use onbeat_runtime::Overrun;
pub use png::{ColourMap, PngSink};
pub use sigmf::{SigmfSink, SigmfSource};
pub use squelch::{Closed, Squelch};
pub use streams::{
    FileSink, Framing, Peer, StdinSource, StdoutSink, TcpSink, TcpSource, TextSink, TextSource, UdpSink,
    UdpSource, writes_stdout,
};
pub use tap::Tap;
pub use throttle::Throttle;
pub use timer::Timer;
pub use value_sink::ValueSink;
pub use waterfall::Waterfall;
pub use wav::{WavFormat, WavSink};
pub use wav_source::WavSource;

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
    for kind in [
        wav::kind(),
        wav_source::kind(),
        png::kind(),
        add::kind(),
        tap::kind(),
        counter::kind(),
        timer::kind(),
        merge::kind(),
        value_sink::kind(),
    ] {
        registry.add(kind);
    }
    control::add_kinds(&mut registry);
    delay::add_kinds(&mut registry);
    lanes::add_kinds(&mut registry);
    mode_s::add_kinds(&mut registry);
    squelch::add_kinds(&mut registry);
    filters::add_kinds(&mut registry);
    spectral::add_kinds(&mut registry);
    waterfall::add_kinds(&mut registry);
    streams::add_kinds(&mut registry);
    throttle::add_kinds(&mut registry);
    load::add_kinds(&mut registry);
    null::add_kinds(&mut registry);
    sigmf::add_kinds(&mut registry);
    iq::add_kinds(&mut registry);
    npy::add_kinds(&mut registry);
    registry
}
