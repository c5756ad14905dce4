//! Contract of every kernel: the output does not depend on slices or on the width of the vectors, has the
//! right length, is not shifted in time, and matches the formula in the doc comment, computed in double
//! precision.
#![forbid(unsafe_code)]

use crate::slices::{Dice, SIZES, Size, drive, drive_map};
use num_complex::Complex;
use onbeat_operators::dsp::{
    Agc, Deemphasis, FirDecimator, FirMethod, FirSample, LowPass, Magnitude, QuadDemod, Quality, Resampler,
    Saxpy, Shift, Vectors,
};
use onbeat_runtime::{Kernel, Map};

const RATE_HZ: f64 = 48e3;
const LENGTHS: [usize; 8] = [0, 1, 2, 3, 17, 255, 1024, 6001];

fn reals(count: usize) -> Vec<f32> {
    Dice::new(7).values(count)
}

fn complexes(count: usize) -> Vec<Complex<f32>> {
    let mut dice = Dice::new(8);
    (0..count).map(|_| Complex::new(dice.value(), dice.value())).collect()
}

fn is_same<T: bytemuck::Pod>(one: &[T], other: &[T]) -> bool {
    bytemuck::cast_slice::<_, u8>(one) == bytemuck::cast_slice::<_, u8>(other)
}

/// Output of a kernel, after checks that no slicing and no vectors change it and that its length is right.
fn outputs<K: Kernel>(make: impl Fn() -> K, input: &[K::In]) -> Vec<K::Out> {
    let started = || {
        let mut kernel = make();
        kernel.start(RATE_HZ).unwrap();
        kernel
    };
    let ratio = started().ratio();
    let whole = drive(&mut started(), input, Size::Fixed(usize::MAX / 2), Size::Fixed(5000));
    let expected = (input.len() as u64 * u64::from(ratio.up)).div_ceil(u64::from(ratio.down));
    assert_eq!(whole.len() as u64, expected, "{} inputs, {ratio:?}", input.len());
    for size_in in SIZES {
        for size_out in SIZES {
            let sliced = drive(&mut started(), input, size_in, size_out);
            assert!(is_same(&sliced, &whole), "{size_in:?} in, {size_out:?} out, {} inputs", input.len());
        }
    }
    // A second start resets the kernel.
    let mut again = started();
    drive(&mut again, input, Size::Fixed(100), Size::Fixed(100));
    again.start(RATE_HZ).unwrap();
    let again = drive(&mut again, input, Size::Fixed(100), Size::Fixed(100));
    assert!(is_same(&again, &whole));
    Vectors::each(|vectors| {
        let output = drive(&mut started(), input, Size::Fixed(1000), Size::Fixed(5000));
        assert!(is_same(&output, &whole), "{vectors}, {} inputs", input.len());
    });
    whole
}

/// Checks a filter with every length, for real and complex samples.
fn check_lengths<R: Kernel<In = f32>, C: Kernel<In = Complex<f32>>>(
    real: impl Fn() -> R,
    complex: impl Fn() -> C,
) {
    for count in LENGTHS {
        outputs(&real, &reals(count));
        outputs(&complex, &complexes(count));
    }
}

/// The filter by its definition: stretch, convolve around the middle tap, keep every `down`-th.
fn direct(taps: &[f64], up: usize, down: usize, input: &[f32]) -> Vec<f64> {
    let middle = (taps.len() - 1) / 2;
    (0..(input.len() * up).div_ceil(down))
        .map(|k| {
            let products = taps.iter().enumerate().map(|(j, tap)| {
                let at = (k * down + middle).checked_sub(j);
                let sample = at.filter(|at| at % up == 0).and_then(|at| input.get(at / up));
                tap * sample.map_or(0.0, |x| f64::from(*x))
            });
            products.sum()
        })
        .collect()
}

fn assert_close(got: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len());
    for (k, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert!((f64::from(*got) - expected).abs() <= tolerance, "{got} for {expected} at {k}");
    }
}

#[test]
fn fir_slices_and_values() {
    // Not symmetric, so that a filter that runs backwards is detected.
    let taps = Dice::new(3).values(31);
    let exact: Vec<f64> = taps.iter().map(|tap| f64::from(*tap)).collect();
    for factor in [1, 2, 3, 5, 40, 97] {
        let make = || FirDecimator::<f32>::with_taps(factor, &taps).unwrap();
        let make_complex = || FirDecimator::<Complex<f32>>::with_taps(factor, &taps).unwrap();
        check_lengths(make, make_complex);

        let real = reals(3001);
        assert_close(&outputs(make, &real), &direct(&exact, 1, factor as usize, &real), 4e-6);
        let complex = complexes(3001);
        let got = outputs(make_complex, &complex);
        let part =
            |f: fn(&Complex<f32>) -> f32, from: &[Complex<f32>]| from.iter().map(f).collect::<Vec<_>>();
        for f in [|x: &Complex<f32>| x.re, |x: &Complex<f32>| x.im] {
            let expected = direct(&exact, 1, factor as usize, &part(f, &complex));
            assert_close(&part(f, &got), &expected, 4e-6);
        }
    }
}

#[test]
fn resampler_slices_and_gain() {
    for (up, down) in [(1, 1), (1, 2), (2, 1), (3, 2), (3, 8), (160, 147), (7, 50), (50, 7)] {
        let make = || Resampler::<f32>::new(up, down, Quality::default()).unwrap();
        let make_complex = || Resampler::<Complex<f32>>::new(up, down, Quality::default()).unwrap();
        for count in [0, 1, 5, 1031] {
            outputs(make, &reals(count));
            outputs(make_complex, &complexes(count));
        }
        // A tone in the pass band comes out as the same tone at the new rate, without other components and
        // without any shift in time.
        let cycles = 0.3 / f64::max(1.0, f64::from(down) / f64::from(up));
        let tone = |position: f64| (std::f64::consts::TAU * cycles * position).cos();
        let input: Vec<f32> = (0..4000).map(|n| tone(f64::from(n)) as f32).collect();
        let got = outputs(make, &input);
        let edge = got.len() / 10;
        let at = |k: usize| k as f64 * f64::from(down) / f64::from(up);
        let expected: Vec<f64> = (edge..got.len() - edge).map(|k| tone(at(k))).collect();
        assert_close(&got[edge..got.len() - edge], &expected, 4e-4);
    }
    let by_rate = outputs(|| Resampler::<f32>::to_rate(32e3, Quality::default()).unwrap(), &reals(600));
    assert_eq!(by_rate, outputs(|| Resampler::<f32>::new(4, 6, Quality::default()).unwrap(), &reals(600)));
}

/// Position of the peak in the output for an impulse at input `at`.
fn peak<T: FirSample, K: Kernel<In = T, Out = T>>(
    mut kernel: K,
    one: T,
    at: usize,
    size: fn(T) -> f32,
) -> usize {
    kernel.start(RATE_HZ).unwrap();
    let mut input = vec![T::zeroed(); 2 * at];
    input[at] = one;
    let output = drive(&mut kernel, &input, Size::Fixed(100), Size::Fixed(100));
    (0..output.len()).max_by(|a, b| size(output[*a]).total_cmp(&size(output[*b]))).unwrap()
}

#[test]
fn impulse_stays_on_its_sample() {
    let one = Complex::new(0.6f32, 0.8);
    let low_pass = LowPass { cutoff_hz: 2e3, transition_hz: 1.5e3, attenuation_db: 60.0 };
    for factor in [1, 2, 3, 8] {
        let at = 600;
        let fir = FirDecimator::new(factor, low_pass).unwrap();
        assert_eq!(peak(fir, 1.0f32, at, f32::abs), at / factor as usize);
        let fir = FirDecimator::new(factor, low_pass).unwrap();
        assert_eq!(peak(fir, one, at, Complex::norm), at / factor as usize);
    }
    for (up, down) in [(1, 1), (3, 2), (3, 8), (160, 147), (5, 1), (1, 6)] {
        let at = down * 40;
        let resampler = Resampler::new(up as u32, down as u32, Quality::default()).unwrap();
        assert_eq!(peak(resampler, 1.0f32, at, f32::abs), at * up / down);
        let resampler = Resampler::new(up as u32, down as u32, Quality::default()).unwrap();
        assert_eq!(peak(resampler, one, at, Complex::norm), at * up / down);
    }
}

#[test]
fn demodulator_slices_and_values() {
    let make = || QuadDemod::new(6e3).unwrap();
    for count in LENGTHS {
        outputs(make, &complexes(count));
    }
    assert_eq!(outputs(make, &complexes(1)), [0.0]);

    // A tone of 1 kHz with 5 kHz of deviation around 3 kHz: the output is the instantaneous frequency without
    // delay.
    let (w, rate) = (std::f64::consts::TAU * 1e3, RATE_HZ);
    let signal = |n: i32| {
        let t = f64::from(n) / rate;
        Complex::from_polar(0.7, std::f64::consts::TAU * 3e3 * t + 5.0 * (w * t).sin())
    };
    let input: Vec<Complex<f32>> =
        (0..2000).map(|n| Complex::new(signal(n).re as f32, signal(n).im as f32)).collect();
    let got = outputs(make, &input);
    let expected: Vec<f64> = (0..2000).map(|n| (3e3 + 5e3 * (w * f64::from(n) / rate).cos()) / 6e3).collect();
    // The formula's own error, w⁴/30 of the tone, is below 10⁻⁵; the rest is the rounding of the samples.
    assert_close(&got[2..1998], &expected[2..1998], 2e-5);

    // A bad sample does not spread.
    let mut bad = input.clone();
    bad[1000] = Complex::new(f32::NAN, f32::INFINITY);
    let bad = outputs(make, &bad);
    assert!(bad.iter().all(|y| y.is_finite()));
    assert_eq!(bad[..998], got[..998]);
    assert_eq!(bad[1003..], got[1003..]);
}

#[test]
fn magnitudes_and_values() {
    for count in LENGTHS {
        let input = complexes(count);
        let exact = input.iter().map(|x| f64::hypot(x.re.into(), x.im.into()));
        assert_close(&outputs(Magnitude::new, &input), &exact.clone().collect::<Vec<_>>(), 2e-7);
        let squares: Vec<f64> = exact.map(|size| size * size).collect();
        assert_close(&outputs(Magnitude::power, &input), &squares, 3e-7);
    }
}

#[test]
fn long_filters_are_exact() {
    let taps = Dice::new(5).values(1001);
    let exact: Vec<f64> = taps.iter().map(|tap| f64::from(*tap)).collect();
    // -134 dB of the largest output that the taps could give.
    let tolerance = 2e-7 * exact.iter().map(|tap| tap.abs()).sum::<f64>();
    let methods = [FirMethod::Direct, FirMethod::Fft, FirMethod::Auto];
    for (factor, method) in [1, 2, 7, 8, 32, 33].into_iter().flat_map(|factor| methods.map(|it| (factor, it)))
    {
        let make = || FirDecimator::<f32>::with_taps(factor, &taps).unwrap().method(method);
        let make_complex = || FirDecimator::<Complex<f32>>::with_taps(factor, &taps).unwrap().method(method);
        check_lengths(make, make_complex);
        let input = reals(15_000);
        assert_close(&outputs(make, &input), &direct(&exact, 1, factor as usize, &input), tolerance);
        let imaginary: Vec<_> = input.iter().map(|x| Complex::new(0.0, *x)).collect();
        let got: Vec<f32> = outputs(make_complex, &imaginary).iter().map(|y| y.im).collect();
        assert_close(&got, &direct(&exact, 1, factor as usize, &input), tolerance);
    }
    // Blocks for filters that are shorter than the factor.
    for factor in [1, 5, 200] {
        let short = &exact[..31];
        let taps: Vec<f32> = short.iter().map(|tap| *tap as f32).collect();
        let make = || FirDecimator::<f32>::with_taps(factor, &taps).unwrap().method(FirMethod::Fft);
        let input = reals(3000);
        assert_close(&outputs(make, &input), &direct(short, 1, factor as usize, &input), tolerance);
    }
}

/// A sample that is not finite spoils the outputs whose windows contain it, and no other.
#[test]
fn bad_samples_spoil_their_windows() {
    for (taps, method) in [(31, FirMethod::Direct), (1001, FirMethod::Fft)] {
        let make = || FirDecimator::<f32>::with_taps(1, &vec![0.01; taps]).unwrap().method(method);
        let (good, mut bad) = (reals(9000), reals(9000));
        bad[5000] = f32::NAN;
        let (expected, got) = (outputs(make, &good), outputs(make, &bad));
        for (at, (expected, got)) in expected.iter().zip(&got).enumerate() {
            let is_spoilt = at.abs_diff(5000) <= taps / 2;
            assert_eq!(got.is_nan(), is_spoilt, "{at}");
            assert!(is_spoilt || (expected - got).abs() < 1e-5, "{got} for {expected} at {at}");
        }
    }
}

#[test]
fn maps_do_not_see_slices() {
    fn check<M: Map>(make: impl Fn() -> M, input: &[M::Sample]) -> Vec<M::Sample> {
        let started = || {
            let mut map = make();
            map.start(RATE_HZ).unwrap();
            map
        };
        let whole = drive_map(&mut started(), input, Size::Fixed(usize::MAX));
        for size in SIZES {
            let sliced = drive_map(&mut started(), input, size);
            assert!(is_same(&sliced, &whole), "{size:?}");
        }
        Vectors::each(|vectors| {
            let output = drive_map(&mut started(), input, Size::Fixed(1000));
            assert!(is_same(&output, &whole), "{vectors}");
        });
        whole
    }
    assert_eq!(check(|| Saxpy::new(2.0, -1.0).unwrap(), &[0.0, 1.0, 0.25]), [-1.0, 1.0, -0.5]);
    check(|| Deemphasis::new(50e-6).unwrap(), &reals(6001));
    check(|| Agc::new(1e-3, 1e-2, 0.5, 100.0).unwrap(), &reals(6001));
    check(|| Agc::new(1e-3, 1e-2, 0.5, 100.0).unwrap(), &complexes(6001));
    let mut bad = reals(6001);
    (bad[0], bad[700], bad[701]) = (f32::NAN, f32::INFINITY, f32::NAN);
    check(|| Agc::new(1e-3, 1e-2, 0.5, 100.0).unwrap(), &bad);
    check(|| Deemphasis::new(50e-6).unwrap(), &bad);

    let input = complexes(6001);
    let got = check(|| Shift::new(-7654.321).unwrap(), &input);
    for (n, (y, x)) in got.iter().zip(&input).enumerate() {
        let turn = Complex::from_polar(1.0, -std::f64::consts::TAU * 7654.321 / RATE_HZ * n as f64);
        let expected = Complex::new(f64::from(x.re), f64::from(x.im)) * turn;
        let error = f64::hypot(f64::from(y.re) - expected.re, f64::from(y.im) - expected.im);
        assert!(error < 5e-7, "{error} at {n}");
    }
}

#[test]
fn wrong_parameters_are_named() {
    let low_pass = LowPass { cutoff_hz: 13e3, transition_hz: 2e3, attenuation_db: 60.0 };
    let mut fir = FirDecimator::<f32>::new(2, low_pass).unwrap();
    let message = |result: Result<(), onbeat_runtime::Error>| result.unwrap_err().to_string();
    let missing = "needs a sample rate, and its input has none: give `sample_rate` at the source";
    assert_eq!(message(fir.start(0.0)), missing);
    assert_eq!(message(QuadDemod::new(5e3).unwrap().start(0.0)), missing);
    assert_eq!(message(Deemphasis::new(50e-6).unwrap().start(0.0)), missing);
    assert_eq!(message(Resampler::<f32>::to_rate(8e3, Quality::default()).unwrap().start(0.0)), missing);
    assert_eq!(
        message(fir.start(RATE_HZ)),
        "`cutoff` is 13000 Hz: it must be below 12000 Hz, half of the output rate; lower `cutoff`, or use a smaller `factor`"
    );
    assert!(message(QuadDemod::new(24e3).unwrap().start(RATE_HZ)).starts_with("`deviation` is 24000"));
    assert!(message(fir.start(f64::NAN)).contains("NaN"));

    let refused = [
        FirDecimator::<f32>::new(0, low_pass).err(),
        FirDecimator::<f32>::with_taps(1, &[]).err(),
        FirDecimator::<f32>::with_taps(1, &[0.5, 0.5]).err(),
        FirDecimator::<f32>::with_taps(1, &[f32::NAN]).err(),
        QuadDemod::new(0.0).err(),
        QuadDemod::new(f64::NAN).err(),
        Resampler::<f32>::new(0, 1, Quality::default()).err(),
        Resampler::<f32>::new(1, 0, Quality::default()).err(),
        Resampler::<f32>::new(1025, 1024, Quality::default()).err(),
        Resampler::<f32>::new(1, 2, Quality { pass_band: 1.0, ..Quality::default() }).err(),
        Resampler::<f32>::to_rate(0.5, Quality::default()).err(),
        Saxpy::new(f32::NAN, 0.0).err(),
    ];
    for (at, error) in refused.iter().enumerate() {
        assert!(error.as_ref().is_some_and(|error| error.to_string().contains('`')), "{at}: {error:?}");
    }
}
