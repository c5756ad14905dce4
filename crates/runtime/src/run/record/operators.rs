//! Section of the record on operators.

use super::RunEnd;
use super::copies;
use super::report::PartReport;
use crate::plan::Plan;
use onbeat_trace::Histogram;
use onbeat_trace::record::{OperatorRecord, OperatorState};

/// Record of each operator in the plan's order, with replicas added up.
pub(super) fn operators(plan: &Plan, reports: &mut [PartReport], end: &RunEnd) -> Vec<OperatorRecord> {
    let mut operators: Vec<_> = reports.iter_mut().flat_map(|report| report.operators.drain(..)).collect();
    // The parts of a thread that does not come back report nothing.
    let mut is_reported = vec![false; plan.operators.len()];
    operators.iter().for_each(|&(number, ..)| is_reported[number] = true);
    let unknown = |number| (number, unknown(plan, number), None);
    operators.extend((0..is_reported.len()).filter(|&number| !is_reported[number]).map(unknown));
    operators.sort_by_key(|&(number, ..)| number);
    let operators = operators.into_iter().map(|(number, record, steps)| {
        match steps.zip(end.recorded_steps.get(number)) {
            None => (record, None),
            Some((mut steps, recorded)) => {
                steps.merge(recorded);
                (copies::whole_operator(record, &steps), Some(steps))
            }
        }
    });
    let mut operators = match plan.recipe.is_some() {
        true => copies::operators(operators.map(|(record, steps)| (record, steps.unwrap_or_default()))),
        false => operators.map(|(record, _)| record).collect(),
    };
    mark_failed(plan, &mut operators, end);
    operators
}

/// Sets the state of the operator whose fault has ended the run, unless it never started.
fn mark_failed(plan: &Plan, operators: &mut [OperatorRecord], end: &RunEnd) {
    let Some(fault) = end.faults.iter().find_map(|fault| fault.operator) else { return };
    let name = &plan.operators[fault].name;
    if let Some(OperatorRecord { state, .. }) = operators.iter_mut().find(|it| it.name == *name)
        && *state != OperatorState::NotStarted
    {
        *state = OperatorState::Failed;
    }
}

/// Record of an operator that no part has reported.
fn unknown(plan: &Plan, number: usize) -> OperatorRecord {
    let operator = &plan.operators[number];
    OperatorRecord {
        name: operator.name.clone(),
        kind: operator.kind.clone(),
        worker: plan.pools[plan.parts[operator.part].pool].name.clone(),
        steps: 0,
        timed_steps: 0,
        step: Histogram::new().summary(),
        steps_by_time: None,
        busy_ns: 0,
        share: 0.0,
        deadline_ns: operator.deadline_ns,
        late: 0,
        copies: 0,
        restarts: 0,
        workers: 1,
        losses: Vec::new(),
        measured: Vec::new(),
        state: OperatorState::Waiting,
    }
}
