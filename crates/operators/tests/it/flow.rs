//! Operators that generate, merge, limit and observe messages.
#![forbid(unsafe_code)]

use crate::harness::{keep_numbers, manual, notes, run};
use crate::slices::Dice;
use onbeat_operators::{Counter, Load, LoadWork, NullSource, NumberMerge, Overrun, Tap, Throttle, Timer};
use onbeat_runtime::testing::{Feed, Piece, Trial};
use onbeat_runtime::{Chunk, ClockKind, Graph, Pace};
use serde_json::Value;

const MS: u64 = 1_000_000;

#[test]
fn a_counter_counts() {
    let seen = Trial::new(Counter::new(Some(5)).start_at(u64::MAX - 1)).run();
    assert_eq!(seen.messages::<u64>("out"), [u64::MAX - 1, u64::MAX, 0, 1, 2]);
}

#[test]
fn a_counter_with_a_rate_keeps_time() {
    for (count, duration_ns) in [(0, 0), (1, 0), (4, 1_000 * MS)] {
        let seen = Trial::new(Counter::new(Some(count)).rate(3.0, Pace::Real).unwrap()).run();
        assert_eq!(seen.record().result.duration_ns, duration_ns);
        assert_eq!(seen.messages::<u64>("out"), (0..count).collect::<Vec<_>>());
    }
}

#[test]
fn a_timer_is_due_at_multiples_of_its_period() {
    let seen = Trial::new(Timer::new(7 * MS, Some(1000), Overrun::Skip).unwrap()).run();
    assert_eq!(seen.messages::<u64>("out"), (0..1000).collect::<Vec<_>>());
    for (n, tick) in (0..).zip(seen.pieces("out")) {
        assert_eq!((tick.time_ns, tick.at_ns), (n * 7 * MS, n * 7 * MS));
    }
    assert!(seen.notes().is_empty());
}

/// Ticks of 1 ms through a limiter of one message per `step_ms`.
fn slow_ticks(overrun: Overrun, step_ms: u64, count: u64) -> (Vec<u64>, Vec<String>) {
    let mut graph = Graph::new("slow");
    let ticks = graph.add("ticks", Timer::new(MS, Some(count), overrun).unwrap());
    let slow = graph.add("slow", Slow { step_ns: step_ms * MS, ..Slow::default() });
    let (end, kept) = keep_numbers(&mut graph, "end");
    graph.connect(ticks, |o| &o.out, slow, |o| &o.input).capacity(1);
    graph.connect(slow, |o| &o.out, end, |o| &o.input);
    let record = run(graph, &manual());
    let kept = kept.lock().unwrap().clone();
    (kept, notes(&record).into_iter().map(str::to_string).collect())
}

/// Takes a message, and the next one this much later.
#[derive(Default)]
struct Slow {
    input: onbeat_runtime::Input<u64>,
    out: onbeat_runtime::Output<u64>,
    step_ns: u64,
    free_ns: u64,
}

impl onbeat_runtime::Operator for Slow {
    fn ports(&mut self, p: &mut onbeat_runtime::Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }
    fn step(
        &mut self,
        cx: &mut onbeat_runtime::Context,
    ) -> Result<onbeat_runtime::Step, onbeat_runtime::Error> {
        if cx.now_ns() < self.free_ns {
            return Ok(cx.until(self.free_ns));
        }
        if let Some(n) = self.input.pop(cx) {
            self.out.push(cx, n)?;
            self.free_ns = cx.now_ns() + self.step_ns;
            return Ok(cx.until(self.free_ns));
        }
        Ok(onbeat_runtime::Step::Wait)
    }
}

#[test]
fn a_late_timer_skips_or_catches_up() {
    let (ticks, text) = slow_ticks(Overrun::CatchUp, 10, 30);
    assert_eq!(ticks, (0..30).collect::<Vec<_>>());
    assert!(text[0].contains("ms late, more than a period"), "{text:?}");
    assert!(text[1].contains("were more than one period late and 0 were skipped"), "{text:?}");

    let (ticks, text) = slow_ticks(Overrun::Skip, 10, 30);
    assert!(ticks.is_sorted() && ticks.len() < 10, "{ticks:?}");
    assert!(text[0].contains("ms late, more than a period"), "{text:?}");
    assert!(text[1].contains(&format!("{} were skipped", 30 - ticks.len())), "{text:?}");

    // At least one period lies between two ticks, so the numbers have no gaps.
    let (ticks, _) = slow_ticks(Overrun::MinGap, 10, 30);
    assert_eq!(ticks, (0..30).collect::<Vec<_>>());

    let mut graph = Graph::new("stop");
    let ticks = graph.add("ticks", Timer::new(MS, None, Overrun::Stop).unwrap());
    let slow = graph.add("slow", Slow { step_ns: 10 * MS, ..Slow::default() });
    let (end, _) = keep_numbers(&mut graph, "end");
    graph.connect(ticks, |o| &o.out, slow, |o| &o.input).capacity(1);
    graph.connect(slow, |o| &o.out, end, |o| &o.input);
    let error = graph.run(&manual()).unwrap_err().to_string();
    assert!(error.contains("operator `ticks`: tick 2 came 8 ms late, with a period of 1 ms"), "{error}");
}

#[test]
fn a_throttle_holds_to_its_rate() {
    let samples: Vec<f32> = Dice::new(1).values(10_000);
    let input = Feed::samples(samples.clone()).cut(&[100, 1, 999, 2000, 50]);
    let seen = Trial::new(Throttle::<f32>::new(1e6).unwrap()).feed("in", input).run();
    assert_eq!(seen.samples::<f32>("out"), samples);
    // Each chunk leaves when its last sample is due, at a microsecond a sample.
    let late = |piece: &Piece| piece.at_ns != (piece.start + piece.length as u64) * 1000;
    assert_eq!(seen.pieces("out").into_iter().find(late), None);
}

#[test]
fn a_throttle_counts_from_its_first_chunk() {
    for capacity in [1, 4, 64] {
        let input = Feed::samples(vec![0.0f32; 10_000]).rate(1e6).cut(&[500]).paced();
        let slow = Throttle::<f32>::new(250e3).unwrap();
        // The first chunk arrives after half a millisecond, and 10 000 samples take 40.
        let seen = Trial::new(slow).feed("in", input).capacity(capacity).run();
        assert_eq!(seen.record().result.duration_ns, 40 * MS + MS / 2);
        assert_eq!(seen.lengths("out"), [500; 20]);
    }
}

/// Taps samples. Returns the lines of its file.
fn tap(samples: &[f32], lengths: &[usize], rate_hz: f64) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("statistics/tap.jsonl");
    let input = Feed::samples(samples.to_vec()).cut(lengths).rate(rate_hz);
    let seen = Trial::new(Tap::new().file(&path, 0.01).unwrap()).feed("in", input).run();
    let passed = seen.samples::<f32>("out");
    assert!(bytemuck::cast_slice::<f32, u32>(&passed) == bytemuck::cast_slice::<f32, u32>(samples));
    assert_eq!(seen.record().operators.iter().map(|operator| operator.copies).sum::<u64>(), 0);
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_tap_says_what_passes() {
    let mut samples: Vec<f32> = Dice::new(5).values(1250);
    samples[600] = f32::NAN;
    samples[490] = -3.0;
    let lines = tap(&samples, &[1000], 48e3);
    // 480 samples per line, and the remainder.
    let counts: Vec<_> = lines.iter().map(|line| (line["start"].as_u64(), line["count"].as_u64())).collect();
    assert_eq!(counts, [(Some(0), Some(480)), (Some(480), Some(480)), (Some(960), Some(290))]);
    assert_eq!(
        (&lines[1]["not_finite"], &lines[1]["min"], &lines[1]["time_s"]),
        (&1.into(), &(-3.0).into(), &0.01.into())
    );
    let rms = (samples[..480].iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / 480.0).sqrt();
    assert_eq!(lines[0]["rms"], rms);
    for lengths in [&[1][..], &[7, 100], &[480], &[481]] {
        assert_eq!(tap(&samples, lengths, 48e3), lines);
    }
    // Without a rate there are no seconds: a single line.
    let lines = tap(&samples, &[100], 0.0);
    assert_eq!((lines.len(), &lines[0]["count"], &lines[0]["time_s"]), (1, &1250.into(), &Value::Null));
}

#[test]
fn a_tap_without_a_file_leaves_a_note() {
    let seen = Trial::new(Tap::new()).feed("in", Feed::samples([3.0f32, -4.0]).cut(&[1]).rate(48e3)).run();
    assert_eq!(seen.notes(), ["2 samples: min -4, max 3, rms 3.535534, 0 not finite"]);
}

#[test]
fn a_load_takes_its_time() {
    for (work, least_ns) in [(LoadWork::Busy(MS), 10 * MS), (LoadWork::Rounds(1000), 0)] {
        let samples: Vec<f32> = Dice::new(2).values(1000);
        let input = Feed::samples(samples.clone()).cut(&[100]);
        let trial = Trial::new(Load::<Chunk<f32>>::new(work)).feed("in", input);
        let seen = trial.options(|options| options.clock = ClockKind::Real).run();
        assert!(seen.record().result.duration_ns >= least_ns, "{}", seen.record().result.duration_ns);
        assert_eq!(seen.samples::<f32>("out"), samples);
    }
}

#[test]
fn a_load_ends_where_time_stands_still() {
    let seen =
        Trial::new(Load::<u64>::new(LoadWork::Busy(u64::MAX))).feed("in", Feed::messages(0..10u64)).run();
    assert_eq!((seen.record().result.duration_ns, seen.messages::<u64>("out").len()), (0, 10));
}

#[test]
fn a_merge_goes_by_source_time() {
    let mut trial = Trial::new(NumberMerge::<u64>::default());
    for (start, every_ns, count) in [(1000u64, 90, 10), (2000, 30, 30), (3000, 900, 1)] {
        trial = trial.feed("in", Feed::messages(start..start + count).every(every_ns));
    }
    let kept = trial.run().messages::<u64>("out");
    assert_eq!(kept.len(), 41);
    // Source times in units of 30 ns never decrease.
    let times: Vec<u64> = kept
        .iter()
        .map(|n| match n / 1000 {
            1 => (n - 1000) * 3,
            2 => n - 2000,
            _ => (n - 3000) * 30,
        })
        .collect();
    assert!(times.is_sorted(), "{kept:?}");
}

#[test]
fn a_null_source_fills_the_quantum() {
    for (size, expected) in [(None, 4096), (Some(17), 17)] {
        let mut source = NullSource::<f32>::new(Some(100)).rate(48e3, Pace::Fast).unwrap();
        if let Some(size) = size {
            source = source.size(size).unwrap();
        }
        let seen = Trial::new(source).run();
        assert_eq!(seen.lengths("out"), [expected; 100]);
        assert_eq!((seen.samples::<f32>("out").len(), seen.rate_hz("out")), (100 * expected, 48e3));
    }
}

#[test]
fn a_null_source_knows_its_quantum() {
    let text = Trial::new(NullSource::<f32>::new(None).size(5000).unwrap()).failure();
    assert!(text.contains("`size` is 5000") && text.contains("4096 samples"), "{text}");
}
