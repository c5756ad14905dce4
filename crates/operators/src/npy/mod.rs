//! Arrays as NumPy keeps them in files (`numpy.save`), as streams and as frames.
//!
//! The first axis is time. An array of one axis is a stream of samples, which travel in chunks of any length.
//! One of two to four axes is a stream of frames: a frame is one chunk, and
//! [`Info::shape`](onbeat_runtime::Info) has the lengths of its axes in their order, 0 for an axis that is
//! not there. So an array of shape (100, 480, 640) is 100 chunks of shape [480, 640, 0].

mod header;
mod sink;
mod source;

pub use sink::NpySink;
pub use source::NpySource;

use onbeat_runtime::Registry;

/// The axes of a frame, as people write them: "480 × 640".
pub(crate) fn shape_text(shape: &[u32; 3]) -> String {
    let lengths: Vec<_> = axes(shape).iter().map(u32::to_string).collect();
    lengths.join(" × ")
}

/// The axes that are there; none for a plain run of samples.
pub(crate) fn axes(shape: &[u32; 3]) -> &[u32] {
    &shape[..shape.iter().position(|&length| length == 0).unwrap_or(3)]
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    source::add_kinds(registry);
    sink::add_kinds(registry);
}
