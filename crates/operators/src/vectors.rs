//! The processor's vectors, chosen at run time.

use pulp::{Arch, Scalar128b, Simd, WithSimd};
use std::cell::Cell;

/// The vectors that a kernel computes with: the widest that the processor has, unless a test asks for others.
///
/// A kernel takes them when it is made. No kernel fuses a multiplication with an addition, and each sums
/// in an order of its own, so the width of the vectors does not change a bit of its output.
#[derive(Debug, Clone, Copy)]
pub struct Vectors(Arch);

impl Default for Vectors {
    fn default() -> Self {
        Vectors::new()
    }
}

thread_local! {
    /// Vectors of the kernels that a test makes.
    static ASKED_FOR: Cell<Option<Vectors>> = const { Cell::new(None) };
}

impl Vectors {
    /// The widest vectors of this processor.
    pub(crate) fn new() -> Self {
        ASKED_FOR.get().unwrap_or_else(|| Vectors(Arch::new()))
    }

    /// Calls a test once for each width of vectors that this processor has, from the narrowest on. Kernels
    /// that the test makes on its thread compute with these.
    pub fn each(mut test: impl FnMut(&str)) {
        for (name, arch) in known() {
            ASKED_FOR.set(Some(Vectors(arch)));
            test(name);
        }
        ASKED_FOR.set(None);
    }

    /// Runs an operation that is compiled for each kind of vectors.
    #[inline(always)]
    pub(crate) fn run<W: WithSimd>(self, operation: W) -> W::Output {
        match self.0 {
            // All x86-64 and most others have vectors of 128 bits.
            Arch::Scalar => Scalar128b.vectorize(operation),
            arch => arch.dispatch(operation),
        }
    }
}

/// Kinds of vectors that this processor has, with their names.
fn known() -> Vec<(&'static str, Arch)> {
    let mut known = vec![("128 bits", Arch::Scalar)];
    #[cfg(target_arch = "x86_64")]
    {
        known.extend(pulp::x86::V3::try_new().map(|simd| ("AVX2", Arch::V3(simd))));
        known.extend(pulp::x86::V4::try_new().map(|simd| ("AVX-512", Arch::V4(simd))));
    }
    #[cfg(target_arch = "aarch64")]
    known.extend(pulp::aarch64::Neon::try_new().map(|simd| ("NEON", Arch::Neon(simd))));
    known
}
