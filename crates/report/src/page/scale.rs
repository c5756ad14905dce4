//! Mapping of values to positions on a chart.

use super::words;

/// Scale of one axis of a chart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    log: bool,
    from: f64,
    to: f64,
}

/// Tick: its value and its text.
pub(super) type Tick = (f64, String);

impl Scale {
    /// Maps values from `low` to `high` linearly to pixels `from` to `to`.
    pub fn linear(low: f64, high: f64, from: f64, to: f64) -> Self {
        let high = if high > low { high } else { low + low.abs().max(1.0) * 1e-6 };
        Scale { low, high, log: false, from, to }
    }

    /// Maps values above 0 logarithmically.
    pub fn log(low: f64, high: f64, from: f64, to: f64) -> Self {
        let low = low.max(f64::MIN_POSITIVE);
        Scale { low, high: high.max(low * 1.001), log: true, from, to }
    }

    /// Returns the pixel of a value. Values outside the range are clamped.
    pub fn place(&self, value: f64) -> f64 {
        let part = if self.log {
            (value.max(self.low).ln() - self.low.ln()) / (self.high.ln() - self.low.ln())
        } else {
            (value - self.low) / (self.high - self.low)
        };
        let part = if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 };
        self.from + (self.to - self.from) * part
    }

    /// Returns about `about` round values.
    pub fn ticks(&self, about: usize) -> Vec<f64> {
        if self.log {
            let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
            let every = ((last - first) as usize).div_ceil(about.max(1)).max(1);
            let tens = (first..=last).step_by(every).map(|power| 10f64.powi(power));
            let ticks: Vec<f64> =
                tens.filter(|&tick| tick >= self.low * 0.999 && tick <= self.high * 1.001).collect();
            if ticks.len() >= 2 {
                return ticks;
            }
        }
        let rough = (self.high - self.low) / about.max(1) as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|&step| step >= rough * 0.7);
        let step = step.unwrap_or(rough);
        let first = (self.low / step - 1e-6).ceil() as i64;
        (0..=(about * 2) as i64 + 2)
            .map(|n| (first + n) as f64 * step)
            .take_while(|&tick| tick <= self.high + step * 1e-6)
            .collect()
    }

    /// Returns ticks for times, and their common unit, which the largest value decides.
    pub fn time_ticks(&self, about: usize) -> (Vec<Tick>, &'static str) {
        let ticks = self.ticks(about);
        if self.log {
            return (ticks.iter().map(|&tick| (tick, words::time(tick))).collect(), "");
        }
        let size = self.high.abs().max(self.low.abs());
        let (factor, unit) = match size {
            size if size < 2e3 => (1.0, "ns"),
            size if size < 2e6 => (1e3, "µs"),
            size if size < 2e9 => (1e6, "ms"),
            _ => (1e9, "s"),
        };
        let step = if ticks.len() > 1 { (ticks[1] - ticks[0]) / factor } else { 1.0 };
        let digits = (-step.abs().max(1e-9).log10().floor()).clamp(0.0, 9.0) as usize;
        (ticks.iter().map(|&tick| (tick, format!("{:.digits$}", tick / factor))).collect(), unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let cases = [(0.0, 10.0), (16.6e6, 16.7e6), (-5.0, 5.0), (3.0, 3.0), (0.0, 1e12)];
        for (low, high) in cases {
            let scale = Scale::linear(low, high, 0.0, 100.0);
            let ticks = scale.ticks(5);
            assert!((1..=12).contains(&ticks.len()), "{low} {high}: {ticks:?}");
            assert!(ticks.iter().all(|&tick| (-0.01..=100.01).contains(&scale.place(tick))), "{ticks:?}");
        }
        assert_eq!(Scale::log(1.0, 1e6, 0.0, 1.0).ticks(10).len(), 7);
        let (ticks, unit) = Scale::linear(16.60e6, 16.70e6, 0.0, 1.0).time_ticks(5);
        assert_eq!((ticks[0].1.as_str(), ticks[1].1.as_str(), unit), ("16.60", "16.62", "ms"));
    }
}
