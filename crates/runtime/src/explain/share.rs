//! From times to shares of the lateness.

use super::case::Case;
use super::split::{Took, What};
use onbeat_trace::CauseClass;
use onbeat_trace::cause::Part;

/// Returns parts whose `late_ns` sum to the lateness. Each part's share of it is that of its time beyond the
/// usual. If the total of these times is less than the lateness, the rest was usual computing: the limit is
/// below the need of the operators.
pub(super) fn share(case: &Case<'_>, took: Took) -> Vec<Part> {
    let late_ns = case.end_ns.saturating_sub(case.due_ns).saturating_sub(case.limit_ns);
    let mut parts: Vec<(What, u64)> = took.excess.into_iter().collect();
    let excess_ns: u64 = parts.iter().map(|(_, ns)| ns).sum();
    let mut late = if excess_ns >= late_ns {
        divide(late_ns, &parts.iter().map(|(_, ns)| *ns).collect::<Vec<_>>())
    } else {
        parts.iter().map(|(_, ns)| *ns).collect()
    };
    let rest_ns = late_ns - late.iter().sum::<u64>();
    if rest_ns > 0 {
        let usual: Vec<(u32, u64)> = took.usual.into_iter().filter(|(_, ns)| *ns > 0).collect();
        let shares = divide(rest_ns, &usual.iter().map(|(_, ns)| *ns).collect::<Vec<_>>());
        for ((operator, ns), share) in usual.iter().zip(&shares) {
            let what = What {
                class: CauseClass::OwnCompute,
                name: case.operators[*operator as usize].name.clone(),
                operator: Some(*operator),
                core: None,
                detail: Some("as usual".to_owned()),
            };
            parts.push((what, *ns));
            late.push(*share);
        }
        if usual.is_empty() {
            let what = What {
                class: CauseClass::Unexplained,
                name: String::new(),
                operator: None,
                core: None,
                detail: None,
            };
            parts.push((what, rest_ns));
            late.push(rest_ns);
        }
    }
    let mut parts: Vec<Part> = parts
        .into_iter()
        .zip(late)
        .map(|((what, took_ns), late_ns)| Part {
            class: what.class,
            name: what.name,
            operator: what.operator.map(|operator| case.operators[operator as usize].name.clone()),
            core: what.core,
            detail: what.detail,
            origin: None,
            took_ns,
            late_ns,
        })
        .collect();
    // The unexplained part comes last, independent of its weight.
    parts.sort_by_key(|part| (part.class == CauseClass::Unexplained, std::cmp::Reverse(part.took_ns)));
    parts
}

/// Divides `total` in proportion to `weights`, exactly: the weights with the largest remainders get one more.
pub(super) fn divide(total: u64, weights: &[u64]) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    if sum == 0 {
        return vec![0; weights.len()];
    }
    let exact = |weight: &u64| u128::from(*weight) * u128::from(total);
    let mut shares: Vec<u64> = weights.iter().map(|weight| (exact(weight) / sum) as u64).collect();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(exact(&weights[at]) % sum));
    let missing = total - shares.iter().sum::<u64>();
    order.into_iter().take(missing as usize).for_each(|at| shares[at] += 1);
    shares
}

#[cfg(test)]
mod tests {
    use super::divide;

    #[test]
    fn shares_sum_to_the_whole() {
        assert_eq!(divide(10, &[1, 1, 1]), [4, 3, 3]);
        assert_eq!(divide(7, &[0, 5]), [0, 7]);
        assert_eq!(divide(0, &[3, 4]), [0, 0]);
        assert_eq!(
            divide(u64::MAX, &[u64::MAX, u64::MAX, 1]).iter().map(|ns| u128::from(*ns)).sum::<u128>(),
            u64::MAX.into()
        );
        assert_eq!(divide(5, &[]), [0; 0]);
    }
}
