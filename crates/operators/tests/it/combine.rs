//! Operators that make one stream of several do it sample by sample.
#![forbid(unsafe_code)]

use crate::slices::Dice;
use num_complex::Complex;
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Trial, cuts};

type C32 = Complex<f32>;

fn reals(seed: u64, count: usize) -> Vec<f32> {
    Dice::new(seed).values(count)
}

fn feed(samples: &[f32]) -> Feed {
    Feed::samples(samples.to_vec()).rate(8e3)
}

fn joined(kind: &str, parameters: &str, streams: &[Vec<f32>]) -> Trial {
    let trial = Trial::kind(&registry(), kind, parameters);
    streams
        .iter()
        .enumerate()
        .fold(trial, |trial, (lane, samples)| trial.feed(&format!("in{lane}"), feed(samples)))
}

#[test]
fn products_differences_and_parts() {
    let (a, b) = (reals(1, 3000), reals(2, 3000));
    let two = |kind: &str, names: [&str; 2]| {
        let trial = Trial::kind(&registry(), kind, "");
        trial.feed(names[0], feed(&a).tag(7, "seven", 7)).feed(names[1], feed(&b))
    };
    let pairs = || a.iter().zip(&b);
    let seen = cuts(|| two("multiply", ["a", "b"]));
    assert_eq!(seen.samples::<f32>("out"), pairs().map(|(a, b)| a * b).collect::<Vec<_>>());
    assert_eq!((seen.rate_hz("out"), seen.tags("out").len()), (8e3, 1));
    let seen = cuts(|| two("subtract", ["a", "b"]));
    assert_eq!(seen.samples::<f32>("out"), pairs().map(|(a, b)| a - b).collect::<Vec<_>>());
    let seen = cuts(|| two("complex.join", ["re", "im"]));
    let complex: Vec<C32> = pairs().map(|(a, b)| C32::new(*a, *b)).collect();
    assert_eq!(seen.samples::<C32>("out"), complex);
    for (kind, of) in [
        ("add.complex", (|a, b| a + b) as fn(C32, C32) -> C32),
        ("multiply.complex", |a, b| a * b),
        ("subtract.complex", |a, b| a - b),
    ] {
        let other: Vec<C32> = pairs().map(|(a, b)| C32::new(*b, -*a)).collect();
        let feed = |samples: &[C32]| Feed::samples(samples.to_vec()).rate(8e3);
        let make = || Trial::kind(&registry(), kind, "").feed("a", feed(&complex)).feed("b", feed(&other));
        let expected: Vec<C32> = complex.iter().zip(&other).map(|(a, b)| of(*a, *b)).collect();
        assert_eq!(cuts(make).samples::<C32>("out"), expected);
    }
}

#[test]
fn complex_streams_are_summed() {
    let streams: Vec<Vec<C32>> = (1..4)
        .map(|seed| reals(seed, 2000).chunks(2).map(|pair| C32::new(pair[0], pair[1])).collect())
        .collect();
    for (kind, parameters, weights) in [
        ("sum.complex", "inputs = 3", [1.0f32; 3]),
        ("mix.complex", "weights = [0.5, -1, 2]", [0.5, -1.0, 2.0]),
    ] {
        let seen = cuts(|| {
            let trial = Trial::kind(&registry(), kind, parameters);
            streams.iter().enumerate().fold(trial, |trial, (lane, samples)| {
                trial.feed(&format!("in{lane}"), Feed::samples(samples.clone()).rate(8e3))
            })
        });
        let expected = |n| (0..3).map(|lane: usize| streams[lane][n] * weights[lane]).reduce(|a, b| a + b);
        let expected: Vec<C32> = (0..1000).filter_map(expected).collect();
        assert_eq!(seen.samples::<C32>("out"), expected, "{kind}");
    }
}

#[test]
fn a_mix_is_a_weighted_sum() {
    let streams = [reals(1, 3000), reals(2, 3000), reals(3, 3000)];
    let sum = |w: [f32; 3], n: usize| w[0] * streams[0][n] + w[1] * streams[1][n] + w[2] * streams[2][n];
    let seen =
        cuts(|| joined("mix", "weights = [0.5, -1, 0]", &streams).set("weights", "1, 2, 3", Some(1234)));
    let expected = |n| sum(if n < 1234 { [0.5, -1.0, 0.0] } else { [1.0, 2.0, 3.0] }, n);
    assert_eq!(seen.samples::<f32>("out"), (0..3000).map(expected).collect::<Vec<_>>());
    let text = joined("mix", "weights = [1, 1, 1]", &streams).set("weights", "1, 2", None).failure();
    assert!(text.contains("`weights` has 2 numbers, but there are 3 inputs"), "{text}");
    for (weights, expected) in [
        ("[]", "`weights` has 0 numbers: it must have from 1 to 64"),
        ("[1.0, nan]", "`weights` is NaN: it must be a finite number"),
        ("\"1; 2\"", "expected a list of numbers"),
        ("[\"1\"]", "a parameter of `mix`"),
    ] {
        let error = registry().operator("mix", &format!("weights = {weights}")).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_selection_changes_at_its_sample() {
    let streams = [reals(1, 3000), reals(2, 3000), reals(3, 3000)];
    let seen = cuts(|| {
        joined("select", "inputs = 3", &streams).set("input", 2, Some(1000)).set("input", 1, Some(2001))
    });
    let expected = |n: usize| {
        streams[if n < 1000 {
            0
        } else if n < 2001 {
            2
        } else {
            1
        }][n]
    };
    assert_eq!(seen.samples::<f32>("out"), (0..3000).map(expected).collect::<Vec<_>>());
    let text = joined("select", "inputs = 3", &streams).set("input", 3, None).failure();
    assert!(text.contains("`input` is 3: it must be from 0 to 2, because there are 3 inputs"), "{text}");
    let error = registry().operator("select", "inputs = 0").err().unwrap().to_string();
    assert!(error.contains("`inputs` is 0"), "{error}");
    let complex = |seed| Feed::samples(reals(seed, 100).into_iter().map(|x| C32::new(x, 1.0)));
    let trial = Trial::kind(&registry(), "select.complex", "inputs = 2\ninput = 1");
    let seen = trial.feed("in0", complex(1)).feed("in1", complex(2)).run();
    assert_eq!(seen.samples::<C32>("out")[99].re, reals(2, 100)[99]);
}
