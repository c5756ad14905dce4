//! Operators without a state that write other chunks run with their neighbours, with the same results as
//! single steps.

use crate::watchdog::watched;
use onbeat_queue::sync::atomic::{AtomicBool, Ordering};
use onbeat_runtime::{
    Change, Chunk, Context, Error, Graph, InPlace, Info, Inline, Input, Kernel, Map, Operator, Options,
    Output, Ports, Progress, Sample, Scheduler, Shortcut, Step, Stream, Tag, Value, tried,
};
use std::sync::{Arc, Mutex};

const SAMPLES: usize = 16;

/// Number of chunks, and number of those that come before the source waits.
const CHUNKS: u64 = 600;
const EARLY: u64 = 100;

/// Numbers its samples. Every third chunk is not a whole one, and every second has all that a head has room
/// for.
struct Source {
    out: Output<Chunk<f64>>,
    chunks: u64,
    samples: u64,
    goes_on: Arc<AtomicBool>,
    by_hand: bool,
}

impl Source {
    fn fill_with(&mut self, samples: &mut [f64], info: &mut Info) {
        for sample in samples {
            *sample = self.samples as f64;
            self.samples += 1;
        }
        info.rate_hz = 48_000.0;
        if self.chunks.is_multiple_of(2) {
            (info.start, info.shape) = (7 * self.chunks, [1, 2, 3]);
            let value = Value::Int(self.chunks as i64);
            info.tags.push(Tag { offset: 0, key: "n".into(), value });
        }
        self.chunks += 1;
    }

    fn waits(&self) -> bool {
        self.chunks == EARLY && !self.goes_on.load(Ordering::Relaxed)
    }
}

impl Operator for Source {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.chunks == CHUNKS {
            return Ok(Step::Done);
        }
        if self.waits() {
            return Ok(cx.until(cx.now_ns() + 100_000));
        }
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        if self.chunks.is_multiple_of(3) {
            chunk.truncate(1 + self.chunks as usize % SAMPLES);
        }
        if self.chunks % 150 == 12 {
            // Its tag is on the sample that comes next.
            chunk.truncate(0);
        }
        let (samples, info) = chunk.parts().expect("it is new");
        self.fill_with(samples, info);
        self.out.push(cx, chunk)?;
        Ok(Step::Again)
    }
    fn inline(&mut self) -> Option<&mut dyn Inline> {
        self.by_hand.then_some(self)
    }
}

impl Inline for Source {
    fn shortcut(&self) -> Shortcut {
        Shortcut::Fill(self.out.chunks())
    }
    fn fill(&mut self, _: &mut Context, samples: &mut [u8], info: &mut Info) -> bool {
        let is_plain = self.chunks < CHUNKS && !self.waits() && !self.chunks.is_multiple_of(3);
        if is_plain {
            self.fill_with(f64::samples_mut(samples), info);
        }
        is_plain
    }
}

/// Adds `x`.
#[derive(Clone)]
struct Add {
    x: f64,
    has_state: bool,
}

fn change(value: &Value, add: &Add) -> Result<Change<Add>, Error> {
    let x: f64 = value.read("x")?;
    tried(add, move |add| {
        add.x = x;
        Ok(())
    })
}

/// The same, in place.
struct InOne(Add);

impl Kernel for Add {
    type In = f64;
    type Out = f64;
    fn process(&mut self, input: &[f64], output: &mut [f64]) -> Progress {
        let pairs = input.iter().zip(output);
        let samples = pairs.map(|(input, output)| *output = input + self.x).count();
        Progress { consumed: samples, produced: samples }
    }
    fn replica(&self) -> Option<Self> {
        (!self.has_state).then(|| self.clone())
    }
    fn settable(&self) -> &'static [&'static str] {
        &["x"]
    }
    fn change(&self, _: &str, value: &Value) -> Result<Change<Self>, Error> {
        change(value, self)
    }
}

impl Map for InOne {
    type Sample = f64;
    fn map(&mut self, samples: &mut [f64]) {
        samples.iter_mut().for_each(|sample| *sample += self.0.x);
    }
}

/// What came, whatever chunks it came in.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    samples: Vec<f64>,
    /// With the number of the sample that each is on.
    tags: Vec<(usize, Value)>,
}

#[derive(Default)]
struct Sink {
    input: Input<Chunk<f64>>,
    seen: Arc<Mutex<Seen>>,
    by_hand: bool,
    chunks: u64,
}

impl Sink {
    fn see(&mut self, samples: &[f64], info: &Info) {
        let mut seen = self.seen.lock().unwrap();
        let begin = seen.samples.len();
        // An operator that writes another chunk numbers it again, and does not pass the shape on.
        assert_eq!((info.start, info.rate_hz, info.shape), (begin as u64, 48_000.0, [0; 3]));
        seen.tags.extend(info.tags.iter().map(|tag| (begin + tag.offset, tag.value.clone())));
        seen.samples.extend(samples);
        self.chunks += 1;
    }
}

impl Operator for Sink {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(chunk) = self.input.pop(cx) {
            self.see(&chunk, chunk.info());
        }
        Ok(Step::Wait)
    }
    fn inline(&mut self) -> Option<&mut dyn Inline> {
        self.by_hand.then_some(self)
    }
}

impl Inline for Sink {
    fn shortcut(&self) -> Shortcut {
        Shortcut::Drain(self.input.edge())
    }
    fn drain(&mut self, _: &mut Context, samples: &[u8], info: &Info) -> bool {
        // Now and then it wants a chunk of its own.
        let drains = !self.chunks.is_multiple_of(11);
        if drains {
            self.see(f64::samples(samples), info);
        }
        drains
    }
}

/// What came of a chain in which those with a letter `w` write other chunks and those with an `e` change
/// them, and how many were run as one step. With two workers the source and the first half of the chain are
/// on one of them, the rest on the other.
fn run(chain: &str, by_hand: bool, has_state: bool, workers: usize) -> (Seen, usize) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let goes_on = Arc::new(AtomicBool::new(false));
    let mut graph = Graph::new("chain");
    let out = Output::default();
    let source = Source { out, chunks: 0, samples: 0, goes_on: Arc::clone(&goes_on), by_hand };
    graph.add("source", source);
    let mut last = "source".to_string();
    for (at, letter) in chain.chars().enumerate() {
        let (name, add) = (format!("add{at}"), Add { x: 0.25, has_state });
        match letter {
            'w' => _ = graph.add(&name, Stream::new(add)),
            _ => _ = graph.add(&name, InPlace::new(InOne(add))),
        }
        graph.connect_names(&last, &name);
        last = name;
    }
    graph.add("sink", Sink { seen: Arc::clone(&seen), by_hand, ..Sink::default() });
    graph.connect_names(&last, "sink");
    let mut options = Options { quantum: SAMPLES * size_of::<f64>(), ..Options::default() };
    if workers > 1 {
        (options.scheduler, options.workers) = (Scheduler::Pinned, Some(workers));
    }
    let steps = graph.plan(&options).unwrap().passes.iter().map(Vec::len).max().unwrap_or(0);
    let run = graph.start(&options).unwrap();
    if let Some(at) = chain.find('w') {
        // In the middle of a chunk, by hand or not.
        for (sample, x) in [(2_405, 1000.25), (3_641, 0.25), (4_803, -3.0)] {
            run.set(&format!("add{at}"), "x", x, Some(sample)).unwrap();
        }
    }
    goes_on.store(true, Ordering::Relaxed);
    run.wait().unwrap();
    (std::mem::take(&mut *seen.lock().unwrap()), steps)
}

#[test]
fn chunks_carry_what_they_would_carry() {
    watched(120, || {
        for chain in ["w", "ww", "we", "ew", "wew", "wwww", "eweew"] {
            let (expected, alone) = run(chain, false, true, 1);
            assert!(alone < chain.len() + 2, "{chain}: with a state it is stepped on its own");
            assert_eq!(expected.tags.len() as u64, CHUNKS / 2, "{chain}");
            assert!(expected.samples[2_404] < 2_500.0 && expected.samples[2_405] > 3_405.0, "{chain}");
            for by_hand in [false, true] {
                let (seen, steps) = run(chain, by_hand, false, 1);
                assert_eq!(steps, chain.len() + 2, "{chain}");
                let (halves, _) = run(chain, by_hand, false, 2);
                assert_eq!(halves, expected, "{chain} on two workers, by hand: {by_hand}");
                let differs =
                    seen.samples.iter().zip(&expected.samples).position(|(seen, expected)| seen != expected);
                assert_eq!(differs, None, "{chain}, by hand: {by_hand}");
                let differs = seen.tags.iter().zip(&expected.tags).find(|(seen, expected)| seen != expected);
                assert_eq!(differs, None, "{chain}, by hand: {by_hand}");
                assert_eq!(seen, expected, "{chain}, by hand: {by_hand}");
            }
        }
    });
}

/// Holds this number of chunks at its end.
#[derive(Default)]
struct Keeper {
    input: Input<Chunk<f64>>,
    kept: Vec<Chunk<f64>>,
}

const KEPT: usize = 40;

impl Operator for Keeper {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input).holds(KEPT);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        self.kept.extend(self.input.pop(cx));
        Ok(if self.kept.len() == KEPT { Step::Done } else { Step::Wait })
    }
}

/// What goes out at the end may be of the store of the source, or of the first that writes another one.
#[test]
fn stores_are_large_enough_for_whatever_goes_out() {
    watched(60, || {
        for (chain, cores, first_quantum) in
            [("ww", 2, 128), ("www", 2, 128), ("eww", 2, 128), ("ww", 1, 64), ("www", 1, 64), ("wew", 1, 64)]
        {
            let mut graph = Graph::new("keeps");
            let goes_on = Arc::new(AtomicBool::new(true));
            graph.add(
                "source",
                Source { out: Output::default(), chunks: 0, samples: 0, goes_on, by_hand: true },
            );
            let mut last = "source".to_string();
            for (at, letter) in chain.chars().enumerate() {
                let (name, add) = (format!("add{at}"), Add { x: 0.25, has_state: false });
                match letter {
                    'w' => _ = graph.add(&name, Stream::new(add)),
                    _ => _ = graph.add(&name, InPlace::new(InOne(add))),
                }
                let quantum = if at == 0 { first_quantum } else { 128 };
                let _ = graph.connect_names(&last, &name).quantum(quantum).capacity(2);
                last = name;
            }
            graph.add("keeper", Keeper::default());
            let _ = graph.connect_names(&last, "keeper").quantum(128).capacity(2);
            let mut options = Options::default();
            if cores == 2 {
                // The source alone on its worker.
                (options.scheduler, options.workers) = (Scheduler::Pinned, Some(2));
                let light = chain.chars().enumerate().map(|(at, _)| (format!("add{at}"), 1.0));
                options.costs.extend(light.chain([("source".into(), 1e6), ("keeper".into(), 1.0)]));
                assert_eq!(graph.plan(&options).unwrap().workers[0].operators, ["source"]);
            }
            let record = graph.run(&options).unwrap_or_else(|error| panic!("{chain}: {error}"));
            assert_eq!(record.edges.last().map(|edge| edge.received), Some(KEPT as u64), "{chain}");
        }
    });
}

/// Says that it has no state, and keeps the last sample of each chunk.
#[derive(Clone)]
struct Keeps;

impl Kernel for Keeps {
    type In = f64;
    type Out = f64;
    fn process(&mut self, input: &[f64], output: &mut [f64]) -> Progress {
        let produced = input.len().min(output.len()) - 1;
        output[..produced].copy_from_slice(&input[..produced]);
        Progress { consumed: input.len(), produced }
    }
    fn replica(&self) -> Option<Self> {
        Some(self.clone())
    }
}

#[test]
fn who_gives_fewer_than_it_took_is_told() {
    watched(60, || {
        let mut graph = Graph::new("keeps");
        let goes_on = Arc::new(AtomicBool::new(true));
        graph.add("source", Source { out: Output::default(), chunks: 0, samples: 0, goes_on, by_hand: true });
        graph.add("keeps", Stream::new(Keeps));
        graph.add("sink", Sink { by_hand: true, ..Sink::default() });
        graph.connect_names("source", "keeps");
        graph.connect_names("keeps", "sink");
        let error = graph.run(&Options::default()).unwrap_err().to_string();
        assert!(error.contains("operator `keeps`") && error.contains("gives one for each"), "{error}");
    });
}
