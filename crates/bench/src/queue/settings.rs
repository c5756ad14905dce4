//! What is to be measured, and how.

/// Which cores the threads have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// The worker the first one, the producers the others.
    Apart,
    /// Where the kernel puts them.
    Free,
}

impl Placement {
    /// In figures and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Placement::Apart => "apart",
            Placement::Free => "free",
        }
    }
}

/// What is to be measured. The default is what is published.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Items of one producer.
    pub single: usize,
    /// Items of all producers together.
    pub multi: usize,
    /// How many producers.
    pub producers: usize,
    /// Which cores the threads have. Bursts are measured on cores of their own and where the kernel puts them, unless this is
    /// [`Free`](Placement::Free).
    pub placement: Placement,
    /// How often everything is measured.
    pub repeats: usize,
    /// Rounds in which an event may be lost; 0 leaves that out.
    pub lost_rounds: u64,
    /// Looks at how late a sleeping worker is, per way to wait; 0 leaves that out.
    pub latencies: usize,
    /// Bursts in a run; 0 leaves that out.
    pub bursts: usize,
    /// Items in a burst.
    pub burst_items: usize,
    /// Nanoseconds from the begin of a burst to that of the next.
    pub burst_period_ns: u64,
}

impl Settings {
    /// Who wakes a thread, and where, is what a burst costs: so both.
    pub(super) fn burst_placements(&self) -> impl Iterator<Item = Placement> + use<> {
        let is_apart = self.placement == Placement::Apart;
        [Placement::Apart, Placement::Free].into_iter().skip(usize::from(!is_apart))
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
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
