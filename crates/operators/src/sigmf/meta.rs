//! Reading and checking of a recording's metadata.

use super::keys;
use crate::format::{FileMark, FileSample, SampleFormat, read_text};
use onbeat_runtime::{Error, Value};
use serde::Deserialize;
use std::path::{Path, PathBuf};

const META: &str = ".sigmf-meta";
const DATA: &str = ".sigmf-data";

/// Paths of metadata and data, from either path or their common part.
pub(super) fn paths(path: &Path) -> Result<(PathBuf, PathBuf), Error> {
    let text = path.to_string_lossy();
    for other in [".sigmf", ".sigmf-collection"] {
        if text.ends_with(other) {
            return Err(Error::new(format!(
                "{text}: `{other}` files are not supported: unpack it, and give the `{META}` of one \
                 recording"
            )));
        }
    }
    let base = text.strip_suffix(META).or(text.strip_suffix(DATA));
    // A name without a known ending is used as it is, whatever bytes it has.
    let with = |ending: &str| match base {
        Some(base) => PathBuf::from(format!("{base}{ending}")),
        None => {
            let mut name = path.as_os_str().to_os_string();
            name.push(ending);
            PathBuf::from(name)
        }
    };
    Ok((with(META), with(DATA)))
}

/// A metadata file.
pub(super) struct SigmfMeta {
    path: PathBuf,
    file: MetaFile,
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
    /// Tags of the mark, in an order from which the sink restores the same annotation.
    fn tags(&self, rate_hz: f64) -> Vec<(&str, Value)> {
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
            lasts.then(|| (keys::DURATION, (self.sample_count as f64 / rate_hz).into())),
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
    /// Reads a metadata file and checks all that can be checked without the data.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = read_text(path)?;
        let file = serde_json::from_str(&text).map_err(|error| {
            Error::with_source(format!("{} is not SigMF metadata", path.display()), error)
        })?;
        let meta = SigmfMeta { path: path.to_owned(), file };
        meta.check_global()?;
        meta.check_captures()?;
        Ok(meta)
    }

    fn check_global(&self) -> Result<(), Error> {
        let global = &self.file.global;
        if global.version.is_none() {
            return Err(self.error("`core:version` is missing: it is not SigMF metadata, or not complete"));
        }
        if global.metadata_only {
            return Err(self.error("`core:metadata_only` is true: there are no samples to play"));
        }
        if global.dataset.is_some() || global.trailing_bytes > 0 {
            return Err(self.error(
                "`core:dataset` or `core:trailing_bytes` is present: data files of other formats are not \
                 supported; convert it to a plain `.sigmf-data`",
            ));
        }
        match global.extensions.iter().find(|extension| !extension.optional) {
            Some(needed) => Err(self.error(format!(
                "`core:extensions` says that the data cannot be read without `{}`, which is not supported",
                needed.name
            ))),
            None => Ok(()),
        }
    }

    fn check_captures(&self) -> Result<(), Error> {
        let captures = &self.file.captures;
        if let Some(at) = captures.iter().position(|capture| capture.header_bytes > 0) {
            return Err(self.error(format!(
                "`core:header_bytes` of capture {at} is {}: only data without headers are supported",
                captures[at].header_bytes
            )));
        }
        if let Some(at) = captures.windows(2).position(|pair| pair[1].sample_start < pair[0].sample_start) {
            return Err(self.error(format!(
                "`core:sample_start` of capture {} is {}, before the {} of the capture before it: captures \
                 must be sorted",
                at + 1,
                captures[at + 1].sample_start,
                captures[at].sample_start
            )));
        }
        Ok(())
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

    /// Marks for captures and annotations, sorted by sample.
    pub fn marks(&self, samples: u64, rate_hz: f64) -> Result<Vec<FileMark>, Error> {
        let contradicts = |what: String| {
            Err(self.error(format!(
                "the metadata contradict the data: {what}, but the data have {samples} samples: they are \
                 truncated or belong to another recording"
            )))
        };
        let mut marks = Vec::new();
        for (at, capture) in self.file.captures.iter().enumerate() {
            let sample = capture.sample_start;
            if sample >= samples {
                return contradicts(format!("capture {at} begins at sample {sample}"));
            }
            if let Some(hz) = capture.frequency {
                marks.push(FileMark { sample, channel: None, key: keys::FREQUENCY.into(), value: hz.into() });
            }
            if let Some(datetime) = &capture.datetime {
                marks.push(FileMark {
                    sample,
                    channel: None,
                    key: keys::DATETIME.into(),
                    value: datetime.as_str().into(),
                });
            }
        }
        for (at, annotation) in self.file.annotations.iter().enumerate() {
            let (sample, label) = (annotation.sample_start, annotation.label.as_deref());
            // An annotation without a length marks at least its first sample.
            let end = sample.saturating_add(annotation.sample_count.max(1));
            if end > samples {
                let name = label.map_or(String::new(), |label| format!(" (`{label}`)"));
                return contradicts(format!("annotation {at}{name} ends with sample {}", end - 1));
            }
            let (tags, channel) = (annotation.tags(rate_hz), annotation.channel);
            if let Some(channel) = channel.filter(|&channel| channel >= self.channels()) {
                return Err(self.error(format!(
                    "`onbeat:channel` of annotation {at} is {channel}: there are {}, counted from 0",
                    self.channels()
                )));
            }
            marks.extend(tags.into_iter().map(|(key, value)| FileMark {
                sample,
                channel,
                key: key.into(),
                value,
            }));
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
