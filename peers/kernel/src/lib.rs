//! The function that onbeat's own operator calls, from its own file, for the programs of other runtimes; and what all of these
//! programs share: their command line and how they say what they found.

#[path = "../../../crates/operators/src/dsp/saxpy/kernel.rs"]
mod kernel;
mod program;

pub use kernel::{saxpy, saxpy_into};
pub use program::{Asked, Count, Variant, program};

/// `y = a * y + b` on `len` samples, for programs in C++.
///
/// # Safety
/// `y` points to `len` samples that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_saxpy(y: *mut f32, len: usize, a: f32, b: f32) {
    // SAFETY: the caller's promise.
    saxpy(unsafe { std::slice::from_raw_parts_mut(y, len) }, a, b);
}

/// `y = a * x + b` on `len` samples, for programs in C++.
///
/// # Safety
/// `x` and `y` point to `len` samples each, do not overlap, and nobody else writes there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_saxpy_into(x: *const f32, y: *mut f32, len: usize, a: f32, b: f32) {
    // SAFETY: the caller's promise.
    let (x, y) = unsafe { (std::slice::from_raw_parts(x, len), std::slice::from_raw_parts_mut(y, len)) };
    saxpy_into(x, y, a, b);
}
