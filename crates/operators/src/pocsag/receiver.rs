//! The receiver of pages: from audio to lines.

use super::batches::BatchSearch;
use super::bch::ALTERNATIVES;
use super::message::{PageCoding, TimedLine};
use crate::check;
use crate::dsp::{FirDecimator, not_finite};
use crate::found::{Finder, FindingSearch, Found};
use crate::packet::{check_length, mean_taps};
use crate::symbols::{ClockSettings, Strobe, SymbolClock, TimingDetector};
use onbeat_runtime::{Chunk, Context, Ending, Error, Input, Kernel, Operator, Output, Step, operator};
use std::collections::VecDeque;
use std::sync::LazyLock;

/// Symbol rates of POCSAG.
const RATES: [u32; 3] = [512, 1200, 2400];

/// Samples of a round.
const BLOCK: usize = 256;

/// Fewest samples per symbol behind the matched filter, if the input has as many.
const LEAST_PERIOD: f64 = 12.0;

/// Symbols over which the mean is taken that counts as 0 until a sync word has come.
const MEAN: f64 = 64.0;

/// Largest sample: louder ones would spoil the mean for too long.
const LOUDEST: f32 = 1e6;

/// Bandwidth of the symbol clock, as a share of the symbol rate.
const BANDWIDTH: f64 = 0.01;

/// Largest deviation of a sender's symbol rate, as a share of it.
const DEVIATION: f64 = 0.002;

/// Receives pages: POCSAG at 512, 1200 and 2400 Bd in the audio of an FM receiver, each as a line of JSON.
///
#[doc = include_str!("../about/pocsag_decode.md")]
#[derive(Operator)]
#[operator(name = "pocsag.decode", summary = "pages (POCSAG) in audio, as lines of JSON", prepare = Self::prepare)]
pub struct PocsagDecode {
    /// Audio of an FM receiver, without de-emphasis.
    pub input: Input<Chunk<f32>>,
    /// One line per message, without a line break.
    pub out: Output<String>,
    /// Symbol rates to look for: 512, 1200, 2400.
    #[parameter(default = vec![512, 1200, 2400])]
    rates: Vec<u32>,
    /// How the bits of messages are read: `function` (digits if the function is 0, else characters),
    /// `numeric`, `text`, or `both`.
    #[parameter(default)]
    coding: PageCoding,
    search: FindingSearch<PageSearch>,
}

impl PocsagDecode {
    fn prepare(&mut self) -> Result<(), Error> {
        if let Some(rate) = self.rates.iter().find(|rate| !RATES.contains(rate)) {
            return Err(Error::new(format!("`rates` has {rate}: it can have 512, 1200 and 2400")));
        }
        self.rates.sort_unstable();
        self.rates.dedup();
        if self.rates.is_empty() {
            return Err(Error::new("`rates` is empty: give one of 512, 1200 and 2400, or several"));
        }
        Ok(())
    }
}

#[operator]
impl Operator for PocsagDecode {
    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        check_rate(&self.rates, rate_hz).map(|()| None)
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.search = FindingSearch::default();
        LazyLock::force(&ALTERNATIVES);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let PocsagDecode { input, out, search, rates, coding } = self;
        search.step(input, out, |rate_hz| PageSearch::new(rates, *coding, rate_hz), cx)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.search.say(cx, ending);
        Ok(())
    }
}

/// Checks that a sample rate suits these symbol rates.
fn check_rate(rates: &[u32], rate_hz: f64) -> Result<(), Error> {
    check::rate(rate_hz)?;
    let lowest = rates.iter().min().map_or(f64::INFINITY, |rate| f64::from(*rate));
    check_length("rates", lowest, rate_hz)?;
    let needed_hz = rates.iter().max().map_or(0.0, |rate| 4.0 * f64::from(*rate));
    if rate_hz >= needed_hz {
        return Ok(());
    }
    Err(Error::new(format!(
        "the sample rate of its input is {rate_hz} Hz: `rates` needs at least {needed_hz} Hz, 4 samples per \
         symbol; leave the highest rate out, or use the audio before it was resampled"
    )))
}

/// Finds messages of one symbol rate.
struct RateSearch {
    /// The matched filter: a mean over one symbol.
    filter: FirDecimator<f32>,
    clock: SymbolClock,
    batches: BatchSearch,
    /// Rate behind the filter.
    rate_hz: f64,
    taken: u64,
    mean: f64,
    /// Share of a new sample in the mean.
    share: f64,
}

impl RateSearch {
    fn new(baud: u32, coding: PageCoding, rate_hz: f64) -> Result<Self, Error> {
        let period = rate_hz / f64::from(baud);
        let factor = (period / LEAST_PERIOD).floor().clamp(1.0, 4096.0);
        let mut filter = FirDecimator::with_taps(factor as u32, &mean_taps(period, 1.0))?;
        filter.start(rate_hz)?;
        let period = period / factor;
        let clock = ClockSettings {
            detector: TimingDetector::ZeroCrossing,
            period,
            bandwidth: BANDWIDTH,
            deviation: DEVIATION,
        };
        Ok(RateSearch {
            filter,
            clock: SymbolClock::new(clock),
            batches: BatchSearch::new(baud, coding),
            rate_hz: rate_hz / factor,
            taken: 0,
            mean: 0.0,
            share: 1.0 / (MEAN * period),
        })
    }

    fn push(&mut self, samples: &[f32], mut found: impl FnMut(TimedLine)) {
        for sample in samples {
            self.taken += 1;
            self.mean += (f64::from(*sample) - self.mean) * self.share.max(1.0 / self.taken as f64);
            let Some(strobe) = self.clock.push((f64::from(*sample) - self.mean) as f32) else { continue };
            let at = self.taken as f64 - 1.0 - Strobe::<f32>::BEHIND as f64 + strobe.fraction;
            self.batches.push(strobe.value, (at / self.rate_hz).max(0.0), &mut found);
        }
    }
}

/// Finds messages of all symbol rates.
struct PageSearch {
    rates: Vec<RateSearch>,
    waiting: VecDeque<Found<String>>,
    rate_hz: f64,
    not_finite: u64,
    count: u64,
}

impl PageSearch {
    fn new(rates: &[u32], coding: PageCoding, rate_hz: f64) -> Result<Self, Error> {
        check_rate(rates, rate_hz)?;
        let search = |baud: &u32| RateSearch::new(*baud, coding, rate_hz);
        Ok(PageSearch {
            rates: rates.iter().map(search).collect::<Result<_, _>>()?,
            waiting: VecDeque::new(),
            rate_hz,
            not_finite: 0,
            count: 0,
        })
    }
}

impl Finder for PageSearch {
    type Sample = f32;
    type Value = String;

    fn take(&mut self, samples: &[f32]) -> (usize, Option<Found<String>>) {
        let (mut clean, mut filtered) = ([0.0; BLOCK], [0.0; BLOCK]);
        let PageSearch { rates, waiting, rate_hz, not_finite, count } = self;
        for part in samples.chunks(BLOCK) {
            let clean = &mut clean[..part.len()];
            for (to, from) in clean.iter_mut().zip(part) {
                *not_finite += u64::from(!from.is_finite());
                *to = if from.is_finite() { from.clamp(-LOUDEST, LOUDEST) } else { 0.0 };
            }
            for rate in rates.iter_mut() {
                let made = rate.filter.process(clean, &mut filtered).produced;
                rate.push(&filtered[..made], |(time_s, value)| {
                    *count += 1;
                    waiting.push_back(Found { value, at: (time_s * *rate_hz).round() as u64 });
                });
            }
        }
        (samples.len(), self.waiting.pop_front())
    }

    fn finish(&mut self) {
        let mut filtered = [0.0; BLOCK];
        let PageSearch { rates, waiting, rate_hz, count, .. } = self;
        let mut found = |(time_s, value): TimedLine| {
            *count += 1;
            waiting.push_back(Found { value, at: (time_s * *rate_hz).round() as u64 });
        };
        for rate in rates {
            loop {
                let made = rate.filter.finish(&mut filtered);
                rate.push(&filtered[..made], &mut found);
                if made == 0 {
                    break;
                }
            }
            rate.push(&[0.0; Strobe::<f32>::BEHIND as usize], &mut found);
            rate.batches.finish(&mut found);
        }
    }

    fn note(&self) -> Option<String> {
        let mut texts: Vec<String> = not_finite(self.not_finite, "counted as 0").into_iter().collect();
        let sum =
            |what: fn(&BatchSearch) -> u64| self.rates.iter().map(|rate| what(&rate.batches)).sum::<u64>();
        let (batches, lost, orphans) = (sum(|it| it.batches), sum(|it| it.lost), sum(BatchSearch::orphans));
        if lost + orphans > 0 {
            texts.push(format!(
                "of {batches} batches, {lost} code words had too many wrong bits or weak ones, and {orphans} belonged to \
                 messages whose address was lost"
            ));
        }
        (!texts.is_empty()).then(|| texts.join("; "))
    }
}
