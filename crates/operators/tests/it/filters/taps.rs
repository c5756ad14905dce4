//! Filters with given taps.
#![forbid(unsafe_code)]

use super::{RATE_HZ, complex, complex_difference, difference, real};
use num_complex::Complex;
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Seen, Trial, cuts};
use std::fmt::Write as _;
use std::fs;

fn trial(parameters: &str) -> Trial {
    let feed = Feed::samples(real()).rate(RATE_HZ).tag(300, "here", 7);
    Trial::kind(&registry(), "fir.taps.real", parameters).feed("in", feed)
}

fn complex_trial(parameters: &str) -> Trial {
    Trial::kind(&registry(), "fir.taps", parameters).feed("in", Feed::samples(complex()).rate(RATE_HZ))
}

fn refused(trial: Trial) -> String {
    trial.failure()
}

/// `scipy.signal.lfilter([0.5, -0.25, 0.125, 0.3, 0.01], 1, x)`
const FILTERED: [f64; 4] = [-5.000000000e-01, 1.599218750e-01, -6.225781250e-01, -4.120703125e-01];
/// `scipy.signal.lfilter([0.5-0.5j, 0.25j, -0.125, 0.3+0.1j], 1, z)`
const COMPLEX_FILTERED: [[f64; 2]; 4] = [
    [-9.882812500e-01, 1.171875000e-02],
    [6.273437500e-01, -1.720703125e-01],
    [7.421875000e-03, 8.419921875e-01],
    [-3.248046875e-01, 4.001953125e-01],
];

fn output(seen: &Seen) -> Vec<f32> {
    seen.samples::<f32>("out")
}

#[test]
fn lists_are_filtered_as_scipy_filters() {
    for method in ["direct", "fft", "auto"] {
        let text = format!("taps = [0.5, -0.25, 0.125, 0.3, 0.01]\nmethod = \"{method}\"");
        let seen = cuts(|| trial(&text));
        let error = difference(&output(&seen), FILTERED);
        assert!(error < 3e-7, "{method}: {error}");
        assert_eq!(
            seen.notes(),
            ["the taps are not symmetric, so no delay was dropped: set `delay` to drop some"]
        );
        let text = format!("taps = [[0.5, -0.5], [0, 0.25], -0.125, [0.3, 0.1]]\nmethod = \"{method}\"");
        let seen = cuts(|| complex_trial(&text));
        let error = complex_difference(&seen.samples::<Complex<f32>>("out"), COMPLEX_FILTERED);
        assert!(error < 3e-7, "{method}: {error}");
    }
}

/// The output is advanced by `delay`, and zeros follow the end of the stream.
#[test]
fn the_delay_is_dropped() {
    let causal = output(&trial("taps = [0.5, -0.25, 0.125, 0.3, 0.01]\ndelay = 0").run());
    for delay in 1..5 {
        let seen = trial(&format!("taps = [0.5, -0.25, 0.125, 0.3, 0.01]\ndelay = {delay}")).run();
        let got = output(&seen);
        assert_eq!((got.len(), seen.notes().len()), (600, 0));
        for (at, (one, other)) in got.iter().zip(&causal[delay..]).enumerate() {
            assert!((one - other).abs() < 1e-6, "{delay}, {at}");
        }
        assert_eq!(seen.tags("out"), [(300, "here".to_string(), 7.into())]);
    }
    // Taps with linear phase need no delay.
    let seen = trial("taps = [1, 2, 1]").run();
    let (got, x) = (output(&seen), real());
    assert_eq!(got[300], x[299] + 2.0 * x[300] + x[301]);
    assert_eq!((got[599], seen.notes().len()), (x[598] + 2.0 * x[599], 0));
    let got = output(&trial("taps = [1, 0, -1]").run());
    assert_eq!(got[300], x[301] - x[299]);
    let seen = trial("taps = [1, 1]").run();
    assert_eq!(output(&seen)[300], x[300] + x[299]);
    assert_eq!(seen.notes(), ["the number of taps is even: the output is half a sample late"]);
    let got = complex_trial("taps = [[0, -1], 0, [0, 1]]").run().samples::<Complex<f32>>("out");
    let z = complex();
    assert!((got[300] - Complex::new(0.0, 1.0) * (z[299] - z[301])).norm() < 1e-6);
}

/// Returns a NumPy file with these bytes.
fn npy(descr: &str, shape: &str, bytes: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut file = b"\x93NUMPY\x01\0".to_vec();
    file.extend((text.len() as u16).to_le_bytes());
    file.extend(text.bytes());
    file.extend(bytes);
    file
}

#[test]
fn files_of_all_kinds_give_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let taps = [0.5, -0.25, 0.125, 0.3, 0.01];
    let wide: Vec<u8> = taps.iter().flat_map(|tap: &f64| tap.to_le_bytes()).collect();
    let high_first: Vec<u8> = taps.iter().flat_map(|tap| (*tap as f32).to_be_bytes()).collect();
    let expected = output(&trial("taps = [0.5, -0.25, 0.125, 0.3, 0.01]").run());
    for (name, bytes) in [
        ("taps.txt", b"0.5\n-0.25\n0.125\n0.3\n0.01\n".to_vec()),
        ("taps.csv", b"# made by hand\r\n0.5, -0.25, 0.125\r\n0.3; 1e-2".to_vec()),
        ("wide.npy", npy("<f8", "(5,)", &wide)),
        ("high.npy", npy(">f4", "(5,)", &high_first)),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let got = output(&cuts(|| trial(&format!("path = {path:?}"))));
        assert_eq!(got, expected, "{name}");
    }
    // A list of complex numbers as `numpy.savetxt` writes it, and as `numpy.save` does.
    let list = [[0.5f64, -0.5], [0.0, 0.25], [-0.125, 0.0], [0.3, 0.1]];
    let text = list.iter().fold(String::new(), |mut text, [re, im]| {
        writeln!(text, " ({re:.18e}{im:+.18e}j)").unwrap();
        text
    });
    let bytes: Vec<u8> = list.as_flattened().iter().flat_map(|part| part.to_le_bytes()).collect();
    for (name, bytes) in [("complex.txt", text.into_bytes()), ("complex.npy", npy("<c16", "(4,)", &bytes))] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let got = complex_trial(&format!("path = {path:?}")).run().samples::<Complex<f32>>("out");
        let error = complex_difference(&got, COMPLEX_FILTERED);
        assert!(error < 3e-7, "{name}: {error}");
        let error = refused(trial(&format!("path = {path:?}")));
        assert!(error.contains("and the samples are real") && error.contains(name), "{error}");
    }
}

#[test]
fn hostile_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes, expected) in [
        ("empty", vec![], "there is no number in it"),
        ("words", b"0.5\nhalf\n".to_vec(), "line 2: `half` is not a number"),
        ("nan", b"0.5\nnan\n".to_vec(), "`taps[1]` is NaN"),
        ("inf", b"0.5\n1e999\n".to_vec(), "`taps[1]` is inf"),
        ("large", b"1e39".to_vec(), "`taps[0]` is 1"),
        ("binary", vec![0xff; 100], "valid UTF-8"),
        ("nulls", vec![0; 100], "line 1: `\\u{0}"),
        ("many", b"1 ".repeat(20_000), "more than 16383 taps"),
        ("short.npy", npy("<f8", "(5,)", &[0; 39]), "its taps cannot be read"),
        ("none.npy", npy("<f8", "(0,)", &[]), "there is no number in it"),
        ("huge.npy", npy("<f8", "(18446744073709551615,)", &[]), "16383 is the limit"),
        ("square.npy", npy("<f8", "(2, 2)", &[0; 32]), "taps have one axis"),
        ("text.npy", npy("<U8", "(2,)", &[0; 64]), "not supported"),
        ("cut.npy", b"\x93NUMPY\x01".to_vec(), "its header cannot be read"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let error = refused(trial(&format!("path = {path:?}")));
        assert!(error.contains(expected) && error.contains(name), "{name}: {error}");
        assert!(error.len() < 500, "{error}");
    }
    let error = refused(trial("path = \"/nowhere/taps.txt\""));
    assert!(error.contains("cannot open /nowhere/taps.txt"), "{error}");
    let error = refused(trial(&format!("path = {:?}", folder.path())));
    assert!(error.contains("it is a folder"), "{error}");
}

#[test]
fn wrong_parameters_are_named() {
    let registry = registry();
    for (kind, text, expected) in [
        ("fir.taps", "", "needs `taps` or `path`"),
        ("fir.taps", "taps = []", "needs `taps` or `path`"),
        ("fir.taps", "taps = [1]\npath = \"x\"", "give one of them"),
        ("fir.taps", "taps = [1, 2]\ndelay = 2", "`delay` is 2: it must be below 2"),
        ("fir.taps", "taps = [1, nan]", "`taps[1]` is NaN"),
        ("fir.taps", "taps = [\"one\"]", "a tap is a number, or"),
        ("fir.taps", "taps = [[1, 2, 3]]", "a tap is a number, or"),
        ("fir.taps.real", "taps = [1, [0, 1]]", "`taps[1]` is 0+1i, and the samples are real"),
    ] {
        let error = registry.operator(kind, text).err().map_or("nothing".into(), |error| error.to_string());
        assert!(error.contains(expected), "{kind}, {text}: {error}");
    }
    let many = format!("taps = [{}]", "1, ".repeat(16_384));
    assert!(registry.operator("fir.taps", &many).err().unwrap().to_string().contains("has 16384 values"));
}
