//! Settings of the bench.

/// Placement of the threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// The worker on the first core, the producers on the others.
    Apart,
    /// Placed by the kernel.
    Free,
}

impl Placement {
    /// Name in figures and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Placement::Apart => "apart",
            Placement::Free => "free",
        }
    }
}

/// Settings of the bench. The default is that of the published figures.
#[derive(Debug, Clone)]
pub struct QueueSettings {
    /// Items of a single producer.
    pub single: usize,
    /// Items of several producers together.
    pub multi: usize,
    /// Number of producers.
    pub producers: usize,
    /// Placement of the threads. Bursts are measured both on separate cores and placed by the kernel, unless
    /// this is [`Free`](Placement::Free).
    pub placement: Placement,
    /// Number of rounds.
    pub repeats: usize,
    /// Rounds of the search for lost events; 0 omits it.
    pub lost_rounds: u64,
    /// Latency measurements of a sleeping worker per way to wait; 0 omits them.
    pub latencies: usize,
    /// Bursts per run; 0 omits them.
    pub bursts: usize,
    /// Items per burst.
    pub burst_items: usize,
    /// Nanoseconds between the starts of two bursts.
    pub burst_period_ns: u64,
}

impl QueueSettings {
    /// The cost of a burst depends on which thread wakes the worker, and where, so both placements are
    /// measured.
    pub(super) fn burst_placements(&self) -> impl Iterator<Item = Placement> + use<> {
        let is_apart = self.placement == Placement::Apart;
        [Placement::Apart, Placement::Free].into_iter().skip(usize::from(!is_apart))
    }
}

impl Default for QueueSettings {
    fn default() -> Self {
        QueueSettings {
            single: 300_000,
            multi: 600_000,
            producers: 8,
            placement: Placement::Apart,
            repeats: 10,
            lost_rounds: 1_000_000,
            latencies: 300,
            bursts: 300,
            burst_items: 32,
            burst_period_ns: 500_000,
        }
    }
}
