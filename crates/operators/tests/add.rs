//! The sum of two streams does not depend on where their chunks begin and end.
#![forbid(unsafe_code)]

mod harness;
mod slices;

use harness::{failure, fast, feed, keep, notes, run};
use onbeat_operators::Add;
use onbeat_runtime::Graph;
use onbeat_trace::Record;
use slices::Dice;

struct Sum {
    samples: Vec<f32>,
    tags: Vec<(u64, String, String)>,
    record: Record,
}

type Lengths<'l> = &'l [usize];

/// Adds two streams cut into chunks of these lengths; tags are on samples 0, 10, 20 of `a` and 0, 15, 30 of `b`.
fn sum(a: (usize, Lengths<'_>), b: (usize, Lengths<'_>), quantum: usize, capacity: usize) -> Sum {
    let values = Dice::new(3).values(20_000);
    let mut graph = Graph::new("sum");
    let mut feed_a = feed(values[..a.0].to_vec(), a.1, 48e3);
    let mut feed_b = feed(values[10_000..10_000 + b.0].to_vec(), b.1, 48e3);
    feed_a.tags = vec![(0, "a0"), (10, "a10"), (20, "a20"), (6000, "a6000")];
    feed_b.tags = vec![(0, "b0"), (15, "b15"), (20, "b20"), (6000, "b6000")];
    let (feed_a, feed_b) = (graph.add("left", feed_a), graph.add("right", feed_b));
    let add = graph.add("add", Add::new());
    let (end, kept) = keep::<f32>(&mut graph, "end");
    graph.connect(feed_a, |o| &o.out, add, |o| &o.a).quantum(1 << 16);
    graph.connect(feed_b, |o| &o.out, add, |o| &o.b).quantum(1 << 16);
    graph.connect(add, |o| &o.out, end, |o| &o.input);
    let record = run(graph, &fast(quantum, capacity));
    let kept = kept.lock().unwrap();
    let expected: Vec<f32> =
        values.iter().zip(&values[10_000..]).map(|(a, b)| a + b).take(a.0.min(b.0)).collect();
    assert!(kept.samples == expected, "{a:?} {b:?} quantum {quantum} capacity {capacity}");
    Sum { samples: kept.samples.clone(), tags: kept.tags.clone(), record }
}

const LENGTHS: [&[usize]; 7] = [&[1], &[3, 7, 1000], &[64], &[1000], &[4096], &[16_000], &[1, 1, 1, 5000, 3]];

#[test]
fn chunks_do_not_matter() {
    let place = |at: u64, key: &str| (at, key.to_string(), "1".to_string());
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
                assert_eq!(sum.tags, expected);
                assert!(notes(&sum.record).is_empty(), "{:?}", notes(&sum.record));
            }
        }
    }
}

#[test]
fn ends_with_the_shorter_one_and_says_so() {
    for (a, b, text) in [
        (1000, 900, "add: `b` ended after 900 samples; what `a` has beyond is not read"),
        (900, 9000, "add: `a` ended after 900 samples; what `b` has beyond is not read"),
        (0, 10, "add: `a` ended after 0 samples; what `b` has beyond is not read"),
    ] {
        for lengths in LENGTHS {
            let sum = sum((a, lengths), (b, &[64]), 4 << 10, 4);
            assert_eq!(sum.samples.len(), a.min(b));
            assert_eq!(notes(&sum.record), [text], "{a} {b} {lengths:?}");
        }
    }
}

#[test]
fn rates_must_agree() {
    let mut graph = Graph::new("rates");
    let left = graph.add("left", feed(vec![0.0f32; 10], &[10], 48e3));
    let right = graph.add("right", feed(vec![0.0f32; 10], &[10], 32e3));
    let add = graph.add("add", Add::new());
    let (end, _) = keep::<f32>(&mut graph, "end");
    graph.connect(left, |o| &o.out, add, |o| &o.a);
    graph.connect(right, |o| &o.out, add, |o| &o.b);
    graph.connect(add, |o| &o.out, end, |o| &o.input);
    let text = failure(graph, &fast(16 << 10, 4));
    assert!(text.contains("48000 Hz and 32000 Hz"), "{text}");
}
