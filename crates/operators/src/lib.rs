//! The operators that come with onbeat.
//!
//! [`registry`] holds all of them under the names that a pipeline file uses. `onbeat operators NAME` shows
//! the parameters of one kind. Where a kind exists for two sample types, the suffix names the type.
//!
//! | kind | in → out | description |
//! |---|---|---|
//! | `sigmf.source`, `sigmf.source.real` | → complex, real | plays a SigMF recording: [`SigmfSource`] |
//! | `sigmf.sink`, `sigmf.sink.real` | complex, real → | writes a SigMF recording: [`SigmfSink`] |
//! | `iq.source`, `iq.source.real` | → complex, real | plays a headerless sample file: [`IqSource`] |
//! | `iq.sink`, `iq.sink.real` | complex, real → | writes a headerless sample file: [`IqSink`] |
//! | `wav.source`, `wav.source.complex` | → real, complex | plays a WAV file: [`WavSource`] |
//! | `wav.sink` | real → | writes a WAV file: [`WavSink`] |
//! | `npy.source`, `npy.source.complex`, `npy.source.bytes` | → real, complex, bytes | plays a NumPy array frame by frame: [`NpySource`] |
//! | `npy.sink`, `npy.sink.complex`, `npy.sink.bytes` | real, complex, bytes → | writes a NumPy array: [`NpySink`] |
//! | `csv.source` | → real | plays columns of a CSV file: [`CsvSource`] |
//! | `csv.source.value` | → value | sends the rows of a CSV file at their times: [`CsvValueSource`] |
//! | `csv.sink` | real → | writes streams as columns of a CSV file: [`CsvSink`] |
//! | `csv.sink.value` | value → | writes values as rows of a CSV file: [`CsvValueSink`] |
//! | `png.source` | → bytes | plays PNG images, each as a frame: [`PngSource`] |
//! | `png.sink` | real → | draws frames or rows as PNG images: [`PngSink`] |
//! | `png.sink.bytes` | bytes → | writes frames as PNG images: [`PngFrameSink`] |
//! | `y4m.source` | → bytes | plays uncompressed video: [`Y4mSource`] |
//! | `y4m.sink` | bytes → | writes uncompressed video: [`Y4mSink`] |
//! | `v4l2.source` | → bytes | receives frames from a camera: [`V4l2Source`](camera::V4l2Source) |
//! | `waterfall.sink` | real → | draws spectra over time: [`Waterfall`] |
//! | `tone.source`, `tone.source.complex` | → real, complex | a tone: [`generators::ToneSource`] |
//! | `sweep.source`, `sweep.source.complex` | → real, complex | a tone whose frequency rises or falls: [`generators::SweepSource`] |
//! | `noise.source`, `noise.source.complex` | → real, complex | white noise: [`generators::NoiseSource`] |
//! | `constant.source`, `constant.source.complex` | → real, complex | samples of one value: [`generators::ConstantSource`] |
//! | `freq.shift` | complex | shifts every frequency: [`dsp::Shift`] |
//! | `fir.filter`, `fir.filter.real` | complex, real | low-pass filter: [`dsp::FirDecimator`] |
//! | `fir.decimate`, `fir.decimate.real` | complex, real | low-pass filter with decimation |
//! | `fir.band_pass`, `fir.band_pass.real` | complex, real | passes a band: [`dsp::BandPass`] |
//! | `fir.band_stop`, `fir.band_stop.real` | complex, real | stops a band: [`dsp::BandStop`] |
//! | `fir.high_pass`, `fir.high_pass.real` | complex, real | high-pass filter: [`dsp::HighPass`] |
//! | `fir.taps`, `fir.taps.real` | complex, real | filter with given taps: [`dsp::FirTaps`] |
//! | `magnitude` | complex → real | magnitude or power: [`dsp::Magnitude`] |
//! | `quad.demod` | complex → real | frequency demodulation: [`dsp::QuadDemod`] |
//! | `am.demod` | complex → real | amplitude demodulation: [`dsp::AmDemod`] |
//! | `ssb.demod` | complex → real | single-sideband demodulation: [`dsp::SsbDemod`] |
//! | `fm.stereo` | real → `left`, `right`: real, `pilot`: value | left and right of an FM station's multiplex: [`fm_multiplex::FmStereo`] |
//! | `pll`, `pll.complex` | real, complex → complex | follows the phase of a carrier: [`phase_loops::Pll`] |
//! | `costas` | complex | follows the phase of a PSK signal: [`phase_loops::Costas`] |
//! | `iq.balance` | complex | corrects I/Q imbalance: [`dsp::IqBalance`] |
//! | `dc.block`, `dc.block.complex` | real, complex | removes a constant: [`iir::DcBlock`] |
//! | `notch`, `notch.complex` | real, complex | stops one frequency: [`iir::Notch`], [`iir::ComplexNotch`] |
//! | `iir`, `iir.complex` | real, complex | Butterworth and Chebyshev filters: [`iir::Iir`] |
//! | `iir.sos`, `iir.sos.complex` | real, complex | recursive filter with given coefficients: [`iir::Sos`] |
//! | `deemphasis` | real | treble cut of an FM receiver: [`dsp::Deemphasis`] |
//! | `equalizer` | real | cascade of filters of second order: [`equalizer::Equalizer`] |
//! | `resample`, `resample.complex` | real, complex | changes the sample rate: [`dsp::Resampler`] |
//! | `agc`, `agc.complex` | real, complex | automatic gain control: [`dsp::Agc`] |
//! | `fft`, `fft.real` | complex, real → complex | Fourier transforms of frames: [`spectral::Fft`] |
//! | `channelizer` | complex | splits a band into channels: [`dsp::FilterBank`] |
//! | `spectrum`, `spectrum.real` | complex, real → real | power spectrum: [`spectral::Spectrum`] |
//! | `image.blur` | bytes | smooths grey frames: [`image::Blur`] |
//! | `image.threshold` | bytes | black or white: [`image::Threshold`] |
//! | `image.reduce` | bytes | smaller grey frames: [`image::Reduce`] |
//! | `image.convert` | bytes | frames between grey, RGB and YCbCr: [`image::Recolour`] |
//! | `image.resize` | bytes | frames of another size: [`image::Resize`] |
//! | `image.crop` | bytes | cuts a rectangle out of frames: [`image::Crop`] |
//! | `image.convolve` | bytes | weighted sums of neighbours: [`image::Convolve`] |
//! | `image.bytes` | real → bytes | scaled and rounded to bytes: [`image::ToBytes`] |
//! | `image.real` | bytes → real | real samples of bytes: [`image::FromBytes`] |
//! | `gain`, `gain.complex` | real, complex | gain in decibels: [`arithmetic::Gain`] |
//! | `clip`, `clip.complex` | real, complex | limits the magnitude: [`arithmetic::Clip`] |
//! | `abs` | real | absolute value: [`arithmetic::Absolute`] |
//! | `conjugate` | complex | complex conjugate: [`arithmetic::Conjugate`] |
//! | `real`, `imaginary`, `argument` | complex → real | parts and angle: [`arithmetic::RealPart`] |
//! | `complex` | real → complex | imaginary part 0: [`arithmetic::ToComplex`] |
//! | `saxpy` | real | a · x + b: [`dsp::Saxpy`] |
//! | `add`, `add.complex` | real, complex `a`, `b` | sum of two streams: [`Add`] |
//! | `subtract`, `subtract.complex` | real, complex `a`, `b` | difference of two streams: [`combine::Subtract`] |
//! | `multiply`, `multiply.complex` | real, complex `a`, `b` | product of two streams: [`combine::Multiply`] |
//! | `complex.join` | real `re`, `im` → complex | complex samples of two parts: [`combine::ComplexJoin`] |
//! | `mix`, `mix.complex` | real, complex `in0`, `in1`, ... | weighted sum of several streams: [`combine::Mix`] |
//! | `select`, `select.complex` | real, complex `in0`, `in1`, ... | passes one stream on: [`combine::Select`] |
//! | `sum`, `sum.complex` | real, complex `in0`, `in1`, ... | sum of several streams: [`lanes::Sum`] |
//! | `interleave` | real `in0`, `in1`, ... → real | interleaves streams: [`lanes::Interleave`] |
//! | `deinterleave` | real → real `out0`, `out1`, ... | splits a stream: [`lanes::Deinterleave`] |
//! | `delay`, `delay.complex` | real, complex | delays a stream: [`Delay`] |
//! | `squelch`, `squelch.complex` | real, complex | mutes a weak signal: [`Squelch`] |
//! | `valve`, `valve.complex`, `valve.bytes`, `valve.value` | real, complex, bytes, value | passes or stops a stream: [`flow::Valve`] |
//! | `head`, `head.complex`, `head.bytes`, `head.value` | real, complex, bytes, value | the first samples, then the end: [`flow::HeadSamples`] |
//! | `pad`, `pad.complex` | real, complex | zeros after the end: [`flow::Pad`] |
//! | `skip`, `skip.complex`, `skip.bytes`, `skip.value` | real, complex, bytes, value | all but the first samples: [`flow::SkipSamples`] |
//! | `repeat`, `repeat.complex` | real, complex | each sample several times: [`flow::RepeatSamples`] |
//! | `mean`, `std`, `minimum`, `peak_to_peak` | real → value | measures of windows: [`windowed::WindowMeasure`] |
//! | `rms`, `rms.complex`, `maximum`, `maximum.complex` | real, complex → value | measures of windows |
//! | `percentile` | real → value | percentile of each window: [`windowed::Percentile`] |
//! | `peaks` | real → value | heights of peaks: [`peaks::Peaks`] |
//! | `peaks.rate` | real → value | peaks per minute: [`peaks::PeakRate`] |
//! | `threshold` | real → real, `events`: value | on and off with hysteresis: [`Hysteresis`] |
//! | `expression` | real `a`, `b`, ... → real | formula over samples: [`expression::SampleExpression`] |
//! | `expression.value` | value `a`, `b`, ... → value | formula over values: [`expression::ValueExpression`] |
//! | `tap` | real | statistics of the passing samples: [`Tap`] |
//! | `tap.image` | bytes | keeps the latest frame for `onbeat ctl ... fetch`: [`ImageTap`] |
//! | `throttle`, `throttle.complex` | real, complex | limits the sample rate in real time: [`Throttle`] |
//! | `load`, `load.count` | real, numbers | keeps the core busy: [`Load`] |
//! | `counter` | → numbers | 0, 1, 2, ...: [`Counter`] |
//! | `timer` | → numbers | ticks with a fixed period: [`Timer`] |
//! | `merge` | numbers | several streams in one order: [`NumberMerge`] |
//! | `pid` | ticks, value → value | PID controller: [`Pid`] |
//! | `lag` | value | first-order lag: [`Lag`] |
//! | `route` | value → `high`, `low` | sends each value to one of two outputs: [`Route`] |
//! | `value.linear` | value | scale and offset: [`arithmetic::ValueLinear`] |
//! | `value.count` | value | number of values above a limit: [`arithmetic::ValueCount`] |
//! | `value.sink` | value → | summarises values, optionally writes them to a file: [`ValueSink`] |
//! | `text.source` | → text | reads lines from a file or stdin: [`TextSource`] |
//! | `text.sink`, `jsonl.sink` | text → | writes lines to a file or stdout: [`TextSink`] |
//! | `file.sink`, `file.sink.complex`, `file.sink.bytes` | real, complex, bytes → | dumps chunks to a file: [`FileSink`] |
//! | `stdin.source`, `stdin.source.complex` | → real, complex | reads samples from stdin: [`StdinSource`] |
//! | `stdout.sink`, `stdout.sink.complex` | real, complex → | writes samples to stdout: [`StdoutSink`] |
//! | `exec`, `exec.complex` | real, complex | sends samples through another program: [`Exec`] |
//! | `exec.source`, `exec.source.complex` | → real, complex | receives samples from another program: [`ExecSource`] |
//! | `exec.sink`, `exec.sink.complex` | real, complex → | sends samples to another program: [`ExecSink`] |
//! | `udp.source`, `udp.source.complex` | → real, complex | receives samples in UDP datagrams: [`UdpSource`] |
//! | `udp.sink`, `udp.sink.complex` | real, complex → | sends samples in UDP datagrams: [`UdpSink`] |
//! | `tcp.source`, `tcp.source.complex` | → real, complex | receives samples over TCP: [`TcpSource`] |
//! | `tcp.sink`, `tcp.sink.complex` | real, complex → | sends samples over TCP: [`TcpSink`] |
//! | `rtl_tcp.source` | → complex | receives samples from an RTL-SDR receiver on another host: [`RtlTcpSource`] |
//! | `soapy.source` | → complex | receives samples from a radio by SoapySDR: [`SoapySource`](soapy::SoapySource) |
//! | `soapy.sink` | complex → | transmits samples with a radio by SoapySDR: [`SoapySink`](soapy::SoapySink) |
//! | `audio.source` | → real, or `out0`, `out1`, ... | captures from a sound card: [`AudioSource`](sound::AudioSource) |
//! | `audio.sink` | real, or `in0`, `in1`, ... → | plays on a sound card: [`AudioSink`](sound::AudioSink) |
//! | `serial.source`, `serial.source.text`, `serial.source.bytes` | → real, text, bytes | receives from a serial port: [`SerialSampleSource`](buses::serial::SerialSampleSource) |
//! | `serial.sink`, `serial.sink.text`, `serial.sink.bytes` | real, text, bytes → | sends to a serial port: [`SerialSampleSink`](buses::serial::SerialSampleSink) |
//! | `gpio.source` | → value | sends the edges of a GPIO line: [`GpioSource`](buses::gpio::GpioSource) |
//! | `gpio.sink` | value → | sets a GPIO line: [`GpioSink`](buses::gpio::GpioSink) |
//! | `can.source` | → CAN | receives frames from a CAN bus: [`CanSource`](buses::can::CanSource) |
//! | `can.sink` | CAN → | sends frames to a CAN bus: [`CanSink`](buses::can::CanSink) |
//! | `can.text` | CAN → text | writes candump's log format: [`CanText`](buses::can::CanText) |
//! | `can.parse` | text → CAN | reads candump's log format: [`CanParse`](buses::can::CanParse) |
//! | `can.signal` | CAN → value | decodes a signal: [`CanSignal`](buses::can::CanSignal) |
//! | `can.frame` | value → CAN | encodes a signal: [`CanFrameMaker`](buses::can::CanFrameMaker) |
//! | `mqtt.source`, `mqtt.source.value` | → text, value | receives messages of an MQTT broker: [`MqttSource`](mqtt::MqttSource) |
//! | `mqtt.sink`, `mqtt.sink.value` | text, value → | publishes at an MQTT broker: [`MqttSink`](mqtt::MqttSink) |
//! | `link.source`, `link.source.complex`, `link.source.bytes`, `link.source.numbers`, `link.source.value`, `link.source.text`, `link.source.frames`, `link.source.can` | → all types | receives messages from another run: [`LinkSource`](onbeat_link::LinkSource) |
//! | `link.sink`, `link.sink.complex`, `link.sink.bytes`, `link.sink.numbers`, `link.sink.value`, `link.sink.text`, `link.sink.frames`, `link.sink.can` | all types → | sends messages to another run: [`LinkSink`](onbeat_link::LinkSink) |
//! | `mode_s.demod`, `mode_s.demod.complex` | real, complex → frames | finds Mode S frames: [`mode_s::Demod`] |
//! | `mode_s.decode` | frames → text | decodes frames to JSON lines: [`mode_s::Decode`] |
//! | `mode_s.source` | → frames | receives frames from other programs, or reads them from a file: [`mode_s::FrameSource`] |
//! | `mode_s.sink` | frames → | sends frames to map programs: [`mode_s::FrameSink`] |
//! | `mode_s.null` | frames → | discards frames |
//! | `afsk.decode` | real → text | receives packets (AX.25, APRS) from audio: [`packet::AfskDecode`] |
//! | `afsk.demod` | real | which of two tones is stronger: [`packet::AfskDemod`] |
//! | `psk.demod` | complex → real | bits of a PSK signal: [`modems::PskDemod`] |
//! | `fsk.demod` | complex → real | bits of an FSK signal: [`modems::FskDemod`] |
//! | `symbol.sync`, `symbol.sync.complex` | real, complex | one sample per symbol: [`symbols::SymbolSync`] |
//! | `ax25.decode` | real → text | decodes AX.25 frames in symbols: [`packet::Ax25Decode`] |
//! | `frame.decode` | real → text | frames with a sync word and a checksum: [`framing::FrameDecode`] |
//! | `pocsag.decode` | real → text | receives pages from audio: [`pocsag::PocsagDecode`] |
//! | `rds.decode` | real → text | receives the data of an FM station from its multiplex: [`rds::RdsDecode`] |
//! | `null.source`, `null.source.complex`, `null.source.bytes` | → real, complex, bytes | sends unwritten chunks: [`NullSource`] |
//! | `null.sink`, `null.sink.complex`, `null.sink.bytes`, `count.sink` | real, complex, bytes, numbers → | discards its input: [`NullSink`] |
//!
//! Real is `Chunk<f32>`, complex is `Chunk<Complex<f32>>`, bytes are `Chunk<u8>`, numbers are `u64`, a value
//! is an `f64`, CAN is a [`CanFrame`](buses::can::CanFrame). A step allocates memory only for tags, notes,
//! lines of text and pictures.
//!
//! Most operators pass a NaN or infinite sample on, or it spoils only the results computed from it.
//! `afsk.demod`, `afsk.decode`, `agc`, `ax25.decode`, `costas`, `deemphasis`, `equalizer`, `fft`,
//! `fm.stereo`, `fsk.demod`, `mode_s.demod`, `pll`, `pocsag.decode`, `psk.demod`, `quad.demod`,
//! `rds.decode`, `spectrum`, `squelch` and `symbol.sync` treat such a sample as 0, because it would spoil
//! more there. These kinds, the file sources and sinks, and `tap` count such samples. The record gives the
//! number at the end of the run.
//!
//! [`dsp`] holds the signal-processing kernels, plain state machines over slices of samples. [`recording`]
//! generates the signal of the FM receiver example.
#![forbid(unsafe_code)]

// What the derive macro writes begins at `::onbeat`.
extern crate onbeat_runtime as onbeat;

mod add;
pub mod arithmetic;
pub mod buses;
pub mod camera;
mod check;
pub mod combine;
mod control;
mod counter;
mod delay;
pub mod dsp;
pub mod equalizer;
pub mod expression;
mod filters;
pub mod flow;
mod flush_timer;
pub mod fm_multiplex;
mod format;
mod found;
pub mod framing;
pub mod generators;
mod hysteresis;
pub mod iir;
pub mod image;
mod iq;
pub mod lanes;
mod load;
mod merge;
pub mod mode_s;
pub mod modems;
pub mod mqtt;
mod note;
mod npy;
mod null;
pub mod packet;
mod part;
pub mod peaks;
pub mod phase_loops;
mod png;
pub mod pocsag;
pub mod rds;
pub mod recording;
mod sigmf;
pub mod soapy;
pub mod sound;
pub mod spectral;
mod squelch;
mod streams;
pub mod symbols;
mod tables;
mod tap;
mod throttle;
mod timer;
mod value_sink;
mod vectors;
mod waterfall;
mod wav;
mod wav_header;
mod wav_source;
pub mod windowed;
mod y4m;

pub use add::Add;
pub use control::{Gains, Lag, Pid, Route};
pub use counter::Counter;
pub use delay::{Delay, DelayLength};
pub use format::{ArraySample, FileSample, SampleFormat};
pub use hysteresis::Hysteresis;
pub use iq::{IqSink, IqSource};
pub use load::{Load, LoadWork};
pub use merge::NumberMerge;
pub use npy::{NpySink, NpySource};
pub use null::{NullSink, NullSource};
pub use onbeat_runtime::Overrun;
pub use png::{ColourMap, ImageTap, PictureFormat, PngFrameSink, PngSink, PngSource};
pub use sigmf::{SigmfSink, SigmfSource};
pub use squelch::{Closed, Squelch};
pub use streams::{
    Exec, ExecCommand, ExecSink, ExecSource, FileSink, Framing, RtlTcpSource, StdinSource, StdoutSink,
    TcpPeer, TcpSink, TcpSource, TextSink, TextSource, TunerGain, UdpSink, UdpSource, writes_stdout,
};
pub use tables::{
    CsvSink, CsvSource, CsvValueSink, CsvValueSource, Decimal, Missing, TableFormat, TimeColumn, TimeUnit,
};
pub use tap::Tap;
pub use throttle::Throttle;
pub use timer::Timer;
pub use value_sink::ValueSink;
pub use waterfall::Waterfall;
pub use wav::{WavFormat, WavSink};
pub use wav_source::WavSource;
pub use y4m::{Chroma, VideoFormat, Y4mSink, Y4mSource};

use onbeat_runtime::{Kind, Registry};

/// All kinds of this crate.
///
/// ```
/// let registry = onbeat_operators::registry();
/// let (inputs, outputs) = registry.get("quad.demod").unwrap().ports();
/// assert_eq!(inputs[0].message, "Chunk<Complex<f32>>");
/// assert_eq!(outputs[0].message, "Chunk<f32>");
/// ```
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    for kind in [
        wav::kind(),
        Kind::combine::<Add<f32>>(),
        Kind::combine::<Add<num_complex::Complex<f32>>>().named("add.complex"),
        tap::kind(),
        counter::kind(),
        timer::kind(),
        merge::kind(),
        value_sink::kind(),
    ] {
        registry.add(kind);
    }
    generators::add_kinds(&mut registry);
    arithmetic::add_kinds(&mut registry);
    flow::add_kinds(&mut registry);
    fm_multiplex::add_kinds(&mut registry);
    combine::add_kinds(&mut registry);
    control::add_kinds(&mut registry);
    wav_source::add_kinds(&mut registry);
    delay::add_kinds(&mut registry);
    equalizer::add_kinds(&mut registry);
    lanes::add_kinds(&mut registry);
    mode_s::add_kinds(&mut registry);
    squelch::add_kinds(&mut registry);
    filters::add_kinds(&mut registry);
    iir::add_kinds(&mut registry);
    spectral::add_kinds(&mut registry);
    waterfall::add_kinds(&mut registry);
    image::add_kinds(&mut registry);
    streams::add_kinds(&mut registry);
    buses::add_kinds(&mut registry);
    framing::add_kinds(&mut registry);
    modems::add_kinds(&mut registry);
    mqtt::add_kinds(&mut registry);
    camera::add_kinds(&mut registry);
    soapy::add_kinds(&mut registry);
    sound::add_kinds(&mut registry);
    symbols::add_kinds(&mut registry);
    throttle::add_kinds(&mut registry);
    load::add_kinds(&mut registry);
    null::add_kinds(&mut registry);
    sigmf::add_kinds(&mut registry);
    iq::add_kinds(&mut registry);
    npy::add_kinds(&mut registry);
    tables::add_kinds(&mut registry);
    packet::add_kinds(&mut registry);
    peaks::add_kinds(&mut registry);
    phase_loops::add_kinds(&mut registry);
    pocsag::add_kinds(&mut registry);
    rds::add_kinds(&mut registry);
    hysteresis::add_kinds(&mut registry);
    expression::add_kinds(&mut registry);
    windowed::add_kinds(&mut registry);
    png::add_kinds(&mut registry);
    y4m::add_kinds(&mut registry);
    onbeat_link::add_kinds(&mut registry);
    onbeat_link::add_kinds_of::<mode_s::Frame>(&mut registry, "link.sink.frames", "link.source.frames");
    registry
}
