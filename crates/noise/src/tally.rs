//! Running totals of verdicts, in bounded memory.

use crate::attribute::{Gap, GapVerdict};
use crate::record::{CauseTotal, CpuNoise, LinearHistogram};
use crate::sampler::PeriodTotals;
use crate::source::CoreCounters;
use onbeat_trace::{Class, Histogram};
use std::collections::{HashMap, VecDeque};

/// Limit on the number of distinct names; kernel workers have no end of them.
const NAMES: usize = 512;
/// Name under which later causes are counted.
const OTHERS: &str = "(others)";

/// Totals of one core.
#[derive(Debug)]
pub(crate) struct NoiseTally {
    noise: CpuNoise,
    causes: HashMap<(Class, String), CauseTotal>,
    lengths: Histogram,
    /// Number of the longest gaps that are kept.
    samples: usize,
    /// Last gaps with the number of their interferences, and how many of them to keep.
    last: VecDeque<(Gap, usize)>,
    keep: usize,
}

impl NoiseTally {
    pub fn new(cpu: u32, bucket_ns: u64, entries: usize, samples: usize) -> Self {
        let histogram = LinearHistogram::new(bucket_ns, entries);
        let noise = CpuNoise { cpu, histogram, ..CpuNoise::default() };
        NoiseTally {
            noise,
            causes: HashMap::new(),
            lengths: Histogram::new(),
            samples,
            last: VecDeque::new(),
            keep: 0,
        }
    }

    /// Also keeps the last `gaps` gaps.
    pub fn keeping(self, gaps: usize) -> Self {
        NoiseTally { keep: gaps, ..self }
    }

    /// Last gaps that were kept.
    pub fn last(&self) -> Vec<(Gap, usize)> {
        self.last.iter().copied().collect()
    }

    pub fn period(&mut self, period: &PeriodTotals) {
        let noise = &mut self.noise;
        noise.periods += 1;
        noise.runtime_ns += period.runtime_ns;
        noise.looks += period.looks;
        noise.max_noise_ns = noise.max_noise_ns.max(period.noise_ns);
    }

    pub fn gap(&mut self, verdict: GapVerdict) {
        let gap_ns = verdict.gap.duration_ns();
        let noise = &mut self.noise;
        noise.noise_ns += gap_ns;
        noise.max_single_ns = noise.max_single_ns.max(gap_ns);
        noise.histogram.add(gap_ns);
        self.lengths.record(gap_ns);
        noise.parts.unexplained_ns += verdict.unexplained_ns;
        noise.doubtful += u64::from(verdict.is_doubtful);
        if verdict.hardware_ns > 0 {
            noise.parts.hardware.count += 1;
            noise.parts.hardware.ns += verdict.hardware_ns;
        }
        for interference in &verdict.interferences {
            let Some(part) = noise.parts.of_mut(interference.class) else { continue };
            part.count += 1;
            part.ns += interference.duration_ns;
            add(&mut self.causes, interference.class, &interference.name, interference.duration_ns);
        }
        if self.keep > 0 {
            self.last.push_back((verdict.gap, verdict.interferences.len()));
            self.last.drain(..self.last.len().saturating_sub(self.keep));
        }
        self.keep(verdict);
    }

    /// Adds gaps for which there was no room: only their total time is known.
    pub fn gaps_dropped(&mut self, dropped: u64, ns: u64) {
        self.noise.gaps_dropped = dropped;
        self.noise.noise_ns += ns;
        self.noise.parts.unexplained_ns += ns;
    }

    fn keep(&mut self, verdict: GapVerdict) {
        let samples = &mut self.noise.samples;
        let length = |verdict: &GapVerdict| verdict.gap.duration_ns();
        let at = samples.partition_point(|kept| length(kept) >= length(&verdict));
        if at < self.samples {
            samples.insert(at, verdict);
            samples.truncate(self.samples);
        }
    }

    /// Returns the totals so far.
    pub fn so_far(&self) -> CpuNoise {
        let mut noise = self.noise.clone();
        noise.causes = self.causes.values().cloned().collect();
        noise.causes.sort_by(|a, b| (b.total_ns, b.count, &a.name).cmp(&(a.total_ns, a.count, &b.name)));
        noise.lengths = self.lengths.buckets().collect();
        noise
    }

    /// Sets the kernel's own counts.
    pub fn counted(&mut self, counted: CoreCounters) {
        self.noise.steal_ns = counted.steal_ns;
        self.noise.interrupts = counted.interrupts.into_iter().collect();
        self.noise.softirqs = counted.softirqs.into_iter().collect();
    }

    pub fn noise_mut(&mut self) -> &mut CpuNoise {
        &mut self.noise
    }
}

fn add(causes: &mut HashMap<(Class, String), CauseTotal>, class: Class, name: &str, ns: u64) {
    let is_full = causes.len() >= NAMES && !causes.contains_key(&(class, name.to_owned()));
    let name = if is_full { OTHERS } else { name };
    let cause = causes.entry((class, name.to_owned())).or_insert_with(|| CauseTotal {
        class,
        name: name.to_owned(),
        count: 0,
        total_ns: 0,
        max_ns: 0,
    });
    cause.count += 1;
    cause.total_ns += ns;
    cause.max_ns = cause.max_ns.max(ns);
}
