//! `y = a * x + b` alone, with the widest vectors that the processor has. It uses nothing else of this crate: the programs in
//! `peers/` compile this very file, so that every side of a benchmark calls the same function.

use pulp::{Arch, Simd, WithSimd};

/// `y = a * y + b`.
#[inline]
pub fn saxpy(y: &mut [f32], a: f32, b: f32) {
    Arch::new().dispatch(InPlace { y, a: Factor(a), b: Factor(b) });
}

/// `y = a * x + b`, for as many samples as the shorter of both has.
#[inline]
pub fn saxpy_into(x: &[f32], y: &mut [f32], a: f32, b: f32) {
    let len = x.len().min(y.len());
    Arch::new().dispatch(OutOfPlace { x: &x[..len], y: &mut y[..len], a: Factor(a), b: Factor(b) });
}

/// A factor in a word of its own, and so in a register of its own on the way to the loop. Two in one word are shifted together before
/// a call and apart behind it, and the first sample waits for that: 3 ns per call.
#[derive(Clone, Copy)]
#[repr(align(8))]
struct Factor(f32);

struct InPlace<'s> {
    y: &'s mut [f32],
    a: Factor,
    b: Factor,
}

struct OutOfPlace<'s> {
    x: &'s [f32],
    y: &'s mut [f32],
    a: Factor,
    b: Factor,
}

// A multiplication and an addition, each rounded: a fused one would give other bits on processors that have none.

impl WithSimd for InPlace<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (many, few) = S::as_mut_simd_f32s(self.y);
        let (a, b) = (simd.splat_f32s(self.a.0), simd.splat_f32s(self.b.0));
        for y in many {
            *y = simd.add_f32s(simd.mul_f32s(a, *y), b);
        }
        for y in few {
            *y = self.a.0 * *y + self.b.0;
        }
    }
}

impl WithSimd for OutOfPlace<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let ((xs, x_few), (ys, y_few)) = (S::as_simd_f32s(self.x), S::as_mut_simd_f32s(self.y));
        let (a, b) = (simd.splat_f32s(self.a.0), simd.splat_f32s(self.b.0));
        for (x, y) in xs.iter().zip(ys) {
            *y = simd.add_f32s(simd.mul_f32s(a, *x), b);
        }
        for (x, y) in x_few.iter().zip(y_few) {
            *y = self.a.0 * *x + self.b.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{saxpy, saxpy_into};

    #[test]
    fn every_length_gives_the_bits_of_the_plain_loop() {
        for len in (0..70).chain([255, 4096, 4099]) {
            let x: Vec<f32> = (0..len).map(|n| n as f32 * 0.37 - 11.0).collect();
            let plain: Vec<f32> = x.iter().map(|x| 0.7 * x + 0.3).collect();
            let (mut in_place, mut out) = (x.clone(), vec![9.0; len + 3]);
            saxpy(&mut in_place, 0.7, 0.3);
            saxpy_into(&x, &mut out, 0.7, 0.3);
            assert_eq!(in_place, plain, "{len}");
            assert_eq!((&out[..len], &out[len..]), (&plain[..], &[9.0; 3][..]), "{len}");
        }
    }
}
