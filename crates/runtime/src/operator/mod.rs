//! The types of user code: operators, their ports, messages, chunks and conditions.

pub(crate) mod aligned;
pub(crate) mod changes;
pub(crate) mod chunk;
pub(crate) mod context;
pub(crate) mod fetched;
pub(crate) mod generated;
pub(crate) mod in_place;
pub(crate) mod inline;
pub(crate) mod kernel;
pub(crate) mod lanes;
pub(crate) mod lent;
pub(crate) mod link;
pub(crate) mod message;
pub(crate) mod numbers;
pub(crate) mod pace;
pub(crate) mod port;
pub(crate) mod ports;
pub(crate) mod stream;
pub(crate) mod ticker;
pub(crate) mod when;
pub(crate) mod zip;

use crate::operator::fetched::FetchedData;
use crate::operator::inline::Inline;
use crate::operator::kernel::not_settable;
use crate::operator::lanes::{LaneMemory, LaneSlot};
use crate::{Context, Error, Pace, Ports, Rate, Value};
use std::any::Any;

/// A node of a pipeline: typed ports, and a `step` that reads some and writes others.
///
/// The engine calls these three in this order, always on a worker thread, one at a time:
///
/// 1. [`start`](Operator::start), once, before any step of the run.
/// 2. [`step`](Operator::step), each time that every required input has a message (or has ended) and every
///    output has room for one. [`Graph::when`](crate::Graph::when) adds or replaces conditions.
/// 3. [`stop`](Operator::stop), once, however the run ended.
///
/// Only [`ports`](Operator::ports) and `step` are required. The rest is for operators that can be restarted
/// (`restart`, `restartable`), replicated (`replica`), changed during a run (`settable`, `set`, `set_at`) or
/// made cheaper (`degrade`), that keep time (`rate`), that send frames (`frame_behind`), that hand
/// data out (`fetch`), or that handle chunks in a chain (`inline`).
///
/// ```
/// use onbeat_runtime::{Context, Error, Input, Operator, Output, Ports, Step};
///
/// #[derive(Default)]
/// struct Double { input: Input<u64>, out: Output<u64> }
///
/// impl Operator for Double {
///     fn ports(&mut self, p: &mut Ports) {
///         p.input("in", &mut self.input);
///         p.output("out", &mut self.out);
///     }
///     fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
///         if let Some(x) = self.input.pop(cx) {
///             self.out.push(cx, 2 * x)?;
///         }
///         Ok(Step::Wait)
///     }
/// }
/// ```
///
/// Operators that only transform samples need not implement this trait: [`InPlace`](crate::InPlace) makes one
/// of a [`Map`](crate::Map), and [`Stream`](crate::Stream) of a [`Kernel`](crate::Kernel).
pub trait Operator: Any + Send {
    /// Names the ports, one line each. It must name the same ports in the same order each time.
    fn ports(&mut self, p: &mut Ports);

    /// Does one activation, and returns when it wants the next one.
    ///
    /// It should be short: other operators of the same worker wait meanwhile. It must not block; use a
    /// condition ([`When`](crate::When)) or an alarm ([`Context::until`]) instead.
    ///
    /// # Errors
    /// An error (or a panic) stops the run cleanly: every operator's `stop` is called, and the record names
    /// this operator. With [`OnError`](crate::OnError), the operator is restarted, or the run goes on without
    /// it.
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error>;

    /// Opens files and sockets and allocates memory, before the first step. The default does nothing.
    ///
    /// An operator with inputs is stepped when a message comes. If it has something to do before, such as
    /// calling a server, it sets an alarm here: `cx.until(cx.now_ns())`.
    ///
    /// # Errors
    /// An error keeps the run from starting. Operators that were started are stopped.
    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        let _ = cx;
        Ok(())
    }

    /// Finishes files, or removes incomplete ones, after the last step. The default does nothing.
    ///
    /// Called once for each operator whose `start` succeeded, also if the run failed. If `start` fails before
    /// the run, `stop` is not called, so `start` must clean up before it returns an error.
    ///
    /// # Errors
    /// After an error the run counts as failed.
    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        let _ = (cx, ending);
        Ok(())
    }

    /// Called once when the operator takes no more steps: it returned [`Step::Done`], its last consumer is
    /// done, or somebody ended it. The run may go on for long. An operator with a connection tells the other
    /// end here, without blocking; [`stop`](Operator::stop) comes at the end of the run. The default does
    /// nothing.
    fn finished(&mut self) {}

    /// Resets the operator after a step that failed or panicked, if the graph restarts it
    /// ([`OnError::Restart`](crate::OnError::Restart)).
    ///
    /// Messages that the failed step took are lost. The default calls `stop` with [`Ending::Failed`], then
    /// `start`.
    ///
    /// # Errors
    /// An error counts as one more failure. `stop` may still be called.
    fn restart(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.stop(cx, Ending::Failed)?;
        self.start(cx)
    }

    /// Whether the operator can be restarted without harm. The plan asks if the graph restarts it. The
    /// default is `Ok`.
    ///
    /// # Errors
    /// The reason why it cannot. The plan then fails with this text.
    fn restartable(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns what is odd in what the operator was given, as far as a first look shows, such as a parameter
    /// that the name of a file contradicts. `onbeat run` and `onbeat check` warn of it, and refuse it if the
    /// pipeline is strict. The default is nothing.
    fn odd(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the sample rate of a source in hertz, if it is known before the run. The plan of a pipeline
    /// file asks for it. The default is that of [`rate`](Operator::rate), if it is one of samples.
    fn sample_rate(&self) -> Option<f64> {
        match self.rate(Some(Pace::Real)) {
            Some(Rate::Samples { rate_hz, .. }) => Some(rate_hz),
            Some(Rate::Period(_)) | None => None,
        }
    }

    /// Whether all inputs must have the same sample rate. A pipeline file with other ones is refused. The
    /// default is no.
    fn needs_one_rate(&self) -> bool {
        false
    }

    /// Returns the sample rate of its outputs if its inputs have this one, in hertz; `None` if that is
    /// unknown. It is asked when a pipeline file is read. The default is `None`.
    ///
    /// # Errors
    /// The reason why it cannot work at this rate.
    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        let _ = rate_hz;
        Ok(None)
    }

    /// Returns the shape of the frames that it sends if those that come have this shape. `frame` is `None` if
    /// nothing is known of them, and for a source, which may look into its file as in
    /// [`check`](Operator::check). The plan gives an edge without a quantum of its own room for such a frame.
    ///
    /// The default is `None`: it knows nothing. An operator may then pass the chunks of an input on, so the
    /// plan takes its frames to be those that come, unless its output is [`fresh`](crate::OutputPort::fresh).
    ///
    /// # Errors
    /// The reason why it cannot work on such frames. `onbeat check` shows it; the plan goes on without.
    fn frame_behind(&self, frame: Option<[u32; 3]>) -> Result<Option<[u32; 3]>, Error> {
        let _ = frame;
        Ok(None)
    }

    /// Looks whether the operator could start: a source opens its file and reads the header. It changes
    /// nothing, and reads nothing that can be read only once. `onbeat check` asks for it. The default is
    /// `Ok`.
    ///
    /// # Errors
    /// The reason why a run would fail.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Makes another operator that does the same, for an operator without state. The default is `None`: it
    /// has state.
    ///
    /// "Without state" means that the output for a message depends only on that message and on the
    /// parameters. (Operators made of kernels can have a [finite memory](crate::Kernel::finite), too.) The
    /// schedulers `replicated` and `event` step several replicas side by side.
    ///
    /// - An operator with inputs and outputs sends exactly one message for each that it takes, under the same
    ///   stamp, before it takes the next. It is never restarted after a failure.
    /// - A source may have replicas that divide the numbers of its messages among themselves: see
    ///   [`Numbers`](crate::Numbers).
    /// - A sink may have replicas that combine their results.
    ///
    /// If both ends of a stretch have replicas, messages keep no order among the replicas.
    ///
    /// ```
    /// # use onbeat_runtime::{Context, Error, Input, Operator, Output, Ports, Step};
    /// #[derive(Default)]
    /// struct Double { input: Input<u64>, out: Output<u64> }
    ///
    /// impl Operator for Double {
    ///     fn replica(&self) -> Option<Box<dyn Operator>> {
    ///         Some(Box::<Double>::default())
    ///     }
    /// #   fn ports(&mut self, p: &mut Ports) {
    /// #       p.input("in", &mut self.input);
    /// #       p.output("out", &mut self.out);
    /// #   }
    /// #   fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
    /// #       if let Some(x) = self.input.pop(cx) {
    /// #           self.out.push(cx, 2 * x)?;
    /// #       }
    /// #       Ok(Step::Wait)
    /// #   }
    ///     // ...
    /// }
    /// ```
    fn replica(&self) -> Option<Box<dyn Operator>> {
        None
    }

    /// Returns how the operator handles the marks of chunks in the lanes of a stretch.
    #[doc(hidden)]
    fn lane_memory(&self) -> LaneMemory {
        LaneMemory::Unmarked
    }

    /// Makes another operator that does the same in a lane whose chunks have marks.
    #[doc(hidden)]
    fn lane_replica(&self, slot: LaneSlot) -> Option<Box<dyn Operator>> {
        let _ = slot;
        None
    }

    /// Returns how often the operator sends, if it keeps time on its own and knows its rate before the run.
    ///
    /// `pace` is the pace that the run asks for, if any. The plan shows the rate, and `onbeat doctor`
    /// compares it with the cost of waking up. The default is `None`: it sends when a message comes, or as
    /// fast as it can.
    fn rate(&self, pace: Option<Pace>) -> Option<Rate> {
        let _ = pace;
        None
    }

    /// Asks the operator to do less work per message, such as a smaller picture, fewer taps or every other
    /// result.
    ///
    /// Called between two steps if its last message missed the deadline by `late_ns` nanoseconds and the
    /// graph chose [`OnMiss::Degrade`](crate::OnMiss::Degrade). The operator decides when to do more again.
    /// The default does nothing.
    fn degrade(&mut self, late_ns: u64) {
        let _ = late_ns;
    }

    /// Returns the names of the parameters that can be changed during a run. The default is none.
    fn settable(&self) -> &'static [&'static str] {
        &[]
    }

    /// Changes one of the [`settable`](Operator::settable) parameters, between two steps. It holds for all
    /// messages after the call. [`Value::read`] reads the value like that of a file.
    ///
    /// # Errors
    /// If the parameter cannot have this value: the text names the value, the limit and the fix. Nothing is
    /// changed then.
    fn set(&mut self, cx: &mut Context, name: &str, value: &Value) -> Result<(), Error> {
        let _ = (cx, value);
        Err(not_settable(name))
    }

    /// Changes a parameter like [`set`](Operator::set), from sample number `sample` of the input on, however
    /// the stream is cut into chunks.
    ///
    /// Samples count from 0, in the order in which they come to the operator, or in which a source sends
    /// them. [`Stream`](crate::Stream), [`InPlace`](crate::InPlace) and [`Generated`](crate::Generated)
    /// implement this for every kernel.
    ///
    /// # Errors
    /// As [`set`](Operator::set). Also if the sample has passed, or if the operator cannot change at a sample
    /// (the default).
    fn set_at(&mut self, cx: &mut Context, name: &str, value: &Value, sample: u64) -> Result<(), Error> {
        let _ = (cx, value);
        Err(Error::new(format!(
            "`{name}` changes between two steps, not at a sample ({sample}): leave out the sample"
        )))
    }

    /// Hands out what it holds for those who watch the run, such as the latest picture. Called between two
    /// steps; the work is done later, on another thread, by the closure in the result.
    ///
    /// # Errors
    /// If there is nothing, now or ever (the default).
    fn fetch(&mut self) -> Result<FetchedData, Error> {
        Err(Error::new("there is nothing to fetch from it: a `tap.image` hands out its latest frame"))
    }

    /// Returns the operator's shortcuts for chains, see [`Inline`]. The default is `None`.
    fn inline(&mut self) -> Option<&mut dyn Inline> {
        None
    }
}

/// When an operator wants its next step.
///
/// It is one plain word, so that `Result<Step, Error>` is returned in two registers.
///
/// ```
/// use onbeat_runtime::{Context, Error, Input, Output, Step};
///
/// /// The step of an operator that counts down from each number that it takes.
/// fn step(
///     input: &mut Input<u64>,
///     out: &mut Output<u64>,
///     left: &mut u64,
///     cx: &mut Context,
/// ) -> Result<Step, Error> {
///     if *left == 0 {
///         let Some(n) = input.pop(cx) else { return Ok(Step::Wait) };
///         *left = n;
///     }
///     if *left > 0 {
///         out.push(cx, *left)?;
///         *left -= 1;
///     }
///     Ok(if *left > 0 { Step::Again } else { Step::Wait })
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Step {
    /// When the inputs have messages; perhaps they have some already. After the end of all inputs this is the
    /// same as `Done`.
    Wait,
    /// As soon as the outputs have room, with or without new messages: the operator has more to do.
    Again,
    /// When a message comes or at a time, whichever is first. Made by [`Context::until`].
    Until,
    /// Never: the operator is finished. Its outputs close, and messages that still come are not read.
    Done,
}

/// How the run ended, as [`Operator::stop`] learns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All sources ended, and all queued messages were processed.
    Ended,
    /// The run was stopped by Ctrl-C, a duration or an order. Messages in flight were processed.
    Stopped,
    /// An operator failed. The output of this operator may be incomplete.
    Failed,
}
