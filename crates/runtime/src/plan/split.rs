//! Split of the operators into parts for `pinned`: each worker gets a contiguous part of the order down the
//! graph, and the parts cost about the same.

/// Cost of an operator for one message of its source, in any unit that all costs share.
pub(super) struct Cost {
    pub cost: f64,
    /// Whether the operator has no inputs.
    pub source: bool,
}

/// Part of each operator, in order. There are at most `parts` parts, and none is empty.
///
/// Parts are filled from the front: each takes operators until it has its fair share of the rest.
/// It takes fewer if the other parts could not stay below the least possible maximum otherwise.
/// For M operators of equal cost (and ends that cost nothing) on N parts, this gives the allocation of the
/// published pipeline benchmarks: the first M mod N parts have one operator more. The source is in the first
/// part and the sink in the last.
pub(super) fn split(costs: &[Cost], parts: usize) -> Vec<usize> {
    let weighted = costs.iter().filter(|cost| cost.cost > 0.0).count();
    let parts = parts.clamp(1, weighted.max(1));
    let limit = least_maximum(costs, parts);
    // Number of parts needed from an operator to the end, if each may cost `limit`.
    let needed = parts_needed(costs, limit);
    let mut left: f64 = costs.iter().map(|cost| cost.cost).sum();
    let mut left_weighted = weighted;
    let mut part_of = Vec::with_capacity(costs.len());
    let mut at = 0;
    for part in 0..parts {
        let others = parts - part - 1;
        let share = left / (others + 1) as f64;
        let mut sum = 0.0;
        while at < costs.len() {
            let Cost { cost, source } = costs[at];
            let enough = at_least(sum, share) && others > 0;
            // An operator without cost stays with its predecessor; a source begins a new part.
            let goes_on = if enough { cost == 0.0 && !source } else { at_least(limit, sum + cost) };
            // The other parts must be able to take the rest, and each needs an operator with a cost.
            let must = others == 0 || needed[at] > others;
            let may = others == 0 || left_weighted > others || cost == 0.0;
            if !(must || goes_on && may) {
                break;
            }
            part_of.push(part);
            sum += cost;
            left_weighted -= usize::from(cost > 0.0);
            at += 1;
        }
        left -= sum;
    }
    part_of
}

/// `a >= b`, with a tolerance for rounding.
fn at_least(a: f64, b: f64) -> bool {
    a >= b - 1e-9 * b.abs()
}

/// Least possible cost of the most expensive part, over all cuts.
fn least_maximum(costs: &[Cost], parts: usize) -> f64 {
    let total: f64 = costs.iter().map(|cost| cost.cost).sum();
    let most = costs.iter().map(|cost| cost.cost).fold(0.0, f64::max);
    let (mut low, mut high) = (most.max(total / parts as f64), total);
    let fits = |limit: f64| parts_needed(costs, limit).first().is_none_or(|&needed| needed <= parts);
    if fits(low) {
        return low;
    }
    // 60 halvings: the answer is then exact to the last bits that sums of costs have.
    for _ in 0..60 {
        let middle = low + (high - low) / 2.0;
        if fits(middle) { high = middle } else { low = middle }
    }
    high
}

/// Number of parts that the operators from each one on need, filled from the front.
fn parts_needed(costs: &[Cost], limit: f64) -> Vec<usize> {
    // End of a part that begins at each operator, by two moving ends; then the counts, from the back.
    let mut next = vec![costs.len(); costs.len()];
    let (mut end, mut sum) = (0, 0.0);
    for begin in 0..costs.len() {
        while end < costs.len() && (end == begin || at_least(limit, sum + costs[end].cost)) {
            sum += costs[end].cost;
            end += 1;
        }
        next[begin] = end;
        sum -= costs[begin].cost;
    }
    let mut needed = vec![0; costs.len() + 1];
    for begin in (0..costs.len()).rev() {
        needed[begin] = 1 + needed[next[begin]];
    }
    needed
}
