//! The function that onbeat's own operator calls, from its own file, for the programs of other runtimes; and what all of these
//! programs share: their command line and how they say what they found.

#[path = "../../../crates/operators/src/dsp/saxpy/kernel.rs"]
mod kernel;
mod program;

pub use kernel::Affine;
pub use program::{Asked, Count, Variant, program};

/// `a` and `b`, for programs in C++; there until they end.
#[unsafe(no_mangle)]
pub extern "C" fn onbeat_affine(a: f32, b: f32) -> &'static Affine {
    Box::leak(Box::new(Affine::new(a, b)))
}

/// `y = a * y + b` on `len` samples, for programs in C++.
///
/// # Safety
/// `y` points to `len` samples that nobody else uses, and `affine` is one of [`onbeat_affine`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_saxpy(y: *mut f32, len: usize, affine: &Affine) {
    // SAFETY: the caller's promise.
    affine.in_place(unsafe { std::slice::from_raw_parts_mut(y, len) });
}

/// `y = a * x + b` on `len` samples, for programs in C++.
///
/// # Safety
/// `x` and `y` point to `len` samples each, do not overlap, and nobody else writes there; `affine` is one of [`onbeat_affine`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_saxpy_into(x: *const f32, y: *mut f32, len: usize, affine: &Affine) {
    // SAFETY: the caller's promise.
    let (x, y) = unsafe { (std::slice::from_raw_parts(x, len), std::slice::from_raw_parts_mut(y, len)) };
    affine.out_of_place(x, y);
}
