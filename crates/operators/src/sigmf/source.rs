//! Plays SigMF recordings.

use super::place::{open_data, read_meta};
use crate::check;
use crate::format::{Channels, FileLayout, FileSample, Player, Playing, SampleFile, once, real};
use crate::lanes::{channel_outputs, one_or_all, show_outputs};
use num_complex::Complex;
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Folders, Hertz, Kind, Operator, Output, Pace, Ports, Rate, Registry, Step,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Plays one or all channels of a SigMF recording, whose datatype is a [`SampleFormat`](crate::SampleFormat).
///
/// An annotation becomes tags on its first sample. The first tag has the key `core:label` and the label as
/// its value, or without a label `annotation` and the comment. Further fields follow as tags `core:comment`,
/// `duration_s` (in seconds), `core:freq_lower_edge`, `core:freq_upper_edge`, `core:generator` and
/// `core:uuid`. The frequency of a capture becomes a tag `core:frequency`, its time a tag `core:datetime`.
/// Samples that are not finite are sent unchanged; a note gives their number at the end. When all channels
/// are played, each has all tags, except tags of one channel (`onbeat:channel`), which only that channel has.
pub struct SigmfSource<T: FileSample = Complex<f32>> {
    /// Samples of the only channel played.
    pub out: Output<Chunk<T>>,
    /// When all channels are played, one output each: `out0`, `out1`, ... instead of `out`.
    pub outputs: Vec<Output<Chunk<T>>>,
    path: PathBuf,
    playing: Playing<T>,
    verify: bool,
    sample_rate_hz: Option<f64>,
    channels: Channels,
}

impl SigmfSource {
    /// Plays a recording of complex samples once, in real time. The path is that of the `.sigmf-meta` or the
    /// `.sigmf-data`, their common part, or that of a `.sigmf` archive.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self::any(path)
    }
}

impl SigmfSource<f32> {
    /// Plays a recording of real samples, otherwise like [`SigmfSource::new`].
    pub fn real(path: impl Into<PathBuf>) -> Self {
        Self::any(path)
    }
}

impl<T: FileSample> SigmfSource<T> {
    fn any(path: impl Into<PathBuf>) -> Self {
        SigmfSource {
            out: Output::default(),
            outputs: Vec::new(),
            path: path.into(),
            playing: Playing::once(Pace::Real),
            verify: true,
            sample_rate_hz: None,
            channels: Channels::default(),
        }
    }

    /// Sets the pace; the run's own setting takes precedence.
    pub fn pace(mut self, pace: Pace) -> Self {
        self.playing.pace = pace;
        self
    }

    /// Sets how many times the recording is played; 0 repeats it without end. There is no gap between two
    /// passes.
    pub fn repeat(mut self, times: u64) -> Self {
        self.playing.repeat = times;
        self
    }

    /// Sets whether the data are compared with the checksum, if the metadata have one. This reads the data
    /// once more, before the run begins.
    pub fn verify(mut self, verify: bool) -> Self {
        self.verify = verify;
        self
    }

    /// Selects the only channel to play, counted from 0.
    pub fn channel(mut self, channel: u64) -> Self {
        self.channels.chosen = Some(channel);
        self.outputs.clear();
        self
    }

    /// Sets the number of channels of the recording. All are played unless one is selected.
    ///
    /// # Errors
    /// When there are no channels, or more than 64 to play.
    pub fn channels(mut self, channels: u64) -> Result<Self, Error> {
        self.channels.count = Some(channels);
        self.outputs = channel_outputs(self.channels.lanes())?;
        Ok(self)
    }

    /// Sets a sample rate to use instead of the one in the metadata.
    ///
    /// # Errors
    /// When it is not a finite number above 0.
    pub fn sample_rate(mut self, rate_hz: f64) -> Result<Self, Error> {
        check::positive("sample_rate", rate_hz)?;
        self.sample_rate_hz = Some(rate_hz);
        Ok(self)
    }

    /// Opens the recording. Returns what is odd in it, too.
    fn open(&self) -> Result<(Player<T>, Vec<String>), Error> {
        let mut meta = read_meta(&self.path)?;
        let rate_hz = meta.rate_hz(self.sample_rate_hz)?;
        let format = meta.format::<T>()?;
        let layout = FileLayout::choose(format.coding(), T::PARTS, meta.channels(), self.channels)
            .map_err(|error| meta.error(format!("`core:num_channels`: {error}")))?;
        let data = open_data(&self.path, &meta)?;
        let pieces = meta.pieces(data.bytes.clone(), layout.frame_bytes() as u64)?;
        let mut file = SampleFile::pieces(data.file, data.used, data.path, layout, pieces);
        let marks = meta.marks(file.samples, rate_hz)?;
        if self.verify {
            file.verify(meta.sha512(), data.bytes)?;
        }
        Ok((self.playing.player(file, marks, rate_hz), meta.take_odd()))
    }
}

impl<T: FileSample> Operator for SigmfSource<T> {
    fn ports(&mut self, p: &mut Ports) {
        show_outputs(p, &mut self.out, &mut self.outputs);
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        let (player, odd) = self.open()?;
        for text in odd {
            cx.note_odd(text)?;
        }
        self.playing.start(player, cx)
    }

    fn check(&self) -> Result<(), Error> {
        self.open().map(drop)
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        self.playing.step(one_or_all(&mut self.out, &mut self.outputs), cx)
    }

    fn rate(&self, pace: Option<Pace>) -> Option<Rate> {
        let rate_hz = read_meta(&self.path).ok()?.rate_hz(self.sample_rate_hz).ok()?;
        self.playing.rate(pace, rate_hz, None)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.playing.stop(cx, ending);
        Ok(())
    }
}

/// A SigMF recording to play.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SigmfSourceParameters {
    /// The recording: its `.sigmf-meta` or `.sigmf-data` file, the common part of both names, or a `.sigmf`
    /// archive.
    path: PathBuf,
    /// `real`: a chunk is sent when its last sample is due. `fast`: as soon as there is room.
    #[serde(default = "real")]
    pace: Pace,
    /// How many times to play the recording; 0 repeats it without end.
    #[serde(default = "once")]
    repeat: u64,
    /// Compare the data with the checksum in the metadata before the run begins.
    #[serde(default = "yes")]
    verify: bool,
    /// Samples per second, overriding the metadata.
    #[serde(default)]
    sample_rate: Option<Hertz>,
    /// The only channel to play, counted from 0.
    #[serde(default)]
    channel: Option<u64>,
    /// Number of channels in the recording. If there are several and `channel` is not set, each is played at
    /// its own output: `out0`, `out1`, ...
    #[serde(default)]
    channels: Option<u64>,
}

fn yes() -> bool {
    true
}

fn source<T: FileSample>(p: &SigmfSourceParameters, folders: &Folders) -> Result<SigmfSource<T>, Error> {
    let mut source = SigmfSource::any(folders.input(&p.path)).pace(p.pace).repeat(p.repeat).verify(p.verify);
    if let Some(channel) = p.channel {
        source = source.channel(channel);
    }
    if let Some(channels) = p.channels {
        source = source.channels(channels)?;
    }
    match p.sample_rate {
        Some(Hertz(rate_hz)) => source.sample_rate(rate_hz),
        None => Ok(source),
    }
}

pub(super) fn add_kinds(registry: &mut Registry) {
    let (text, example) = ("plays a SigMF recording", "path = \"fm.sigmf-meta\"");
    registry.add(
        Kind::new("sigmf.source", text, example, source::<Complex<f32>>)
            .about(include_str!("../about/samples.md")),
    );
    registry.add(Kind::new("sigmf.source.real", text, example, source::<f32>));
}
