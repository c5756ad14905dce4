//! The parts of a control loop: a controller, something to control, and a sink for single values.

use crate::check;
use crate::part::Part;
use onbeat_runtime::{
    Context, Ending, Error, Folders, Input, Kind, Operator, Output, Ports, Registry, Seconds, Step,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// A PID controller in its textbook form: at each tick, from what was measured, the command
/// `kp · e + ki · ∫e dt + kd · de/dt` with `e = setpoint - measured`, held between two limits. While the command is held
/// back by a limit, the integral does not grow (anti-windup by conditional integration). Time is that of the ticks, so a
/// late tick changes nothing in what comes out. A measured value that is not finite counts as no error, is counted, and noted.
///
/// Source: K. J. Åström and R. M. Murray, Feedback Systems (2008), chapter 10.
#[derive(Debug, Clone, Copy)]
pub struct Gains {
    /// What is to be reached, in the unit of what is measured.
    pub setpoint: f64,
    /// Proportional gain, command per error.
    pub kp: f64,
    /// Integral gain, command per error and second.
    pub ki: f64,
    /// Differential gain, command per error per second.
    pub kd: f64,
    /// Least command.
    pub least: f64,
    /// Greatest command.
    pub most: f64,
}

/// See [`Gains`].
pub struct Pid {
    /// Ticks: their source time is the time of the loop.
    pub tick: Input<u64>,
    /// What was measured since the last tick.
    pub measured: Input<f64>,
    /// The command for this tick.
    pub command: Output<f64>,
    gains: Gains,
    integral: f64,
    /// Time in nanoseconds and error at the last tick.
    last: Option<(u64, f64)>,
    not_finite: u64,
}

impl Pid {
    /// A controller at rest.
    ///
    /// # Errors
    /// When a gain is not finite, or the limits are none.
    pub fn new(gains: Gains) -> Result<Self, Error> {
        for (name, value) in
            [("setpoint", gains.setpoint), ("kp", gains.kp), ("ki", gains.ki), ("kd", gains.kd)]
        {
            check::finite(name, value)?;
        }
        if gains.least.is_nan() || gains.most.is_nan() || gains.least >= gains.most {
            return Err(Error::new(format!(
                "`least` is {} and `most` is {}: the first must be below the second",
                gains.least, gains.most
            )));
        }
        Ok(Pid {
            tick: Input::default(),
            measured: Input::default(),
            command: Output::default(),
            gains,
            integral: 0.0,
            last: None,
            not_finite: 0,
        })
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
        // Held back by a limit: the integral may shrink, and not grow.
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
        p.output("command", &mut self.command);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.tick.is_empty(cx) || self.measured.is_empty(cx) {
            return Ok(Step::Wait);
        }
        let (Some(_), Some(measured)) = (self.tick.pop(cx), self.measured.pop(cx)) else {
            return Ok(Step::Wait);
        };
        let command = self.command(cx.stamp().time_ns, measured);
        self.command.push(cx, command)?;
        Ok(Step::Wait)
    }

    fn stop(&mut self, cx: &mut Context, _: Ending) -> Result<(), Error> {
        if self.not_finite > 0 {
            cx.note(format!("{} measured values were not finite and counted as no error", self.not_finite));
        }
        Ok(())
    }
}

/// A first-order lag, the simplest thing that can be controlled: `tau · dy/dt + y = gain · u`, solved exactly for an
/// input that is constant from one message to the next.
pub struct Lag {
    /// u
    pub input: Input<f64>,
    /// y
    pub out: Output<f64>,
    gain: f64,
    tau_s: f64,
    value: f64,
    /// Time in nanoseconds and input of the last message.
    last: Option<(u64, f64)>,
}

impl Lag {
    /// At rest, at 0.
    ///
    /// # Errors
    /// When `tau_s` is not above 0, or the gain not finite.
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
}

/// Takes single values. With a file, it writes every n-th as a line `seconds,value`; at the end it notes how many there were,
/// the least, the greatest and the last of the finite ones.
pub struct ValueSink {
    /// Values.
    pub input: Input<f64>,
    path: Option<PathBuf>,
    every: u64,
    file: Option<(BufWriter<File>, Part)>,
    count: u64,
    finite: u64,
    least: f64,
    most: f64,
    last: f64,
}

impl ValueSink {
    /// Every `every`-th value goes to `path`.
    ///
    /// # Errors
    /// When `every` is 0.
    pub fn new(path: Option<PathBuf>, every: u64) -> Result<Self, Error> {
        if every == 0 {
            return Err(Error::new("`every` is 0: it must be 1 or more"));
        }
        Ok(ValueSink {
            input: Input::default(),
            path,
            every,
            file: None,
            count: 0,
            finite: 0,
            least: f64::INFINITY,
            most: f64::NEG_INFINITY,
            last: 0.0,
        })
    }

    fn write(&mut self, time_ns: u64, value: f64) -> Result<(), Error> {
        let Some((file, part)) = &mut self.file else { return Ok(()) };
        writeln!(file, "{:.9},{value}", time_ns as f64 / 1e9)
            .map_err(|error| Error::with_source(format!("cannot write {}", part.target().display()), error))
    }
}

impl Operator for ValueSink {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        if let Some(path) = &self.path {
            let part = Part::create(path)?;
            let mut file = BufWriter::new(part.handle()?);
            writeln!(file, "time_s,value").map_err(|error| Error::new(error.to_string()))?;
            self.file = Some((file, part));
        }
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(value) = self.input.pop(cx) {
            if self.count.is_multiple_of(self.every) {
                self.write(cx.stamp().time_ns, value)?;
            }
            self.count += 1;
            if value.is_finite() {
                self.finite += 1;
                (self.least, self.most, self.last) = (self.least.min(value), self.most.max(value), value);
            }
        }
        Ok(Step::Wait)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        if self.finite > 0 {
            let Self { count, least, most, last, .. } = self;
            cx.note(format!("{count} values from {least:.6} to {most:.6}, the last {last:.6}"));
        }
        if self.count > self.finite {
            cx.note(format!("{} values were not finite", self.count - self.finite));
        }
        if let Some((mut file, part)) = self.file.take()
            && ending != Ending::Failed
        {
            let path = part.target().to_owned();
            file.flush()
                .map_err(|error| Error::with_source(format!("cannot write {}", path.display()), error))?;
            part.finish()?;
        }
        Ok(())
    }
}

/// Sends each message to one of two outputs, by its value.
#[derive(Default)]
pub struct Route {
    /// Values.
    pub input: Input<f64>,
    /// Those at or above the threshold.
    pub high: Output<f64>,
    /// The others, and what is not a number.
    pub low: Output<f64>,
    threshold: f64,
}

impl Route {
    /// `threshold` and above is high.
    ///
    /// # Errors
    /// When it is not finite.
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
}

/// A PID controller.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PidParameters {
    /// What is to be reached, in the unit of what is measured.
    setpoint: f64,
    /// Command per error.
    kp: f64,
    /// Command per error and second.
    #[serde(default)]
    ki: f64,
    /// Command per error per second.
    #[serde(default)]
    kd: f64,
    /// Least command; without it, there is none.
    #[serde(default)]
    least: Option<f64>,
    /// Greatest command; without it, there is none.
    #[serde(default)]
    most: Option<f64>,
}

/// A first-order lag.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LagParameters {
    /// Output per input, after a long time.
    #[serde(default = "one")]
    gain: f64,
    /// Time constant: after it, 63 % of a step are reached.
    tau: Seconds,
}

fn one() -> f64 {
    1.0
}

/// A sink for single values.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ValueParameters {
    /// A CSV file in the output folder; without it, values are only looked at.
    #[serde(default)]
    path: Option<PathBuf>,
    /// Every n-th value is written.
    #[serde(default = "first")]
    every: u64,
}

fn first() -> u64 {
    1
}

/// A switch.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RouteParameters {
    /// From here on a value is high.
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
    let sink = |p: &ValueParameters, folders: &Folders| {
        ValueSink::new(p.path.as_ref().map(|path| folders.output.join(path)), p.every)
    };
    registry.add(Kind::new("pid", "a controller: from measured to command", "setpoint = 1.0\nkp = 2.0", pid));
    registry.add(Kind::new(
        "lag",
        "a first-order lag",
        "tau = \"50 ms\"",
        |p: &LagParameters, _: &Folders| Lag::new(p.gain, p.tau.0),
    ));
    registry.add(Kind::new("value.sink", "looks at single values and writes some of them", "", sink));
    registry.add(Kind::new(
        "route",
        "sends each value to one of two outputs",
        "threshold = 0.5",
        |p: &RouteParameters, _: &Folders| Route::new(p.threshold),
    ));
}
