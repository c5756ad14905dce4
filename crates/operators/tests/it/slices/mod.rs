//! Feeds kernels with slices of all sizes.
#![allow(dead_code, reason = "no test needs all of it")]

use bytemuck::Zeroable;
use onbeat_runtime::{Kernel, Map};

/// Pseudo-random small numbers, the same in every run.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Dice(seed)
    }

    /// The next 32 bits, from Knuth's linear congruential generator.
    pub fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    /// From −1 to 1.
    pub fn value(&mut self) -> f32 {
        self.bits() as f32 / u32::MAX as f32 * 2.0 - 1.0
    }

    pub fn values(mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.value()).collect()
    }
}

/// Length of the next slice.
#[derive(Clone, Copy, Debug)]
pub enum Size {
    Fixed(usize),
    /// Returns a number from 0 to this one.
    Random(usize),
}

impl Size {
    fn next(self, dice: &mut Dice) -> usize {
        match self {
            Size::Fixed(size) => size,
            Size::Random(most) => dice.bits() as usize % (most + 1),
        }
    }
}

/// Sizes of input and output slices to try against each other.
pub const SIZES: [Size; 6] =
    [Size::Fixed(1), Size::Fixed(7), Size::Fixed(64), Size::Fixed(1000), Size::Random(9), Size::Random(5000)];

/// Runs a kernel over `input` cut into slices. Unused input is offered again, as the runtime does.
pub fn drive<K: Kernel>(kernel: &mut K, input: &[K::In], size_in: Size, size_out: Size) -> Vec<K::Out> {
    let mut dice = Dice::new(1);
    let mut output = Vec::new();
    let mut buffer = [K::Out::zeroed(); 5000];
    let row = kernel.row();
    let whole = |room: usize| room.min(5000 / row * row).next_multiple_of(row);
    let mut at = 0;
    loop {
        let end = input.len().min(at + size_in.next(&mut dice));
        let room = whole(size_out.next(&mut dice));
        let done = kernel.process(&input[at..end], &mut buffer[..room]);
        assert!(done.consumed <= end - at && done.produced <= room);
        assert!(done.consumed == end - at || done.produced == room, "it stopped before it had to");
        output.extend_from_slice(&buffer[..done.produced]);
        at += done.consumed;
        // After all input, a kernel may still have output for another slice.
        if at == input.len() && done.produced < room {
            break;
        }
    }
    loop {
        let room = whole(size_out.next(&mut dice).max(1));
        let count = kernel.finish(&mut buffer[..room]);
        output.extend_from_slice(&buffer[..count]);
        if count == 0 {
            return output;
        }
    }
}

/// Runs a map over a copy of `input` cut into slices.
pub fn drive_map<M: Map>(map: &mut M, input: &[M::Sample], size: Size) -> Vec<M::Sample> {
    let mut dice = Dice::new(1);
    let mut samples = input.to_vec();
    let mut rest = &mut samples[..];
    while !rest.is_empty() {
        let (now, later) = rest.split_at_mut(size.next(&mut dice).min(rest.len()));
        map.map(now);
        rest = later;
    }
    samples
}
