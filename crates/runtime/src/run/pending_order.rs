//! A pending order: sent to the workers, and not yet answered by all.

use super::handle::OrderError;
use crate::engine::control::Control;
use crate::engine::order::{Order, OrderRequest};
use crate::plan::Plan;
use crate::{Error, FetchedData, Value};
use onbeat_queue::sync::atomic::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Longest time to wait for an answer. Workers answer between two steps.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Interval between two checks of whether a part that does not answer has ended.
const POLL: Duration = Duration::from_millis(10);

/// Receiver of a part's answer.
type Answered = Receiver<Result<(), Error>>;

/// Operators that an order is for.
#[derive(Debug)]
pub(super) enum OrderTarget {
    /// An operator of the plan.
    Operator(usize),
    /// All parts. Once they have carried it out, the run is paused or not.
    All { paused: bool },
}

/// An order that was sent, and may not have been carried out yet.
#[derive(Debug)]
pub(crate) struct PendingOrder {
    control: Arc<Control>,
    plan: Arc<Plan>,
    target: OrderTarget,
    /// Parts that have not answered yet.
    open: VecDeque<(usize, Answered)>,
    /// The first error; otherwise `Ok` once a part has carried out the order.
    answer: Option<Result<(), Error>>,
    /// Name and new value of a parameter, and the sample from which on it holds.
    set: Option<(String, Value, Option<u64>)>,
    /// What an operator hands out, if the order was to do so.
    fetched: Option<Receiver<FetchedData>>,
    deadline: Instant,
}

impl PendingOrder {
    pub(super) fn new(control: &Arc<Control>, plan: &Arc<Plan>, target: OrderTarget) -> Self {
        PendingOrder {
            control: Arc::clone(control),
            plan: Arc::clone(plan),
            target,
            open: VecDeque::new(),
            answer: None,
            set: None,
            fetched: None,
            deadline: Instant::now() + PATIENCE,
        }
    }

    /// Expects what an operator hands out, from its worker.
    pub(super) fn expect(&mut self, fetched: Receiver<FetchedData>) {
        self.fetched = Some(fetched);
    }

    /// Takes what an operator has handed out, once the order was carried out.
    pub fn take_fetched(&mut self) -> Option<FetchedData> {
        self.fetched.take()?.try_recv().ok()
    }

    /// Sends the order to a part, unless the part is gone.
    pub(super) fn send(&mut self, part: usize, order: Order) {
        if let Order::Set { name, value, sample, .. } = &order {
            self.set = Some((name.clone(), value.clone(), *sample));
        }
        let (answer, answered) = mpsc::sync_channel(1);
        if self.control.orders[part].send(OrderRequest { order, answer }).is_ok() {
            self.control.board.call(part);
            self.control.team.wake(part);
            self.open.push_back((part, answered));
        }
    }

    /// Waits for the outcome.
    pub(super) fn wait(mut self) -> Result<(), OrderError> {
        loop {
            if let Some(result) = self.poll(POLL) {
                return result;
            }
        }
    }

    /// Returns the outcome; `None` if a part has not answered within `wait`.
    pub fn poll(&mut self, wait: Duration) -> Option<Result<(), OrderError>> {
        while let Some((part, answered)) = self.open.front() {
            let is_over = self.control.board.is_part_closed(*part);
            // A part that is over may exist for long without reading its orders.
            match answered.recv_timeout(if is_over { Duration::ZERO } else { wait }) {
                Ok(Ok(())) => _ = self.answer.get_or_insert(Ok(())),
                Ok(Err(error)) if !matches!(self.answer, Some(Err(_))) => self.answer = Some(Err(error)),
                Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {}
                Err(RecvTimeoutError::Timeout) if is_over => {}
                Err(RecvTimeoutError::Timeout) if Instant::now() >= self.deadline => {
                    return Some(Err(OrderError::Late { what: self.target_name(*part) }));
                }
                Err(RecvTimeoutError::Timeout) => return None,
            }
            self.open.pop_front();
        }
        Some(self.conclude())
    }

    fn target_name(&self, part: usize) -> String {
        match self.target {
            OrderTarget::Operator(number) => format!("operator `{}`", self.plan.operators[number].name),
            OrderTarget::All { .. } => format!("`{}`", self.plan.parts[part].name),
        }
    }

    /// Outcome, once every part has answered or is over. If all parts are over, so is the run.
    fn conclude(&mut self) -> Result<(), OrderError> {
        match (self.answer.take(), &self.target) {
            (Some(Err(error)), _) => Err(error.into()),
            (Some(Ok(())), OrderTarget::All { paused }) => {
                self.control.paused.store(*paused, Ordering::Relaxed);
                Ok(())
            }
            (Some(Ok(())), OrderTarget::Operator(number)) => {
                if let Some((name, value, sample)) = &self.set {
                    self.control.values.note(&self.plan.operators[*number].name, name, value, *sample);
                }
                Ok(())
            }
            (None, OrderTarget::Operator(number)) if !self.control.board.is_closed() => {
                let name = &self.plan.operators[*number].name;
                Err(Error::new(format!("operator `{name}` has ended")).into())
            }
            (None, _) => Err(OrderError::Over),
        }
    }
}
