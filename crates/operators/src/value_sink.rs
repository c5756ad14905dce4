//! A sink for single values.

use crate::flush_timer::FlushTimer;
use crate::format::once;
use crate::part::{PartFile, not_restartable};
use onbeat_runtime::{Context, Ending, Error, Folders, Input, Kind, Operator, Ports, Step};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Summarises single values: at the end, a note gives their number, and the lowest, highest and last finite
/// value. With a file, the sink writes every n-th value as a line `seconds,value`.
pub struct ValueSink {
    /// Values.
    pub input: Input<f64>,
    path: Option<PathBuf>,
    every: u64,
    file: Option<(BufWriter<File>, PartFile)>,
    flush: FlushTimer,
    count: u64,
    finite: u64,
    least: f64,
    most: f64,
    last: f64,
}

impl ValueSink {
    /// Writes every `every`-th value to `path`.
    ///
    /// # Errors
    /// When `every` is 0.
    pub fn new(path: Option<PathBuf>, every: u64) -> Result<Self, Error> {
        if every == 0 {
            return Err(Error::new("`every` is 0: it must be 1 or more"));
        }
        Ok(ValueSink {
            input: Input::default(),
            path,
            every,
            file: None,
            flush: FlushTimer::default(),
            count: 0,
            finite: 0,
            least: f64::INFINITY,
            most: f64::NEG_INFINITY,
            last: 0.0,
        })
    }

    fn write(&mut self, time_ns: u64, value: f64) -> Result<(), Error> {
        let Some((file, part)) = &mut self.file else { return Ok(()) };
        writeln!(file, "{:.9},{value}", time_ns as f64 / 1e9).map_err(|error| part.cannot_write(error))
    }
}

impl Operator for ValueSink {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        if let Some(path) = &self.path {
            let part = PartFile::create(path)?;
            let mut file = BufWriter::new(part.handle()?);
            writeln!(file, "time_s,value").map_err(|error| Error::new(error.to_string()))?;
            self.file = Some((file, part));
        }
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some((file, part)) = self.file.as_mut().filter(|_| self.flush.is_due()) {
            file.flush().map_err(|error| part.cannot_write(error))?;
        }
        if let Some(value) = self.input.pop(cx) {
            if self.count.is_multiple_of(self.every) {
                self.write(cx.stamp().time_ns, value)?;
            }
            self.count += 1;
            if value.is_finite() {
                self.finite += 1;
                (self.least, self.most, self.last) = (self.least.min(value), self.most.max(value), value);
            }
        } else if self.input.is_ended(cx) {
            return Ok(Step::Done);
        }
        let is_buffered = self.file.as_ref().is_some_and(|(file, _)| !file.buffer().is_empty());
        Ok(self.flush.wait(is_buffered, Step::Wait, cx))
    }

    fn restartable(&self) -> Result<(), Error> {
        not_restartable()
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        if self.finite > 0 {
            let Self { count, least, most, last, .. } = self;
            cx.note(format!("{count} values from {least:.6} to {most:.6}, the last {last:.6}"));
        }
        if self.count > self.finite {
            cx.note(format!("{} values were not finite", self.count - self.finite));
        }
        if let Some((mut file, part)) = self.file.take() {
            let written = file.flush();
            if ending == Ending::Failed {
                if self.count > 0 {
                    part.keep(cx);
                }
                return Ok(());
            }
            written.map_err(|error| part.cannot_write(error))?;
            part.finish(cx.sync_files())?;
        }
        Ok(())
    }
}

/// A sink for single values.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ValueParameters {
    /// A CSV file in the output folder; without it, values are only summarised.
    #[serde(default)]
    path: Option<PathBuf>,
    /// Write every n-th value.
    #[serde(default = "once")]
    every: u64,
}

pub(crate) fn kind() -> Kind {
    let sink = |p: &ValueParameters, folders: &Folders| {
        ValueSink::new(p.path.as_ref().map(|path| folders.output.join(path)), p.every)
    };
    Kind::new("value.sink", "summarises values, and optionally writes them to a file", "", sink)
}
