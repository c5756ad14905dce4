//! Filters and demodulators, compared with SciPy.
#![forbid(unsafe_code)]

mod bands;
mod demodulators;
mod designs;
mod recursive;
mod taps;

use crate::slices::{SIZES, Size, drive, drive_map};
use num_complex::Complex;
use onbeat_runtime::{Declared, Kernel, Map};
use std::f64::consts::TAU;

pub const RATE_HZ: f64 = 48e3;
/// Outputs whose values are in the tables.
pub const AT: [usize; 4] = [0, 5, 60, 599];

/// `n = np.arange(600); x = ((n*n*7 + n*13) % 257 - 128) / 128`
pub fn real() -> Vec<f32> {
    (0..600).map(|n| (((n * n * 7 + n * 13) % 257) - 128) as f32 / 128.0).collect()
}

/// `z = x + 1j * ((n*n*3 + n*29) % 251 - 125) / 128`
pub fn complex() -> Vec<Complex<f32>> {
    let im = |n: i32| (((n * n * 3 + n * 29) % 251) - 125) as f32 / 128.0;
    real().into_iter().zip(0..).map(|(re, n)| Complex::new(re, im(n))).collect()
}

/// Real and imaginary parts as double precision.
pub fn wide(x: Complex<f32>) -> Complex<f64> {
    Complex::new(x.re.into(), x.im.into())
}

/// Output of a map, the same for all slices.
pub fn mapped<M: Map + Declared>(parameters: &str, rate_hz: f64, input: &[M::Sample]) -> Vec<M::Sample> {
    let started = || {
        let mut map = M::with(parameters).unwrap_or_else(|error| panic!("{parameters}: {error}"));
        map.start(rate_hz).unwrap_or_else(|error| panic!("{parameters}: {error}"));
        map
    };
    let whole = drive_map(&mut started(), input, Size::Fixed(usize::MAX));
    for size in SIZES {
        let sliced = drive_map(&mut started(), input, size);
        assert!(same(&sliced, &whole), "{parameters}, {size:?}");
    }
    // A second start forgets everything.
    let mut map = started();
    drive_map(&mut map, input, Size::Fixed(100));
    map.start(rate_hz).unwrap();
    assert!(same(&drive_map(&mut map, input, Size::Fixed(100)), &whole), "{parameters}");
    whole
}

/// Output of a kernel, the same for all slices.
pub fn driven<K: Kernel + Declared>(parameters: &str, rate_hz: f64, input: &[K::In]) -> Vec<K::Out> {
    let started = || {
        let mut kernel = K::with(parameters).unwrap_or_else(|error| panic!("{parameters}: {error}"));
        kernel.start(rate_hz).unwrap_or_else(|error| panic!("{parameters}: {error}"));
        kernel
    };
    let whole = drive(&mut started(), input, Size::Fixed(usize::MAX / 2), Size::Fixed(5000));
    assert_eq!(whole.len(), input.len(), "{parameters}");
    for size in SIZES {
        for room in SIZES {
            let sliced = drive(&mut started(), input, size, room);
            assert!(same(&sliced, &whole), "{parameters}, {size:?}, {room:?}");
        }
    }
    let mut kernel = started();
    drive(&mut kernel, input, Size::Fixed(100), Size::Fixed(100));
    kernel.start(rate_hz).unwrap();
    assert!(same(&drive(&mut kernel, input, Size::Fixed(64), Size::Fixed(64)), &whole), "{parameters}");
    whole
}

/// Output of a kernel, with one way to slice its input.
pub fn output<K: Kernel + Declared>(parameters: &str, rate_hz: f64, input: &[K::In]) -> Vec<K::Out> {
    let mut kernel = K::with(parameters).unwrap_or_else(|error| panic!("{parameters}: {error}"));
    kernel.start(rate_hz).unwrap_or_else(|error| panic!("{parameters}: {error}"));
    drive(&mut kernel, input, Size::Fixed(500), Size::Fixed(500))
}

fn same<T: bytemuck::Pod>(one: &[T], other: &[T]) -> bool {
    bytemuck::cast_slice::<_, u8>(one) == bytemuck::cast_slice::<_, u8>(other)
}

/// Largest difference from SciPy's real outputs.
pub fn difference(got: &[f32], expected: [f64; 4]) -> f64 {
    AT.iter().zip(expected).map(|(at, y)| (f64::from(got[*at]) - y).abs()).fold(0.0, f64::max)
}

/// Largest difference from SciPy's complex outputs.
pub fn complex_difference(got: &[Complex<f32>], expected: [[f64; 2]; 4]) -> f64 {
    let size = |(at, [re, im]): (&usize, [f64; 2])| (wide(got[*at]) - Complex::new(re, im)).norm();
    AT.iter().zip(expected).map(size).fold(0.0, f64::max)
}

/// Response to this frequency, in decibels, from the response to an impulse.
pub fn level_db(impulse: &[Complex<f32>], hz: f64, rate_hz: f64) -> f64 {
    let turn =
        |(n, y): (usize, &Complex<f32>)| wide(*y) * Complex::from_polar(1.0, -TAU * hz / rate_hz * n as f64);
    let parts = impulse.iter().enumerate().filter(|(_, y)| **y != Complex::new(0.0, 0.0));
    20.0 * parts.map(turn).sum::<Complex<f64>>().norm().log10()
}
