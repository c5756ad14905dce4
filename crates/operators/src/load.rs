//! Artificial load.

use onbeat_runtime::{
    Chunk, Context, Error, Folders, Input, Kind, Message, Operator, Output, Ports, Registry, Seconds, Step,
    Value,
};
use rustix::time::{ClockId, Timespec, clock_gettime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::hint::black_box;

/// Duration of a step of a [`Load`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadWork {
    /// Nanoseconds on the run's clock. A manual clock does not advance during a step, so there the load is
    /// zero.
    Busy(u64),
    /// Nanoseconds of CPU time of the worker's thread. Time in which another thread has the core does not
    /// count.
    Cpu(u64),
    /// Rounds of arithmetic, each a dependent multiplication and addition of 1 to 2 ns.
    Rounds(u64),
}

/// Passes messages on and keeps the core busy for each, as a stand-in for an operator that computes.
pub struct Load<M: Message> {
    /// Messages in.
    pub input: Input<M>,
    /// The same messages.
    pub out: Output<M>,
    work: LoadWork,
}

impl<M: Message> Load<M> {
    /// Creates an operator that works for each message.
    pub fn new(work: LoadWork) -> Self {
        Load { input: Input::default(), out: Output::default(), work }
    }
}

impl LoadWork {
    fn work(self, cx: &Context) {
        match self {
            LoadWork::Busy(ns) => {
                let begin_ns = cx.now_ns();
                let mut now_ns = begin_ns;
                let mut polls = 0u32;
                // A clock that has not moved for a thousand readings is a manual one.
                while now_ns - begin_ns < ns && (now_ns > begin_ns || polls < 1000) {
                    std::hint::spin_loop();
                    now_ns = cx.now_ns();
                    polls = polls.saturating_add(1);
                }
            }
            LoadWork::Cpu(ns) => {
                let begin_ns = thread_cpu_ns();
                while thread_cpu_ns() - begin_ns < i128::from(ns) {
                    std::hint::spin_loop();
                }
            }
            LoadWork::Rounds(rounds) => {
                let mut x = black_box(1u64);
                for _ in 0..rounds {
                    x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
                }
                black_box(x);
            }
        }
    }
}

/// CPU time of the calling thread on all cores (`CLOCK_THREAD_CPUTIME_ID`).
fn thread_cpu_ns() -> i128 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::ThreadCPUTime);
    i128::from(tv_sec) * 1_000_000_000 + i128::from(tv_nsec)
}

impl<M: Message> Operator for Load<M> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(message) = self.input.pop(cx) {
            self.work.work(cx);
            self.out.push(cx, message)?;
        }
        Ok(Step::Wait)
    }

    fn settable(&self) -> &'static [&'static str] {
        &["busy", "cpu", "count"]
    }

    fn set(&mut self, _: &mut Context, name: &str, value: &Value) -> Result<(), Error> {
        self.work = match name {
            "busy" => LoadWork::Busy(ns(name, value.read(name)?)?),
            "cpu" => LoadWork::Cpu(ns(name, value.read(name)?)?),
            _ => LoadWork::Rounds(value.read(name)?),
        };
        Ok(())
    }
}

/// Work per message: a time (`busy`, `cpu`) or an amount (`count`).
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LoadParameters {
    /// Time per message on the run's clock, including time in which another thread has the core; no load
    /// under a manual clock.
    #[serde(default)]
    busy: Option<Seconds>,
    /// CPU time per message: time in which another thread has the core does not count. Also works under a
    /// manual clock.
    #[serde(default)]
    cpu: Option<Seconds>,
    /// Rounds of arithmetic per message, of 1 to 2 ns each.
    #[serde(default)]
    count: Option<u64>,
}

fn ns(name: &str, time: Seconds) -> Result<u64, Error> {
    let wrong = || Error::new(format!("`{name}` is {time}: it must be from 0 s to 584 years"));
    time.as_ns().ok_or_else(wrong)
}

fn load<M: Message>(p: &LoadParameters, _: &Folders) -> Result<Load<M>, Error> {
    let work = match (p.busy, p.cpu, p.count) {
        (Some(time), None, None) => LoadWork::Busy(ns("busy", time)?),
        (None, Some(time), None) => LoadWork::Cpu(ns("cpu", time)?),
        (None, None, Some(rounds)) => LoadWork::Rounds(rounds),
        (None, None, None) => {
            return Err(Error::new(
                "needs `busy` or `cpu` (a time) or `count` (an amount): give one of them",
            ));
        }
        _ => return Err(Error::new("has more than one of `busy`, `cpu` and `count`: give one of them")),
    };
    Ok(Load::new(work))
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let text = "passes messages on and keeps the core busy";
    registry.add(Kind::new("load", text, "busy = \"100 us\"", load::<Chunk<f32>>));
    registry.add(Kind::new("load.count", text, "count = 1000", load::<u64>));
}
