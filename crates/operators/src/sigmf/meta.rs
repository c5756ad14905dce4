//! Reading and checking of a recording's metadata.

use super::keys;
use crate::format::{FileMark, FileSample, SampleFormat};
use onbeat_runtime::{Error, Value};
use serde::Deserialize;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A metadata file.
pub(super) struct SigmfMeta {
    path: PathBuf,
    file: MetaFile,
    odd: Vec<String>,
}

#[derive(Deserialize)]
struct MetaFile {
    global: Global,
    #[serde(default)]
    captures: Vec<Capture>,
    #[serde(default)]
    annotations: Vec<Annotation>,
}

#[derive(Deserialize)]
struct Global {
    #[serde(rename = "core:version")]
    version: Option<String>,
    #[serde(rename = "core:datatype")]
    datatype: Option<String>,
    #[serde(rename = "core:sample_rate")]
    sample_rate: Option<f64>,
    #[serde(rename = "core:num_channels")]
    num_channels: Option<u64>,
    #[serde(rename = "core:sha512")]
    sha512: Option<String>,
    #[serde(rename = "core:dataset")]
    dataset: Option<String>,
    #[serde(rename = "core:metadata_only", default)]
    metadata_only: bool,
    #[serde(rename = "core:offset", default)]
    offset: u64,
    #[serde(rename = "core:trailing_bytes", default)]
    trailing_bytes: u64,
    #[serde(rename = "core:extensions", default)]
    extensions: Vec<Extension>,
}

#[derive(Deserialize)]
struct Extension {
    name: String,
    #[serde(default)]
    optional: bool,
}

#[derive(Deserialize)]
struct Capture {
    #[serde(rename = "core:sample_start")]
    sample_start: u64,
    #[serde(rename = "core:header_bytes", default)]
    header_bytes: u64,
    #[serde(rename = "core:frequency")]
    frequency: Option<f64>,
    #[serde(rename = "core:datetime")]
    datetime: Option<String>,
}

#[derive(Deserialize)]
struct Annotation {
    #[serde(rename = "core:sample_start")]
    sample_start: u64,
    #[serde(rename = "core:sample_count", default)]
    sample_count: u64,
    #[serde(rename = "core:label")]
    label: Option<String>,
    #[serde(rename = "core:comment", default)]
    comment: String,
    #[serde(rename = "core:freq_lower_edge")]
    freq_lower_edge: Option<f64>,
    #[serde(rename = "core:freq_upper_edge")]
    freq_upper_edge: Option<f64>,
    #[serde(rename = "core:generator")]
    generator: Option<String>,
    #[serde(rename = "core:uuid")]
    uuid: Option<String>,
    #[serde(rename = "onbeat:value")]
    value: Option<serde_json::Value>,
    #[serde(rename = "onbeat:channel")]
    channel: Option<u64>,
}

impl Annotation {
    /// Tags of the mark, in an order from which the sink restores the same annotation. It lasts for at most
    /// `most` samples.
    fn tags(&self, rate_hz: f64, most: u64) -> Vec<(&str, Value)> {
        let label = self.label.as_deref();
        if let (Some(key), Some(value)) = (label, &self.value) {
            return vec![(key, value_of(value))];
        }
        let text = |key, text: &Option<String>| text.as_deref().map(|text| (key, Value::from(text)));
        let number = |key, number: Option<f64>| number.map(|number| (key, Value::from(number)));
        let first = match label {
            Some(label) => (keys::LABEL, label.into()),
            None => (keys::ANNOTATION, self.comment.as_str().into()),
        };
        let comment = label.is_some() && !self.comment.is_empty();
        let lasts = self.sample_count > 0;
        let others = [
            comment.then(|| (keys::COMMENT, self.comment.as_str().into())),
            lasts.then(|| (keys::DURATION, (self.sample_count.min(most) as f64 / rate_hz).into())),
            number(keys::LOWER_EDGE, self.freq_lower_edge),
            number(keys::UPPER_EDGE, self.freq_upper_edge),
            text(keys::GENERATOR, &self.generator),
            text(keys::UUID, &self.uuid),
        ];
        std::iter::once(first).chain(others.into_iter().flatten()).collect()
    }
}

/// Value of a tag, as the sink wrote it.
fn value_of(json: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match json {
        Json::Bool(value) => (*value).into(),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().unwrap_or(f64::NAN).into(),
        },
        Json::String(text) => text.as_str().into(),
        other => other.to_string().into(),
    }
}

impl SigmfMeta {
    /// Reads the text of a metadata file and checks all that can be checked without the data.
    pub fn read(path: &Path, text: &str) -> Result<Self, Error> {
        let file = serde_json::from_str(text).map_err(|error| {
            Error::with_source(format!("{} is not SigMF metadata", path.display()), error)
        })?;
        let mut meta = SigmfMeta { path: path.to_owned(), file, odd: Vec::new() };
        meta.check_global()?;
        meta.check_captures()?;
        Ok(meta)
    }

    fn check_global(&mut self) -> Result<(), Error> {
        let global = &self.file.global;
        if global.metadata_only {
            return Err(self.error("`core:metadata_only` is true: there are no samples to play"));
        }
        if global.version.is_none() {
            self.odd.push("`core:version` is missing".into());
        }
        for needed in global.extensions.iter().filter(|extension| !extension.optional) {
            self.odd.push(format!(
                "`core:extensions` says that `{}` is needed to read it, which is unknown here: the samples are played \
                 as the other fields describe them",
                needed.name
            ));
        }
        Ok(())
    }

    fn check_captures(&mut self) -> Result<(), Error> {
        let captures = &self.file.captures;
        if let Some(at) = captures.windows(2).position(|pair| pair[1].sample_start < pair[0].sample_start) {
            let (one, other) = (captures[at].sample_start, captures[at + 1].sample_start);
            if captures.iter().any(|capture| capture.header_bytes > 0) {
                return Err(self.error(format!(
                    "`core:sample_start` of capture {} is {other}, before the {one} of the capture before it: captures \
                     with `core:header_bytes` must be sorted",
                    at + 1,
                )));
            }
            self.odd.push(format!("its captures are not sorted: one at {other} follows one at {one}"));
        }
        Ok(())
    }

    /// Name of the file with the samples, if it is not that of the metadata with another ending.
    pub fn dataset(&self) -> Option<&str> {
        self.file.global.dataset.as_deref()
    }

    /// The bytes that are samples, within those of the data file: headers of captures and trailing bytes are
    /// none. `frame`: bytes of one sample of each channel.
    pub fn pieces(&mut self, data: Range<u64>, frame: u64) -> Result<Vec<Range<u64>>, Error> {
        let bytes = data.end - data.start;
        let trailing = self.file.global.trailing_bytes;
        let headers: u64 =
            self.file.captures.iter().fold(0, |sum, capture| capture.header_bytes.saturating_add(sum));
        let Some(all) = bytes.checked_sub(trailing.saturating_add(headers)) else {
            return Err(self.error(format!(
                "`core:header_bytes` and `core:trailing_bytes` are {} together, and the data file has {bytes} bytes: it \
                 is truncated, or belongs to another recording",
                trailing.saturating_add(headers)
            )));
        };
        if all < frame {
            return Err(self.error("the data file is empty: there are no samples to play"));
        }
        if all % frame > 0 {
            self.odd.push(format!(
                "the data file has {bytes} bytes, which is not a whole number of samples of {frame} bytes: the last {} \
                 are not played; the file is truncated, or its samples are of another type",
                all % frame
            ));
        }
        let first = self.file.global.offset;
        let (mut pieces, mut at, mut left) = (Vec::new(), data.start, all - all % frame);
        let mut sample = first;
        for capture in self.file.captures.iter().filter(|capture| capture.header_bytes > 0) {
            let before = capture.sample_start.saturating_sub(sample).saturating_mul(frame).min(left);
            pieces.push(at..at + before);
            (left, sample) = (left - before, capture.sample_start.max(sample));
            at += before + capture.header_bytes;
        }
        pieces.push(at..at + left);
        pieces.retain(|piece| !piece.is_empty());
        Ok(pieces)
    }

    /// Oddities of the metadata that do not prevent playing it.
    pub fn take_odd(&mut self) -> Vec<String> {
        let name = self.path.display();
        self.odd.drain(..).map(|text| format!("{name}: {text}")).collect()
    }

    /// The sample format of the data, which must match the sample type `T`.
    pub fn format<T: FileSample>(&self) -> Result<SampleFormat, Error> {
        let Some(name) = self.file.global.datatype.as_deref() else {
            return Err(self.error("`core:datatype` is missing: it is not SigMF metadata, or not complete"));
        };
        let Some(format) = SampleFormat::named(name) else {
            let known = SampleFormat::ALL.map(SampleFormat::name).join(", ");
            return Err(self.error(format!(
                "`core:datatype` is `{name}`, which is not supported: supported are {known}; convert it"
            )));
        };
        if format.parts() != T::PARTS {
            let (are, kind) =
                if T::PARTS == 2 { ("real", "sigmf.source.real") } else { ("complex", "sigmf.source") };
            return Err(self.error(format!(
                "`core:datatype` is `{name}`: its samples are {are}; play it with `{kind}`"
            )));
        }
        Ok(format)
    }

    /// Interleaved channels in the data.
    pub fn channels(&self) -> u64 {
        self.file.global.num_channels.unwrap_or(1)
    }

    /// Samples per second: the user's value if given, otherwise that of the metadata.
    pub fn rate_hz(&self, given: Option<f64>) -> Result<f64, Error> {
        let fix = "correct it, or give `sample_rate` at the source";
        match given.or(self.file.global.sample_rate) {
            Some(rate_hz) if rate_hz.is_finite() && rate_hz > 0.0 => Ok(rate_hz),
            Some(rate_hz) => Err(self.error(format!(
                "`core:sample_rate` is {rate_hz}: it must be a finite number above 0; {fix}"
            ))),
            None => Err(self.error(format!("`core:sample_rate` is missing; {fix}"))),
        }
    }

    /// The checksum of the data in hexadecimal digits, if there is one.
    pub fn sha512(&self) -> Option<&str> {
        self.file.global.sha512.as_deref()
    }

    /// Marks for captures and annotations, sorted by sample. Marks beyond the samples are left out.
    pub fn marks(&mut self, samples: u64, rate_hz: f64) -> Result<Vec<FileMark>, Error> {
        let (first, channels) = (self.file.global.offset, self.channels());
        // All indices count from that of the first sample.
        let within = |index: u64| index.checked_sub(first).filter(|sample| *sample < samples);
        let (mut marks, mut beyond) = (Vec::new(), Vec::new());
        for (at, capture) in self.file.captures.iter().enumerate() {
            let Some(sample) = within(capture.sample_start) else {
                beyond.push(format!("capture {at} at sample {}", capture.sample_start));
                continue;
            };
            let mut mark = |key: &str, value: Value| {
                marks.push(FileMark { sample, channel: None, key: key.into(), value });
            };
            if let Some(hz) = capture.frequency {
                mark(keys::FREQUENCY, hz.into());
            }
            if let Some(datetime) = &capture.datetime {
                mark(keys::DATETIME, datetime.as_str().into());
            }
        }
        for (at, annotation) in self.file.annotations.iter().enumerate() {
            let name = annotation.label.as_ref().map_or(String::new(), |label| format!(" (`{label}`)"));
            let Some(sample) = within(annotation.sample_start) else {
                beyond.push(format!("annotation {at}{name} at sample {}", annotation.sample_start));
                continue;
            };
            let channel = annotation.channel;
            if let Some(channel) = channel.filter(|&channel| channel >= channels) {
                return Err(self.error(format!(
                    "`onbeat:channel` of annotation {at} is {channel}: there are {channels}, counted from 0"
                )));
            }
            let tags = annotation.tags(rate_hz, samples - sample).into_iter();
            marks.extend(tags.map(|(key, value)| FileMark { sample, channel, key: key.into(), value }));
            if annotation.sample_count > samples - sample {
                beyond.push(format!("the end of annotation {at}{name}"));
            }
        }
        if let Some(one) = beyond.first() {
            let more =
                if beyond.len() > 1 { format!(" and {} more", beyond.len() - 1) } else { String::new() };
            self.odd.push(format!(
                "the metadata contradict the data: {one}{more} lies outside of the {samples} samples and is left out; \
                 they are truncated, or belong to another recording"
            ));
        }
        // A stable sort: marks of one sample stay in the order of the file.
        marks.sort_by_key(|mark| mark.sample);
        Ok(marks)
    }

    /// An error about this file.
    pub fn error(&self, text: impl std::fmt::Display) -> Error {
        Error::new(format!("{}: {text}", self.path.display()))
    }
}
