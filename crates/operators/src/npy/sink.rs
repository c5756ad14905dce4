//! Arrays to write.

use super::{axes, header, shape_text};
use crate::format::{Coding, FileSample, SampleWriter};
use crate::note;
use num_complex::Complex;
use onbeat_runtime::{Chunk, Context, Ending, Error, Folders, Input, Kind, Operator, Ports, Registry, Step};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Writes an array into an NPY file, as `<f4` or `<c8`: of one axis where chunks come without a shape, else
/// one of frames, all of the same shape, with time as the first axis.
///
/// The file is called "NAME.part" until it is complete, and its header has the right shape then. When the run
/// fails it goes away; when it is stopped, what came until then is kept. Samples that are not finite are
/// written as they are, counted, and noted at the end. Sample rate and tags are not written. Without a single
/// chunk there is no file.
pub struct NpySink<T: FileSample> {
    /// Samples or frames.
    pub input: Input<Chunk<T>>,
    path: PathBuf,
    writer: Option<SampleWriter>,
    shape: Option<[u32; 3]>,
    frames: u64,
}

impl<T: FileSample> NpySink<T> {
    /// Writes a file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        NpySink { input: Input::default(), path: path.into(), writer: None, shape: None, frames: 0 }
    }

    /// Counts what has come, which is of one shape.
    fn count(&mut self, chunk: &Chunk<T>) -> Result<(), Error> {
        let shape = chunk.info().shape;
        let known = *self.shape.get_or_insert(shape);
        let text = |shape| if axes(&shape).is_empty() { "none".to_string() } else { shape_text(&shape) };
        if shape != known {
            return Err(Error::new(format!(
                "cannot write {}: the shape of the chunks changed from {} to {}, and an array has one; write them into \
                 different files",
                self.path.display(),
                text(known),
                text(shape)
            )));
        }
        if axes(&shape).is_empty() {
            self.frames += chunk.len() as u64;
            return Ok(());
        }
        let samples: u64 = axes(&shape).iter().map(|&length| u64::from(length)).product();
        if chunk.len() as u64 != samples {
            return Err(Error::new(format!(
                "cannot write {}: a chunk of shape {} has {} samples, and {samples} belong to it; an operator before has \
                 changed one of both",
                self.path.display(),
                text(shape),
                chunk.len()
            )));
        }
        self.frames += 1;
        Ok(())
    }
}

impl<T: FileSample> Operator for NpySink<T> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        let mut writer = SampleWriter::create(&self.path, Coding::F32, false)?;
        writer.write_bytes(&[0; header::WRITTEN])?;
        self.writer = Some(writer);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(chunk) = self.input.pop(cx) else { return Ok(Step::Wait) };
        self.count(&chunk)?;
        if let Some(writer) = &mut self.writer {
            writer.write(&chunk)?;
        }
        Ok(Step::Wait)
    }

    fn restartable(&self) -> Result<(), Error> {
        crate::part::begins_anew()
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        let Some(mut writer) = self.writer.take().filter(|_| ending != Ending::Failed) else { return Ok(()) };
        let Some(shape) = self.shape else {
            note::nothing_came(cx, &self.path);
            return Ok(());
        };
        writer.sum_up(cx);
        writer.rewrite_begin(&header::write(T::PARTS, self.frames, axes(&shape)))?;
        writer.finish()
    }
}

/// An array to write.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The file, for `numpy.load`; folders that are missing are made.
    path: PathBuf,
}

fn sink<T: FileSample>(p: &Parameters, folders: &Folders) -> Result<NpySink<T>, Error> {
    Ok(NpySink::new(folders.output(&p.path)))
}

pub(super) fn add_kinds(registry: &mut Registry) {
    let (text, example) = ("writes an array for NumPy, frame by frame", "path = \"frames.npy\"");
    registry.add(Kind::new("npy.sink", text, example, sink::<f32>));
    registry.add(Kind::new("npy.sink.complex", text, example, sink::<Complex<f32>>));
}
