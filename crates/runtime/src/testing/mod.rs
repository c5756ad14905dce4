//! Tests of one operator: feed it, run it, look at what it sent.
//!
//! A [`Trial`] puts an operator between [`Feed`]s and ends that keep what comes, and runs it in virtual time,
//! so that two runs give the same. What it did is a [`Seen`]: samples, tags, messages, notes, and what each
//! step returned.
//!
//! ```
//! use onbeat_runtime::testing::{Feed, Trial};
//! use onbeat_runtime::{InPlace, Map};
//!
//! struct Double;
//! impl Map for Double {
//!     type Sample = f32;
//!     fn map(&mut self, samples: &mut [f32]) {
//!         samples.iter_mut().for_each(|x| *x *= 2.0);
//!     }
//! }
//!
//! let input = Feed::samples([1.0f32, 2.0, 3.0]).rate(48e3).cut(&[2, 1]).tag(2, "here", 7);
//! let seen = Trial::new(InPlace::new(Double)).feed("in", input).run();
//! assert_eq!(seen.samples::<f32>("out"), [2.0, 4.0, 6.0]);
//! assert_eq!(seen.lengths("out"), [2, 1]);
//! assert_eq!(seen.tags("out"), [(2, "here".to_string(), 7.into())]);
//! ```
//!
//! What comes out of an operator must not depend on where chunks begin and end. [`cuts`] runs a trial with
//! many cuts of its input, quanta and capacities, and compares:
//!
//! ```
//! # use onbeat_runtime::testing::{Feed, Trial, cuts};
//! # use onbeat_runtime::{InPlace, Map};
//! # struct Double;
//! # impl Map for Double {
//! #     type Sample = f32;
//! #     fn map(&mut self, samples: &mut [f32]) { samples.iter_mut().for_each(|x| *x *= 2.0); }
//! # }
//! let seen = cuts(|| Trial::new(InPlace::new(Double)).feed("in", Feed::samples(vec![0.5f32; 5000])));
//! assert_eq!(seen.samples::<f32>("out"), vec![1.0; 5000]);
//! ```

mod address;
mod cuts;
mod feed;
mod keep;
mod seen;

pub use address::free_address;
pub use cuts::cuts;
pub use feed::Feed;
pub use seen::{Mark, Piece, Seen};

use crate::graph::kind::Registry;
use crate::operator::message::{Message, Value, type_label};
use crate::operator::ports::{Described, Ports};
use crate::operator::{Ending, Operator, Step};
use crate::{ClockKind, Context, Error, Graph, OnError, Options, RunError};
use keep::Keeper;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What the operator is called in its little graph.
const NAME: &str = "it";
/// Far above what a test of one operator takes, on a busy machine too.
const WATCHDOG: Duration = Duration::from_secs(120);

/// An operator under test, with its feeds.
///
/// For tests: a trial that fails panics, with the fault in its message.
///
/// ```
/// use onbeat_runtime::testing::{Feed, Trial};
/// use onbeat_runtime::{Context, Error, Input, Operator, Output, Ports, Step};
///
/// #[derive(Default)]
/// struct Half { input: Input<u64>, out: Output<u64> }
/// impl Operator for Half {
///     fn ports(&mut self, p: &mut Ports) {
///         p.input("in", &mut self.input);
///         p.output("out", &mut self.out);
///     }
///     fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
///         if let Some(n) = self.input.pop(cx) {
///             if n % 2 == 1 {
///                 return Err(Error::new(format!("{n} has no half")));
///             }
///             self.out.push(cx, n / 2)?;
///         }
///         Ok(Step::Wait)
///     }
/// }
///
/// let seen = Trial::new(Half::default()).feed("in", Feed::messages([2u64, 8])).run();
/// assert_eq!(seen.messages::<u64>("out"), [1, 4]);
///
/// let text = Trial::new(Half::default()).feed("in", Feed::messages([2u64, 3])).failure();
/// assert_eq!(text, "3 has no half");
/// ```
pub struct Trial {
    operator: Box<dyn Operator>,
    feeds: Vec<(String, Feed)>,
    watched: Vec<(String, Keeper)>,
    settings: Vec<Setting>,
    on_error: OnError,
    options: Options,
}

/// A parameter, its new value, and the sample from which on it has it.
type Setting = (String, Value, Option<u64>);

impl Trial {
    /// Tests this operator.
    pub fn new(operator: impl Operator) -> Self {
        Self::boxed(Box::new(operator))
    }

    /// Tests an operator whose type is not known here.
    pub fn boxed(operator: Box<dyn Operator>) -> Self {
        let options = Options { clock: ClockKind::Manual, ..Options::default() };
        let (feeds, watched, settings) = Default::default();
        Trial { operator, feeds, watched, settings, on_error: OnError::Stop, options }
    }

    /// Tests an operator of a kind, with parameters in TOML.
    ///
    /// # Panics
    /// When there is no such kind, or a parameter is wrong.
    pub fn kind(registry: &Registry, kind: &str, parameters: &str) -> Self {
        Self::boxed(registry.operator(kind, parameters).unwrap_or_else(|error| panic!("`{kind}`: {error}")))
    }

    /// What comes to an input. Another feed for the same input is another edge to it.
    pub fn feed(mut self, input: &str, feed: Feed) -> Self {
        self.feeds.push((input.to_string(), feed));
        self
    }

    /// Keeps messages of a type of one's own at an output. Numbers, text, and chunks of the usual samples are
    /// kept anyway.
    pub fn keep<M: Message + Debug>(mut self, output: &str) -> Self {
        self.watched.push((output.to_string(), Keeper::messages::<M>()));
        self
    }

    /// Gives a parameter another value, as [`RunHandle::set`](crate::RunHandle::set) does: from this sample
    /// on, or from the begin.
    pub fn set(mut self, parameter: &str, value: impl Into<Value>, sample: Option<u64>) -> Self {
        self.settings.push((parameter.to_string(), value.into(), sample));
        self
    }

    /// What becomes of the trial when the operator fails.
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.on_error = on_error;
        self
    }

    /// Most bytes of a chunk on edges that say nothing else.
    pub fn quantum(mut self, bytes: usize) -> Self {
        self.options.quantum = bytes;
        self
    }

    /// Messages that each edge holds.
    pub fn capacity(mut self, messages: usize) -> Self {
        self.options.capacity = messages;
        self
    }

    /// Stops it after this much virtual time, in nanoseconds: for sources without an end.
    pub fn stop_after(mut self, time_ns: u64) -> Self {
        self.options.duration_ns = Some(time_ns);
        self
    }

    /// Runs under these options: the real clock, another pace.
    pub fn options(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.options);
        self
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// When the operator fails, or when it cannot be run at all.
    pub fn run(self) -> Seen {
        self.try_run().unwrap_or_else(|text| panic!("the operator failed: {text}"))
    }

    /// Runs it, and gives the error with which it fails.
    ///
    /// # Panics
    /// When it does not fail.
    pub fn failure(self) -> String {
        match self.try_run() {
            Err(text) => text,
            Ok(seen) => panic!("the operator did not fail; it made {} steps", seen.steps().len()),
        }
    }

    /// Runs it to its end, or until it fails.
    ///
    /// # Errors
    /// What the operator said, and whatever else ends a run.
    ///
    /// # Panics
    /// When it does not end at all.
    pub fn try_run(mut self) -> Result<Seen, String> {
        let log = Arc::new(Mutex::new(Log::default()));
        let mut described = Described::default();
        self.operator.ports(&mut Ports::describe(&mut described));
        let mut graph = Graph::new("trial");
        for (number, (input, feed)) in self.feeds.into_iter().enumerate() {
            let name = format!("feed{number}");
            let quantum = feed.quantum_bytes();
            graph.add_boxed(&name, "Feed", feed.into_operator());
            let edge = graph.connect_names(format!("{name}.out"), format!("{NAME}.{input}"));
            if let Some(bytes) = quantum {
                let _ = edge.quantum(bytes);
            }
        }
        let mut outputs = Vec::new();
        for (number, port) in described.outputs.iter().enumerate() {
            let asked = self.watched.iter().position(|(output, _)| *output == port.name);
            let keeper = asked.map(|at| self.watched.swap_remove(at).1);
            let Some(keeper) = keeper.or_else(|| Keeper::known(port.message)) else {
                if !port.required {
                    continue;
                }
                let (name, label) = (&port.name, &port.label);
                panic!("the output `{name}` sends {label}: say `.keep::<{label}>(\"{name}\")` before `run`");
            };
            let name = format!("end{number}");
            let (operator, kept) = keeper.into_operator(Arc::clone(&log));
            graph.add_boxed(&name, "Keep", operator);
            graph.connect_names(format!("{NAME}.{}", port.name), format!("{name}.in"));
            outputs.push((port.name.clone(), kept));
        }
        if let Some((output, _)) = self.watched.first() {
            panic!("there is no output `{output}` to keep messages of");
        }
        let tested = Tested { operator: self.operator, settings: self.settings, log: Arc::clone(&log) };
        let number = graph.add_boxed(NAME, "tested", Box::new(tested));
        graph.on_error_of(number, self.on_error);
        let record = run(graph, &self.options)?;
        let log = std::mem::take(&mut *locked(&log));
        Ok(Seen::new(record, log, outputs))
    }
}

/// Runs a graph that must end within the watchdog's time.
fn run(graph: Graph, options: &Options) -> Result<onbeat_trace::Record, String> {
    let run = graph.start(options).map_err(|error| error.to_string())?;
    let begin = Instant::now();
    while !run.is_finished() {
        assert!(begin.elapsed() < WATCHDOG, "the operator hangs: after {WATCHDOG:?} it has not ended");
        std::thread::sleep(Duration::from_micros(50));
    }
    run.wait().map_err(|error| match error {
        RunError::Failed(record) => {
            let reason = &record.result.reason;
            reason.strip_prefix(&format!("operator `{NAME}`: ")).unwrap_or(reason).to_string()
        }
        other => other.to_string(),
    })
}

/// What the steps returned, and how it was told to stop.
#[derive(Default)]
struct Log {
    steps: Vec<Step>,
    /// Number of steps begun: the last one may still run.
    begun: usize,
    ending: Option<Ending>,
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that holds the lock can leave it half changed.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The operator, with a look at what it returns.
struct Tested {
    operator: Box<dyn Operator>,
    settings: Vec<Setting>,
    log: Arc<Mutex<Log>>,
}

impl Operator for Tested {
    fn ports(&mut self, p: &mut Ports) {
        self.operator.ports(p);
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.operator.start(cx)?;
        for (name, value, sample) in std::mem::take(&mut self.settings) {
            match sample {
                Some(sample) => self.operator.set_at(cx, &name, &value, sample)?,
                None => self.operator.set(cx, &name, &value)?,
            }
        }
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        locked(&self.log).begun += 1;
        let step = self.operator.step(cx)?;
        locked(&self.log).steps.push(step);
        Ok(step)
    }

    fn frame_behind(&self, frame: Option<[u32; 3]>) -> Result<Option<[u32; 3]>, Error> {
        self.operator.frame_behind(frame)
    }

    fn restart(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.operator.restart(cx)
    }

    fn restartable(&self) -> Result<(), Error> {
        self.operator.restartable()
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        locked(&self.log).ending = Some(ending);
        self.operator.stop(cx, ending)
    }
}

/// What an input or output is called that is not there.
fn unknown<'n>(what: &str, name: &str, known: impl Iterator<Item = &'n str>) -> String {
    let known: Vec<&str> = known.collect();
    format!("there is no {what} `{name}`: there are {known:?}")
}

/// The type of a message, for panics.
fn label<M: 'static>() -> String {
    type_label::<M>()
}
