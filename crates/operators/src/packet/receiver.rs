//! The receiver of packets: from audio to lines.

use super::hdlc::HdlcFrame;
use super::line::line_of;
use super::slicer::{GAINS_DB, RecentTones, ToneSlicer};
use super::tones::{TonePair, Tones};
use crate::found::{Finder, FindingSearch, Found};
use crate::iir::DcBlock;
use onbeat_runtime::{
    Chunk, Context, Declared, Ending, Error, Hertz, Input, Map, Operator, Output, Step, operator,
};
use std::collections::VecDeque;

/// Fewest correlations per symbol.
const LEAST_PERIOD: f64 = 16.0;

/// Two frames with the same bytes that begin within this number of symbols are one.
const SAME: f64 = 8.0;

/// Frames that are remembered to find those that came twice.
const REMEMBERED: usize = 16;

/// Receives packets: AX.25 frames in audio that is keyed between two tones, each as a line of JSON.
///
#[doc = include_str!("../about/afsk_decode.md")]
#[derive(Operator)]
#[operator(name = "afsk.decode", summary = "packets (AX.25, APRS) in audio, as lines of JSON")]
pub struct AfskDecode {
    /// Audio of an FM receiver.
    pub input: Input<Chunk<f32>>,
    /// One line per frame, without a line break.
    pub out: Output<String>,
    /// Frequency of the tone for 1 (mark).
    #[parameter(default = "1200 Hz", above = 0)]
    mark: Hertz,
    /// Frequency of the tone for 0 (space).
    #[parameter(default = "2200 Hz", above = 0)]
    space: Hertz,
    /// Symbols per second.
    #[parameter(default = "1200 Hz", above = 0)]
    symbol_rate: Hertz,
    search: FindingSearch<AfskSearch>,
}

impl AfskDecode {
    fn tones(&self) -> Tones {
        Tones { mark_hz: self.mark.0, space_hz: self.space.0, symbol_hz: self.symbol_rate.0 }
    }
}

#[operator]
impl Operator for AfskDecode {
    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        self.tones().check(rate_hz).map(|()| None)
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.search = FindingSearch::default();
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let tones = self.tones();
        self.search.step(&mut self.input, &mut self.out, |rate_hz| AfskSearch::new(tones, rate_hz), cx)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.search.say(cx, ending);
        Ok(())
    }
}

/// Finds frames in audio.
struct AfskSearch {
    rate_hz: f64,
    block: DcBlock<f32>,
    pair: TonePair,
    recent: RecentTones,
    slicers: Vec<ToneSlicer>,
    frames: FoundFrames,
    samples: u64,
    power: f64,
}

/// Frames that were found, each once.
struct FoundFrames {
    symbol_s: f64,
    rate_hz: f64,
    /// Start in seconds and bytes of the last ones.
    last: VecDeque<(f64, Vec<u8>)>,
    waiting: VecDeque<Found<String>>,
    count: u64,
}

impl FoundFrames {
    /// Adds a frame that ended at this time, unless another slicer has found it before.
    fn add(&mut self, frame: HdlcFrame<'_>, end_s: f64) {
        let time_s = (end_s - frame.length as f64 * self.symbol_s).max(0.0);
        let is_same = |(other_s, bytes): &(f64, Vec<u8>)| {
            (time_s - other_s).abs() < SAME * self.symbol_s && bytes == frame.bytes
        };
        if self.last.iter().any(is_same) {
            return;
        }
        let Some(value) = line_of(frame.bytes, time_s) else { return };
        if self.last.len() == REMEMBERED {
            self.last.pop_front();
        }
        self.last.push_back((time_s, frame.bytes.to_vec()));
        self.waiting.push_back(Found { value, at: (time_s * self.rate_hz).round() as u64 });
        self.count += 1;
    }
}

impl AfskSearch {
    fn new(tones: Tones, rate_hz: f64) -> Result<Self, Error> {
        tones.check(rate_hz)?;
        let factor = (rate_hz / (LEAST_PERIOD * tones.symbol_hz)).floor().clamp(1.0, 4096.0);
        let slicer = |gain_db: &f64| ToneSlicer::new(tones, *gain_db, rate_hz / factor, false);
        let mut block = DcBlock::with("cutoff = '50 Hz'")?;
        block.start(rate_hz)?;
        Ok(AfskSearch {
            rate_hz: rate_hz / factor,
            block,
            pair: TonePair::new(tones, rate_hz, factor as u32)?,
            recent: RecentTones::default(),
            slicers: GAINS_DB.iter().map(slicer).collect(),
            frames: FoundFrames {
                symbol_s: 1.0 / tones.symbol_hz,
                rate_hz,
                last: VecDeque::with_capacity(REMEMBERED),
                waiting: VecDeque::new(),
                count: 0,
            },
            samples: 0,
            power: 0.0,
        })
    }
}

impl Finder for AfskSearch {
    type Sample = f32;
    type Value = String;

    fn take(&mut self, samples: &[f32]) -> (usize, Option<Found<String>>) {
        let mut block = [0.0; TonePair::MOST];
        let AfskSearch { pair, recent, slicers, frames, rate_hz, .. } = self;
        for part in samples.chunks(TonePair::MOST) {
            let block = &mut block[..part.len()];
            block.copy_from_slice(part);
            self.block.map(block);
            self.power += block.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>();
            self.samples += part.len() as u64;
            let (marks, spaces) = pair.process(block);
            for (mark, space) in marks.iter().zip(spaces) {
                recent.push(*mark, *space);
                slicers.iter_mut().for_each(|slicer| {
                    slicer.push(recent, *rate_hz, |frame, at| frames.add(frame, at / *rate_hz));
                });
            }
        }
        (samples.len(), self.frames.waiting.pop_front())
    }

    fn finish(&mut self) {
        let AfskSearch { pair, recent, slicers, frames, rate_hz, .. } = self;
        loop {
            let (marks, spaces) = pair.finish();
            if marks.is_empty() {
                return;
            }
            for (mark, space) in marks.iter().zip(spaces) {
                recent.push(*mark, *space);
                slicers.iter_mut().for_each(|slicer| {
                    slicer.push(recent, *rate_hz, |frame, at| frames.add(frame, at / *rate_hz));
                });
            }
        }
    }

    fn note(&self) -> Option<String> {
        let hint = (self.frames.count == 0 && self.samples > 0).then(|| {
            let level_db = 10.0 * (self.power / self.samples as f64).log10();
            format!(
                "no frame in {} samples of audio, whose level is {level_db:.1} dB of full scale; is this the audio \
                 of an FM receiver, neither cut by a squelch nor overdriven?",
                self.samples
            )
        });
        let texts: Vec<String> = self.block.note().into_iter().chain(hint).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }
}
