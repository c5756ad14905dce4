//! An operator whose code is a Python object.
//!
//! | file | contents |
//! |---|---|
//! | `answer` | what a step returns: [`StepWord`] |
//! | `class` | what the class of an operator says of itself |
//! | `failure` | exceptions as errors of the engine |
//! | `in_place` | steps that change samples in place |

mod answer;
mod class;
mod failure;
mod in_place;

pub use answer::{StepWord, until};
pub use class::OperatorClass;

use crate::context::{Heard, StepContext};
use crate::gil::{GilSeat, GilWait};
use crate::ports::{InPlacePort, Inlet, OutHead, Outlet, PortError, in_place, inlet, outlet};
use crate::value::from_value;
use answer::StepAnswer;
use failure::failed;
use onbeat::{Context, Ending, Error, Operator, Pace, Pacer, Ports, Stamp, Step, Tag, Value};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// An operator whose code is a Python object.
pub struct PythonOperator {
    gil: GilSeat,
    code: Code,
}

/// The Python object, and what its steps need.
struct Code {
    instance: Py<PyAny>,
    step: Py<PyAny>,
    context: Py<StepContext>,
    class: Arc<OperatorClass>,
    inlets: Vec<Box<dyn Inlet>>,
    outlets: Vec<Box<dyn Outlet>>,
    /// The only port of an operator that changes samples in place.
    in_place: Option<Box<dyn InPlacePort>>,
    /// For a source with a sample rate: its pace, and the number of samples that it has sent.
    pacer: Option<(f64, Pacer)>,
    sent: u64,
    /// Arguments of a step without ports.
    only: Option<Py<PyTuple>>,
}

/// What the next step gets.
enum Offer {
    /// This many samples in, and room for this many samples out.
    Samples(usize, usize),
    /// Nothing yet.
    Step(Step),
}

impl PythonOperator {
    /// Makes an operator of an instance of `onbeat.Operator`.
    pub fn new(instance: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = instance.py();
        let class = OperatorClass::of(instance)?;
        // What it keeps of an earlier run.
        instance.setattr("_failure", py.None())?;
        let wrong = |port: &class::PortSpec| {
            PyTypeError::new_err(format!(
                "port `{}`: there is no type of messages `{}`",
                port.name, port.word
            ))
        };
        let inlets = class.inputs.iter().map(|port| inlet(&port.word).ok_or_else(|| wrong(port)));
        let outlets = class.outputs.iter().map(|port| outlet(&port.word).ok_or_else(|| wrong(port)));
        let changed = class.in_place.as_ref().map(|port| in_place(&port.word).ok_or_else(|| wrong(port)));
        let mut code = Code {
            in_place: changed.transpose()?,
            instance: instance.clone().unbind(),
            step: instance.getattr("step")?.unbind(),
            context: Py::new(py, StepContext::new())?,
            inlets: inlets.collect::<PyResult<_>>()?,
            outlets: outlets.collect::<PyResult<_>>()?,
            class,
            pacer: None,
            sent: 0,
            only: None,
        };
        if code.inlets.is_empty() && code.outlets.is_empty() && code.in_place.is_none() {
            code.only = Some(PyTuple::new(py, [&code.context])?.unbind());
        }
        Ok(PythonOperator { gil: GilSeat::new(), code })
    }
}

impl Code {
    /// Takes messages and chunks for the next step. No Python code runs.
    fn offer(&mut self, cx: &mut Context) -> Offer {
        loop {
            let (mut samples, mut has_samples) = (usize::MAX, false);
            let (mut is_missing, mut is_ended) = (false, false);
            for inlet in &mut self.inlets {
                match inlet.fetch(cx) {
                    0 if inlet.is_ended(cx) => is_ended = true,
                    0 => is_missing = true,
                    count if inlet.info().is_some() => (samples, has_samples) = (samples.min(count), true),
                    _ => {}
                }
            }
            if is_ended {
                return Offer::Step(Step::Done);
            }
            if is_missing {
                self.inlets.iter().for_each(|inlet| _ = inlet.hold(cx));
                return Offer::Step(Step::Wait);
            }
            let (mut room, mut sends_samples) = (usize::MAX, false);
            for outlet in &mut self.outlets {
                let Some(count) = outlet.open(cx) else { return Offer::Step(Step::Wait) };
                if outlet.has_samples() {
                    (room, sends_samples) = (room.min(count), true);
                }
            }
            let (up, down) = (self.class.up, self.class.down);
            if !has_samples {
                return Offer::Samples(0, if sends_samples { room } else { 0 });
            }
            if sends_samples {
                samples = samples.min(room / up * down);
                samples -= samples % down;
            }
            if samples > 0 {
                return Offer::Samples(samples, if sends_samples { samples / down * up } else { 0 });
            }
            self.inlets.iter_mut().for_each(|inlet| inlet.starve());
        }
    }

    /// Waits until the samples of a source are due. Returns `None` if they are.
    fn pace(&mut self, cx: &mut Context, room: usize) -> Option<Step> {
        let (_, pacer) = self.pacer.as_ref()?;
        pacer.wait(cx, self.sent, self.sent + room as u64)
    }

    /// Calls the Python code.
    fn call(
        &mut self,
        py: Python<'_>,
        cx: &mut Context,
        samples: usize,
        room: usize,
    ) -> Result<Step, PortError> {
        let first = self.inlets.iter().find(|inlet| inlet.info().is_some());
        let shape = first.and_then(|inlet| inlet.info()).map_or([0; 3], |(info, _)| info.shape);
        let streams = self.inlets.iter().filter(|inlet| inlet.info().is_some()).map(|inlet| inlet.stamp());
        if let Some(stamp) = streams.reduce(Stamp::older).or(self.inlets.first().map(|inlet| inlet.stamp())) {
            cx.set_stamp(stamp);
        }
        let mut head = OutHead { shape: if samples == room { shape } else { [0; 3] }, ..OutHead::default() };
        if let Some((info, at)) = first.and_then(|inlet| inlet.info()) {
            head.rate_hz = info.rate_hz * self.class.up as f64 / self.class.down as f64;
            let tags = info.tags.iter().filter(|tag| (at..at + samples).contains(&tag.offset));
            head.tags.extend(tags.map(|tag| Tag {
                offset: (tag.offset - at) * self.class.up / self.class.down,
                ..tag.clone()
            }));
            let heard = info
                .tags
                .iter()
                .map(|tag| (tag.offset.wrapping_sub(at), tag.key.to_string(), tag.value.clone()));
            self.context.get().hear(Heard {
                rate_hz: info.rate_hz,
                start: info.start + at as u64,
                tags: heard.filter(|tag| tag.0 < samples).collect(),
            });
        } else if let Some((rate_hz, _)) = self.pacer {
            head.rate_hz = rate_hz;
        }
        let arguments = self.arguments(py, samples, room, head.shape)?;
        let step = self.step.bind(py);
        let result = self.context.get().during(cx, || step.call1(&arguments));
        let answer = result.and_then(|result| {
            StepAnswer::of(&result, samples, room, !self.inlets.is_empty(), !self.outlets.is_empty())
        });
        match answer {
            Ok(answer) => self.settle(&arguments, cx, samples, answer, head),
            Err(error) => {
                self.revoke(&arguments);
                Err(error.into())
            }
        }
    }

    /// Makes the arguments of a step: the context, the inputs, the outputs.
    fn arguments<'py>(
        &mut self,
        py: Python<'py>,
        samples: usize,
        room: usize,
        shape: [u32; 3],
    ) -> PyResult<Bound<'py, PyTuple>> {
        if let Some(only) = &self.only {
            return Ok(only.bind(py).clone());
        }
        let (inputs, mut failed) = (self.inlets.len(), Ok(()));
        let lent = (0..1 + inputs + self.outlets.len()).map(|at| {
            let lent = match at {
                0 => Ok(self.context.bind(py).clone().into_any()),
                at if at <= inputs => self.inlets[at - 1].lend(py, samples),
                at => self.outlets[at - 1 - inputs].lend(py, room, shape),
            };
            lent.unwrap_or_else(|error| {
                failed = Err(error);
                py.None().into_bound(py)
            })
        });
        let arguments = PyTuple::new(py, lent)?;
        failed.map(|()| arguments)
    }

    /// Takes back what the step got, and sends what it made.
    fn settle(
        &mut self,
        arguments: &Bound<'_, PyTuple>,
        cx: &mut Context,
        samples: usize,
        answer: StepAnswer,
        mut head: OutHead,
    ) -> Result<Step, PortError> {
        let wishes = self.context.get().wishes();
        head.rate_hz = wishes.rate_hz.unwrap_or(head.rate_hz);
        for (offset, key, value) in wishes.tags {
            head.tags.push(Tag { offset, key: key.into(), value });
        }
        head.tags.sort_by_key(|tag| tag.offset);
        let mut kept = Ok(());
        for (at, inlet) in self.inlets.iter_mut().enumerate() {
            let name = &self.class.inputs[at].name;
            let taken = inlet.take_back(&*arguments.get_borrowed_item(at + 1)?, answer.used, name);
            kept = kept.and(taken);
        }
        if samples > 0 && answer.used == 0 && answer.made == 0 {
            self.inlets.iter_mut().for_each(|inlet| inlet.starve());
        }
        let inputs = self.inlets.len();
        if let Err(error) = kept {
            self.revoke(arguments);
            return Err(error.into());
        }
        for (at, outlet) in self.outlets.iter_mut().enumerate() {
            let name = &self.class.outputs[at].name;
            outlet.send(cx, &*arguments.get_borrowed_item(at + 1 + inputs)?, answer.made, &head, name)?;
        }
        self.sent += answer.made as u64;
        let mut holds = false;
        for inlet in &self.inlets {
            holds |= inlet.hold(cx);
        }
        Ok(match answer.step {
            Some(word) => word.step(cx),
            None if inputs == 0 || holds => Step::Again,
            None => Step::Wait,
        })
    }

    /// Takes back what a step that failed was to fill.
    fn revoke(&mut self, arguments: &Bound<'_, PyTuple>) {
        let inputs = self.inlets.len();
        for (at, outlet) in self.outlets.iter_mut().enumerate() {
            if let Ok(argument) = arguments.get_borrowed_item(at + 1 + inputs) {
                outlet.revoke(&argument);
            }
        }
    }
}

impl PythonOperator {
    /// Calls a method of the instance with the context and this argument.
    fn hook(&mut self, cx: &mut Context, method: &str, argument: Option<&str>) -> Result<(), Error> {
        let (result, _) = self.gil.enter(|py| {
            let context = self.code.context.get();
            let called = context.during(cx, || {
                let arguments = (&self.code.context, argument);
                match argument {
                    None => self.code.instance.call_method1(py, method, (&self.code.context,)),
                    Some(_) => self.code.instance.call_method1(py, method, arguments),
                }
            });
            called.map(drop).map_err(|error| failed(py, &self.code.instance, error))
        });
        result
    }
}

impl Operator for PythonOperator {
    fn ports(&mut self, p: &mut Ports) {
        for (inlet, port) in self.code.inlets.iter_mut().zip(&self.code.class.inputs) {
            inlet.declare(&port.name, p);
        }
        for (outlet, port) in self.code.outlets.iter_mut().zip(&self.code.class.outputs) {
            outlet.declare(&port.name, p);
        }
        if let (Some(changed), Some(port)) = (&mut self.code.in_place, &self.code.class.in_place) {
            changed.declare(&port.name, p);
        }
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.gil.rename(cx.name());
        self.code.sent = 0;
        self.hook(cx, "start", None)?;
        let rate_hz = if self.code.inlets.is_empty() && self.code.in_place.is_none() {
            self.gil.enter(|py| self.code.instance.getattr(py, "rate_hz").ok()?.extract::<f64>(py).ok()).0
        } else {
            None
        };
        if let Some(rate_hz) = rate_hz.filter(|rate_hz| *rate_hz > 0.0 && rate_hz.is_finite()) {
            let pace = cx.pace(Pace::Fast);
            self.code.pacer = Some((rate_hz, Pacer::new(rate_hz, pace)));
        }
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let is_in_place = self.code.in_place.is_some();
        let (mut samples, mut room) = (0, 0);
        if !is_in_place {
            (samples, room) = match self.code.offer(cx) {
                Offer::Step(step) => return Ok(step),
                Offer::Samples(samples, room) => (samples, room),
            };
            if let Some(step) = self.code.pace(cx, room) {
                return Ok(step);
            }
        } else if !self.code.take(cx)? {
            return Ok(Step::Wait);
        }
        let (result, wait) = self.gil.enter(|py| {
            let step =
                if is_in_place { self.code.change(py, cx) } else { self.code.call(py, cx, samples, room) };
            step.map_err(|error| match error {
                PortError::Python(error) => failed(py, &self.code.instance, error),
                PortError::Engine(error) => error,
            })
        });
        if let Some(GilWait { from_ns, to_ns, holder }) = wait {
            cx.waited_for_gil(from_ns, to_ns, &holder);
        }
        result
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        let word = match ending {
            Ending::Ended => "ended",
            Ending::Stopped => "stopped",
            _ => "failed",
        };
        self.hook(cx, "stop", Some(word))
    }

    fn settable(&self) -> &'static [&'static str] {
        self.code.class.settable
    }

    fn set(&mut self, _: &mut Context, name: &str, value: &Value) -> Result<(), Error> {
        let (result, _) = self.gil.enter(|py| {
            let set = from_value(py, value)
                .and_then(|value| self.code.instance.call_method1(py, "_set", (name, value)));
            set.map(drop).map_err(|error| Error::new(error.value(py).to_string()))
        });
        result
    }

    fn degrade(&mut self, late_ns: u64) {
        self.gil.enter(|py| {
            // There is nobody to tell: the step that follows shows what is wrong.
            drop(self.code.instance.call_method1(py, "degrade", (late_ns,)));
        });
    }
}
