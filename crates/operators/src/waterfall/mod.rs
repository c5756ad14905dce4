//! Spectra over time, as an image with axes.

mod canvas;
mod ticks;

use crate::check;
use crate::note;
use crate::part::{PartFile, not_restartable};
use crate::png::{encode, heat};
use crate::spectral::{AXIS_FIRST, AXIS_STEP};
use canvas::{ADVANCE, BLACK, Canvas, HEIGHT};
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Folders, Hertz, Input, Kind, Operator, Ports, Registry, Step, Value,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use ticks::{ticks, unit};

/// Most rows and columns of an image.
const MOST: usize = 16384;
/// Minimum width and height of the plot area: smaller data are drawn with larger pixels.
const LEAST: (usize, usize) = (512, 256);
/// Margins of the plot area in pixels: left, top, right, bottom.
const LEFT: usize = 6 * ADVANCE + 12;
const ABOVE: usize = HEIGHT + 14;
const RIGHT: usize = 6 * ADVANCE + 48;
const BELOW: usize = HEIGHT + 16;
/// Sizes of the colour scale and of a tick.
const SCALE_WIDTH: usize = 16;
const TICK: usize = 5;
/// Default range between black and white in dB, used if only one limit is known.
const RANGE_DB: f32 = 60.0;

/// Draws the results of [`Spectrum`](crate::spectral::Spectrum): frequency to the right, time downwards,
/// power as colour, each with a scale. Every chunk is a row. The image shows the last rows and is written at
/// the end.
///
/// The tags `axis:first_hz` and `axis:step_hz` of the first chunk give the frequencies, relative to the
/// centre of the band unless its frequency is set. Without these tags columns are numbered, and without a
/// rate rows are numbered.
pub struct Waterfall {
    /// Spectra, one per chunk.
    pub input: Input<Chunk<f32>>,
    path: PathBuf,
    low: Option<f32>,
    high: Option<f32>,
    centre_hz: f64,
    rows: usize,
    part: Option<PartFile>,
    width: usize,
    /// The last rows; the oldest is at index `oldest`.
    samples: Vec<f32>,
    oldest: usize,
    /// Number of rows received.
    count: u64,
    /// Seconds per row; 0 if unknown.
    row_s: f64,
    /// Frequency of the first column, and step between columns, in hertz.
    axis: Option<(f64, f64)>,
    not_finite: u64,
}

impl Waterfall {
    /// Draws the last `rows` spectra.
    ///
    /// # Errors
    /// When `rows` is not from 1 to 16384.
    pub fn new(path: impl Into<PathBuf>, rows: usize) -> Result<Self, Error> {
        check::within("rows", rows as f64, 1.0, MOST as f64, "use a larger `average` to show a longer time")?;
        Ok(Waterfall {
            input: Input::default(),
            path: path.into(),
            low: None,
            high: None,
            centre_hz: 0.0,
            rows,
            part: None,
            width: 0,
            samples: Vec::new(),
            oldest: 0,
            count: 0,
            row_s: 0.0,
            axis: None,
            not_finite: 0,
        })
    }

    /// Sets the power shown as black and as white, in dB. Without `high`, white is the highest power; without
    /// `low`, black is 60 dB below `high`.
    ///
    /// # Errors
    /// When a limit is not finite, or the second is not above the first.
    pub fn scale(mut self, low: Option<f32>, high: Option<f32>) -> Result<Self, Error> {
        for (name, value) in [("min", low), ("max", high)] {
            check::finite(name, f64::from(value.unwrap_or(0.0)))?;
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

    /// Sets the frequency in the centre of the band, in hertz.
    ///
    /// # Errors
    /// When it is not finite.
    pub fn centre(mut self, centre_hz: f64) -> Result<Self, Error> {
        check::finite("centre", centre_hz)?;
        self.centre_hz = centre_hz;
        Ok(self)
    }

    fn take(&mut self, row: &Chunk<f32>) -> Result<(), Error> {
        if self.count == 0 {
            if row.is_empty() || row.len() > MOST {
                return Err(
                    self.cannot(&format!("a spectrum has from 1 to {MOST} columns, not {}", row.len()))
                );
            }
            self.width = row.len();
            self.row_s = if row.rate_hz() > 0.0 { row.len() as f64 / row.rate_hz() } else { 0.0 };
            let number = |key: &str| {
                let tag = row.tags().iter().find(|tag| &*tag.key == key)?;
                if let Value::Float(value) = tag.value { Some(value) } else { None }
            };
            self.axis = number(AXIS_FIRST).zip(number(AXIS_STEP));
        }
        if row.len() != self.width {
            let (now, first) = (row.len(), self.width);
            return Err(
                self.cannot(&format!("a spectrum of {now} columns arrived, but the first one had {first}"))
            );
        }
        self.not_finite += row.iter().map(|x| u64::from(!x.is_finite())).sum::<u64>();
        if self.samples.len() < self.rows * self.width {
            self.samples.extend_from_slice(row);
        } else {
            self.samples[self.oldest * self.width..][..self.width].copy_from_slice(row);
            self.oldest = (self.oldest + 1) % self.rows;
        }
        self.count += 1;
        Ok(())
    }

    fn cannot(&self, text: &str) -> Error {
        Error::new(format!("cannot draw {}: {text}", self.path.display()))
    }

    /// Returns the powers shown as black and as white.
    fn range(&self) -> (f32, f32) {
        let finite = self.samples.iter().copied().filter(|x| x.is_finite());
        let high = self.high.unwrap_or_else(|| finite.fold(f32::NEG_INFINITY, f32::max));
        let high = if high.is_finite() { high } else { 0.0 };
        let low = self.low.unwrap_or(high - RANGE_DB);
        // The highest power can be below the limit set for black.
        if low < high { (low, high) } else { (low, low + RANGE_DB) }
    }

    fn draw(&mut self) -> Canvas {
        self.samples.rotate_left(self.oldest * self.width);
        self.oldest = 0;
        let (columns, rows) = (self.width, self.samples.len() / self.width);
        let (wide, high) = (LEAST.0.div_ceil(columns).max(1), LEAST.1.div_ceil(rows).max(1));
        let (width, height) = (columns * wide, rows * high);
        let mut canvas = Canvas::new(LEFT + width + RIGHT, ABOVE + height + BELOW);
        canvas.fill((LEFT - 1, ABOVE - 1), (width + 2, height + 2), BLACK);
        let (range, colours) = (self.range(), heat());
        let span = f64::from(range.1) - f64::from(range.0);
        for (at, &x) in self.samples.iter().enumerate() {
            let level = if x.is_finite() { (f64::from(x) - f64::from(range.0)) / span * 255.0 } else { 0.0 };
            let place = (LEFT + at % columns * wide, ABOVE + at / columns * high);
            canvas.fill(place, (wide, high), colours[level.round() as u8 as usize]);
        }
        self.draw_frequencies(&mut canvas, wide, height);
        self.draw_times(&mut canvas, high, rows);
        draw_scale(&mut canvas, LEFT + width + 24, height, range, &colours);
        canvas
    }

    /// Draws the horizontal axis: the middle of a column is at its frequency.
    fn draw_frequencies(&self, canvas: &mut Canvas, wide: usize, height: usize) {
        let (first, step) =
            self.axis.map_or((0.0, 1.0), |(first_hz, step_hz)| (self.centre_hz + first_hz, step_hz));
        let last = first + step * (self.width - 1) as f64;
        let (name, unit) = if self.axis.is_some() { unit(first.abs().max(last.abs())) } else { ("", 1.0) };
        let row = ABOVE + height;
        for (value, label) in ticks(first / unit, last / unit, self.width * wide / (7 * ADVANCE)) {
            let column = (value * unit - first) / step;
            let x = LEFT + ((column + 0.5) * wide as f64) as usize;
            canvas.fill((x, row), (1, TICK), BLACK);
            let half = (label.chars().count() * ADVANCE - ADVANCE / 6) / 2;
            canvas.text(x.saturating_sub(half), row + TICK + 3, &label);
        }
        canvas.text(LEFT + self.width * wide + 24, row + TICK + 3, name);
    }

    /// Draws the vertical axis: the upper edge of a row is at its time.
    fn draw_times(&self, canvas: &mut Canvas, high: usize, rows: usize) {
        let (step, name) = if self.row_s > 0.0 { (self.row_s, "s") } else { (1.0, "") };
        let first = (self.count - rows as u64) as f64 * step;
        for (value, label) in ticks(first, first + rows as f64 * step, rows * high / (3 * HEIGHT)) {
            let y = ABOVE + ((value - first) / step * high as f64).round() as usize;
            canvas.fill((LEFT - TICK, y), (TICK, 1), BLACK);
            let length = label.chars().count() * ADVANCE;
            canvas.text((LEFT - TICK - 3).saturating_sub(length), y.saturating_sub(HEIGHT / 2), &label);
        }
        canvas.text(LEFT - TICK - 3 - ADVANCE, 2, name);
    }
}

/// Draws the colour scale to the right of the plot.
fn draw_scale(
    canvas: &mut Canvas,
    left: usize,
    height: usize,
    (low, high): (f32, f32),
    colours: &[canvas::Colour; 256],
) {
    canvas.fill((left - 1, ABOVE - 1), (SCALE_WIDTH + 2, height + 2), BLACK);
    for row in 0..height {
        let level = 255 - row * 255 / (height - 1).max(1);
        canvas.fill((left, ABOVE + row), (SCALE_WIDTH, 1), colours[level]);
    }
    let (low, high) = (f64::from(low), f64::from(high));
    for (value, label) in ticks(low, high, height / (3 * HEIGHT)) {
        let y = ABOVE + ((high - value) / (high - low) * (height - 1) as f64).round() as usize;
        canvas.fill((left + SCALE_WIDTH, y), (TICK, 1), BLACK);
        canvas.text(left + SCALE_WIDTH + TICK + 3, y.saturating_sub(HEIGHT / 2), &label);
    }
    canvas.text(left + SCALE_WIDTH + TICK + 3, 2, "dB");
}

impl Operator for Waterfall {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.part = Some(PartFile::create(&self.path)?);
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
        let Some(part) = self.part.take().filter(|_| ending != Ending::Failed) else { return Ok(()) };
        if self.count == 0 {
            note::nothing_came(cx, &self.path);
            return Ok(());
        }
        note::lowest_colour(cx, self.not_finite);
        let canvas = self.draw();
        let size = (canvas.width as u32, canvas.height as u32);
        encode(&part, size, png::ColorType::Rgb, &canvas.pixels)?;
        part.finish(cx.sync_files())
    }
}

/// Spectra to draw.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WaterfallParameters {
    /// The PNG file to write; missing folders are created.
    path: PathBuf,
    /// Power shown as black, in dB; without it, 60 dB below `max`.
    #[serde(default)]
    min: Option<f32>,
    /// Power shown as white, in dB; without it, the highest power.
    #[serde(default)]
    max: Option<f32>,
    /// Frequency in the centre of the band; without it, frequencies are relative to the centre.
    #[serde(default)]
    centre: Option<Hertz>,
    /// Number of spectra in the image: the last ones received.
    #[serde(default = "rows")]
    rows: usize,
}

fn rows() -> usize {
    512
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let make = |p: &WaterfallParameters, folders: &Folders| {
        let sink = Waterfall::new(folders.output(&p.path), p.rows)?.scale(p.min, p.max)?;
        sink.centre(p.centre.map_or(0.0, |centre| centre.0))
    };
    let text = "draws spectra over time, with axes";
    registry.add(Kind::new("waterfall.sink", text, "path = \"spectrum.png\"", make));
}
