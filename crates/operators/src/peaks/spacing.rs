//! Peaks that are not too close to each other.

use super::maxima::Maximum;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Candidates that may wait for a decision. Only a longer series of ever higher peaks reaches this.
const MOST: usize = 1 << 23;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Open,
    Kept,
    Dropped,
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    peak: Maximum,
    fate: Fate,
    /// Whether a higher neighbour is open, in the current round.
    is_blocked: bool,
}

/// Keeps the highest peak, drops those closer to it than the distance, and so on with the next highest of the
/// rest, like `scipy.signal.find_peaks`. Of equal heights, the last one comes first.
///
/// A peak is decided once everything is known that can change its fate: all peaks within the distance, and
/// the fates of those that are higher.
#[derive(Debug)]
pub(super) struct Spacing {
    distance: u64,
    /// By position.
    waiting: VecDeque<Candidate>,
    /// Indices of the open ones, the highest first.
    order: Vec<u32>,
    /// Rounds in which all had to be decided because too many waited.
    pub forced: u64,
}

impl Spacing {
    /// Peaks at least `distance` samples apart.
    pub fn new(distance: u64) -> Self {
        Spacing { distance, waiting: VecDeque::new(), order: Vec::new(), forced: 0 }
    }

    pub fn add(&mut self, peak: Maximum) {
        self.waiting.push_back(Candidate { peak, fate: Fate::Open, is_blocked: false });
    }

    /// Position of the first peak that is not decided.
    pub fn first_open(&self) -> Option<u64> {
        self.waiting.front().map(|candidate| candidate.peak.at)
    }

    /// Takes the next peak that is kept, if all before it are decided.
    pub fn pop(&mut self) -> Option<Maximum> {
        while let Some(Candidate { peak, fate, .. }) = self.waiting.pop_front_if(|it| it.fate != Fate::Open) {
            if fate == Fate::Kept {
                return Some(peak);
            }
        }
        None
    }

    /// Decides what can be decided if all peaks before position `known` have come; `None` if all have.
    pub fn decide(&mut self, known: Option<u64>) {
        let known = known.filter(|_| {
            self.waiting.len() <= MOST || {
                self.forced += 1;
                false
            }
        });
        self.order.clear();
        for (index, candidate) in self.waiting.iter_mut().enumerate() {
            candidate.is_blocked = false;
            if candidate.fate == Fate::Open {
                self.order.push(index as u32);
            }
        }
        let waiting = &mut self.waiting;
        self.order.sort_unstable_by(|&a, &b| {
            let (a, b) = (waiting[a as usize].peak, waiting[b as usize].peak);
            b.height.total_cmp(&a.height).then(Reverse(a.at).cmp(&Reverse(b.at)))
        });
        // The first of the open peaks with neighbours that are not known.
        let mut first_unsure = u64::MAX;
        for &index in &self.order {
            let Candidate { peak, fate, is_blocked } = waiting[index as usize];
            if fate != Fate::Open {
                continue;
            }
            if known.is_some_and(|known| known < peak.at.saturating_add(self.distance)) {
                first_unsure = first_unsure.min(peak.at);
                continue;
            }
            let is_open = is_blocked || first_unsure.saturating_sub(peak.at) < self.distance;
            if !is_open {
                waiting[index as usize].fate = Fate::Kept;
            }
            let change = |candidate: &mut Candidate| match candidate.fate {
                Fate::Open if is_open => candidate.is_blocked = true,
                Fate::Open => candidate.fate = Fate::Dropped,
                _ => {}
            };
            let is_near = |candidate: &&mut Candidate| candidate.peak.at.abs_diff(peak.at) < self.distance;
            waiting.range_mut(..index as usize).rev().take_while(is_near).for_each(change);
            waiting.range_mut(index as usize + 1..).take_while(is_near).for_each(change);
        }
    }
}
