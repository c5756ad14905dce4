//! `y = a * x + b` alone, with the widest vectors of the processor. This file uses nothing else of the crate:
//! the programs in `peers/` compile it too, so that all sides of a benchmark call the same function.

use pulp::{Arch, Simd, WithSimd};

/// Scales samples by `a` and adds `b`.
///
/// Both factors are stored in memory and loaded from there. Passed in registers, they would first have to
/// move from one kind of register to the other. Detecting the processor's vectors at each call would take as
/// long as the rest of the way to the first sample.
#[derive(Debug, Clone, Copy)]
pub struct Affine {
    a: f32,
    b: f32,
    arch: Arch,
}

impl Affine {
    /// Creates the function with factor `a` and offset `b`.
    #[must_use]
    pub fn new(a: f32, b: f32) -> Self {
        Affine { a, b, arch: Arch::new() }
    }

    /// Factor.
    #[must_use]
    pub fn a(&self) -> f32 {
        self.a
    }

    /// Offset.
    #[must_use]
    pub fn b(&self) -> f32 {
        self.b
    }

    // Neither function is `#[inline]`: there is one loop in one place for all callers.

    /// Computes `y = a * y + b`.
    pub fn in_place(&self, y: &mut [f32]) {
        self.arch.dispatch(AffineInPlace { y, affine: self });
    }

    /// Computes `y = a * x + b` for as many samples as the shorter slice has.
    pub fn out_of_place(&self, x: &[f32], y: &mut [f32]) {
        let len = x.len().min(y.len());
        self.arch.dispatch(AffineOutOfPlace { x: &x[..len], y: &mut y[..len], affine: self });
    }
}

/// Vectors per iteration of the loop, with no work before the first. A processor executes about 20 cycles of
/// the way from the call to the first sample ahead of time; anything longer is paid for at each call. Larger
/// blocks are faster on samples in this core's cache, and half as fast on samples from another core (figures:
/// the book's page on nanoseconds).
const BLOCK: usize = 4;

struct AffineInPlace<'s> {
    y: &'s mut [f32],
    affine: &'s Affine,
}

struct AffineOutOfPlace<'s> {
    x: &'s [f32],
    y: &'s mut [f32],
    affine: &'s Affine,
}

// Multiplication and addition are rounded separately: a fused operation would give other bits on processors
// without one.

impl WithSimd for AffineInPlace<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (many, few) = S::as_mut_simd_f32s(self.y);
        let (a, b) = (simd.splat_f32s(self.affine.a), simd.splat_f32s(self.affine.b));
        let (blocks, rest) = many.as_chunks_mut::<BLOCK>();
        for ys in blocks {
            for y in ys {
                *y = simd.add_f32s(simd.mul_f32s(a, *y), b);
            }
        }
        for y in rest {
            *y = simd.add_f32s(simd.mul_f32s(a, *y), b);
        }
        for y in few {
            *y = self.affine.a * *y + self.affine.b;
        }
    }
}

impl WithSimd for AffineOutOfPlace<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let ((xs, x_few), (ys, y_few)) = (S::as_simd_f32s(self.x), S::as_mut_simd_f32s(self.y));
        let (a, b) = (simd.splat_f32s(self.affine.a), simd.splat_f32s(self.affine.b));
        let ((x_blocks, x_rest), (y_blocks, y_rest)) = (xs.as_chunks::<BLOCK>(), ys.as_chunks_mut::<BLOCK>());
        for (xs, ys) in x_blocks.iter().zip(y_blocks) {
            for (x, y) in xs.iter().zip(ys) {
                *y = simd.add_f32s(simd.mul_f32s(a, *x), b);
            }
        }
        for (x, y) in x_rest.iter().zip(y_rest) {
            *y = simd.add_f32s(simd.mul_f32s(a, *x), b);
        }
        for (x, y) in x_few.iter().zip(y_few) {
            *y = self.affine.a * *x + self.affine.b;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Affine;

    #[test]
    fn every_length_gives_the_bits_of_the_plain_loop() {
        let affine = Affine::new(0.7, 0.3);
        // Blocks of the widest vectors have 64 samples.
        for len in (0..70).chain(250..330).chain([511, 4096, 4099]) {
            let x: Vec<f32> = (0..len).map(|n| n as f32 * 0.37 - 11.0).collect();
            let plain: Vec<f32> = x.iter().map(|x| 0.7 * x + 0.3).collect();
            let (mut in_place, mut out) = (x.clone(), vec![9.0; len + 3]);
            affine.in_place(&mut in_place);
            affine.out_of_place(&x, &mut out);
            assert_eq!(in_place, plain, "{len}");
            assert_eq!((&out[..len], &out[len..]), (&plain[..], &[9.0; 3][..]), "{len}");
        }
    }
}
