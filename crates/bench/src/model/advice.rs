//! Recommendation of a scheduler.

use super::{GraphLoad, MachineCosts, Prediction, WorkerLayout};
use onbeat::trace::words::time;
use std::fmt::Write;

/// A recommendation with its reasons.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// Index of the recommended scheduler among the predictions.
    pub chosen: usize,
    /// Reasons, a sentence each.
    pub why: Vec<String>,
}

/// Minimum gain over the simplest scheduler that justifies more than one worker, because predictions are not
/// exact.
const BETTER: f64 = 1.05;

/// Recommends one of these schedulers. The first is the simplest and wins if the others are hardly better.
/// `None` if there are none.
#[must_use]
pub fn advise(
    workload: &GraphLoad,
    predicted: &[(String, WorkerLayout, Prediction)],
    costs: &MachineCosts,
) -> Option<Advice> {
    let (first_name, _, first) = predicted.first()?;
    let mut chosen = 0;
    for (at, (_, _, prediction)) in predicted.iter().enumerate().skip(1) {
        let least = if chosen == 0 { predicted[0].2.rate * BETTER } else { predicted[chosen].2.rate };
        if prediction.rate > least {
            chosen = at;
        }
    }
    let mut why = Vec::new();
    if workload.is_paced() && first.rate > workload.rate * 1.5 {
        why.push(format!(
            "the sources set the pace: {} per second, and {first_name} could do {}: it has the shortest path",
            count(workload.rate),
            count(first.rate)
        ));
        return Some(Advice { chosen: 0, why });
    }
    let (name, layout, best) = &predicted[chosen];
    why.push(if chosen == 0 {
        format!(
            "no other scheduler is expected to be more than {:.0} % faster than {name}",
            (BETTER - 1.0) * 100.0
        )
    } else {
        format!("{name} is expected to be {:.1} times as fast as {first_name}", best.rate / first.rate)
    });
    why.extend(pairs(workload, layout, costs));
    Some(Advice { chosen, why })
}

/// Compares work with hand-over cost for the neighbours whose separation matters most, at most three.
fn pairs(workload: &GraphLoad, layout: &WorkerLayout, costs: &MachineCosts) -> Vec<String> {
    let mut all: Vec<(f64, String)> = Vec::new();
    for edge in &workload.edges {
        let (from, to) = (&workload.operators[edge.from], &workload.operators[edge.to]);
        let work_ns = from.work_ns() + to.work_ns();
        let way_ns = edge.messages * costs.hand_over(edge.bytes);
        let is_cut = match layout {
            WorkerLayout::Split(worker_of) => worker_of[edge.from] != worker_of[edge.to],
            _ => false,
        };
        let (a, b) = (&from.name, &to.name);
        let (work, way) = (time(work_ns), time(way_ns));
        if is_cut {
            all.push((
                f64::INFINITY,
                format!("cut between {a} and {b}: {work} of work, {way} for a hand-over"),
            ));
        } else if work_ns < way_ns {
            all.push((way_ns / work_ns, format!("merge {a} and {b}: {work} of work, {way} for a hand-over")));
        }
    }
    all.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    all.into_iter().map(|(_, text)| text).take(3).collect()
}

/// Formats a number: "12.3 k", "4.5 M".
fn count(value: f64) -> String {
    let mut text = String::new();
    let _fits = match value {
        value if value < 1e3 => write!(text, "{value:.1}"),
        value if value < 1e6 => write!(text, "{:.1} k", value / 1e3),
        value => write!(text, "{:.1} M", value / 1e6),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::super::{EdgeLoad, OperatorLoad, predict};
    use super::*;

    fn costs() -> MachineCosts {
        MachineCosts {
            hop_ns: 5.0,
            shared_hop_ns: 20.0,
            hand_over_ns: 100.0,
            hand_over_per_kib_ns: 112.5,
            wake_call_ns: 2_000.0,
            wake_ns: 30_000.0,
            clock_ns: 20.0,
        }
    }

    fn pair(step_ns: f64) -> GraphLoad {
        let operator =
            |name: &str| OperatorLoad { name: name.into(), steps: 1.0, step_ns, is_source: name == "a" };
        GraphLoad {
            operators: vec![operator("a"), operator("b")],
            edges: vec![EdgeLoad { from: 0, to: 1, messages: 1.0, bytes: 16384.0, capacity: 4.0 }],
            hop_ns: 5.0,
            ..GraphLoad::default()
        }
    }

    fn advice(workload: &GraphLoad) -> Advice {
        let layouts = [("greedy", WorkerLayout::One), ("pinned", WorkerLayout::Split(vec![0, 1]))];
        let predicted = layouts.map(|(name, layout)| {
            let prediction = predict(workload, &layout, &costs(), false);
            (name.to_owned(), layout, prediction)
        });
        advise(workload, &predicted, &costs()).expect("there are some")
    }

    #[test]
    fn light_neighbours_stay_together_and_heavy_ones_part() {
        let light = advice(&pair(200.0));
        assert_eq!(light.chosen, 0);
        assert_eq!(light.why[1], "merge a and b: 400 ns of work, 1.9 µs for a hand-over");
        let heavy = advice(&pair(50_000.0));
        assert_eq!(heavy.chosen, 1);
        assert!(heavy.why[0].starts_with("pinned is expected to be 1.9 times as fast"), "{:?}", heavy.why);
        assert_eq!(heavy.why[1], "cut between a and b: 100 µs of work, 1.9 µs for a hand-over");
    }

    #[test]
    fn who_is_paced_stays_on_one_worker() {
        let workload = GraphLoad { rate: 100.0, idle: 0.9, ..pair(50_000.0) };
        let paced = advice(&workload);
        assert_eq!(paced.chosen, 0);
        assert!(paced.why[0].contains("100.0 per second, and greedy could do 10.0 k"), "{:?}", paced.why);
    }
}
