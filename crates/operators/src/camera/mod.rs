//! Pictures from cameras and capture cards (V4L2).
//!
//! | file | contents |
//! |---|---|
//! | `source` | the operator |
//! | `device` | a device from its opening to its end, and what goes wrong with it |
//! | `choice` | which pixel format, size and rate |
//! | `pixels` | frames of the device to grey and RGB |
//! | `jpeg` | compressed frames |
//! | `gaps` | numbers and times of the frames: which are missing, and why |

mod choice;
mod device;
mod gaps;
mod jpeg;
mod pixels;
mod source;

pub use pixels::CameraPixels;
pub use source::V4l2Source;

use onbeat_runtime::{Kind, Registry};

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(Kind::operator::<V4l2Source>());
}
