//! Plays Y4M files.

use super::header::{MOST, StreamHeader};
use super::planes::FramePlanes;
use super::reader::{ReadProgress, STANDARD, Y4mReader};
use crate::check;
use crate::format::{is_pipe, once, real};
use crate::image::{ColourMatrix, ColourRange, Colours};
use crate::npy::shape_text;
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Folders, Hertz, Kind, Operator, Output, Pace, Pacer, Ports, Rate,
    Registry, Step,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Samples of the frames that come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VideoFormat {
    /// Red, green and blue.
    #[default]
    Rgb,
    /// The luma as it is in the file.
    Grey,
}

/// Plays uncompressed video (YUV4MPEG2, `.y4m`) frame by frame, from a file, a named pipe or stdin.
///
/// A frame is one chunk of the shape rows × columns × 3, or rows × columns if it is grey. The layouts 4:2:0,
/// 4:2:2, 4:4:4, 4:1:1 and mono are played, with 8 bits. Grey is the plane of luma as it is: limited range
/// stays limited. RGB is computed from YCbCr as in `image.convert`, and a sample of chroma stands for all
/// pixels that it covers. Interlaced frames are played as they are; a note says so.
///
/// A file that was cut off is played up to its last whole frame; a note gives the bytes of the rest. If a
/// pipe or stdin ends within a frame, its bytes are lost, as are those that wait there when the run is
/// stopped: the run then ends with exit status 3.
pub struct Y4mSource {
    /// The frames.
    pub out: Output<Chunk<u8>>,
    path: PathBuf,
    format: VideoFormat,
    matrix: ColourMatrix,
    range: Option<ColourRange>,
    frame_rate_hz: f64,
    pace: Pace,
    repeat: u64,
    /// Rows and columns that the user expects.
    expected: Option<(u32, u32)>,
    reader: Option<Y4mReader>,
    /// The film, once the header was read.
    film: Option<Film>,
    /// Frames sent, and passes that are complete.
    sent: u64,
    passes: u64,
    /// Bytes of an incomplete frame at the end.
    rest: usize,
}

/// A stream whose header was read.
struct Film {
    header: StreamHeader,
    shape: [u32; 3],
    samples: u64,
    rate_hz: f64,
    pacer: Pacer,
    planes: FramePlanes,
}

impl Y4mSource {
    /// Plays a file once, at the frame rate of its header; `-` is stdin.
    pub fn new(path: impl Into<PathBuf>, format: VideoFormat) -> Self {
        Y4mSource {
            out: Output::default(),
            path: path.into(),
            format,
            matrix: ColourMatrix::Bt601,
            range: None,
            frame_rate_hz: 0.0,
            pace: Pace::Real,
            repeat: 1,
            expected: None,
            reader: None,
            film: None,
            sent: 0,
            passes: 0,
            rest: 0,
        }
    }

    /// Sets how RGB is computed. Without a range, it is that of the header, and limited if it names none.
    pub fn colours(mut self, matrix: ColourMatrix, range: Option<ColourRange>) -> Self {
        (self.matrix, self.range) = (matrix, range);
        self
    }

    /// Sets the frames per second, instead of those of the header.
    ///
    /// # Errors
    /// When it is not a finite number above 0.
    pub fn frame_rate(mut self, rate_hz: f64) -> Result<Self, Error> {
        check::positive("frame_rate", rate_hz)?;
        self.frame_rate_hz = rate_hz;
        Ok(self)
    }

    /// Sets whether frames wait until they are due.
    pub fn pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// Sets how many times a file is played; 0 repeats it without end.
    pub fn repeat(mut self, times: u64) -> Self {
        self.repeat = times;
        self
    }

    /// Sets the size that frames must have. For a pipe or stdin, whose header is read during the run, the
    /// edges get their quantum by it.
    ///
    /// # Errors
    /// When only one of the two is given, or one is not from 1 to 65535.
    pub fn expect(mut self, rows: Option<u32>, columns: Option<u32>) -> Result<Self, Error> {
        for (name, length) in [("rows", rows), ("columns", columns)] {
            check::within(name, length.unwrap_or(1).into(), 1.0, MOST.into(), "frames have no more")?;
        }
        self.expected = match (rows, columns) {
            (None, None) => None,
            (Some(rows), Some(columns)) => Some((rows, columns)),
            _ => return Err(Error::new("only one of `rows` and `columns` is given: give both, or none")),
        };
        Ok(self)
    }

    /// The file's header; `None` for what can be read only once.
    fn look(&self) -> Result<Option<StreamHeader>, Error> {
        if self.path == Path::new(STANDARD) || is_pipe(&self.path) {
            return Ok(None);
        }
        let mut reader = Y4mReader::open(&self.path)?;
        reader.read_header()?;
        reader.count()?;
        let Some(header) = reader.header() else { return Ok(None) };
        self.compare(&header)?;
        Ok(Some(header))
    }

    /// Compares the size of the frames with what the user expects.
    fn compare(&self, header: &StreamHeader) -> Result<(), Error> {
        match self.expected {
            Some((rows, columns)) if (rows as usize, columns as usize) != (header.rows, header.columns) => {
                Err(Error::new(format!(
                    "{}: its frames are {} × {}, but `rows` is {rows} and `columns` is {columns}: correct \
                     them",
                    self.path.display(),
                    header.rows,
                    header.columns
                )))
            }
            _ => Ok(()),
        }
    }

    fn shape_of(&self, rows: u32, columns: u32) -> [u32; 3] {
        [rows, columns, if self.format == VideoFormat::Grey { 0 } else { 3 }]
    }

    /// Prepares for the frames once the header is known.
    fn begin(&self, header: StreamHeader, count: Option<u64>, cx: &mut Context) -> Result<Film, Error> {
        self.compare(&header)?;
        if header.is_interlaced {
            let name = self.path.display();
            cx.note(format!("{name}: its frames are interlaced, and are played as they are"));
        }
        let shape = self.shape_of(header.rows as u32, header.columns as u32);
        let samples = shape.iter().map(|&length| u64::from(length.max(1))).product();
        let frame_rate_hz = self.frame_rate_of(&header);
        let rate_hz = frame_rate_hz * samples as f64;
        let pacer = Pacer::new(rate_hz, self.pace);
        let frames = count.filter(|_| self.repeat > 0).and_then(|count| count.checked_mul(self.repeat));
        if let Some(frames) = frames.filter(|_| rate_hz > 0.0) {
            cx.set_length_ns(pacer.time_ns(frames.saturating_mul(samples)));
        }
        let range = self.range.or(header.range).unwrap_or(ColourRange::Limited);
        let planes = FramePlanes::new(Colours::new(self.matrix, range));
        Ok(Film { header, shape, samples, rate_hz, pacer, planes })
    }

    fn frame_rate_of(&self, header: &StreamHeader) -> f64 {
        if self.frame_rate_hz > 0.0 { self.frame_rate_hz } else { header.rate_hz() }
    }

    /// Reads on until a frame is there. Returns what to do if there is none.
    fn read(&mut self, cx: &mut Context) -> Result<Option<Step>, Error> {
        let Some(reader) = &mut self.reader else { return Ok(Some(Step::Done)) };
        loop {
            match reader.read_frame()? {
                ReadProgress::Complete => return Ok(None),
                ReadProgress::Nothing => return reader.wait(cx).map(Some),
                ReadProgress::Ended(rest) => {
                    self.passes += 1;
                    self.rest = rest;
                    if self.sent > 0 && !reader.has_frames() {
                        let name = self.path.display();
                        return Err(Error::new(format!("{name} was truncated during playback")));
                    }
                    if !reader.is_file() || self.passes == self.repeat || self.sent == 0 {
                        return Ok(Some(Step::Done));
                    }
                    reader.rewind()?;
                }
            }
        }
    }
}

impl Operator for Y4mSource {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        (self.film, self.sent, self.passes, self.rest) = (None, 0, 0, 0);
        let mut reader = Y4mReader::open(&self.path)?;
        if reader.is_file() {
            reader.read_header()?;
            let count = reader.count()?;
            self.film = reader.header().map(|header| self.begin(header, count, cx)).transpose()?;
        } else if self.repeat != 1 {
            let name = self.path.display();
            return Err(Error::new(format!(
                "`repeat` is {}: {name} is a pipe, which can be played once",
                self.repeat
            )));
        }
        self.reader = Some(reader);
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        self.look().map(drop)
    }

    fn frame_behind(&self, _: Option<[u32; 3]>) -> Result<Option<[u32; 3]>, Error> {
        let found = self.look().ok().flatten().map(|header| (header.rows as u32, header.columns as u32));
        Ok(found.or(self.expected).map(|(rows, columns)| self.shape_of(rows, columns)))
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.film.is_none() {
            let Some(reader) = &mut self.reader else { return Ok(Step::Done) };
            if reader.read_header()? == ReadProgress::Nothing {
                return reader.wait(cx);
            }
            self.film = reader.header().map(|header| self.begin(header, None, cx)).transpose()?;
        }
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        if let Some(Film { shape, samples, .. }) = &self.film
            && *samples > chunk.capacity() as u64
        {
            return Err(Error::new(format!(
                "a frame of {} has {samples} bytes: the edges of `out` have room for {}; give each `quantum = \
                 {samples}` or more{}",
                shape_text(shape),
                chunk.capacity(),
                if self.expected.is_none() { ", or give `rows` and `columns` here" } else { "" }
            )));
        }
        if let Some(step) = self.read(cx)? {
            return Ok(step);
        }
        let (Some(film), Some(reader)) = (&mut self.film, &mut self.reader) else { return Ok(Step::Done) };
        let begin = self.sent * film.samples;
        if let Some(wait) = film.pacer.wait(cx, begin, begin + film.samples) {
            return Ok(wait);
        }
        chunk.truncate(film.samples as usize);
        let info = chunk.info_mut();
        (info.start, info.rate_hz, info.shape) = (begin, film.rate_hz, film.shape);
        let pixels = chunk.edit_unique().expect("a new chunk is not shared");
        match self.format {
            VideoFormat::Grey => pixels.copy_from_slice(&reader.planes()[..pixels.len()]),
            VideoFormat::Rgb => film.planes.fill_rgb(&film.header, reader.planes(), pixels),
        }
        reader.next();
        self.sent += 1;
        self.out.push(cx, chunk)?;
        Ok(Step::Again)
    }

    fn rate(&self, pace: Option<Pace>) -> Option<Rate> {
        let header = self.look().ok()??;
        let shape = self.shape_of(header.rows as u32, header.columns as u32);
        let samples: u64 = shape.iter().map(|&length| u64::from(length.max(1))).product();
        let rate_hz = self.frame_rate_of(&header) * samples as f64;
        let rate_hz = Pacer::new(rate_hz, self.pace).kept_hz(pace)?;
        Some(Rate::Samples { rate_hz, chunk: Some(samples), bytes: 1 })
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        if let Some(reader) = self.reader.take() {
            reader.finish(self.rest, ending, cx);
        }
        Ok(())
    }
}

/// Video to play.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Y4mSourceParameters {
    /// The file or named pipe to play; `-` is stdin, for `ffmpeg -i FILE -f yuv4mpegpipe - | onbeat run ...`.
    path: PathBuf,
    /// What comes out. `rgb`: frames of rows × columns × 3. `grey`: the luma as it is, rows × columns.
    #[serde(default)]
    format: VideoFormat,
    /// How RGB is computed. `bt601`: standard definition. `bt709`: high definition.
    #[serde(default)]
    matrix: ColourMatrix,
    /// Range of the file. `limited`: black is 16 and white is 235. `full`: 0 and 255. Without it, what the
    /// header says, and otherwise `limited`.
    #[serde(default)]
    range: Option<ColourRange>,
    /// Frames per second. Without it, those of the header; if it has none, frames are sent as fast as
    /// possible.
    #[serde(default)]
    frame_rate: Option<Hertz>,
    /// `real`: a frame is sent when its time is over. `fast`: as soon as there is room.
    #[serde(default = "real")]
    pace: Pace,
    /// How many times to play the file; 0 repeats it without end.
    #[serde(default = "once")]
    repeat: u64,
    /// Rows of a frame, for pipes and stdin, whose size is not known before the run: the edges get a quantum
    /// of one frame.
    #[serde(default)]
    rows: Option<u32>,
    /// Columns of a frame, as `rows`.
    #[serde(default)]
    columns: Option<u32>,
}

fn source(p: &Y4mSourceParameters, folders: &Folders) -> Result<Y4mSource, Error> {
    let standard = p.path == Path::new(STANDARD);
    let path = if standard { p.path.clone() } else { folders.input(&p.path) };
    let source = Y4mSource::new(path, p.format).colours(p.matrix, p.range).pace(p.pace).repeat(p.repeat);
    let source = source.expect(p.rows, p.columns)?;
    match p.frame_rate {
        Some(Hertz(rate_hz)) => source.frame_rate(rate_hz),
        None => Ok(source),
    }
}

pub(super) fn add_kinds(registry: &mut Registry) {
    let text = "plays uncompressed video (Y4M), frame by frame";
    let kind = Kind::new("y4m.source", text, "path = \"film.y4m\"", source);
    registry.add(kind.about(include_str!("../about/y4m.md")));
}
