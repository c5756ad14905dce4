//! Writes SigMF recordings.

use super::notes::Notes;
use super::place;
use crate::flush_timer::FlushTimer;
use crate::format::{FileSample, SampleFormat, SampleWriter, once};
use crate::iq::check_kind;
use crate::lanes::{channel_inputs, one_or_all, show_inputs};
use crate::note;
use crate::part::{PartFile, not_restartable};
use num_complex::Complex;
use onbeat_runtime::{
    Aligned, Chunk, Context, Ending, Error, Folders, Input, Kind, Operator, Ports, Registry, Step, Tag,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{Seek, Write};
use std::path::PathBuf;

/// Writes a SigMF recording of one or more channels: samples in a [`SampleFormat`], their rate and checksum,
/// and tags as annotations and captures on the same samples.
///
/// Both files are called "NAME.part" until they are complete; the metadata are renamed last. If the run
/// fails, both are left with what came before. If the process is killed, the data are left up to the last
/// second, with metadata that have no annotations and no checksum: annotations are kept in memory until the
/// end. If no chunk arrives, there is no recording.
///
/// [`SigmfSource`](crate::SigmfSource) describes which tags make up an annotation. Any other tag becomes an
/// annotation with its key as the label and its value as `onbeat:value`, from which `sigmf.source` restores
/// the tag. All channels must have the same sample rate; the recording ends with the shortest. A tag that is
/// not on all channels becomes an annotation with its `onbeat:channel`.
pub struct SigmfSink<T: FileSample = Complex<f32>> {
    /// Samples of the only channel.
    pub input: Input<Chunk<T>>,
    /// With several channels, one input each: `in0`, `in1`, ... instead of `in`.
    pub inputs: Vec<Input<Chunk<T>>>,
    streams: Aligned<T>,
    path: PathBuf,
    format: SampleFormat,
    description: Option<String>,
    files: Option<(SampleWriter, PartFile)>,
    rate_hz: Option<f64>,
    notes: Notes,
    flush: FlushTimer,
}

impl<T: FileSample> SigmfSink<T> {
    /// Writes a recording. The path is that of the `.sigmf-meta` or the `.sigmf-data`, or their common part.
    ///
    /// # Errors
    /// When the format is of the other sample type.
    pub fn new(path: impl Into<PathBuf>, format: SampleFormat) -> Result<Self, Error> {
        check_kind::<T>(format, "sigmf.sink")?;
        Ok(SigmfSink {
            input: Input::default(),
            inputs: Vec::new(),
            streams: Aligned::new(1),
            path: path.into(),
            format,
            description: None,
            files: None,
            rate_hz: None,
            notes: Notes::default(),
            flush: FlushTimer::default(),
        })
    }

    /// Sets the number of channels to write.
    ///
    /// # Errors
    /// When it is not from 1 to 64.
    pub fn channels(mut self, channels: u64) -> Result<Self, Error> {
        self.inputs = channel_inputs(channels)?;
        self.streams = Aligned::new(channels as usize);
        Ok(self)
    }

    /// Sets the description of the recording.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    fn check_rate(&mut self, rate_hz: f64) -> Result<(), Error> {
        let name = self.path.display();
        match self.rate_hz {
            Some(known) if known == rate_hz => {}
            None if rate_hz.is_finite() && rate_hz >= 0.0 => self.rate_hz = Some(rate_hz),
            None => {
                return Err(Error::new(format!(
                    "cannot write {name}: the sample rate of its input is {rate_hz}: it must be a finite \
                     number of at least 0; correct it at the source"
                )));
            }
            Some(known) => {
                return Err(Error::new(format!(
                    "cannot write {name}: the sample rate changed from {known} Hz to {rate_hz} Hz, but a \
                     recording has only one: resample before merging streams"
                )));
            }
        }
        Ok(())
    }

    /// Takes the tags of the next samples.
    fn take_tags(&mut self, count: usize) {
        let (at, notes, streams) = (self.streams.taken(), &mut self.notes, &self.streams);
        if self.inputs.is_empty() {
            return streams
                .tags(0, count)
                .for_each(|(offset, tag)| notes.take(at + offset as u64, None, tag));
        }
        let channels = self.inputs.len();
        let mut samples: BTreeMap<usize, Vec<Vec<&Tag>>> = BTreeMap::new();
        for channel in 0..channels {
            for (offset, tag) in streams.tags(channel, count) {
                samples.entry(offset).or_insert_with(|| vec![Vec::new(); channels])[channel].push(tag);
            }
        }
        for (offset, tags) in samples {
            notes.take_all(at + offset as u64, &tags);
        }
    }

    /// The metadata for this many samples per channel and this checksum; without it, those at the begin.
    fn metadata(&mut self, samples: u64, sha512: Option<String>) -> String {
        let rate_hz = self.rate_hz.unwrap_or(0.0);
        let notes = if sha512.is_some() { std::mem::take(&mut self.notes) } else { Notes::default() };
        let mut global = json!({ "core:version": "1.2.0", "core:datatype": self.format.name() });
        if rate_hz > 0.0 {
            global["core:sample_rate"] = rate_hz.into();
        }
        global["core:num_channels"] = self.inputs.len().max(1).into();
        if let Some(sha512) = sha512 {
            global["core:sha512"] = sha512.into();
        }
        global["core:recorder"] = "onbeat".into();
        if let Some(text) = &self.description {
            global["core:description"] = text.as_str().into();
        }
        if notes.is_extended() {
            global["core:extensions"] = json!([{ "name": "onbeat", "version": "1.0.0", "optional": true }]);
        }
        let (captures, annotations) = notes.finish(samples, rate_hz);
        format!("{:#}\n", json!({ "global": global, "captures": captures, "annotations": annotations }))
    }
}

/// Replaces the text of a file.
fn overwrite(part: &PartFile, text: &str) -> Result<(), Error> {
    let mut file = part.handle()?;
    let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(text.as_bytes()));
    written.map_err(|error| part.cannot_write(error))
}

impl<T: FileSample> Operator for SigmfSink<T> {
    fn ports(&mut self, p: &mut Ports) {
        show_inputs(p, &mut self.input, &mut self.inputs);
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        let (meta_path, data_path) = place::paths(&self.path)?;
        let data = SampleWriter::create(&data_path, self.format.coding(), true)?;
        self.files = Some((data, PartFile::create(&meta_path)?));
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some((data, _)) = self.files.as_mut().filter(|_| self.flush.is_due()) {
            data.flush()?;
        }
        let inputs = one_or_all(&mut self.input, &mut self.inputs);
        let wait = match self.streams.take(inputs, cx)? {
            None => self.streams.wait(inputs, cx),
            Some(count) => {
                let is_first = self.rate_hz.is_none();
                self.check_rate(self.streams.rate_hz())?;
                if is_first {
                    let text = self.metadata(0, None);
                    if let Some((_, meta)) = &self.files {
                        overwrite(meta, &text)?;
                    }
                }
                self.take_tags(count);
                if let Some((data, _)) = &mut self.files {
                    self.streams.frames(count, |samples| data.write(samples))?;
                }
                self.streams.consume(count);
                self.streams.rest()
            }
        };
        let is_buffered = self.files.as_ref().is_some_and(|(data, _)| data.is_buffered());
        Ok(self.flush.wait(is_buffered, wait, cx))
    }

    fn restartable(&self) -> Result<(), Error> {
        not_restartable()
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        let Some((mut data, meta)) = self.files.take() else { return Ok(()) };
        if ending == Ending::Failed && data.samples == 0 {
            return Ok(());
        }
        if ending == Ending::Failed {
            // What cannot be written was lost by the failure; the rest is there.
            if let Ok(sha512) = data.sha512() {
                let text = self.metadata(self.streams.taken(), Some(sha512));
                let _lost = overwrite(&meta, &text);
            }
            data.keep(cx);
            meta.keep(cx);
            return Ok(());
        }
        if data.samples == 0 {
            note::nothing_came(cx, data.path());
            return Ok(());
        }
        data.sum_up(cx);
        if self.rate_hz == Some(0.0) {
            cx.note("the input has no sample rate, so the recording has none");
        }
        let sha512 = data.sha512()?;
        let text = self.metadata(self.streams.taken(), Some(sha512));
        overwrite(&meta, &text)?;
        data.finish(cx)?;
        meta.finish(cx.sync_files())
    }
}

/// A SigMF recording to write.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SigmfSinkParameters {
    /// The recording: its `.sigmf-meta` or `.sigmf-data` file, or the common part of both names; missing
    /// folders are created.
    path: PathBuf,
    /// Sample format: `c` (complex) or `r` (real); then `u8`, `u16`, `u32` (unsigned), `i8`, `i16`, `i32`
    /// (signed),
    /// `f32` or `f64` (floating point); from 16 bits on, `_le` (low byte first) or `_be`. Example: `ci16_le`.
    /// Without it, floating point.
    #[serde(default)]
    format: Option<SampleFormat>,
    /// Interleaved channels. If there are several, each has its own input: `in0`, `in1`, ...
    #[serde(default = "once")]
    channels: u64,
    /// Description of the recording, for people.
    #[serde(default)]
    description: Option<String>,
}

fn sink<T: FileSample>(p: &SigmfSinkParameters, folders: &Folders) -> Result<SigmfSink<T>, Error> {
    let float = if T::PARTS == 2 { SampleFormat::Cf32Le } else { SampleFormat::Rf32Le };
    let sink = SigmfSink::new(folders.output(&p.path), p.format.unwrap_or(float))?.channels(p.channels)?;
    Ok(match &p.description {
        Some(text) => sink.description(text),
        None => sink,
    })
}

pub(super) fn add_kinds(registry: &mut Registry) {
    let (text, example) =
        ("writes a SigMF recording, with tags as annotations", "path = \"radio.sigmf-meta\"");
    registry.add(
        Kind::new("sigmf.sink", text, example, sink::<Complex<f32>>)
            .about(include_str!("../about/samples.md")),
    );
    registry.add(Kind::new("sigmf.sink.real", text, example, sink::<f32>));
}
