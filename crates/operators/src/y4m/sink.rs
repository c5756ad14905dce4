//! Writes Y4M files.

use super::header::{FRAME, MOST, StreamHeader, fraction};
use super::planes::FramePlanes;
use super::reader::STANDARD;
use crate::check;
use crate::flush_timer::FlushTimer;
use crate::image::{ColourMatrix, ColourRange, Colours};
use crate::note;
use crate::npy::shape_text;
use crate::part::{PartFile, not_restartable};
use crate::streams::{Outgoing, time_ns, usual, usual_ns};
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Folders, Hertz, Input, Kind, Operator, Ports, Registry, Seconds, Step,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Resolution of colour in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Chroma {
    /// A sample for each pixel.
    #[default]
    #[serde(rename = "444")]
    Full,
    /// A sample for each block of 2 × 2 pixels, as most players want it.
    #[serde(rename = "420")]
    Quarter,
}

/// Writes frames as uncompressed video (YUV4MPEG2, `.y4m`), to a file or to stdout.
///
/// Grey frames are written as they are, as luma without chroma (`Cmono`). RGB frames become YCbCr as in
/// `image.convert`; with `chroma = "420"`, a sample of chroma is that of the mean of 2 × 2 pixels. All frames
/// must have the same shape. The frame rate is that of the input unless one is given; rates within two
/// millionths of n · 1000/1001 are written as such a fraction.
///
/// A file is called "NAME.part" until it is complete. If the run fails, that file is left with the frames so
/// far. While stdout is full, the operator's input edge fills. When the reader of stdout has closed it, the
/// operator is done, and so are operators that feed nothing else. That is not an error. What the reader does
/// not take within `patience` after a stop of the run is lost, and the run ends with exit status 3.
pub struct Y4mSink {
    /// The frames.
    pub input: Input<Chunk<u8>>,
    path: PathBuf,
    chroma: Chroma,
    range: ColourRange,
    planes: FramePlanes,
    frame_rate_hz: Option<f64>,
    patience_ns: u64,
    to: Option<VideoOut>,
    /// Shape of all frames, and the header that was written.
    known: Option<([u32; 3], StreamHeader)>,
    bytes: Vec<u8>,
}

enum VideoOut {
    File { part: PartFile, writer: BufWriter<File>, flush: FlushTimer },
    Stdout(Outgoing),
}

impl Y4mSink {
    /// Writes to a file; `-` is stdout.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let range = ColourRange::Limited;
        Y4mSink {
            input: Input::default(),
            path: path.into(),
            chroma: Chroma::Full,
            range,
            planes: FramePlanes::new(Colours::new(ColourMatrix::Bt601, range)),
            frame_rate_hz: None,
            patience_ns: usual_ns(),
            to: None,
            known: None,
            bytes: Vec::new(),
        }
    }

    /// Sets how RGB becomes YCbCr.
    pub fn colours(mut self, chroma: Chroma, matrix: ColourMatrix, range: ColourRange) -> Self {
        (self.chroma, self.range) = (chroma, range);
        self.planes = FramePlanes::new(Colours::new(matrix, range));
        self
    }

    /// Sets the frames per second that the header names, instead of those of the input.
    ///
    /// # Errors
    /// When it is not from 0.001 to 1000000.
    pub fn frame_rate(mut self, rate_hz: f64) -> Result<Self, Error> {
        check::within("frame_rate", rate_hz, 0.001, 1e6, "it is only written into the header")?;
        self.frame_rate_hz = Some(rate_hz);
        Ok(self)
    }

    /// Sets the time for the reader of stdout to take the rest, after a stop of the run.
    pub fn patience(mut self, time_ns: u64) -> Self {
        self.patience_ns = time_ns;
        self
    }

    fn cannot(&self, text: &str) -> Error {
        Error::new(format!("cannot write {}: {text}", self.path.display()))
    }

    /// Checks a frame, and makes the bytes that are written for it.
    fn encode(&mut self, frame: &Chunk<u8>) -> Result<(), Error> {
        let shape = frame.info().shape;
        self.bytes.clear();
        let header = match self.known {
            Some((known, header)) if known == shape => header,
            Some((known, _)) => {
                return Err(self.cannot(&format!(
                    "the shape of the frames changed from {} to {}, but a video has only one; write separate \
                     files",
                    shape_text(&known),
                    shape_text(&shape)
                )));
            }
            None => {
                let header = self.header(frame)?;
                self.bytes.extend_from_slice(header.write().as_bytes());
                self.known = Some((shape, header));
                header
            }
        };
        let samples = header.rows * header.columns * if header.chroma.is_some() { 3 } else { 1 };
        if frame.len() != samples {
            return Err(self.cannot(&format!(
                "a frame of shape {} has {} samples instead of {samples}; an operator upstream changed only \
                 one of both",
                shape_text(&shape),
                frame.len()
            )));
        }
        self.bytes.extend_from_slice(FRAME);
        self.bytes.push(b'\n');
        let begin = self.bytes.len();
        if header.chroma.is_none() {
            self.bytes.extend_from_slice(frame);
        } else {
            self.bytes.resize(begin + header.frame_bytes(), 0);
            self.planes.pack(&header, frame, &mut self.bytes[begin..]);
        }
        Ok(())
    }

    /// The header for frames like this one.
    fn header(&self, frame: &Chunk<u8>) -> Result<StreamHeader, Error> {
        let shape = frame.info().shape;
        let [rows @ 1..=MOST, columns @ 1..=MOST, channels @ (0 | 1 | 3)] = shape else {
            let what = if shape[0] == 0 { "none".to_string() } else { shape_text(&shape) };
            return Err(self.cannot(&format!(
                "it needs frames of rows × columns or rows × columns × 3, at most {MOST} × {MOST}, and its \
                 input has chunks whose shape is {what}"
            )));
        };
        let of_input = frame.rate_hz() / frame.len().max(1) as f64;
        let rate_hz = self.frame_rate_hz.unwrap_or(of_input);
        let Some(rate) = fraction(rate_hz) else {
            return Err(self.cannot(&format!(
                "the frame rate of its input is {rate_hz}: give `frame_rate`, such as \"25 Hz\""
            )));
        };
        let chroma = match (channels, self.chroma) {
            (3, Chroma::Full) => Some((1, 1)),
            (3, Chroma::Quarter) => Some((2, 2)),
            _ => None,
        };
        Ok(StreamHeader {
            rows: rows as usize,
            columns: columns as usize,
            rate: Some(rate),
            chroma,
            is_interlaced: false,
            range: chroma.map(|_| self.range),
        })
    }
}

impl Operator for Y4mSink {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.known = None;
        self.to = Some(if self.path == Path::new(STANDARD) {
            VideoOut::Stdout(Outgoing::open(self.patience_ns)?)
        } else {
            let part = PartFile::create(&self.path)?;
            let writer = BufWriter::with_capacity(64 << 10, part.handle()?);
            VideoOut::File { part, writer, flush: FlushTimer::default() }
        });
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let takes = !matches!(&self.to, Some(VideoOut::Stdout(outgoing)) if !outgoing.bytes.is_empty());
        let frame = if takes { self.input.pop(cx) } else { None };
        if let Some(frame) = &frame {
            self.encode(frame)?;
        }
        match &mut self.to {
            None => Ok(Step::Done),
            Some(VideoOut::Stdout(outgoing)) => {
                if frame.is_some() {
                    std::mem::swap(&mut outgoing.bytes, &mut self.bytes);
                }
                outgoing.step(&self.input, cx)
            }
            Some(VideoOut::File { part, writer, flush }) => {
                if flush.is_due() {
                    writer.flush().map_err(|error| part.cannot_write(error))?;
                }
                let mut wait = Step::Wait;
                if frame.is_some() {
                    writer.write_all(&self.bytes).map_err(|error| part.cannot_write(error))?;
                } else if self.input.is_ended(cx) {
                    wait = Step::Done;
                }
                Ok(flush.wait(!writer.buffer().is_empty(), wait, cx))
            }
        }
    }

    fn restartable(&self) -> Result<(), Error> {
        not_restartable()
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        let Some(VideoOut::File { part, mut writer, .. }) = self.to.take() else { return Ok(()) };
        let written = writer.flush();
        if ending == Ending::Failed {
            part.keep(cx);
            return Ok(());
        }
        written.map_err(|error| part.cannot_write(error))?;
        if self.known.is_none() {
            note::nothing_came(cx, &self.path);
            return Ok(());
        }
        part.finish(cx.sync_files())
    }
}

/// Video to write.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Y4mSinkParameters {
    /// The file to write; missing folders are created. `-` is stdout: all other output then goes to stderr.
    path: PathBuf,
    /// Frames per second in the header. Without it, those of the input.
    #[serde(default)]
    frame_rate: Option<Hertz>,
    /// Resolution of colour, for RGB frames. `444`: a sample for each pixel. `420`: one for each block of
    /// 2 × 2 pixels.
    #[serde(default)]
    chroma: Chroma,
    /// How RGB becomes YCbCr. `bt601`: standard definition. `bt709`: high definition.
    #[serde(default)]
    matrix: ColourMatrix,
    /// Range of YCbCr. `limited`: black is 16 and white is 235. `full`: 0 and 255.
    #[serde(default = "limited")]
    range: ColourRange,
    /// How long to wait after a stop until the reader of stdout takes the rest.
    #[serde(default = "usual")]
    patience: Seconds,
}

fn limited() -> ColourRange {
    ColourRange::Limited
}

fn sink(p: &Y4mSinkParameters, folders: &Folders) -> Result<Y4mSink, Error> {
    let standard = p.path == Path::new(STANDARD);
    let sink = Y4mSink::new(if standard { p.path.clone() } else { folders.output(&p.path) });
    let sink = sink.colours(p.chroma, p.matrix, p.range).patience(time_ns("patience", p.patience)?);
    match p.frame_rate {
        Some(Hertz(rate_hz)) => sink.frame_rate(rate_hz),
        None => Ok(sink),
    }
}

pub(super) fn add_kinds(registry: &mut Registry) {
    let text = "writes uncompressed video (Y4M), to a file or to stdout";
    let kind = Kind::new("y4m.sink", text, "path = \"film.y4m\"", sink);
    registry.add(kind.about(include_str!("../about/y4m.md")));
}
