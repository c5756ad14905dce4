//! Pauses, gates, parameters and looks at random, from several threads, for a while: nothing is lost, nothing
//! leaks, nothing stands still. `ONBEAT_STRESS_SECONDS` says for how long. It has its process for itself,
//! because it measures its memory.

#[path = "it/ones/mod.rs"]
mod ones;
#[path = "it/random/splitmix.rs"]
mod splitmix;
#[path = "it/watchdog/mod.rs"]
mod watchdog;
#[path = "it/ways/mod.rs"]
mod ways;

use onbeat_queue::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use onbeat_runtime::{
    Change, Chunk, ClockKind, Context, Error, Gate, Graph, InPlace, Input, Map, Operator, Options,
    OrderError, Ports, RunHandle, Step, Value, When, tried,
};
use ones::Ones;
use splitmix::Random;
use std::sync::Arc;
use std::time::{Duration, Instant};
use watchdog::watched;
use ways::ways;

/// Samples of a chunk.
const SAMPLES: usize = 64;

#[derive(Clone)]
struct Gain(f32);

impl Map for Gain {
    type Sample = f32;
    fn map(&mut self, samples: &mut [f32]) {
        samples.iter_mut().for_each(|x| *x *= self.0);
    }
    fn settable(&self) -> &'static [&'static str] {
        &["gain"]
    }
    fn change(&self, name: &str, value: &Value) -> Result<Change<Self>, Error> {
        let gain: f32 = value.read(name)?;
        tried(self, move |it| {
            it.0 = gain;
            Ok(())
        })
    }
}

/// Sees that chunks come one after the other, and counts them.
struct End(Input<Chunk<f32>>, u64, Arc<AtomicU64>);

impl Operator for End {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.0);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        while let Some(chunk) = self.0.pop(cx) {
            if chunk.info().start != self.1 {
                return Err(Error::new(format!("sample {} after {}", chunk.info().start, self.1)));
            }
            self.1 += chunk.len() as u64;
            self.2.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Step::Wait)
    }
}

/// Orders at random until it is told to end. Gives how many there were.
fn meddle(run: &RunHandle, gate: &Gate, count: &AtomicU64, end: &AtomicBool, mut random: Random) -> u64 {
    let names = ["ones", "gain", "gated", "end"];
    let mut orders = 0;
    while !end.load(Ordering::Relaxed) {
        let name = names[random.below(4) as usize];
        let result = match random.below(10) {
            0 => run.pause(),
            1 | 2 => run.resume(),
            3 => run.pause_operator(name),
            4 | 5 => run.resume_operator(name),
            6 => {
                gate.close();
                Ok(())
            }
            7 => {
                gate.open();
                Ok(())
            }
            8 => {
                let _ = run.status();
                Ok(())
            }
            _ => {
                // Some of these samples have gone by, others wait for a while.
                let near = count.load(Ordering::Relaxed) * SAMPLES as u64 + random.below(5000);
                let sample = (random.below(2) == 0).then_some(near);
                run.set("gain", "gain", random.below(9) as f64, sample)
            }
        };
        match result {
            Ok(()) | Err(OrderError::Refused(_)) => {}
            Err(error) => panic!("{error}"),
        }
        orders += 1;
        std::thread::sleep(Duration::from_micros(random.below(300)));
    }
    orders
}

/// Memory in use, in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

fn stress(name: &str, options: &Options, time: Duration) {
    let (count, end) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let gate = Gate::new(true);
    let mut graph = Graph::new("anyhow");
    let ones = graph.add("ones", Ones::new(SAMPLES));
    let gain = graph.add("gain", InPlace::new(Gain(1.0)));
    let gated = graph.map("gated", |chunk: Chunk<f32>| chunk);
    let last = graph.add("end", End(Input::default(), 0, Arc::clone(&count)));
    graph.connect(ones, |o| &o.out, gain, |g| &g.input);
    graph.connect(gain, |g| &g.out, gated, |g| &g.input);
    graph.connect(gated, |g| &g.out, last, |e| &e.0);
    graph.when(gated, When::gate(&gate));
    let run = graph.start(options).unwrap();
    let meddlers: Vec<_> = (1..4u64)
        .map(|seed| {
            let (run, gate) = (run.handle(), gate.clone());
            let (count, end) = (Arc::clone(&count), Arc::clone(&end));
            onbeat_os::thread::spawn("meddles", move || meddle(&run, &gate, &count, &end, Random(seed)))
                .unwrap()
        })
        .collect();
    let begin = Instant::now();
    let mut early = None;
    while begin.elapsed() < time {
        std::thread::sleep(time / 20);
        if begin.elapsed() > time / 4 {
            early.get_or_insert_with(resident);
        }
        assert!(!run.is_finished(), "{name}: it ended without a stop");
    }
    end.store(true, Ordering::Relaxed);
    let orders: u64 = meddlers.into_iter().map(|meddler| meddler.join().unwrap()).sum();
    assert!(orders > 0, "{name}");
    // Now that nobody meddles, it goes on.
    run.resume().unwrap();
    gate.open();
    let before = count.load(Ordering::Relaxed);
    while count.load(Ordering::Relaxed) < before + 100 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let grown = resident().saturating_sub(early.unwrap_or(0));
    run.stop();
    let record = run.wait().unwrap();
    assert!(record.changes_total > 0, "{name}");
    for edge in &record.edges {
        assert_eq!((edge.sent, edge.dropped, edge.unread), (edge.received, 0, 0), "{name}: {edge:?}");
    }
    assert_eq!(record.edges[2].received, count.load(Ordering::Relaxed), "{name}");
    assert!(grown < 4 << 20, "{name}: {grown} bytes more after {orders} orders");
}

#[test]
fn nothing_is_lost_whatever_somebody_does() {
    let seconds = std::env::var("ONBEAT_STRESS_SECONDS").map_or(2.0, |text| text.parse().unwrap());
    watched(60 + 2 * seconds as u64, move || {
        let ways: Vec<_> =
            ways().into_iter().filter(|(_, options)| options.clock == ClockKind::Real).collect();
        for (name, options) in &ways {
            stress(name, options, Duration::from_secs_f64(seconds / ways.len() as f64));
        }
    });
}
