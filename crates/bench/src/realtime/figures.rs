//! Figures of the frames.

use super::causes::{MACHINE, OUTLIER_NS, Outlier};
use super::frames::FrameTimes;

/// The frames of one pass in one round.
#[derive(Debug, Clone)]
pub struct PassFigures {
    /// Times between the starts of successive frames, in nanoseconds.
    pub periods_ns: Vec<f64>,
    /// The same without the periods next to a frame that the machine delayed.
    pub periods_without_ns: Vec<f64>,
    /// Durations of the frames, in nanoseconds.
    pub executions_ns: Vec<f64>,
    /// The outliers with their causes.
    pub outliers: Vec<Outlier>,
    /// Number of periods without a frame.
    pub missed: usize,
    /// Frames per second.
    pub fps: f64,
}

impl PassFigures {
    /// Frames to skip at the start: they warm the caches, and the first due time depends on the start.
    const FIRST: usize = 2;

    pub fn of(frames: &[FrameTimes], outliers: &[Outlier], period_ns: u64) -> PassFigures {
        let first = Self::FIRST.min(frames.len());
        let counted = &frames[first..];
        let outliers: Vec<Outlier> =
            outliers.iter().filter(|outlier| outlier.frame >= first).cloned().collect();
        let is_machines = |at: usize| {
            let frame = at + first;
            outliers
                .iter()
                .any(|outlier| outlier.frame == frame && outlier.is_late && outlier.cause == MACHINE)
        };

        let mut periods_ns = Vec::new();
        let mut periods_without_ns = Vec::new();
        let mut missed = 0;
        for (at, pair) in counted.windows(2).enumerate() {
            let period = pair[1].start_ns.saturating_sub(pair[0].start_ns) as f64;
            periods_ns.push(period);
            if !is_machines(at) && !is_machines(at + 1) {
                periods_without_ns.push(period);
            }
            let ticks = (pair[1].due_ns.saturating_sub(pair[0].due_ns) as f64 / period_ns as f64).round();
            missed += (ticks as usize).saturating_sub(1);
        }
        let executions_ns =
            counted.iter().map(|frame| frame.end_ns.saturating_sub(frame.start_ns) as f64).collect();
        let seconds = periods_ns.iter().sum::<f64>() / 1e9;
        let fps = if seconds > 0.0 { periods_ns.len() as f64 / seconds } else { 0.0 };
        PassFigures { periods_ns, periods_without_ns, executions_ns, outliers, missed, fps }
    }

    /// Distances between the periods and the target, in nanoseconds.
    pub fn deviations_ns(&self, target_ns: f64) -> Vec<f64> {
        self.periods_ns.iter().map(|period| (period - target_ns).abs()).collect()
    }

    /// Number of periods further from the target than this.
    pub fn over(&self, target_ns: f64, limit_ns: f64) -> usize {
        self.deviations_ns(target_ns).into_iter().filter(|&deviation| deviation > limit_ns).count()
    }

    /// Number of frames that the machine delayed.
    pub fn machines(&self) -> usize {
        self.outliers.iter().filter(|outlier| outlier.is_late && outlier.cause == MACHINE).count()
    }
}

/// Statistics of a list of numbers, as shown in the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviationSummary {
    pub mean: f64,
    pub std: f64,
    pub min: f64,
    pub p1: f64,
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

impl DeviationSummary {
    /// Computes the statistics of at least one number.
    pub fn of(numbers: &[f64]) -> Option<DeviationSummary> {
        let mut sorted = numbers.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let count = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / count;
        let variance = sorted.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / count;
        let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
        Some(DeviationSummary {
            mean,
            std: variance.sqrt(),
            min,
            p1: at(0.01),
            p50: at(0.5),
            p99: at(0.99),
            max,
        })
    }

    /// Statistics with their names in figures.
    pub fn named(self) -> [(&'static str, f64); 7] {
        let DeviationSummary { mean, std, min, p1, p50, p99, max } = self;
        [("mean", mean), ("std", std), ("min", min), ("p1", p1), ("p50", p50), ("p99", p99), ("max", max)]
    }
}

/// Limits in nanoseconds, with their names in figures. The bench counts the periods beyond each.
pub const LIMITS: [(&str, f64); 2] = [("over_100us", OUTLIER_NS as f64), ("over_1ms", 1e6)];

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(due_ms: u64, late_us: u64) -> FrameTimes {
        let due_ns = due_ms * 1_000_000;
        let start_ns = due_ns + late_us * 1_000;
        FrameTimes { due_ns, start_ns, end_ns: start_ns + 500_000, cpu: 0, tid: 1 }
    }

    #[test]
    fn periods_are_between_begins_and_missed_ticks_are_counted() {
        // The machine makes the third counted frame 200 µs late; one tick is skipped after it.
        let frames = [
            frame(0, 0),
            frame(10, 0),
            frame(20, 0),
            frame(30, 0),
            frame(40, 200),
            frame(60, 0),
            frame(70, 0),
        ];
        let late =
            Outlier { frame: 4, is_late: true, excess_ns: 200_000, cause: MACHINE.into(), parts: vec![] };
        let taken = PassFigures::of(&frames, &[late], 10_000_000);
        let about = |list: &[f64]| list.iter().map(|ns| (ns / 1e5).round() / 10.0).collect::<Vec<_>>();
        assert_eq!(about(&taken.periods_ns), [10.0, 10.2, 19.8, 10.0]);
        assert_eq!(about(&taken.periods_without_ns), [10.0, 10.0]);
        assert_eq!((taken.missed, taken.machines()), (1, 1));
        assert_eq!((taken.over(1e7, 1e5), taken.over(1e7, 1e6)), (2, 1));
        assert_eq!(about(&taken.executions_ns), [0.5; 5]);
    }

    #[test]
    fn a_summary_is_what_it_says() {
        assert_eq!(DeviationSummary::of(&[]), None);
        let found = DeviationSummary::of(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!((found.mean, found.min, found.p50, found.max), (2.5, 1.0, 3.0, 4.0));
        assert!((found.std - 1.118).abs() < 1e-3);
        assert!(PassFigures::of(&[], &[], 1).periods_ns.is_empty());
    }
}
