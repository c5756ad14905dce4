//! Recordings to write.

use super::meta;
use super::notes::Notes;
use crate::format::{FileSample, SampleFormat, SampleWriter, once};
use crate::iq::check_kind;
use crate::lanes::{Aligned, channel_inputs, one_or_all, show_inputs};
use crate::note;
use crate::part::{Part, begins_anew};
use num_complex::Complex;
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Folders, Input, Kind, Operator, Ports, Registry, Step, Tag,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

/// Writes a SigMF recording of one or more channels: samples in a [`SampleFormat`], their rate and checksum, and
/// tags as annotations and captures, on the same samples.
///
/// Both files are called "NAME.part" until they are complete; the metadata get their name last. When the run
/// fails both go away; when it is stopped, what came until then is kept. Without a single chunk there is no
/// recording. Annotations are kept in memory until the end.
///
/// Which tags make which annotation is told with [`SigmfSource`](crate::SigmfSource); any other tag becomes
/// an annotation with its key for a label and its value as `onbeat:value`, which `sigmf.source` makes the
/// same tag again. Several channels must have one sample rate, and end with the shortest; a tag that is not on all
/// of them becomes an annotation with its `onbeat:channel`.
pub struct SigmfSink<T: FileSample = Complex<f32>> {
    /// The samples of the only channel.
    pub input: Input<Chunk<T>>,
    /// Where there are several, the samples of each: `in0`, `in1`, ... in place of `in`.
    pub inputs: Vec<Input<Chunk<T>>>,
    streams: Aligned<T>,
    path: PathBuf,
    format: SampleFormat,
    description: Option<String>,
    files: Option<(SampleWriter, Part)>,
    rate_hz: Option<f64>,
    notes: Notes,
}

impl<T: FileSample> SigmfSink<T> {
    /// Writes a recording. The path is that of the `.sigmf-meta` or the `.sigmf-data`, or what both have in
    /// common.
    ///
    /// # Errors
    /// When the format is for samples of the other kind.
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
        })
    }

    /// How many channels come and are written.
    ///
    /// # Errors
    /// When it is not from 1 to 64.
    pub fn channels(mut self, channels: u64) -> Result<Self, Error> {
        self.inputs = channel_inputs(channels)?;
        self.streams = Aligned::new(channels as usize);
        Ok(self)
    }

    /// What is recorded, for people.
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
                    "cannot write {name}: the sample rate that came with the input is {rate_hz}: it must be a finite number \
                     from 0 on; correct it at the source"
                )));
            }
            Some(known) => {
                return Err(Error::new(format!(
                    "cannot write {name}: the sample rate changed from {known} Hz to {rate_hz} Hz, and a recording has one: \
                     resample before merging streams"
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

    /// The metadata of so many samples of each channel with this checksum.
    fn metadata(&mut self, samples: u64, sha512: String) -> String {
        let rate_hz = self.rate_hz.unwrap_or(0.0);
        let notes = std::mem::take(&mut self.notes);
        let mut global = json!({ "core:version": "1.2.0", "core:datatype": self.format.name() });
        if rate_hz > 0.0 {
            global["core:sample_rate"] = rate_hz.into();
        }
        global["core:num_channels"] = self.inputs.len().max(1).into();
        global["core:sha512"] = sha512.into();
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

impl<T: FileSample> Operator for SigmfSink<T> {
    fn ports(&mut self, p: &mut Ports) {
        show_inputs(p, &mut self.input, &mut self.inputs);
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        let (meta_path, data_path) = meta::paths(&self.path)?;
        let data = SampleWriter::create(&data_path, self.format.coding(), true)?;
        self.files = Some((data, Part::create(&meta_path)?));
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let inputs = one_or_all(&mut self.input, &mut self.inputs);
        let Some(count) = self.streams.take(inputs, cx)? else { return Ok(self.streams.wait(inputs, cx)) };
        self.check_rate(self.streams.rate_hz())?;
        self.take_tags(count);
        if let Some((data, _)) = &mut self.files {
            self.streams.frames(count, |samples| data.write(samples))?;
        }
        self.streams.consume(count);
        Ok(self.streams.rest())
    }

    fn restartable(&self) -> Result<(), Error> {
        begins_anew()
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        let Some((mut data, meta)) = self.files.take().filter(|_| ending != Ending::Failed) else {
            return Ok(());
        };
        if data.samples == 0 {
            note::nothing_came(cx, data.path());
            return Ok(());
        }
        data.sum_up(cx);
        if self.rate_hz == Some(0.0) {
            cx.note("no sample rate came with the input, so the recording has none");
        }
        let sha512 = data.sha512()?;
        let text = self.metadata(self.streams.taken(), sha512);
        let written = meta.handle()?.write_all(text.as_bytes());
        written.map_err(|error| {
            Error::with_source(format!("cannot write {}", meta.target().display()), error)
        })?;
        data.finish()?;
        meta.finish()
    }
}

/// A SigMF recording to write.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The recording: its `.sigmf-meta` or `.sigmf-data`, or what both names have in common; folders that are
    /// missing are made.
    path: PathBuf,
    /// How it has its samples: `cu8`, `ci8`, `ci16_le`, `cf32_le`; real ones `ru8`, `ri8`, `ri16_le`,
    /// `rf32_le`. Without it, as they are: floating point.
    #[serde(default)]
    format: Option<SampleFormat>,
    /// Interleaved channels. Where there are several, each has an input: `in0`, `in1`, ...
    #[serde(default = "once")]
    channels: u64,
    /// What is recorded, for people.
    #[serde(default)]
    description: Option<String>,
}

fn sink<T: FileSample>(p: &Parameters, folders: &Folders) -> Result<SigmfSink<T>, Error> {
    let float = if T::PARTS == 2 { SampleFormat::Cf32Le } else { SampleFormat::Rf32Le };
    let sink = SigmfSink::new(folders.output(&p.path), p.format.unwrap_or(float))?.channels(p.channels)?;
    Ok(match &p.description {
        Some(text) => sink.description(text),
        None => sink,
    })
}

pub(super) fn add_kinds(registry: &mut Registry) {
    let (text, example) = ("writes a SigMF recording, tags as annotations", "path = \"radio.sigmf-meta\"");
    registry.add(Kind::new("sigmf.sink", text, example, sink::<Complex<f32>>));
    registry.add(Kind::new("sigmf.sink.real", text, example, sink::<f32>));
}
