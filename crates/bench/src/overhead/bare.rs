//! The same cases without an engine: the lower limit of the cost.
//!
//! On one thread, operators are plain calls of trait objects, with a cell for the message between two of
//! them. On two threads, each side does the same, and each edge between the sides is a lock-free ring. Both
//! threads spin.

use super::case::OverheadCase;
use super::effort::{Effort, NoEffort};
use super::recipe::cores;
use crate::BenchError;
use crate::pinned::{join, spawn};
use onbeat_os::clock;
use onbeat_queue::sync::atomic::{AtomicU32, Ordering};
use onbeat_queue::{Full, Owner, Spsc};
use std::cell::Cell;
use std::hint::{black_box, spin_loop};
use std::rc::Rc;
use std::sync::Arc;

type Slot = Rc<Cell<Option<u64>>>;

trait BareStep {
    fn step(&mut self);
}

/// Counts, and puts the count into each of its slots.
struct BareSource<E> {
    outputs: Box<[Slot]>,
    count: u64,
    effort: E,
}

/// Takes a number, adds one, and puts the sum.
struct Middle<E> {
    input: Slot,
    output: Slot,
    effort: E,
}

/// Takes numbers and sums them up.
struct Sink<E> {
    input: Slot,
    sum: u64,
    effort: E,
}

impl<E: Effort> BareStep for BareSource<E> {
    fn step(&mut self) {
        self.effort.spend();
        self.count += 1;
        for output in &self.outputs {
            output.set(Some(self.count));
        }
    }
}

impl<E: Effort> BareStep for Middle<E> {
    fn step(&mut self) {
        if let Some(x) = self.input.take() {
            self.effort.spend();
            self.output.set(Some(x + 1));
        }
    }
}

impl<E: Effort> BareStep for Sink<E> {
    fn step(&mut self) {
        if let Some(x) = self.input.take() {
            self.effort.spend();
            self.sum = self.sum.wrapping_add(x);
        }
    }
}

/// A case split in two: the steps of each thread, and the number of edges from the first to the second.
#[derive(Debug, Clone, Copy)]
struct Cut {
    first: usize,
    second: usize,
    edges: usize,
}

impl OverheadCase {
    fn calls<E: Effort>(self, effort: E) -> Vec<Box<dyn BareStep>> {
        match self {
            OverheadCase::TwoOperators => apart(2, effort),
            OverheadCase::TxRx => chain(2, effort),
            OverheadCase::Chain4 => chain(4, effort),
            OverheadCase::FanOut4 => fan(4, effort),
        }
    }

    /// Split between two workers as by `pinned`.
    fn cut(self) -> Cut {
        match self {
            OverheadCase::TwoOperators => Cut { first: 1, second: 1, edges: 0 },
            OverheadCase::TxRx => Cut { first: 1, second: 1, edges: 1 },
            OverheadCase::Chain4 => Cut { first: 2, second: 2, edges: 1 },
            OverheadCase::FanOut4 => Cut { first: 3, second: 2, edges: 2 },
        }
    }
}

/// Passes a value through a pointer that the compiler cannot see through.
fn hidden(step: impl BareStep + 'static) -> Box<dyn BareStep> {
    black_box(Box::new(step))
}

fn apart<E: Effort>(count: usize, effort: E) -> Vec<Box<dyn BareStep>> {
    (0..count).map(|_| hidden(BareSource { outputs: Box::default(), count: 0, effort })).collect()
}

fn chain<E: Effort>(count: usize, effort: E) -> Vec<Box<dyn BareStep>> {
    let slots: Vec<Slot> = (1..count).map(|_| Slot::default()).collect();
    let slot = |at: usize| Rc::clone(&slots[at]);
    let source = hidden(BareSource { outputs: [slot(0)].into(), count: 0, effort });
    let middle = (1..count - 1).map(|at| hidden(Middle { input: slot(at - 1), output: slot(at), effort }));
    let sink = hidden(Sink { input: slot(count - 2), sum: 0, effort });
    std::iter::once(source).chain(middle).chain([sink]).collect()
}

fn fan<E: Effort>(count: usize, effort: E) -> Vec<Box<dyn BareStep>> {
    let slots: Box<[Slot]> = (0..count).map(|_| Slot::default()).collect();
    let sinks: Vec<Slot> = slots.to_vec();
    let sinks = sinks.into_iter().map(|input| hidden(Sink { input, sum: 0, effort }));
    std::iter::once(hidden(BareSource { outputs: slots, count: 0, effort })).chain(sinks).collect()
}

/// Nanoseconds per iteration on the calling thread, with this effort in each call.
pub(super) fn one_thread<E: Effort>(case: OverheadCase, iterations: u64, effort: E) -> f64 {
    timed(case.calls(effort), iterations)
}

/// Nanoseconds per iteration of a chain of `calls` (at least two) on the calling thread: a source, operators
/// that add one, and a sink, as plain calls of trait objects with a cell between two of them.
///
/// # Panics
/// With fewer than two calls.
#[must_use]
pub fn bare_chain_ns(calls: usize, iterations: u64) -> f64 {
    timed(chain(calls, NoEffort), iterations)
}

fn timed(mut calls: Vec<Box<dyn BareStep>>, iterations: u64) -> f64 {
    let mut pass = |count: u64| {
        for _ in 0..count {
            for call in &mut calls {
                call.step();
            }
        }
    };
    pass(iterations.div_ceil(10));
    let begin_ns = clock::monotonic_ns();
    pass(iterations);
    let taken_ns = clock::monotonic_ns() - begin_ns;
    black_box(&mut calls);
    taken_ns as f64 / iterations as f64
}

/// Nanoseconds per iteration between two threads, each on its own core if there are two.
pub(super) fn two_threads(case: OverheadCase, iterations: u64, capacity: usize) -> Result<f64, BenchError> {
    let cut = case.cut();
    let cores = cores(2);
    let core = |at: usize| cores.as_ref().map(|cores| cores[at]);
    let (owners, rings) = ends(cut.edges, capacity);
    let (mut sender, mut receiver) = owners;
    let there = Arc::new(AtomicU32::new(0));
    let (rings_there, meet) = (rings.clone(), Arc::clone(&there));
    let second = spawn(core(1), move || {
        let mut calls = apart(cut.second, NoEffort);
        wait_for_both(&meet);
        for _ in 0..iterations {
            for ring in &rings_there {
                let mut item = ring.pop(&mut receiver);
                while item.is_none() {
                    spin_loop();
                    ring.release(&mut receiver);
                    ring.poll(&mut receiver);
                    item = ring.pop(&mut receiver);
                }
                black_box(item);
            }
            calls.iter_mut().for_each(|call| call.step());
        }
        black_box(&mut calls);
        clock::monotonic_ns()
    })?;
    let first = spawn(core(0), move || {
        let mut calls = apart(cut.first, NoEffort);
        wait_for_both(&there);
        let begin_ns = clock::monotonic_ns();
        for n in 0..iterations {
            calls.iter_mut().for_each(|call| call.step());
            for ring in &rings {
                let mut item = n;
                while let Err(Full(back)) = ring.push(&mut sender, item) {
                    item = back;
                    spin_loop();
                }
            }
        }
        black_box(&mut calls);
        (begin_ns, clock::monotonic_ns())
    })?;
    let (begin_ns, sent_ns) = join(first);
    let end_ns = join(second).max(sent_ns);
    Ok((end_ns - begin_ns) as f64 / iterations as f64)
}

type Rings = Vec<Arc<Spsc<u64>>>;

fn ends(edges: usize, capacity: usize) -> ((Owner, Owner), Rings) {
    let (sender, receiver) = (Owner::new(), Owner::new());
    let rings = (0..edges).map(|_| Arc::new(Spsc::new(&sender, &receiver, capacity))).collect();
    ((sender, receiver), rings)
}

/// Nanoseconds from one thread to the other: half of a round trip through two rings of capacity one.
pub(super) fn one_way(trips: u64) -> Result<f64, BenchError> {
    let cores = cores(2);
    let core = |at: usize| cores.as_ref().map(|cores| cores[at]);
    let (mut here, mut there) = (Owner::new(), Owner::new());
    let (out, back) = (Arc::new(Spsc::new(&here, &there, 1)), Arc::new(Spsc::new(&there, &here, 1)));
    let meet = Arc::new(AtomicU32::new(0));
    let (out_there, back_there, meet_there) = (Arc::clone(&out), Arc::clone(&back), Arc::clone(&meet));
    let second = spawn(core(1), move || {
        wait_for_both(&meet_there);
        for _ in 0..trips {
            let item = receive(&out_there, &mut there);
            send(&back_there, &mut there, item);
        }
    })?;
    let first = spawn(core(0), move || {
        wait_for_both(&meet);
        let begin_ns = clock::monotonic_ns();
        for n in 0..trips {
            send(&out, &mut here, n);
            black_box(receive(&back, &mut here));
        }
        clock::monotonic_ns() - begin_ns
    })?;
    let taken_ns = join(first);
    join(second);
    Ok(taken_ns as f64 / trips as f64 / 2.0)
}

fn send(ring: &Spsc<u64>, owner: &mut Owner, mut item: u64) {
    while let Err(Full(back)) = ring.push(owner, item) {
        item = back;
        spin_loop();
    }
}

fn receive(ring: &Spsc<u64>, owner: &mut Owner) -> u64 {
    loop {
        ring.poll(owner);
        if let Some(item) = ring.pop(owner) {
            ring.release(owner);
            return item;
        }
        spin_loop();
    }
}

/// Waits until both threads have arrived.
fn wait_for_both(there: &AtomicU32) {
    // AcqRel and Acquire: each other's partners.
    there.fetch_add(1, Ordering::AcqRel);
    while there.load(Ordering::Acquire) < 2 {
        spin_loop();
    }
}
