//! Headerless files of raw samples, as many radios write them.

use crate::check;
use crate::flush_timer::FlushTimer;
use crate::format::{
    Channels, FileLayout, FileSample, NamedRecording, Playing, SampleFile, SampleFormat, SampleWriter,
    first_text, once, real,
};
use crate::lanes::{channel_inputs, channel_outputs, one_or_all, show_inputs, show_outputs};
use crate::note;
use num_complex::Complex;
use onbeat_runtime::{
    Aligned, Chunk, Context, Ending, Error, Folders, Hertz, Input, Kind, Operator, Output, Pace, Ports, Rate,
    Registry, Step,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Rejects a format of the other sample type. `kind` is the operator's name for complex samples.
pub(crate) fn check_kind<T: FileSample>(format: SampleFormat, kind: &str) -> Result<(), Error> {
    if format.parts() == T::PARTS {
        return Ok(());
    }
    let (are, other) = if T::PARTS == 2 { ("real", ".real") } else { ("complex", "") };
    Err(Error::new(format!(
        "`format` is {}: its samples are {are}; use `{kind}{other}`, or the format {}",
        format.name(),
        format.other_kind().name()
    )))
}

/// Plays a headerless file of samples in a [`SampleFormat`].
///
/// Several channels are interleaved sample by sample. Samples that are not finite are sent unchanged; a note
/// gives their number at the end.
pub struct IqSource<T: FileSample> {
    /// Samples of the only channel played.
    pub out: Output<Chunk<T>>,
    /// With several channels, one output each: `out0`, `out1`, ... instead of `out`.
    pub outputs: Vec<Output<Chunk<T>>>,
    path: PathBuf,
    format: SampleFormat,
    rate_hz: f64,
    playing: Playing<T>,
    offset: u64,
    count: Option<u64>,
    channels: Channels,
}

impl<T: FileSample> IqSource<T> {
    /// Plays a whole file once, in real time.
    ///
    /// # Errors
    /// When the format is of the other sample type, or the rate is not a finite number above 0.
    pub fn new(path: impl Into<PathBuf>, format: SampleFormat, rate_hz: f64) -> Result<Self, Error> {
        check_kind::<T>(format, "iq.source")?;
        check::positive("sample_rate", rate_hz)?;
        Ok(IqSource {
            out: Output::default(),
            outputs: Vec::new(),
            path: path.into(),
            format,
            rate_hz,
            playing: Playing::once(Pace::Real),
            offset: 0,
            count: None,
            channels: Channels { count: Some(1), chosen: None },
        })
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

    /// Plays `count` samples from sample `offset` on; `None` plays all that follow.
    pub fn part(mut self, offset: u64, count: Option<u64>) -> Self {
        self.offset = offset;
        self.count = count;
        self
    }

    /// Sets the number of channels in the file, and which of them to play, counted from 0; `None` plays all.
    ///
    /// # Errors
    /// When there are no channels, or more than 64 to play.
    pub fn channels(mut self, channels: u64, channel: Option<u64>) -> Result<Self, Error> {
        self.channels = Channels { count: Some(channels), chosen: channel };
        self.outputs = channel_outputs(self.channels.lanes())?;
        Ok(self)
    }
}

impl<T: FileSample> IqSource<T> {
    fn open(&self) -> Result<SampleFile, Error> {
        let channels = self.channels.count.unwrap_or(1);
        let layout = FileLayout::choose(self.format.coding(), T::PARTS, channels, self.channels)
            .map_err(|error| Error::new(format!("{}: {error}", self.path.display())))?;
        SampleFile::open(self.path.clone(), self.format.name(), layout, self.offset, self.count)
    }
}

impl<T: FileSample> Operator for IqSource<T> {
    fn ports(&mut self, p: &mut Ports) {
        show_outputs(p, &mut self.out, &mut self.outputs);
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.odd().into_iter().try_for_each(|text| cx.note_odd(text))?;
        let file = self.open()?;
        self.playing.start(self.playing.player(file, Vec::new(), self.rate_hz), cx)
    }

    fn check(&self) -> Result<(), Error> {
        self.open().map(drop)
    }

    fn odd(&self) -> Vec<String> {
        let mut odd = NamedRecording::of(&self.path).contradicts(self.format, self.rate_hz);
        odd.extend(first_text(&self.path).map(|line| {
            format!(
                "{} begins with the text `{line}`: is it a page saved under the name of a recording?",
                self.path.display()
            )
        }));
        odd
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        self.playing.step(one_or_all(&mut self.out, &mut self.outputs), cx)
    }

    fn rate(&self, pace: Option<Pace>) -> Option<Rate> {
        self.playing.rate(pace, self.rate_hz, None)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.playing.stop(cx, ending);
        Ok(())
    }
}

/// Writes samples to a headerless file in a [`SampleFormat`], several channels interleaved sample by sample.
///
/// The file is called "NAME.part" until it is complete. If the run fails, that file is left with the data so
/// far; if the process is killed, with the data up to the last second. All channels must have the same
/// sample rate; the file ends with the shortest. Sample rate, tags and shapes are not written. If no chunk
/// arrives, no file is created.
pub struct IqSink<T: FileSample> {
    /// Samples of the only channel.
    pub input: Input<Chunk<T>>,
    /// With several channels, one input each: `in0`, `in1`, ... instead of `in`.
    pub inputs: Vec<Input<Chunk<T>>>,
    streams: Aligned<T>,
    path: PathBuf,
    format: SampleFormat,
    writer: Option<SampleWriter>,
    flush: FlushTimer,
}

impl<T: FileSample> IqSink<T> {
    /// Writes a file.
    ///
    /// # Errors
    /// When the format is of the other sample type.
    pub fn new(path: impl Into<PathBuf>, format: SampleFormat) -> Result<Self, Error> {
        check_kind::<T>(format, "iq.sink")?;
        Ok(IqSink {
            input: Input::default(),
            inputs: Vec::new(),
            streams: Aligned::new(1),
            path: path.into(),
            format,
            writer: None,
            flush: FlushTimer::default(),
        })
    }

    /// Sets the number of channels to write.
    ///
    /// # Errors
    /// When it is not from 1 to 64.
    pub fn channels(mut self, channels: u64) -> Result<Self, Error> {
        self.inputs = channel_inputs(channels)?;
        self.streams = Aligned::new(channels as usize);
        Ok(self)
    }
}

impl<T: FileSample> Operator for IqSink<T> {
    fn ports(&mut self, p: &mut Ports) {
        show_inputs(p, &mut self.input, &mut self.inputs);
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.writer = Some(SampleWriter::create(&self.path, self.format.coding(), false)?);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(writer) = &mut self.writer else { return Ok(Step::Done) };
        if self.flush.is_due() {
            writer.flush()?;
        }
        let inputs = one_or_all(&mut self.input, &mut self.inputs);
        let Some(count) = self.streams.take(inputs, cx)? else {
            let wait = self.streams.wait(inputs, cx);
            return Ok(self.flush.wait(writer.is_buffered(), wait, cx));
        };
        self.streams.frames(count, |samples| writer.write(samples))?;
        self.streams.consume(count);
        Ok(self.flush.wait(writer.is_buffered(), self.streams.rest(), cx))
    }

    fn restartable(&self) -> Result<(), Error> {
        crate::part::not_restartable()
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        if ending == Ending::Failed {
            writer.keep(cx);
            return Ok(());
        }
        if writer.samples == 0 {
            note::nothing_came(cx, &self.path);
            return Ok(());
        }
        writer.sum_up(cx);
        writer.finish(cx)
    }
}

/// A file of samples to play.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct IqSourceParameters {
    /// The file to play.
    path: PathBuf,
    /// Sample format: `c` (complex) or `r` (real); then `u8`, `u16`, `u32` (unsigned), `i8`, `i16`, `i32`
    /// (signed),
    /// `f32` or `f64` (floating point); from 16 bits on, `_le` (low byte first) or `_be`. Example: `ci16_le`.
    /// Required; if it is missing, the error shows what the name of the file says.
    #[serde(default)]
    format: Option<SampleFormat>,
    /// Samples per second. Required; if it is missing, the error shows what the name of the file says.
    #[serde(default)]
    sample_rate: Option<Hertz>,
    /// `real`: a chunk is sent when its last sample is due. `fast`: as soon as there is room.
    #[serde(default = "real")]
    pace: Pace,
    /// How many times to play the file; 0 repeats it without end.
    #[serde(default = "once")]
    repeat: u64,
    /// Samples to skip at the start.
    #[serde(default)]
    offset: u64,
    /// Samples to play after `offset`; without it, all.
    #[serde(default)]
    count: Option<u64>,
    /// Interleaved channels in the file. If there are several and `channel` is not set, each is played at its
    /// own output: `out0`, `out1`, ...
    #[serde(default = "once")]
    channels: u64,
    /// The only channel to play, counted from 0.
    #[serde(default)]
    channel: Option<u64>,
}

/// Error for missing parameters, with the values that the name of the file proposes.
fn lacks(path: &Path, format: bool, sample_rate: bool) -> Error {
    let missing = [(format, "`format`"), (sample_rate, "`sample_rate`")];
    let missing: Vec<&str> = missing.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect();
    let proposed = NamedRecording::of(path).lines(format, sample_rate);
    let help = match proposed.is_empty() {
        true => "a file without a header does not say it: look at the recorder's settings".to_string(),
        false => format!("its name says: {}", proposed.join(", ")),
    };
    Error::new(format!("lacks {}, and `{}` has no header; {help}", missing.join(" and "), path.display()))
}

fn source<T: FileSample>(p: &IqSourceParameters, folders: &Folders) -> Result<IqSource<T>, Error> {
    let (Some(format), Some(Hertz(rate_hz))) = (p.format, p.sample_rate) else {
        return Err(lacks(&p.path, p.format.is_none(), p.sample_rate.is_none()));
    };
    IqSource::new(folders.input(&p.path), format, rate_hz)?
        .pace(p.pace)
        .repeat(p.repeat)
        .part(p.offset, p.count)
        .channels(p.channels, p.channel)
}

/// A file of samples to write.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct IqSinkParameters {
    /// The file to write; missing folders are created.
    path: PathBuf,
    /// Sample format: `c` (complex) or `r` (real); then `u8`, `u16`, `u32` (unsigned), `i8`, `i16`, `i32`
    /// (signed),
    /// `f32` or `f64` (floating point); from 16 bits on, `_le` (low byte first) or `_be`. Example: `ci16_le`.
    format: SampleFormat,
    /// Interleaved channels. If there are several, each has its own input: `in0`, `in1`, ...
    #[serde(default = "once")]
    channels: u64,
}

fn sink<T: FileSample>(p: &IqSinkParameters, folders: &Folders) -> Result<IqSink<T>, Error> {
    IqSink::new(folders.output(&p.path), p.format)?.channels(p.channels)
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let text = "plays a headerless file of raw samples";
    let complex = "path = \"radio.cu8\"\nformat = \"cu8\"\nsample_rate = \"2.4 MHz\"";
    let plain = "path = \"voltage.i16\"\nformat = \"ri16_le\"\nsample_rate = \"96 kHz\"";
    registry.add(
        Kind::new("iq.source", text, complex, source::<Complex<f32>>).about(include_str!("about/samples.md")),
    );
    registry.add(Kind::new("iq.source.real", text, plain, source::<f32>));
    let text = "writes a headerless file of raw samples";
    registry.add(
        Kind::new("iq.sink", text, "path = \"radio.cf32\"\nformat = \"cf32_le\"", sink::<Complex<f32>>)
            .about(include_str!("about/samples.md")),
    );
    registry.add(Kind::new(
        "iq.sink.real",
        text,
        "path = \"voltage.f32\"\nformat = \"rf32_le\"",
        sink::<f32>,
    ));
}
