//! Plays WAV files.

use crate::format::{Channels, Coding, FileLayout, Number, Playing, SampleFile, once, open, real};
use crate::lanes::{channel_outputs, one_or_all, show_outputs};
use hound::{SampleFormat, WavReader};
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Folders, Kind, Operator, Output, Pace, Ports, Rate, Step,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// Plays one or all channels of a WAV file at the file's sample rate.
///
/// Integers of 8, 16, 24 and 32 bits are scaled so that full scale is 1; samples of 32-bit floating point are
/// unchanged. (16-bit samples written by [`WavSink`](crate::WavSink) therefore come back smaller by one part
/// in 32768.) Samples that are not finite are sent unchanged; a note gives their number at the end. There are
/// no tags.
pub struct WavSource {
    /// Samples of the only channel played.
    pub out: Output<Chunk<f32>>,
    /// When all channels are played, one output each: `out0`, `out1`, ... instead of `out`.
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

    /// Selects the only channel to play, counted from 0.
    pub fn channel(mut self, channel: u64) -> Self {
        self.channels.chosen = Some(channel);
        self.outputs.clear();
        self
    }

    /// Sets the number of channels in the file. All are played unless one is selected.
    ///
    /// # Errors
    /// When there are no channels, or more than 64 to play.
    pub fn channels(mut self, channels: u64) -> Result<Self, Error> {
        self.channels.count = Some(channels);
        self.outputs = channel_outputs(self.channels.lanes())?;
        Ok(self)
    }

    /// Sets the pace; the run's own setting takes precedence.
    pub fn pace(mut self, pace: Pace) -> Self {
        self.playing.pace = pace;
        self
    }

    /// Sets how many times the file is played; 0 repeats it without end. There is no gap between two passes.
    pub fn repeat(mut self, times: u64) -> Self {
        self.playing.repeat = times;
        self
    }

    /// Reads the header. Returns the samples and their rate in hertz.
    fn open(&self) -> Result<(SampleFile, f64), Error> {
        let wrong = |text: String| Error::new(format!("{}: {text}", self.path.display()));
        let broken = |error: &dyn std::fmt::Display| wrong(format!("its WAV header cannot be read: {error}"));
        let (file, bytes, used) = open(&self.path)?;
        let reader = WavReader::new(BufReader::new(file)).map_err(|error| match error {
            hound::Error::Unsupported => wrong(
                "its samples are compressed or of an unsupported type: supported are integers of 8, 16, 24 \
                 and 32 bits and floating point of 32 bits"
                    .into(),
            ),
            error => broken(&error),
        })?;
        let (spec, numbers) = (reader.spec(), u64::from(reader.len()));
        let mut file = reader.into_inner();
        // The four bytes before the samples hold their length.
        let mut length = [0; 4];
        let begin = file
            .seek(SeekFrom::Current(-4))
            .and_then(|_| file.read_exact(&mut length))
            .and_then(|()| file.stream_position())
            .map_err(|error| broken(&error))?;
        let length = u64::from(u32::from_le_bytes(length));
        if numbers == 0 {
            return Err(wrong("its header says that it has no samples".into()));
        }
        if length > bytes.saturating_sub(begin) {
            return Err(wrong(format!(
                "its header announces {length} bytes of samples, but the file has {}: it is truncated or \
                 unfinished; write it again, for example with `sox --ignore-length`",
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
                let format = if format == SampleFormat::Int { "integers" } else { "floating point" };
                return Err(wrong(format!(
                    "its samples are {format} of {bits} bits in {size} bytes, which is not supported: \
                     supported are integers of 8, 16, 24 and 32 bits and floating point of 32 bits"
                )));
            }
        };
        let channels = u64::from(spec.channels);
        let layout = FileLayout::choose(coding, 1, channels, self.channels)
            .map_err(|error| wrong(error.to_string()))?;
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
struct WavSourceParameters {
    /// The file to play.
    path: PathBuf,
    /// The only channel to play, counted from 0.
    #[serde(default)]
    channel: Option<u64>,
    /// Number of channels in the file. If there are several and `channel` is not set, each is played at its
    /// own output: `out0`, `out1`, ...
    #[serde(default)]
    channels: Option<u64>,
    /// `real`: a chunk is sent when its last sample is due. `fast`: as soon as there is room.
    #[serde(default = "real")]
    pace: Pace,
    /// How many times to play the file; 0 repeats it without end.
    #[serde(default = "once")]
    repeat: u64,
}

pub(crate) fn kind() -> Kind {
    Kind::new(
        "wav.source",
        "plays a WAV file",
        "path = \"audio.wav\"",
        |p: &WavSourceParameters, folders: &Folders| {
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
