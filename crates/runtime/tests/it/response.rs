//! Bounds of response times: worked examples of the books, and a thread that is played through.
#![forbid(unsafe_code)]

use onbeat_runtime::response::{Host, LoadStream, Supply, response_ns, responses};
use onbeat_runtime::{Context, Error, Graph, Operator, Options, Output, Pace, Pacer, Ports, Rate, Step};
use proptest::prelude::*;

#[test]
fn worked_examples_come_out() {
    let even = LoadStream::even;
    // Own, what goes first, what there is, and the bound.
    let table: [(LoadStream, Vec<LoadStream>, Supply, Option<f64>); 8] = [
        // Joseph and Pandya: (3, 7), (3, 12), (5, 20).
        (even(7.0, 3.0), vec![], Supply::CORE, Some(3.0)),
        (even(12.0, 3.0), vec![even(7.0, 3.0)], Supply::CORE, Some(6.0)),
        (even(20.0, 5.0), vec![even(7.0, 3.0), even(12.0, 3.0)], Supply::CORE, Some(20.0)),
        // Lehoczky: the first message of (62, 100) beside (26, 70) is done after 114, the fifth after 118.
        (even(100.0, 62.0), vec![even(70.0, 26.0)], Supply::CORE, Some(118.0)),
        // More than there is.
        (even(10.0, 6.0), vec![even(10.0, 4.0)], Supply::CORE, None),
        // A message that may come 5 late is 5 late at the end.
        (LoadStream { jitter_ns: 5.0, ..even(20.0, 4.0) }, vec![], Supply::CORE, Some(9.0)),
        // 3 of every 5: at worst nothing for 4, then 0.6 of each.
        (even(20.0, 3.0), vec![], Supply::server(3.0, 5.0), Some(9.0)),
        // Every fourth message brings 8 more.
        (
            even(10.0, 1.0),
            vec![LoadStream { work: vec![(1, 1.0), (4, 8.0)], ..even(10.0, 0.0) }],
            Supply::CORE,
            Some(10.0),
        ),
    ];
    for (own, others, supply, expected) in table {
        let found = response_ns(&own, &others, supply);
        let near = match (found, expected) {
            (Some(found), Some(expected)) => (found - expected).abs() < 1e-6,
            (found, expected) => found == expected,
        };
        assert!(near, "{own:?} behind {others:?}: {found:?}, not {expected:?}");
    }
}

/// One message of a stream that is played through.
#[derive(Debug, Clone, Copy)]
struct Job {
    stream: usize,
    nominal: f64,
    release: f64,
    work: f64,
}

/// Plays the messages of all streams through on one thread that finishes what it has begun, and takes up any
/// of those that wait. Gives the longest time from the nominal time to the end, by stream.
fn played(streams: &[LoadStream], offsets: &[f64], mut dice: u64) -> Vec<f64> {
    let mut roll = move |below: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % below.max(1)
    };
    let mut jobs = Vec::new();
    for (stream, (what, offset)) in streams.iter().zip(offsets).enumerate() {
        let mut number = roll(12);
        let mut nominal = *offset;
        while nominal < 3_000.0 {
            number += 1;
            let due = what.work.iter().filter(|(every, _)| number.is_multiple_of(*every));
            let work = due.map(|(_, work)| work).sum();
            let jitter = what.jitter_ns * roll(101) as f64 / 100.0;
            jobs.push(Job { stream, nominal, release: nominal + jitter, work });
            nominal += what.period_ns;
        }
    }
    let mut worst = vec![0f64; streams.len()];
    let mut now = 0f64;
    while !jobs.is_empty() {
        // Messages of one stream keep their order.
        let is_first =
            |job: &Job| !jobs.iter().any(|other| other.stream == job.stream && other.nominal < job.nominal);
        let ready: Vec<usize> =
            (0..jobs.len()).filter(|&at| jobs[at].release <= now && is_first(&jobs[at])).collect();
        if ready.is_empty() {
            now = jobs
                .iter()
                .filter(|job| is_first(job))
                .map(|job| job.release)
                .fold(f64::MAX, f64::min)
                .max(now);
            continue;
        }
        let job = jobs.swap_remove(ready[roll(ready.len() as u64) as usize]);
        now += job.work;
        worst[job.stream] = worst[job.stream].max(now - job.nominal);
    }
    worst
}

fn stream() -> impl Strategy<Value = LoadStream> {
    (10u32..200, 0u32..30, prop::collection::vec((1u64..5, 1u32..20), 1..3)).prop_map(
        |(period, jitter, work)| LoadStream {
            period_ns: f64::from(period),
            jitter_ns: f64::from(jitter),
            work: work.into_iter().map(|(every, work)| (every, f64::from(work))).collect(),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever the order and whatever comes when: nothing takes longer than the bound.
    #[test]
    fn nothing_takes_longer_than_its_bound(
        streams in prop::collection::vec(stream(), 1..5),
        offsets in prop::collection::vec(0f64..200.0, 5),
        dice in any::<u64>(),
    ) {
        let played = played(&streams, &offsets, dice);
        for (at, own) in streams.iter().enumerate() {
            let mut others = streams.clone();
            others.remove(at);
            if let Some(bound) = response_ns(own, &others, Supply::CORE) {
                prop_assert!(played[at] <= bound + 1e-6, "{own:?} among {others:?}: {} and not {bound}", played[at]);
            }
        }
    }

    /// A slower supply, or one more in the way, makes nothing faster.
    #[test]
    fn more_in_the_way_is_never_better(own in stream(), others in prop::collection::vec(stream(), 0..3), more in stream()) {
        let all: Vec<LoadStream> = others.iter().cloned().chain([more]).collect();
        let (few, many) = (response_ns(&own, &others, Supply::CORE), response_ns(&own, &all, Supply::CORE));
        let slow = response_ns(&own, &others, Supply { delay_ns: 3.0, rate: 0.9 });
        for worse in [many, slow] {
            let holds = match (few, worse) {
                (Some(few), Some(worse)) => worse >= few,
                (None, worse) => worse.is_none(),
                (Some(_), None) => true,
            };
            prop_assert!(holds, "{few:?}, then {worse:?}");
        }
    }
}

/// Sends 20 numbers, 10 ms of the run's clock apart.
struct Tenth(Output<u64>, u64);

impl Operator for Tenth {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.0);
    }
    fn rate(&self, _: Option<Pace>) -> Option<Rate> {
        Some(Rate::Period(10_000_000))
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(wait) = Pacer::new(100.0, Pace::Real).wait(cx, self.1, self.1) {
            return Ok(wait);
        }
        self.0.push(cx, self.1)?;
        self.1 += 1;
        Ok(if self.1 == 20 { Step::Done } else { Step::Again })
    }
}

#[test]
fn a_scaled_clock_scales_the_bound() {
    let graph = || {
        let mut graph = Graph::new("scaled");
        let tenth = graph.add("tenth", Tenth(Output::default(), 0));
        let end = graph.sink("end", |_: u64| std::thread::sleep(std::time::Duration::from_micros(200)));
        graph.connect(tenth, |t| &t.0, end, |e| &e.input);
        graph
    };
    let options = |scale| Options { scale, ..Options::default() };
    let mut record = graph().run(&options(4.0)).unwrap();
    // Measured values depend on the load of the machine: these are typical ones.
    record.threads.iter_mut().for_each(|thread| thread.wake_late_max_ns = Some(80_000));
    for operator in &mut record.operators {
        (operator.step.max_ns, operator.busy_ns) = (300_000, operator.steps * 200_000);
    }
    let worst = |scale| {
        let plan = graph().plan(&options(scale)).unwrap();
        let host = Host { longest_ns: 50_000, share: 0.0 };
        responses(&plan, &record, &host).paths[0].worst_ns.unwrap() as f64
    };
    // The same steps and wake-ups take four times as long on a clock that runs four times as fast.
    assert!((worst(4.0) / worst(1.0) - 4.0).abs() < 0.01, "{} {}", worst(4.0), worst(1.0));
    assert!((worst(0.25) / worst(1.0) - 0.25).abs() < 0.01, "{} {}", worst(0.25), worst(1.0));
    assert!(worst(1.0) >= 650_000.0, "two steps and the host: {}", worst(1.0));
}
