//! Heads and rests of streams, repeated samples, and valves.
#![forbid(unsafe_code)]

use num_complex::Complex;
use onbeat_operators::registry;
use onbeat_runtime::Value;
use onbeat_runtime::testing::{Feed, Trial, cuts};

fn ramp() -> Vec<f32> {
    (0..5000).map(|n| n as f32).collect()
}

fn feed() -> Feed {
    let marks = [0, 1, 999, 1000, 1001, 4999];
    let samples = Feed::samples(ramp()).rate(1000.0);
    marks.into_iter().fold(samples, |feed, at| feed.tag(at, "mark", at as i64))
}

fn trial(kind: &str, parameters: &str) -> Trial {
    Trial::kind(&registry(), kind, parameters)
}

/// Tags of the feed as they come out: sample, and the sample on which they were.
fn marks(tags: &[(u64, &str, Value)]) -> Vec<(u64, String, Value)> {
    tags.iter().map(|(at, key, value)| (*at, (*key).to_string(), value.clone())).collect()
}

#[test]
fn a_head_ends_after_its_samples() {
    for text in ["count = 1001", "duration = '1.0012 s'"] {
        let seen = cuts(|| trial("head", text).feed("in", feed()));
        assert_eq!(seen.samples::<f32>("out"), ramp()[..1001]);
        let expected = [0, 1, 999, 1000].map(|at: u64| (at, "mark", Value::from(at as i64)));
        assert_eq!(seen.tags("out"), marks(&expected));
        assert!(seen.is_done() && seen.notes().is_empty() && seen.rate_hz("out") == 1000.0);
    }
    let seen = cuts(|| trial("head", "count = 5000").feed("in", feed()));
    assert!(seen.samples::<f32>("out") == ramp() && seen.notes().is_empty());
    let seen = cuts(|| trial("head", "count = 5001").feed("in", feed()));
    assert_eq!(seen.samples::<f32>("out"), ramp());
    assert_eq!(seen.notes(), ["the input ended after 5000 of 5001 samples"]);
    assert!(cuts(|| trial("head", "count = 0").feed("in", feed())).samples::<f32>("out").is_empty());
    // Positions stay as they are.
    let seen = trial("head", "count = 7").feed("in", feed().start(100).cut(&[5])).run();
    assert_eq!(seen.pieces("out").iter().map(|piece| piece.start).collect::<Vec<_>>(), [100, 105]);
}

#[test]
fn a_head_ends_an_endless_source() {
    let text = "[[operator]]\nname = \"tone\"\nkind = \"tone.source\"\nfrequency = 5\nsample_rate = 1000\n\
                [[operator]]\nname = \"head\"\nkind = \"head\"\ncount = 12345\n\
                [[operator]]\nname = \"tap\"\nkind = \"tap\"\n\
                [[operator]]\nname = \"end\"\nkind = \"null.sink\"\n\
                [[edge]]\nfrom = \"tone\"\nto = \"head\"\n\
                [[edge]]\nfrom = \"head\"\nto = \"tap\"\n\
                [[edge]]\nfrom = \"tap\"\nto = \"end\"\n";
    let overrides = onbeat_runtime::Overrides::default();
    let pipeline = onbeat_runtime::Pipeline::parse(text, "test.toml", ".", &registry(), &overrides).unwrap();
    let mut options = pipeline.options;
    options.pace = Some(onbeat_runtime::Pace::Fast);
    let record = pipeline.graph.run(&options).unwrap();
    let notes: Vec<_> = record.notes.iter().filter(|note| note.contains("12345 samples")).collect();
    assert_eq!(notes.len(), 1, "{:?}", record.notes);
}

#[test]
fn a_skip_drops_its_samples() {
    for text in ["count = 1000", "duration = '1 s'"] {
        let seen = cuts(|| trial("skip", text).feed("in", feed()));
        assert_eq!(seen.samples::<f32>("out"), ramp()[1000..]);
        let expected = [(0, 1000), (1, 1001), (3999, 4999)].map(|(at, n): (u64, i64)| (at, "mark", n.into()));
        assert_eq!(seen.tags("out"), marks(&expected));
        assert_eq!(seen.pieces("out")[0].start, 0);
        assert_eq!(seen.notes(), ["3 tags were on skipped samples and were dropped"]);
    }
    let seen = cuts(|| trial("skip", "count = 5001").feed("in", feed()));
    assert!(seen.samples::<f32>("out").is_empty());
    assert_eq!(seen.notes()[0], "the input ended after 5000 of 5001 samples to skip");
    let seen = cuts(|| trial("skip", "count = 0").feed("in", feed()));
    assert!(seen.samples::<f32>("out") == ramp() && seen.notes().is_empty());
    let seen = trial("skip.complex", "count = 1")
        .feed("in", Feed::samples([1.0, 2.0, 3.0].map(|re| Complex::new(re, 0.5f32))))
        .run();
    assert_eq!(seen.samples::<Complex<f32>>("out"), [Complex::new(2.0, 0.5), Complex::new(3.0, 0.5)]);
}

#[test]
fn a_pad_adds_zeros() {
    for text in ["count = 2500", "duration = '2.5 s'"] {
        let seen = cuts(|| trial("pad", text).feed("in", feed()));
        let out = seen.samples::<f32>("out");
        assert!(out[..5000] == ramp() && out[5000..] == [0.0; 2500], "{}", out.len());
        assert_eq!(seen.tags("out").len(), 6);
        assert_eq!(seen.rate_hz("out"), 1000.0);
        assert!(seen.notes().is_empty(), "{:?}", seen.notes());
    }
    let none = trial("pad", "duration = 1").feed("in", Feed::samples([0.0f32; 0])).run();
    assert!(none.samples::<f32>("out").is_empty());
    assert_eq!(none.notes(), ["no zeros were added: no chunk came, and so the sample rate is not known"]);
    let zero = trial("pad", "count = 0").feed("in", feed()).run();
    assert!(zero.samples::<f32>("out") == ramp() && zero.notes().is_empty());
    let text = trial("pad", "count = 1").feed("in", Feed::frames([([2, 3, 0], vec![0.0f32; 6])])).failure();
    assert!(text.contains("it takes plain samples only"), "{text}");
}

#[test]
fn heads_and_skips_need_a_length_and_a_rate() {
    for kind in ["head", "skip", "pad"] {
        let said = |text: &str| registry().operator(kind, text).err().map(|error| error.to_string());
        assert_eq!(said("").unwrap(), "needs `count` or `duration`: give one of them");
        assert_eq!(
            said("count = 1\nduration = 1").unwrap(),
            "has both `count` and `duration`: give one of them"
        );
        assert!(said("duration = -1").unwrap().contains("`duration` is -1 s: it must be 0 or more"));
        let text = trial(kind, "duration = 1").feed("in", Feed::samples(ramp())).failure();
        assert!(text.contains("needs a sample rate, and its input has none"), "{text}");
    }
}

#[test]
fn frames_are_cut_between_rows() {
    let frames =
        || Feed::frames([([2, 3, 0], vec![1u8; 6]), ([2, 3, 0], vec![2; 6]), ([2, 3, 0], vec![3; 6])]);
    let shapes = |kind: &str, count: u32| {
        let seen = trial(kind, &format!("count = {count}")).feed("in", frames()).run();
        let shapes: Vec<_> = seen.pieces("out").iter().map(|piece| piece.shape).collect();
        (shapes, seen.samples::<u8>("out"))
    };
    assert_eq!(shapes("head.bytes", 12), (vec![[2, 3, 0]; 2], [vec![1; 6], vec![2; 6]].concat()));
    assert_eq!(shapes("head.bytes", 9), (vec![[2, 3, 0], [1, 3, 0]], [vec![1; 6], vec![2; 3]].concat()));
    assert_eq!(shapes("skip.bytes", 12), (vec![[2, 3, 0]], vec![3; 6]));
    assert_eq!(shapes("skip.bytes", 9), (vec![[1, 3, 0], [2, 3, 0]], [vec![2; 3], vec![3; 6]].concat()));
    for kind in ["head.bytes", "skip.bytes"] {
        let text = trial(kind, "count = 7").feed("in", frames()).failure();
        assert!(
            text.contains("sample 7 is within a row of a chunk of shape 2 × 3")
                && text.contains("multiples of 3"),
            "{text}"
        );
    }
}

#[test]
fn values_have_heads_and_rests() {
    let run = |kind: &str, text: &str| {
        let seen = trial(kind, text).feed("in", Feed::messages([1.0, 2.0, 3.0, 4.0])).run();
        (seen.messages::<f64>("out"), seen.notes().to_vec())
    };
    assert_eq!(run("head.value", "count = 3"), (vec![1.0, 2.0, 3.0], vec![]));
    let note = |text: &str| vec![text.to_string()];
    assert_eq!(
        run("head.value", "count = 9"),
        (vec![1.0, 2.0, 3.0, 4.0], note("the input ended after 4 of 9 values"))
    );
    assert_eq!(run("head.value", "count = 0").0, Vec::<f64>::new());
    assert_eq!(run("skip.value", "count = 3"), (vec![4.0], vec![]));
    assert_eq!(run("skip.value", "count = 5"), (vec![], note("the input ended after 4 of 5 values to skip")));
    assert_eq!(run("valve.value", "open = false").0, Vec::<f64>::new());
    let set =
        trial("valve.value", "open = false").feed("in", Feed::messages([1.0, 2.0])).set("open", true, None);
    assert_eq!(set.run().messages::<f64>("out"), [1.0, 2.0]);
}

#[test]
fn samples_are_repeated() {
    for times in [1usize, 2, 7] {
        let seen = cuts(|| trial("repeat", &format!("times = {times}")).feed("in", feed()));
        // np.repeat(x, times)
        let expected: Vec<f32> = (0..5000 * times).map(|n| (n / times) as f32).collect();
        assert_eq!(seen.samples::<f32>("out"), expected);
        assert_eq!(seen.rate_hz("out"), 1000.0 * times as f64);
        let tags: Vec<u64> = seen.tags("out").iter().map(|tag| tag.0).collect();
        assert_eq!(tags, [0, 1, 999, 1000, 1001, 4999].map(|at| at * times as u64));
    }
    let seen =
        trial("repeat.complex", "times = 5000").feed("in", Feed::samples([Complex::new(1.0f32, 2.0)])).run();
    assert_eq!(seen.samples::<Complex<f32>>("out"), [Complex::new(1.0f32, 2.0); 5000]);
    let error = registry().operator("repeat", "times = 0").err().unwrap().to_string();
    assert!(error.contains("`times` is 0: it must be 1 or more"), "{error}");
}

#[test]
fn a_valve_mutes_from_sample_to_sample() {
    let seen = cuts(|| {
        trial("valve", "")
            .feed("in", feed())
            .set("open", false, Some(1000))
            .set("open", true, Some(1001))
            .set("open", false, Some(3000))
            .set("open", false, Some(3500))
            .set("open", true, Some(4999))
    });
    let closed = |n: u32| n == 1000 || (3000..4999).contains(&n);
    let expected: Vec<f32> = (0..5000).map(|n| if closed(n) { 0.0 } else { n as f32 }).collect();
    assert_eq!(seen.samples::<f32>("out"), expected);
    let tags = [
        (0, "mark", 0.into()),
        (1, "mark", 1.into()),
        (999, "mark", 999.into()),
        (1000, "valve", false.into()),
        (1000, "mark", 1000.into()),
        (1001, "valve", true.into()),
        (1001, "mark", 1001.into()),
        (3000, "valve", false.into()),
        (4999, "valve", true.into()),
        (4999, "mark", 4999.into()),
    ];
    assert_eq!(seen.tags("out"), marks(&tags));
}

#[test]
fn a_valve_drops_from_sample_to_sample() {
    let seen = cuts(|| {
        trial("valve", "open = false\nclosed = 'gate'")
            .feed("in", feed())
            .set("open", true, Some(999))
            .set("open", false, Some(1001))
            .set("open", true, Some(4990))
    });
    let expected: Vec<f32> = (999..1001).chain(4990..5000).map(|n| n as f32).collect();
    assert_eq!(seen.samples::<f32>("out"), expected);
    let tags = [
        (0, "valve", 999.into()),
        (0, "mark", 999.into()),
        (1, "mark", 1000.into()),
        (2, "valve", 4990.into()),
        (11, "mark", 4999.into()),
    ];
    assert_eq!(seen.tags("out"), marks(&tags));
    assert_eq!(seen.pieces("out")[0].start, 0);
    // Without a sample it changes between two steps: here before the first one.
    let seen = trial("valve", "closed = 'gate'").feed("in", feed()).set("open", false, None).run();
    assert!(seen.samples::<f32>("out").is_empty());
    let seen = trial("valve.bytes", "open = false").feed("in", Feed::samples([1u8, 2])).run();
    assert_eq!(seen.samples::<u8>("out"), [0, 0]);
    let seen = trial("valve", "").feed("in", feed()).set("open", false, Some(9999)).run();
    assert_eq!(seen.notes(), ["1 changes of `open` waited for samples that did not come: there were 5000"]);
    let text = trial("valve", "").feed("in", feed()).set("open", 3, Some(1)).failure();
    assert!(text.contains("`open`"), "{text}");
}
