//! Writes frames of bytes as PNG pictures.

use super::encode;
use super::pattern::NumberedPath;
use crate::note;
use crate::npy::{axes, shape_text};
use crate::part::{PartFile, not_restartable};
use onbeat_runtime::{Chunk, Context, Ending, Error, Folders, Input, Kind, Operator, Ports, Step};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Writes grey and RGB frames of bytes as PNG pictures, without loss: a picture has the samples of its frame.
///
/// With `{n}` or `%05d` in its name, each frame goes to its own file, numbered from 0 on, which appears as
/// soon as it is complete. `{n}` is a number of six digits. These files stay even if the run fails later.
/// Without a number there is one file, with the last frame. It is called "NAME.part" until the end, and is
/// removed if the run fails. Frames can have different sizes. Each picture allocates memory.
pub struct PngFrameSink {
    /// The frames.
    pub input: Input<Chunk<u8>>,
    path: PathBuf,
    numbered: Option<NumberedPath>,
    /// The next file.
    part: Option<PartFile>,
    written: u64,
    /// The last frame, if only that is written.
    last: Option<Chunk<u8>>,
}

impl PngFrameSink {
    /// Writes to a file, or to one file for each frame.
    ///
    /// # Errors
    /// If the number is in the name of a folder, or there are two numbers.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let numbered = NumberedPath::find(&path)?;
        Ok(PngFrameSink { input: Input::default(), path, numbered, part: None, written: 0, last: None })
    }

    fn target(&self) -> PathBuf {
        self.numbered.as_ref().map_or_else(|| self.path.clone(), |numbered| numbered.with(self.written))
    }

    fn look(&self, frame: &Chunk<u8>) -> Result<((u32, u32), png::ColorType), Error> {
        picture(frame).map_err(|error| Error::new(format!("cannot write {}: {error}", self.path.display())))
    }

    /// Writes a picture. Numbered ones are written while other operators wait for their turn, so they are not
    /// synced to disk.
    fn write(&mut self, frame: &Chunk<u8>, syncs: bool) -> Result<(), Error> {
        let (size, colour) = self.look(frame)?;
        let part = match self.part.take() {
            Some(part) => part,
            None => PartFile::create(&self.target())?,
        };
        encode(&part, size, colour, frame)?;
        part.finish(syncs)?;
        self.written += 1;
        Ok(())
    }
}

/// Size and colour of the picture of a frame. The error is for users; the caller adds the file.
pub(super) fn picture(frame: &Chunk<u8>) -> Result<((u32, u32), png::ColorType), Error> {
    let shape = frame.info().shape;
    let (rows, columns, channels) = match *axes(&shape) {
        [rows, columns] => (rows, columns, 1),
        [rows, columns, channels @ (1 | 3)] => (rows, columns, channels),
        [] => return Err(Error::new("a chunk has no shape: send frames of rows × columns")),
        _ => {
            return Err(Error::new(format!(
                "a frame of shape {} is not a picture: send frames of rows × columns or of rows × columns × 3",
                shape_text(&shape)
            )));
        }
    };
    if rows as usize * columns as usize * channels as usize != frame.len() {
        return Err(Error::new(format!(
            "a frame of shape {} has {} samples, which does not match its shape",
            shape_text(&shape),
            frame.len()
        )));
    }
    let colour = if channels == 3 { png::ColorType::Rgb } else { png::ColorType::Grayscale };
    Ok(((columns, rows), colour))
}

impl Operator for PngFrameSink {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        // Create the first file now, so that an unwritable path is reported before the run.
        self.part = Some(PartFile::create(&self.target())?);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(frame) = self.input.pop(cx) else { return Ok(Step::Wait) };
        if self.numbered.is_some() {
            self.write(&frame, false)?;
        } else {
            self.look(&frame)?;
            self.last = Some(frame);
        }
        Ok(Step::Wait)
    }

    fn restartable(&self) -> Result<(), Error> {
        not_restartable()
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        let last = self.last.take().filter(|_| ending != Ending::Failed);
        let written = last.map_or(Ok(()), |frame| self.write(&frame, cx.sync_files()));
        self.part = None;
        written?;
        if self.written == 0 && ending != Ending::Failed {
            note::nothing_came(cx, &self.path);
        }
        Ok(())
    }
}

/// Pictures to write.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PngFrameSinkParameters {
    /// The file to write; missing folders are created. With `{n}` or `%05d` in the name, each frame gets its
    /// own numbered file, from 0 on; otherwise only the last one is kept.
    path: PathBuf,
}

pub(super) fn kind() -> Kind {
    let make = |p: &PngFrameSinkParameters, folders: &Folders| PngFrameSink::new(folders.output(&p.path));
    Kind::new("png.sink.bytes", "writes frames as PNG images, without loss", "path = \"frame-{n}.png\"", make)
}
