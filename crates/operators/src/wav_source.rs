//! WAV files to play.

use crate::format::{Channels, Coding, Layout, Number, Playing, SampleFile, once, open, real};
use crate::lanes::{channel_outputs, one_or_all, show_outputs};
use hound::{SampleFormat, WavReader};
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Folders, Kind, Operator, Output, Pace, Ports, Rate, Step,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// Plays a WAV file, one of its channels or all, at the sample rate in it.
///
/// Whole numbers of 8, 16, 24 and 32 bits become samples of which full scale is 1 (so what
/// [`WavSink`](crate::WavSink) writes as 16 bits comes back smaller by one part in 32768), floating point of
/// 32 bits stays as it is. Samples that are not finite are sent as they are, counted, and noted at the end.
/// There are no tags.
pub struct WavSource {
    /// The samples of the only channel that is played.
    pub out: Output<Chunk<f32>>,
    /// Where all are, the samples of each: `out0`, `out1`, ... in place of `out`.
    pub outputs: Vec<Output<Chunk<f32>>>,
    path: PathBuf,
    channels: Channels,
    playing: Playing<f32>,
}

impl WavSource {
    /// Plays a file of one channel once, in real time.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        WavSource {
            out: Output::default(),
            outputs: Vec::new(),
            path: path.into(),
            channels: Channels::default(),
            playing: Playing::once(Pace::Real),
        }
    }

    /// The only channel to play, from 0.
    pub fn channel(mut self, channel: u64) -> Self {
        self.channels.chosen = Some(channel);
        self.outputs.clear();
        self
    }

    /// How many channels the file has; unless one is chosen, all are played.
    ///
    /// # Errors
    /// When there are none, or more than 64 to play.
    pub fn channels(mut self, channels: u64) -> Result<Self, Error> {
        self.channels.count = Some(channels);
        self.outputs = channel_outputs(self.channels.lanes())?;
        Ok(self)
    }

    /// How it keeps time, unless the run says otherwise.
    pub fn pace(mut self, pace: Pace) -> Self {
        self.playing.pace = pace;
        self
    }

    /// How often it plays; 0 for without end. The stream has no seam.
    pub fn repeat(mut self, times: u64) -> Self {
        self.playing.repeat = times;
        self
    }

    /// Reads the header; gives the samples and their rate in hertz.
    fn open(&self) -> Result<(SampleFile, f64), Error> {
        let wrong = |text: String| Error::new(format!("{}: {text}", self.path.display()));
        let broken = |error: &dyn std::fmt::Display| wrong(format!("its header is no WAV header: {error}"));
        let (file, bytes, used) = open(&self.path)?;
        let reader = WavReader::new(BufReader::new(file)).map_err(|error| match error {
            hound::Error::Unsupported => wrong(
                "its samples are compressed, or of a type that is not supported: supported are whole numbers of 8, 16, \
                 24 and 32 bits and floating point of 32"
                    .into(),
            ),
            error => broken(&error),
        })?;
        let (spec, numbers) = (reader.spec(), u64::from(reader.len()));
        let mut file = reader.into_inner();
        // The length of the data stands before them.
        let mut length = [0; 4];
        let begin = file
            .seek(SeekFrom::Current(-4))
            .and_then(|_| file.read_exact(&mut length))
            .and_then(|()| file.stream_position())
            .map_err(|error| broken(&error))?;
        let length = u64::from(u32::from_le_bytes(length));
        if numbers == 0 {
            return Err(wrong("its header says that there are no samples".into()));
        }
        if length > bytes.saturating_sub(begin) {
            return Err(wrong(format!(
                "its header says that the samples have {length} bytes, and {} are there: it is truncated, or was not \
                 finished; write it anew, for example with `sox --ignore-length`",
                bytes.saturating_sub(begin)
            )));
        }
        if spec.sample_rate == 0 {
            return Err(wrong("its sample rate is 0 Hz: correct it".into()));
        }
        let whole = |number, full| Coding { number, zero: 0.0, full };
        let coding = match (spec.sample_format, length / numbers, spec.bits_per_sample) {
            (SampleFormat::Float, 4, 32) => Coding::F32,
            (SampleFormat::Int, 1, 1..=8) => Coding { number: Number::U8, zero: 128.0, full: 128.0 },
            (SampleFormat::Int, 2, 9..=16) => whole(Number::I16, 32768.0),
            (SampleFormat::Int, 3, 17..=24) => whole(Number::I24, 8_388_608.0),
            (SampleFormat::Int, 4, 25..=32) => whole(Number::I32, 2_147_483_648.0),
            (format, size, bits) => {
                let format = if format == SampleFormat::Int { "whole numbers" } else { "floating point" };
                return Err(wrong(format!(
                    "its samples are {format} of {bits} bits in {size} bytes, which is not supported: supported are whole \
                     numbers of 8, 16, 24 and 32 bits and floating point of 32"
                )));
            }
        };
        let channels = u64::from(spec.channels);
        let layout =
            Layout::choose(coding, 1, channels, self.channels).map_err(|error| wrong(error.to_string()))?;
        let file = file.into_inner();
        let file = SampleFile::at(file, used, self.path.clone(), layout, begin, numbers / channels)?;
        Ok((file, f64::from(spec.sample_rate)))
    }
}

impl Operator for WavSource {
    fn ports(&mut self, p: &mut Ports) {
        show_outputs(p, &mut self.out, &mut self.outputs);
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        let (file, rate_hz) = self.open()?;
        self.playing.start(self.playing.player(file, Vec::new(), rate_hz), cx);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        self.playing.step(one_or_all(&mut self.out, &mut self.outputs), cx)
    }

    fn rate(&self, pace: Option<Pace>) -> Option<Rate> {
        let (_, rate_hz) = self.open().ok()?;
        self.playing.rate(pace, rate_hz, None)
    }

    fn stop(&mut self, cx: &mut Context, _: Ending) -> Result<(), Error> {
        self.playing.stop(cx);
        Ok(())
    }
}

/// A WAV file to play.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The file.
    path: PathBuf,
    /// The only channel to play, from 0.
    #[serde(default)]
    channel: Option<u64>,
    /// How many channels there are. Where there are several and none is chosen, all are played: `out0`, `out1`, ...
    #[serde(default)]
    channels: Option<u64>,
    /// `real`: a chunk comes when its last sample is due. `fast`: as soon as there is room.
    #[serde(default = "real")]
    pace: Pace,
    /// How often it is played; 0 is without end.
    #[serde(default = "once")]
    repeat: u64,
}

pub(crate) fn kind() -> Kind {
    Kind::new(
        "wav.source",
        "plays a WAV file",
        "path = \"audio.wav\"",
        |p: &Parameters, folders: &Folders| {
            let mut source = WavSource::new(folders.input(&p.path)).pace(p.pace).repeat(p.repeat);
            if let Some(channel) = p.channel {
                source = source.channel(channel);
            }
            match p.channels {
                Some(channels) => source.channels(channels),
                None => Ok(source),
            }
        },
    )
}
