//! Once samples flow, no operator allocates. (Tags, notes and the lines of a tap do.)
#![forbid(unsafe_code)]

mod harness;

use harness::{fast, recording, run};
use num_complex::Complex;
use onbeat_operators::dsp::{Deemphasis, FirDecimator, QuadDemod, Quality, Resampler, Saxpy, Shift};
use onbeat_operators::{
    Add, Counter, IqSink, Load, Merge, NpySink, NullSink, NullSource, Overrun, SampleFormat, SigmfSink,
    SigmfSource, Tap, Throttle, Timer, WavSink, Work,
};
use onbeat_runtime::{Chunk, Graph, InPlace, Pace, Stream};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::sync::{Arc, Mutex};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations, deallocations and reallocations so far.
fn counters() -> (usize, usize, usize) {
    let stats = ALLOCATOR.stats();
    (stats.allocations, stats.deallocations, stats.reallocations)
}

/// Chunks until all buffers have their size, and chunks in all.
const WARM_UP: usize = 200;
const CHUNKS: usize = 2000;

#[test]
fn nothing_is_allocated_once_samples_flow() {
    let folder = tempfile::tempdir().unwrap();
    let iq = recording(10_000).write(folder.path());
    let mut graph = Graph::new("steady");
    // 2048 samples a chunk, a few more chunks than are watched.
    graph.add("iq", SigmfSource::new(iq).repeat((CHUNKS + 10) as u64 * 2048 / 10_000 + 1).pace(Pace::Fast));
    graph.add("brake", Throttle::<Complex<f32>>::new(1e12).unwrap());
    graph.add("raw", IqSink::<Complex<f32>>::new(folder.path().join("raw"), SampleFormat::Cu8).unwrap());
    graph.add(
        "take",
        SigmfSink::<Complex<f32>>::new(folder.path().join("take"), SampleFormat::Ci16Le).unwrap(),
    );
    graph.add("array", NpySink::<Complex<f32>>::new(folder.path().join("array.npy")));
    graph.add("tune", InPlace::new(Shift::new(40e3).unwrap()));
    let decimator = |factor| FirDecimator::<Complex<f32>>::for_rate(factor, None, None, 60.0).unwrap();
    graph.add("channel", Stream::new(decimator(4)));
    graph.add("demod", Stream::new(QuadDemod::new(25e3).unwrap()));
    graph.add("band", Stream::new(FirDecimator::<f32>::for_rate(2, None, None, 60.0).unwrap()));
    graph.add("rate", Stream::new(Resampler::<f32>::to_rate(48e3, Quality::default()).unwrap()));
    graph.add("treble", InPlace::new(Deemphasis::new(50e-6).unwrap()));
    graph.add("gain", InPlace::new(Saxpy::new(0.5, 0.0).unwrap()));
    graph.add("load", Load::<Chunk<f32>>::new(Work::Rounds(10)));
    graph.add("tap", Tap::new().file(folder.path().join("tap.jsonl"), 1e6).unwrap());
    graph.add("sum", Add::new());
    graph.add("audio", WavSink::new(folder.path().join("audio.wav")));
    let seen = Arc::new(Mutex::new((0, [(0, 0, 0); 2])));
    let into = Arc::clone(&seen);
    graph.sink("watch", move |_: Chunk<f32>| {
        let (chunks, counted) = &mut *into.lock().unwrap();
        *chunks += 1;
        if *chunks == WARM_UP || *chunks == CHUNKS {
            counted[usize::from(*chunks == CHUNKS)] = counters();
        }
    });
    for (from, to) in [
        ("iq", "brake"),
        ("brake", "raw"),
        ("brake", "take"),
        ("brake", "array"),
        ("brake", "tune"),
        ("tune", "channel"),
        ("channel", "demod"),
        ("demod", "band"),
        ("band", "rate"),
        ("rate", "treble"),
        ("treble", "tap"),
        ("tap", "gain"),
        ("tap", "load"),
        ("gain", "sum.a"),
        ("load", "sum.b"),
        ("sum", "audio"),
        ("sum", "watch"),
    ] {
        let _ = graph.connect_names(from, to);
    }
    // Beside it, chunks that nobody wrote, and numbers; they go on for about as long.
    graph.add("chunks", NullSource::<f32>::new(Some(2000)).rate(48e3, Pace::Fast).unwrap());
    graph.add("chunks-end", NullSink::<Chunk<f32>>::default());
    graph.add("ticks", Timer::new(100_000, Some(300), Overrun::CatchUp).unwrap());
    graph.add("count", Counter::new(Some(2000)).rate(1e5, Pace::Fast).unwrap());
    graph.add("both", Merge::<u64>::default());
    graph.add("work", Load::<u64>::new(Work::Rounds(10)));
    graph.add("numbers-end", NullSink::<u64>::default());
    for (from, to) in [
        ("chunks", "chunks-end"),
        ("ticks", "both"),
        ("count", "both"),
        ("both", "work"),
        ("work", "numbers-end"),
    ] {
        let _ = graph.connect_names(from, to);
    }
    run(graph, &onbeat_runtime::Options { pace: None, ..fast(16 << 10, 4) });
    let (chunks, [first, last]) = *seen.lock().unwrap();
    assert!(chunks >= CHUNKS, "{chunks}");
    assert_eq!(first, last, "allocations, deallocations, reallocations after {WARM_UP} and {CHUNKS} chunks");
}
