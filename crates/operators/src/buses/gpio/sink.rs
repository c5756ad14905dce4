//! Values to a GPIO line.

use super::super::away::{Attempt, DeviceAbsence};
use super::line::{GpioBias, GpioDrive, GpioLine};
use crate::streams::{time_ns, usual};
use gpiocdev::line::{Drive, Value};
use gpiocdev::request::Request;
use onbeat_runtime::{Context, Ending, Error, Input, Operator, Seconds, Step, operator};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Values from which on the line is active.
const ACTIVE_FROM: f64 = 0.5;

/// Level of a line after the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GpioEnd {
    /// Inactive.
    #[default]
    Inactive,
    /// Active.
    Active,
    /// As the last value has left it.
    Keep,
}

#[doc = include_str!("../../about/gpio_sink.md")]
#[derive(Operator)]
#[operator(
    name = "gpio.sink",
    summary = "sets a GPIO line",
    about = include_str!("../../about/gpio_sink.md"),
    prepare = Self::prepare,
)]
pub struct GpioSink {
    /// From 0.5 on, the line is active; below, inactive.
    input: Input<f64>,
    /// The chip, such as `gpiochip0`, or its path. A line with a name needs none.
    #[parameter(example = "gpiochip0")]
    chip: Option<String>,
    /// Number of the line on its chip, from 0.
    #[parameter(example = 27)]
    offset: Option<u32>,
    /// Name of the line; give either `line` or `offset`.
    #[parameter]
    line: Option<String>,
    /// Whether the low level is the active one.
    #[parameter(default = false)]
    active_low: bool,
    /// How the line is driven.
    #[parameter(default)]
    drive: GpioDrive,
    /// Resistor of the line.
    #[parameter(default)]
    bias: GpioBias,
    /// Whether the line is active before the first value.
    #[parameter(default = false)]
    initial: bool,
    /// Level after the run, also after a failure of another operator.
    #[parameter(default)]
    at_end: GpioEnd,
    /// How long to wait for a chip that went away, with `on_error = "restart"`.
    #[parameter(default = usual())]
    patience: Seconds,
    which: GpioLine,
    absence: DeviceAbsence,
    request: Option<Request>,
    /// Level that the line has, or gets when its chip is back.
    is_active: bool,
}

impl GpioSink {
    fn prepare(&mut self) -> Result<(), Error> {
        self.which = GpioLine::new(self.chip.as_deref(), self.offset, self.line.as_deref())?;
        self.absence.patience_ns = time_ns("patience", self.patience)?;
        self.is_active = self.initial;
        Ok(())
    }

    fn open(&self) -> Result<Request, Error> {
        self.which.request(|builder| {
            builder
                .as_output(level(self.is_active))
                .with_drive(Drive::from(self.drive))
                .with_bias(self.bias.wanted());
            if self.active_low {
                builder.as_active_low();
            }
        })
    }

    fn write(&self) -> Result<(), Error> {
        let Some(request) = &self.request else { return Ok(()) };
        request.set_lone_value(level(self.is_active)).map_err(|error| self.which.gone(&error))
    }
}

fn level(is_active: bool) -> Value {
    if is_active { Value::Active } else { Value::Inactive }
}

#[operator]
impl Operator for GpioSink {
    fn check(&self) -> Result<(), Error> {
        self.which.look()
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.request = Some(self.open()?);
        Ok(())
    }

    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        self.request = None;
        self.absence.begin();
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let mut absence = self.absence;
        let attempt = absence.attempt(self.which.words(), || self.open(), cx);
        self.absence = absence;
        match attempt? {
            Attempt::Wait(step) => return Ok(step),
            Attempt::Back(request) => self.request = Some(request),
            Attempt::Present => {}
        }
        let Some(value) = self.input.pop(cx) else { return Ok(Step::Wait) };
        if value.is_nan() {
            cx.lose(1, "values", "not a number");
            return Ok(Step::Wait);
        }
        let is_active = value >= ACTIVE_FROM;
        if is_active != self.is_active {
            self.is_active = is_active;
            self.write()?;
        }
        Ok(Step::Wait)
    }

    fn stop(&mut self, _: &mut Context, _: Ending) -> Result<(), Error> {
        match self.at_end {
            GpioEnd::Inactive => self.is_active = false,
            GpioEnd::Active => self.is_active = true,
            GpioEnd::Keep => {}
        }
        let written = self.write();
        self.request = None;
        written
    }
}
