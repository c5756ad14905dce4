//! Kernels of the random graphs. All but some averages have a finite memory.

use onbeat_runtime::{FiniteMemory, Kernel, Map, Progress, Ratio};
use std::collections::VecDeque;

#[derive(Clone)]
pub struct Scale(pub f32);

impl Map for Scale {
    type Sample = f32;
    fn map(&mut self, samples: &mut [f32]) {
        samples.iter_mut().for_each(|x| *x *= self.0);
    }
    fn replica(&self) -> Option<Self> {
        Some(self.clone())
    }
}

#[derive(Clone)]
pub struct Keep {
    k: u32,
    skip: u32,
}

impl Keep {
    pub fn new(k: u32) -> Self {
        Keep { k, skip: 0 }
    }
}

impl Kernel for Keep {
    type In = f32;
    type Out = f32;
    fn ratio(&self) -> Ratio {
        Ratio { up: 1, down: self.k }
    }
    fn process(&mut self, input: &[f32], output: &mut [f32]) -> Progress {
        let mut progress = Progress { consumed: 0, produced: 0 };
        for &sample in input {
            if self.skip == 0 {
                let Some(place) = output.get_mut(progress.produced) else { break };
                *place = sample;
                progress.produced += 1;
                self.skip = self.k;
            }
            self.skip -= 1;
            progress.consumed += 1;
        }
        progress
    }
    fn replica(&self) -> Option<Self> {
        Some(self.clone())
    }
    fn finite(&mut self) -> Option<&mut dyn FiniteMemory> {
        Some(self)
    }
}

impl FiniteMemory for Keep {
    fn memory(&self) -> usize {
        0
    }
    fn resume(&mut self, _: u64) {
        self.skip = 0;
    }
}

#[derive(Clone)]
pub struct Repeat {
    k: u32,
    last: f32,
    left: u32,
}

impl Repeat {
    pub fn new(k: u32) -> Self {
        Repeat { k, last: 0.0, left: 0 }
    }
}

impl Kernel for Repeat {
    type In = f32;
    type Out = f32;
    fn ratio(&self) -> Ratio {
        Ratio { up: self.k, down: 1 }
    }
    fn process(&mut self, input: &[f32], output: &mut [f32]) -> Progress {
        let mut consumed = 0;
        for (produced, place) in output.iter_mut().enumerate() {
            if self.left == 0 {
                let Some(&sample) = input.get(consumed) else { return Progress { consumed, produced } };
                (self.last, self.left) = (sample, self.k);
                consumed += 1;
            }
            *place = self.last;
            self.left -= 1;
        }
        Progress { consumed, produced: output.len() }
    }
    fn replica(&self) -> Option<Self> {
        Some(self.clone())
    }
    fn finite(&mut self) -> Option<&mut dyn FiniteMemory> {
        Some(self)
    }
}

impl FiniteMemory for Repeat {
    fn memory(&self) -> usize {
        0
    }
    fn resume(&mut self, _: u64) {
        self.left = 0;
    }
}

#[derive(Clone)]
pub struct Average {
    last: VecDeque<f32>,
}

impl Average {
    pub fn new(n: usize) -> Self {
        Average { last: std::iter::repeat_n(0.0, n).collect() }
    }
}

impl Kernel for Average {
    type In = f32;
    type Out = f32;
    fn process(&mut self, input: &[f32], output: &mut [f32]) -> Progress {
        let samples = input.len().min(output.len());
        for (x, y) in input.iter().zip(output) {
            self.last.pop_front();
            self.last.push_back(*x);
            *y = self.last.iter().sum::<f32>() / self.last.len() as f32;
        }
        Progress { consumed: samples, produced: samples }
    }
    fn replica(&self) -> Option<Self> {
        (!self.last.len().is_multiple_of(4)).then(|| self.clone())
    }
    fn finite(&mut self) -> Option<&mut dyn FiniteMemory> {
        Some(self)
    }
}

impl FiniteMemory for Average {
    fn memory(&self) -> usize {
        self.last.len() - 1
    }
    fn resume(&mut self, _: u64) {
        self.last.iter_mut().for_each(|x| *x = 0.0);
    }
}

/// Looks ahead, so that it has something to send at the end.
#[derive(Clone)]
pub struct Symmetric {
    reach: usize,
    k: u32,
    window: VecDeque<f32>,
    /// Samples to skip before the next output.
    skip: u32,
    /// Zeros left for the end.
    zeros: usize,
}

impl Symmetric {
    pub fn new(reach: usize, k: u32) -> Self {
        let window = std::iter::repeat_n(0.0, reach).collect();
        Symmetric { reach, k, window, skip: 0, zeros: reach }
    }
}

impl Kernel for Symmetric {
    type In = f32;
    type Out = f32;
    fn ratio(&self) -> Ratio {
        Ratio { up: 1, down: self.k }
    }
    fn process(&mut self, input: &[f32], output: &mut [f32]) -> Progress {
        let mut progress = Progress { consumed: 0, produced: 0 };
        for &sample in input {
            let is_full = self.window.len() == 2 * self.reach;
            if is_full && self.skip == 0 {
                let Some(place) = output.get_mut(progress.produced) else { break };
                *place = self.window.iter().sum::<f32>() + sample;
                progress.produced += 1;
                self.skip = self.k;
            }
            self.window.push_back(sample);
            progress.consumed += 1;
            if is_full {
                self.window.pop_front();
                self.skip -= 1;
            }
        }
        progress
    }
    fn finish(&mut self, output: &mut [f32]) -> usize {
        let zeros = vec![0.0; self.zeros];
        let Progress { consumed, produced } = self.process(&zeros, output);
        self.zeros -= consumed;
        produced
    }
    fn replica(&self) -> Option<Self> {
        Some(self.clone())
    }
    fn finite(&mut self) -> Option<&mut dyn FiniteMemory> {
        Some(self)
    }
}

impl FiniteMemory for Symmetric {
    fn memory(&self) -> usize {
        2 * self.reach
    }
    fn resume(&mut self, _: u64) {
        *self = Symmetric::new(self.reach, self.k);
    }
}

/// Depends on the number of the sample alone.
#[derive(Clone)]
pub struct Saw {
    period: u64,
    next: u64,
}

impl Saw {
    pub fn new(period: u64) -> Self {
        Saw { period, next: 0 }
    }
}

impl Map for Saw {
    type Sample = f32;
    fn map(&mut self, samples: &mut [f32]) {
        for x in samples {
            *x += (self.next % self.period) as f32;
            self.next += 1;
        }
    }
    fn replica(&self) -> Option<Self> {
        Some(self.clone())
    }
    fn finite(&mut self) -> Option<&mut dyn FiniteMemory> {
        Some(self)
    }
}

impl FiniteMemory for Saw {
    fn memory(&self) -> usize {
        0
    }
    fn resume(&mut self, position: u64) {
        self.next = position;
    }
}
