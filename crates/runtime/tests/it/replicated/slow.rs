//! Where steps are slow, lanes that run dry are filled first: all that does is change an order.

use super::*;

/// Lets one of `every` messages through, and has a state.
struct Few {
    input: Input<u64>,
    out: Output<u64>,
    every: u64,
    seen: u64,
}

impl Operator for Few {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(number) = self.input.pop(cx) {
            self.seen += 1;
            if self.seen.is_multiple_of(self.every) {
                self.out.push(cx, number)?;
            }
        }
        Ok(Step::Wait)
    }
}

/// source → a → few → b → sink, and from few to another sink: two stretches, the second of which gets one
/// of `every` messages.
fn graph(every: u64, rounds: u64, capacity: usize) -> (Graph, [Arc<Mutex<Vec<u64>>>; 2]) {
    let mut graph = Graph::new("slow");
    let taken: [Arc<Mutex<Vec<u64>>>; 2] = Default::default();
    graph.add("count", Count::new(Some(400), false));
    graph.add("a", Work::new(Does::AddsOne { rounds }, 1));
    graph.add("few", Few { input: Input::default(), out: Output::default(), every, seen: 0 });
    graph.add("b", Work::new(Does::AddsOne { rounds }, 2));
    for (name, taken) in ["end", "branch"].into_iter().zip(&taken) {
        let taken = Arc::clone(taken);
        graph.sink(name, move |n: u64| taken.lock().unwrap().push(n));
    }
    for (from, to) in [
        ("count.out", "a.in"),
        ("a.out", "few.in"),
        ("few.out", "b.in"),
        ("b.out", "end.in"),
        ("few.out", "branch.in"),
    ] {
        let _ = graph.connect_names(from, to).capacity(capacity);
    }
    (graph, taken)
}

#[test]
fn nobody_is_left_waiting_for_lanes_that_get_few_messages() {
    watched(120, || {
        for every in [1, 3, 50, 1000] {
            for (workers, capacity) in [(2, 1), (2, 8), (3, 2), (4, 16)] {
                // Up to some tens of microseconds each.
                let (graph, [end, branch]) = graph(every, 1000, capacity);
                let record = graph.run(&replicated(workers)).unwrap();
                let name = format!("1 of {every}, {workers} workers, queues of {capacity}");
                assert_eq!(record.result.lost, 0, "{name}");
                let plain = || (1..=400).skip(every as usize - 1).step_by(every as usize);
                assert_eq!(*branch.lock().unwrap(), plain().collect::<Vec<u64>>(), "{name}");
                assert_eq!(*end.lock().unwrap(), plain().map(|n| n + 1).collect::<Vec<u64>>(), "{name}");
            }
        }
    });
}
