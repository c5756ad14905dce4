//! What user code sees: operators, their ports, messages, chunks and conditions.

pub(crate) mod changes;
pub(crate) mod chunk;
pub(crate) mod context;
pub(crate) mod in_place;
pub(crate) mod inline;
pub(crate) mod kernel;
pub(crate) mod link;
pub(crate) mod message;
pub(crate) mod numbers;
pub(crate) mod pace;
pub(crate) mod port;
pub(crate) mod ports;
pub(crate) mod stream;
pub(crate) mod ticker;
pub(crate) mod when;

use crate::operator::inline::Inline;
use crate::operator::kernel::not_settable;
use crate::{Context, Error, Pace, Ports, Rate, Value};
use std::any::Any;

/// One node of a pipeline: typed ports and a `step`.
///
/// The engine calls [`start`](Operator::start) once, then [`step`](Operator::step) whenever every required input has
/// a message (or has ended) and every output has room for one, then [`stop`](Operator::stop) once, however the run
/// ended.
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
pub trait Operator: Any + Send {
    /// Names the ports, one line each, always the same ones in the same order.
    fn ports(&mut self, p: &mut Ports);

    /// One activation: short, and without waiting inside. Says what it wants next.
    ///
    /// # Errors
    /// An error stops the run cleanly: every operator's `stop` runs, and the report names this one. Where the graph says so
    /// ([`OnError`](crate::OnError)), the operator is started anew instead, or the run goes on without it.
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error>;

    /// Called on the worker before the first step: open files, allocate.
    ///
    /// # Errors
    /// The run does not begin; operators that were started are stopped.
    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        let _ = cx;
        Ok(())
    }

    /// Called once after the last step, for every operator that was started: finish files or take them away.
    ///
    /// # Errors
    /// The run counts as failed.
    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        let _ = (cx, ending);
        Ok(())
    }

    /// Called on the worker after a step that failed or panicked, where the graph says that the operator is started anew: what
    /// it holds becomes as good as new. What the step had taken is lost.
    ///
    /// # Errors
    /// Counts as one more failure. `stop` may still come.
    fn restart(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.stop(cx, Ending::Failed)?;
        self.start(cx)
    }

    /// Whether it can be started anew without harm; asked by the plan where the graph says that it is to be.
    ///
    /// # Errors
    /// When it cannot: why.
    fn restartable(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Another one that does the same, for an operator without a state: what it sends for a message depends on nothing but that
    /// message and its parameters. The scheduler `replicated` steps several of them side by side, and no other one asks.
    /// The default is `None`: it has a state.
    ///
    /// Who takes and sends messages sends exactly one for each that it takes, under the stamp of that one, before it takes the
    /// next. It is never started anew after a failure.
    ///
    /// A source whose replicas share out what is to be sent (see [`Numbers`](crate::Numbers)) and a sink whose replicas put
    /// together what they took have some too. Where both ends of a stretch do, messages keep no order among the replicas.
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

    /// How often it sends, where it keeps time by itself and knows that before it starts; `pace` is what the run asks for. The plan
    /// shows it, and `onbeat doctor` lays it beside what waking up costs. The default is `None`: it sends when something comes, or as
    /// fast as it can.
    fn rate(&self, pace: Option<Pace>) -> Option<Rate> {
        let _ = pace;
        None
    }

    /// Its shortcuts, if it has any: see [`Inline`].
    fn inline(&mut self) -> Option<&mut dyn Inline> {
        None
    }

    /// Its last message came `late_ns` later than its deadline, and the graph says that it is to do less then
    /// ([`OnMiss::Degrade`](crate::OnMiss::Degrade)): a smaller picture, fewer taps, every other one. When to do more again is its own
    /// business. Called on the worker, between two steps.
    fn degrade(&mut self, late_ns: u64) {
        let _ = late_ns;
    }

    /// Names of the parameters that can be changed while it runs.
    fn settable(&self) -> &'static [&'static str] {
        &[]
    }

    /// Changes a parameter, one of [`settable`](Operator::settable), between two steps; what is processed next goes by it. The
    /// value is read like that of a file: see [`Value::read`].
    ///
    /// # Errors
    /// When the parameter cannot have this value: name the value, the limit and the fix. Nothing is changed then.
    fn set(&mut self, cx: &mut Context, name: &str, value: &Value) -> Result<(), Error> {
        let _ = (cx, value);
        Err(not_settable(name))
    }

    /// As [`set`](Operator::set), for just that sample of its input stream and all after it, however it is cut into chunks.
    /// Samples are counted from 0, as they come to the operator. [`Stream`](crate::Stream) and
    /// [`InPlace`](crate::InPlace) do it for every kernel.
    ///
    /// # Errors
    /// As [`set`](Operator::set); and when the sample has gone by, or the operator cannot do it.
    fn set_at(&mut self, cx: &mut Context, name: &str, value: &Value, sample: u64) -> Result<(), Error> {
        let _ = (cx, value);
        Err(Error::new(format!(
            "`{name}` changes between two steps, and not at a sample ({sample}): leave that out"
        )))
    }
}

/// What an operator wants after a step.
///
/// It is a plain word, so that `Result<Step, Error>` comes back in two registers.
///
/// ```
/// use onbeat_runtime::{Context, Error, Input, Output, Step};
///
/// /// The step of an operator that sends each number as often as it says.
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
    /// Step me when there is a message for me (perhaps there is one already). At the end of all inputs this is the
    /// same as `Done`.
    Wait,
    /// I have more to do with what I hold: step me again as soon as the outputs have room, message or not.
    Again,
    /// Step me when there is a message, or at a time, whatever comes first. Made by [`Context::until`].
    Until,
    /// I am finished: close my outputs, and let nothing more come.
    Done,
}

/// How the run ended, as told to [`Operator::stop`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All sources ended and everything was worked off.
    Ended,
    /// Someone stopped it (Ctrl-C, a duration): what was under way was worked off.
    Stopped,
    /// An operator failed. What this operator has written may be incomplete.
    Failed,
}
