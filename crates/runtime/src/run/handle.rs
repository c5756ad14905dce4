//! Watching and steering a run from outside: from another thread, a signal handler's thread, or a socket.

use super::pending_order::{OrderTarget, PATIENCE, PendingOrder};
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

/// Longest time to wait for a fresh snapshot. After it, an old one is shown.
const SNAPSHOT_WAIT: Duration = Duration::from_millis(100);

/// Progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Time since the start, on the run's clock, in nanoseconds.
    pub elapsed_ns: u64,
    /// Source time of the latest message that a worker reported, in nanoseconds.
    pub position_ns: u64,
    /// Source time at the end, in nanoseconds, if a source knows it.
    pub length_ns: Option<u64>,
}

/// Error of an order to a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// No operator has this name.
    #[error("there is no operator `{name}`{hint}")]
    UnknownOperator {
        /// Name in the order.
        name: String,
        /// ": did you mean …?", or empty.
        hint: String,
    },
    /// The operator refused the order.
    #[error(transparent)]
    Refused(#[from] Error),
    /// The run has ended.
    #[error("the run has ended")]
    Over,
    /// No answer came within 5 s. The order stands: it is carried out when the present step of its worker
    /// returns.
    #[error("{what} has not answered within {} s: its worker is in a step that takes longer; the order stands", PATIENCE.as_secs())]
    Late {
        /// Operator or part that has not answered.
        what: String,
    },
}

/// Handle to watch and steer a run, from any thread. It remains valid after the end.
///
/// Workers carry out orders between two steps. A call returns when the order is carried out, or after 5 s.
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
    fixtures: Arc<RunFixtures>,
}

/// Status that is fixed from the start on: gates and events by name, and the settings of the machine.
#[derive(Debug)]
pub(super) struct RunFixtures {
    pub gates: BTreeMap<String, Gate>,
    pub events: BTreeMap<String, Event>,
    /// Settings requested from the machine, and what was obtained.
    pub obtained: Vec<Obtained>,
}

impl RunHandle {
    pub(super) fn new(control: Arc<Control>, plan: Arc<Plan>, fixtures: RunFixtures) -> Self {
        RunHandle { control, plan, fixtures: Arc::new(fixtures) }
    }

    /// Name of the pipeline.
    pub(crate) fn name(&self) -> &str {
        &self.plan.name
    }

    /// Whether no operator is stepped any more.
    pub(crate) fn is_over(&self) -> bool {
        self.control.board.is_closed()
    }

    /// Asks the sources to end. Messages in flight are processed, files are finished, and the record is made.
    /// Paused operators continue for that.
    pub fn stop(&self) {
        self.control.request_stop();
    }

    /// Start of the run, in nanoseconds on its clock; `None` before the first step.
    pub fn start_ns(&self) -> Option<u64> {
        self.control.start_ns.get().copied()
    }

    /// Returns the progress of the run. Costs a few loads.
    pub fn progress(&self) -> Position {
        let start_ns = self.control.start_ns.get().copied().unwrap_or(0);
        let length_ns = self.control.length_ns.load(Ordering::Relaxed);
        Position {
            elapsed_ns: self.control.now_ns.load(Ordering::Relaxed).saturating_sub(start_ns),
            position_ns: self.control.position_ns.load(Ordering::Relaxed),
            length_ns: (length_ns > 0).then_some(length_ns),
        }
    }

    /// Returns the status of the run. Every worker is asked for it, and woken if it is parked. If a worker
    /// does not answer within 100 ms, because a step takes that long, its operators are shown as of its
    /// previous answer.
    pub fn status(&self) -> RunStatus {
        self.answers(SNAPSHOT_WAIT);
        status::status(&self.plan, &self.control, &self.fixtures, self.progress())
    }

    /// Whether the engine makes progress: every worker is asked, woken if it is parked, and answers between
    /// two steps within that time. Before the first step, the result is true at once. A worker that has made
    /// its last step counts as having answered.
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
        let snapshot = self.control.board.request();
        self.control.team.wake_all();
        let deadline = Instant::now() + within;
        let parts = self.plan.parts.len();
        let all_have = || (0..parts).all(|part| self.control.board.has_answered(part, snapshot));
        while self.control.start_ns.get().is_some() && !all_have() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        true
    }

    /// Ends one operator: its outputs close, and the operators after it process what it has sent. It reads no
    /// more messages, and producers that feed only it end as well. Its [`stop`](crate::Operator::stop) is
    /// called at the end of the run, as for all operators.
    ///
    /// # Errors
    /// See [`OrderError`].
    pub fn stop_operator(&self, name: &str) -> Result<(), OrderError> {
        self.ask(name, Order::Finish)?.wait()
    }

    /// Pauses all sources. Messages in flight are processed. Then the run stands still until
    /// [`resume`](Self::resume) or [`stop`](Self::stop).
    ///
    /// The time of a pause does not count. A source with a clock does not catch up: it continues where it
    /// was, with all due times later by the length of the pause. The end of a run with a duration moves by
    /// the same time. Under the manual clock a pause takes no time.
    ///
    /// # Errors
    /// See [`OrderError`].
    pub fn pause(&self) -> Result<(), OrderError> {
        self.ask_all(true).wait()
    }

    /// Resumes all paused operators.
    ///
    /// # Errors
    /// See [`OrderError`].
    pub fn resume(&self) -> Result<(), OrderError> {
        self.ask_all(false).wait()
    }

    /// Pauses one operator: it is not stepped, its messages wait, and its alarms stand still. A source does
    /// not catch up later, as with [`pause`](Self::pause), but the end of a run with a duration does not
    /// move.
    ///
    /// # Errors
    /// See [`OrderError`].
    pub fn pause_operator(&self, name: &str) -> Result<(), OrderError> {
        self.ask(name, Order::Pause)?.wait()
    }

    /// Resumes one operator.
    ///
    /// # Errors
    /// See [`OrderError`].
    pub fn resume_operator(&self, name: &str) -> Result<(), OrderError> {
        self.ask(name, Order::Resume)?.wait()
    }

    /// Sets a parameter of an operator while it runs. Without `sample` the value applies from the operator's
    /// next sample on. With `sample`, a number in its input stream from 0, it applies at exactly that sample,
    /// for any cut into chunks. The call returns when the operator has accepted the value. Each operator says
    /// which of its parameters can be changed.
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
    /// assert!(error.starts_with("operator `gain` has no parameter `frequency` that can be changed"));
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

    /// Operators whose code has not returned for longer than
    /// [`Options::watchdog_ns`](crate::Options::watchdog_ns).
    pub fn hangs(&self) -> Vec<Hang> {
        self.control.hangs.current().into_iter().map(|(_, hang)| hang).collect()
    }

    /// Calls `listener` for each operator that is found to hang from now on, on the watchdog's thread.
    /// Replaces the listener set before.
    ///
    /// ```
    /// # use onbeat_runtime::{Graph, OnHang, Options};
    /// # use std::sync::mpsc;
    /// let (never, wait) = mpsc::channel::<()>();
    /// let (sender, hangs) = mpsc::channel();
    /// let mut graph = Graph::new("hangs");
    /// graph.source("camera", move || { let _ = wait.recv(); Some(1u8) });
    /// graph.sink("end", |_: u8| ());
    /// graph.connect_names("camera", "end");
    /// let options = Options { watchdog_ns: Some(50_000_000), on_hang: OnHang::Stop, ..Options::default() };
    /// let run = graph.start(&options)?;
    /// run.on_hang(move |hang| sender.send(hang.operator.clone()).unwrap());
    /// let error = run.wait().unwrap_err().to_string();
    /// assert!(error.starts_with("operator `camera`: its step has not returned for"));
    /// assert_eq!(hangs.recv().unwrap(), "camera");
    /// # drop(never);
    /// # Ok::<(), onbeat_runtime::RunError>(())
    /// ```
    pub fn on_hang(&self, listener: impl Fn(&Hang) + Send + 'static) {
        self.control.hangs.listen(listener);
    }

    /// Time of the first step, in nanoseconds on `CLOCK_MONOTONIC`; `None` before it, and if the run uses
    /// another clock.
    pub fn started_ns(&self) -> Option<u64> {
        let options = &self.plan.options;
        let is_real = options.clock == ClockKind::Real && options.scale == 1.0;
        self.control.start_ns.get().copied().filter(|_| is_real)
    }

    /// Late messages so far, with their causes. Empty if misses are not explained
    /// ([`Options::explain`](crate::Options::explain)).
    pub fn lateness(&self) -> Lateness {
        self.control.misses.so_far()
    }

    /// Calls `listener` with each late message once its causes are known: some 25 ms after the message ended,
    /// on the run's thread `onbeat-explain`. Replaces the listener set before. It is not called if misses are
    /// not explained.
    pub fn on_late(&self, listener: impl FnMut(&LateMessage) + Send + 'static) {
        self.control.misses.listen(listener);
    }

    /// Calls `listener` some 50 times per second, on the same thread, with the steps recorded and the kernel
    /// events on the workers' cores since the previous call. Operators, workers and edges have their index in
    /// the [`Plan`]. Replaces the listener set before.
    pub fn on_flight(&self, listener: impl FnMut(&[Span], &[KernelEvent]) + Send + 'static) {
        self.control.misses.listen_to_flight(listener);
    }

    /// Returns the gate of this name, which operators have in their conditions.
    pub fn gate(&self, name: &str) -> Option<&Gate> {
        self.fixtures.gates.get(name)
    }

    /// Returns the named gates, by name.
    pub fn gates(&self) -> impl Iterator<Item = (&str, &Gate)> {
        self.fixtures.gates.iter().map(|(name, gate)| (name.as_str(), gate))
    }

    /// Returns the event of this name.
    pub fn event(&self, name: &str) -> Option<&Event> {
        self.fixtures.events.get(name)
    }

    /// Returns the named events, by name.
    pub fn events(&self) -> impl Iterator<Item = (&str, &Event)> {
        self.fixtures.events.iter().map(|(name, event)| (name.as_str(), event))
    }

    /// Sends an order to the worker of an operator. Does not wait for the answer.
    pub(crate) fn ask(&self, name: &str, order: impl Fn(u32) -> Order) -> Result<PendingOrder, OrderError> {
        let names = || self.plan.operators.iter().map(|operator| operator.name.as_str());
        let Some(number) = names().position(|known| known == name) else {
            return Err(OrderError::UnknownOperator { name: name.to_string(), hint: near(name, names()) });
        };
        let mut pending = PendingOrder::new(&self.control, &self.plan, OrderTarget::Operator(number));
        // The replicas of an operator wait for each other, so they get the order together.
        let _held = self.control.team.hold();
        for (number, _) in names().enumerate().filter(|&(_, known)| known == name) {
            let part = self.plan.operators[number].part;
            // Parts number their operators in the plan's order.
            let here = self.plan.operators[..number].iter().filter(|other| other.part == part).count();
            pending.send(part, order(here as u32));
        }
        Ok(pending)
    }

    /// Sends the order to pause all sources, or to resume everything. Does not wait for the answers.
    pub(crate) fn ask_all(&self, paused: bool) -> PendingOrder {
        let mut pending = PendingOrder::new(&self.control, &self.plan, OrderTarget::All { paused });
        let _held = self.control.team.hold();
        for part in 0..self.plan.parts.len() {
            pending.send(part, if paused { Order::PauseAll } else { Order::ResumeAll });
        }
        pending
    }
}
