//! Recovery of symbols from a waveform.

mod clock;
mod doubt;

pub(crate) use clock::{ClockSettings, Strobe, SymbolClock, interpolate};
pub use clock::{SymbolSample, TimingDetector};
pub(crate) use doubt::Alternatives;

use crate::check;
use crate::dsp::not_finite;
use num_complex::Complex;
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Hertz, Input, Kind, Operator, Output, Registry, Step, operator,
};

/// Fewest samples per symbol.
const LEAST_PERIOD: f64 = 3.0;

/// Recovers symbols: finds the middles of the symbols in a waveform, and sends one sample for each.
///
#[doc = include_str!("../about/symbol_sync.md")]
#[derive(Operator)]
#[operator(name = "symbol.sync", summary = "one sample per symbol, in its middle")]
pub struct SymbolSync<T: SymbolSample> {
    /// The waveform, in which symbols are above or below 0; if it is complex, each of its parts.
    pub input: Input<Chunk<T>>,
    /// One sample per symbol.
    pub out: Output<Chunk<T>>,
    /// Symbols per second, at most a third of the sample rate.
    #[parameter(above = 0, example = "1200 Hz")]
    symbol_rate: Hertz,
    /// How timing is measured: `zero-crossing` and `gardner` for pulses that are as long as their symbol,
    /// `mueller-muller` for others too.
    #[parameter(default)]
    detector: TimingDetector,
    /// Noise bandwidth of the loop, as a share of the symbol rate: smaller is steadier, larger locks faster.
    #[parameter(default = 0.01, above = 0, max = 0.2)]
    bandwidth: f64,
    /// Largest deviation of the symbol rate, as a share of it.
    #[parameter(default = 0.01, min = 0, max = 0.1)]
    deviation: f64,
    clock: Option<SymbolClock<T>>,
    rate_hz: f64,
    received: u64,
    sent: u64,
    is_flushed: bool,
    not_finite: u64,
}

impl<T: SymbolSample> SymbolSync<T> {
    fn period(&self, rate_hz: f64) -> Result<f64, Error> {
        check::rate(rate_hz)?;
        let Hertz(symbol_hz) = self.symbol_rate;
        if rate_hz / symbol_hz >= LEAST_PERIOD {
            return Ok(rate_hz / symbol_hz);
        }
        Err(Error::new(format!(
            "`symbol_rate` is {symbol_hz}: it must be at most {}, a third of the sample rate; resample the input \
             to a higher rate",
            rate_hz / LEAST_PERIOD
        )))
    }

    fn begin(&mut self, rate_hz: f64) -> Result<(), Error> {
        if self.clock.is_some() && self.rate_hz == rate_hz {
            return Ok(());
        }
        if self.clock.is_some() {
            return Err(Error::new(format!(
                "the sample rate of its input changed from {} Hz to {rate_hz} Hz: resample before merging streams",
                self.rate_hz
            )));
        }
        let SymbolSync { detector, bandwidth, deviation, .. } = *self;
        let period = self.period(rate_hz)?;
        self.clock = Some(SymbolClock::new(ClockSettings { detector, period, bandwidth, deviation }));
        self.rate_hz = rate_hz;
        Ok(())
    }

    /// Moves the symbols to the start of the samples, and returns their number.
    fn recover(&mut self, samples: &mut [T]) -> usize {
        let Some(clock) = &mut self.clock else { return 0 };
        let mut count = 0;
        for at in 0..samples.len() {
            let mut x = samples[at];
            if !x.is_good() {
                self.not_finite += 1;
                x = T::zeroed();
            }
            if let Some(strobe) = clock.push(x) {
                samples[count] = strobe.value;
                count += 1;
            }
        }
        self.received += samples.len() as u64;
        count
    }

    fn send(&mut self, cx: &mut Context, mut chunk: Chunk<T>, count: usize) -> Result<(), Error> {
        if count > 0 {
            chunk.truncate(count);
            let info = chunk.info_mut();
            (info.start, info.rate_hz, info.shape) = (self.sent, self.symbol_rate.0, [0; 3]);
            info.tags.clear();
            self.sent += count as u64;
            self.out.push(cx, chunk)?;
        }
        Ok(())
    }
}

#[operator]
impl<T: SymbolSample> Operator for SymbolSync<T> {
    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        self.period(rate_hz)?;
        Ok(Some(self.symbol_rate.0))
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.clock = None;
        (self.received, self.sent, self.is_flushed, self.not_finite) = (0, 0, false, 0);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(mut chunk) = self.input.pop(cx) {
            self.begin(chunk.rate_hz())?;
            let count = self.recover(chunk.edit(cx)?);
            self.send(cx, chunk, count)?;
        } else if self.input.is_ended(cx) && self.received > 0 && !self.is_flushed {
            let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
            self.is_flushed = true;
            cx.set_stamp(cx.stamp().without_due());
            let rest = chunk.edit(cx)?;
            let length = rest.len().min(Strobe::<T>::BEHIND as usize);
            rest[..length].fill(T::zeroed());
            let count = self.recover(&mut rest[..length]);
            self.send(cx, chunk, count)?;
        }
        Ok(Step::Wait)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        if let Some(note) = not_finite(self.not_finite, "counted as 0").filter(|_| ending != Ending::Failed) {
            cx.note(note);
        }
        Ok(())
    }
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(Kind::operator::<SymbolSync<f32>>());
    registry.add(Kind::operator::<SymbolSync<Complex<f32>>>().named("symbol.sync.complex"));
}
