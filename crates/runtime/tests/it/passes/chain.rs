//! The chain: a source and a sink that do what a script says, and operators that add in between.

use onbeat_runtime::{
    Chunk, Context, Error, Graph, InPlace, Info, Inline, Input, Kernel, Map, OnError, Operator, Output,
    Ports, Progress, Sample, Shortcut, Step, Stream,
};
use std::sync::{Arc, Mutex};

pub const SAMPLES: usize = 16;

/// What a step of the source does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    Sends,
    /// In one step if there is room for both.
    SendsTwo,
    /// Says that it goes on, and sends nothing.
    Idles,
    /// Sends, and asks for the next step a microsecond later.
    SendsAndRests,
    Rests,
    /// Sends its last one.
    SendsAndEnds,
    Ends,
    Fails,
    FailsBehind,
    Panics,
}

/// What a step of the sink does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    One,
    /// Leaves it lying.
    None,
    Two,
    /// And wants another step, message or not.
    OneAndMore,
    OneAndRests,
    Last,
    Fails,
    Panics,
    /// With the message in hand.
    PanicsBehind,
}

pub struct Source {
    pub out: Output<Chunk<f64>>,
    pub script: Vec<Does>,
    pub at: usize,
    pub sent: u64,
    /// The first of two is sent.
    pub is_half: bool,
    /// Its messages have due times, so each of them is followed.
    pub is_due: bool,
    /// It can fill chunks, where it sends one and goes on.
    pub by_hand: bool,
}

impl Source {
    fn mark(&mut self, cx: &mut Context, with_key: bool) {
        cx.set_time(self.sent, self.is_due.then_some(cx.now_ns()));
        if with_key || self.sent.is_multiple_of(5) {
            cx.set_key("n", self.sent as i64);
        }
        self.sent += 1;
    }

    fn send(&mut self, cx: &mut Context, with_key: bool) -> Result<bool, Error> {
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(false) };
        chunk.truncate(SAMPLES);
        chunk.edit_unique().expect("it is new").fill(self.sent as f64);
        self.mark(cx, with_key);
        self.out.push(cx, chunk)?;
        Ok(true)
    }
}

impl Operator for Source {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(&does) = self.script.get(self.at) else { return Ok(Step::Done) };
        let soon_ns = cx.now_ns() + 1_000;
        let sends = !matches!(does, Does::Idles | Does::Rests | Does::Ends | Does::Fails | Does::Panics);
        if sends && !self.send(cx, does == Does::SendsTwo)? {
            return Ok(Step::Wait);
        }
        if does == Does::SendsTwo && !self.is_half && (self.out.room(cx) == 0 || !self.send(cx, true)?) {
            self.is_half = true;
            return Ok(Step::Again);
        }
        self.is_half = false;
        self.at += 1;
        match does {
            Does::Sends | Does::SendsTwo | Does::Idles => Ok(Step::Again),
            Does::SendsAndRests | Does::Rests => Ok(cx.until(soon_ns)),
            Does::SendsAndEnds | Does::Ends => Ok(Step::Done),
            Does::Fails | Does::FailsBehind => Err(Error::new("the source has had enough")),
            Does::Panics => panic!("the source fell over"),
        }
    }
    fn inline(&mut self) -> Option<&mut dyn Inline> {
        self.by_hand.then_some(self)
    }
    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        Ok(())
    }
}

impl Inline for Source {
    fn shortcut(&self) -> Shortcut {
        Shortcut::Fill(self.out.chunks())
    }
    fn fill(&mut self, cx: &mut Context, samples: &mut [u8], _: &mut Info) -> bool {
        match self.script.get(self.at) {
            Some(Does::Sends) if !self.is_half => {
                f64::samples_mut(samples).fill(self.sent as f64);
                self.at += 1;
                self.mark(cx, false);
                true
            }
            Some(Does::Panics) => {
                self.at += 1;
                panic!("the source fell over")
            }
            _ => false,
        }
    }
}

pub type Taken = Arc<Mutex<Vec<(u64, Option<i64>, f64)>>>;

pub struct Sink {
    pub input: Input<Chunk<f64>>,
    pub script: Vec<Takes>,
    pub at: usize,
    pub taken: Taken,
    /// It can look at chunks, where it takes one and waits for the next.
    pub by_hand: bool,
}

impl Sink {
    fn take(&mut self, cx: &mut Context) {
        if let Some(chunk) = self.input.pop(cx) {
            self.look(cx, &chunk);
        }
    }

    fn look(&mut self, cx: &Context, chunk: &[f64]) {
        assert!(chunk.iter().all(|sample| *sample == chunk[0]));
        let key = cx.key("n").map(|n| n.to_string().parse().unwrap());
        self.taken.lock().unwrap().push((cx.stamp().time_ns, key, chunk[0]));
    }
}

impl Operator for Sink {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input).holds(2);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.input.is_empty(cx) {
            return Ok(Step::Wait);
        }
        let takes = self.script.get(self.at).copied().unwrap_or(Takes::One);
        self.at += 1;
        match takes {
            Takes::None => return Ok(Step::Wait),
            Takes::Fails => return Err(Error::new("the sink is full")),
            Takes::Panics => panic!("the sink fell over"),
            Takes::Two => self.take(cx),
            _ => {}
        }
        self.take(cx);
        let soon_ns = cx.now_ns() + 700;
        Ok(match takes {
            Takes::OneAndMore => Step::Again,
            Takes::OneAndRests => cx.until(soon_ns),
            Takes::Last => Step::Done,
            Takes::PanicsBehind => panic!("the sink fell over"),
            _ => Step::Wait,
        })
    }
    fn inline(&mut self) -> Option<&mut dyn Inline> {
        self.by_hand.then_some(self)
    }
    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        Ok(())
    }
}

impl Inline for Sink {
    fn shortcut(&self) -> Shortcut {
        Shortcut::Drain(self.input.edge())
    }
    fn drain(&mut self, cx: &mut Context, samples: &[u8], _: &Info) -> bool {
        let takes = self.script.get(self.at).copied().unwrap_or(Takes::One);
        let drains = matches!(takes, Takes::One | Takes::PanicsBehind);
        if drains {
            self.at += 1;
            self.look(cx, f64::samples(samples));
        }
        assert!(takes != Takes::PanicsBehind, "the sink fell over");
        drains
    }
}

/// Adds a quarter, and panics at the message with this number.
#[derive(Clone)]
pub struct Add(Option<u64>);

impl Add {
    fn add(&self, samples: &mut [f64]) {
        assert!(self.0.is_none_or(|at| samples[0].floor() as u64 != at), "not this one");
        samples.iter_mut().for_each(|sample| *sample += 0.25);
    }
}

impl Map for Add {
    type Sample = f64;
    fn map(&mut self, samples: &mut [f64]) {
        self.add(samples);
    }
}

/// The same, to other samples.
#[derive(Clone)]
pub struct AddAfresh(Add);

impl Kernel for AddAfresh {
    type In = f64;
    type Out = f64;
    fn process(&mut self, input: &[f64], output: &mut [f64]) -> Progress {
        let samples = input.len().min(output.len());
        let output = &mut output[..samples];
        output.copy_from_slice(&input[..samples]);
        if samples > 0 {
            self.0.add(output);
        }
        Progress { consumed: samples, produced: samples }
    }
    fn replica(&self) -> Option<Self> {
        Some(self.clone())
    }
}

/// The same operator without a shortcut, stepped on its own.
pub struct Alone {
    pub input: Input<Chunk<f64>>,
    pub out: Output<Chunk<f64>>,
    pub add: Add,
}

impl Operator for Alone {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(mut chunk) = self.input.pop(cx) {
            self.add.add(chunk.edit(cx)?);
            self.out.push(cx, chunk)?;
        }
        Ok(Step::Wait)
    }
    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        Ok(())
    }
}

#[derive(Debug, Clone)]
pub struct Case {
    pub source: Vec<Does>,
    pub sink: Vec<Takes>,
    /// By operator that adds: where it panics.
    pub adds: Vec<Option<u64>>,
    /// Those of them that write other chunks, by bit.
    pub afresh: u8,
    pub capacities: Vec<usize>,
    /// By operator, and what is done when it fails.
    pub on_error: Vec<OnError>,
    /// Another source and sink on the same worker.
    pub has_company: bool,
    pub has_path: bool,
    /// Source and sink can do with chunks that they neither push nor pop.
    pub by_hand: (bool, bool),
    /// After which the sources are told to end.
    pub duration_ns: Option<u64>,
}

pub fn graph(case: &Case, in_one_step: bool) -> (Graph, Taken) {
    let mut graph = Graph::new("chain");
    let taken = Taken::default();
    if case.has_company {
        let script = vec![Does::Sends; 20];
        let out = Output::default();
        let (at, sent, is_half, is_due, by_hand) = (0, 0, false, false, false);
        graph.add("other", Source { out, script, at, sent, is_half, is_due, by_hand });
        let (input, taken) = (Input::default(), Taken::default());
        graph.add("others", Sink { input, script: Vec::new(), at, taken, by_hand });
        graph.connect_names("other.out", "others.in");
    }
    let on_error = |at: usize| case.on_error.get(at).copied().unwrap_or_default();
    let mut names = vec!["source".to_string()];
    let (script, is_due) = (case.source.clone(), case.has_path);
    let (fills, drains) = case.by_hand;
    let out = Output::default();
    let source = Source { out, script, at: 0, sent: 0, is_half: false, is_due, by_hand: fills };
    let source = graph.add("source", source);
    graph.on_error(source, on_error(0));
    for (at, panics_at) in case.adds.iter().enumerate() {
        let (name, add) = (format!("add{at}"), Add(*panics_at));
        if in_one_step && case.afresh >> at & 1 != 0 {
            let add = graph.add(&name, Stream::new(AddAfresh(add)));
            graph.on_error(add, on_error(1 + at));
        } else if in_one_step {
            let add = graph.add(&name, InPlace::new(add));
            graph.on_error(add, on_error(1 + at));
        } else {
            let add = graph.add(&name, Alone { input: Input::default(), out: Output::default(), add });
            graph.on_error(add, on_error(1 + at));
        }
        names.push(name);
    }
    let script = case.sink.clone();
    let input = Input::default();
    let sink = Sink { input, script, at: 0, taken: Arc::clone(&taken), by_hand: drains };
    let sink = graph.add("sink", sink);
    graph.on_error(sink, on_error(1 + case.adds.len()));
    names.push("sink".to_string());
    // Messages that the sink does not take must not fill its edge: in front of a full edge a chain takes
    // nothing in, and single operators do.
    let left = case.sink.iter().filter(|takes| **takes == Takes::None).count();
    let last = case.adds.len();
    for (at, (pair, capacity)) in names.windows(2).zip(&case.capacities).enumerate() {
        let capacity = if at == last { capacity + left } else { *capacity };
        let _ = graph.connect_names(format!("{}.out", pair[0]), format!("{}.in", pair[1])).capacity(capacity);
    }
    if case.has_path {
        graph.path("source", "sink", None);
    }
    (graph, taken)
}
