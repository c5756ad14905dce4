//! Parts of a stream: its beginning, its rest, its samples repeated, and a valve.
//!
//! | type | kind | passes on |
//! |---|---|---|
//! | [`HeadSamples`], [`HeadValues`] | `head`, `head.complex`, `head.bytes`, `head.value` | the first samples or values |
//! | [`SkipSamples`], [`SkipValues`] | `skip`, `skip.complex`, `skip.bytes`, `skip.value` | all but the first |
//! | [`Pad`] | `pad`, `pad.complex` | everything, then zeros |
//! | [`RepeatSamples`] | `repeat`, `repeat.complex` | each sample several times |
//! | [`Valve`], [`ValueValve`] | `valve`, `valve.complex`, `valve.bytes`, `valve.value` | everything while it is open |

mod head;
mod pad;
mod repeat;
mod skip;
mod valve;

pub use head::{HeadSamples, HeadValues};
pub use pad::Pad;
pub use repeat::RepeatSamples;
pub use skip::{SkipSamples, SkipValues};
pub use valve::{ValueValve, Valve};

use crate::check;
use crate::npy::shape_text;
use num_complex::Complex;
use onbeat_runtime::{Error, Kind, Registry, Seconds};

/// Number of samples that `count` or `duration` says, where `rate_hz` is that of the input. One of them must
/// be there.
fn samples(count: Option<u64>, duration: Option<Seconds>, rate_hz: f64) -> Result<u64, Error> {
    match (count, duration) {
        (Some(count), _) => Ok(count),
        (None, Some(Seconds(time_s))) => {
            check::rate(rate_hz)?;
            Ok((time_s * rate_hz).round() as u64)
        }
        (None, None) => needs_one(count, duration).map(|()| 0),
    }
}

/// Accepts either a count or a duration.
fn needs_one(count: Option<u64>, duration: Option<Seconds>) -> Result<(), Error> {
    match (count, duration) {
        (Some(_), Some(_)) => Err(Error::new("has both `count` and `duration`: give one of them")),
        (None, None) => Err(Error::new("needs `count` or `duration`: give one of them")),
        _ => Ok(()),
    }
}

/// Shape of `kept` samples at one end of a chunk of `length` samples, which is cut at sample `limit` of its
/// stream.
fn cut_shape(shape: [u32; 3], length: usize, kept: usize, limit: u64) -> Result<[u32; 3], Error> {
    if shape[0] == 0 || kept == length {
        return Ok(shape);
    }
    let row = length / shape[0] as usize;
    if row > 0 && kept.is_multiple_of(row) {
        return Ok([(kept / row) as u32, shape[1], shape[2]]);
    }
    Err(Error::new(format!(
        "sample {limit} is within a row of a chunk of shape {}: a stream of such chunks can be cut at multiples \
         of {row} samples",
        shape_text(&shape)
    )))
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(Kind::operator::<HeadSamples<f32>>());
    registry.add(Kind::operator::<HeadSamples<Complex<f32>>>().named("head.complex"));
    registry.add(Kind::operator::<HeadSamples<u8>>().named("head.bytes"));
    registry.add(Kind::operator::<HeadValues>());
    registry.add(Kind::operator::<Pad<f32>>());
    registry.add(Kind::operator::<Pad<Complex<f32>>>().named("pad.complex"));
    registry.add(Kind::operator::<SkipSamples<f32>>());
    registry.add(Kind::operator::<SkipSamples<Complex<f32>>>().named("skip.complex"));
    registry.add(Kind::operator::<SkipSamples<u8>>().named("skip.bytes"));
    registry.add(Kind::operator::<SkipValues>());
    registry.add(Kind::kernel::<RepeatSamples<f32>>());
    registry.add(Kind::kernel::<RepeatSamples<Complex<f32>>>().named("repeat.complex"));
    registry.add(Kind::operator::<Valve<f32>>());
    registry.add(Kind::operator::<Valve<Complex<f32>>>().named("valve.complex"));
    registry.add(Kind::operator::<Valve<u8>>().named("valve.bytes"));
    registry.add(Kind::operator::<ValueValve>());
}
