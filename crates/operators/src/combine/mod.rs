//! Operators that make one stream of several, sample by sample.
//!
//! | type | description |
//! |---|---|
//! | [`Multiply`], [`Subtract`] | product and difference of two streams |
//! | [`ComplexJoin`] | complex samples of real and imaginary parts |
//! | [`Mix`] | weighted sum of several streams |
//! | [`Select`] | passes one of several streams on |

mod arithmetic;
mod mix;
mod select;

pub use arithmetic::{ComplexJoin, Multiply, Subtract};
pub use mix::{Mix, Weights};
pub use select::Select;

use num_complex::Complex;
use onbeat_runtime::{Kind, Registry};

pub(crate) fn add_kinds(registry: &mut Registry) {
    for kind in [
        Kind::combine::<Multiply<f32>>(),
        Kind::combine::<Multiply<Complex<f32>>>().named("multiply.complex"),
        Kind::combine::<Subtract<f32>>(),
        Kind::combine::<Subtract<Complex<f32>>>().named("subtract.complex"),
        Kind::combine::<ComplexJoin>(),
        Kind::combine::<Mix<f32>>(),
        Kind::combine::<Mix<Complex<f32>>>().named("mix.complex"),
        Kind::combine::<Select<f32>>(),
        Kind::combine::<Select<Complex<f32>>>().named("select.complex"),
    ] {
        registry.add(kind);
    }
}
