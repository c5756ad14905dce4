//! Cuts a part out of frames.

use super::{FrameFilter, FrameSize, frame};
use crate::check;
use onbeat_runtime::Error;

/// Most rows and columns of a frame that a parameter can ask for.
pub(super) const MOST: f64 = 65535.0;

/// Cuts a rectangle out of grey and RGB frames. The rest of a frame is left out; its tags move to the nearest
/// pixel of the rectangle.
#[derive(Debug, Clone)]
pub struct Crop {
    top: usize,
    left: usize,
    rows: usize,
    columns: usize,
    size: FrameSize,
}

impl Crop {
    /// Creates the filter with the first row and column, from 0, and the numbers of rows and columns.
    ///
    /// # Errors
    /// When there is no row or no column, or a number is above 65535.
    pub fn new(top: u32, left: u32, rows: u32, columns: u32) -> Result<Self, Error> {
        let fix = "frames have no more";
        for (name, value, least) in
            [("top", top, 0.0), ("left", left, 0.0), ("rows", rows, 1.0), ("columns", columns, 1.0)]
        {
            check::within(name, value.into(), least, MOST, fix)?;
        }
        let [top, left, rows, columns] = [top, left, rows, columns].map(|value| value as usize);
        Ok(Crop { top, left, rows, columns, size: FrameSize::default() })
    }
}

impl FrameFilter for Crop {
    type In = u8;
    type Out = u8;

    fn shape(&mut self, shape: [u32; 3]) -> Result<[u32; 3], Error> {
        let size = frame(shape)?;
        for (begin, name, first, count, most) in [
            ("top", "rows", self.top, self.rows, size.rows),
            ("left", "columns", self.left, self.columns, size.columns),
        ] {
            if first + count > most {
                return Err(Error::new(format!(
                    "`{begin}` is {first} and `{name}` is {count}: together they must be at most {most}, as \
                     its input has frames of {} × {}",
                    size.rows, size.columns
                )));
            }
        }
        self.size = size;
        Ok([self.rows as u32, self.columns as u32, shape[2]])
    }

    fn filter(&mut self, input: &[u8], output: &mut [u8]) {
        let FrameSize { columns, channels, .. } = self.size;
        let wanted = self.left * channels..(self.left + self.columns) * channels;
        let lines = input.chunks_exact(columns * channels).skip(self.top);
        for (to, from) in output.chunks_exact_mut(self.columns * channels).zip(lines) {
            to.copy_from_slice(&from[wanted.clone()]);
        }
    }

    fn place(&self, sample: usize) -> usize {
        let FrameSize { columns, channels, .. } = self.size;
        let (pixel, channel) = (sample / channels, sample % channels);
        let row = (pixel / columns).clamp(self.top, self.top + self.rows - 1) - self.top;
        let column = (pixel % columns).clamp(self.left, self.left + self.columns - 1) - self.left;
        (row * self.columns + column) * channels + channel
    }
}
