//! The elements of a control loop: a controller, a plant and a switch.

use crate::check;
use onbeat_runtime::{
    Context, Ending, Error, Folders, Input, Kind, Operator, Output, Ports, Registry, Seconds, Step, Value,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A textbook PID controller. At each tick it sends the command `kp · e + ki · ∫e dt + kd · de/dt` with `e =
/// setpoint - measured`, limited to a range.
///
/// While a limit clips the command, the integral does not grow (anti-windup by conditional integration). The
/// loop runs on the source time of the ticks, so a late tick does not change the output. A measured value
/// that is not finite counts as zero error, and a setpoint that is not finite is left out; a note gives the
/// number of such values.
///
/// Source: K. J. Åström and R. M. Murray, Feedback Systems (2008), chapter 10.
#[derive(Debug, Clone, Copy)]
pub struct Gains {
    /// Setpoint, in the unit of the measured value.
    pub setpoint: f64,
    /// Proportional gain, command per unit of error.
    pub kp: f64,
    /// Integral gain, command per unit of error and second.
    pub ki: f64,
    /// Derivative gain, command per unit of error per second.
    pub kd: f64,
    /// Lowest command.
    pub least: f64,
    /// Highest command.
    pub most: f64,
}

impl Gains {
    fn check(&self) -> Result<(), Error> {
        for (name, value) in [("setpoint", self.setpoint), ("kp", self.kp), ("ki", self.ki), ("kd", self.kd)]
        {
            check::finite(name, value)?;
        }
        if self.least.is_nan() || self.most.is_nan() || self.least >= self.most {
            return Err(Error::new(format!(
                "`least` is {} and `most` is {}: `least` must be below `most`",
                self.least, self.most
            )));
        }
        Ok(())
    }
}

#[doc = include_str!("about/pid.md")]
///
/// Gains and limits: see [`Gains`].
pub struct Pid {
    /// Ticks. Their source time is the time of the loop.
    pub tick: Input<u64>,
    /// The values measured since the last tick.
    pub measured: Input<f64>,
    /// New setpoints, if it is connected: the controller waits for the first one, and each holds from the
    /// first tick on that comes after it and whose source time is not earlier.
    pub setpoint: Input<f64>,
    /// The command for this tick.
    pub command: Output<f64>,
    gains: Gains,
    integral: f64,
    /// Whether no setpoint has come yet.
    awaits_setpoint: bool,
    /// A setpoint that holds later, and the time in nanoseconds from which on.
    next_setpoint: Option<(f64, u64)>,
    /// Time in nanoseconds and error at the last tick.
    last: Option<(u64, f64)>,
    not_finite: u64,
}

impl Pid {
    /// Creates a controller at rest.
    ///
    /// # Errors
    /// When a gain is not finite, or the limits are not in order.
    pub fn new(gains: Gains) -> Result<Self, Error> {
        gains.check()?;
        Ok(Pid {
            tick: Input::default(),
            measured: Input::default(),
            setpoint: Input::default(),
            command: Output::default(),
            gains,
            next_setpoint: None,
            awaits_setpoint: true,
            integral: 0.0,
            last: None,
            not_finite: 0,
        })
    }

    /// Takes the setpoints that hold at a time.
    fn take_setpoints(&mut self, time_ns: u64, cx: &mut Context) {
        loop {
            if self.next_setpoint.is_none() {
                self.next_setpoint =
                    self.setpoint.pop_stamped(cx).map(|(value, stamp)| (value, stamp.time_ns));
            }
            let Some((value, _)) = self.next_setpoint.take_if(|(_, from_ns)| *from_ns <= time_ns) else {
                return;
            };
            if value.is_finite() {
                self.gains.setpoint = value;
            } else {
                self.not_finite += 1;
            }
        }
    }

    fn command(&mut self, time_ns: u64, measured: f64) -> f64 {
        let Gains { setpoint, kp, ki, kd, least, most } = self.gains;
        let error = if measured.is_finite() {
            setpoint - measured
        } else {
            self.not_finite += 1;
            0.0
        };
        let (last_ns, last_error) = self.last.replace((time_ns, error)).unwrap_or((time_ns, error));
        let dt_s = time_ns.saturating_sub(last_ns) as f64 * 1e-9;
        let slope = if dt_s > 0.0 { (error - last_error) / dt_s } else { 0.0 };
        let integral = self.integral + error * dt_s;
        let wanted = kp * error + ki * integral + kd * slope;
        let command = wanted.clamp(least, most);
        // At a limit the integral can shrink but not grow.
        if command == wanted || (wanted - command) * error < 0.0 {
            self.integral = integral;
        }
        command
    }
}

impl Operator for Pid {
    fn ports(&mut self, p: &mut Ports) {
        p.input("tick", &mut self.tick);
        p.input("measured", &mut self.measured);
        p.input("setpoint", &mut self.setpoint).optional();
        p.output("command", &mut self.command);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let awaits_setpoint =
            self.awaits_setpoint && self.setpoint.is_connected() && !self.setpoint.is_ended(cx);
        if awaits_setpoint && self.setpoint.is_empty(cx) {
            self.tick.keep(cx);
            self.measured.keep(cx);
            return Ok(Step::Wait);
        }
        if self.tick.is_empty(cx) || self.measured.is_empty(cx) {
            return Ok(Step::Wait);
        }
        self.awaits_setpoint = false;
        let (Some(_), Some(measured)) = (self.tick.pop(cx), self.measured.pop(cx)) else {
            return Ok(Step::Wait);
        };
        let stamp = cx.stamp();
        self.take_setpoints(stamp.time_ns, cx);
        cx.set_stamp(stamp);
        let command = self.command(stamp.time_ns, measured);
        self.command.push(cx, command)?;
        Ok(Step::Wait)
    }

    fn stop(&mut self, cx: &mut Context, _: Ending) -> Result<(), Error> {
        if self.not_finite > 0 {
            cx.note(format!(
                "{} values were not finite: measured ones counted as zero error, setpoints were left out",
                self.not_finite
            ));
        }
        Ok(())
    }

    fn settable(&self) -> &'static [&'static str] {
        &["setpoint", "kp", "ki", "kd", "least", "most"]
    }

    /// When the integral gain changes, the integral's share of the command stays, and so does the command.
    fn set(&mut self, _: &mut Context, name: &str, value: &Value) -> Result<(), Error> {
        let value: f64 = value.read(name)?;
        let mut gains = self.gains;
        match name {
            "setpoint" => gains.setpoint = value,
            "kp" => gains.kp = value,
            "ki" => gains.ki = value,
            "kd" => gains.kd = value,
            "least" => gains.least = value,
            _ => gains.most = value,
        }
        gains.check()?;
        if gains.ki != self.gains.ki {
            self.integral = if gains.ki == 0.0 { 0.0 } else { self.integral * self.gains.ki / gains.ki };
        }
        self.gains = gains;
        Ok(())
    }
}

/// A first-order lag, the simplest plant: `tau · dy/dt + y = gain · u`, solved exactly for an input that is
/// constant between messages.
pub struct Lag {
    /// Input `u`.
    pub input: Input<f64>,
    /// Output `y`.
    pub out: Output<f64>,
    gain: f64,
    tau_s: f64,
    value: f64,
    /// Time in nanoseconds and input of the last message.
    last: Option<(u64, f64)>,
}

impl Lag {
    /// Creates a lag at rest, with output 0.
    ///
    /// # Errors
    /// When `tau_s` is not above 0, or `gain` is not finite.
    pub fn new(gain: f64, tau_s: f64) -> Result<Self, Error> {
        check::finite("gain", gain)?;
        check::positive("tau", tau_s)?;
        Ok(Lag { input: Input::default(), out: Output::default(), gain, tau_s, value: 0.0, last: None })
    }
}

impl Operator for Lag {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(input) = self.input.pop(cx) {
            let time_ns = cx.stamp().time_ns;
            let (last_ns, held) = self.last.replace((time_ns, input)).unwrap_or((time_ns, input));
            let dt_s = time_ns.saturating_sub(last_ns) as f64 * 1e-9;
            let target = self.gain * held;
            self.value = target + (self.value - target) * (-dt_s / self.tau_s).exp();
            self.out.push(cx, self.value)?;
        }
        Ok(Step::Wait)
    }

    fn settable(&self) -> &'static [&'static str] {
        &["gain", "tau"]
    }

    fn set(&mut self, _: &mut Context, name: &str, value: &Value) -> Result<(), Error> {
        let (gain, tau_s) = match name {
            "gain" => (value.read(name)?, self.tau_s),
            _ => (self.gain, value.read::<Seconds>(name)?.0),
        };
        Lag::new(gain, tau_s)?;
        (self.gain, self.tau_s) = (gain, tau_s);
        Ok(())
    }
}

/// Sends each value to one of two outputs.
#[derive(Default)]
pub struct Route {
    /// Values.
    pub input: Input<f64>,
    /// Values at or above the threshold.
    pub high: Output<f64>,
    /// Values below the threshold, and NaN.
    pub low: Output<f64>,
    threshold: f64,
}

impl Route {
    /// Creates a switch: values of `threshold` and above go to `high`.
    ///
    /// # Errors
    /// When the threshold is not finite.
    pub fn new(threshold: f64) -> Result<Self, Error> {
        check::finite("threshold", threshold)?;
        Ok(Route { threshold, ..Route::default() })
    }
}

impl Operator for Route {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("high", &mut self.high).optional();
        p.output("low", &mut self.low).optional();
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(value) = self.input.pop(cx) {
            let out = if value >= self.threshold { &mut self.high } else { &mut self.low };
            out.push(cx, value)?;
        }
        Ok(Step::Wait)
    }

    fn settable(&self) -> &'static [&'static str] {
        &["threshold"]
    }

    fn set(&mut self, _: &mut Context, name: &str, value: &Value) -> Result<(), Error> {
        let threshold = value.read(name)?;
        check::finite(name, threshold)?;
        self.threshold = threshold;
        Ok(())
    }
}

/// A PID controller.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PidParameters {
    /// Setpoint, in the unit of the measured value.
    setpoint: f64,
    /// Proportional gain: command per unit of error.
    kp: f64,
    /// Integral gain: command per unit of error and second.
    #[serde(default)]
    ki: f64,
    /// Derivative gain: command per unit of error per second.
    #[serde(default)]
    kd: f64,
    /// Lowest command; without it, there is no lower limit.
    #[serde(default)]
    least: Option<f64>,
    /// Highest command; without it, there is no upper limit.
    #[serde(default)]
    most: Option<f64>,
}

/// A first-order lag.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LagParameters {
    /// Steady-state gain: output per unit of input, after a long time.
    #[serde(default = "one")]
    gain: f64,
    /// Time constant: a step response reaches 63 % of its final value after this time.
    tau: Seconds,
}

fn one() -> f64 {
    1.0
}

/// A switch.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RouteParameters {
    /// Values of this threshold and above go to `high`.
    threshold: f64,
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let pid = |p: &PidParameters, _: &Folders| {
        Pid::new(Gains {
            setpoint: p.setpoint,
            kp: p.kp,
            ki: p.ki,
            kd: p.kd,
            least: p.least.unwrap_or(f64::NEG_INFINITY),
            most: p.most.unwrap_or(f64::INFINITY),
        })
    };
    registry.add(
        Kind::new("pid", "PID controller: measured values to commands", "setpoint = 1.0\nkp = 2.0", pid)
            .about(include_str!("about/pid.md")),
    );
    registry.add(Kind::new("lag", "first-order lag", "tau = \"50 ms\"", |p: &LagParameters, _: &Folders| {
        Lag::new(p.gain, p.tau.0)
    }));
    registry.add(Kind::new(
        "route",
        "sends each value to one of two outputs",
        "threshold = 0.5",
        |p: &RouteParameters, _: &Folders| Route::new(p.threshold),
    ));
}
