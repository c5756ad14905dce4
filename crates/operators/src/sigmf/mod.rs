//! SigMF recordings: samples in one file, their description in another.
//!
//! `place` finds the two files, `meta` reads and checks the metadata, `source` plays a recording, `sink`
//! writes one, and `notes` converts tags to annotations.
//!
//! # Tags and annotations
//!
//! | in the metadata | tags |
//! |---|---|
//! | an annotation | `core:label` and the label; without a label, `annotation` and the comment |
//! | its `core:comment`, if it has a label | `core:comment` |
//! | its `core:sample_count`, if above 0 | `duration_s`, in seconds: stays true when the rate changes |
//! | its `core:freq_lower_edge`, `core:freq_upper_edge`, `core:generator`, `core:uuid` | the same |
//! | an annotation with `onbeat:value` | the label as key, and this value: how the sink keeps other tags |
//! | a capture's `core:frequency`, `core:datetime` | the same |
//! | with several channels, an annotation with `onbeat:channel` | on that channel; any other is on all |
//!
//! All tags of one annotation are on its first sample, with `core:label` or `annotation` first. The tags that
//! follow on the same sample belong to it. A recording that is played and written again therefore has the
//! same annotations on the same samples. An annotation that extends beyond the last sample is cut there.

mod meta;
mod notes;
mod place;
mod sink;
mod source;

pub use sink::SigmfSink;
pub use source::SigmfSource;

use onbeat_runtime::Registry;

/// Keys of tags.
mod keys {
    pub const LABEL: &str = "core:label";
    /// Key for an annotation without a label; the value is the comment.
    pub const ANNOTATION: &str = "annotation";
    pub const COMMENT: &str = "core:comment";
    pub const DURATION: &str = "duration_s";
    pub const LOWER_EDGE: &str = "core:freq_lower_edge";
    pub const UPPER_EDGE: &str = "core:freq_upper_edge";
    pub const GENERATOR: &str = "core:generator";
    pub const UUID: &str = "core:uuid";
    pub const FREQUENCY: &str = "core:frequency";
    pub const DATETIME: &str = "core:datetime";
    /// Metadata key: the value of a tag that SigMF has no field for.
    pub const VALUE: &str = "onbeat:value";
    /// Metadata key: the channel of an annotation that is not for all channels.
    pub const CHANNEL: &str = "onbeat:channel";
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    source::add_kinds(registry);
    sink::add_kinds(registry);
}
