//! Operators with several inputs: samples by position, messages by time, and the mistakes that are easy to
//! make without.

use num_complex::Complex;
use onbeat_runtime::testing::{Feed, Trial, cuts};
use onbeat_runtime::{
    Change, Chunk, Combine, Combined, Context, Error, Input, Operator, Output, Ports, Slices, Step, Value,
    Zip, tried,
};

fn ramp(count: usize, slope: f32) -> Vec<f32> {
    (0..count).map(|n| n as f32 * slope).collect()
}

fn product(trial: Trial, a: usize, b: usize) -> Trial {
    let a = Feed::samples(ramp(a, 1.0)).rate(1e3).tag(7, "a", 1).tag(900, "both", 1);
    trial.feed("a", a).feed("b", Feed::samples(ramp(b, 0.5)).rate(1e3).tag(900, "both", 2))
}

#[test]
fn samples_meet_by_position() {
    let multiply = || {
        Combined::of(|a: &[f32], b: &[f32], out: &mut [f32]| {
            out.iter_mut().zip(a.iter().zip(b)).for_each(|(y, (a, b))| *y = a * b);
        })
    };
    let seen = cuts(|| product(Trial::new(multiply()), 3000, 3000));
    assert_eq!(
        seen.samples::<f32>("out"),
        (0..3000).map(|n| n as f32 * (n as f32 * 0.5)).collect::<Vec<_>>()
    );
    assert_eq!(seen.rate_hz("out"), 1e3);
    let tag = |at, key: &str, value: i64| (at, key.to_string(), Value::Int(value));
    assert_eq!(seen.tags("out"), [tag(7, "a", 1), tag(900, "both", 1), tag(900, "both", 2)]);
    let seen = product(Trial::new(multiply()), 3000, 1000).run();
    assert_eq!(seen.samples::<f32>("out").len(), 1000);
    assert_eq!(seen.notes(), ["`b` ended after 1000 samples; the rest of `a` is not read"]);
}

/// A complex stream times the difference of two real ones, times a gain that can be changed.
#[derive(Clone)]
struct Faded(f32);

impl Combine for Faded {
    type In = (Complex<f32>, f32, f32);
    type Out = Complex<f32>;

    fn combine(&mut self, (x, up, down): (&[Complex<f32>], &[f32], &[f32]), out: &mut [Complex<f32>]) {
        for (n, y) in out.iter_mut().enumerate() {
            *y = x[n] * (up[n] - down[n]) * self.0;
        }
    }
    fn inputs(&self) -> Vec<String> {
        ["in", "up", "down"].map(str::to_string).into()
    }
    fn settable(&self) -> &'static [&'static str] {
        &["gain"]
    }
    fn change(&self, name: &str, value: &Value) -> Result<Change<Self>, Error> {
        let gain = value.read(name)?;
        tried(self, move |it| {
            it.0 = gain;
            Ok(())
        })
    }
}

#[test]
fn types_may_differ_and_gains_change_at_their_sample() {
    let seen = cuts(|| {
        Trial::new(Combined::new(Faded(1.0)))
            .feed("in", Feed::samples(vec![Complex::new(2.0f32, -1.0); 500]).rate(10.0))
            .feed("up", Feed::samples(ramp(500, 2.0)).rate(10.0))
            .feed("down", Feed::samples(ramp(500, 1.0)).rate(10.0))
            .set("gain", 3.0, Some(123))
    });
    let gain = |n: usize| if n < 123 { 1.0 } else { 3.0 };
    let expected = |n: usize| Complex::new(2.0, -1.0) * (n as f32) * gain(n);
    assert_eq!(seen.samples::<Complex<f32>>("out"), (0..500).map(expected).collect::<Vec<_>>());
}

#[test]
fn rates_must_agree() {
    struct Largest;
    impl Combine for Largest {
        type In = [f32];
        type Out = f32;
        fn combine(&mut self, inputs: Slices<'_, f32>, out: &mut [f32]) {
            for (n, y) in out.iter_mut().enumerate() {
                *y = inputs.each().map(|samples| samples[n]).fold(f32::MIN, f32::max);
            }
        }
    }
    let trial = || Trial::new(Combined::new(Largest)).feed("in0", Feed::samples(ramp(10, 1.0)).rate(8e3));
    let seen = trial().feed("in1", Feed::samples(vec![5.0f32; 10]).rate(8e3)).run();
    assert_eq!(seen.samples::<f32>("out"), [5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    let text = trial().feed("in1", Feed::samples(vec![5.0f32; 10]).rate(9e3)).failure();
    assert!(text.contains("`in1` is 9000 Hz") && text.contains("resample one of them"), "{text}");
}

#[test]
fn samples_without_a_rate_go_with_any() {
    let sum = || {
        Combined::of(|a: &[f32], b: &[f32], out: &mut [f32]| {
            out.iter_mut().zip(a.iter().zip(b)).for_each(|(y, (a, b))| *y = a + b);
        })
    };
    for (a_hz, b_hz) in [(0.0, 8e3), (8e3, 0.0), (0.0, 0.0)] {
        let feed = |rate_hz| Feed::samples(ramp(100, 1.0)).rate(rate_hz);
        let seen = cuts(|| Trial::new(sum()).feed("a", feed(a_hz)).feed("b", feed(b_hz)));
        assert_eq!(seen.samples::<f32>("out"), ramp(100, 2.0));
        assert_eq!(seen.rate_hz("out"), a_hz + b_hz);
    }
}

#[test]
fn messages_meet_by_time() {
    let pair = |a: u64, b: u64| 100 * a + b;
    let trial = |zip: Box<dyn Operator>, every: u64| {
        Trial::boxed(zip)
            .feed("a", Feed::messages(0..6u64).every(10))
            .feed("b", Feed::messages(0..6u64).every(every))
            .run()
    };
    // 0, 10, 20, 30, 40, 50 and 0, 12, 24, 36, 48, 60.
    let seen = trial(Box::new(Zip::new(pair).within(2)), 12);
    assert_eq!(seen.messages::<u64>("out"), [0, 101, 504]);
    assert_eq!(
        seen.notes(),
        ["3 messages of `a` and 3 of `b` have no partner within 2 ns, and were left out"]
    );
    let seen = trial(Box::new(Zip::new(pair)), 20);
    assert_eq!(seen.messages::<u64>("out"), [0, 201, 402]);
    let seen = trial(Box::new(Zip::new(pair).held()), 20);
    assert_eq!(seen.messages::<u64>("out"), [0, 100, 201, 301, 402, 502]);
    assert!(seen.notes().is_empty(), "{:?}", seen.notes());
}

/// What everybody writes first: a message of each input, and their samples in pairs.
#[derive(Default)]
struct Naive {
    a: Input<Chunk<f32>>,
    b: Input<Chunk<f32>>,
    out: Output<Chunk<f32>>,
}

impl Operator for Naive {
    fn ports(&mut self, p: &mut Ports) {
        p.input("a", &mut self.a);
        p.input("b", &mut self.b);
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let (Some(mut a), Some(b)) = (self.a.pop(cx), self.b.pop(cx)) {
            a.edit(cx)?.iter_mut().zip(b.iter()).for_each(|(a, b)| *a *= *b);
            self.out.push(cx, a)?;
        }
        Ok(Step::Wait)
    }
}

#[test]
fn chunks_that_do_not_match_are_an_error() {
    let trial = |cut: &[usize]| {
        let feed = |cut: &[usize]| Feed::samples(ramp(300, 1.0)).rate(1e3).cut(cut);
        Trial::new(Naive::default()).feed("a", feed(&[100])).feed("b", feed(cut))
    };
    assert_eq!(trial(&[100]).run().samples::<f32>("out").len(), 300);
    let text = trial(&[5, 100]).failure();
    assert!(
        text.contains("samples 0 to 99 at 1000 Hz of `a` and samples 0 to 4 at 1000 Hz of `b`"),
        "{text}"
    );
    assert!(text.contains("write a `Combine`"), "{text}");
}

#[test]
fn messages_that_go_with_an_ended_input_are_named() {
    #[derive(Default)]
    struct Sums {
        a: Input<u64>,
        b: Input<u64>,
        out: Output<u64>,
    }
    impl Operator for Sums {
        fn ports(&mut self, p: &mut Ports) {
            p.input("a", &mut self.a);
            p.input("b", &mut self.b);
            p.output("out", &mut self.out);
        }
        fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
            if let (Some(a), Some(b)) = (self.a.pop(cx), self.b.pop(cx)) {
                self.out.push(cx, a + b)?;
            }
            Ok(Step::Wait)
        }
    }
    let trial = |b: u64| {
        let (a, b) = (Feed::messages(0..3u64), Feed::messages(0..b));
        Trial::new(Sums::default()).feed("a", a).feed("b", b).run()
    };
    assert_eq!(trial(5).messages::<u64>("out"), [0, 2, 4]);
    assert_eq!(trial(5).notes().len(), 1, "{:?}", trial(5).notes());
    assert!(trial(5).notes()[0].starts_with("it takes messages of `b` although `a` has ended"));
    assert!(trial(3).notes().is_empty(), "{:?}", trial(3).notes());
}
