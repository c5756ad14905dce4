//! Peaks of a stream, and their rate.
//!
//! | type | description |
//! |---|---|
//! | [`Peaks`] | one value for each peak |
//! | [`PeakRate`] | peaks per minute |

mod finder;
mod maxima;
mod spacing;

use crate::check;
use crate::found::FindingSearch;
use crate::windowed::samples;
use finder::{PeakFinder, RateFinder};
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Input, Kind, Operator, Output, Registry, Seconds, Step, operator,
};

/// Longest distance in samples.
const MOST: f64 = 4_194_304.0;

/// The least distance of two peaks in samples.
fn least_distance(time: Option<Seconds>, in_samples: Option<u64>, rate_hz: f64) -> Result<u64, Error> {
    let distance = match time {
        Some(Seconds(time_s)) => {
            check::rate(rate_hz)?;
            let samples = time_s * rate_hz;
            // A whole number of samples stays one, whatever the rounding error is.
            if (samples - samples.round()).abs() < 1e-6 { samples.round() } else { samples.ceil() }
        }
        None => in_samples.unwrap_or(1) as f64,
    };
    check::within("distance", distance, 0.0, MOST, "this is in samples: decimate the signal before")?;
    Ok(distance as u64)
}

/// Peaks of a stream: one value for each, its height.
///
#[doc = include_str!("../about/peaks.md")]
#[derive(Operator)]
#[operator(summary = "heights of the peaks of a stream", prepare = Self::prepare)]
pub struct Peaks {
    /// Samples to search.
    pub input: Input<Chunk<f32>>,
    /// Height of each peak, with its time and the key `sample`.
    pub out: Output<f64>,
    /// Lowest height of a peak; without it, all local maxima are peaks.
    #[parameter(settable, example = 0.5)]
    height: Option<f64>,
    /// Least time from one peak to the next, rounded up to whole samples: of two that are closer, the higher
    /// one stays. At most 4,194,304 samples.
    #[parameter(above = 0, example = "1 ms")]
    distance: Option<Seconds>,
    /// The same in samples, instead of `distance`.
    #[parameter(min = 1)]
    distance_samples: Option<u64>,
    search: FindingSearch<PeakFinder>,
}

impl Peaks {
    fn prepare(&mut self) -> Result<(), Error> {
        let height = self.height.unwrap_or(f64::NEG_INFINITY);
        if self.height.is_some() {
            check::finite("height", height)?;
        }
        if let Some(finder) = self.search.finder() {
            finder.height = height;
        }
        if self.distance.is_some() && self.distance_samples.is_some() {
            return Err(Error::new("has both `distance` and `distance_samples`: give one of them"));
        }
        // The distance as a time is checked when the rate is known.
        if self.distance_samples.is_some() {
            least_distance(None, self.distance_samples, 0.0)?;
        }
        Ok(())
    }
}

#[operator]
impl Operator for Peaks {
    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        least_distance(self.distance, self.distance_samples, rate_hz).map(|_| None)
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.search = FindingSearch::default();
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let (height, time, in_samples) = (self.height, self.distance, self.distance_samples);
        let make = |rate_hz| Ok(PeakFinder::new(height, least_distance(time, in_samples, rate_hz)?));
        let mark = |cx: &mut Context, position: u64| cx.set_key("sample", position as i64);
        self.search.step_with(&mut self.input, &mut self.out, make, cx, mark)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.search.say(cx, ending);
        Ok(())
    }
}

/// Rate of the peaks of a stream, in peaks per minute.
///
#[doc = include_str!("../about/peaks.md")]
#[derive(Operator)]
#[operator(name = "peaks.rate", summary = "peaks per minute of a stream", prepare = Self::prepare)]
pub struct PeakRate {
    /// Samples to search.
    pub input: Input<Chunk<f32>>,
    /// Peaks per minute, one value for each `every`.
    pub out: Output<f64>,
    /// Lowest height of a peak; without it, all local maxima are peaks.
    #[parameter(settable, example = 0.5)]
    height: Option<f64>,
    /// Least time from one peak to the next, rounded up to whole samples: of two that are closer, the higher
    /// one stays. At most 4,194,304 samples.
    #[parameter(above = 0, example = "1 ms")]
    distance: Option<Seconds>,
    /// Time over which peaks are counted, rounded to whole samples.
    #[parameter(default = "10 s", above = 0, example = "5 ms")]
    every: Seconds,
    search: FindingSearch<RateFinder>,
}

impl PeakRate {
    fn prepare(&mut self) -> Result<(), Error> {
        let height = self.height.unwrap_or(f64::NEG_INFINITY);
        if self.height.is_some() {
            check::finite("height", height)?;
        }
        if let Some(finder) = self.search.finder() {
            finder.peaks().height = height;
        }
        Ok(())
    }
}

#[operator]
impl Operator for PeakRate {
    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        samples("every", self.every, rate_hz)?;
        least_distance(self.distance, None, rate_hz).map(|_| None)
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.search = FindingSearch::default();
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let (height, time, every) = (self.height, self.distance, self.every);
        let make = |rate_hz| {
            let every = samples("every", every, rate_hz)?;
            let peaks = PeakFinder::new(height, least_distance(time, None, rate_hz)?);
            Ok(RateFinder::new(peaks, every, rate_hz))
        };
        self.search.step(&mut self.input, &mut self.out, make, cx)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.search.say(cx, ending);
        Ok(())
    }
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(Kind::operator::<Peaks>());
    registry.add(Kind::operator::<PeakRate>());
}
