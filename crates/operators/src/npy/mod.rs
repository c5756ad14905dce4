//! NumPy array files (`numpy.save`) as streams and as frames.
//!
//! The first axis is time. An array with one axis is a stream of samples, sent in chunks of any length. An
//! array with two to four axes is a stream of frames. Each frame is one chunk, and
//! [`Info::shape`](onbeat_runtime::Info) holds the lengths of its axes in order, 0 for an unused axis. For
//! example, an array of shape (100, 480, 640) gives 100 chunks of shape [480, 640, 0].

mod fortran;
mod header;
mod sink;
mod source;

pub(crate) use header::NpyHeader;
pub use sink::NpySink;
pub use source::NpySource;

use onbeat_runtime::Registry;

/// Formats the axes of a frame: "480 × 640".
pub(crate) fn shape_text(shape: &[u32; 3]) -> String {
    let lengths: Vec<_> = axes(shape).iter().map(u32::to_string).collect();
    lengths.join(" × ")
}

/// The used axes; none for a chunk without a shape.
pub(crate) fn axes(shape: &[u32; 3]) -> &[u32] {
    &shape[..shape.iter().position(|&length| length == 0).unwrap_or(3)]
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    source::add_kinds(registry);
    sink::add_kinds(registry);
}
