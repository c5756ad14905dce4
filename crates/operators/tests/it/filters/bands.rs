//! Filters with linear phase that pass or stop a band.
#![forbid(unsafe_code)]

use super::{RATE_HZ, complex, complex_difference, difference, driven, level_db, output, real};
use bytemuck::Zeroable;
use num_complex::Complex;
use onbeat_operators::dsp::{BandPass, BandStop, HighPass, SsbDemod};
use onbeat_runtime::{Declared, Kernel};

const BAND: &str = "low = '3 kHz'\nhigh = '8 kHz'\ntransition = '2 kHz'";
const LEFT: &str = "low = '-8 kHz'\nhigh = '-3 kHz'\ntransition = '2 kHz'";
const HIGH: &str = "cutoff = '3 kHz'\ntransition = '2 kHz'";

/// References, with SciPy 1.17 (the design aims 2.5 dB deeper than it promises, or 8.5 dB):
///
/// ```text
/// window = lambda a: ("kaiser", 0.1102 * (a - 8.7))
/// bp = firwin(103, [3000, 8000], window=window(68.5), pass_zero="bandpass", fs=48000)
/// bs = firwin(103, [3000, 8000], window=window(68.5), pass_zero="bandstop", scale=False, fs=48000)
/// bs = bs / sum(bs * np.cos(np.pi * (np.arange(103) - 51)))
/// N = 93; window = window(62.5)
/// hp = firwin(N, 3000, window=window, pass_zero="highpass", fs=48000)
/// turn = np.exp(2j * np.pi * -5500 / 48000 * (np.arange(N) - N // 2))
/// cbp = firwin(N, 2500, window=window, fs=48000) * turn
/// cbs = firwin(N, 2500, window=window, pass_zero="highpass", fs=48000) * turn
/// np.convolve(x, h)[N // 2:][:600]
/// ```
#[test]
fn taps_are_those_of_scipy() {
    for method in ["direct", "fft", "auto"] {
        let with = |text: &str| format!("{text}\nmethod = '{method}'");
        let x = real();
        let reals = [
            (
                driven::<BandPass<f32>>(&with(BAND), RATE_HZ, &x),
                [-5.043627887e-01, 5.341530076e-01, 8.822341656e-02, -1.784572472e-01],
            ),
            (
                driven::<BandStop<f32>>(&with(BAND), RATE_HZ, &x),
                [-4.955119428e-01, 3.407009621e-01, -9.086300803e-01, -6.418447952e-01],
            ),
            (
                driven::<HighPass<f32>>(&with(HIGH), RATE_HZ, &x),
                [-7.635221162e-01, 1.027209775e+00, -7.428750276e-01, -8.056295317e-01],
            ),
        ];
        for (at, (got, expected)) in reals.into_iter().enumerate() {
            let error = difference(&got, expected);
            assert!(error < 5e-7, "{method}, {at}: {error}");
        }
        let z = complex();
        let complexes = [
            (
                driven::<BandPass<Complex<f32>>>(&with(LEFT), RATE_HZ, &z),
                [
                    [-1.912005605e-01, -3.547112395e-01],
                    [3.242453430e-01, 2.041673391e-01],
                    [1.423088968e-01, -1.145015813e-01],
                    [-3.291931880e-02, 5.291448472e-02],
                ],
            ),
            (
                driven::<BandStop<Complex<f32>>>(&with(LEFT), RATE_HZ, &z),
                [
                    [-8.088650130e-01, -6.219386962e-01],
                    [5.508338941e-01, 5.380775008e-01],
                    [-9.626335195e-01, 1.020770924e+00],
                    [-7.874297109e-01, 2.752306634e-01],
                ],
            ),
            (
                driven::<HighPass<Complex<f32>>>(&with(HIGH), RATE_HZ, &z),
                [
                    [-7.635221162e-01, -7.671314867e-01],
                    [1.027209775e+00, 9.727802768e-01],
                    [-7.428750276e-01, 7.453165224e-01],
                    [-8.056295317e-01, 2.737787240e-01],
                ],
            ),
        ];
        for (at, (got, expected)) in complexes.into_iter().enumerate() {
            let error = complex_difference(&got, expected);
            assert!(error < 5e-7, "{method}, {at}: {error}");
        }
    }
}

/// Response to an impulse in the middle of a stream.
fn response<K: Kernel<In = Complex<f32>, Out = Complex<f32>> + Declared>(text: &str) -> Vec<Complex<f32>> {
    let mut impulse = vec![Complex::new(0.0, 0.0); 4001];
    impulse[2000].re = 1.0;
    output::<K>(text, RATE_HZ, &impulse)
}

fn real_response<K: Kernel<In = f32, Out = f32> + Declared>(text: &str) -> Vec<Complex<f32>> {
    let mut impulse = vec![0.0; 4001];
    impulse[2000] = 1.0;
    output::<K>(text, RATE_HZ, &impulse).into_iter().map(|y| Complex::new(y, 0.0)).collect()
}

/// Checks a response on a grid: `is_passed` says for a frequency whether it passes, is stopped, or neither.
fn keeps(name: &str, impulse: &[Complex<f32>], attenuation_db: f64, is_passed: impl Fn(f64) -> Option<bool>) {
    let ripple = 20.0 * (1.0 + 10f64.powf(-attenuation_db / 20.0)).log10();
    for step in -240..240 {
        let hz = f64::from(step) * 100.0;
        let level = level_db(impulse, hz, RATE_HZ);
        match is_passed(hz) {
            Some(true) => assert!(level.abs() < ripple, "{name}: {level} dB at {hz} Hz"),
            Some(false) => assert!(level < -attenuation_db, "{name}: {level} dB at {hz} Hz"),
            None => {}
        }
    }
}

#[test]
fn responses_keep_their_decibels() {
    for attenuation in [30.0, 60.0, 80.0, 100.0] {
        for (low, high, transition) in [(3000.0, 8000.0, 1000.0), (500.0, 1400.0, 900.0), (9e3, 9.6e3, 600.0)]
        {
            let text =
                format!("low = {low}\nhigh = {high}\ntransition = {transition}\nattenuation = {attenuation}");
            let place = move |hz: f64| {
                let (inner, outer) = ((high - low - transition) / 2.0, (high - low + transition) / 2.0);
                let distance = (hz - (low + high) / 2.0).abs();
                if distance < inner - 1.0 { Some(true) } else { (distance > outer + 1.0).then_some(false) }
            };
            let both = move |hz: f64| place(hz.abs());
            let other = |passes: Option<bool>| passes.map(|passes| !passes);
            keeps("real pass", &real_response::<BandPass<f32>>(&text), attenuation, both);
            keeps("real stop", &real_response::<BandStop<f32>>(&text), attenuation, |hz| other(both(hz)));
            keeps("pass", &response::<BandPass<Complex<f32>>>(&text), attenuation, place);
            keeps("stop", &response::<BandStop<Complex<f32>>>(&text), attenuation, |hz| other(place(hz)));
            let text = text.replace(&format!("low = {low}\nhigh = {high}"), &format!("cutoff = {high}"));
            let edge = move |hz: f64| {
                let distance = hz.abs() - high;
                (distance.abs() > transition / 2.0 + 1.0).then_some(distance > 0.0)
            };
            keeps("real high", &real_response::<HighPass<f32>>(&text), attenuation, edge);
            keeps("high", &response::<HighPass<Complex<f32>>>(&text), attenuation, edge);
        }
    }
}

/// A band around 0 Hz, and one that reaches to both ends.
#[test]
fn complex_bands_can_be_anywhere() {
    let impulse = response::<BandPass<Complex<f32>>>("low = -2000\nhigh = 2000\ntransition = 500");
    assert!(impulse.iter().all(|y| y.im == 0.0));
    keeps("around 0", &impulse, 60.0, |hz| (hz.abs() < 1750.0).then_some(true));
    let impulse = response::<BandPass<Complex<f32>>>("low = 0\nhigh = 23900\ntransition = 500");
    keeps("one half", &impulse, 60.0, |hz| (hz.abs() > 300.0 && hz.abs() < 23_600.0).then_some(hz > 0.0));
    // The edge is where the amplitude is halved.
    assert!((level_db(&impulse, 0.0, RATE_HZ) + 6.02).abs() < 0.1);
    // The impulse stays on its sample.
    let peak = (0..4001).max_by(|a, b| impulse[*a].norm().total_cmp(&impulse[*b].norm())).unwrap();
    assert_eq!(peak, 2000);
}

/// A worker that takes over in the middle of a stream computes what another one would have.
#[test]
fn streams_can_be_continued_anywhere() {
    fn check<K: Kernel<In = Complex<f32>> + Declared>(text: &str)
    where
        K::Out: PartialEq + std::fmt::Debug,
    {
        let (input, whole) = (complex(), output::<K>(text, RATE_HZ, &complex()));
        let mut kernel = K::with(text).unwrap();
        kernel.start(RATE_HZ).unwrap();
        let mut kernel = kernel.replica().unwrap();
        let mut buffer = vec![K::Out::zeroed(); 600];
        kernel.process(&input[..77], &mut buffer);
        let finite = kernel.finite().unwrap();
        let memory = finite.memory();
        finite.resume(200);
        let done = kernel.process(&input[200..], &mut buffer);
        assert_eq!((done.consumed, done.produced), (400, 400 - memory / 2));
        assert_eq!(buffer[memory / 2..done.produced], whole[200 + memory / 2..600 - memory / 2], "{text}");
        assert!(K::with(&format!("{text}\nmethod = 'fft'")).unwrap().finite().is_none());
    }
    check::<BandPass<Complex<f32>>>(LEFT);
    check::<BandStop<Complex<f32>>>(LEFT);
    check::<HighPass<Complex<f32>>>(HIGH);
    check::<SsbDemod>("low = 1500\nhigh = 6000\ntransition = 2000");
}

#[test]
fn bad_samples_spoil_their_windows() {
    let mut z = complex();
    z[300].re = f32::NAN;
    for method in ["direct", "fft"] {
        let got = driven::<BandPass<Complex<f32>>>(&format!("{LEFT}\nmethod = '{method}'"), RATE_HZ, &z);
        let spoilt: Vec<usize> = (0..600).filter(|at| !got[*at].is_finite()).collect();
        assert_eq!(spoilt, (300 - 46..=300 + 46).collect::<Vec<_>>(), "{method}");
    }
}

#[test]
fn wrong_parameters_are_named() {
    fn refused<K: Kernel + Declared>(text: &str) -> String {
        match K::with(text) {
            Err(error) => error.to_string(),
            Ok(mut kernel) => match kernel.start(RATE_HZ) {
                Err(error) => error.to_string(),
                Ok(()) => "nothing".into(),
            },
        }
    }
    for (text, real, complex) in [
        ("low = 10\nhigh = 9\ntransition = 1", "`high` is 9: it must be at least 11", "`high` is 9"),
        ("low = 1000\nhigh = 1500\ntransition = 600", "at least 1600", "at least 1600"),
        ("low = 100\nhigh = 1500\ntransition = 600", "`low` is 100: it must be at least 300", "nothing"),
        ("low = -900\nhigh = 900\ntransition = 600", "`low` is -900", "nothing"),
        (
            "low = 1000\nhigh = 23900\ntransition = 600",
            "`high` is 23900: it must be at most 23700",
            "nothing",
        ),
        (
            "low = 1000\nhigh = 24000\ntransition = 600",
            "at most 23700",
            "`high` is 24000 Hz: it must be below 24000 Hz",
        ),
        (
            "low = -25000\nhigh = 0\ntransition = 600",
            "`low`",
            "`low` is -25000 Hz: it must be below 24000 Hz",
        ),
        ("low = 1000\nhigh = 2000\ntransition = 0", "`transition` is 0", "`transition` is 0"),
        ("low = 1000\nhigh = 2000\ntransition = 0.5", "16383 is the limit", "16383 is the limit"),
        (
            "low = 1000\nhigh = 2000\ntransition = 100\nattenuation = 121",
            "`attenuation` is 121 dB: it must be 120 dB or less",
            "`attenuation` is 121",
        ),
    ] {
        let got = [
            refused::<BandPass<f32>>(text),
            refused::<BandStop<f32>>(text),
            refused::<BandPass<Complex<f32>>>(text),
            refused::<BandStop<Complex<f32>>>(text),
        ];
        for (got, expected) in got.iter().zip([real, real, complex, complex]) {
            assert!(got.contains(expected), "{text}: {got}");
        }
    }
    let high = |text: &str| refused::<HighPass<f32>>(text);
    assert!(high("cutoff = 100\ntransition = 300").contains("`cutoff` is 100: it must be at least 150"));
    assert!(high("cutoff = 23900\ntransition = 300").contains("`cutoff` is 23900: it must be at most 23850"));
}
