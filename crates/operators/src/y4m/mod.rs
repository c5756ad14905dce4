//! Uncompressed video: YUV4MPEG2, which other programs read and write through pipes.
//!
//! `header` reads and writes the line of text at the begin, `reader` takes a stream apart, `planes` converts
//! between planes of YCbCr and pixels of RGB.

mod header;
mod planes;
mod reader;
mod sink;
mod source;

pub(crate) use header::fraction;
pub use sink::{Chroma, Y4mSink};
pub use source::{VideoFormat, Y4mSource};

use onbeat_runtime::Registry;

pub(crate) fn add_kinds(registry: &mut Registry) {
    source::add_kinds(registry);
    sink::add_kinds(registry);
}
