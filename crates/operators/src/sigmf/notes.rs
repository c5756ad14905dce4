//! Conversion of a stream's tags to captures and annotations.

use super::keys;
use onbeat_runtime::{Tag, Value};
use serde_json::{Map, Value as Json, json};

/// Collects tags; the module's documentation has the table.
#[derive(Default)]
pub(super) struct Notes {
    captures: Vec<(u64, Map<String, Json>)>,
    annotations: Vec<TagAnnotation>,
}

struct TagAnnotation {
    sample: u64,
    /// The channel, if the annotation is not for all.
    channel: Option<u64>,
    duration_s: Option<f64>,
    fields: Map<String, Json>,
    /// Whether following tags on the same sample can belong to it.
    open: bool,
}

impl Notes {
    /// Takes the tags of one sample of several channels. A tag on all channels is taken once.
    pub fn take_all(&mut self, sample: u64, channels: &[Vec<&Tag>]) {
        let same = |a: &[&Tag], b: &[&Tag]| {
            a.iter().map(|tag| (&tag.key, &tag.value)).eq(b.iter().map(|tag| (&tag.key, &tag.value)))
        };
        if channels.windows(2).all(|pair| same(&pair[0], &pair[1])) {
            channels.iter().take(1).flatten().for_each(|tag| self.take(sample, None, tag));
            return;
        }
        for (channel, tags) in (0..).zip(channels) {
            tags.iter().for_each(|tag| self.take(sample, Some(channel), tag));
        }
    }

    /// Takes a tag on a sample of the stream, or of one channel. Sample numbers must not decrease.
    pub fn take(&mut self, sample: u64, channel: Option<u64>, tag: &Tag) {
        let text = || Json::from(tag.value.to_string());
        match &*tag.key {
            // A capture belongs to all channels.
            key @ (keys::FREQUENCY | keys::DATETIME) if channel.is_none() => {
                let value = if key == keys::DATETIME { text() } else { number(&tag.value) };
                if self.captures.last().is_none_or(|(at, _)| *at != sample) {
                    self.captures.push((sample, Map::new()));
                }
                if let Some((_, fields)) = self.captures.last_mut() {
                    fields.insert(key.into(), value);
                }
            }
            keys::LABEL => self.begin(sample, channel, true).fields.extend([(keys::LABEL.into(), text())]),
            keys::ANNOTATION => {
                let begun = self.begin(sample, channel, true);
                if !matches!(&tag.value, Value::Text(comment) if comment.is_empty()) {
                    begun.fields.insert(keys::COMMENT.into(), text());
                }
            }
            keys::DURATION => {
                let duration_s = number(&tag.value).as_f64();
                self.belonging(sample, channel, |begun| begun.duration_s.is_none()).duration_s = duration_s;
            }
            key @ (keys::COMMENT | keys::GENERATOR | keys::UUID) => {
                let begun = self.belonging(sample, channel, |begun| !begun.fields.contains_key(key));
                begun.fields.insert(key.into(), text());
            }
            key @ (keys::LOWER_EDGE | keys::UPPER_EDGE) => {
                let begun = self.belonging(sample, channel, |begun| !begun.fields.contains_key(key));
                begun.fields.insert(key.into(), number(&tag.value));
            }
            key => {
                let fields = [(keys::LABEL.into(), key.into()), (keys::VALUE.into(), any(&tag.value))];
                self.begin(sample, channel, false).fields.extend(fields);
            }
        }
    }

    fn begin(&mut self, sample: u64, channel: Option<u64>, open: bool) -> &mut TagAnnotation {
        self.annotations.push(TagAnnotation { sample, channel, duration_s: None, fields: Map::new(), open });
        self.annotations.last_mut().expect("just pushed")
    }

    /// The last annotation if it is on this sample and has `room`, otherwise a new one.
    fn belonging(
        &mut self,
        sample: u64,
        channel: Option<u64>,
        room: impl Fn(&TagAnnotation) -> bool,
    ) -> &mut TagAnnotation {
        let here = (sample, channel);
        match self.annotations.last() {
            Some(last) if last.open && (last.sample, last.channel) == here && room(last) => {
                self.annotations.last_mut().expect("just seen")
            }
            _ => self.begin(sample, channel, true),
        }
    }

    /// Captures and annotations of a recording with this many samples.
    pub fn finish(self, samples: u64, rate_hz: f64) -> (Json, Json) {
        let mut captures = Vec::new();
        if self.captures.first().is_none_or(|(sample, _)| *sample > 0) {
            captures.push(json!({ "core:sample_start": 0 }));
        }
        captures.extend(self.captures.into_iter().map(|(sample, fields)| with_start(sample, None, fields)));
        let annotations = self.annotations.into_iter().map(|begun| {
            let most = samples.saturating_sub(begun.sample);
            let count = begun.duration_s.map(|duration_s| ((duration_s * rate_hz).round() as u64).min(most));
            let mut fields = begun.fields;
            fields.extend(begun.channel.map(|channel| (keys::CHANNEL.into(), channel.into())));
            with_start(begun.sample, count.filter(|&count| count > 0), fields)
        });
        (captures.into(), annotations.collect::<Vec<_>>().into())
    }

    /// Whether there is a tag that SigMF has no field for.
    pub fn is_extended(&self) -> bool {
        self.annotations.iter().any(|begun| begun.channel.is_some() || begun.fields.contains_key(keys::VALUE))
    }
}

fn with_start(sample: u64, count: Option<u64>, fields: Map<String, Json>) -> Json {
    let mut all = Map::new();
    all.insert("core:sample_start".into(), sample.into());
    if let Some(count) = count {
        all.insert("core:sample_count".into(), count.into());
    }
    all.extend(fields);
    all.into()
}

/// Converts a value to a number if it is one; JSON has only finite numbers.
fn number(value: &Value) -> Json {
    match value {
        Value::Int(value) => (*value as f64).into(),
        Value::Float(value) if value.is_finite() => (*value).into(),
        other => other.to_string().into(),
    }
}

fn any(value: &Value) -> Json {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        other => number(other),
    }
}
