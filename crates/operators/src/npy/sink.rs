//! Writes NumPy arrays.

use super::{axes, header, shape_text};
use crate::format::{ArraySample, Coding, SampleWriter};
use crate::note;
use num_complex::Complex;
use onbeat_runtime::{Chunk, Context, Ending, Error, Folders, Input, Kind, Operator, Ports, Registry, Step};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Writes an array to an NPY file, as `<f4`, `<c8` or `|u1`. Chunks without a shape give an array with one
/// axis; chunks with a shape, which must all have the same, give an array of frames with time as the first
/// axis.
///
/// The file is called "NAME.part" until it is complete, and its header gets the right shape at the end. If
/// the run fails, that file is left with the frames so far. Samples that are not finite are written
/// unchanged; a note gives their number at the end. Sample rate and tags are not written. If no chunk
/// arrives, no file is created.
pub struct NpySink<T: ArraySample> {
    /// Samples or frames.
    pub input: Input<Chunk<T>>,
    path: PathBuf,
    writer: Option<SampleWriter>,
    shape: Option<[u32; 3]>,
    frames: u64,
}

impl<T: ArraySample> NpySink<T> {
    /// Writes a file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        NpySink { input: Input::default(), path: path.into(), writer: None, shape: None, frames: 0 }
    }

    /// Checks the shape of a chunk and counts its samples.
    fn count(&mut self, chunk: &Chunk<T>) -> Result<(), Error> {
        let shape = chunk.info().shape;
        let known = *self.shape.get_or_insert(shape);
        let text = |shape| if axes(&shape).is_empty() { "none".to_string() } else { shape_text(&shape) };
        if shape != known {
            return Err(Error::new(format!(
                "cannot write {}: the shape of the chunks changed from {} to {}, but an array has only one; \
                 write separate files",
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
                "cannot write {}: a chunk of shape {} has {} samples instead of {samples}; an operator \
                 upstream changed only one of both",
                self.path.display(),
                text(shape),
                chunk.len()
            )));
        }
        self.frames += 1;
        Ok(())
    }
}

impl<T: ArraySample> Operator for NpySink<T> {
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
        crate::part::not_restartable()
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        if ending == Ending::Failed {
            // The header makes it a file of the frames so far.
            if let Some(shape) = self.shape {
                let _lost = writer.rewrite_begin(&header::write::<T>(self.frames, axes(&shape)));
            }
            writer.keep(cx);
            return Ok(());
        }
        let Some(shape) = self.shape else {
            note::nothing_came(cx, &self.path);
            return Ok(());
        };
        writer.sum_up(cx);
        writer.rewrite_begin(&header::write::<T>(self.frames, axes(&shape)))?;
        writer.finish(cx)
    }
}

/// An array to write.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NpySinkParameters {
    /// The file to write, for `numpy.load`; missing folders are created.
    path: PathBuf,
}

fn sink<T: ArraySample>(p: &NpySinkParameters, folders: &Folders) -> Result<NpySink<T>, Error> {
    Ok(NpySink::new(folders.output(&p.path)))
}

pub(super) fn add_kinds(registry: &mut Registry) {
    let (text, example) = ("writes a NumPy array, frame by frame", "path = \"frames.npy\"");
    registry.add(Kind::new("npy.sink", text, example, sink::<f32>));
    registry.add(Kind::new("npy.sink.complex", text, example, sink::<Complex<f32>>));
    registry.add(Kind::new("npy.sink.bytes", text, example, sink::<u8>));
}
