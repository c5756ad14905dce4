//! Shared parts of the programs for other runtimes: the saxpy function, the command line, and the output.
//!
//! The function is in the file of onbeat's own operator.

#[path = "../../../crates/operators/src/dsp/saxpy/kernel.rs"]
mod kernel;
mod program;

pub use kernel::Affine;
pub use program::{Count, Request, Variant, program};

/// `a` and `b`, for programs in C++; valid until the program ends.
#[unsafe(no_mangle)]
pub extern "C" fn onbeat_affine(a: f32, b: f32) -> &'static Affine {
    Box::leak(Box::new(Affine::new(a, b)))
}

/// `y = a * y + b` on `len` samples, for programs in C++.
///
/// # Safety
/// `y` points to `len` samples that no other code uses, and `affine` comes from [`onbeat_affine`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_saxpy(y: *mut f32, len: usize, affine: &Affine) {
    // SAFETY: the caller's promise.
    affine.in_place(unsafe { std::slice::from_raw_parts_mut(y, len) });
}

/// `y = a * x + b` on `len` samples, for programs in C++.
///
/// # Safety
/// `x` and `y` point to `len` samples each, do not overlap, and no other code writes to them.
/// `affine` comes from [`onbeat_affine`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_saxpy_into(x: *const f32, y: *mut f32, len: usize, affine: &Affine) {
    // SAFETY: the caller's promise.
    let (x, y) = unsafe { (std::slice::from_raw_parts(x, len), std::slice::from_raw_parts_mut(y, len)) };
    affine.out_of_place(x, y);
}
