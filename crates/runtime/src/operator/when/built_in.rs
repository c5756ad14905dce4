//! The conditions that come with the engine.

use super::readable::ReadableCondition;
use super::{Condition, Event, Gate, How, Readiness, Requirement, View, Waker, When};
use crate::base::error::Error;
use crate::operator::ticker::Ticks;

/// A condition as the engine checks it.
pub(crate) type Compiled = Box<dyn Condition>;

/// Makes the conditions of an operator. `inputs` are the names of all its inputs. The plan has checked that
/// the inputs in the conditions exist.
pub(crate) fn compile(when: Vec<When>, inputs: &[String]) -> Vec<Compiled> {
    let one = |When(requirement)| compile_one(requirement, inputs);
    when.into_iter().filter_map(one).collect()
}

fn compile_one(requirement: Requirement, all: &[String]) -> Option<Compiled> {
    let input = &|name: &str| all.iter().position(|port| port == name).unwrap_or(0);
    Some(match requirement {
        // The edges count their room.
        Requirement::Room { .. } => return None,
        Requirement::Messages { port, least } => {
            Box::new(InputsCondition::new(vec![port], How::All, least, None, input))
        }
        Requirement::Inputs { ports, how, least, timeout_ns } => {
            let ports = if ports.is_empty() { all.to_vec() } else { ports };
            Box::new(InputsCondition::new(ports, how, least, timeout_ns, input))
        }
        Requirement::Batch { port, size, delay_ns } => {
            Box::new(BatchCondition { input: input(&port), port, size, delay_ns, open: 0, since_ns: None })
        }
        Requirement::Count(steps) => Box::new(CountCondition(steps)),
        Requirement::Gate(gate) => Box::new(GateCondition(gate)),
        Requirement::Event(event) => Box::new(EventCondition { event, seen: 0, used: 0 }),
        Requirement::Period { period_ns, overrun } => {
            Box::new(PeriodCondition { ticks: Ticks::new(period_ns, overrun).ok()? })
        }
        Requirement::ChunkRoom(chunks) => Box::new(ChunkRoomCondition(chunks)),
        Requirement::Readable(file) => Box::new(ReadableCondition(file)),
        Requirement::AnyOf(list) => Box::new(AnyOfCondition(compile(list, all))),
        Requirement::Own(own) => own.0,
        // The plan has refused it.
        Requirement::Misused(_) => return None,
    })
}

struct InputsCondition {
    ports: Vec<(String, usize)>,
    how: How,
    least: usize,
    timeout_ns: Option<u64>,
    /// On the run's clock; the begin of the run before the first step.
    last_ns: Option<u64>,
}

impl InputsCondition {
    fn new(
        ports: Vec<String>,
        how: How,
        least: usize,
        timeout_ns: Option<u64>,
        input: &dyn Fn(&str) -> usize,
    ) -> Self {
        let ports = ports.into_iter().map(|port| (port.clone(), input(&port))).collect();
        InputsCondition { ports, how, least, timeout_ns, last_ns: None }
    }
}

impl Condition for InputsCondition {
    fn check(&mut self, view: &View<'_>) -> Result<Readiness, Error> {
        let closed = |port: usize| view.is_closed_at(port);
        let enough = |port: usize| view.messages_at(port) >= self.least;
        let mut ports = self.ports.iter().map(|&(_, port)| port);
        let holds = view.inputs_are_waived()
            || match self.how {
                How::All => ports.all(|port| enough(port) || closed(port)),
                // The rest of an ended input is processed. An ended input without messages does not cause a
                // step.
                How::Any => {
                    ports.clone().any(|port| enough(port) || closed(port) && view.messages_at(port) > 0)
                        || ports.all(closed)
                }
                How::Sum => {
                    ports.clone().map(|port| view.messages_at(port)).fold(0, usize::saturating_add)
                        >= self.least
                        || ports.all(closed)
                }
            };
        let Some(timeout_ns) = self.timeout_ns.filter(|_| !holds) else {
            return Ok(if holds { Readiness::Holds } else { Readiness::Waits });
        };
        let end_ns = self.last_ns.unwrap_or(view.start_ns()).saturating_add(timeout_ns);
        Ok(if view.now_ns() >= end_ns { Readiness::Holds } else { Readiness::Until(end_ns) })
    }

    fn stepped(&mut self, view: &View<'_>) {
        if self.timeout_ns.is_some() {
            self.last_ns = Some(view.now_ns());
        }
    }

    fn describe(&self) -> String {
        let names: Vec<&str> = self.ports.iter().map(|(name, _)| name.as_str()).collect();
        let least = self.least;
        match (self.how, names.as_slice()) {
            (How::Sum, _) => format!("{least} messages at {} together", names.join(" and ")),
            (_, [name]) => format!("{least} messages at {name}"),
            (How::Any, _) => format!("{least} messages at {}", names.join(" or ")),
            (How::All, _) => format!("{least} messages each at {}", names.join(" and ")),
        }
    }
}

struct BatchCondition {
    port: String,
    input: usize,
    size: usize,
    delay_ns: u64,
    /// Messages with a smaller number belong to a batch that was full or late, however many steps take them.
    open: u64,
    /// When the first message of the next batch was seen.
    since_ns: Option<u64>,
}

impl Condition for BatchCondition {
    fn check(&mut self, view: &View<'_>) -> Result<Readiness, Error> {
        let (messages, taken) = (view.messages_at(self.input), view.taken_at(self.input));
        let come = taken + messages as u64;
        self.since_ns = (come > self.open).then(|| self.since_ns.unwrap_or_else(|| view.now_ns()));
        if view.is_closed_at(self.input) || view.inputs_are_waived() || messages > 0 && taken < self.open {
            return Ok(Readiness::Holds);
        }
        let Some(since_ns) = self.since_ns.filter(|_| messages > 0) else { return Ok(Readiness::Waits) };
        let end_ns = since_ns.saturating_add(self.delay_ns);
        if messages < self.size && view.now_ns() < end_ns {
            return Ok(Readiness::Until(end_ns));
        }
        (self.open, self.since_ns) = (come, None);
        Ok(Readiness::Holds)
    }

    fn describe(&self) -> String {
        format!("{} messages at {}, or {} ns after the first", self.size, self.port, self.delay_ns)
    }
}

struct CountCondition(u64);

impl Condition for CountCondition {
    fn check(&mut self, view: &View<'_>) -> Result<Readiness, Error> {
        Ok(if view.steps() < self.0 { Readiness::Holds } else { Readiness::Never })
    }

    fn describe(&self) -> String {
        format!("one of its {} steps", self.0)
    }
}

struct GateCondition(Gate);

impl Condition for GateCondition {
    fn check(&mut self, view: &View<'_>) -> Result<Readiness, Error> {
        Ok(if self.0.is_open() || view.is_stopping() { Readiness::Holds } else { Readiness::Waits })
    }

    fn describe(&self) -> String {
        format!("{} to open", self.0.title())
    }

    fn attach(&mut self, waker: &Waker) {
        self.0.attach(waker);
    }

    fn is_outside(&self) -> bool {
        true
    }
}

struct EventCondition {
    event: Event,
    /// Number of rings at the last check, and how many of them have led to a step.
    seen: u64,
    used: u64,
}

impl Condition for EventCondition {
    fn check(&mut self, view: &View<'_>) -> Result<Readiness, Error> {
        // In this order: an event clone that is gone has rung before.
        let alive = self.event.is_alive();
        self.seen = self.event.rung();
        Ok(if self.seen > self.used || view.is_stopping() {
            Readiness::Holds
        } else if alive {
            Readiness::Waits
        } else {
            Readiness::Never
        })
    }

    fn stepped(&mut self, _: &View<'_>) {
        self.used = self.seen;
    }

    fn describe(&self) -> String {
        format!("{} to be rung", self.event.title())
    }

    fn attach(&mut self, waker: &Waker) {
        self.event.attach(waker);
    }

    fn is_outside(&self) -> bool {
        true
    }
}

struct PeriodCondition {
    ticks: Ticks,
}

impl Condition for PeriodCondition {
    fn check(&mut self, view: &View<'_>) -> Result<Readiness, Error> {
        if view.is_stopping() {
            // Messages in flight get through without waiting for ticks.
            return Ok(Readiness::Holds);
        }
        self.ticks.leave_out(view.cx.skips());
        let start_ns = view.start_ns();
        let now_ns = (!view.is_fast()).then(|| view.now_ns().saturating_sub(start_ns));
        let mut note = |text| view.note(text);
        match self.ticks.look(now_ns, &mut note)? {
            Some(due_ns) => Ok(Readiness::Until(start_ns.saturating_add(due_ns))),
            None => {
                let due_ns = self.ticks.due_ns();
                view.asks.tick.set(Some((due_ns, start_ns.saturating_add(due_ns))));
                Ok(Readiness::Holds)
            }
        }
    }

    fn stepped(&mut self, view: &View<'_>) {
        self.ticks.next(view.is_fast());
    }

    fn describe(&self) -> String {
        format!("tick {} of its period", self.ticks.number())
    }
}

struct ChunkRoomCondition(usize);

impl Condition for ChunkRoomCondition {
    fn check(&mut self, view: &View<'_>) -> Result<Readiness, Error> {
        let short = view.of.stores.iter().find(|&&store| view.cx.stores[store].free() < self.0);
        if let Some(&store) = short {
            view.asks.chunks.set(Some((store, self.0)));
            return Ok(Readiness::Waits);
        }
        Ok(Readiness::Holds)
    }

    fn describe(&self) -> String {
        format!("{} free chunks", self.0)
    }
}

struct AnyOfCondition(Vec<Compiled>);

impl Condition for AnyOfCondition {
    fn check(&mut self, view: &View<'_>) -> Result<Readiness, Error> {
        let mut best = Readiness::Never;
        for condition in &mut self.0 {
            best = match (best, condition.check(view)?) {
                (_, Readiness::Holds) => return Ok(Readiness::Holds),
                (Readiness::Until(a), Readiness::Until(b)) => Readiness::Until(a.min(b)),
                (Readiness::Until(time_ns), _) | (_, Readiness::Until(time_ns)) => Readiness::Until(time_ns),
                (Readiness::Waits, _) | (_, Readiness::Waits) => Readiness::Waits,
                (_, Readiness::Never) => Readiness::Never,
            };
        }
        Ok(best)
    }

    fn stepped(&mut self, view: &View<'_>) {
        for condition in &mut self.0 {
            condition.stepped(view);
        }
    }

    fn describe(&self) -> String {
        self.0.iter().map(|condition| condition.describe()).collect::<Vec<_>>().join(" or ")
    }

    fn attach(&mut self, waker: &Waker) {
        for condition in &mut self.0 {
            condition.attach(waker);
        }
    }

    fn is_outside(&self) -> bool {
        self.0.iter().any(|condition| condition.is_outside())
    }
}
