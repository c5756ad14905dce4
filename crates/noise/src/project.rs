//! Projection of one machine's noise to a job on many nodes: every node works for a step, then all wait for
//! the last.
//!
//! The method is resampling. Gaps come at the measured rate, at random times, with measured lengths. A step
//! lasts until the node has had its working time; the job's step lasts as long as that of its slowest node.
//!
//! Limits: nodes and gaps are assumed independent. Ticks that hit all nodes at the same time cost less than
//! projected; a single daemon that moves between nodes costs about as much. The longest gap is the longest
//! measured one: with more nodes than measured steps, the true slow-down is larger.

use crate::record::NoiseRecord;
use serde::Serialize;

/// Projection for one number of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Projection {
    /// Number of nodes.
    pub nodes: u64,
    /// Mean duration of a step, in nanoseconds.
    pub step_ns: f64,
    /// Increase over a step without noise: 0.02 for 2 %.
    pub slow_down: f64,
}

/// Number of steps of one node that are drawn, enough to represent about a million nodes.
const DRAWN: usize = 1 << 20;
/// Limit on the gaps drawn per step: enough for any mean.
const GAPS_MAX: u32 = 100_000;

/// Projects the slow-down of a job whose steps have `step_ns` of work, for each number of nodes. Empty if
/// nothing was measured.
///
/// The result depends only on the record, the step and the nodes.
#[must_use]
pub fn project(record: &NoiseRecord, step_ns: u64, nodes: &[u64]) -> Vec<Projection> {
    let (mut gaps, mut between_ns) = (Vec::new(), 0u64);
    for cpu in &record.cpus {
        gaps.extend(cpu.lengths.iter().copied());
        between_ns += cpu.runtime_ns.saturating_sub(cpu.noise_ns);
    }
    let count: u64 = gaps.iter().map(|(_, count)| count).sum();
    if between_ns == 0 || step_ns == 0 {
        return Vec::new();
    }
    let mut noise_ns = draw(&gaps, count, between_ns as f64 / count.max(1) as f64, step_ns);
    noise_ns.sort_unstable();
    let drawn = noise_ns.len() as f64;
    let slowest = |nodes: u64| {
        // Mean of the maximum of `nodes` draws: each value counts with the probability that it is the
        // maximum.
        let share = |below: usize| (below as f64 / drawn).powf(nodes as f64);
        let parts = noise_ns.iter().enumerate().map(|(at, ns)| *ns as f64 * (share(at + 1) - share(at)));
        parts.sum::<f64>()
    };
    let one = |nodes: u64| {
        let late_ns = slowest(nodes.max(1));
        Projection { nodes, step_ns: step_ns as f64 + late_ns, slow_down: late_ns / step_ns as f64 }
    };
    nodes.iter().map(|nodes| one(*nodes)).collect()
}

/// Draws the noise of many single steps.
fn draw(gaps: &[(u64, u64)], count: u64, mean_between_ns: f64, step_ns: u64) -> Vec<u64> {
    if count == 0 {
        return vec![0];
    }
    let sums: Vec<u64> = gaps
        .iter()
        .scan(0, |sum, (_, count)| {
            *sum += count;
            Some(*sum)
        })
        .collect();
    let mut random = Random(0x6e6f_6973_6500_0001);
    // A long step has many gaps, so fewer draws suffice.
    let expected = step_ns as f64 / mean_between_ns;
    let draws = ((64 * DRAWN) as f64 / expected.max(1.0)).clamp(4096.0, DRAWN as f64) as usize;
    (0..draws)
        .map(|_| {
            let (mut worked_ns, mut noise_ns) = (0.0, 0);
            for _ in 0..GAPS_MAX {
                worked_ns += -random.unit().ln() * mean_between_ns;
                if worked_ns >= step_ns as f64 {
                    break;
                }
                let which = (random.unit() * count as f64) as u64;
                let at = sums.partition_point(|sum| *sum <= which).min(gaps.len() - 1);
                noise_ns += gaps[at].0;
            }
            noise_ns
        })
        .collect()
}

/// SplitMix64 (Steele, Lea and Flood, 2014), with a fixed seed.
struct Random(u64);

impl Random {
    /// Returns a number above 0, at most 1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64 + f64::EPSILON
    }
}
