//! Windowed measures, peaks and threshold against NumPy and SciPy, for any cut of the stream.
#![forbid(unsafe_code)]

use num_complex::Complex;
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Seen, Trial, cuts};

const RATE_HZ: f64 = 250.0;

/// `x = (1103515245 x + 12345) % 2**31`, which Python computes as well.
struct Congruence(u64);

impl Congruence {
    fn next(&mut self) -> u64 {
        self.0 = (self.0 * 1_103_515_245 + 12_345) % (1 << 31);
        self.0
    }
}

fn dyadic() -> Vec<f32> {
    let mut numbers = Congruence(1);
    (0..3000).map(|_| ((numbers.next() >> 8) as f64 / 4_194_304.0 + 3.0) as f32).collect()
}

fn feed(samples: &[f32]) -> Feed {
    Feed::samples(samples.to_vec()).rate(RATE_HZ)
}

fn trial(kind: &str, parameters: &str, samples: &[f32]) -> Trial {
    Trial::kind(&registry(), kind, parameters).feed("in", feed(samples))
}

fn times(seen: &Seen) -> Vec<u64> {
    seen.pieces("out").iter().map(|piece| piece.time_ns).collect()
}

/// With NumPy 2.4: `x = numpy.float32((x >> 8) / 2**22 + 3)` from seed 1, and `mean(w)`, `sqrt(mean(w * w))`,
/// `std(w)`, `min(w)`, `max(w)`, `ptp(w)`, `percentile(w, 37.5)` of `w = x[i:i + window].astype(float)` for
/// `i in range(0, 3001 - window, hop)`: the first and last window of 1000 every 1000, and of 700 every 300.
const REFERENCE: [(&str, &str, [f64; 2], [f64; 2]); 7] = [
    ("mean", "", [4.018616994380951, 4.001695024967193], [4.000489940302713, 4.002947376455579]),
    ("rms", "", [4.058883473044159, 4.043792818213374], [4.040839769461389, 4.04527662162372]),
    ("std", "", [0.5703091268984103, 0.5819770474742751], [0.5696194168017514, 0.5836739216230352]),
    ("minimum", "", [3.002512216567993, 3.0018417835235596], [3.005671739578247, 3.0018417835235596]),
    ("maximum", "", [4.997786521911621, 4.995993137359619], [4.9849042892456055, 4.995993137359619]),
    ("peak_to_peak", "", [1.995274305343628, 1.9941513538360596], [1.9792325496673584, 1.9941513538360596]),
    (
        "percentile",
        "p = 37.5\n",
        [3.776865780353546, 3.7646375596523285],
        [3.7604057788848877, 3.7609990537166595],
    ),
];

#[test]
fn windows_are_those_of_numpy() {
    let samples = dyadic();
    for (kind, more, apart, overlapping) in REFERENCE {
        for (window, count, expected) in [
            ("samples = 1000", 3, apart),
            ("window = \"4 s\"", 3, apart),
            ("samples = 700\nhop_samples = 300", 8, overlapping),
            ("window = 2.8\nhop = \"1.2 s\"", 8, overlapping),
        ] {
            let seen = cuts(|| trial(kind, &format!("{more}{window}"), &samples));
            let values = seen.messages::<f64>("out");
            assert_eq!(values.len(), count, "{kind} {window}");
            for (value, expected) in [values[0], values[count - 1]].iter().zip(expected) {
                assert!(
                    (value / expected - 1.0).abs() < 1e-14,
                    "{kind} {window}: {value} and not {expected}"
                );
            }
        }
    }
}

#[test]
fn values_have_the_time_of_the_end_of_their_window() {
    let samples = dyadic();
    let seen = trial("mean", "samples = 1000\nhop_samples = 1100", &samples).run();
    assert_eq!(seen.messages::<f64>("out"), [4.018616994380951, 3.9909126551151277]);
    assert_eq!(times(&seen), [4_000_000_000, 8_400_000_000]);
    assert_eq!(seen.notes(), ["the last 800 samples do not fill a window, and were left out"]);
    let later = Trial::kind(&registry(), "maximum", "samples = 3000").feed("in", feed(&samples).start(500));
    assert_eq!(times(&later.run()), [14_000_000_000]);
    // Without a rate, windows have a length in samples.
    let plain = || Feed::samples(samples.clone());
    let seen = Trial::kind(&registry(), "rms", "samples = 1500").feed("in", plain()).run();
    assert_eq!(seen.messages::<f64>("out").len(), 2);
    let failure = Trial::kind(&registry(), "rms", "window = 1").feed("in", plain()).failure();
    assert!(failure.contains("needs a sample rate"), "{failure}");
}

#[test]
fn a_bad_sample_spoils_its_windows_only() {
    let mut samples = dyadic();
    samples[650] = f32::NAN;
    for kind in ["mean", "rms", "std", "minimum", "maximum", "peak_to_peak", "percentile"] {
        let more = if kind == "percentile" { "p = 50\n" } else { "" };
        let parameters = format!("{more}samples = 200\nhop_samples = 100");
        let seen = cuts(|| trial(kind, &parameters, &samples));
        let bad: Vec<usize> =
            seen.messages::<f64>("out").iter().map(|value| usize::from(value.is_nan())).collect();
        let expected: Vec<usize> = (0..29).map(|window| usize::from(window == 5 || window == 6)).collect();
        assert_eq!(bad, expected, "{kind}");
        assert_eq!(seen.notes(), ["1 samples were not finite: the values of 2 windows are NaN"]);
    }
}

#[test]
fn complex_samples_have_a_magnitude() {
    let samples = (0..1000).map(|n| Complex::new(3.0f32, -4.0) * if n == 700 { 2.0 } else { 1.0 });
    let make = |kind| {
        let feed = Feed::samples(samples.clone()).rate(RATE_HZ);
        Trial::kind(&registry(), kind, "window = 2").feed("in", feed)
    };
    assert_eq!(cuts(|| make("maximum.complex")).messages::<f64>("out"), [5.0, 10.0]);
    let rms = cuts(|| make("rms.complex")).messages::<f64>("out");
    assert_eq!(rms, [5.0, (25.0f64 + 75.0 / 500.0).sqrt()]);
}

#[test]
fn a_long_sum_keeps_its_digits() {
    // A sum of 32 bits would stop growing, and one of 64 bits would lose 7 digits beside the large samples.
    let samples: Vec<f32> = (0..400_000).map(|n| [1e15, 0.1, -1e15, 0.1][n % 4]).collect();
    let values = trial("mean", "samples = 400000", &samples).run().messages::<f64>("out");
    assert!((values[0] / (f64::from(0.1f32) / 2.0) - 1.0).abs() < 1e-14, "{values:?}");
    // Differences of 1 on a level of 10⁷.
    let level: Vec<f32> = (0..400_000).map(|n| 1e7 + (n % 2) as f32).collect();
    let values = trial("std", "samples = 200000\nhop_samples = 1000", &level).run().messages::<f64>("out");
    assert_eq!(values.len(), 201);
    assert!(values.iter().all(|value| (value - 0.5).abs() < 1e-12), "{values:?}");
}

#[test]
fn windows_that_cannot_be_are_refused() {
    for (kind, parameters, expected) in [
        ("mean", "", "needs `window` or `samples`"),
        ("mean", "window = 1\nsamples = 1", "has both `window` and `samples`"),
        ("rms", "samples = 9\nhop = 1\nhop_samples = 1", "has both `hop` and `hop_samples`"),
        ("std", "samples = 0", "`samples` is 0: it must be from 1"),
        ("minimum", "window = \"-1 s\"", "`window` is -1 s: it must be above 0"),
        ("percentile", "p = 101\nsamples = 1", "`p` is 101: it must be 100 or less"),
    ] {
        let error = registry().operator(kind, parameters).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
    for (kind, parameters, expected) in [
        ("mean", "window = \"1 ns\"", "`window` is 0.000000001 s, which is 0 samples at 250 Hz"),
        ("mean", "window = \"9e300 s\"", "`window` is "),
        ("rms", "samples = 9999999\nhop_samples = 7", "choose a hop that divides the window"),
        ("percentile", "p = 1\nsamples = 99999999", "`window` is 99999999: it must be from 1 to 16777216"),
    ] {
        let failure = trial(kind, parameters, &[0.0; 10]).failure();
        assert!(failure.contains(expected), "{failure}");
    }
    let seen = trial("percentile", "p = 0\nsamples = 3", &[3.0, 1.0, 2.0]).set("p", 50, None).run();
    assert_eq!(seen.messages::<f64>("out"), [2.0]);
}

/// 16 beats with a P, a QRS and a T wave, and noise. In Python: `for r in RR: for k in range(r): …` in the
/// same way.
fn ecg() -> Vec<f32> {
    let mut numbers = Congruence(7);
    let beats = [200, 190, 215, 180, 240, 205, 195, 210, 170, 220, 230, 188, 199, 207, 214, 201];
    let mut samples = Vec::new();
    for k in beats.into_iter().flat_map(|length: i64| 0..length) {
        let mut level = 0;
        level += if (20..40).contains(&k) { 30 - 3 * (k - 30).abs() } else { 0 };
        level -= if (50..54).contains(&k) { 20 } else { 0 };
        level += if (54..64).contains(&k) { 400 - 80 * (k - 59).abs() } else { 0 };
        level -= if (64..70).contains(&k) { 40 } else { 0 };
        level += if (100..140).contains(&k) { 90 - 4 * (k - 120).abs() } else { 0 };
        samples.push((level + (numbers.next() >> 16) as i64 % 31 - 15) as f32);
    }
    samples
}

#[test]
fn peaks_are_those_of_scipy() {
    // scipy.signal.find_peaks(ecg, height=200, distance=50), SciPy 1.17
    let places: [i64; 16] =
        [59, 259, 449, 664, 844, 1084, 1289, 1484, 1694, 1864, 2084, 2314, 2502, 2701, 2908, 3122];
    let heights: [f64; 16] =
        [408, 399, 411, 410, 408, 407, 412, 401, 405, 396, 392, 405, 413, 396, 393, 408].map(f64::from);
    let samples = ecg();
    assert_eq!(samples.len(), 3264);
    let expected: Vec<u64> = places.iter().map(|place| *place as u64 * 4_000_000).collect();
    for parameters in [
        "height = 200\ndistance = \"200 ms\"",
        "height = 200\ndistance_samples = 50",
        "height = 60\ndistance = 0.3",
    ] {
        let seen = cuts(|| trial("peaks", parameters, &samples));
        assert_eq!(seen.messages::<f64>("out"), heights, "{parameters}");
        assert_eq!(times(&seen), expected, "{parameters}");
    }
    // Beats in each 2 s and 4 s.
    for (every, counts) in [("2 s", vec![3, 2, 3, 2, 2, 3]), ("4 s", vec![5, 5, 5])] {
        let parameters = format!("height = 200\ndistance = 0.2\nevery = \"{every}\"");
        let seen = cuts(|| trial("peaks.rate", &parameters, &samples));
        let unit = 60.0 / every[..1].parse::<f64>().unwrap();
        assert_eq!(
            seen.messages::<f64>("out"),
            counts.iter().map(|n| f64::from(*n) * unit).collect::<Vec<_>>()
        );
        let step = 60_000_000_000 / unit as u64;
        assert_eq!(times(&seen), (1..=counts.len() as u64).map(|n| n * step).collect::<Vec<_>>());
        assert_eq!(seen.notes(), ["the last 264 samples do not fill `every`: their peaks were left out"]);
    }
}

#[test]
fn dense_peaks_are_those_of_scipy() {
    let numbers = |seed, of: fn(u64) -> i64| {
        let mut numbers = Congruence(seed);
        (0..20_000).map(|_| of(numbers.next())).collect::<Vec<i64>>()
    };
    let noise: Vec<f32> = numbers(3, |x| x as i64).into_iter().map(|x| x as f32).collect();
    let steps: Vec<f32> = numbers(5, |x| (x >> 20) as i64 % 5).into_iter().map(|x| x as f32).collect();
    // The running sum of steps from -40000 to 40000, which has long series of ever higher peaks.
    let mut walk = numbers(9, |x| (x >> 8) as i64 % 80_001 - 40_000);
    (1..walk.len()).for_each(|at| walk[at] += walk[at - 1]);
    let walk: Vec<f32> = walk.into_iter().map(|x| x as f32).collect();
    // Each peak is higher than the one before, so nothing is decided before the end.
    let ripple: Vec<f32> =
        (0..20_000u16).map(|n| f32::from(n / 2 + if n % 2 == 1 { 10 } else { 0 })).collect();
    // find_peaks(x, distance=…, height=…): number of peaks, and the sum of their positions.
    for (samples, parameters, count, sum) in [
        (&noise, "", 6615, 66_001_432),
        (&noise, "height = 1.5e9", 4350, 43_537_734),
        (&noise, "distance_samples = 2", 6615, 66_001_432),
        (&noise, "distance_samples = 7", 2060, 20_652_469),
        (&noise, "distance_samples = 7\nheight = 1.5e9", 1828, 18_292_839),
        (&noise, "distance_samples = 50", 297, 2_952_719),
        (&noise, "distance_samples = 333", 44, 448_594),
        (&steps, "", 5928, 59_197_434),
        (&walk, "distance_samples = 50", 306, 3_118_661),
        (&walk, "distance_samples = 333", 46, 484_774),
        (&ripple, "", 9999, 99_980_001),
        (&ripple, "distance_samples = 7", 2500, 25_002_500),
    ] {
        let seen = trial("peaks", parameters, samples).run();
        let places: Vec<u64> = times(&seen).iter().map(|time_ns| time_ns / 4_000_000).collect();
        assert_eq!((places.len(), places.iter().sum::<u64>()), (count, sum), "{parameters}");
        assert!(places.is_sorted());
    }
    let seen = cuts(|| trial("peaks", "distance_samples = 7", &noise[..3000]));
    assert!(seen.messages::<f64>("out").len() > 200);
}

#[test]
fn peaks_have_edges() {
    let samples = [5.0, 1.0, 2.0, f32::NAN, 1.0, 3.0, 3.0, 3.0, 3.0, 0.0, 4.0, 4.0];
    let seen = cuts(|| trial("peaks", "", &samples));
    assert_eq!((seen.messages::<f64>("out"), times(&seen)), (vec![3.0], vec![6 * 4_000_000]));
    assert_eq!(seen.notes(), ["1 samples were not a number: none of them is a peak or next to one"]);
    for (parameters, expected) in [
        ("distance = 1\ndistance_samples = 1", "has both `distance` and `distance_samples`"),
        ("height = nan", "`height` is NaN: it must be a finite number"),
        ("distance_samples = 99999999", "`distance` is 99999999: it must be from 0 to 4194304"),
    ] {
        let error = registry().operator("peaks", parameters).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(trial("peaks", "distance = \"1 h\"", &[0.0; 99]).run().messages::<f64>("out").is_empty());
    assert!(trial("peaks", "distance = \"9 h\"", &[0.0; 99]).failure().contains("`distance` is 8100000"));
    // Of two equal ones, the later one stays.
    let equal = trial("peaks", "distance_samples = 3", &[0.0, 1.0, 0.0, 1.0, 0.0]).run();
    assert_eq!(times(&equal), [3 * 4_000_000]);
    let seen = trial("peaks", "height = 9", &ecg()).set("height", 200, None).run();
    assert_eq!(seen.messages::<f64>("out").len(), 16);
}

#[test]
fn a_threshold_has_hysteresis() {
    let samples = [0.0, 0.5, 0.4, 0.3, 0.29, 0.4, f32::NAN, 0.6, f32::NAN, 0.3, -1.0];
    let make = |parameters: &str| trial("threshold", parameters, &samples);
    let seen = cuts(|| make("on = 0.5\noff = 0.3"));
    assert_eq!(seen.samples::<f32>("out"), [0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0]);
    assert_eq!(seen.messages::<f64>("events"), [1.0, 0.0, 1.0, 0.0]);
    let times: Vec<u64> = seen.pieces("events").iter().map(|piece| piece.time_ns / 4_000_000).collect();
    assert_eq!(times, [1, 4, 7, 10]);
    assert_eq!(seen.notes(), ["2 samples were not a number and did not change the state"]);
    let seen = cuts(|| make("on = 0.4").set("on", 0.3, None));
    assert_eq!(seen.samples::<f32>("out"), [0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0]);
    // Every sample changes the state.
    let fast: Vec<f32> = (0..5000).map(|n| (n % 2) as f32).collect();
    assert_eq!(cuts(|| trial("threshold", "on = 0.5", &fast)).messages::<f64>("events").len(), 4999);
    for (parameters, expected) in [
        ("on = inf", "`on` is inf: it must be a finite number"),
        ("on = 1\noff = 1.5", "`off` is 1.5: it must not be above `on`, which is 1"),
    ] {
        let error = registry().operator("threshold", parameters).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
