//! Sum, interleave, deinterleave, delay and squelch do not depend on chunk borders.
#![forbid(unsafe_code)]

use crate::slices::{Dice, SIZES, Size, drive, drive_map};
use num_complex::Complex;
use onbeat_operators::dsp::{Agc, Magnitude};
use onbeat_operators::lanes::{Deinterleave, Interleave, Sum};
use onbeat_operators::{Closed, Delay, DelayLength, Squelch};
use onbeat_runtime::testing::{Feed, Trial, cuts};
use onbeat_runtime::{ClockKind, Combine, Combined, InPlace, Kernel, Map, Stream, Value};

const RATE_HZ: f64 = 8e3;

fn reals(seed: u64, count: usize) -> Vec<f32> {
    Dice::new(seed).values(count)
}

fn feed(samples: &[f32]) -> Feed {
    Feed::samples(samples.to_vec()).rate(RATE_HZ)
}

fn joined(by: impl Combine<In = [f32]>, streams: &[Vec<f32>]) -> Trial {
    let trial = Trial::new(Combined::new(by));
    let tagged = |lane: usize| feed(&streams[lane]).tag(100 + lane as u64, "lane", lane as i64);
    (0..streams.len()).fold(trial, |trial, lane| trial.feed(&format!("in{lane}"), tagged(lane)))
}

#[test]
fn streams_are_added_and_put_in_turn() {
    for lanes in [1, 2, 3, 5] {
        let streams: Vec<_> = (0..lanes).map(|lane| reals(lane as u64, 3000)).collect();
        let seen = cuts(|| joined(Sum::<f32>::new(streams.len()).unwrap(), &streams));
        let sum = |n: usize| streams[1..].iter().fold(streams[0][n], |sum, x| sum + x[n]);
        assert_eq!(seen.samples::<f32>("out"), (0..3000).map(sum).collect::<Vec<_>>());
        assert_eq!(seen.rate_hz("out"), RATE_HZ);

        let seen = cuts(|| joined(Interleave::new(lanes).unwrap(), &streams));
        let turn = |n: usize| streams[n % lanes][n / lanes];
        assert_eq!(seen.samples::<f32>("out"), (0..3000 * lanes).map(turn).collect::<Vec<_>>());
        assert_eq!(seen.rate_hz("out"), RATE_HZ * lanes as f64);
        for (lane, (at, key, value)) in seen.tags("out").into_iter().enumerate() {
            let expected = (((100 + lane) * lanes + lane) as u64, "lane", Value::Int(lane as i64));
            assert_eq!((at, key.as_str(), value), expected);
        }
    }
}

#[test]
fn the_shortest_stream_ends_it() {
    let streams = [reals(1, 1000), reals(2, 900), reals(3, 2000)];
    let seen = joined(Sum::<f32>::new(streams.len()).unwrap(), &streams).run();
    assert_eq!(seen.samples::<f32>("out").len(), 900);
    assert_eq!(seen.notes(), ["`in1` ended after 900 samples; the rest of the other streams is not read"]);
    let two = Trial::new(Combined::new(Sum::<f32>::new(2).unwrap())).feed("in0", feed(&streams[0]));
    let text = two.feed("in1", Feed::samples(streams[1].clone()).rate(1e3)).failure();
    assert!(text.contains("1000 Hz") && text.contains("8000 Hz"), "{text}");
    assert!(Sum::<f32>::new(0).err().unwrap().to_string().contains("`inputs` is 0"));
    assert!(Deinterleave::new(65).err().unwrap().to_string().contains("`outputs` is 65"));
}

#[test]
fn what_was_put_in_turn_comes_apart() {
    for (lanes, count) in [(1, 100), (2, 3001), (3, 3001), (7, 5)] {
        let samples = reals(9, count);
        let seen = cuts(|| {
            let tagged = feed(&samples).tag(4, "four", 4).tag(count as u64 - 1, "last", true);
            Trial::new(Deinterleave::new(lanes).unwrap()).feed("in", tagged)
        });
        for lane in 0..lanes {
            let out = format!("out{lane}");
            let expected: Vec<f32> = samples.iter().skip(lane).step_by(lanes).copied().collect();
            assert_eq!(seen.samples::<f32>(&out), expected, "{lane} of {lanes}");
            let tags: Vec<_> =
                seen.tags(&out).into_iter().map(|(at, ..)| at * lanes as u64 + lane as u64).collect();
            let here = |at: &u64| *at as usize % lanes == lane;
            assert_eq!(tags, [4, count as u64 - 1].into_iter().filter(here).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_delay_is_zeros_and_then_all() {
    let samples = reals(4, 3000);
    for (lag, zeros) in
        [(DelayLength::Samples(0), 0), (DelayLength::Samples(5000), 5000), (DelayLength::Seconds(0.1), 800)]
    {
        let make = || Trial::new(Delay::<f32>::new(lag).unwrap());
        let seen = cuts(|| make().feed("in", feed(&samples).tag(7, "seven", 7)));
        let mut expected = vec![0.0; zeros];
        expected.extend(&samples);
        assert_eq!(seen.samples::<f32>("out"), expected);
        assert_eq!(seen.tags("out"), [(7 + zeros as u64, "seven".to_string(), 7.into())]);
    }
    // An operator without an end can still be stopped.
    let endless = Trial::new(Delay::<f32>::new(DelayLength::Samples(u64::MAX)).unwrap());
    let seen = endless.feed("in", feed(&samples)).options(|options| options.clock = ClockKind::Real);
    let seen = seen.stop_after(1_000_000).run();
    assert!(
        seen.notes()[0].contains("before the end of the delay: no input was passed on"),
        "{:?}",
        seen.notes()
    );
    let none = Trial::new(Delay::<f32>::new(DelayLength::Seconds(1.0)).unwrap())
        .feed("in", Feed::samples([0.0f32; 4]));
    assert!(none.failure().contains("needs a sample rate"));
}

/// Noise at -60 dB, a tone of -3 dB from 1000 to 2000, noise.
fn call() -> Vec<f32> {
    let size = |n: usize| if (1000..2000).contains(&n) { 1.0 } else { 1e-3 };
    (0..3000).map(|n| size(n) * (n as f32 * 0.7).sin()).collect()
}

#[test]
fn a_squelch_opens_and_closes() {
    let samples = call();
    let make = |closed| Trial::new(Squelch::<f32>::new(-20.0, -30.0, 0.002, closed).unwrap());
    let seen = cuts(|| make(Closed::Mute).feed("in", feed(&samples).tag(1500, "mark", 1)));
    let muted = seen.samples::<f32>("out");
    let tags = seen.tags("out");
    let [(open, ..), (1500, ..), (close, ..)] = tags[..] else { panic!("{tags:?}") };
    // The power reaches -20 dB within a fraction of the time constant of 16 samples. Falling from -3 to -30
    // dB takes 27 dB at 4.3 dB per 16 samples.
    assert!((1000..1006).contains(&open) && (2080..2120).contains(&close), "{open} {close}");
    assert_eq!((&tags[0].2, &tags[2].2), (&Value::Bool(true), &Value::Bool(false)));
    for (n, (y, x)) in muted.iter().zip(&samples).enumerate() {
        assert_eq!(*y, if (open..close).contains(&(n as u64)) { *x } else { 0.0 }, "{n}");
    }

    let seen = cuts(|| make(Closed::Gate).feed("in", feed(&samples).tag(10, "lost", 1).tag(1500, "mark", 1)));
    assert_eq!(seen.samples::<f32>("out"), samples[open as usize..close as usize]);
    let expected = [
        (0, "squelch".to_string(), Value::Int(open as i64)),
        (1500 - open, "mark".to_string(), Value::Int(1)),
    ];
    assert_eq!(seen.tags("out"), expected);
}

#[test]
fn a_squelch_counts_bad_samples() {
    let mut samples = call();
    (samples[1200], samples[50]) = (f32::NAN, f32::INFINITY);
    let make = || Squelch::<f32>::new(-20.0, -30.0, 0.002, Closed::Mute).unwrap();
    let seen = Trial::new(make()).feed("in", feed(&samples)).run();
    assert!(seen.samples::<f32>("out").iter().all(|x| x.is_finite()));
    assert_eq!(seen.notes(), ["2 samples were not finite and were replaced by 0"]);
    let error = Squelch::<f32>::new(-20.0, -10.0, 0.01, Closed::Mute).err().unwrap().to_string();
    assert!(error.contains("`close` is -10"), "{error}");
}

#[test]
fn slices_do_not_matter_to_kernels() {
    let mut dice = Dice::new(8);
    let input: Vec<_> = (0..6001).map(|_| Complex::new(dice.value(), dice.value())).collect();
    for (make, formula) in [
        (Magnitude::new as fn() -> Magnitude, (|x: Complex<f32>| x.norm()) as fn(Complex<f32>) -> f32),
        (Magnitude::power, |x| x.norm_sqr()),
    ] {
        let whole = drive(&mut make(), &input, Size::Fixed(usize::MAX / 2), Size::Fixed(5000));
        for (y, x) in whole.iter().zip(&input) {
            assert!((y - formula(*x)).abs() < 1e-6);
        }
        for size_in in SIZES {
            for size_out in SIZES {
                assert_eq!(drive(&mut make(), &input, size_in, size_out), whole);
            }
        }
    }
    let agc = || {
        let mut agc = Agc::<Complex<f32>>::new(0.01, 0.1, 0.5, 100.0).unwrap();
        agc.start(RATE_HZ).unwrap();
        agc
    };
    let whole = drive_map(&mut agc(), &input, Size::Fixed(usize::MAX));
    for size in SIZES {
        assert_eq!(drive_map(&mut agc(), &input, size), whole);
    }
    let trial =
        || Trial::new(Stream::new(Magnitude::new())).feed("in", Feed::samples(input[..2000].to_vec()));
    assert_eq!(cuts(trial).samples::<f32>("out").len(), 2000);
    let trial = || {
        let agc = Agc::<Complex<f32>>::new(0.01, 0.1, 0.5, 100.0).unwrap();
        Trial::new(InPlace::new(agc)).feed("in", Feed::samples(input[..2000].to_vec()).rate(RATE_HZ))
    };
    cuts(trial);
    let _ = <Magnitude as Kernel>::ratio(&Magnitude::new());
}
