//! Watching and steering a run from outside: from another thread, from a signal handler's thread, from a socket.

use super::asking::{Asking, PATIENCE, Whom};
use super::status::{self, RunStatus};
use crate::base::wording::near;
use crate::engine::control::Control;
use crate::engine::control::hangs::Hang;
use crate::engine::control::lateness::{LateMessage, Lateness};
use crate::engine::order::Order;
use crate::operator::when::{Event, Gate};
use crate::plan::Plan;
use crate::{Error, Value};
use onbeat_queue::sync::atomic::Ordering;
use onbeat_trace::record::{ClockKind, Obtained};
use onbeat_trace::{KernelEvent, Span};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a picture is waited for: an old one is better than none.
const GLANCE: Duration = Duration::from_millis(100);

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Time since the start, on the run's clock.
    pub elapsed_ns: u64,
    /// Source time of the latest message that was looked at.
    pub position_ns: u64,
    /// Source time at the end, where a source knows it.
    pub length_ns: Option<u64>,
}

/// Why an order to a run was not carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// No operator has this name.
    #[error("there is no operator `{name}`{hint}")]
    UnknownOperator {
        /// What was asked for.
        name: String,
        /// ": did you mean …?", or nothing.
        hint: String,
    },
    /// It cannot be done.
    #[error(transparent)]
    Refused(#[from] Error),
    /// There is nothing left to steer.
    #[error("the run has ended")]
    Over,
    /// The order stands, and will be carried out when the step returns that its worker is in.
    #[error("{what} has not answered within {} s: its worker is in a step that takes longer; the order stands", PATIENCE.as_secs())]
    Late {
        /// Who has not.
        what: String,
    },
}

/// Watches and steers a run, from any thread. It stays good after the end.
///
/// Orders are carried out by the workers, between two steps; a call comes back when that is done, or after 5 s.
///
/// ```
/// # use onbeat_runtime::{Activity, Graph, Options};
/// let mut graph = Graph::new("endless");
/// let ones = graph.source("ones", || Some(1u8));
/// let end = graph.sink("end", |_: u8| ());
/// graph.connect(ones, |s| &s.out, end, |e| &e.input);
/// let run = graph.start(&Options::default())?;
/// let handle = run.handle();
/// handle.pause_operator("ones")?;
/// assert_eq!(handle.status().operators[0].state, Activity::Paused);
/// handle.resume()?;
/// handle.stop();
/// run.wait()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct RunHandle {
    control: Arc<Control>,
    plan: Arc<Plan>,
    named: Arc<Named>,
}

/// What has a name in a run's conditions, and what there is from its start on.
#[derive(Debug)]
pub(super) struct Named {
    pub gates: BTreeMap<String, Gate>,
    pub events: BTreeMap<String, Event>,
    /// What was asked of the machine, and what it gave.
    pub obtained: Vec<Obtained>,
}

impl RunHandle {
    pub(super) fn new(control: Arc<Control>, plan: Arc<Plan>, named: Named) -> Self {
        RunHandle { control, plan, named: Arc::new(named) }
    }

    /// Name of the pipeline.
    pub(crate) fn name(&self) -> &str {
        &self.plan.name
    }

    /// Whether no operator is stepped any more.
    pub(crate) fn is_over(&self) -> bool {
        self.control.board.is_closed()
    }

    /// Asks the sources to end. What is under way is worked off, files are finished, the record is made. Whatever is paused
    /// goes on for that.
    pub fn stop(&self) {
        self.control.request_stop();
    }

    /// When it began, on its clock; `None` before that.
    pub fn start_ns(&self) -> Option<u64> {
        self.control.start_ns.get().copied()
    }

    /// How far the run is. Takes a few loads.
    pub fn progress(&self) -> Position {
        let start_ns = self.control.start_ns.get().copied().unwrap_or(0);
        let length_ns = self.control.length_ns.load(Ordering::Relaxed);
        Position {
            elapsed_ns: self.control.now_ns.load(Ordering::Relaxed).saturating_sub(start_ns),
            position_ns: self.control.position_ns.load(Ordering::Relaxed),
            length_ns: (length_ns > 0).then_some(length_ns),
        }
    }

    /// What everything does at the moment. Every worker is asked, and one that sleeps is woken for it. Where one does not
    /// answer within 100 ms, because a step takes that long, its operators are shown as they were when it did.
    pub fn status(&self) -> RunStatus {
        self.answers(GLANCE);
        status::status(&self.plan, &self.control, &self.named, self.progress())
    }

    /// Whether the engine makes progress: every worker is asked, those that sleep are woken for it, and all of them answer between
    /// two steps within that time. True before the first step and after the last one, when nobody is to answer.
    ///
    /// ```
    /// # use onbeat_runtime::{Graph, Options};
    /// # use std::time::Duration;
    /// # let mut graph = Graph::new("endless");
    /// # let ones = graph.source("ones", || Some(1u8));
    /// # let end = graph.sink("end", |_: u8| ());
    /// # graph.connect(ones, |s| &s.out, end, |e| &e.input);
    /// let run = graph.start(&Options::default())?;
    /// assert!(run.answers(Duration::from_secs(10)));
    /// # run.stop();
    /// # run.wait()?;
    /// # Ok::<(), onbeat_runtime::RunError>(())
    /// ```
    pub fn answers(&self, within: Duration) -> bool {
        let picture = self.control.board.request();
        self.control.team.wake_all();
        let deadline = Instant::now() + within;
        let parts = self.plan.parts.len();
        let all_have = || (0..parts).all(|part| self.control.board.has_answered(part, picture));
        while self.control.start_ns.get().is_some() && !all_have() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        true
    }

    /// Ends one operator: its outputs close, and what follows works off what it has sent. What comes to it from now on is
    /// not read any more, and those that sent to it alone end as well. It is told so at the end of the run, with all others.
    ///
    /// # Errors
    /// See [`OrderError`].
    pub fn stop_operator(&self, name: &str) -> Result<(), OrderError> {
        self.ask(name, Order::Finish)?.wait()
    }

    /// Pauses all sources. What is under way is worked off, and then the run stands still, until
    /// [`resume`](Self::resume) or [`stop`](Self::stop).
    ///
    /// The time of a pause does not count: a source with a clock does not catch up with what it has left out but goes on
    /// where it was, all of its due times later by the length of the pause; and so does the end of a run with a duration.
    /// Under the manual clock a pause takes no time at all.
    ///
    /// # Errors
    /// See [`OrderError`].
    pub fn pause(&self) -> Result<(), OrderError> {
        self.ask_all(true).wait()
    }

    /// Lets everything go on that is paused.
    ///
    /// # Errors
    /// See [`OrderError`].
    pub fn resume(&self) -> Result<(), OrderError> {
        self.ask_all(false).wait()
    }

    /// Pauses one operator: it is not stepped any more, what comes to it waits, and its alarms stand still. A source among
    /// them does not catch up later, as with [`pause`](Self::pause); but the end of a run with a duration does not move.
    ///
    /// # Errors
    /// See [`OrderError`].
    pub fn pause_operator(&self, name: &str) -> Result<(), OrderError> {
        self.ask(name, Order::Pause)?.wait()
    }

    /// Lets one operator go on.
    ///
    /// # Errors
    /// See [`OrderError`].
    pub fn resume_operator(&self, name: &str) -> Result<(), OrderError> {
        self.ask(name, Order::Resume)?.wait()
    }

    /// Gives a parameter of an operator another value while it runs: at once, which is before its next sample, or at just that
    /// `sample` of its input stream (counted from 0, as they come to it), however the stream is cut into chunks. It comes back
    /// when the value was found good; an operator says itself which of its parameters can be changed.
    ///
    /// ```
    /// # use onbeat_runtime::{Change, Chunk, Error, Graph, InPlace, Kernel, Map, Options, Value, tried};
    /// # #[derive(Clone)]
    /// # struct Gain(f32);
    /// # impl Map for Gain {
    /// #     type Sample = f32;
    /// #     fn map(&mut self, samples: &mut [f32]) { samples.iter_mut().for_each(|x| *x *= self.0); }
    /// #     fn settable(&self) -> &'static [&'static str] { &["gain"] }
    /// #     fn change(&self, name: &str, value: &Value) -> Result<Change<Self>, Error> {
    /// #         let gain = value.read(name)?;
    /// #         tried(self, move |it| { it.0 = gain; Ok(()) })
    /// #     }
    /// # }
    /// # struct Zeros(onbeat_runtime::Output<Chunk<f32>>);
    /// # impl onbeat_runtime::Operator for Zeros {
    /// #     fn ports(&mut self, p: &mut onbeat_runtime::Ports) { p.output("out", &mut self.0); }
    /// #     fn step(&mut self, cx: &mut onbeat_runtime::Context) -> Result<onbeat_runtime::Step, Error> {
    /// #         if let Some(chunk) = self.0.chunk(cx) { self.0.push(cx, chunk)?; }
    /// #         Ok(onbeat_runtime::Step::Again)
    /// #     }
    /// # }
    /// let mut graph = Graph::new("gain");
    /// let zeros = graph.add("zeros", Zeros(Default::default()));
    /// let gain = graph.add("gain", InPlace::new(Gain(1.0)));
    /// let end = graph.sink("end", |_: Chunk<f32>| ());
    /// graph.connect(zeros, |s| &s.0, gain, |g| &g.input);
    /// graph.connect(gain, |g| &g.out, end, |e| &e.input);
    /// let run = graph.start(&Options::default())?;
    /// run.set("gain", "gain", 0.5, None)?;
    /// run.set("gain", "gain", 2.0, Some(1_000_000_000_000))?;
    /// let error = run.set("gain", "frequency", 1, None).unwrap_err().to_string();
    /// assert_eq!(error, "operator `gain` has no parameter `frequency` that can be changed while it runs (it has `gain`)");
    /// run.stop();
    /// let record = run.wait()?;
    /// assert!(record.notes[0].contains("1 change of a parameter waited for samples that did not come"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`OrderError`].
    pub fn set(
        &self,
        operator: &str,
        parameter: &str,
        value: impl Into<Value>,
        sample: Option<u64>,
    ) -> Result<(), OrderError> {
        let (name, value) = (parameter.to_string(), value.into());
        let order = |operator| Order::Set { operator, name: name.clone(), value: value.clone(), sample };
        self.ask(operator, order)?.wait()
    }

    /// Operators whose code has not returned for longer than [`Options::watchdog_ns`](crate::Options::watchdog_ns).
    pub fn hangs(&self) -> Vec<Hang> {
        self.control.hangs.current().into_iter().map(|(_, hang)| hang).collect()
    }

    /// Has `listener` called for each operator that is found to hang from now on, in place of the one before. It is called on the
    /// thread that looks for them.
    ///
    /// ```
    /// # use onbeat_runtime::{Graph, OnHang, Options};
    /// # use std::sync::mpsc;
    /// let (never, wait) = mpsc::channel::<()>();
    /// let (tell, told) = mpsc::channel();
    /// let mut graph = Graph::new("hangs");
    /// graph.source("camera", move || { let _ = wait.recv(); Some(1u8) });
    /// graph.sink("end", |_: u8| ());
    /// graph.connect_names("camera", "end");
    /// let options = Options { watchdog_ns: Some(50_000_000), on_hang: OnHang::Stop, ..Options::default() };
    /// let run = graph.start(&options)?;
    /// run.on_hang(move |hang| tell.send(hang.operator.clone()).unwrap());
    /// assert!(run.wait().unwrap_err().to_string().starts_with("operator `camera`: its step has not returned for"));
    /// assert_eq!(told.recv().unwrap(), "camera");
    /// # drop(never);
    /// # Ok::<(), onbeat_runtime::RunError>(())
    /// ```
    pub fn on_hang(&self, listener: impl Fn(&Hang) + Send + 'static) {
        self.control.hangs.listen(listener);
    }

    /// When the first step was made, in nanoseconds on `CLOCK_MONOTONIC`; `None` before, and where the run goes by another clock.
    pub fn started_ns(&self) -> Option<u64> {
        let options = &self.plan.options;
        let is_real = options.clock == ClockKind::Real && options.scale == 1.0;
        self.control.start_ns.get().copied().filter(|_| is_real)
    }

    /// What was late so far, and why. Empty where that is not looked for ([`Options::explain`](crate::Options::explain)).
    pub fn lateness(&self) -> Lateness {
        self.control.misses.so_far()
    }

    /// Has `listener` called with each message that was late, as soon as it is known why: some 25 ms after it ended, on a thread of
    /// the run's own, `onbeat-explain`. It replaces the one before. Nobody is called where nothing is explained.
    pub fn on_late(&self, listener: impl FnMut(&LateMessage) + Send + 'static) {
        self.control.misses.listen(listener);
    }

    /// Has `listener` called with all steps that were recorded and all that the kernel did on the workers' cores since the call
    /// before, some 50 times per second, on the same thread. Numbers of operators, workers and edges are their places in the
    /// [`Plan`]. It replaces the one before.
    pub fn on_flight(&self, listener: impl FnMut(&[Span], &[KernelEvent]) + Send + 'static) {
        self.control.misses.listen_to_flight(listener);
    }

    /// The gate of this name, for an operator that has it in its conditions.
    pub fn gate(&self, name: &str) -> Option<&Gate> {
        self.named.gates.get(name)
    }

    /// The gates that have a name, in the order of their names.
    pub fn gates(&self) -> impl Iterator<Item = (&str, &Gate)> {
        self.named.gates.iter().map(|(name, gate)| (name.as_str(), gate))
    }

    /// The event of this name.
    pub fn event(&self, name: &str) -> Option<&Event> {
        self.named.events.get(name)
    }

    /// The events that have a name, in the order of their names.
    pub fn events(&self) -> impl Iterator<Item = (&str, &Event)> {
        self.named.events.iter().map(|(name, event)| (name.as_str(), event))
    }

    /// Gives an order to the worker of an operator, and does not wait.
    pub(crate) fn ask(&self, name: &str, order: impl Fn(u32) -> Order) -> Result<Asking, OrderError> {
        let names = || self.plan.operators.iter().map(|operator| operator.name.as_str());
        let Some(number) = names().position(|known| known == name) else {
            return Err(OrderError::UnknownOperator { name: name.to_string(), hint: near(name, names()) });
        };
        let mut asking = Asking::new(&self.control, &self.plan, Whom::Operator(number));
        // One that is replicated is there several times, and its copies wait for each other.
        let _held = self.control.team.hold();
        for (number, _) in names().enumerate().filter(|&(_, known)| known == name) {
            let part = self.plan.operators[number].part;
            // Parts number their operators in the plan's order.
            let here = self.plan.operators[..number].iter().filter(|other| other.part == part).count();
            asking.send(part, order(here as u32));
        }
        Ok(asking)
    }

    /// Has all sources pause, or everything go on, and does not wait.
    pub(crate) fn ask_all(&self, paused: bool) -> Asking {
        let mut asking = Asking::new(&self.control, &self.plan, Whom::All { paused });
        let _held = self.control.team.hold();
        for part in 0..self.plan.parts.len() {
            asking.send(part, if paused { Order::PauseAll } else { Order::ResumeAll });
        }
        asking
    }
}
