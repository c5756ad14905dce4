//! A thousand random graphs against a plain sequential reference: fan-out, ordered fan-in, rate changes, joins, tags,
//! mixed quanta and capacities.

#[path = "random/operators.rs"]
mod operators;
#[path = "random/reference.rs"]
mod reference;
#[path = "random/spec.rs"]
mod spec;

use onbeat_runtime::{ClockKind, Options};
use spec::Spec;

/// Runs one random graph with quanta and capacities of its own for every edge.
fn check(seed: u64) {
    let spec = Spec::random(seed);
    let expected = reference::evaluate(&spec);
    let (graph, results) = spec.build(|random| (4096 << random.below(5), 1 + random.below(64) as usize));
    let options = Options { clock: ClockKind::Manual, ..Options::default() };
    let record = graph.run(&options).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{spec:#?}"));
    assert_eq!(record.result.lost, 0, "seed {seed}");
    for (node, (result, expected)) in results.iter().zip(&expected).enumerate() {
        let result = result.lock().unwrap();
        assert!(result.same_as(expected), "seed {seed}: node {node} differs\n{spec:#?}");
    }
}

#[test]
fn a_thousand_random_graphs_equal_the_reference() {
    for seed in 0..1000 {
        check(seed);
    }
}

#[test]
fn quanta_and_capacities_change_nothing() {
    for seed in [3, 14, 15, 92, 65, 35] {
        let spec = Spec::random(seed);
        let expected = reference::evaluate(&spec);
        for quantum in [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10] {
            for capacity in [1, 2, 3, 4, 7, 16, 64] {
                let (graph, results) = spec.build(|_| (quantum, capacity));
                graph.run(&Options::default()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
                for (result, expected) in results.iter().zip(&expected) {
                    let same = result.lock().unwrap().same_as(expected);
                    assert!(same, "seed {seed}, quantum {quantum}, capacity {capacity}");
                }
            }
        }
    }
}
