//! The trial of one operator: what it shows, and what it says of one that is wrong.
#![forbid(unsafe_code)]

use onbeat_runtime::testing::{Feed, Trial, cuts};
use onbeat_runtime::{
    Chunk, Context, Ending, Error, InPlace, Input, Map, Message, Operator, Output, Ports, Step, Tag,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

struct Invert;

impl Map for Invert {
    type Sample = f32;
    fn map(&mut self, samples: &mut [f32]) {
        samples.iter_mut().for_each(|x| *x = -*x);
    }
}

/// Says at the begin of each chunk how long it is, which no operator should.
#[derive(Default)]
struct SeesChunks {
    input: Input<Chunk<f32>>,
    out: Output<Chunk<f32>>,
}

impl Operator for SeesChunks {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(mut chunk) = self.input.pop(cx) {
            let length = chunk.len() as f32;
            chunk.edit(cx)?[0] = length;
            self.out.push(cx, chunk)?;
        }
        Ok(Step::Wait)
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Pair(u64, u64);
impl Message for Pair {}

/// Pairs numbers, one a millisecond; the last one without a partner is noted.
#[derive(Default)]
struct Pairs {
    input: Input<u64>,
    out: Output<Pair>,
    held: Option<u64>,
    next_ns: u64,
}

impl Operator for Pairs {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if cx.now_ns() < self.next_ns {
            let next_ns = self.next_ns;
            return Ok(cx.until(next_ns));
        }
        match (self.held.take(), self.input.pop(cx)) {
            (Some(a), Some(b)) => {
                self.next_ns = cx.now_ns() + 1_000_000;
                self.out.push(cx, Pair(a, b))?;
            }
            (held, popped) => self.held = held.or(popped),
        }
        if self.input.is_ended(cx)
            && let Some(n) = self.held.take()
        {
            cx.note(format!("{n} is alone"));
            cx.measured("held", 0.0, "1");
            cx.measured("held", n as f64, "1");
            cx.measured("mean", f64::NAN, "1");
        }
        Ok(Step::Wait)
    }
}

#[test]
fn shows_chunks_tags_and_steps() {
    let input =
        Feed::samples((0..10).map(|n| n as f32)).rate(1000.0).cut(&[4, 3]).tag(0, "a", 1).tag(5, "b", "x");
    let seen = Trial::new(InPlace::new(Invert)).feed("in", input.start(100)).run();
    assert_eq!(seen.samples::<f32>("out"), (0..10).map(|n| -n as f32).collect::<Vec<_>>());
    assert_eq!(seen.lengths("out"), [4, 3, 3]);
    let pieces = seen.pieces("out");
    assert_eq!(pieces.iter().map(|piece| piece.start).collect::<Vec<_>>(), [100, 104, 107]);
    assert_eq!(pieces.iter().map(|piece| piece.step).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(pieces[1].time_ns, 104_000_000);
    assert_eq!(seen.rate_hz("out"), 1000.0);
    assert_eq!(seen.ending(), Some(Ending::Ended));
    assert!(!seen.is_done() && seen.steps().iter().all(|step| *step == Step::Wait));
}

#[test]
fn tags_are_counted_from_the_first_sample_of_the_stream() {
    let input = Feed::samples([0.0f32; 6]).start(100).cut(&[2]).tag(100, "a", 1).tag(103, "b", "x");
    let seen = Trial::new(InPlace::new(Invert)).feed("in", input).run();
    assert_eq!(seen.tags("out"), [(100, "a".to_string(), 1.into()), (103, "b".to_string(), "x".into())]);
}

#[test]
fn shows_messages_time_notes_and_figures() {
    let seen =
        Trial::new(Pairs::default()).feed("in", Feed::messages(1..=5u64).every(10)).keep::<Pair>("out").run();
    assert_eq!(seen.messages::<Pair>("out"), [Pair(1, 2), Pair(3, 4)]);
    let times: Vec<u64> = seen.pieces("out").iter().map(|piece| piece.at_ns).collect();
    assert_eq!(times, [0, 1_000_000]);
    assert_eq!(seen.notes(), ["5 is alone"]);
    assert_eq!((seen.measured("held"), seen.measured("mean")), (Some((5.0, "1")), None));
    assert_eq!(seen.record().operators.iter().map(|one| one.measured.len()).sum::<usize>(), 1);
    assert!(seen.steps().contains(&Step::Until));
}

#[test]
fn frames_come_as_they_are() {
    let frames =
        || Feed::frames([([2, 3, 0], vec![1.0f32; 6]), ([1, 2, 0], vec![2.0; 2]), ([0; 3], vec![3.0])]);
    let seen = cuts(|| Trial::new(InPlace::new(Invert)).feed("in", frames()));
    let shapes: Vec<_> = seen.pieces("out").iter().map(|piece| (piece.shape, piece.length)).collect();
    assert_eq!(shapes, [([2, 3, 0], 6), ([1, 2, 0], 2), ([0; 3], 1)]);
    let text = Trial::new(InPlace::new(Invert)).quantum(20).feed("in", frames()).failure();
    assert!(text.contains("a frame needs a quantum of 24 bytes, and has 20"), "{text}");
}

#[test]
fn feeds_keep_time_and_fail_when_they_are_told_to() {
    let paced = || Feed::samples([0.0f32; 1000]).rate(1e3).cut(&[10]).paced();
    let seen = Trial::new(InPlace::new(Invert)).feed("in", paced()).run();
    assert!(seen.pieces("out").iter().all(|piece| piece.at_ns == (piece.start + 10) * 1_000_000));
    let seen = Trial::new(InPlace::new(Invert)).feed("in", paced()).stop_after(500_000_000).run();
    assert!((490..=500).contains(&seen.samples::<f32>("out").len()));
    assert_eq!(seen.ending(), Some(Ending::Stopped));
    for feed in [paced().then_fail("on purpose"), Feed::samples([0.0f32; 0]).then_fail("on purpose")] {
        let text = Trial::new(InPlace::new(Invert)).feed("in", feed).failure();
        assert!(text.contains("on purpose"), "{text}");
    }
    let failing = Feed::messages([1u64, 2]).then_fail("on purpose");
    let text = Trial::new(Pairs::default()).keep::<Pair>("out").feed("in", failing).failure();
    assert!(text.contains("on purpose"), "{text}");
}

#[test]
fn sources_run_to_their_end_or_are_stopped() {
    struct Numbers(Output<u64>, u64, u64);
    impl Operator for Numbers {
        fn ports(&mut self, p: &mut Ports) {
            p.output("out", &mut self.0);
        }
        fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
            if self.1 == self.2 {
                return Ok(Step::Done);
            }
            self.1 += 1;
            let n = self.1;
            self.0.push(cx, n)?;
            Ok(cx.until(n * 1000))
        }
    }
    let seen = Trial::new(Numbers(Output::default(), 0, 3)).run();
    assert_eq!((seen.messages::<u64>("out"), seen.is_done()), (vec![1, 2, 3], true));
    let seen = Trial::new(Numbers(Output::default(), 0, u64::MAX)).stop_after(10_500).run();
    assert_eq!((seen.messages::<u64>("out").len(), seen.ending()), (11, Some(Ending::Stopped)));
}

/// What the test says that this trial makes fail.
fn panic_of<T>(test: impl FnOnce() -> T) -> String {
    let panic = catch_unwind(AssertUnwindSafe(test)).err().expect("it panics");
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
        .unwrap()
}

#[test]
fn an_operator_that_sees_chunks_is_found() {
    let feed = || Feed::samples(vec![0.0f32; 5000]);
    let text = panic_of(|| cuts(|| Trial::new(SeesChunks::default()).feed("in", feed())));
    assert!(text.contains("with chunks of [1]") && text.contains("`out` sends something else"), "{text}");
    let seen =
        cuts(|| Trial::new(InPlace::new(Invert)).feed("in", feed().tag(4095, "last", true).rate(48e3)));
    assert_eq!(seen.samples::<f32>("out").len(), 5000);
}

#[test]
fn mistakes_of_a_test_are_named() {
    let pairs = || Trial::new(Pairs::default());
    let text = panic_of(|| pairs().feed("in", Feed::messages([1u64])).run());
    assert!(text.contains("say `.keep::<Pair>(\"out\")`"), "{text}");
    let text = panic_of(|| pairs().keep::<Pair>("out").run());
    assert!(text.contains("in") && text.contains("it"), "{text}");
    let text = panic_of(|| pairs().keep::<Pair>("out").feed("inn", Feed::messages([1u64])).run());
    assert!(text.contains("`inn`"), "{text}");
    let text = panic_of(|| pairs().keep::<Pair>("out").feed("in", Feed::samples([1.0f32])).run());
    assert!(text.contains("Chunk<f32>"), "{text}");
    let seen = pairs().keep::<Pair>("out").feed("in", Feed::messages([1u64])).run();
    assert!(panic_of(|| seen.messages::<u64>("out")).contains("does not send messages of type u64"));
    assert!(panic_of(|| seen.lengths("on")).contains("there are [\"out\"]"));
    assert!(
        panic_of(|| pairs().keep::<Pair>("out").feed("in", Feed::messages([1u64])).failure())
            .contains("did not fail")
    );
}

#[test]
fn a_gap_is_found() {
    struct Gap(Output<Chunk<f32>>, u64);
    impl Operator for Gap {
        fn ports(&mut self, p: &mut Ports) {
            p.output("out", &mut self.0);
        }
        fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
            let Some(mut chunk) = self.0.chunk(cx) else { return Ok(Step::Wait) };
            chunk.truncate(10);
            chunk.info_mut().start = self.1;
            chunk.info_mut().tags.push(Tag { offset: 3, key: "x".into(), value: 1.into() });
            self.1 += 11;
            self.0.push(cx, chunk)?;
            Ok(if self.1 > 30 { Step::Done } else { Step::Again })
        }
    }
    let seen = Trial::new(Gap(Output::default(), 0)).run();
    assert_eq!(seen.pieces("out").len(), 3);
    assert!(panic_of(|| seen.samples::<f32>("out")).contains("begins at sample 11 and not at 10"));
    assert_eq!(seen.tags("out")[2].0, 25);
}
