//! Axes of a plot: mapping of values to pixels, and ticks.

use super::number;

/// Axis of a plot. Its range comes from the values.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Label with the unit: "ns per iteration".
    pub label: String,
    log: bool,
}

impl Axis {
    /// Creates a linear axis from 0, or from the smallest value if it is negative.
    #[must_use]
    pub fn linear(label: impl Into<String>) -> Self {
        Axis { label: label.into(), log: false }
    }

    /// Creates a logarithmic axis. Values that are not above 0 are drawn at its start.
    #[must_use]
    pub fn log(label: impl Into<String>) -> Self {
        Axis { label: label.into(), log: true }
    }

    /// Returns the label, with a note if the axis is logarithmic.
    pub(super) fn title(&self) -> String {
        if self.log { format!("{} (logarithmic)", self.label) } else { self.label.clone() }
    }

    /// Fits a scale on pixels `from` to `to` to the finite values.
    pub(super) fn fit(&self, values: impl Iterator<Item = f64>, from: f64, to: f64) -> AxisScale {
        let usable = values.filter(|value| value.is_finite() && (!self.log || *value > 0.0));
        let usable = usable.map(|value| value.clamp(-HUGE, HUGE));
        let (least, most) = usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        let (low, high, ticks) = if self.log { log_range(least, most) } else { linear_range(least, most) };
        AxisScale { log: self.log, low, high, ticks, from, to }
    }
}

/// Limit for values, so that their differences stay finite.
const HUGE: f64 = 1e300;

/// Axis with its range.
pub(super) struct AxisScale {
    log: bool,
    low: f64,
    high: f64,
    ticks: Vec<f64>,
    from: f64,
    to: f64,
}

impl AxisScale {
    /// Returns the pixel of a value, clamped to the axis. NaN is at its start.
    pub fn place(&self, value: f64) -> f64 {
        let value = if value.is_nan() { self.low } else { value.clamp(-HUGE, HUGE) };
        let part = if self.log {
            (value.max(self.low).log10() - self.low.log10()) / (self.high.log10() - self.low.log10())
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + (self.to - self.from) * part.clamp(0.0, 1.0)
    }

    /// Returns the pixel and the text of each tick.
    pub fn ticks(&self) -> impl Iterator<Item = (f64, String)> + '_ {
        self.ticks.iter().map(|&tick| (self.place(tick), number(tick)))
    }
}

/// Returns a range of whole powers of ten around the values, with ticks between them if there are few.
fn log_range(least: f64, most: f64) -> (f64, f64, Vec<f64>) {
    if least > most {
        return (1.0, 10.0, vec![1.0, 10.0]);
    }
    // Stays within the range of a double.
    let (first, last) = (least.log10().floor().max(-300.0), most.log10().ceil().min(300.0));
    let last = last.max(first + 1.0);
    let between: &[f64] = if last - first <= 3.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let mut ticks = Vec::new();
    // Skips powers of ten, so that the ticks stay readable.
    let every = ((last - first) / 12.0).ceil().max(1.0);
    let mut power = first;
    while power <= last {
        ticks.extend(between.iter().map(|factor| factor * 10f64.powf(power)));
        power += every;
    }
    let (low, high) = (10f64.powf(first), 10f64.powf(last));
    ticks.retain(|tick| *tick <= high * 1.001);
    (low, high, ticks)
}

/// Returns a range from 0 to just above the values, in steps of 1, 2 or 5 times a power of ten.
fn linear_range(least: f64, most: f64) -> (f64, f64, Vec<f64>) {
    if least > most {
        return (0.0, 1.0, vec![0.0, 1.0]);
    }
    let (low, high) = (least.min(0.0), most.max(0.0));
    let span = if high > low { high - low } else { 1.0 };
    let rough = (span / 6.0).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(rough);
    let (first, last) = ((low / step).floor(), (high / step).ceil().max((low / step).floor() + 1.0));
    let count = (last - first).clamp(1.0, 20.0) as u32;
    let ticks = (0..=count).map(|n| (first + f64::from(n)) * step).collect();
    (first * step, last * step, ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(axis: &Axis, values: &[f64]) -> Vec<String> {
        axis.fit(values.iter().copied(), 0.0, 100.0).ticks().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round_numbers_around_the_values() {
        let (linear, log) = (Axis::linear(""), Axis::log(""));
        assert_eq!(ticks(&linear, &[3.0, 5.5]), ["0", "1", "2", "3", "4", "5", "6"]);
        assert_eq!(ticks(&linear, &[-30.0, 30.0]), ["-30", "-20", "-10", "0", "10", "20", "30"]);
        assert_eq!(ticks(&log, &[3.0, 42.0]), ["1", "2", "5", "10", "20", "50", "100"]);
        assert_eq!(ticks(&log, &[3.0, 157_000.0]).len(), 7);
        for nothing in [&[][..], &[f64::NAN], &[f64::INFINITY]] {
            assert!(ticks(&linear, nothing).len() == 2 && ticks(&log, nothing).len() == 2);
        }
        assert_eq!(ticks(&log, &[0.0, -1.0]), ["1", "10"]);
        assert_eq!(ticks(&linear, &[0.0]), ["0", "0.2"], "one value of nothing still has an axis");
    }

    #[test]
    fn values_lie_between_the_ends() {
        let scale = Axis::log("").fit([1.0, 100.0].into_iter(), 200.0, 400.0);
        for (value, place) in [(1.0, 200.0), (10.0, 300.0), (100.0, 400.0), (0.0, 200.0), (1e9, 400.0)] {
            assert!((scale.place(value) - place).abs() < 1e-9, "{value}: {}", scale.place(value));
        }
        let upwards = Axis::linear("").fit([0.0, 10.0].into_iter(), 400.0, 200.0);
        assert!((upwards.place(5.0) - 300.0).abs() < 1e-9);
    }
}
