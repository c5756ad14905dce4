//! Recursive filters.
#![forbid(unsafe_code)]

use super::designs::DESIGNS;
use super::{RATE_HZ, complex, complex_difference, difference, level_db, mapped, real};
use num_complex::Complex;
use onbeat_operators::iir::{ComplexNotch, DcBlock, Iir, Notch, Sos};
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Trial, cuts};
use onbeat_runtime::{Declared, Map};

fn parameters(family: &str, response: &str, order: usize) -> String {
    let more = match family {
        "chebyshev1" => "ripple = '0.5 dB'",
        "chebyshev2" => "attenuation = '50 dB'",
        _ => "",
    };
    let (response, edges) = match response {
        "lowpass" => ("low-pass", "cutoff = '900 Hz'"),
        "highpass" => ("high-pass", "cutoff = '2.5 kHz'"),
        "bandpass" => ("band-pass", "low = 800\nhigh = 5000"),
        _ => ("band-stop", "low = 1000\nhigh = 1400"),
    };
    format!("family = '{family}'\nresponse = '{response}'\norder = {order}\n{edges}\n{more}")
}

#[test]
fn designs_are_those_of_scipy() {
    let mut worst: f64 = 0.0;
    for (family, response, order, expected) in DESIGNS {
        let parameters = parameters(family, response, order);
        let got = mapped::<Iir<f32>>(&parameters, RATE_HZ, &real());
        let error = difference(&got, expected);
        assert!(error < 2e-7, "{parameters}: {error}");
        worst = worst.max(error);
        // The parts of complex samples, and two channels of real ones, are filtered alike.
        let both: Vec<_> = real().into_iter().map(|x| Complex::new(x, -x)).collect();
        let pairs = mapped::<Iir<Complex<f32>>>(&parameters, RATE_HZ, &both);
        assert!(pairs.iter().zip(&got).all(|(pair, y)| (pair.re, pair.im) == (*y, -*y)), "{parameters}");
        let stereo = format!("{parameters}\nchannels = 2");
        let channels = mapped::<Iir<f32>>(&stereo, 2.0 * RATE_HZ, bytemuck::cast_slice(&both));
        assert_eq!(channels, bytemuck::cast_slice::<_, f32>(&pairs), "{parameters}");
    }
    assert!(worst > 0.0);
}

/// Levels at the edges, in the pass band and in the stop band.
#[test]
fn responses_keep_their_decibels() {
    let mut impulse = vec![Complex::new(0.0, 0.0); 40_000];
    impulse[0].re = 1.0;
    let level = |parameters: &str, hz: f64| {
        let mut filter = Iir::<Complex<f32>>::with(parameters).unwrap();
        filter.start(RATE_HZ).unwrap();
        let mut response = impulse.clone();
        filter.map(&mut response);
        level_db(&response, hz, RATE_HZ)
    };
    for order in [1, 2, 3, 6, 9] {
        for (family, edge_db) in [("butterworth", -3.0103), ("chebyshev1", -0.5), ("chebyshev2", -50.0)] {
            for (response, edges, passed, stopped) in [
                ("lowpass", &[900.0][..], 90.0, 20_000.0),
                ("highpass", &[2500.0], 22_000.0, 100.0),
                ("bandpass", &[800.0, 5000.0], 2000.0, 100.0),
                ("bandstop", &[1000.0, 1400.0], 20_000.0, 1200.0),
            ] {
                let parameters = parameters(family, response, order);
                for edge in edges {
                    let got = level(&parameters, *edge);
                    assert!((got - edge_db).abs() < 0.01, "{parameters}: {got} dB at {edge} Hz");
                }
                let pass = level(&parameters, passed);
                // A filter of order 1 with its stop band at the edge passes little.
                let least = if family == "chebyshev2" && order < 6 { -60.0 } else { -0.6 };
                assert!((least..0.001).contains(&pass), "{parameters}: {pass} dB at {passed} Hz");
                if order >= 3 {
                    let stop = level(&parameters, stopped);
                    assert!(stop < -49.99, "{parameters}: {stop} dB at {stopped} Hz");
                }
            }
        }
    }
}

#[test]
fn notches_and_dc_blocks_are_those_of_scipy() {
    let notch = |text: &str, expected| {
        let error = difference(&mapped::<Notch>(text, RATE_HZ, &real()), expected);
        assert!(error < 1.2e-7, "{text}: {error}");
    };
    // scipy.signal.lfilter(*scipy.signal.iirnotch(frequency, q, fs=48000), x)
    notch("frequency = 50", [-9.998909288e-01, 8.754151962e-01, -8.193714879e-01, -8.208204534e-01]);
    notch(
        "frequency = '9 kHz'\nq = 0.8",
        [-5.245634249e-01, 1.613393816e-01, -5.705214280e-01, -1.633148685e-01],
    );
    // scipy.signal.lfilter(*scipy.signal.butter(1, 100, "high", fs=48000), x), and for z
    let got = mapped::<DcBlock<f32>>("cutoff = 100", RATE_HZ, &real());
    let error = difference(&got, [-9.934974813e-01, 8.982865497e-01, -7.768832815e-01, -8.316239274e-01]);
    assert!(error < 6e-8, "{error}");
    let expected = [
        [-9.934974813e-01, -9.702123841e-01],
        [8.982865497e-01, 7.609289081e-01],
        [-7.768832815e-01, 8.569940760e-01],
        [-8.316239274e-01, 2.674328176e-01],
    ];
    let got = mapped::<DcBlock<Complex<f32>>>("cutoff = 100", RATE_HZ, &complex());
    let error = complex_difference(&got, expected);
    assert!(error < 8e-8, "{error}");
    // w, beta = 2*np.pi*-9000/48000, np.tan(np.pi*9000/3/2/48000); t = np.exp(1j*w)
    // scipy.signal.lfilter([1, -t], [1 + beta, -(1 - beta)*t], z)
    let expected = [
        [-9.103393954e-01, -8.890033158e-01],
        [6.203021237e-01, 8.236008884e-01],
        [-6.827899773e-01, 1.056616430e+00],
        [-6.877475787e-01, 5.094192990e-01],
    ];
    let got = mapped::<ComplexNotch>("frequency = '-9 kHz'\nq = 3", RATE_HZ, &complex());
    let error = complex_difference(&got, expected);
    assert!(error < 8e-8, "{error}");
}

/// A notch has −3 dB at half of its width on both sides, and nothing in the middle; the mirror image passes.
#[test]
fn a_notch_is_as_wide_as_it_says() {
    let mut impulse = vec![Complex::new(0.0, 0.0); 20_000];
    impulse[0].re = 1.0;
    let response = mapped::<ComplexNotch>("frequency = '-3 kHz'\nq = 10", RATE_HZ, &impulse);
    let level = |hz: f64| level_db(&response, hz, RATE_HZ);
    assert!(level(-3000.0) < -100.0, "{}", level(-3000.0));
    assert!((level(-3150.0) + 3.01).abs() < 0.01 && (level(-2850.0) + 3.01).abs() < 0.01);
    assert!(level(3000.0) > -0.01);
    let reals: Vec<f32> = impulse.iter().map(|x| x.re).collect();
    let response: Vec<_> = mapped::<Notch>("frequency = '20 kHz'\nq = 20", RATE_HZ, &reals)
        .into_iter()
        .map(|y| Complex::new(y, 0.0))
        .collect();
    let level = |hz: f64| level_db(&response, hz, RATE_HZ);
    assert!(level(20e3) < -100.0, "{}", level(20e3));
    // The width is kept, and both edges move a little: cos(mean of the edges) = cos(w) cos(width / 2).
    assert!((level(19_472.0) + 3.01).abs() < 0.05 && (level(20_472.0) + 3.01).abs() < 0.05);
}

#[test]
fn coefficients_are_used_as_scipy_uses_them() {
    let sos = "sos = [[0.5, 0.1, -0.3, 2.0, -0.8, 0.9], [1.0, -1.9, 0.95, 1.0, -1.2, 0.5]]";
    // scipy.signal.sosfilt(np.array(sos) / [[2.0], [1.0]], x), and for z
    let got = mapped::<Sos<f32>>(sos, 0.0, &real());
    let error = difference(&got, [-2.500000000e-01, -6.576406250e-03, -4.063490392e-01, -3.955583727e-01]);
    assert!(error < 3e-8, "{error}");
    let expected = [
        [-2.500000000e-01, -2.441406250e-01],
        [-6.576406250e-03, -7.307685547e-02],
        [-4.063490392e-01, 1.111586744e-01],
        [-3.955583727e-01, -2.003612932e-01],
    ];
    let error = complex_difference(&mapped::<Sos<Complex<f32>>>(sos, 0.0, &complex()), expected);
    assert!(error < 3e-8, "{error}");
    for (sos, expected) in [
        ("[]", "`sos` has 0 sections"),
        ("[[1, 0, 0, 0, 0, 0]]", "`sos[0]` is [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]: it must be six finite numbers"),
        ("[[1, 0, 0, 1, 0, 0], [nan, 0, 0, 1, 0, 0]]", "`sos[1]` is"),
        ("[[1, 0, 0, 1, 0, 1]]", "inside the unit circle"),
        ("[[1, 0, 0, 1, -2, 0.99]]", "inside the unit circle"),
        ("[[1, 0, 0, 1, 0]]", "a parameter"),
    ] {
        let error = Sos::<f32>::with(&format!("sos = {sos}")).err().unwrap().to_string();
        assert!(error.contains(expected), "{sos}: {error}");
    }
}

#[test]
fn bad_samples_do_not_stay_and_silence_ends() {
    let mut samples = real();
    let mut zeros = samples.clone();
    (samples[7], samples[70]) = (f32::NAN, f32::NEG_INFINITY);
    (zeros[7], zeros[70]) = (0.0, 0.0);
    let text = "response = 'low-pass'\ncutoff = 50\norder = 7";
    let mut filter = Iir::<f32>::with(text).unwrap();
    filter.start(RATE_HZ).unwrap();
    filter.map(&mut samples);
    assert_eq!(samples, mapped::<Iir<f32>>(text, RATE_HZ, &zeros));
    assert_eq!(filter.note().unwrap(), "2 samples were not finite and counted as 0");
    let mut silence = vec![0.0; 200_000];
    filter.map(&mut silence);
    assert_eq!(silence[199_999], 0.0);
    // A DC block and a complex notch hold their memory instead, so that no step appears.
    let mut block = DcBlock::<f32>::with("cutoff = 10").unwrap();
    block.start(RATE_HZ).unwrap();
    let mut samples = vec![0.5; 100_000];
    samples[50_000] = f32::INFINITY;
    block.map(&mut samples);
    assert_eq!(samples[50_000], 0.0);
    assert!(samples[49_000..].iter().all(|y| y.abs() < 1e-3), "{:?}", &samples[49_999..50_003]);
    // 1 % after 0.73 / cutoff: 3504 samples.
    assert!((samples[3504] - 0.005).abs() < 2e-4, "{}", samples[3504]);
    assert_eq!(block.note().unwrap(), "1 samples were not finite and were replaced by 0");
}

/// The largest step from one sample to the next around a change is that of the signal itself.
#[test]
fn changes_do_not_click() {
    let tone: Vec<f32> = (0..20_000).map(|n| (n as f32 * 0.02).sin()).collect();
    for (kind, parameters, name, value) in [
        ("notch", "frequency = 1000\nq = 2", "frequency", "3 kHz"),
        ("notch", "frequency = 1000\nq = 2", "q", "30"),
        ("iir", "response = 'low-pass'\ncutoff = 1000\norder = 8", "cutoff", "400 Hz"),
        ("iir", "response = 'high-pass'\ncutoff = 30\norder = 4", "cutoff", "100 Hz"),
        ("iir", "response = 'band-pass'\nlow = 50\nhigh = 400\norder = 2", "high", "1 kHz"),
        ("dc.block", "cutoff = 10", "cutoff", "50 Hz"),
    ] {
        let value = value.parse::<f64>().map_or_else(|_| value.into(), onbeat_runtime::Value::from);
        let trial = || {
            Trial::kind(&registry(), kind, parameters)
                .feed("in", Feed::samples(tone.clone()).rate(RATE_HZ))
                .set(name, value.clone(), Some(10_001))
                // The second change waits for the end of the fade to the first.
                .set(name, value.clone(), Some(10_100))
        };
        let seen = cuts(trial);
        let output = seen.samples::<f32>("out");
        let step = |range: std::ops::Range<usize>| {
            output[range].windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(0.0, f32::max)
        };
        let (before, around, after) = (step(8000..10_000), step(10_000..10_600), step(17_000..20_000));
        assert!(around < 1.6 * before.max(after), "{kind}, {name}: {around} after {before}, then {after}");
    }
}

#[test]
fn a_changed_filter_becomes_the_new_one() {
    let input: Vec<f32> = (0..30_000).map(|n| ((n * 7919) % 1000) as f32 / 500.0 - 1.0).collect();
    for (kind, from, name, value, to) in [
        ("notch", "frequency = 1000", "frequency", "3 kHz", "frequency = 3000"),
        (
            "iir",
            "response = 'low-pass'\ncutoff = 5000",
            "cutoff",
            "800 Hz",
            "response = 'low-pass'\ncutoff = 800",
        ),
        ("dc.block", "cutoff = 30", "cutoff", "90 Hz", "cutoff = 90"),
    ] {
        let trial = |parameters: &str| {
            Trial::kind(&registry(), kind, parameters).feed("in", Feed::samples(input.clone()).rate(RATE_HZ))
        };
        let (new, written) = (trial(from).set(name, value, Some(1000)).run(), trial(to).run());
        let (new, written) = (new.samples::<f32>("out"), written.samples::<f32>("out"));
        for (n, (one, other)) in new.iter().zip(&written).enumerate().skip(29_000) {
            assert!((one - other).abs() < 1e-5, "{kind}: {one} for {other} at {n}");
        }
        // Before the first sample, a change has the same effect as in a file.
        let first = trial(from).set(name, value, None).run();
        assert_eq!(first.samples::<f32>("out"), written, "{kind}");
    }
}

#[test]
fn wrong_parameters_are_named() {
    let refused = |text: &str| match Iir::<f32>::with(text) {
        Err(error) => error.to_string(),
        Ok(mut filter) => filter.start(RATE_HZ).unwrap_err().to_string(),
    };
    for (text, expected) in [
        ("response = 'low-pass'", "needs `cutoff`"),
        ("response = 'low-pass'\ncutoff = 9\nlow = 3", "neither `low` nor `high`"),
        ("response = 'band-pass'\ncutoff = 9", "needs `low` and `high`"),
        ("response = 'band-pass'\nlow = 9\nhigh = 9", "`low` is 9 Hz: it must be below `high`"),
        ("response = 'low-pass'\ncutoff = 9\norder = 17", "`order` is 17: it must be 16 or less"),
        ("response = 'low-pass'\ncutoff = 9\norder = 0", "`order` is 0"),
        ("response = 'low-pass'\ncutoff = 24000", "`cutoff` is 24000 Hz: it must be below 24000 Hz"),
        ("response = 'low-pass'\ncutoff = 0.1", "`cutoff` is 0.1: it must be from 0.48"),
        ("response = 'low-pass'\ncutoff = 9\nripple = 1", "`butterworth` takes neither"),
        ("response = 'low-pass'\ncutoff = 9\nfamily = 'chebyshev1'", "needs `ripple`"),
        ("response = 'low-pass'\ncutoff = 9\nfamily = 'chebyshev2'\nripple = 1", "needs `attenuation`"),
        ("response = 'band-stop'\nlow = 100\nhigh = 100.1", "it must be at least 0.48"),
    ] {
        let error = refused(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
    let start = |text: &str| Notch::with(text).unwrap().start(RATE_HZ).unwrap_err().to_string();
    assert!(start("frequency = 24000").starts_with("`frequency` is 24000 Hz: it must be below 24000 Hz"));
    assert!(start("frequency = 1e-3").contains("use `dc.block`"));
    assert!(start("frequency = 10000\nq = 0.1").starts_with("`q` is 0.1: it must be above 0.41"));
    assert!(DcBlock::<f32>::with("cutoff = 24000").unwrap().start(RATE_HZ).is_err());
    let missing = DcBlock::<f32>::with("").unwrap().start(0.0).unwrap_err().to_string();
    assert!(missing.starts_with("needs a sample rate"), "{missing}");
}
