//! Parts whose steps are recorded, so that misses can be explained.

use super::Plan;
use crate::base::options::Explain;
use onbeat_trace::record::ClockKind;

/// Whether the steps of a part are recorded, by part.
/// A part is recorded if its pool has an operator whose lateness can lead to a miss.
pub(crate) fn recorded_parts(plan: &Plan) -> Vec<bool> {
    let mut is_recorded = vec![false; plan.parts.len()];
    let is_real = plan.options.clock == ClockKind::Real && plan.options.scale == 1.0;
    if plan.options.explain == Explain::Off || !is_real {
        return is_recorded;
    }
    let ends = plan.paths.iter().filter(|path| path.max_latency_ns.is_some()).map(|path| path.end);
    let limited = |operator: &usize| {
        plan.operators[*operator].deadline_ns.is_some() || plan.operators[*operator].budget_ns.is_some()
    };
    let mut front: Vec<usize> = ends.chain((0..plan.operators.len()).filter(limited)).collect();
    if plan.options.explain == Explain::On {
        return vec![true; plan.parts.len()];
    }
    let mut counts = vec![false; plan.operators.len()];
    while let Some(operator) = front.pop() {
        if !std::mem::replace(&mut counts[operator], true) {
            front.extend(plan.wires.iter().filter(|wire| wire.to == operator).map(|wire| wire.from));
        }
    }
    let pools: Vec<usize> = (0..plan.operators.len())
        .filter(|&operator| counts[operator])
        .map(|operator| plan.parts[plan.operators[operator].part].pool)
        .collect();
    for (part, recorded) in plan.parts.iter().zip(&mut is_recorded) {
        *recorded = pools.contains(&part.pool);
    }
    is_recorded
}
