//! Operators on frames, above all grey ones of 8 bits.
//!
//! | type | frames | description |
//! |---|---|---|
//! | [`Blur`] | grey | smooths: `image.blur` |
//! | [`Threshold`] | bytes | black or white: `image.threshold` |
//! | [`Reduce`] | grey | means of blocks: `image.reduce` |
//! | [`ToBytes`], [`FromBytes`] | any | real samples to bytes and back: `image.bytes`, `image.real` |
//!
//! A grey frame is one chunk of bytes, row by row, with the shape `[rows, columns, 0]`. 0 is black, 255 is
//! white. All results are integers, the same on every processor. [`PerFrame`] makes operators of filters that
//! compute one frame from one frame ([`FrameFilter`]).
//!
//! A frame must fit into a chunk: an HD frame of 1080 × 1920 bytes needs `quantum = 2073600` on its edges.

mod blur;
mod convert;
mod kinds;
mod per_frame;
mod reduce;
mod threshold;

pub use blur::Blur;
pub use convert::{FromBytes, ToBytes};
pub(crate) use kinds::add_kinds;
pub use per_frame::{FrameFilter, PerFrame};
pub use reduce::Reduce;
pub use threshold::Threshold;

use crate::npy::shape_text;
use onbeat_runtime::Error;

/// Rows and columns of a grey frame.
fn grey(shape: [u32; 3]) -> Result<(usize, usize), Error> {
    match shape {
        [rows @ 1..=u32::MAX, columns @ 1..=u32::MAX, 0 | 1] => Ok((rows as usize, columns as usize)),
        [0, ..] => Err(Error::new(
            "its input has chunks without a shape, and it needs frames with rows and columns: use a source \
             that sends frames, such as `npy.source` with an array of three axes",
        )),
        _ => Err(Error::new(format!(
            "its input has frames of shape {}: it needs grey frames, with rows and columns only; send each \
             plane as a frame",
            shape_text(&shape)
        ))),
    }
}
