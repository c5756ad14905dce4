//! Plays PNG pictures as frames.

use super::pattern::NumberedPath;
use super::picture::{Decoded, OpenPicture};
use crate::check;
use crate::format::{once, real};
use crate::npy::shape_text;
use onbeat_runtime::{
    Chunk, Context, Error, Folders, Hertz, Kind, Operator, Output, Pace, Pacer, Ports, Rate, Step,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// Samples of the frames that come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PictureFormat {
    /// One sample per pixel.
    Grey,
    /// Red, green and blue.
    Rgb,
}

/// Plays PNG pictures, each as one frame of bytes: of the shape rows × columns if it is grey, and rows ×
/// columns × 3 if it has colours.
///
/// The path is one file, a folder whose files `*.png` are played in the order of their names, or a name with
/// `{n}` or `%05d`, of which all numbers that are there are played in order; numbers that are missing are
/// noted. All pictures must have the size of the first one. The files are listed when the run starts.
///
/// Palettes become RGB. Samples of 1, 2 and 4 bits become 8 bits, black to white; samples of 16 bits are
/// divided by 257 and rounded. Alpha is left out: pixels have their colour however transparent they are.
/// Without a format, frames are those of the first picture, and all others must be alike. Colour becomes grey
/// as `0.299 R + 0.587 G + 0.114 B`. Each picture allocates memory.
pub struct PngSource {
    /// The frames.
    pub out: Output<Chunk<u8>>,
    path: PathBuf,
    numbered: Option<NumberedPath>,
    format: Option<PictureFormat>,
    frame_rate_hz: f64,
    pace: Pace,
    repeat: u64,
    film: Option<Slides>,
    sent: u64,
}

/// Pictures to play.
struct Slides {
    files: Vec<PathBuf>,
    format: PictureFormat,
    shape: [u32; 3],
    samples: u64,
    /// Samples of the picture that is decoded.
    buffer: Vec<u8>,
    decoded: Option<Decoded>,
}

impl PngSource {
    /// Plays pictures once, as fast as the consumer takes them.
    ///
    /// # Errors
    /// If a number is in the name of a folder, or there are two numbers.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        Ok(PngSource {
            out: Output::default(),
            numbered: NumberedPath::find(&path)?,
            path,
            format: None,
            frame_rate_hz: 0.0,
            pace: Pace::Fast,
            repeat: 1,
            film: None,
            sent: 0,
        })
    }

    /// Sets what comes out.
    pub fn format(mut self, format: Option<PictureFormat>) -> Self {
        self.format = format;
        self
    }

    /// Sets the frames per second.
    ///
    /// # Errors
    /// When it is not a finite number above 0.
    pub fn frame_rate(mut self, rate_hz: f64, pace: Pace) -> Result<Self, Error> {
        check::positive("frame_rate", rate_hz)?;
        (self.frame_rate_hz, self.pace) = (rate_hz, pace);
        Ok(self)
    }

    /// Sets how many times the pictures are played; 0 repeats them without end.
    pub fn repeat(mut self, times: u64) -> Self {
        self.repeat = times;
        self
    }

    /// Lists the files, and the numbers that are missing between them.
    fn list(&self) -> Result<(Vec<PathBuf>, u64), Error> {
        let none = |text: &str| Error::new(format!("{}: {text}", self.path.display()));
        if let Some(numbered) = &self.numbered {
            let mut numbers: Vec<u64> =
                names(numbered.folder())?.iter().filter_map(|name| numbered.number(name)).collect();
            numbers.sort_unstable();
            let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else {
                return Err(none("No such file has a number at that place"));
            };
            let missing = last - first + 1 - numbers.len() as u64;
            return Ok((numbers.into_iter().map(|number| numbered.with(number)).collect(), missing));
        }
        if !fs::metadata(&self.path).is_ok_and(|found| found.is_dir()) {
            return Ok((vec![self.path.clone()], 0));
        }
        let is_png = |name: &String| name.len() > 4 && name.to_ascii_lowercase().ends_with(".png");
        let mut found: Vec<String> = names(&self.path)?.into_iter().filter(is_png).collect();
        found.sort_unstable();
        if found.is_empty() {
            return Err(none("it is a folder without PNG files"));
        }
        Ok((found.iter().map(|name| self.path.join(name)).collect(), 0))
    }

    /// Lists the files and looks at the first one.
    fn look(&self) -> Result<(Slides, u64), Error> {
        let (files, missing) = self.list()?;
        let OpenPicture { rows, columns, is_colour, .. } = OpenPicture::open(&files[0])?;
        let found = if is_colour { PictureFormat::Rgb } else { PictureFormat::Grey };
        let format = self.format.unwrap_or(found);
        let channels = if format == PictureFormat::Rgb { 3 } else { 0 };
        let samples = u64::from(rows) * u64::from(columns) * u64::from(channels.max(1));
        let shape = [rows, columns, channels];
        Ok((Slides { files, format, shape, samples, buffer: Vec::new(), decoded: None }, missing))
    }

    fn pacer(&self, samples: u64) -> Pacer {
        Pacer::new(self.frame_rate_hz * samples as f64, self.pace)
    }
}

/// Names of the files of a folder; those that are not text are left out.
fn names(folder: &Path) -> Result<Vec<String>, Error> {
    let cannot = |error| Error::with_source(format!("cannot list {}", folder.display()), error);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(cannot)? {
        names.extend(entry.map_err(cannot)?.file_name().into_string());
    }
    Ok(names)
}

impl Slides {
    /// Decodes a picture, which must be like the first one.
    fn decode(&mut self, at: usize, has_format: bool) -> Result<Decoded, Error> {
        let path = &self.files[at];
        let picture = OpenPicture::open(path)?;
        let [rows, columns, channels] = self.shape;
        let first = self.files[0].display();
        if (picture.rows, picture.columns) != (rows, columns) {
            return Err(Error::new(format!(
                "{}: it has {} × {} pixels, and {first} has {rows} × {columns}: all pictures must have one \
                 size",
                path.display(),
                picture.rows,
                picture.columns
            )));
        }
        if !has_format && picture.is_colour != (channels == 3) {
            let [this, other] =
                [picture.is_colour, !picture.is_colour].map(|c| if c { "has colours" } else { "is grey" });
            return Err(Error::new(format!(
                "{}: it {this}, and {first} {other}: give `format`, \"grey\" or \"rgb\"",
                path.display()
            )));
        }
        picture.decode(path, &mut self.buffer)
    }
}

impl Operator for PngSource {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        let (film, missing) = self.look()?;
        if missing > 0 {
            let name = self.path.display();
            cx.note(format!("{name}: {missing} numbers between the first and the last one are missing"));
        }
        let frames = (film.files.len() as u64).checked_mul(self.repeat).filter(|&frames| frames > 0);
        if let Some(frames) = frames.filter(|_| self.frame_rate_hz > 0.0) {
            cx.set_length_ns(self.pacer(film.samples).time_ns(frames.saturating_mul(film.samples)));
        }
        (self.film, self.sent) = (Some(film), 0);
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        self.look().map(drop)
    }

    fn frame_behind(&self, _: Option<[u32; 3]>) -> Result<Option<[u32; 3]>, Error> {
        Ok(self.look().ok().map(|(film, _)| film.shape))
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(film) = &mut self.film else { return Ok(Step::Done) };
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        let Slides { samples, shape, format, .. } = *film;
        if samples > chunk.capacity() as u64 {
            return Err(Error::new(format!(
                "a frame of {} has {samples} bytes: the edges of `out` have room for {}; give each `quantum = \
                 {samples}` or more",
                shape_text(&shape),
                chunk.capacity()
            )));
        }
        let files = film.files.len() as u64;
        let decoded = match film.decoded {
            Some(decoded) => decoded,
            None => film.decode((self.sent % files) as usize, self.format.is_some())?,
        };
        film.decoded = Some(decoded);
        let begin = self.sent * samples;
        let rate_hz = self.frame_rate_hz * samples as f64;
        if let Some(wait) = Pacer::new(rate_hz, self.pace).wait(cx, begin, begin + samples) {
            return Ok(wait);
        }
        chunk.truncate(samples as usize);
        let info = chunk.info_mut();
        (info.start, info.rate_hz, info.shape) = (begin, rate_hz, shape);
        let frame = chunk.edit_unique().expect("a new chunk is not shared");
        decoded.write(&film.buffer, format, frame);
        film.decoded = None;
        self.sent += 1;
        self.out.push(cx, chunk)?;
        let is_last = self.sent.is_multiple_of(files) && self.sent / files == self.repeat;
        Ok(if is_last { Step::Done } else { Step::Again })
    }

    fn rate(&self, pace: Option<Pace>) -> Option<Rate> {
        let samples = if self.frame_rate_hz > 0.0 { self.look().ok()?.0.samples } else { 1 };
        let rate_hz = self.pacer(samples).kept_hz(pace)?;
        Some(Rate::Samples { rate_hz, chunk: Some(samples), bytes: 1 })
    }
}

/// Pictures to play.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PngSourceParameters {
    /// A file; a folder, whose files `*.png` are played by name; or a name with `{n}` or `%05d`, whose
    /// numbers are played in order.
    path: PathBuf,
    /// What comes out. `grey`: rows × columns. `rgb`: rows × columns × 3. Without it, what the first picture
    /// has.
    #[serde(default)]
    format: Option<PictureFormat>,
    /// Frames per second. Without it, frames are sent as fast as possible.
    #[serde(default)]
    frame_rate: Option<Hertz>,
    /// Used if `frame_rate` is set. `real`: a frame is sent when its time is over. `fast`: as soon as there
    /// is room.
    #[serde(default = "real")]
    pace: Pace,
    /// How many times to play the pictures; 0 repeats them without end.
    #[serde(default = "once")]
    repeat: u64,
}

pub(super) fn kind() -> Kind {
    let make = |p: &PngSourceParameters, folders: &Folders| {
        let source = PngSource::new(folders.input(&p.path))?.format(p.format).repeat(p.repeat);
        match p.frame_rate {
            Some(Hertz(rate_hz)) => source.frame_rate(rate_hz, p.pace),
            None => Ok(source),
        }
    };
    let example = "path = \"frames/%05d.png\"\nframe_rate = \"25 Hz\"";
    Kind::new("png.source", "plays PNG images, each as a frame", example, make)
}
