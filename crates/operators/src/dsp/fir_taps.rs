//! A filter with the user's own taps.

use super::fir::FirMethod;
use super::polyphase::FirSample;
use super::tap_file::{self, ListedTap};
use super::tap_filter::{TapFilter, Taps};
use num_complex::Complex;
use onbeat_runtime::{Context, Ending, Error, Inline, Operator, Ports, Step, Stream, operator};
use std::path::PathBuf;

#[doc = include_str!("../about/fir_taps.md")]
#[derive(Operator)]
#[operator(name = "fir.taps", summary = "filter with given taps", prepare = Self::prepare)]
pub struct FirTaps<T: FirSample> {
    /// The taps, from 1 to 16383, the newest sample's first: numbers, or `[real part, imaginary part]` for
    /// complex samples.
    #[parameter(default, example = [0.25, 0.5, 0.25])]
    taps: Vec<ListedTap>,
    /// A file with the taps instead: an NPY array with one axis, or a text of numbers between spaces, commas
    /// and line breaks, complex ones like `0.5-0.25j`; `#` begins a comment.
    #[parameter(input)]
    path: Option<PathBuf>,
    /// Delay in samples that the output is advanced by, from 0 to one less than the number of taps. Without
    /// it, half the length of taps that are symmetric or antisymmetric, and 0 for others.
    #[parameter]
    delay: Option<usize>,
    /// How to compute: `direct`, each output at once; `fft`, faster for long filters, but each output waits
    /// for its block of up to 16 times as many samples as the filter has taps; `auto`, whichever is faster.
    #[parameter(default)]
    method: FirMethod,
    stream: Stream<TapFilter<T>>,
    /// How the delay was chosen, if that is not plain.
    said: Option<String>,
}

/// A filter, and what should be said about its delay.
type SaidFilter<T> = (TapFilter<T>, Option<String>);

impl<T: FirSample> FirTaps<T> {
    fn prepare(&mut self) -> Result<(), Error> {
        match (&self.path, self.taps.is_empty()) {
            (None, true) => Err(Error::new("needs `taps` or `path`: give a list of numbers, or a file")),
            (Some(_), false) => Err(Error::new("has `taps` and also `path`: give one of them")),
            (Some(_), true) => Ok(()),
            (None, false) => {
                let taps: Vec<_> = self.taps.iter().map(|tap| (*tap).into()).collect();
                let (filter, said) = self.filter(&taps)?;
                (self.stream, self.said) = (Stream::new(filter), said);
                Ok(())
            }
        }
    }

    fn filter(&self, taps: &[Complex<f64>]) -> Result<SaidFilter<T>, Error> {
        tap_file::check(taps, T::FLOATS == 2)?;
        let (delay, said) = match self.delay {
            None => plain_delay(taps),
            Some(delay) if delay < taps.len() => (delay, None),
            Some(delay) => {
                return Err(Error::new(format!(
                    "`delay` is {delay}: it must be below {}, the number of taps",
                    taps.len()
                )));
            }
        };
        Ok((TapFilter::new(Taps::around(taps, delay), self.method), said))
    }

    fn of_file(&self) -> Result<Option<SaidFilter<T>>, Error> {
        let Some(path) = &self.path else { return Ok(None) };
        let taps = tap_file::read(path)?;
        let wrong = |error: Error| Error::new(format!("{}: {error}", path.display()));
        self.filter(&taps).map(Some).map_err(wrong)
    }
}

/// Group delay of taps with linear phase, in whole samples, and what should be said about it.
fn plain_delay(taps: &[Complex<f64>]) -> (usize, Option<String>) {
    let most = taps.iter().map(|tap| tap.norm()).fold(0.0, f64::max);
    let is_like = |sign: f64| {
        let pairs = taps.iter().zip(taps.iter().rev());
        pairs.into_iter().all(|(one, other)| (one - other.conj() * sign).norm() <= 1e-6 * most)
    };
    if !is_like(1.0) && !is_like(-1.0) {
        return (
            0,
            Some("the taps are not symmetric, so no delay was dropped: set `delay` to drop some".into()),
        );
    }
    let text = "the number of taps is even: the output is half a sample late";
    ((taps.len() - 1) / 2, taps.len().is_multiple_of(2).then(|| text.to_string()))
}

#[operator]
impl<T: FirSample> Operator for FirTaps<T> {
    fn ports(&mut self, p: &mut Ports) {
        self.stream.ports(p);
    }

    fn check(&self) -> Result<(), Error> {
        self.of_file().map(drop)
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        if let Some((filter, said)) = self.of_file()? {
            *self.stream.kernel_mut() = filter;
            self.said = said;
        }
        self.stream.start(cx)
    }

    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        self.stream.rate_behind(rate_hz)
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        self.stream.step(cx)
    }

    fn restart(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.stream.restart(cx)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        if let Some(said) = self.said.take().filter(|_| ending != Ending::Failed) {
            cx.note(said);
        }
        self.stream.stop(cx, ending)
    }

    fn inline(&mut self) -> Option<&mut dyn Inline> {
        self.stream.inline()
    }
}
