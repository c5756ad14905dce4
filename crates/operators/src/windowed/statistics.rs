//! What can be measured of a window sample by sample. Sums are in 64-bit floating point, with the rounding
//! errors added up beside them, so that the length of a window does not matter.

/// A figure of a window, made of the samples one by one.
pub trait WindowStatistic: Default + Clone + Send + 'static {
    /// Takes a finite sample.
    fn add(&mut self, x: f64);

    /// Takes the samples of another part of the window, which come after those of this one.
    fn append(&mut self, later: &Self);

    /// Returns the figure. There must be a sample.
    fn value(&self) -> f64;
}

/// A sum with its rounding error.
///
/// Source: A. Neumaier, Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen, ZAMM 54
/// (1974).
#[derive(Debug, Clone, Copy, Default)]
struct ExactSum {
    sum: f64,
    error: f64,
    count: u64,
}

impl ExactSum {
    fn add(&mut self, x: f64) {
        self.put(x);
        self.count += 1;
    }

    fn put(&mut self, x: f64) {
        let sum = self.sum + x;
        self.error += if self.sum.abs() >= x.abs() { (self.sum - sum) + x } else { (x - sum) + self.sum };
        self.sum = sum;
    }

    fn append(&mut self, later: &Self) {
        self.put(later.sum);
        self.error += later.error;
        self.count += later.count;
    }

    fn mean(&self) -> f64 {
        (self.sum + self.error) / self.count as f64
    }
}

/// Arithmetic mean.
#[derive(Debug, Clone, Default)]
pub struct Mean(ExactSum);

impl WindowStatistic for Mean {
    fn add(&mut self, x: f64) {
        self.0.add(x);
    }
    fn append(&mut self, later: &Self) {
        self.0.append(&later.0);
    }
    fn value(&self) -> f64 {
        self.0.mean()
    }
}

/// Square root of the mean of the squares.
#[derive(Debug, Clone, Default)]
pub struct Rms(ExactSum);

impl WindowStatistic for Rms {
    fn add(&mut self, x: f64) {
        self.0.add(x * x);
    }
    fn append(&mut self, later: &Self) {
        self.0.append(&later.0);
    }
    fn value(&self) -> f64 {
        self.0.mean().sqrt()
    }
}

/// Square root of the mean of the squared distances from the mean, as `numpy.std` has it: the divisor is the
/// number of samples.
///
/// Source: T. F. Chan, G. H. Golub and R. J. LeVeque, Updating Formulae and a Pairwise Algorithm for
/// Computing Sample Variances (1979).
#[derive(Debug, Clone, Default)]
pub struct StandardDeviation {
    count: f64,
    mean: f64,
    /// Sum of the squared distances from the mean.
    squares: f64,
}

impl WindowStatistic for StandardDeviation {
    fn add(&mut self, x: f64) {
        self.count += 1.0;
        let before = x - self.mean;
        self.mean += before / self.count;
        self.squares += before * (x - self.mean);
    }
    fn append(&mut self, later: &Self) {
        let count = self.count + later.count;
        if later.count == 0.0 {
            return;
        }
        let apart = later.mean - self.mean;
        self.squares += later.squares + apart * apart * (self.count * later.count / count);
        self.mean += apart * (later.count / count);
        self.count = count;
    }
    fn value(&self) -> f64 {
        (self.squares / self.count).sqrt()
    }
}

/// Lowest sample.
#[derive(Debug, Clone)]
pub struct Lowest(f64);

impl Default for Lowest {
    fn default() -> Self {
        Lowest(f64::INFINITY)
    }
}

impl WindowStatistic for Lowest {
    fn add(&mut self, x: f64) {
        self.0 = self.0.min(x);
    }
    fn append(&mut self, later: &Self) {
        self.0 = self.0.min(later.0);
    }
    fn value(&self) -> f64 {
        self.0
    }
}

/// Highest sample.
#[derive(Debug, Clone)]
pub struct Highest(f64);

impl Default for Highest {
    fn default() -> Self {
        Highest(f64::NEG_INFINITY)
    }
}

impl WindowStatistic for Highest {
    fn add(&mut self, x: f64) {
        self.0 = self.0.max(x);
    }
    fn append(&mut self, later: &Self) {
        self.0 = self.0.max(later.0);
    }
    fn value(&self) -> f64 {
        self.0
    }
}

/// Highest less lowest sample.
#[derive(Debug, Clone, Default)]
pub struct PeakToPeak(Lowest, Highest);

impl WindowStatistic for PeakToPeak {
    fn add(&mut self, x: f64) {
        self.0.add(x);
        self.1.add(x);
    }
    fn append(&mut self, later: &Self) {
        self.0.append(&later.0);
        self.1.append(&later.1);
    }
    fn value(&self) -> f64 {
        self.1.value() - self.0.value()
    }
}
