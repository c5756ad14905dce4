//! Files that are written, and read again.

use super::{Csv, bits, trial};
use onbeat_runtime::testing::{Feed, cuts};
use proptest::prelude::*;
use std::fs;

const ODD: [f32; 14] = [
    0.0,
    -0.0,
    1.0,
    0.1,
    -2.5,
    1e-5,
    9.999e-6,
    f32::MIN_POSITIVE,
    1e-45,
    f32::MAX,
    16_777_216.0,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];

#[test]
fn the_fewest_digits_are_written() {
    let csv = Csv::new("");
    let path = csv.path("out.csv");
    let seen = trial("csv.sink", &path, "columns = [\"x\"]").feed("in", Feed::samples(ODD)).run();
    let text = fs::read_to_string(&path).unwrap();
    // Each is `repr(numpy.float32(...))` of NumPy but for trailing `.0` and zeros of exponents.
    let expected = "x\n0\n-0\n1\n0.1\n-2.5\n0.00001\n9.999e-6\n1.1754944e-38\n1e-45\n3.4028235e38\n16777216\ninf\n-inf\nNaN\n";
    assert_eq!(text, expected);
    assert_eq!(seen.notes(), ["3 numbers were not finite and were written as NaN, inf or -inf"]);
    let seen = trial("csv.source", &path, "columns = [\"x\"]").run();
    assert_eq!(bits(&seen.samples("out")), bits(&ODD));
}

#[test]
fn columns_and_times_are_written_for_any_cut() {
    let csv = Csv::new("");
    let path = csv.path("a/out.csv");
    let with = "columns = [\"ecg, mV\", \"resp\"]\ntime = true\ndelimiter = \";\"\ndecimal = \",\"";
    cuts(|| {
        let feed = |scale: f32| Feed::samples((0..3000).map(move |n| n as f32 * scale)).rate(360.0);
        trial("csv.sink", &path, with).feed("in0", feed(0.5)).feed("in1", feed(-1.0))
    });
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.starts_with("time_s;ecg, mV;resp\n0,000000000;0;-0\n0,002777778;0,5;-1\n0,005555556;1;-2\n")
    );
    assert_eq!(text.lines().count(), 3001);
    // The rate is found in what was written.
    let with = "columns = [\"resp\"]\ntime = \"time_s\"\ndelimiter = \";\"\ndecimal = \",\"";
    let seen = trial("csv.source", &path, with).run();
    assert_eq!((seen.rate_hz("out"), seen.samples::<f32>("out")[2999]), (360.0, -2999.0));
}

#[test]
fn a_spectrum_in_rows_is_told() {
    let csv = Csv::new("");
    let path = csv.path("out.csv");
    let bins = || Feed::samples(vec![0.0f32; 64]).rate(64e3);
    let seen = trial("csv.sink", &path, "columns = [\"db\"]")
        .feed("in", bins().tag(0, "axis:first_hz", -32e3))
        .run();
    assert!(seen.notes()[0].contains("a row for each bin of a spectrum"), "{:?}", seen.notes());
    let seen = trial("csv.sink", &path, "columns = [\"db\"]").feed("in", bins()).run();
    assert!(seen.notes().is_empty(), "{:?}", seen.notes());
}

#[test]
fn names_are_quoted_and_can_be_left_out() {
    let csv = Csv::new("");
    let path = csv.path("out.csv");
    let with = "columns = [\"a,\\\"b\\\"\\n\", \"c\"]";
    let feed = || Feed::samples([1.0f32]);
    trial("csv.sink", &path, with).feed("in0", feed()).feed("in1", feed()).run();
    assert_eq!(fs::read_to_string(&path).unwrap(), "\"a,\"\"b\"\"\n\",c\n1,1\n");
    let seen = trial("csv.source", &path, with).run();
    assert_eq!(seen.samples::<f32>("out0"), [1.0]);
    trial("csv.sink", &path, "columns = [\"x\"]\nheader = false").feed("in", feed()).run();
    assert_eq!(fs::read_to_string(&path).unwrap(), "1\n");
    // Without samples there is only the header.
    trial("csv.sink", &path, "columns = [\"x\"]").feed("in", Feed::samples([0f32; 0])).run();
    assert_eq!(fs::read_to_string(&path).unwrap(), "x\n");
}

#[test]
fn times_need_a_rate_and_rows_before_a_failure_are_kept() {
    let csv = Csv::new("");
    let path = csv.path("out.csv");
    let with = "columns = [\"x\"]\ntime = true";
    let said = trial("csv.sink", &path, with).feed("in", Feed::samples([1.0f32])).failure();
    assert!(said.contains("needs a sample rate"), "{said}");
    assert!(!path.exists() && !csv.path("out.csv.part").exists());
    let feed = Feed::samples([1.0f32, 2.0]).rate(2.0).then_fail("on purpose");
    trial("csv.sink", &path, with).feed("in", feed).failure();
    let kept = fs::read_to_string(csv.path("out.csv.part")).unwrap();
    assert_eq!(kept, "time_s,x\n0.000000000,1\n0.500000000,2\n");
}

proptest! {
    #[test]
    fn every_number_comes_back(numbers in prop::collection::vec(any::<u32>(), 1..50), comma: bool) {
        let samples: Vec<f32> = numbers.iter().map(|bits| f32::from_bits(*bits)).collect();
        let csv = Csv::new("");
        let path = csv.path("out.csv");
        let with = if comma { "columns = [\"x\"]\ndelimiter = \";\"\ndecimal = \",\"" } else { "columns = [\"x\"]" };
        trial("csv.sink", &path, with).feed("in", Feed::samples(samples.clone())).run();
        let seen = trial("csv.source", &path, with).run();
        let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        prop_assert!(seen.samples::<f32>("out").iter().zip(&samples).all(same));
        prop_assert_eq!(seen.samples::<f32>("out").len(), samples.len());
    }
}
