//! A chain that several threads carry messages through, each of which knows what is to come.

use onbeat_queue::sync::atomic::{AtomicU64, Ordering};
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Graph, InPlace, Info, Inline, Input, Map, Numbers, Operator, Output,
    Ports, Sample, Shortcut, Step,
};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

/// What happens at which message, and to whom: the number of the operator, from the source on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mishap {
    None,
    /// The source changes its rate: the operator behind it does not take that.
    Rate {
        message: u64,
    },
    Panic {
        operator: u64,
        message: u64,
    },
    Stuck {
        operator: u64,
        message: u64,
    },
}

impl Mishap {
    /// It happens now, if it does.
    fn strike(self, operator: u64, message: u64, wait: Option<&Receiver<()>>) {
        assert!(self != (Mishap::Panic { operator, message }), "fell over at {message}");
        if self == (Mishap::Stuck { operator, message }) {
            let _ = wait.expect("somebody lets it go").recv();
        }
    }

    fn rate_hz(self, number: u64) -> f64 {
        if matches!(self, Mishap::Rate { message } if message == number) { 8e3 } else { 0.0 }
    }
}

/// State of a chain that the test observes.
#[derive(Default)]
pub struct Seen {
    /// Messages that came to the sink, and those of them that came over the edge.
    pub taken: AtomicU64,
    pub by_step: AtomicU64,
    /// Operators that were stopped.
    pub stopped: Mutex<Vec<(u64, Ending)>>,
}

pub struct Case {
    pub messages: u64,
    pub operators: u64,
    /// Turns of a loop in each operator, by operator.
    pub work: Vec<u64>,
    /// The same in the source.
    pub source_work: u64,
    /// Some messages have a key, for which memory is asked for.
    pub keys: bool,
    /// Each so-manieth message the source makes in its step, and the sink takes in its step; and has a due
    /// time.
    pub steps: u64,
    pub refuses: u64,
    pub due: u64,
    pub mishap: Mishap,
    pub wait: Option<Receiver<()>>,
}

impl Case {
    pub fn new(messages: u64, operators: u64) -> Self {
        let work = (0..operators).map(|operator| 150 + 40 * (operator % 3)).collect();
        let (steps, refuses, due) = (u64::MAX, u64::MAX, u64::MAX);
        Case {
            messages,
            operators,
            work,
            source_work: 0,
            keys: true,
            steps,
            refuses,
            due,
            mishap: Mishap::None,
            wait: None,
        }
    }
}

struct Source {
    out: Output<Chunk<u64>>,
    numbers: Numbers,
    messages: u64,
    work: u64,
    keys: bool,
    steps: u64,
    due: u64,
    mishap: Mishap,
    seen: Arc<Seen>,
}

impl Source {
    fn make(&mut self, cx: &mut Context, number: u64, (samples, info): (&mut [u64], &mut Info)) {
        samples.fill(number);
        if number % self.due == self.due - 1 {
            cx.set_time(number, Some(cx.now_ns()));
        }
        if self.keys && number.is_multiple_of(7) {
            cx.set_key("n", number as i64);
        }
        info.rate_hz = self.mishap.rate_hz(number);
        // The engine counts the messages as it does for any source that sends them one by one.
        assert_eq!(cx.stamp().sequence(), number, "the stamp has another number");
        self.numbers.used(cx);
        (0..self.work).for_each(|turn| {
            std::hint::black_box(turn);
        });
        self.mishap.strike(0, number, None);
    }
}

impl Operator for Source {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(number) = self.numbers.next() else { return Ok(Step::Done) };
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        self.make(cx, number, chunk.parts().expect("it is new"));
        self.out.push(cx, chunk)?;
        Ok(if number + 1 == self.messages { Step::Done } else { Step::Again })
    }
    fn inline(&mut self) -> Option<&mut dyn Inline> {
        Some(self)
    }
    fn stop(&mut self, _: &mut Context, ending: Ending) -> Result<(), Error> {
        self.seen.stopped.lock().unwrap_or_else(PoisonError::into_inner).push((0, ending));
        Ok(())
    }
    /// Never called in these tests; it says that the chain may be run by one thread.
    fn replica(&self) -> Option<Box<dyn Operator>> {
        Some(Box::new(Source {
            out: Output::default(),
            numbers: self.numbers.share(),
            messages: self.messages,
            work: self.work,
            keys: self.keys,
            steps: self.steps,
            due: self.due,
            mishap: self.mishap,
            seen: Arc::clone(&self.seen),
        }))
    }
}

impl Inline for Source {
    fn shortcut(&self) -> Shortcut {
        Shortcut::Fill(self.out.chunks())
    }
    fn fill(&mut self, cx: &mut Context, samples: &mut [u8], info: &mut Info) -> bool {
        let Some(number) = self.numbers.next_of_several() else { return false };
        if number % self.steps == self.steps - 1 || number + 1 == self.messages {
            return false;
        }
        self.make(cx, number, (u64::samples_mut(samples), info));
        true
    }
}

/// Adds what it has counted so far, and takes messages in order only.
struct Count {
    /// The operator's number, and that of its next message.
    number: u64,
    next: u64,
    work: u64,
    mishap: Mishap,
    wait: Option<Receiver<()>>,
}

impl Map for Count {
    type Sample = u64;
    fn map(&mut self, samples: &mut [u64]) {
        assert!(samples[0] == expected(self.next, self.number - 1), "{} comes to {}", samples[0], self.next);
        self.mishap.strike(self.number, self.next, self.wait.as_ref());
        samples.iter_mut().for_each(|sample| *sample += self.next << 32);
        self.next += 1;
        for turn in 0..self.work {
            std::hint::black_box(turn);
        }
    }
}

/// Value of a message after this number of operators.
fn expected(message: u64, operators: u64) -> u64 {
    message + operators * (message << 32)
}

struct Sink {
    input: Input<Chunk<u64>>,
    operators: u64,
    keys: bool,
    refuses: u64,
    mishap: Mishap,
    seen: Arc<Seen>,
}

impl Sink {
    fn look(&mut self, cx: &Context, samples: &[u64]) {
        let number = self.seen.taken.fetch_add(1, Ordering::Relaxed);
        assert!(samples.iter().all(|&sample| sample == expected(number, self.operators)), "not {number}");
        let key = cx.key("n").map(ToString::to_string);
        assert!(
            key == (self.keys && number.is_multiple_of(7)).then(|| number.to_string()),
            "{key:?} came with {number}"
        );
        self.mishap.strike(self.operators + 1, number, None);
    }
}

impl Operator for Sink {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(chunk) = self.input.pop(cx) {
            self.seen.by_step.fetch_add(1, Ordering::Relaxed);
            self.look(cx, &chunk);
        }
        Ok(Step::Wait)
    }
    fn inline(&mut self) -> Option<&mut dyn Inline> {
        Some(self)
    }
    fn stop(&mut self, _: &mut Context, ending: Ending) -> Result<(), Error> {
        self.seen.stopped.lock().unwrap_or_else(PoisonError::into_inner).push((self.operators + 1, ending));
        Ok(())
    }
    /// As that of the source.
    fn replica(&self) -> Option<Box<dyn Operator>> {
        Some(Box::new(Sink {
            input: Input::default(),
            operators: self.operators,
            keys: self.keys,
            refuses: self.refuses,
            mishap: self.mishap,
            seen: Arc::clone(&self.seen),
        }))
    }
}

impl Inline for Sink {
    fn shortcut(&self) -> Shortcut {
        Shortcut::Drain(self.input.edge())
    }
    fn drain(&mut self, cx: &mut Context, samples: &[u8], _: &Info) -> bool {
        if self.seen.taken.load(Ordering::Relaxed) % self.refuses == self.refuses - 1 {
            return false;
        }
        self.look(cx, u64::samples(samples));
        true
    }
}

/// source → count1 → … → sink
pub fn graph(case: Case) -> (Graph, Arc<Seen>) {
    let Case { messages, operators, work, source_work, keys, steps, refuses, due, mishap, mut wait } = case;
    let seen = Arc::new(Seen::default());
    let mut graph = Graph::new("chain");
    let numbers = Numbers::below(Some(messages));
    let (out, input) = (Output::default(), Input::default());
    graph.add(
        "source",
        Source {
            out,
            numbers,
            messages,
            work: source_work,
            keys,
            steps,
            due,
            mishap,
            seen: Arc::clone(&seen),
        },
    );
    let mut before = "source".to_string();
    for (number, work) in (1..=operators).zip(work) {
        let name = format!("count{number}");
        let wait = wait.take_if(|_| matches!(mishap, Mishap::Stuck { operator, .. } if operator == number));
        graph.add(&name, InPlace::new(Count { number, next: 0, work, mishap, wait }));
        let _ = graph.connect_names(&before, &name).quantum(512);
        before = name;
    }
    graph.add("sink", Sink { input, operators, keys, refuses, mishap, seen: Arc::clone(&seen) });
    let _ = graph.connect_names(&before, "sink").quantum(512);
    if due < u64::MAX {
        graph.path("source", "sink", None);
    }
    (graph, seen)
}
