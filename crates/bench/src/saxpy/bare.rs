//! The same chain without an engine: what nothing can be above.

use super::case::{Limit, Shape};
use super::operators::affine;
use super::settings::Form;
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

/// Samples that begin where they are told to within a page. Chunks of the engine are kept apart within pages, as what is read and written
/// in turn is slow where their addresses end nearly alike; so these are, too.
struct Buffer {
    samples: Vec<f32>,
    begin: usize,
    len: usize,
}

impl Buffer {
    /// At the begin of a page.
    fn new(len: usize) -> Self {
        Buffer::at(len, 0)
    }

    /// Half a page from the others, for what is written out of place.
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

/// What an operator is here: a call through a pointer.
trait Stage: Send {
    /// Reads `x` and writes `y` out of place; changes `x` in place. Says whether they change roles.
    fn step(&mut self, x: &mut Buffer, y: &mut Buffer) -> bool;
}

struct InPlace(Affine);
struct OutOfPlace(Affine);

impl Stage for InPlace {
    fn step(&mut self, x: &mut Buffer, _: &mut Buffer) -> bool {
        self.0.in_place(x.get());
        false
    }
}

impl Stage for OutOfPlace {
    fn step(&mut self, x: &mut Buffer, y: &mut Buffer) -> bool {
        self.0.out_of_place(x.get(), y.get());
        true
    }
}

/// Some operators one after the other, behind pointers that the compiler knows nothing about.
struct Stages {
    all: Vec<Box<dyn Stage>>,
    /// What is written out of place; buffers of stages change roles with it.
    spare: Buffer,
}

impl Stages {
    fn new(kernels: usize, shape: &Shape) -> Self {
        let stage = || -> Box<dyn Stage> {
            match shape.form {
                Form::InPlace => Box::new(InPlace(affine())),
                Form::OutOfPlace => Box::new(OutOfPlace(affine())),
            }
        };
        Stages {
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

/// Samples per second.
pub(super) fn measure(limit: &Limit, on: &[usize], seconds: f64) -> Result<f64, BenchError> {
    match limit {
        Limit::Kernel(shape) => side_by_side(shape, 1, on, seconds, kernel),
        Limit::Chain(shape) => side_by_side(shape, 1, on, seconds, chain),
        Limit::Replicated(shape) => side_by_side(shape, shape.cores, on, seconds, chain),
        Limit::HandOver(shape, buffers) => {
            // A busy machine may not have given every core a turn in so short a time.
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

/// What is done so often.
type Body = Box<dyn FnMut(u64)>;

/// The function, without a call through a pointer.
fn kernel(shape: &Shape) -> Body {
    let (mut x, mut y) = (Buffer::new(shape.samples()), Buffer::spare(shape.samples()));
    let (form, affine) = (shape.form, affine());
    Box::new(move |times| {
        for _ in 0..times {
            match form {
                Form::InPlace => affine.in_place(black_box(x.get())),
                Form::OutOfPlace => affine.out_of_place(black_box(x.get()), black_box(y.get())),
            }
        }
    })
}

fn chain(shape: &Shape) -> Body {
    let (mut stages, mut buffer) = (Stages::new(shape.kernels, shape), Buffer::new(shape.samples()));
    Box::new(move |times| {
        for _ in 0..times {
            stages.carry(&mut buffer);
        }
    })
}

/// On each of so many cores the same, from a common start: the sum of their rates.
fn side_by_side(
    shape: &Shape,
    threads: usize,
    on: &[usize],
    seconds: f64,
    body: fn(&Shape) -> Body,
) -> Result<f64, BenchError> {
    let (start, shape) = (Arc::new(Barrier::new(threads)), *shape);
    let spawned: Result<Vec<JoinHandle<f64>>, BenchError> = (0..threads)
        .map(|number| {
            let start = Arc::clone(&start);
            spawn(Some(on[number]), move || {
                let mut body = body(&shape);
                // Between two looks at the clock: about 20 µs of the fastest kernel.
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

/// One place of the circle: takes buffers from the one before, has its part of the chain change them, and gives them on.
struct Place {
    owner: Owner,
    from: Arc<Spsc<Box<Buffer>>>,
    to: Arc<Spsc<Box<Buffer>>>,
    kernels: usize,
}

/// The chain split between cores; the last one gives buffers back to the first.
fn hand_over(shape: &Shape, buffers: usize, on: &[usize], seconds: f64) -> Result<f64, BenchError> {
    let parts = shape.parts();
    let mut owners: Vec<Owner> = parts.iter().map(|_| Owner::new()).collect();
    let rings: Vec<Arc<Spsc<Box<Buffer>>>> = (0..owners.len())
        .map(|from| Arc::new(Spsc::new(&owners[from], &owners[(from + 1) % owners.len()], buffers)))
        .collect();
    let last = owners.len() - 1;
    for _ in 0..buffers {
        // Its ring holds as many.
        let _fits = rings[last].push(&mut owners[last], Box::new(Buffer::new(shape.samples())));
    }
    let (stop, start) = (Arc::new(AtomicBool::new(false)), Arc::new(Barrier::new(parts.len())));
    let mut threads = Vec::new();
    for (number, (owner, kernels)) in owners.into_iter().zip(parts).enumerate() {
        let before = if number == 0 { last } else { number - 1 };
        let place =
            Place { owner, from: Arc::clone(&rings[before]), to: Arc::clone(&rings[number]), kernels };
        let (stop, start, shape) = (Arc::clone(&stop), Arc::clone(&start), *shape);
        threads.push(spawn(Some(on[number]), move || {
            let stages = Stages::new(place.kernels, &shape);
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

impl Place {
    /// Until it is stopped; says how many buffers it gave on.
    fn turn(mut self, mut stages: Stages, stop: &AtomicBool) -> u64 {
        let mut done = 0;
        // Relaxed, here and below: see `hand_over`.
        while !stop.load(Ordering::Relaxed) {
            self.from.poll(&mut self.owner);
            while let Some(mut buffer) = self.from.pop(&mut self.owner) {
                self.from.release(&mut self.owner);
                stages.carry(&mut buffer);
                // There is room for all buffers that there are.
                let _fits = self.to.push(&mut self.owner, buffer);
                done += 1;
            }
            spin_loop();
        }
        done
    }
}
