//! The operators.

use super::engine::WindowEngine;
use super::lengths::GivenLengths;
use super::ordered::PercentileEngine;
use super::statistics::WindowStatistic;
use crate::found::FindingSearch;
use crate::mode_s::MagnitudeSample;
use onbeat_runtime::{Chunk, Context, Ending, Error, Input, Operator, Output, Seconds, Step, operator};

/// A measure of each window of a stream: one value per window. `T` is the type of a sample, of which the
/// magnitude is measured if it is complex, and `S` is the measure.
///
#[doc = include_str!("../about/windows.md")]
#[derive(Operator)]
#[operator(summary = "a measure of each window", prepare = Self::check)]
pub struct WindowMeasure<T: MagnitudeSample, S: WindowStatistic> {
    /// Samples to measure.
    pub input: Input<Chunk<T>>,
    /// One value for each window.
    pub out: Output<f64>,
    /// Length of a window as a time, rounded to whole samples; give either `window` or `samples`.
    #[parameter(above = 0, example = "10 ms")]
    window: Option<Seconds>,
    /// Length of a window in samples.
    #[parameter]
    samples: Option<u64>,
    /// Time from the begin of a window to the begin of the next, rounded to whole samples; without it, that
    /// of a window. If it is shorter, windows overlap; if it is longer, samples between them are left out.
    #[parameter(above = 0)]
    hop: Option<Seconds>,
    /// The same in samples, instead of `hop`.
    #[parameter]
    hop_samples: Option<u64>,
    search: FindingSearch<WindowEngine<T, S>>,
}

impl<T: MagnitudeSample, S: WindowStatistic> WindowMeasure<T, S> {
    fn lengths(&self) -> GivenLengths {
        let WindowMeasure { window, samples, hop, hop_samples, .. } = *self;
        GivenLengths { window, samples, hop, hop_samples }
    }

    fn check(&mut self) -> Result<(), Error> {
        self.lengths().check()
    }
}

#[operator]
impl<T: MagnitudeSample, S: WindowStatistic> Operator for WindowMeasure<T, S> {
    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        self.lengths().at(rate_hz).map(|_| None)
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.search = FindingSearch::default();
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let lengths = self.lengths();
        let make = |rate_hz| WindowEngine::new(lengths.at(rate_hz)?);
        self.search.step(&mut self.input, &mut self.out, make, cx)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.search.say(cx, ending);
        Ok(())
    }
}

/// A percentile of each window of a stream: one value per window.
///
#[doc = include_str!("../about/windows.md")]
#[derive(Operator)]
#[operator(summary = "percentile of each window", prepare = Self::prepare)]
pub struct Percentile {
    /// Samples to measure.
    pub input: Input<Chunk<f32>>,
    /// One value for each window.
    pub out: Output<f64>,
    /// Percentage of the samples that are at or below the value: 50 gives the median, 0 the lowest and 100
    /// the highest sample. Between two samples the value lies on a straight line, as with `numpy.percentile`.
    #[parameter(min = 0, max = 100, settable, example = 50)]
    p: f64,
    /// Length of a window as a time, rounded to whole samples; give either `window` or `samples`. A window
    /// has at most 16,777,216 samples.
    #[parameter(above = 0, example = "10 ms")]
    window: Option<Seconds>,
    /// Length of a window in samples.
    #[parameter]
    samples: Option<u64>,
    /// Time from the begin of a window to the begin of the next, rounded to whole samples; without it, that
    /// of a window. If it is shorter, windows overlap; if it is longer, samples between them are left out.
    #[parameter(above = 0)]
    hop: Option<Seconds>,
    /// The same in samples, instead of `hop`.
    #[parameter]
    hop_samples: Option<u64>,
    search: FindingSearch<PercentileEngine>,
}

impl Percentile {
    fn lengths(&self) -> GivenLengths {
        let Percentile { window, samples, hop, hop_samples, .. } = *self;
        GivenLengths { window, samples, hop, hop_samples }
    }

    fn prepare(&mut self) -> Result<(), Error> {
        if let Some(engine) = self.search.finder() {
            engine.percent = self.p;
        }
        self.lengths().check()
    }
}

#[operator]
impl Operator for Percentile {
    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        self.lengths().at(rate_hz).map(|_| None)
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.search = FindingSearch::default();
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let (lengths, percent) = (self.lengths(), self.p);
        let make = |rate_hz| PercentileEngine::new(lengths.at(rate_hz)?, percent);
        self.search.step(&mut self.input, &mut self.out, make, cx)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.search.say(cx, ending);
        Ok(())
    }
}
