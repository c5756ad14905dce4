//! The receiver of RDS: from the multiplex to lines.

use super::group::RdsGroup;
use super::line::{LineWriter, RdsFormat};
use super::sync::{GroupSearch, SyncCounts};
use crate::check;
use crate::dsp::{FirDecimator, Shift, not_finite, windowed};
use crate::found::{Finder, FindingSearch, Found};
use crate::phase_loops::{CostasDetector, LoopGains, PhaseTracker};
use crate::symbols::{ClockSettings, Strobe, SymbolClock, TimingDetector};
use num_complex::Complex;
use onbeat_runtime::{Chunk, Context, Ending, Error, Input, Kernel, Map, Operator, Output, Step, operator};
use std::collections::VecDeque;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// The subcarrier.
const SUBCARRIER_HZ: f64 = 57e3;

/// Half symbols ("chips") per second: each symbol is one of +1 −1 or −1 +1.
const CHIP_HZ: f64 = 2375.0;

/// Limits of the sample rate: the subcarrier with its sidebands must fit, and the filter has a limit.
const RATES_HZ: (f64, f64) = (120e3, 3e6);

/// Rate behind the matched filter, at least: eight samples per chip.
const FILTERED_HZ: f64 = 19e3;

/// Length of the matched filter on each side, in chips.
const HALF_CHIPS: f64 = 6.0;

/// Samples of a round.
const BLOCK: usize = 256;

/// Largest sample: louder ones would spoil the means for too long.
const LOUDEST: f32 = 1e6;

/// Bandwidths of the Costas loop in hertz, before and after groups are found.
const SEARCH_HZ: f64 = 25.0;
const TRACK_HZ: f64 = 8.0;

/// Largest deviation of the subcarrier in hertz: 350 ppm.
const RANGE_HZ: f64 = 20.0;

/// Bandwidth of the chip clock, as a share of the chip rate.
const CLOCK: f64 = 0.004;

/// Largest deviation of the chip rate, as a share of it.
const CLOCK_DEVIATION: f64 = 4e-4;

/// Share of a new symbol in the sizes by which chips are paired.
const PAIRING: f32 = 1.0 / 64.0;

/// How much larger the symbols of the other pairing must be.
const OTHER_PAIRING: f32 = 1.2;

/// Receives RDS, the data of an FM station, each group as a line of text.
///
#[doc = include_str!("../about/rds_decode.md")]
#[derive(Operator)]
#[operator(name = "rds.decode", summary = "data of an FM station (RDS), as lines of text")]
pub struct RdsDecode {
    /// The multiplex: the output of an FM demodulator, not filtered.
    pub input: Input<Chunk<f32>>,
    /// One line per group, without a line break.
    pub out: Output<String>,
    /// How groups are written: `json`, or `hex` for the four blocks in hexadecimal digits, as RDS Spy writes
    /// them.
    #[parameter(default)]
    format: RdsFormat,
    /// Whether a block with a wrong check word is corrected if one of its three weakest symbols explains it.
    #[parameter(default = true)]
    correct: bool,
    search: FindingSearch<RdsSearch>,
}

fn check_rate(rate_hz: f64) -> Result<(), Error> {
    check::rate(rate_hz)?;
    let (low_hz, high_hz) = RATES_HZ;
    if (low_hz..=high_hz).contains(&rate_hz) {
        return Ok(());
    }
    Err(Error::new(format!(
        "the sample rate of its input is {rate_hz} Hz: RDS needs from {low_hz} to {high_hz} Hz, for a subcarrier at \
         57 kHz; demodulate at another rate"
    )))
}

#[operator]
impl Operator for RdsDecode {
    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        check_rate(rate_hz).map(|()| None)
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.search = FindingSearch::default();
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let RdsDecode { input, out, search, format, correct } = self;
        search.step(input, out, |rate_hz| RdsSearch::new(rate_hz, *format, *correct), cx)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.search.say(cx, ending);
        Ok(())
    }
}

/// Taps of the matched filter: the square root of a raised cosine with a roll-off of 1, which the standard
/// has in the transmitter and in the receiver.
fn matched_taps(rate_hz: f64) -> Vec<f32> {
    let chip = rate_hz / CHIP_HZ;
    let tap = |n: usize| {
        let t = n as f64 / chip;
        let below = 1.0 - 16.0 * t * t;
        if below.abs() < 1e-9 { 1.0 } else { 4.0 / PI * (2.0 * PI * t).cos() / below }
    };
    let half = (HALF_CHIPS * chip).round() as usize;
    windowed(tap, half, 60.0, 0.0).into_iter().map(|tap| tap as f32).collect()
}

/// Makes symbols of chips.
#[derive(Debug, Default)]
struct ChipPairs {
    last: f32,
    /// Whether the next chip has an odd number, and whether symbols end with such a chip.
    is_odd: bool,
    ends_odd: bool,
    /// Mean sizes of the symbols that end with an even or with an odd chip.
    sizes: [f32; 2],
}

impl ChipPairs {
    /// Takes a chip. Returns the symbol that it ends.
    fn push(&mut self, chip: f32) -> Option<f32> {
        let symbol = (std::mem::replace(&mut self.last, chip) - chip) / 2.0;
        let size = &mut self.sizes[usize::from(self.is_odd)];
        *size += (symbol.abs() - *size) * PAIRING;
        let (mine, other) = (self.sizes[usize::from(self.ends_odd)], self.sizes[usize::from(!self.ends_odd)]);
        if other > OTHER_PAIRING * mine {
            self.ends_odd = !self.ends_odd;
        }
        let is_end = self.is_odd == self.ends_odd;
        self.is_odd = !self.is_odd;
        is_end.then_some(symbol)
    }
}

/// From samples of the subcarrier at 0 Hz, behind the matched filter, to groups.
struct Subcarrier {
    tracker: PhaseTracker,
    detector: CostasDetector,
    clock: SymbolClock,
    pairs: ChipPairs,
    groups: GroupSearch,
    rate_hz: f64,
    taken: u64,
    is_tracking: bool,
}

impl Subcarrier {
    fn new(rate_hz: f64, correct: bool) -> Self {
        let clock = ClockSettings {
            detector: TimingDetector::ZeroCrossing,
            period: rate_hz / CHIP_HZ,
            bandwidth: CLOCK,
            deviation: CLOCK_DEVIATION,
        };
        let gains = LoopGains::new(SEARCH_HZ / rate_hz, FRAC_1_SQRT_2);
        Subcarrier {
            tracker: PhaseTracker::new(gains, 0.0, RANGE_HZ / rate_hz),
            detector: CostasDetector::new(2, SEARCH_HZ / rate_hz),
            clock: SymbolClock::new(clock),
            pairs: ChipPairs::default(),
            groups: GroupSearch::new(correct),
            rate_hz,
            taken: 0,
            is_tracking: false,
        }
    }

    fn push(&mut self, x: Complex<f32>, found: impl FnMut(RdsGroup)) {
        let turned = Complex::new(f64::from(x.re), f64::from(x.im)) * self.tracker.reference().conj();
        let (error, _) = self.detector.push(turned);
        self.tracker.advance(error);
        self.taken += 1;
        let Some(strobe) = self.clock.push(turned.re as f32) else { return };
        let Some(symbol) = self.pairs.push(strobe.value) else { return };
        // From the middle of the second chip to the start of the symbol.
        let middle = (self.taken - 1) as f64 - Strobe::<f32>::BEHIND as f64 + strobe.fraction;
        self.groups.push(symbol, (middle / self.rate_hz - 1.5 / CHIP_HZ).max(0.0), found);
        let is_tracking = self.groups.is_locked();
        if is_tracking != std::mem::replace(&mut self.is_tracking, is_tracking) {
            let bandwidth_hz = if is_tracking { TRACK_HZ } else { SEARCH_HZ };
            self.tracker.set_gains(LoopGains::new(bandwidth_hz / self.rate_hz, FRAC_1_SQRT_2));
        }
    }
}

/// Finds groups in a multiplex.
struct RdsSearch {
    shift: Shift,
    filter: FirDecimator<Complex<f32>>,
    subcarrier: Subcarrier,
    writer: LineWriter,
    waiting: VecDeque<Found<String>>,
    rate_hz: f64,
    samples: u64,
    not_finite: u64,
}

impl RdsSearch {
    fn new(rate_hz: f64, format: RdsFormat, correct: bool) -> Result<Self, Error> {
        check_rate(rate_hz)?;
        let factor = (rate_hz / FILTERED_HZ).floor();
        let mut shift = Shift::new(-SUBCARRIER_HZ)?;
        shift.start(rate_hz)?;
        let mut filter = FirDecimator::with_taps(factor as u32, &matched_taps(rate_hz))?;
        filter.start(rate_hz)?;
        Ok(RdsSearch {
            shift,
            filter,
            subcarrier: Subcarrier::new(rate_hz / factor, correct),
            writer: LineWriter::new(format),
            waiting: VecDeque::new(),
            rate_hz,
            samples: 0,
            not_finite: 0,
        })
    }

    /// Takes samples of the subcarrier.
    fn receive(&mut self, filtered: &[Complex<f32>]) {
        let RdsSearch { subcarrier, writer, waiting, rate_hz, .. } = self;
        for x in filtered {
            subcarrier.push(*x, |group| {
                if let Some(value) = writer.line(&group) {
                    waiting.push_back(Found { value, at: (group.time_s * *rate_hz).round() as u64 });
                }
            });
        }
    }
}

impl Finder for RdsSearch {
    type Sample = f32;
    type Value = String;

    fn take(&mut self, samples: &[f32]) -> (usize, Option<Found<String>>) {
        let zero = Complex::new(0.0, 0.0);
        let (mut moved, mut filtered) = ([zero; BLOCK], [zero; BLOCK]);
        for part in samples.chunks(BLOCK) {
            let moved = &mut moved[..part.len()];
            for (to, from) in moved.iter_mut().zip(part) {
                self.not_finite += u64::from(!from.is_finite());
                *to = Complex::new(if from.is_finite() { from.clamp(-LOUDEST, LOUDEST) } else { 0.0 }, 0.0);
            }
            self.shift.map(moved);
            let made = self.filter.process(moved, &mut filtered).produced;
            self.receive(&filtered[..made]);
        }
        self.samples += samples.len() as u64;
        (samples.len(), self.waiting.pop_front())
    }

    fn finish(&mut self) {
        let zero = Complex::new(0.0, 0.0);
        let mut filtered = [zero; BLOCK];
        loop {
            let made = self.filter.finish(&mut filtered);
            if made == 0 {
                break;
            }
            self.receive(&filtered[..made]);
        }
        self.receive(&[zero; Strobe::<f32>::BEHIND as usize]);
    }

    fn note(&self) -> Option<String> {
        let mut texts: Vec<String> = not_finite(self.not_finite, "counted as 0").into_iter().collect();
        let SyncCounts { groups, blocks, wrong, corrected, lost, times } = self.subcarrier.groups.counts;
        if groups > 0 {
            texts.push(format!(
                "{groups} groups; of {blocks} blocks, {wrong} were wrong, {corrected} of which were corrected; {lost} \
                 groups were lost; synchronised {times} times"
            ));
        } else if self.samples > 0 {
            texts.push(format!(
                "no RDS group in {} samples; is this the multiplex of an FM station, not filtered, and long enough \
                 (1 s)?",
                self.samples
            ));
        }
        (!texts.is_empty()).then(|| texts.join("; "))
    }
}
