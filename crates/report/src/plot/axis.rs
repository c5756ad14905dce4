//! From values to pixels, and where the ticks are.

use super::number;

/// An axis: what it says, and how values lie on it. Its range comes from the values.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What the numbers are, with the unit: "ns per iteration".
    pub label: String,
    log: bool,
}

impl Axis {
    /// From 0, or from the smallest value where that is below.
    #[must_use]
    pub fn linear(label: impl Into<String>) -> Self {
        Axis { label: label.into(), log: false }
    }

    /// Every step is a factor. Values that are not above 0 lie at the axis' begin.
    #[must_use]
    pub fn log(label: impl Into<String>) -> Self {
        Axis { label: label.into(), log: true }
    }

    /// The label, and the kind of scale where that is not the usual one.
    pub(super) fn title(&self) -> String {
        if self.log { format!("{} (logarithmic)", self.label) } else { self.label.clone() }
    }

    /// For these values on pixels `from` to `to`; what is not finite is passed over.
    pub(super) fn fit(&self, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Scale {
        let usable = values.filter(|value| value.is_finite() && (!self.log || *value > 0.0));
        let usable = usable.map(|value| value.clamp(-HUGE, HUGE));
        let (least, most) = usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        let (low, high, ticks) = if self.log { log_range(least, most) } else { linear_range(least, most) };
        Scale { log: self.log, low, high, ticks, from, to }
    }
}

/// Values beyond this are drawn as this: differences of such still are numbers.
const HUGE: f64 = 1e300;

/// An axis with its range.
pub(super) struct Scale {
    log: bool,
    low: f64,
    high: f64,
    ticks: Vec<f64>,
    from: f64,
    to: f64,
}

impl Scale {
    /// Where a value lies, never outside the axis; what is no number lies at its begin.
    pub fn place(&self, value: f64) -> f64 {
        let value = if value.is_nan() { self.low } else { value.clamp(-HUGE, HUGE) };
        let part = if self.log {
            (value.max(self.low).log10() - self.low.log10()) / (self.high.log10() - self.low.log10())
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + (self.to - self.from) * part.clamp(0.0, 1.0)
    }

    /// Each tick: where it is, and what it says.
    pub fn ticks(&self) -> impl Iterator<Item = (f64, String)> + '_ {
        self.ticks.iter().map(|&tick| (self.place(tick), number(tick)))
    }
}

/// Whole powers of ten around the values, at least one; ticks between them while there are few.
fn log_range(least: f64, most: f64) -> (f64, f64, Vec<f64>) {
    if least > most {
        return (1.0, 10.0, vec![1.0, 10.0]);
    }
    // Far from what a double cannot hold.
    let (first, last) = (least.log10().floor().max(-300.0), most.log10().ceil().min(300.0));
    let last = last.max(first + 1.0);
    let between: &[f64] = if last - first <= 3.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let mut ticks = Vec::new();
    // One in so many powers of ten, so that the ticks can be read.
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

/// From 0 to just above the values, in steps of 1, 2 or 5 times a power of ten.
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
