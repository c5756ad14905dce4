//! PNG images of frames and of streams.

use super::encode;
use crate::note;
use crate::npy::{axes, shape_text};
use crate::part::{PartFile, not_restartable};
use onbeat_runtime::{Chunk, Context, Ending, Error, Folders, Input, Kind, Operator, Ports, Step};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Placeholder for the image's number in a file name.
const NUMBER: &str = "{n}";
/// Most rows of an image that is built row by row.
const MOST_ROWS: u32 = 16384;

/// Colours of [`ColourMap::Heat`] at even steps, from black to white.
const HEAT: [[u8; 3]; 5] = [[0, 0, 0], [64, 0, 128], [208, 32, 64], [255, 160, 0], [255, 255, 224]];

/// Colours of low and high samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ColourMap {
    /// Black to white.
    #[default]
    Grey,
    /// Black, violet, red, yellow, white.
    Heat,
}

/// Writes PNG images of chunks. A chunk with rows and columns is one image; a chunk without a shape or with
/// one axis is one row, and the first row is on top.
///
/// With `{n}` in its name, each image goes to its own file: `{n}` becomes a number of six digits from 000000
/// on, and the file appears as soon as it is complete. These files stay even if the run fails later. Without
/// `{n}` there is one file, with the last image or the last rows. It is called "NAME.part" until the end, and
/// is removed if the run fails.
///
/// The lowest sample of each image is black and the highest white, or the ends of the colour map, unless
/// `min` or `max` set the limits. Samples beyond the limits get the colour of the limit. Chunks with three
/// planes are red, green and blue on the same scale. A row shorter than the first is filled up with the
/// lowest colour. Samples that are not finite get the lowest colour too; a note gives their number at the
/// end. Each image allocates memory.
pub struct PngSink {
    /// Frames or rows.
    pub input: Input<Chunk<f32>>,
    path: PathBuf,
    numbered: bool,
    low: Option<f32>,
    high: Option<f32>,
    colours: Option<Box<[[u8; 3]; 256]>>,
    rows: u32,
    part: Option<PartFile>,
    /// Number of images written.
    written: u64,
    size: Option<ImageSize>,
    /// Samples of the image being built.
    samples: Vec<f32>,
    /// Index of the oldest row of an image built row by row, once rows are replaced.
    oldest: usize,
    pixels: Vec<u8>,
    not_finite: u64,
}

/// Size of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ImageSize {
    width: usize,
    planes: usize,
    by_row: bool,
}

impl PngSink {
    /// Writes grey images, each on its own scale; images built row by row have 256 rows.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let numbered = path.to_string_lossy().contains(NUMBER);
        PngSink {
            input: Input::default(),
            path,
            numbered,
            low: None,
            high: None,
            colours: None,
            rows: 256,
            part: None,
            written: 0,
            size: None,
            samples: Vec::new(),
            oldest: 0,
            pixels: Vec::new(),
            not_finite: 0,
        }
    }

    /// Sets the samples that are black and white; `None` takes the lowest and the highest sample of each
    /// image.
    ///
    /// # Errors
    /// When a limit is not finite, or the second is not above the first.
    pub fn scale(mut self, low: Option<f32>, high: Option<f32>) -> Result<Self, Error> {
        for (name, value) in [("min", low), ("max", high)] {
            crate::check::finite(name, f64::from(value.unwrap_or(0.0)))?;
        }
        if let (Some(low), Some(high)) = (low, high)
            && low >= high
        {
            return Err(Error::new(format!(
                "`max` is {high}: it must be above `min`, which is {low}; raise `max`"
            )));
        }
        (self.low, self.high) = (low, high);
        Ok(self)
    }

    /// Sets the colour map.
    pub fn map(mut self, map: ColourMap) -> Self {
        self.colours = (map == ColourMap::Heat).then(heat);
        self
    }

    /// Sets the number of rows of an image built row by row.
    ///
    /// # Errors
    /// When it is not from 1 to 16384.
    pub fn rows(mut self, rows: u32) -> Result<Self, Error> {
        let fix = "it has no effect on chunks with rows and columns";
        crate::check::within("rows", f64::from(rows), 1.0, f64::from(MOST_ROWS), fix)?;
        self.rows = rows;
        Ok(self)
    }

    fn target(&self) -> PathBuf {
        if !self.numbered {
            return self.path.clone();
        }
        self.path.to_string_lossy().replace(NUMBER, &format!("{:06}", self.written)).into()
    }

    fn take(&mut self, chunk: &Chunk<f32>) -> Result<(), Error> {
        if chunk.is_empty() {
            return Ok(());
        }
        let shape = chunk.info().shape;
        let (rows, size) = match *axes(&shape) {
            [] | [_] => (1, ImageSize { width: chunk.len(), planes: 1, by_row: true }),
            [rows, columns] => (rows, ImageSize { width: columns as usize, planes: 1, by_row: false }),
            [rows, columns, planes] => {
                (rows, ImageSize { width: columns as usize, planes: planes as usize, by_row: false })
            }
            _ => unreachable!("a shape has three axes"),
        };
        let known = *self.size.get_or_insert(size);
        if size.by_row != known.by_row || !matches!(size.planes, 1 | 3) {
            return Err(self.cannot(&format!(
                "a chunk of shape {} cannot be added to the image: send chunks of rows × columns, of rows × \
                 columns × 3, or without a shape",
                shape_text(&shape)
            )));
        }
        if !size.by_row && rows as usize * size.width * size.planes != chunk.len() {
            return Err(self.cannot(&format!(
                "a chunk of shape {} has {} samples, which does not match its shape",
                shape_text(&shape),
                chunk.len()
            )));
        }
        self.not_finite += chunk.iter().map(|x| u64::from(!x.is_finite())).sum::<u64>();
        if size.by_row {
            return self.take_row(chunk, known.width);
        }
        self.size = Some(size);
        self.samples.clear();
        self.samples.extend_from_slice(chunk);
        if self.numbered { self.write(false) } else { Ok(()) }
    }

    fn take_row(&mut self, row: &[f32], width: usize) -> Result<(), Error> {
        if row.len() > width {
            return Err(self.cannot(&format!(
                "a row of {} samples arrived, but the first one had {width}: all chunks must have the same \
                 length",
                row.len()
            )));
        }
        let whole = width * self.rows as usize;
        let begin = if self.samples.len() < whole {
            self.samples.resize(self.samples.len() + width, 0.0);
            self.samples.len() - width
        } else {
            let begin = self.oldest * width;
            self.oldest = (self.oldest + 1) % self.rows as usize;
            begin
        };
        let (now, rest) = self.samples[begin..begin + width].split_at_mut(row.len());
        now.copy_from_slice(row);
        // Samples that are not finite get the lowest colour.
        rest.fill(f32::NAN);
        if self.numbered && self.samples.len() == whole {
            self.write(false)?;
            self.samples.clear();
        }
        Ok(())
    }

    /// Writes the current image. Numbered images are written while other operators wait for their turn, so
    /// they are not synced to disk.
    fn write(&mut self, syncs: bool) -> Result<(), Error> {
        let Some(ImageSize { width, planes, .. }) = self.size.filter(|_| !self.samples.is_empty()) else {
            return Ok(());
        };
        let part = match self.part.take() {
            Some(part) => part,
            None => PartFile::create(&self.target())?,
        };
        let line = width * planes;
        self.samples.rotate_left(self.oldest * line);
        self.oldest = 0;
        self.paint(planes);
        let lines = self.samples.len() / line;
        let colour = planes == 3 || self.colours.is_some();
        let (Ok(width), Ok(height)) = (u32::try_from(width), u32::try_from(lines)) else {
            return Err(self.cannot("an image has at most 4294967295 rows and columns"));
        };
        let colour = if colour { png::ColorType::Rgb } else { png::ColorType::Grayscale };
        encode(&part, (width, height), colour, &self.pixels)?;
        part.finish(syncs)?;
        self.written += 1;
        Ok(())
    }

    /// Converts samples to pixels.
    fn paint(&mut self, planes: usize) {
        let finite = || self.samples.iter().copied().filter(|x| x.is_finite());
        let low = self.low.unwrap_or_else(|| finite().fold(f32::INFINITY, f32::min));
        let high = self.high.unwrap_or_else(|| finite().fold(f32::NEG_INFINITY, f32::max));
        // All samples are equal, or none is finite: all black.
        let scale = if high > low { 255.0 / (f64::from(high) - f64::from(low)) } else { 0.0 };
        let level = |x: f32| {
            if x.is_finite() { ((f64::from(x) - f64::from(low)) * scale).round() as u8 } else { 0 }
        };
        self.pixels.clear();
        match &self.colours {
            Some(colours) if planes == 1 => {
                self.pixels.extend(self.samples.iter().flat_map(|&x| colours[usize::from(level(x))]));
            }
            _ => self.pixels.extend(self.samples.iter().map(|&x| level(x))),
        }
    }

    fn cannot(&self, text: &str) -> Error {
        Error::new(format!("cannot write {}: {text}", self.path.display()))
    }
}

/// The colours of [`ColourMap::Heat`], low to high.
pub(crate) fn heat() -> Box<[[u8; 3]; 256]> {
    let mut colours = Box::new([[0; 3]; 256]);
    for (level, colour) in colours.iter_mut().enumerate() {
        let place = level as f32 / 255.0 * (HEAT.len() - 1) as f32;
        let (at, part) = ((place as usize).min(HEAT.len() - 2), place.fract());
        let part = if place as usize > at { 1.0 } else { part };
        for (value, (from, to)) in colour.iter_mut().zip(HEAT[at].iter().zip(HEAT[at + 1])) {
            *value = (f32::from(*from) + part * (f32::from(to) - f32::from(*from))).round() as u8;
        }
    }
    colours
}

impl Operator for PngSink {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        if folder.to_string_lossy().contains(NUMBER) {
            return Err(self.cannot("`{n}` is in the name of a folder: put it into the file name"));
        }
        // Create the first file now, so that an unwritable path is reported before the run.
        self.part = Some(PartFile::create(&self.target())?);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(chunk) = self.input.pop(cx) {
            self.take(&chunk)?;
        }
        Ok(Step::Wait)
    }

    fn restartable(&self) -> Result<(), Error> {
        not_restartable()
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        if ending == Ending::Failed {
            self.part = None;
            return Ok(());
        }
        // Numbered images are written already.
        if !self.numbered || self.size.is_some_and(|size| size.by_row) {
            self.write(!self.numbered && cx.sync_files())?;
        }
        self.part = None;
        if self.written == 0 {
            note::nothing_came(cx, &self.path);
        }
        note::lowest_colour(cx, self.not_finite);
        Ok(())
    }
}

/// Images to write.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PngSinkParameters {
    /// The file to write; missing folders are created. With `{n}` in the name, each image gets its own
    /// numbered file; otherwise only the last one is kept.
    path: PathBuf,
    /// Sample value shown as black; without it, the lowest of each image.
    #[serde(default)]
    min: Option<f32>,
    /// Sample value shown as white; without it, the highest of each image.
    #[serde(default)]
    max: Option<f32>,
    /// Colour map. `grey`: black to white. `heat`: black, violet, red, yellow, white.
    #[serde(default)]
    map: ColourMap,
    /// Rows per image, if each chunk is a single row.
    #[serde(default = "rows")]
    rows: u32,
}

fn rows() -> u32 {
    256
}

pub(super) fn kind() -> Kind {
    let make = |p: &PngSinkParameters, folders: &Folders| {
        PngSink::new(folders.output(&p.path)).map(p.map).scale(p.min, p.max)?.rows(p.rows)
    };
    Kind::new("png.sink", "draws frames or rows as PNG images", "path = \"frame-{n}.png\"", make)
}
