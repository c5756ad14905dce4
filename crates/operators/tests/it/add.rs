//! The sum of two streams does not depend on chunk borders.
#![forbid(unsafe_code)]

use crate::slices::Dice;
use onbeat_operators::Add;
use onbeat_runtime::Combined;
use onbeat_runtime::testing::{Feed, Seen, Trial};

type Lengths<'l> = &'l [usize];

/// Samples in chunks of these lengths.
fn feed(samples: &[f32], lengths: Lengths<'_>, tags: [(u64, &str); 4]) -> Feed {
    let feed = Feed::samples(samples.to_vec()).cut(lengths).rate(48e3).quantum(1 << 16);
    tags.into_iter().fold(feed, |feed, (sample, key)| feed.tag(sample, key, 1))
}

/// Adds two streams cut into chunks of these lengths.
fn sum(a: (usize, Lengths<'_>), b: (usize, Lengths<'_>), quantum: usize, capacity: usize) -> Seen {
    let values = Dice::new(3).values(20_000);
    let left = feed(&values[..a.0], a.1, [(0, "a0"), (10, "a10"), (20, "a20"), (6000, "a6000")]);
    let right =
        feed(&values[10_000..10_000 + b.0], b.1, [(0, "b0"), (15, "b15"), (20, "b20"), (6000, "b6000")]);
    let trial = Trial::new(Combined::new(Add::<f32>::default())).feed("a", left).feed("b", right);
    let seen = trial.quantum(quantum).capacity(capacity).run();
    let both = values.iter().zip(&values[10_000..]);
    let expected: Vec<f32> = both.map(|(a, b)| a + b).take(a.0.min(b.0)).collect();
    assert!(seen.samples::<f32>("out") == expected, "{a:?} {b:?} quantum {quantum} capacity {capacity}");
    seen
}

const LENGTHS: [&[usize]; 7] = [&[1], &[3, 7, 1000], &[64], &[1000], &[4096], &[16_000], &[1, 1, 1, 5000, 3]];

#[test]
fn chunks_do_not_matter() {
    let place = |at: u64, key: &str| (at, key.to_string(), 1.into());
    let expected = [
        (0, "a0"),
        (0, "b0"),
        (10, "a10"),
        (15, "b15"),
        (20, "a20"),
        (20, "b20"),
        (6000, "a6000"),
        (6000, "b6000"),
    ]
    .map(|(at, key)| place(at, key));
    for a in LENGTHS {
        for b in LENGTHS {
            for (quantum, capacity) in [(256, 1), (16 << 10, 4), (16 << 10, 64)] {
                let sum = sum((7777, a), (7777, b), quantum, capacity);
                assert_eq!(sum.tags("out"), expected);
                assert!(sum.notes().is_empty(), "{:?}", sum.notes());
            }
        }
    }
}

#[test]
fn ends_with_the_shorter_one_and_says_so() {
    for (a, b, text) in [
        (1000, 900, "`b` ended after 900 samples; the rest of `a` is not read"),
        (900, 9000, "`a` ended after 900 samples; the rest of `b` is not read"),
        (0, 10, "`a` ended after 0 samples; the rest of `b` is not read"),
    ] {
        for lengths in LENGTHS {
            let sum = sum((a, lengths), (b, &[64]), 4 << 10, 4);
            assert_eq!(sum.samples::<f32>("out").len(), a.min(b));
            assert_eq!(sum.notes(), [text], "{a} {b} {lengths:?}");
        }
    }
}

#[test]
fn rates_must_agree() {
    let feed = |rate_hz| Feed::samples([0.0f32; 10]).rate(rate_hz);
    let text = Trial::new(Combined::new(Add::<f32>::default()))
        .feed("a", feed(48e3))
        .feed("b", feed(32e3))
        .failure();
    assert!(text.contains("`b` is 32000 Hz, but the first chunk had 48000 Hz"), "{text}");
}
