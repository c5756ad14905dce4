//! Statistics of a stream.

use crate::check;
use crate::part::{PartFile, not_restartable};
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Folders, Input, Kind, Operator, Output, Ports, Seconds, Step,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Passes chunks on unchanged and reports statistics of their samples: number, minimum, maximum and root mean
/// square.
///
/// With a file, the operator writes one line of JSON per `every` seconds of the stream, and one for the
/// remainder. Without a file, it adds one note at the end. A stream without a sample rate gives one line, at
/// the end. The lines do not depend on chunk borders.
pub struct Tap {
    /// Chunks in.
    pub input: Input<Chunk<f32>>,
    /// The same chunks.
    pub out: Output<Chunk<f32>>,
    path: Option<PathBuf>,
    every_s: f64,
    part: Option<PartFile>,
    file: Option<BufWriter<File>>,
    rate_hz: Option<f64>,
    /// Samples per line.
    window: u64,
    statistics: Statistics,
    /// First sample of the current line.
    start: u64,
    ended: bool,
}

/// Sums over the finite samples; the others are counted.
#[derive(Debug, Clone, Copy, Default)]
struct Statistics {
    count: u64,
    not_finite: u64,
    min: f32,
    max: f32,
    squares: f64,
}

impl Statistics {
    fn take(&mut self, samples: &[f32]) {
        for &x in samples {
            if !x.is_finite() {
                self.not_finite += 1;
            } else if self.finite() == 0 {
                (self.min, self.max, self.squares) = (x, x, f64::from(x) * f64::from(x));
            } else {
                (self.min, self.max) = (self.min.min(x), self.max.max(x));
                self.squares += f64::from(x) * f64::from(x);
            }
            self.count += 1;
        }
    }

    fn finite(&self) -> u64 {
        self.count - self.not_finite
    }

    fn rms(&self) -> f64 {
        if self.finite() > 0 { (self.squares / self.finite() as f64).sqrt() } else { 0.0 }
    }
}

/// One line of the file.
#[derive(Serialize)]
struct TapLine {
    /// Number of the first sample.
    start: u64,
    /// Stream time of the first sample, in seconds; none without a sample rate.
    time_s: Option<f64>,
    /// Number of samples.
    count: u64,
    min: f32,
    max: f32,
    rms: f64,
    /// Number of samples that were not finite; the other figures exclude them.
    not_finite: u64,
}

impl Tap {
    /// Creates a tap that adds one note at the end.
    pub fn new() -> Self {
        Tap {
            input: Input::default(),
            out: Output::default(),
            path: None,
            every_s: 1.0,
            part: None,
            file: None,
            rate_hz: None,
            window: u64::MAX,
            statistics: Statistics::default(),
            start: 0,
            ended: false,
        }
    }

    /// Writes a file of lines, one per `every_s` seconds, instead of the note.
    ///
    /// # Errors
    /// When `every_s` is not a finite number above 0.
    pub fn file(mut self, path: impl Into<PathBuf>, every_s: f64) -> Result<Self, Error> {
        check::positive("every", every_s)?;
        self.path = Some(path.into());
        self.every_s = every_s;
        Ok(self)
    }

    fn take(&mut self, chunk: &Chunk<f32>) -> Result<(), Error> {
        if self.rate_hz.is_none() {
            self.rate_hz = Some(chunk.rate_hz());
            if self.file.is_some() && chunk.rate_hz() > 0.0 {
                self.window = ((chunk.rate_hz() * self.every_s).round() as u64).max(1);
            }
        }
        let mut rest = &chunk[..];
        while !rest.is_empty() {
            let left = self.window - self.statistics.count;
            let (now, later) = rest.split_at(left.min(rest.len() as u64) as usize);
            self.statistics.take(now);
            if self.statistics.count == self.window {
                self.write_line()?;
            }
            rest = later;
        }
        Ok(())
    }

    fn write_line(&mut self) -> Result<(), Error> {
        let Statistics { count, not_finite, min, max, .. } = self.statistics;
        let (Some(file), true) = (&mut self.file, count > 0) else { return Ok(()) };
        let time_s = self.rate_hz.filter(|&hz| hz > 0.0).map(|hz| self.start as f64 / hz);
        let line =
            TapLine { start: self.start, time_s, count, min, max, rms: self.statistics.rms(), not_finite };
        self.start += count;
        self.statistics = Statistics::default();
        // Flushed, so that the file can be read during the run.
        let written = serde_json::to_writer(&mut *file, &line).map_err(std::io::Error::from);
        let written = written.and_then(|()| file.write_all(b"\n")).and_then(|()| file.flush());
        written.map_err(|error| match &self.part {
            Some(part) => part.cannot_write(error),
            None => Error::with_source("cannot write", error),
        })
    }

    fn end(&mut self, cx: &mut Context) -> Result<(), Error> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(());
        }
        if self.file.is_some() {
            return self.write_line();
        }
        let Statistics { count, not_finite, min, max, .. } = self.statistics;
        let rms = self.statistics.rms();
        cx.note(format!("{count} samples: min {min}, max {max}, rms {rms:.6}, {not_finite} not finite"));
        Ok(())
    }
}

impl Default for Tap {
    fn default() -> Self {
        Tap::new()
    }
}

impl Operator for Tap {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        if let Some(path) = &self.path {
            let part = PartFile::create(path)?;
            self.file = Some(BufWriter::new(part.handle()?));
            self.part = Some(part);
        }
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(chunk) = self.input.pop(cx) {
            self.take(&chunk)?;
            self.out.push(cx, chunk)?;
        }
        if self.input.is_ended(cx) {
            self.end(cx)?;
        }
        Ok(Step::Wait)
    }

    fn restartable(&self) -> Result<(), Error> {
        not_restartable()
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        let (part, file) = (self.part.take(), self.file.take());
        let (Some(part), Some(mut file)) = (part, file) else { return Ok(()) };
        let written = file.flush();
        if ending == Ending::Failed {
            part.keep(cx);
            return Ok(());
        }
        written.map_err(|error| part.cannot_write(error))?;
        part.finish(cx.sync_files())
    }
}

/// Statistics of the passing samples.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TapParameters {
    /// A file for lines of JSON; without it, one note at the end of the run.
    #[serde(default)]
    path: Option<PathBuf>,
    /// Seconds of stream time per line.
    #[serde(default = "second")]
    every: Seconds,
}

fn second() -> Seconds {
    Seconds(1.0)
}

pub(crate) fn kind() -> Kind {
    Kind::new(
        "tap",
        "passes samples on and reports their statistics",
        "",
        |p: &TapParameters, folders: &Folders| match &p.path {
            Some(path) => Tap::new().file(folders.output(path), p.every.0),
            None => Ok(Tap::new()),
        },
    )
}
