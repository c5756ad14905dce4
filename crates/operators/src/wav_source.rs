//! Plays WAV files.

use crate::check;
use crate::format::{
    Channels, FileLayout, FileMark, FileSample, OpenSource, PipeHeader, Playing, SampleFile, is_pipe, once,
    open_source, real,
};
use crate::lanes::{channel_outputs, one_or_all, show_outputs};
use crate::wav_header::{RadioChunk, WavHeader};
use num_complex::Complex;
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Folders, Hertz, Kind, Operator, Output, Pace, Ports, Rate, Registry, Step,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

/// Plays one or all channels of a WAV file at the file's sample rate.
///
/// RIFF, RIFX, RF64 and BW64 files play, regular ones and pipes, with integers of 8 to 32 bits, A-law and
/// µ-law, scaled so that full scale is 1, and with floating point of 16, 32 and 64 bits, unchanged. (16-bit
/// samples written by [`WavSink`](crate::WavSink) therefore come back smaller by one part in 32768.) If the
/// header does not say how long the file is, or says more than there is, it is played to its end; a note says
/// so, and `strict` refuses it. Samples that are not finite are sent unchanged; a note gives their number at
/// the end.
///
/// A source of complex samples takes two channels as in-phase and quadrature, as radio programs write them.
/// The centre frequency and the time in their chunk `auxi` become tags `core:frequency` and `core:datetime`.
pub struct WavSource<T: FileSample = f32> {
    /// Samples of the only channel played.
    pub out: Output<Chunk<T>>,
    /// When all channels are played, one output each: `out0`, `out1`, ... instead of `out`.
    pub outputs: Vec<Output<Chunk<T>>>,
    path: PathBuf,
    channels: Channels,
    sample_rate_hz: Option<f64>,
    playing: Playing<T>,
}

impl WavSource {
    /// Plays a file of one channel once, in real time.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self::any(path)
    }
}

impl WavSource<Complex<f32>> {
    /// Plays two channels as complex samples once, in real time.
    pub fn complex(path: impl Into<PathBuf>) -> Self {
        Self::any(path)
    }
}

impl<T: FileSample> WavSource<T> {
    fn any(path: impl Into<PathBuf>) -> Self {
        WavSource {
            out: Output::default(),
            outputs: Vec::new(),
            path: path.into(),
            channels: Channels::default(),
            sample_rate_hz: None,
            playing: Playing::once(Pace::Real),
        }
    }

    /// Selects the only channel to play, counted from 0. A channel of complex samples is a pair of the
    /// file's.
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

    /// Sets a sample rate to use instead of the one in the header; a note says if they differ.
    ///
    /// # Errors
    /// When it is not a finite number above 0.
    pub fn sample_rate(mut self, rate_hz: f64) -> Result<Self, Error> {
        check::positive("sample_rate", rate_hz)?;
        self.sample_rate_hz = Some(rate_hz);
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

    fn wrong(&self, text: impl std::fmt::Display) -> Error {
        Error::new(format!("{}: {text}", self.path.display()))
    }

    /// Reads the header.
    fn open(&self) -> Result<ReadWav, Error> {
        let source = open_source(&self.path)?;
        let header = match source.bytes {
            Some(bytes) => WavHeader::read(&mut BufReader::new(&source.file), Some(bytes)),
            None => WavHeader::read(&mut PipeHeader::new(&source.file), None),
        };
        let header = header.map_err(|text| self.wrong(text))?;
        let rate_hz = self.sample_rate_hz.unwrap_or(f64::from(header.rate_hz));
        if rate_hz == 0.0 {
            return Err(self.wrong("its sample rate is 0 Hz: set `sample_rate`"));
        }
        Ok(ReadWav { source, header, rate_hz })
    }

    /// Opens the file, with its marks and its rate. Returns notes, and what is odd in it, too.
    fn open_samples(&self) -> Result<WavSamples, Error> {
        let ReadWav { source, header, rate_hz } = self.open()?;
        let parts = T::PARTS as u64;
        if !header.channels.is_multiple_of(parts) {
            return Err(self.wrong(format!(
                "it has {} channels, and complex samples need two each: play it with `wav.source`",
                header.channels
            )));
        }
        let (coding, channels) = (header.coding, header.channels / parts);
        let layout = FileLayout::choose(coding, T::PARTS, channels, self.channels).map_err(|error| {
            let pair = if T::PARTS == 1 && channels == 2 {
                "; if they are in-phase and quadrature of a radio, play it with `wav.source.complex`"
            } else {
                ""
            };
            self.wrong(format!("{error}{pair}"))
        })?;
        let note = (f64::from(header.rate_hz) != rate_hz && header.rate_hz != 0).then(|| {
            let text = format!("`sample_rate` is {rate_hz} Hz, and its header says {} Hz", header.rate_hz);
            format!("{}: {text}: the header is ignored", self.path.display())
        });
        let OpenSource { file, bytes, used } = source;
        let Some(bytes) = bytes else {
            let length = header.length.unwrap_or(u64::MAX);
            let file = SampleFile::pipe(file, used, self.path.clone(), layout, length)?;
            return Ok(WavSamples { file, marks: marks(header.radio), rate_hz, note, odd: None });
        };
        let (length, odd) = length(&header, bytes, layout.frame_bytes() as u64);
        let samples = length / layout.frame_bytes() as u64;
        if samples == 0 {
            return Err(self.wrong("it has no samples: there is nothing to play"));
        }
        let marks = marks(radio(&file, &header, length));
        let file = SampleFile::at(file, used, self.path.clone(), layout, header.begin, samples)?;
        let odd = odd.map(|odd| format!("{}: {odd}", self.path.display()));
        Ok(WavSamples { file, marks, rate_hz, note, odd })
    }
}

/// An open file, with notes for the run.
struct WavSamples {
    file: SampleFile,
    marks: Vec<FileMark>,
    rate_hz: f64,
    note: Option<String>,
    odd: Option<String>,
}

/// A file whose header was read.
struct ReadWav {
    source: OpenSource,
    header: WavHeader,
    rate_hz: f64,
}

/// Bytes of samples to play, and what is odd about them.
fn length(header: &WavHeader, bytes: u64, frame: u64) -> (u64, Option<String>) {
    let there = bytes.saturating_sub(header.begin);
    let (length, odd) = match header.length {
        Some(length) if length <= there => (length, None),
        Some(length) => {
            let text = format!(
                "its header announces {length} bytes of samples, and the file has {there}: it was cut off; it is played \
                 to its end"
            );
            (there, Some(text))
        }
        None => {
            let text = "its header does not say how long it is: it is played to its end".to_string();
            (there, Some(text))
        }
    };
    let beyond = length % frame;
    let cut = (beyond > 0 && odd.is_none())
        .then(|| format!("the last {beyond} bytes of its samples are not a whole frame, and are not played"));
    (length, odd.or(cut))
}

/// The chunk of radio programs may be behind the samples, too.
fn radio(file: &File, header: &WavHeader, length: u64) -> RadioChunk {
    if header.radio != RadioChunk::default() {
        return header.radio.clone();
    }
    let after = RadioChunk::after(&mut BufReader::new(file), header.begin + length + length % 2);
    after.unwrap_or_default()
}

fn marks(radio: RadioChunk) -> Vec<FileMark> {
    let mark = |key: &str, value| FileMark { sample: 0, channel: None, key: key.into(), value };
    let frequency =
        (radio.frequency_hz > 0).then(|| mark("core:frequency", f64::from(radio.frequency_hz).into()));
    let datetime = radio.datetime.map(|text| mark("core:datetime", text.as_str().into()));
    frequency.into_iter().chain(datetime).collect()
}

impl<T: FileSample> Operator for WavSource<T> {
    fn ports(&mut self, p: &mut Ports) {
        show_outputs(p, &mut self.out, &mut self.outputs);
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        let WavSamples { file, marks, rate_hz, note, odd } = self.open_samples()?;
        note.into_iter().for_each(|note| cx.note(note));
        odd.map_or(Ok(()), |odd| cx.note_odd(odd))?;
        self.playing.start(self.playing.player(file, marks, rate_hz), cx)
    }

    fn check(&self) -> Result<(), Error> {
        if is_pipe(&self.path) { Ok(()) } else { self.open_samples().map(drop) }
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        self.playing.step(one_or_all(&mut self.out, &mut self.outputs), cx)
    }

    fn rate(&self, pace: Option<Pace>) -> Option<Rate> {
        // The header of a pipe can be read only once.
        let rate_hz = if is_pipe(&self.path) { self.sample_rate_hz? } else { self.open().ok()?.rate_hz };
        self.playing.rate(pace, rate_hz, None)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.playing.stop(cx, ending);
        Ok(())
    }
}

/// A WAV file to play.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WavSourceParameters {
    /// The file to play. It can be a pipe.
    path: PathBuf,
    /// The only channel to play, counted from 0.
    #[serde(default)]
    channel: Option<u64>,
    /// Number of channels in the file. If there are several and `channel` is not set, each is played at its
    /// own output: `out0`, `out1`, ... A channel of complex samples is a pair of the file's.
    #[serde(default)]
    channels: Option<u64>,
    /// Samples per second, overriding the header.
    #[serde(default)]
    sample_rate: Option<Hertz>,
    /// `real`: a chunk is sent when its last sample is due. `fast`: as soon as there is room.
    #[serde(default = "real")]
    pace: Pace,
    /// How many times to play the file; 0 repeats it without end.
    #[serde(default = "once")]
    repeat: u64,
}

fn source<T: FileSample>(p: &WavSourceParameters, folders: &Folders) -> Result<WavSource<T>, Error> {
    let mut source = WavSource::any(folders.input(&p.path)).pace(p.pace).repeat(p.repeat);
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

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(
        Kind::new("wav.source", "plays a WAV file", "path = \"audio.wav\"", source::<f32>)
            .about(include_str!("about/samples.md")),
    );
    registry.add(Kind::new(
        "wav.source.complex",
        "plays two channels of a WAV file as complex samples: the recording of a radio",
        "path = \"radio.wav\"",
        source::<Complex<f32>>,
    ));
}
