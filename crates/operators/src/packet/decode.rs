//! Frames in a stream of symbols.

use super::hdlc::HdlcDeframer;
use super::line::line_of;
use crate::found::{Finder, FindingSearch, Found};
use onbeat_runtime::{Chunk, Context, Ending, Error, Input, Operator, Output, Step, operator};

/// Finds AX.25 frames in a stream of symbols, and decodes each to a line of JSON.
///
#[doc = include_str!("../about/ax25_decode.md")]
#[derive(Operator)]
#[operator(name = "ax25.decode", summary = "AX.25 frames in symbols, as lines of JSON")]
pub struct Ax25Decode {
    /// One sample per symbol, above 0 for a mark.
    pub input: Input<Chunk<f32>>,
    /// One line per frame, without a line break.
    pub out: Output<String>,
    /// Whether the symbols are scrambled, as at 9600 Bd (polynomial x¹⁷ + x¹² + 1).
    #[parameter(default = false)]
    scrambled: bool,
    search: FindingSearch<SymbolFrames>,
}

#[operator]
impl Operator for Ax25Decode {
    fn rate_behind(&mut self, _: f64) -> Result<Option<f64>, Error> {
        Ok(None)
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.search = FindingSearch::default();
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let scrambled = self.scrambled;
        let make =
            |rate_hz| Ok(SymbolFrames { deframer: HdlcDeframer::new(scrambled), rate_hz, taken: 0, nan: 0 });
        self.search.step(&mut self.input, &mut self.out, make, cx)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.search.say(cx, ending);
        Ok(())
    }
}

/// Finds frames in symbols.
struct SymbolFrames {
    deframer: HdlcDeframer,
    /// Symbols per second; 0 if unknown.
    rate_hz: f64,
    taken: u64,
    nan: u64,
}

impl Finder for SymbolFrames {
    type Sample = f32;
    type Value = String;

    fn take(&mut self, symbols: &[f32]) -> (usize, Option<Found<String>>) {
        for (at, symbol) in symbols.iter().enumerate() {
            self.taken += 1;
            self.nan += u64::from(symbol.is_nan());
            let Some(frame) = self.deframer.push(*symbol > 0.0) else { continue };
            let start = self.taken.saturating_sub(frame.length);
            let time_s = if self.rate_hz > 0.0 { start as f64 / self.rate_hz } else { 0.0 };
            if let Some(value) = line_of(frame.bytes, time_s) {
                return (at + 1, Some(Found { value, at: start }));
            }
        }
        (symbols.len(), None)
    }

    fn note(&self) -> Option<String> {
        (self.nan > 0).then(|| format!("{} symbols were not a number and counted as 0", self.nan))
    }
}
