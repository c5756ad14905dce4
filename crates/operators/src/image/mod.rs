//! Operators on frames of 8 bits, grey or in colour.
//!
//! | type | frames | description |
//! |---|---|---|
//! | [`Blur`] | grey | smooths: `image.blur` |
//! | [`Threshold`] | bytes | black or white: `image.threshold` |
//! | [`Reduce`] | grey | means of blocks: `image.reduce` |
//! | [`Recolour`] | grey, RGB, YCbCr | converts between them: `image.convert` |
//! | [`Resize`] | grey, RGB | another size: `image.resize` |
//! | [`Crop`] | grey, RGB | cuts a part out: `image.crop` |
//! | [`Convolve`] | grey, RGB | weighted sums of neighbours: `image.convolve` |
//! | [`ToBytes`], [`FromBytes`] | any | real samples to bytes and back: `image.bytes`, `image.real` |
//!
//! A grey frame is one chunk of bytes, row by row, with the shape `[rows, columns, 0]`. 0 is black, 255 is
//! white. A colour frame has the shape `[rows, columns, 3]`, the three samples of a pixel one after the
//! other. All results are integers, the same on every processor. [`PerFrame`] makes operators of filters that
//! compute one frame from one frame ([`FrameFilter`]).
//!
//! A frame must fit into a chunk. Sources that know the size of their frames before the run give their edges
//! a quantum of one frame, and these operators do so for their results; a `quantum` of the edge wins.

mod blur;
mod colour;
mod convert;
mod convolve;
mod crop;
mod kinds;
mod per_frame;
mod reduce;
mod resize;
mod threshold;

pub use blur::Blur;
pub(crate) use colour::Colours;
pub use colour::{ColourMatrix, ColourRange, ColourSpace, Recolour};
pub use convert::{FromBytes, ToBytes};
pub use convolve::Convolve;
pub use crop::Crop;
pub(crate) use kinds::add_kinds;
pub use per_frame::{FrameFilter, PerFrame};
pub use reduce::Reduce;
pub use resize::{Resize, ResizeFilter};
pub use threshold::Threshold;

use crate::npy::shape_text;
use onbeat_runtime::Error;

/// Size of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct FrameSize {
    rows: usize,
    columns: usize,
    /// Samples of a pixel: 1 or 3.
    channels: usize,
}

/// Size of a frame that is grey or has three channels.
fn frame(shape: [u32; 3]) -> Result<FrameSize, Error> {
    match shape {
        [rows @ 1..=u32::MAX, columns @ 1..=u32::MAX, channels @ (0 | 1 | 3)] => {
            let [rows, columns, channels] = [rows, columns, channels.max(1)].map(|length| length as usize);
            Ok(FrameSize { rows, columns, channels })
        }
        [0, ..] => Err(no_frames()),
        _ => Err(Error::new(format!(
            "its input has frames of shape {}: it needs grey frames, with rows and columns only, or colour \
             frames, with three channels as the last axis; send each plane as a frame",
            shape_text(&shape)
        ))),
    }
}

fn no_frames() -> Error {
    Error::new(
        "its input has chunks without a shape, and it needs frames with rows and columns: use a source \
         that sends frames, such as `npy.source` with an array of three axes",
    )
}

/// Rows and columns of a grey frame.
fn grey(shape: [u32; 3]) -> Result<(usize, usize), Error> {
    match shape {
        [rows @ 1..=u32::MAX, columns @ 1..=u32::MAX, 0 | 1] => Ok((rows as usize, columns as usize)),
        [0, ..] => Err(no_frames()),
        _ => Err(Error::new(format!(
            "its input has frames of shape {}: it needs grey frames, with rows and columns only; make \
             grey ones with `image.convert`, or send each plane as a frame",
            shape_text(&shape)
        ))),
    }
}
