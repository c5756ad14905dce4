//! Sample files: number formats, and the parts that file sources and sinks share.
//!
//! `types` is the table of sample types, `coding` converts bytes to samples and back. `read` and `write` do
//! so with files. `play` adds pace and tags for sources.

mod coding;
mod named;
mod open;
mod pipe;
mod play;
mod read;
mod types;
mod write;

pub use coding::{ArraySample, FileSample};
pub(crate) use coding::{Coding, Lost, Number};
pub(crate) use named::NamedRecording;
pub(crate) use open::{OpenSource, first_text, is_pipe, open, open_source, read_text};
pub(crate) use pipe::{PipeHeader, is_ready, read_arrived, unread};
pub(crate) use play::{FileMark, Player, Playing};
pub(crate) use read::{Channels, FileLayout, SampleFile};
pub use types::SampleFormat;
pub(crate) use write::SampleWriter;

use onbeat_runtime::Pace;

pub(crate) fn real() -> Pace {
    Pace::Real
}

pub(crate) fn once() -> u64 {
    1
}
