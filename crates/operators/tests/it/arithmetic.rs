//! Arithmetic on samples and values, compared with NumPy.
#![forbid(unsafe_code)]

use crate::slices::Dice;
use num_complex::Complex;
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Seen, Trial, cuts};
use onbeat_runtime::{Sample, Value};
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

fn run<T: Sample>(kind: &str, parameters: &str, samples: &[T]) -> Seen {
    let samples = samples.to_vec();
    cuts(|| {
        let feed = Feed::samples(samples.clone()).rate(48e3).tag(1, "mark", 7);
        Trial::kind(&registry(), kind, parameters).feed("in", feed)
    })
}

fn complexes(pairs: &[(f32, f32)]) -> Vec<Complex<f32>> {
    pairs.iter().map(|&(re, im)| Complex::new(re, im)).collect()
}

#[test]
fn gains() {
    let samples: Vec<f32> = Dice::new(3).values(5000);
    for db in [-120.0, -6.0, 0.0, 20.0 * 2f64.log10(), 40.0] {
        let seen = run("gain", &format!("gain = '{db} dB'"), &samples);
        let factor = 10f64.powf(db / 20.0);
        for (y, x) in seen.samples::<f32>("out").iter().zip(&samples) {
            let expected = factor * f64::from(*x);
            assert!((f64::from(*y) - expected).abs() <= 1.3e-7 * expected.abs(), "{y} for {expected}");
        }
        assert_eq!(seen.tags("out"), [(1, "mark".to_string(), 7.into())]);
    }
    let seen = run("gain.complex", "gain = -20", &complexes(&[(10.0, -20.0), (0.0, 5.0)]));
    assert_eq!(seen.samples::<Complex<f32>>("out"), complexes(&[(1.0, -2.0), (0.0, 0.5)]));
    let seen = cuts(|| {
        Trial::kind(&registry(), "gain", "gain = 0").feed("in", Feed::samples(vec![1.0f32; 3000])).set(
            "gain",
            "20 dB",
            Some(1111),
        )
    });
    let expected = (0..3000).map(|n| if n < 1111 { 1.0 } else { 10.0 });
    assert!(seen.samples::<f32>("out").into_iter().eq(expected));
}

#[test]
fn clipping_is_counted() {
    let inf = f32::INFINITY;
    let seen = run("clip", "limit = 0.5", &[0.5, -0.5, 0.25, 0.75, -8.0, inf, -inf, f32::NAN, 0.0]);
    let got = seen.samples::<f32>("out");
    // np.clip(x, -0.5, 0.5)
    assert_eq!(got[..7], [0.5, -0.5, 0.25, 0.5, -0.5, 0.5, -0.5]);
    assert!(got[7].is_nan() && got[8] == 0.0);
    assert_eq!(seen.notes(), ["4 samples were beyond `limit` and were clipped"]);
    // np.where(abs(z) > 2, z / abs(z) * 2, z)
    let samples = complexes(&[(3.0, 4.0), (-0.3, 0.4), (-6.0, -8.0), (3e38, 0.0), (inf, 1.0)]);
    let seen = run("clip.complex", "limit = 2", &samples);
    let expected = complexes(&[(1.2, 1.6), (-0.3, 0.4), (-1.2, -1.6), (2.0, 0.0), (inf, 1.0)]);
    assert_eq!(seen.samples::<Complex<f32>>("out"), expected);
    assert_eq!(seen.notes(), ["3 samples were beyond `limit` and were clipped"]);
    let seen = cuts(|| {
        let feed = Feed::samples((0..2000).map(|n| n as f32 / 1000.0));
        Trial::kind(&registry(), "clip", "").feed("in", feed).set("limit", 1.5, Some(1200))
    });
    assert_eq!(seen.notes(), ["698 samples were beyond `limit` and were clipped"]);
    assert!(run("clip", "", &[0.5f32]).notes().is_empty());
}

#[test]
fn parts_of_complex_samples() {
    let mut dice = Dice::new(9);
    let samples: Vec<_> = (0..5000).map(|_| Complex::new(dice.value(), dice.value())).collect();
    let of = |kind: &str| run(kind, "", &samples).samples::<f32>("out");
    assert!(of("real").into_iter().eq(samples.iter().map(|x| x.re)));
    assert!(of("imaginary").into_iter().eq(samples.iter().map(|x| x.im)));
    for (y, x) in of("argument").iter().zip(&samples) {
        let expected = f64::from(x.im).atan2(x.re.into());
        assert!((f64::from(*y) - expected).abs() < 1e-6, "{y} for {expected}");
    }
    let conjugate = run("conjugate", "", &samples).samples::<Complex<f32>>("out");
    assert!(conjugate.into_iter().eq(samples.iter().map(Complex::conj)));
    let reals: Vec<f32> = samples.iter().map(|x| x.re).collect();
    let seen = run("complex", "", &reals);
    let expected = reals.iter().map(|&x| Complex::new(x, 0.0));
    assert!(seen.samples::<Complex<f32>>("out").into_iter().eq(expected));
    assert_eq!((seen.rate_hz("out"), seen.tags("out").len()), (48e3, 1));
    assert!(run("abs", "", &reals).samples::<f32>("out").into_iter().eq(reals.iter().map(|x| x.abs())));
}

/// `np.angle` of these, except for the third: NumPy gives −π there.
#[test]
fn angles_of_special_samples() {
    let samples = [
        (1.0, 1.0),
        (-1.0, 0.0),
        (-1.0, -0.0),
        (0.0, -1.0),
        (3.0, -4.0),
        (-1e-30, 2e-30),
        (-3e38, -3e38),
        (0.0, 0.0),
        (f32::NAN, 1.0),
        (1.0, f32::INFINITY),
    ];
    let expected =
        [FRAC_PI_4, PI, PI, -FRAC_PI_2, -0.927295218001612, 2.0344439357957, -2.35619449019234, 0.0];
    let got = run("argument", "", &complexes(&samples)).samples::<f32>("out");
    for (at, (y, expected)) in got.iter().zip(expected).enumerate() {
        assert!((f64::from(*y) - expected).abs() < 1e-6, "{y} for {expected} at {at}");
    }
    assert!(got[8].is_nan() && got[9].is_nan());
}

#[test]
fn bytes_with_a_scale() {
    // np.clip(np.rint(x * 127.5 + 127.5), 0, 255) in single precision
    let seen =
        run("image.bytes", "scale = 127.5\noffset = 127.5", &[-1.0f32, 0.0, 0.25, 0.5, 1.0, 3.0, f32::NAN]);
    assert_eq!(seen.samples::<u8>("out"), [0, 128, 159, 191, 255, 255, 0]);
    let seen = run("image.real", "scale = 0.0078125\noffset = -1", &[0u8, 64, 128, 255]);
    assert_eq!(seen.samples::<f32>("out"), [-1.0, -0.5, 0.0, 0.9921875]);
    for (kind, name) in [("image.bytes", "scale"), ("image.real", "offset")] {
        let error = registry().operator(kind, &format!("{name} = inf")).err().unwrap().to_string();
        assert!(error.contains(&format!("`{name}` is inf")), "{error}");
    }
}

#[test]
fn values_are_converted() {
    let values = [0.0, 1.0, -2.5, 1e300, f64::NAN];
    let trial =
        |text: &str| Trial::kind(&registry(), "value.linear", text).feed("in", Feed::messages(values));
    let got = trial("scale = 1.8\noffset = 32").run().messages::<f64>("out");
    assert_eq!(got[..3], [32.0, 33.8, 27.5]);
    assert!(got[4].is_nan());
    let set = trial("").set("scale", 2, None).set("offset", -1, None).run().messages::<f64>("out");
    assert_eq!(set[..3], [-1.0, 1.0, -6.0]);
    let text = trial("").set("scale", f64::NAN, None).failure();
    assert!(text.contains("`scale` is NaN: it must be a finite number"), "{text}");
    let text = trial("").set("scale", Value::from(2), Some(1)).failure();
    assert!(text.contains("changes between two steps"), "{text}");
}

#[test]
fn values_are_counted() {
    let values = [1.0, 0.0, 2.0, f64::NAN, -1.0, 3.0];
    let trial = || Trial::kind(&registry(), "value.count", "").feed("in", Feed::messages(values));
    assert_eq!(trial().run().messages::<f64>("out"), [1.0, 2.0, 3.0]);
    assert_eq!(trial().set("above", 1.5, None).run().messages::<f64>("out"), [1.0, 2.0]);
}
