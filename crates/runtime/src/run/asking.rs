//! An order under way: sent to the workers, and not yet answered by all.

use super::handle::OrderError;
use crate::Error;
use crate::engine::control::Control;
use crate::engine::order::{Order, OrderRequest};
use crate::plan::Plan;
use onbeat_queue::sync::atomic::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How long an answer is waited for. Workers answer between two steps.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Between two looks at what has become of a part that does not answer.
const LOOK: Duration = Duration::from_millis(10);

/// Where the answer of a part comes.
type Answered = Receiver<Result<(), Error>>;

/// Who is asked.
#[derive(Debug)]
pub(super) enum Whom {
    /// An operator of the plan.
    Operator(usize),
    /// All parts. When they have done it, the run is paused or not.
    All { paused: bool },
}

/// An order that was given and may not have been carried out yet.
#[derive(Debug)]
pub(crate) struct Asking {
    control: Arc<Control>,
    plan: Arc<Plan>,
    whom: Whom,
    /// Parts that have not answered yet.
    open: VecDeque<(usize, Answered)>,
    /// The first error, or else that somebody has done it.
    answer: Option<Result<(), Error>>,
    deadline: Instant,
}

impl Asking {
    pub(super) fn new(control: &Arc<Control>, plan: &Arc<Plan>, whom: Whom) -> Self {
        Asking {
            control: Arc::clone(control),
            plan: Arc::clone(plan),
            whom,
            open: VecDeque::new(),
            answer: None,
            deadline: Instant::now() + PATIENCE,
        }
    }

    /// A part that is gone is not asked.
    pub(super) fn send(&mut self, part: usize, order: Order) {
        let (answer, answered) = mpsc::sync_channel(1);
        if self.control.orders[part].send(OrderRequest { order, answer }).is_ok() {
            self.control.board.call(part);
            self.control.team.wake(part);
            self.open.push_back((part, answered));
        }
    }

    /// Waits for what comes of it.
    pub(super) fn wait(mut self) -> Result<(), OrderError> {
        loop {
            if let Some(result) = self.look(LOOK) {
                return result;
            }
        }
    }

    /// What has come of it; `None` when that is not known after `wait` of silence.
    pub fn look(&mut self, wait: Duration) -> Option<Result<(), OrderError>> {
        while let Some((part, answered)) = self.open.front() {
            let is_over = self.control.board.is_part_closed(*part);
            // A part that is over may be there for long without looking at its orders.
            match answered.recv_timeout(if is_over { Duration::ZERO } else { wait }) {
                Ok(Ok(())) => _ = self.answer.get_or_insert(Ok(())),
                Ok(Err(error)) if !matches!(self.answer, Some(Err(_))) => self.answer = Some(Err(error)),
                Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {}
                Err(RecvTimeoutError::Timeout) if is_over => {}
                Err(RecvTimeoutError::Timeout) if Instant::now() >= self.deadline => {
                    return Some(Err(OrderError::Late { what: self.who(*part) }));
                }
                Err(RecvTimeoutError::Timeout) => return None,
            }
            self.open.pop_front();
        }
        Some(self.conclude())
    }

    fn who(&self, part: usize) -> String {
        match self.whom {
            Whom::Operator(number) => format!("operator `{}`", self.plan.operators[number].name),
            Whom::All { .. } => format!("`{}`", self.plan.parts[part].name),
        }
    }

    /// Of parts that are over nobody expects anything; when all are, the run is.
    fn conclude(&mut self) -> Result<(), OrderError> {
        match (self.answer.take(), &self.whom) {
            (Some(Err(error)), _) => Err(error.into()),
            (Some(Ok(())), Whom::All { paused }) => {
                self.control.paused.store(*paused, Ordering::Relaxed);
                Ok(())
            }
            (Some(Ok(())), Whom::Operator(_)) => Ok(()),
            (None, Whom::Operator(number)) if !self.control.board.is_closed() => {
                let name = &self.plan.operators[*number].name;
                Err(Error::new(format!("operator `{name}` has ended")).into())
            }
            (None, _) => Err(OrderError::Over),
        }
    }
}
