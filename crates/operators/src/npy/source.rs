//! Plays NumPy arrays.

use super::fortran;
use super::header::NpyHeader;
use crate::check;
use crate::format::{ArraySample, Coding, FileLayout, Number, Playing, SampleFile, once, open, real};
use num_complex::Complex;
use onbeat_runtime::{
    Chunk, Context, Ending, Error, FileUse, Folders, Hertz, Kind, Operator, Output, Pace, Ports, Rate,
    Registry, Step,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Seek;
use std::path::{Path, PathBuf};

/// Plays the array of an NPY file: samples if it has one axis, otherwise frames, each as one chunk with a
/// shape.
///
/// Numbers are not scaled: `|u1` 255 becomes 255.0. `f2`, `f4`, `f8`, `b1` and integers of 8, 16, 32 and 64
/// bits become real samples, `c8` and `c16` complex samples, in both byte orders, rounded to 32-bit floating
/// point. A source of bytes plays `|u1` and `|b1` as they are. An array in Fortran order is brought into time
/// order in memory before the run. Bytes after the array are noted, and not played.
/// Samples that are then not finite are sent unchanged; a note gives their number at the end. The sample rate
/// of a frame is that of its samples.
pub struct NpySource<T: ArraySample> {
    /// Samples or frames.
    pub out: Output<Chunk<T>>,
    path: PathBuf,
    rate_hz: f64,
    playing: Playing<T>,
}

/// Interpretation of an array's shape.
struct Frames {
    /// Number of frames; for an array with one axis, of samples.
    count: u64,
    /// Samples per frame, and the shape of a frame; none for an array with one axis.
    frame: Option<(u64, [u32; 3])>,
}

impl<T: ArraySample> NpySource<T> {
    /// Plays an array once, as fast as the consumer takes it.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        NpySource {
            out: Output::default(),
            path: path.into(),
            rate_hz: 0.0,
            playing: Playing::once(Pace::Fast),
        }
    }

    /// Sets the rate in frames per second; in samples per second if the array has one axis.
    ///
    /// # Errors
    /// When it is not a finite number above 0.
    pub fn rate(mut self, rate_hz: f64, pace: Pace) -> Result<Self, Error> {
        check::positive("rate", rate_hz)?;
        self.rate_hz = rate_hz;
        self.playing.pace = pace;
        Ok(self)
    }

    /// Sets how many times the array is played; 0 repeats it without end.
    pub fn repeat(mut self, times: u64) -> Self {
        self.playing.repeat = times;
        self
    }

    /// Reads the header, and compares it with the size of the file.
    fn open(&self) -> Result<OpenNpy, Error> {
        let wrong = |text: String| Error::new(format!("{}: {text}", self.path.display()));
        let (mut file, bytes, used) = open(&self.path)?;
        let header = NpyHeader::read(&mut file).map_err(wrong)?;
        if header.parts != T::PARTS {
            let (are, kind) =
                if T::PARTS == 2 { ("real", "npy.source") } else { ("complex", "npy.source.complex") };
            return Err(wrong(format!("its samples are {are}: play it with `{kind}`")));
        }
        let is_bytes = [Number::U8, Number::Bool].map(Coding::plain).contains(&header.coding);
        if T::IS_BYTE && !is_bytes {
            return Err(wrong(
                "its samples are not bytes: play it with `npy.source`, or save `a.astype(\"u1\")`".into(),
            ));
        }
        let frames = frames(&header.shape).map_err(wrong)?;
        let layout =
            FileLayout { coding: header.coding, parts: header.parts, channels: 1, first: 0, lanes: 1 };
        let begin = file.stream_position().map_err(|error| wrong(error.to_string()))?;
        let samples = frames.frame.map_or(1, |(samples, _)| samples).checked_mul(frames.count);
        let expected = samples.and_then(|samples| samples.checked_mul(layout.frame_bytes() as u64));
        let (Some(samples), Some(expected)) = (samples, expected) else {
            return Err(wrong(format!("its shape {:?} is too large", header.shape)));
        };
        let beyond = bytes.saturating_sub(begin).checked_sub(expected).ok_or_else(|| {
            wrong(format!(
                "its shape {:?} needs {expected} bytes of samples, but the file has {}: it is truncated or \
                 unfinished; save it again",
                header.shape,
                bytes.saturating_sub(begin)
            ))
        })?;
        Ok(OpenNpy { file, used, header, layout, frames, begin, samples, beyond })
    }
}

/// A file whose header was read.
struct OpenNpy {
    file: File,
    used: FileUse,
    header: NpyHeader,
    layout: FileLayout,
    frames: Frames,
    /// First byte of the samples.
    begin: u64,
    samples: u64,
    /// Bytes after the array.
    beyond: u64,
}

impl OpenNpy {
    /// Returns the file with the samples in the order in which they are played.
    fn play(self, path: &Path, cx: &mut Context) -> Result<(SampleFile, Frames), Error> {
        if self.beyond > 0 {
            let name = path.display();
            cx.note(format!("{name}: {} bytes after the array were not played", self.beyond));
        }
        let (file, begin) = if self.header.is_fortran {
            let bytes = self.layout.frame_bytes();
            let file =
                fortran::in_order(&self.file, self.begin, bytes, &self.header.shape).map_err(|error| {
                    let text = format!(
                        "{}: cannot bring its array from Fortran order into time order",
                        path.display()
                    );
                    Error::with_source(text, error)
                })?;
            (file, 0)
        } else {
            (self.file, self.begin)
        };
        let file = SampleFile::at(file, self.used, path.to_path_buf(), self.layout, begin, self.samples)?;
        Ok((file, self.frames))
    }
}

fn frames(shape: &[u64]) -> Result<Frames, String> {
    let [count, axes @ ..] = shape else {
        return Err(
            "it is a single number: the first axis is time, so save an array with at least one axis".into()
        );
    };
    if axes.len() > 3 {
        return Err(format!(
            "it has {} axes: at most 4 are supported, time and three of a frame; reshape it",
            shape.len()
        ));
    }
    if shape.contains(&0) {
        return Err(format!("its shape {shape:?} has an axis of length 0: there is nothing to play"));
    }
    if axes.is_empty() {
        return Ok(Frames { count: *count, frame: None });
    }
    let (mut samples, mut lengths) = (1u64, [0; 3]);
    for (length, axis) in lengths.iter_mut().zip(axes) {
        let both = u32::try_from(*axis).ok().zip(samples.checked_mul(*axis));
        (*length, samples) = both.ok_or_else(|| format!("its shape {shape:?} is too large"))?;
    }
    Ok(Frames { count: *count, frame: Some((samples, lengths)) })
}

impl<T: ArraySample> Operator for NpySource<T> {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        let (file, frames) = self.open()?.play(&self.path, cx)?;
        let samples = frames.frame.map_or(1, |(samples, _)| samples);
        let mut player = self.playing.player(file, Vec::new(), self.rate_hz * samples as f64);
        if let Some((samples, shape)) = frames.frame {
            player = player.frames(samples, shape);
        }
        self.playing.start(player, cx)
    }

    fn check(&self) -> Result<(), Error> {
        self.open().map(drop)
    }

    fn frame_behind(&self, _: Option<[u32; 3]>) -> Result<Option<[u32; 3]>, Error> {
        Ok(self.open().ok().and_then(|open| open.frames.frame).map(|(_, shape)| shape))
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        self.playing.step(std::slice::from_mut(&mut self.out), cx)
    }

    fn rate(&self, pace: Option<Pace>) -> Option<Rate> {
        let frame = self.open().ok()?.frames.frame.map(|(samples, _)| samples);
        self.playing.rate(pace, self.rate_hz * frame.unwrap_or(1) as f64, frame)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.playing.stop(cx, ending);
        Ok(())
    }
}

/// An array to play.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NpySourceParameters {
    /// The file to play, as written by `numpy.save`. The first axis is time; the remaining axes are the shape
    /// of a frame.
    path: PathBuf,
    /// Frames per second; samples per second if the array has one axis. Without it, frames are sent as fast
    /// as possible.
    #[serde(default)]
    rate: Option<Hertz>,
    /// Used if `rate` is set. `real`: a chunk is sent when its last sample is due. `fast`: as soon as there
    /// is room.
    #[serde(default = "real")]
    pace: Pace,
    /// How many times to play the array; 0 repeats it without end.
    #[serde(default = "once")]
    repeat: u64,
}

fn source<T: ArraySample>(p: &NpySourceParameters, folders: &Folders) -> Result<NpySource<T>, Error> {
    let source = NpySource::new(folders.input(&p.path)).repeat(p.repeat);
    match p.rate {
        Some(Hertz(rate_hz)) => source.rate(rate_hz, p.pace),
        None => Ok(source),
    }
}

pub(super) fn add_kinds(registry: &mut Registry) {
    let (text, example) = ("plays a NumPy array, frame by frame", "path = \"frames.npy\"\nrate = \"25 Hz\"");
    registry.add(Kind::new("npy.source", text, example, source::<f32>));
    registry.add(Kind::new("npy.source.complex", text, example, source::<Complex<f32>>));
    registry.add(Kind::new("npy.source.bytes", text, example, source::<u8>));
}
