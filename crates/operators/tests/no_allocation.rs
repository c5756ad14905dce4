//! Operators do not allocate memory while samples flow. (Tags, notes, lines of text and pictures do. Stdin
//! and stdout belong to the test runner and are not tested.)
#![forbid(unsafe_code)]

#[path = "no_allocation/frames.rs"]
mod frames;
#[path = "it/harness/mod.rs"]
mod harness;
#[path = "no_allocation/loops.rs"]
mod loops;
#[path = "no_allocation/measures.rs"]
mod measures;
#[path = "no_allocation/network.rs"]
mod network;

use harness::{fast, recording, run, watched};
use num_complex::Complex;
use onbeat_operators::dsp::{
    Agc, AmDemod, BandPass, Deemphasis, FilterBank, FirDecimator, FirMethod, FirTaps, IqBalance, Magnitude,
    QuadDemod, Quality, Resampler, Saxpy, Shift, SsbDemod,
};
use onbeat_operators::equalizer::{Band, BandType, Equalizer};
use onbeat_operators::iir::{ComplexNotch, DcBlock, Iir, Notch};
use onbeat_operators::image::{
    Blur, ColourMatrix, ColourRange, ColourSpace, Convolve, Crop, FromBytes, PerFrame, Recolour, Reduce,
    Threshold, ToBytes,
};
use onbeat_operators::lanes::{Deinterleave, Interleave, Sum};
use onbeat_operators::mode_s::{Demod, Frame};
use onbeat_operators::spectral::{Fft, Framed, Spectrum, Window};
use onbeat_operators::{
    Add, Closed, Counter, CsvSink, CsvSource, CsvValueSink, CsvValueSource, Delay, DelayLength, Exec,
    ExecCommand, FileSink, Framing, IqSink, IqSource, Load, LoadWork, NpySink, NpySource, NullSink,
    NullSource, NumberMerge, Overrun, PngSink, SampleFormat, SigmfSink, SigmfSource, Squelch, Tap, TcpPeer,
    TcpSink, TcpSource, Throttle, TimeColumn, Timer, UdpSink, UdpSource, VideoFormat, WavSink, WavSource,
    Y4mSink, Y4mSource,
};
use onbeat_runtime::testing::{Feed, Trial};
use onbeat_runtime::{Chunk, Combined, Declared, Graph, InPlace, Message, Options, Pace, Stream};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, UdpSocket};
use std::path::Path;
use std::sync::{Arc, Barrier, Mutex};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations, deallocations and reallocations.
type Counters = (usize, usize, usize);

/// Allocations counted so far.
fn counters() -> Counters {
    let stats = ALLOCATOR.stats();
    (stats.allocations, stats.deallocations, stats.reallocations)
}

type C32 = Complex<f32>;

/// Messages until all buffers have their final size.
const WARM_UP: usize = 200;
/// Total number of chunks.
const CHUNKS: usize = 2000;
/// Samples of a file that is repeated: not a whole number of chunks.
const SAMPLES: usize = 10_000;

/// How often a file must be played for slightly more than `CHUNKS` chunks of 2048 samples.
const REPEAT: u64 = (CHUNKS + 10) as u64 * 2048 / SAMPLES as u64 + 1;

/// A graph under construction, and the counters of its run.
struct Steady {
    graph: Graph,
    messages: usize,
    /// Message numbers, and the counters at both.
    seen: Arc<Mutex<(usize, [Counters; 2])>>,
}

impl Steady {
    /// Requires that nothing is allocated between message `WARM_UP` and message `messages` of the sink
    /// `watch`.
    fn new<M: Message>(name: &str, messages: usize) -> Self {
        Self::after::<M>(WARM_UP, name, messages)
    }

    /// The same from message `warm_up` on.
    fn after<M: Message>(warm_up: usize, name: &str, messages: usize) -> Self {
        let mut graph = Graph::new(name);
        let seen = Arc::new(Mutex::new((0, [(0, 0, 0); 2])));
        let into = Arc::clone(&seen);
        graph.sink("watch", move |_: M| {
            let (count, counted) = &mut *into.lock().unwrap();
            *count += 1;
            if *count == warm_up || *count == messages {
                counted[usize::from(*count == messages)] = counters();
            }
        });
        Steady { graph, messages, seen }
    }

    fn connect(&mut self, edges: &[(&str, &str)]) {
        for &(from, to) in edges {
            let _ = self.graph.connect_names(from, to);
        }
    }

    fn run(self) {
        self.run_by(|graph, options| {
            run(graph, options);
        });
    }

    /// The same for a graph that may lose messages.
    fn run_lossy(self) {
        self.run_by(|graph, options| {
            graph.run(options).unwrap_or_else(|error| panic!("{error}"));
        });
    }

    fn run_by(self, run: impl FnOnce(Graph, &Options)) {
        let name = self.graph.name().to_string();
        run(self.graph, &Options { pace: None, ..fast(16 << 10, 4) });
        let (count, [first, last]) = *self.seen.lock().unwrap();
        assert!(count >= self.messages, "{name}: {count}");
        assert_eq!(first, last, "{name}: allocations, deallocations, reallocations between two messages");
    }
}

#[test]
fn nothing_is_allocated_once_samples_flow() {
    // One test and not several: allocations of the test runner between two tests would count.
    watched(|| {
        let folder = tempfile::tempdir().unwrap();
        receiver(folder.path());
        filters(folder.path());
        channels(folder.path());
        measures::measures();
        loops::loops();
        spectra(folder.path());
        frames::images(folder.path());
        tables(folder.path());
        frames::video(folder.path());
        aircraft();
        network::datagrams();
        network::connection();
    });
}

/// Tables, and another program.
fn tables(folder: &Path) {
    let at = |name: &str| folder.join(name);
    let rows = (0..SAMPLES).map(|n| format!("{n}.5,{}e-7,\n", n * 7)).collect::<String>();
    std::fs::write(at("in.csv"), rows).unwrap();
    let (columns, time) = (vec!["2".to_string()], TimeColumn::new("1"));
    let cat = ExecCommand::new(vec!["cat".to_string()]).unwrap();
    let mut steady = Steady::new::<Chunk<f32>>("tables", 300);
    let graph = &mut steady.graph;
    let source = CsvSource::new(at("in.csv"), columns.clone()).unwrap();
    graph.add("rows", source.repeat(200).sample_rate(48e3, Pace::Fast).unwrap());
    graph.add("cat", Exec::<f32>::new(cat, None, None).unwrap());
    graph.add("table", CsvSink::new(at("out.csv"), columns.clone()).unwrap().time(true));
    graph.add("values", CsvValueSource::new(at("in.csv"), columns.clone(), time, Pace::Fast).unwrap());
    graph.add("values-end", CsvValueSink::new(at("values.csv"), columns).unwrap());
    steady.connect(&[("rows", "cat"), ("cat", "table"), ("cat", "watch"), ("values", "values-end")]);
    steady.run();
}

fn receiver(folder: &Path) {
    let iq = recording(SAMPLES).write(folder);
    let mut steady = Steady::new::<Chunk<f32>>("receiver", CHUNKS);
    let graph = &mut steady.graph;
    graph.add("iq", SigmfSource::new(iq).repeat(REPEAT).pace(Pace::Fast));
    graph.add("brake", Throttle::<C32>::new(1e12).unwrap());
    graph.add("raw", IqSink::<C32>::new(folder.join("raw"), SampleFormat::Cu8).unwrap());
    graph.add("take", SigmfSink::<C32>::new(folder.join("take"), SampleFormat::Ci16Le).unwrap());
    graph.add("array", NpySink::<C32>::new(folder.join("array.npy")));
    graph.add("tune", InPlace::new(Shift::new(40e3).unwrap()));
    let decimator = |factor| FirDecimator::<C32>::for_rate(factor, None, None, 60.0).unwrap();
    graph.add("channel", Stream::new(decimator(4)));
    graph.add("demod", Stream::new(QuadDemod::new(25e3).unwrap()));
    let band = FirDecimator::<f32>::for_rate(2, None, None, 60.0).unwrap();
    graph.add("band", Stream::new(band.clone()));
    graph.add("blocks", Stream::new(band.method(FirMethod::Fft)));
    graph.add("blocks-end", NullSink::<Chunk<f32>>::default());
    graph.add("rate", Stream::new(Resampler::<f32>::to_rate(48e3, Quality::default()).unwrap()));
    graph.add("treble", InPlace::new(Deemphasis::new(50e-6).unwrap()));
    let hum = Band { shape: BandType::Notch, frequency_hz: 50.0, gain_db: None, q: 9.0 };
    graph.add("hum", InPlace::new(Equalizer::new(2, vec![hum; 5]).unwrap()));
    graph.add("gain", InPlace::new(Saxpy::new(0.5, 0.0).unwrap()));
    graph.add("load", Load::<Chunk<f32>>::new(LoadWork::Rounds(10)));
    graph.add("tap", Tap::new().file(folder.join("tap.jsonl"), 1e6).unwrap());
    graph.add("sum", Combined::new(Add::<f32>::default()));
    graph.add("audio", WavSink::new(folder.join("audio.wav")));
    // In addition, unwritten chunks and numbers, which run for about as long.
    graph.add("chunks", NullSource::<f32>::new(Some(2000)).rate(48e3, Pace::Fast).unwrap());
    graph.add("chunks-end", NullSink::<Chunk<f32>>::default());
    graph.add("ticks", Timer::new(100_000, Some(300), Overrun::CatchUp).unwrap());
    graph.add("count", Counter::new(Some(2000)).rate(1e5, Pace::Fast).unwrap());
    graph.add("both", NumberMerge::<u64>::default());
    graph.add("work", Load::<u64>::new(LoadWork::Rounds(10)));
    graph.add("numbers-end", NullSink::<u64>::default());
    steady.connect(&[
        ("iq", "brake"),
        ("brake", "raw"),
        ("brake", "take"),
        ("brake", "array"),
        ("brake", "tune"),
        ("tune", "channel"),
        ("channel", "demod"),
        ("demod", "band"),
        ("demod", "blocks"),
        ("blocks", "blocks-end"),
        ("band", "rate"),
        ("rate", "treble"),
        ("treble", "tap"),
        ("tap", "hum"),
        ("hum", "gain"),
        ("tap", "load"),
        ("gain", "sum.a"),
        ("load", "sum.b"),
        ("sum", "audio"),
        ("sum", "watch"),
        ("chunks", "chunks-end"),
        ("ticks", "both"),
        ("count", "both"),
        ("both", "work"),
        ("work", "numbers-end"),
    ]);
    steady.run();
}

fn filters(folder: &Path) {
    let iq = recording(SAMPLES).write(folder);
    let mut steady = Steady::new::<Chunk<f32>>("filters", CHUNKS);
    let graph = &mut steady.graph;
    graph.add("iq", SigmfSource::new(iq).repeat(REPEAT).pace(Pace::Fast));
    graph.add("balance", InPlace::new(IqBalance::with("").unwrap()));
    graph.add("block", InPlace::new(DcBlock::<C32>::with("").unwrap()));
    graph.add("carrier", InPlace::new(ComplexNotch::with("frequency = 9000").unwrap()));
    let band = "low = -9000\nhigh = 12000\ntransition = 5000";
    graph.add("band", Stream::new(BandPass::<C32>::with(band).unwrap()));
    let blocks = format!("{band}\nmethod = \"fft\"");
    graph.add("blocks", Stream::new(BandPass::<C32>::with(&blocks).unwrap()));
    graph.add("taps", FirTaps::<C32>::with("taps = [[0, 1], 2, 3]\ndelay = 0").unwrap());
    graph.add("am", Stream::new(AmDemod::with("").unwrap()));
    graph.add("ssb", Stream::new(SsbDemod::with("transition = 500").unwrap()));
    let edge = "response = \"high-pass\"\ncutoff = 300\norder = 9";
    graph.add("edge", InPlace::new(Iir::<f32>::with(edge).unwrap()));
    graph.add("hum", InPlace::new(Notch::with("frequency = 50").unwrap()));
    graph.add("sum", Combined::new(Add::<f32>::default()));
    steady.connect(&[
        ("iq", "balance"),
        ("balance", "block"),
        ("block", "carrier"),
        ("carrier", "band"),
        ("band", "blocks"),
        ("blocks", "taps"),
        ("taps", "am"),
        ("taps", "ssb"),
        ("am", "edge"),
        ("ssb", "hum"),
        ("edge", "sum.a"),
        ("hum", "sum.b"),
        ("sum", "watch"),
    ]);
    steady.run();
}

/// Files of several channels, and all operators that join or split streams.
fn channels(folder: &Path) {
    let at = |name: &str| folder.join(name);
    let samples: Vec<f32> = (0..2 * SAMPLES).map(|n| (n as f32 * 0.1).sin()).collect();
    std::fs::write(at("two.f32"), bytemuck::cast_slice(&samples)).unwrap();
    let wav = WavSink::new(at("two.wav")).channels(2).unwrap();
    let half = |n: usize| Feed::samples(samples[n * SAMPLES..][..SAMPLES].to_vec()).rate(48e3);
    Trial::new(wav).feed("in0", half(0)).feed("in1", half(1)).run();
    let frames = samples[..SAMPLES].to_vec();
    Trial::new(NpySink::<f32>::new(at("one.npy"))).feed("in", Feed::samples(frames).rate(48e3)).run();

    let mut steady = Steady::new::<Chunk<f32>>("channels", CHUNKS);
    let graph = &mut steady.graph;
    let iq = IqSource::<f32>::new(at("two.f32"), SampleFormat::Rf32Le, 48e3).unwrap();
    graph.add("iq", iq.channels(2, None).unwrap().repeat(2 * REPEAT).pace(Pace::Fast));
    let wav = WavSource::new(at("two.wav")).channels(2).unwrap();
    graph.add("wav", wav.repeat(2 * REPEAT).pace(Pace::Fast));
    graph.add(
        "array",
        NpySource::<f32>::new(at("one.npy")).rate(48e3, Pace::Fast).unwrap().repeat(2 * REPEAT),
    );
    graph.add("delay", Delay::<f32>::new(DelayLength::Samples(1000)).unwrap());
    graph.add("sum", Combined::new(Sum::<f32>::new(3).unwrap()));
    graph.add("turn", Combined::new(Interleave::new(2).unwrap()));
    graph.add("apart", Deinterleave::new(2).unwrap());
    let sigmf = SigmfSink::<f32>::new(at("channels"), SampleFormat::Ri16Le).unwrap();
    graph.add("sigmf", sigmf.channels(2).unwrap());
    graph.add("sound", WavSink::new(at("channels.wav")).channels(2).unwrap());
    let raw = IqSink::<f32>::new(at("channels.i8"), SampleFormat::Ri8).unwrap();
    graph.add("raw", raw.channels(2).unwrap());
    graph.add("bytes", FileSink::<f32>::new(at("bytes")));
    steady.connect(&[
        ("iq.out0", "delay"),
        ("delay", "sum.in0"),
        ("iq.out1", "sum.in1"),
        ("array", "sum.in2"),
        ("wav.out0", "turn.in0"),
        ("wav.out1", "turn.in1"),
        ("turn", "apart"),
        ("apart.out0", "sigmf.in0"),
        ("apart.out1", "sigmf.in1"),
        ("apart.out0", "sound.in0"),
        ("apart.out1", "sound.in1"),
        ("sum", "raw.in0"),
        ("apart.out0", "raw.in1"),
        ("sum", "bytes"),
        ("sum", "watch"),
    ]);
    steady.run();
}

fn spectra(folder: &Path) {
    let iq = recording(SAMPLES).write(folder);
    let mut steady = Steady::new::<Chunk<f32>>("spectra", CHUNKS);
    let graph = &mut steady.graph;
    graph.add("iq", SigmfSource::new(iq).repeat(REPEAT).pace(Pace::Fast));
    graph.add("level", InPlace::new(Agc::<C32>::new(0.01, 0.1, 0.5, 100.0).unwrap()));
    graph.add("open", Squelch::<C32>::new(-80.0, -90.0, 0.01, Closed::Mute).unwrap());
    graph.add("size", Stream::new(Magnitude::new()));
    graph.add("bins", Framed::<C32, Fft>::new(1024, 1024, Window::default(), Fft::default()).unwrap());
    graph.add("bins-end", NullSink::<Chunk<C32>>::default());
    graph.add("split", Stream::new(FilterBank::new(16, 12, 60.0).unwrap()));
    graph.add("split-end", NullSink::<Chunk<C32>>::default());
    let spectrum = Spectrum::new(2).unwrap();
    graph.add("power", Framed::<C32, _>::new(1024, 512, Window::default(), spectrum.clone()).unwrap());
    graph.add("power-real", Framed::<f32, _>::new(1024, 1500, Window::default(), spectrum).unwrap());
    graph.add("power-end", NullSink::<Chunk<f32>>::default());
    graph.add("picture", PngSink::new(folder.join("power.png")).rows(100).unwrap());
    steady.connect(&[
        ("iq", "level"),
        ("level", "open"),
        ("open", "bins"),
        ("open", "power"),
        ("open", "size"),
        ("size", "power-real"),
        ("power-real", "power-end"),
        ("bins", "bins-end"),
        ("open", "split"),
        ("split", "split-end"),
        ("power", "picture"),
        ("size", "watch"),
    ]);
    steady.run();
}

/// The receiver of the example up to its frames, because decoding them allocates text.
fn aircraft() {
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/adsb.cu8");
    let mut steady = Steady::new::<Frame>("aircraft", CHUNKS);
    let graph = &mut steady.graph;
    let iq = IqSource::<C32>::new(capture, SampleFormat::Cu8, 2e6).unwrap();
    graph.add("iq", iq.repeat(120).pace(Pace::Fast));
    graph.add("frames", Demod::<C32>::new(60.0).unwrap());
    steady.connect(&[("iq", "frames"), ("frames", "watch")]);
    steady.run();
}
