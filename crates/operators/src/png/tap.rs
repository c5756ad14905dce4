//! The latest frame of a stream, for those who watch the run.

use super::frames::picture;
use super::{PNG, encode_to};
use onbeat_runtime::{Chunk, Context, Error, FetchedData, Input, Operator, Output, Step, operator};

/// Passes frames of bytes on and keeps the latest one, for `onbeat ctl SOCKET fetch OPERATOR FILE`, which
/// saves it as a PNG picture.
///
/// The output need not be connected. The picture is made on request, by the thread that serves the control
/// socket. As long as the operator keeps a frame, an operator after it that changes frames in place works on
/// a copy; those that make new frames, as nearly all kinds `image.*` do, are not affected.
#[derive(Operator)]
#[operator(name = "tap.image", summary = "keeps the latest frame for `onbeat ctl ... fetch`")]
pub struct ImageTap {
    /// Grey or RGB frames.
    input: Input<Chunk<u8>>,
    /// The same frames.
    #[port(optional)]
    out: Output<Chunk<u8>>,
    latest: Option<Chunk<u8>>,
}

#[operator]
impl Operator for ImageTap {
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(frame) = self.input.pop(cx) {
            self.latest = Some(frame.clone());
            self.out.push(cx, frame)?;
        }
        Ok(Step::Wait)
    }

    fn fetch(&mut self) -> Result<FetchedData, Error> {
        let none = || Error::new("no frame has come yet: try again");
        let frame = self.latest.clone().ok_or_else(none)?;
        let (size, colour) = picture(&frame)?;
        Ok(FetchedData::new(PNG, move || {
            let mut file = Vec::new();
            encode_to(&mut file, size, colour, &frame)
                .map_err(|error| Error::with_source("cannot make a PNG picture", error))?;
            Ok(file)
        }))
    }
}
