//! FramePlanes of video frames, and pixels.

use super::header::StreamHeader;
use crate::image::Colours;
use crate::vectors::Vectors;
use pulp::{Simd, WithSimd};

/// Converts between the planes of a frame and RGB.
pub(super) struct FramePlanes {
    vectors: Vectors,
    colours: Colours,
    /// A row of each plane of chroma, with a sample for each pixel.
    wide: [Vec<u8>; 2],
}

impl FramePlanes {
    pub fn new(colours: Colours) -> Self {
        FramePlanes { vectors: Vectors::new(), colours, wide: [Vec::new(), Vec::new()] }
    }

    /// Computes RGB. A sample of chroma stands for all pixels that it covers.
    pub fn fill_rgb(&mut self, header: &StreamHeader, planes: &[u8], rgb: &mut [u8]) {
        self.wide.iter_mut().for_each(|line| line.resize(header.columns, 128));
        let vectors = self.vectors;
        vectors.run(ToRgb { it: self, header, planes, rgb });
    }

    /// Computes the planes of a frame, 4:4:4 or 4:2:0. In the latter, chroma is that of the mean of a block
    /// of 2 × 2 pixels.
    pub fn pack(&mut self, header: &StreamHeader, rgb: &[u8], planes: &mut [u8]) {
        self.vectors.run(OfRgb { colours: self.colours, header, rgb, planes });
    }
}

/// Luma and the two planes of chroma.
fn split<'p>(header: &StreamHeader, planes: &'p mut [u8]) -> [&'p mut [u8]; 3] {
    let (rows, columns) = header.chroma_size();
    let (luma, chroma) = planes.split_at_mut(header.rows * header.columns);
    let (blue, red) = chroma.split_at_mut(rows * columns);
    [luma, blue, red]
}

struct ToRgb<'p> {
    it: &'p mut FramePlanes,
    header: &'p StreamHeader,
    planes: &'p [u8],
    rgb: &'p mut [u8],
}

impl WithSimd for ToRgb<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let FramePlanes { colours, wide: [wide_blue, wide_red], .. } = self.it;
        let StreamHeader { rows, columns, .. } = *self.header;
        let (luma, chroma) = self.planes.split_at(rows * columns);
        let (chroma_rows, chroma_columns) = self.header.chroma_size();
        let (blue, red) = chroma.split_at(chroma_rows * chroma_columns);
        let (across, down) = self.header.chroma.unwrap_or((1, usize::MAX));
        let lines = self.rgb.chunks_exact_mut(3 * columns).zip(luma.chunks_exact(columns));
        for (y, (out, luma)) in lines.enumerate() {
            if chroma_rows > 0 && y % down == 0 {
                let line = y / down * chroma_columns..(y / down + 1) * chroma_columns;
                for (plane, wide) in [(blue, &mut *wide_blue), (red, &mut *wide_red)] {
                    let samples = wide.chunks_mut(across).zip(&plane[line.clone()]);
                    samples.for_each(|(to, sample)| to.fill(*sample));
                }
            }
            let chroma = wide_blue.iter().zip(&*wide_red);
            for ((to, y), (cb, cr)) in out.as_chunks_mut().0.iter_mut().zip(luma).zip(chroma) {
                *to = colours.rgb([*y, *cb, *cr]);
            }
        }
    }
}

struct OfRgb<'p> {
    colours: Colours,
    header: &'p StreamHeader,
    rgb: &'p [u8],
    planes: &'p mut [u8],
}

impl WithSimd for OfRgb<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let StreamHeader { rows, columns, chroma, .. } = *self.header;
        let [luma, blue, red] = split(self.header, self.planes);
        let pixels = self.rgb.as_chunks::<3>().0;
        if chroma == Some((1, 1)) {
            let chroma = blue.iter_mut().zip(red);
            for ((y, (cb, cr)), rgb) in luma.iter_mut().zip(chroma).zip(pixels) {
                [*y, *cb, *cr] = self.colours.ycbcr(*rgb);
            }
            return;
        }
        luma.iter_mut().zip(pixels).for_each(|(y, rgb)| *y = self.colours.luma(*rgb));
        let (_, across) = self.header.chroma_size();
        for (at, (cb, cr)) in blue.iter_mut().zip(red).enumerate() {
            let (y, x) = (2 * (at / across), 2 * (at % across));
            // At an odd border, the last pixel counts twice.
            let (below, right) = ((y + 1).min(rows - 1), (x + 1).min(columns - 1));
            let block =
                [(y, x), (y, right), (below, x), (below, right)].map(|(y, x)| pixels[y * columns + x]);
            let mean = |channel: usize| {
                let sum: u16 = block.iter().map(|rgb| u16::from(rgb[channel])).sum();
                ((sum + 2) / 4) as u8
            };
            [_, *cb, *cr] = self.colours.ycbcr([mean(0), mean(1), mean(2)]);
        }
    }
}
