//! SigMF recordings: samples in one file, what they are in another.
//!
//! `meta` reads and checks what the metadata say, `data` the samples; the operator is here.

mod data;
mod meta;

use crate::check;
use data::Data;
use meta::{Mark, Meta};
use num_complex::Complex;
use onbeat_runtime::{
    Chunk, Context, Error, Folders, Hertz, Kind, Operator, Output, Pace, Pacer, Ports, Step, Tag,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Plays a SigMF recording of one channel: `ci8`, `cu8`, `ci16_le` or `cf32_le`, full scale is 1.
///
/// Annotations come as tags on their first sample, with the key `core:label` and the label for a value (or, without
/// a label, `annotation` and the comment); each capture's frequency comes as a tag `core:frequency`.
pub struct SigmfSource {
    /// The samples.
    pub out: Output<Chunk<Complex<f32>>>,
    path: PathBuf,
    pace: Pace,
    repeat: u64,
    verify: bool,
    sample_rate_hz: Option<f64>,
    playing: Option<Playing>,
}

/// What is known once the files are open.
struct Playing {
    data: Data,
    marks: Vec<Mark>,
    rate_hz: f64,
    pacer: Pacer,
    /// Samples to send in all.
    total: u64,
    sent: u64,
    /// Next sample of the file, and the next mark.
    at: u64,
    mark: usize,
}

impl SigmfSource {
    /// Plays a recording once, in real time. The path is that of the `.sigmf-meta` or the `.sigmf-data`, or what both
    /// have in common.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        SigmfSource {
            out: Output::default(),
            path: path.into(),
            pace: Pace::Real,
            repeat: 1,
            verify: true,
            sample_rate_hz: None,
            playing: None,
        }
    }

    /// How it keeps time, unless the run says otherwise.
    pub fn pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// How often it plays the recording; 0 for without end. The stream has no seam.
    pub fn repeat(mut self, times: u64) -> Self {
        self.repeat = times;
        self
    }

    /// Whether the data are compared with the checksum, where the metadata have one. This reads them one time more,
    /// before the run begins.
    pub fn verify(mut self, verify: bool) -> Self {
        self.verify = verify;
        self
    }

    /// A sample rate in place of the one in the metadata.
    ///
    /// # Errors
    /// When it is not a finite number above 0.
    pub fn sample_rate(mut self, rate_hz: f64) -> Result<Self, Error> {
        check::positive("sample_rate", rate_hz)?;
        self.sample_rate_hz = Some(rate_hz);
        Ok(self)
    }
}

impl Operator for SigmfSource {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        let (meta_path, data_path) = meta::paths(&self.path)?;
        let meta = Meta::read(&meta_path)?;
        let rate_hz = meta.rate_hz(self.sample_rate_hz)?;
        let mut data = Data::open(data_path, meta.datatype()?)?;
        let marks = meta.marks(data.samples)?;
        if self.verify {
            data.verify(meta.sha512())?;
        }
        let pacer = Pacer::new(rate_hz, self.pace);
        let total = if self.repeat == 0 { u64::MAX } else { data.samples.saturating_mul(self.repeat) };
        if self.repeat > 0 {
            cx.set_length_ns(pacer.time_ns(total));
        }
        self.playing = Some(Playing { data, marks, rate_hz, pacer, total, sent: 0, at: 0, mark: 0 });
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(playing) = &mut self.playing else { return Ok(Step::Done) };
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        let end = playing.total.min(playing.sent.saturating_add(chunk.capacity() as u64));
        if let Some(wait) = playing.pacer.wait(cx, playing.sent, end) {
            return Ok(wait);
        }
        chunk.truncate((end - playing.sent) as usize);
        playing.fill(&mut chunk)?;
        self.out.push(cx, chunk)?;
        Ok(if playing.sent == playing.total { Step::Done } else { Step::Again })
    }
}

impl Playing {
    /// Fills a chunk with the next samples and their tags.
    fn fill(&mut self, chunk: &mut Chunk<Complex<f32>>) -> Result<(), Error> {
        let (mut filled, count) = (0, chunk.len());
        chunk.info_mut().start = self.sent;
        chunk.info_mut().rate_hz = self.rate_hz;
        while filled < count {
            let piece = (self.data.samples - self.at).min((count - filled) as u64);
            let end = filled + piece as usize;
            let samples = chunk.edit_unique().expect("a new chunk is not shared");
            self.data.read(&mut samples[filled..end])?;
            while let Some(mark) = self.marks.get(self.mark).filter(|mark| mark.sample < self.at + piece) {
                let offset = filled + (mark.sample - self.at) as usize;
                let (key, value) = (mark.key.clone(), mark.value.clone());
                chunk.info_mut().tags.push(Tag { offset, key, value });
                self.mark += 1;
            }
            (filled, self.at) = (end, self.at + piece);
            if self.at == self.data.samples {
                self.data.rewind()?;
                (self.at, self.mark) = (0, 0);
            }
        }
        self.sent += count as u64;
        Ok(())
    }
}

/// A SigMF recording to play.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The recording: its `.sigmf-meta` or `.sigmf-data`, or what both names have in common.
    path: PathBuf,
    /// `real`: a chunk comes when its last sample is due. `fast`: as soon as there is room.
    #[serde(default = "real")]
    pace: Pace,
    /// How often it is played; 0 is without end.
    #[serde(default = "once")]
    repeat: u64,
    /// Compare the data with the checksum in the metadata before the run begins.
    #[serde(default = "yes")]
    verify: bool,
    /// Samples per second, in place of what the metadata say.
    #[serde(default)]
    sample_rate: Option<Hertz>,
}

fn real() -> Pace {
    Pace::Real
}

fn once() -> u64 {
    1
}

fn yes() -> bool {
    true
}

pub(crate) fn kind() -> Kind {
    let make = |p: &Parameters, folders: &Folders| {
        let source = SigmfSource::new(folders.input(&p.path)).pace(p.pace).repeat(p.repeat).verify(p.verify);
        match p.sample_rate {
            Some(Hertz(rate_hz)) => source.sample_rate(rate_hz),
            None => Ok(source),
        }
    };
    Kind::new("sigmf.source", "plays a SigMF recording", "path = \"fm.sigmf-meta\"", make)
}
