//! Operators that fail, and runs that survive it.

mod hang;
mod isolate;
mod restart;
mod rows;

pub use crate::ways::ways;
use onbeat_runtime::{Context, Ending, Error, Graph, Handle, Input, Operator, Output, Ports, Restart, Step};
use std::sync::{Arc, Mutex};

/// How and when a [`Shaky`] fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fail {
    /// With an error, after it has taken its message.
    Taken,
    /// As a panic.
    Panic,
    /// After it has sent what it made.
    Sent,
    /// Before it has taken its message, which is not lost so.
    Before,
}

/// What has become of a [`Shaky`], in order.
pub type Told = Arc<Mutex<Vec<&'static str>>>;

/// Passes numbers on, and fails at some of them, each once.
pub struct Shaky {
    /// Numbers.
    pub input: Input<u64>,
    /// The same numbers.
    pub out: Output<u64>,
    how: Fail,
    at: Vec<u64>,
    /// Steps that come before the next number is looked at, for failures before it is taken.
    seen: u64,
    /// What has become of it.
    pub told: Told,
}

impl Shaky {
    /// It fails at these numbers; one that is there twice fails twice.
    pub fn new(how: Fail, at: &[u64]) -> Self {
        let (input, out) = Default::default();
        Shaky { input, out, how, at: at.to_vec(), seen: 0, told: Told::default() }
    }

    fn fail_at(&mut self, number: u64) -> bool {
        let place = self.at.iter().position(|&at| at == number);
        place.map(|place| self.at.remove(place)).is_some()
    }
}

impl Operator for Shaky {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }
    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.told.lock().unwrap().push("start");
        Ok(())
    }
    fn stop(&mut self, _: &mut Context, ending: Ending) -> Result<(), Error> {
        self.told.lock().unwrap().push(match ending {
            Ending::Ended => "ended",
            Ending::Stopped => "stopped",
            Ending::Failed => "failed",
        });
        Ok(())
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.how == Fail::Before && self.fail_at(self.seen) {
            return Err(Error::new("not yet"));
        }
        if let Some(number) = self.input.pop(cx) {
            self.seen += 1;
            if self.how == Fail::Sent {
                self.out.push(cx, number)?;
            }
            if self.how != Fail::Before && self.fail_at(number) {
                assert!(self.how != Fail::Panic, "cannot do {number}");
                return Err(Error::new(format!("will not do {number}")));
            }
            if self.how != Fail::Sent {
                self.out.push(cx, number)?;
            }
        }
        Ok(Step::Wait)
    }
}

/// What has come at the end.
pub type Came = Arc<Mutex<Vec<u64>>>;

/// numbers (0 to `count`) → shaky → end
pub fn line(count: u64, shaky: Shaky) -> (Graph, Handle<Shaky>, Came) {
    let came = Came::default();
    let mut graph = Graph::new("line");
    let mut next = 0..count;
    let numbers = graph.source("numbers", move || next.next());
    let shaky = graph.add("shaky", shaky);
    let list = Arc::clone(&came);
    let end = graph.sink("end", move |n: u64| list.lock().unwrap().push(n));
    graph.connect(numbers, |s| &s.out, shaky, |s| &s.input);
    graph.connect(shaky, |s| &s.out, end, |e| &e.input);
    (graph, shaky, came)
}

/// A restart that does not take long.
pub fn soon() -> Restart {
    Restart { delay_ns: 100_000, ..Restart::default() }
}
