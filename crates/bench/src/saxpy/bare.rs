//! The same chain without an engine: the upper limit of the rate.

use super::case::{ChainShape, Limit};
use super::operators::affine;
use super::settings::SaxpyForm;
use crate::BenchError;
use crate::pinned::{join, spawn};
use onbeat_operators::dsp::Affine;
use onbeat_os::clock;
use onbeat_queue::sync::atomic::{AtomicBool, Ordering};
use onbeat_queue::{Owner, Spsc};
use std::hint::{black_box, spin_loop};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::Duration;

const PAGE: usize = 4096;

/// Samples at a given offset within a page. Reading and writing alternately is slow if the addresses have
/// nearly the same low bits. The engine therefore offsets its chunks within pages, and so do these buffers.
struct Buffer {
    samples: Vec<f32>,
    begin: usize,
    len: usize,
}

impl Buffer {
    /// A buffer at the start of a page.
    fn new(len: usize) -> Self {
        Buffer::at(len, 0)
    }

    /// A buffer half a page away from the others, for out-of-place results.
    fn spare(len: usize) -> Self {
        Buffer::at(len, PAGE / 2)
    }

    fn at(len: usize, bytes: usize) -> Self {
        let (page, over) = (PAGE / size_of::<f32>(), bytes / size_of::<f32>());
        let samples = vec![0.5; len + page + over];
        let begin = samples.as_ptr().align_offset(PAGE).min(page) + over;
        Buffer { samples, begin, len }
    }

    #[inline(always)]
    fn get(&mut self) -> &mut [f32] {
        &mut self.samples[self.begin..self.begin + self.len]
    }
}

/// An operator of the bare chain: a call through a pointer.
trait BareStage: Send {
    /// Reads `x` and writes `y` out of place, or changes `x` in place. Returns whether the buffers swap
    /// roles.
    fn step(&mut self, x: &mut Buffer, y: &mut Buffer) -> bool;
}

struct InPlaceStage(Affine);
struct OutOfPlaceStage(Affine);

impl BareStage for InPlaceStage {
    fn step(&mut self, x: &mut Buffer, _: &mut Buffer) -> bool {
        self.0.in_place(x.get());
        false
    }
}

impl BareStage for OutOfPlaceStage {
    fn step(&mut self, x: &mut Buffer, y: &mut Buffer) -> bool {
        self.0.out_of_place(x.get(), y.get());
        true
    }
}

/// Consecutive operators, behind pointers that the compiler cannot see through.
struct BareChain {
    all: Vec<Box<dyn BareStage>>,
    /// Buffer for out-of-place results; it swaps roles with the stages' buffers.
    spare: Buffer,
}

impl BareChain {
    fn new(kernels: usize, shape: &ChainShape) -> Self {
        let stage = || -> Box<dyn BareStage> {
            match shape.form {
                SaxpyForm::InPlace => Box::new(InPlaceStage(affine())),
                SaxpyForm::OutOfPlace => Box::new(OutOfPlaceStage(affine())),
            }
        };
        BareChain {
            all: black_box((0..kernels).map(|_| stage()).collect()),
            spare: Buffer::spare(shape.samples()),
        }
    }

    #[inline]
    fn carry(&mut self, buffer: &mut Buffer) {
        for stage in &mut self.all {
            if stage.step(buffer, &mut self.spare) {
                std::mem::swap(buffer, &mut self.spare);
            }
        }
    }
}

/// Measures a limit, in samples per second.
pub(super) fn measure(limit: &Limit, on: &[usize], seconds: f64) -> Result<f64, BenchError> {
    match limit {
        Limit::Kernel(shape) => side_by_side(shape, 1, on, seconds, kernel),
        Limit::Chain(shape) => side_by_side(shape, 1, on, seconds, chain),
        Limit::Replicated(shape) => side_by_side(shape, shape.cores, on, seconds, chain),
        Limit::HandOver(shape, buffers) => {
            // On a busy machine, some cores may not have been scheduled in such a short time.
            let mut seconds = seconds;
            let mut rate = hand_over(shape, *buffers, on, seconds)?;
            while rate == 0.0 && seconds < 10.0 {
                seconds *= 2.0;
                rate = hand_over(shape, *buffers, on, seconds)?;
            }
            Ok(rate)
        }
    }
}

/// Work that is repeated a given number of times.
type RepeatedWork = Box<dyn FnMut(u64)>;

/// The function, without a call through a pointer.
fn kernel(shape: &ChainShape) -> RepeatedWork {
    let (mut x, mut y) = (Buffer::new(shape.samples()), Buffer::spare(shape.samples()));
    let (form, affine) = (shape.form, affine());
    Box::new(move |times| {
        for _ in 0..times {
            match form {
                SaxpyForm::InPlace => affine.in_place(black_box(x.get())),
                SaxpyForm::OutOfPlace => affine.out_of_place(black_box(x.get()), black_box(y.get())),
            }
        }
    })
}

fn chain(shape: &ChainShape) -> RepeatedWork {
    let (mut stages, mut buffer) = (BareChain::new(shape.kernels, shape), Buffer::new(shape.samples()));
    Box::new(move |times| {
        for _ in 0..times {
            stages.carry(&mut buffer);
        }
    })
}

/// Runs the same work on each of `cores` cores from a common start. Returns the sum of their rates.
fn side_by_side(
    shape: &ChainShape,
    threads: usize,
    on: &[usize],
    seconds: f64,
    body: fn(&ChainShape) -> RepeatedWork,
) -> Result<f64, BenchError> {
    let (start, shape) = (Arc::new(Barrier::new(threads)), *shape);
    let spawned: Result<Vec<JoinHandle<f64>>, BenchError> = (0..threads)
        .map(|number| {
            let start = Arc::clone(&start);
            spawn(Some(on[number]), move || {
                let mut body = body(&shape);
                // Between two clock readings: about 20 µs of the fastest kernel.
                let times = (1_000_000 / shape.quantum as u64 / shape.kernels as u64).max(1);
                body(times);
                start.wait();
                let begin_ns = clock::monotonic_ns();
                let end_ns = begin_ns + (seconds * 1e9) as u64;
                let (mut done, mut now_ns) = (0, begin_ns);
                while now_ns < end_ns {
                    body(times);
                    done += times;
                    now_ns = clock::monotonic_ns();
                }
                done as f64 * shape.samples() as f64 * 1e9 / (now_ns - begin_ns) as f64
            })
        })
        .collect();
    Ok(spawned?.into_iter().map(join).sum())
}

/// A thread of the ring: takes buffers from the one before, applies its part of the chain, and passes them
/// on.
struct RingThread {
    owner: Owner,
    from: Arc<Spsc<Box<Buffer>>>,
    to: Arc<Spsc<Box<Buffer>>>,
    kernels: usize,
}

/// Measures the chain split between cores; the last core returns buffers to the first.
fn hand_over(shape: &ChainShape, buffers: usize, on: &[usize], seconds: f64) -> Result<f64, BenchError> {
    let parts = shape.parts();
    let mut owners: Vec<Owner> = parts.iter().map(|_| Owner::new()).collect();
    let rings: Vec<Arc<Spsc<Box<Buffer>>>> = (0..owners.len())
        .map(|from| Arc::new(Spsc::new(&owners[from], &owners[(from + 1) % owners.len()], buffers)))
        .collect();
    let last = owners.len() - 1;
    for _ in 0..buffers {
        // The ring's capacity is the number of buffers.
        let _fits = rings[last].push(&mut owners[last], Box::new(Buffer::new(shape.samples())));
    }
    let (stop, start) = (Arc::new(AtomicBool::new(false)), Arc::new(Barrier::new(parts.len())));
    let mut threads = Vec::new();
    for (number, (owner, kernels)) in owners.into_iter().zip(parts).enumerate() {
        let before = if number == 0 { last } else { number - 1 };
        let place =
            RingThread { owner, from: Arc::clone(&rings[before]), to: Arc::clone(&rings[number]), kernels };
        let (stop, start, shape) = (Arc::clone(&stop), Arc::clone(&start), *shape);
        threads.push(spawn(Some(on[number]), move || {
            let stages = BareChain::new(place.kernels, &shape);
            start.wait();
            let begin_ns = clock::monotonic_ns();
            let done = place.turn(stages, &stop);
            (done, clock::monotonic_ns() - begin_ns)
        })?);
    }
    std::thread::sleep(Duration::from_secs_f64(seconds));
    // Relaxed: it orders nothing, the threads are joined.
    stop.store(true, Ordering::Relaxed);
    let (done, taken_ns) = threads.into_iter().map(join).last().unwrap_or((0, 1));
    Ok(done as f64 * shape.samples() as f64 * 1e9 / taken_ns as f64)
}

impl RingThread {
    /// Runs until it is stopped. Returns the number of buffers passed on.
    fn turn(mut self, mut stages: BareChain, stop: &AtomicBool) -> u64 {
        let mut done = 0;
        // Relaxed, here and below: see `hand_over`.
        while !stop.load(Ordering::Relaxed) {
            self.from.poll(&mut self.owner);
            while let Some(mut buffer) = self.from.pop(&mut self.owner) {
                self.from.release(&mut self.owner);
                stages.carry(&mut buffer);
                // There is room for all buffers.
                let _fits = self.to.push(&mut self.owner, buffer);
                done += 1;
            }
            spin_loop();
        }
        done
    }
}
