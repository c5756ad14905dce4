//! Sample files: number formats, and the parts that file sources and sinks share.
//!
//! `coding` converts bytes to samples and back. `read` and `write` do so with files. `play` adds pace and
//! tags for sources.

mod coding;
mod open;
mod play;
mod read;
mod write;

pub use coding::{ArraySample, FileSample, SampleFormat};
pub(crate) use coding::{Coding, Lost, Number};
pub(crate) use open::{open, read_text};
pub(crate) use play::{FileMark, Player, Playing};
pub(crate) use read::{Channels, FileLayout, SampleFile};
pub(crate) use write::SampleWriter;

use onbeat_runtime::Pace;

pub(crate) fn real() -> Pace {
    Pace::Real
}

pub(crate) fn once() -> u64 {
    1
}
