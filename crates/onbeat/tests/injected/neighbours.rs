//! Neighbours that change chunks in place are run as one step, and told of one by one.

use crate::alone;
use crate::pipeline::{Beat, Log, busy, options, run};
use crate::score::{Expected, score};
use onbeat::prelude::*;
use onbeat::trace::CauseClass;
use onbeat::{Graph, InPlace, Map};

/// Takes long now and then.
#[derive(Clone)]
struct Moody {
    log: Log,
    left: u32,
}

impl Map for Moody {
    type Sample = f32;
    fn map(&mut self, samples: &mut [f32]) {
        samples.iter_mut().for_each(|x| *x += 1.0);
        self.left -= 1;
        if self.left == 0 {
            self.left = 8;
            self.log.note(|| busy(2_000_000));
        }
    }
}

#[derive(Clone)]
struct Even;

impl Map for Even {
    type Sample = f32;
    fn map(&mut self, samples: &mut [f32]) {
        samples.iter_mut().for_each(|x| *x *= 0.5);
    }
}

#[test]
fn one_of_several_that_are_run_as_one_step() {
    alone(|| {
        let log = Log::default();
        let mut graph = Graph::new("neighbours");
        let chunks = Beat::new(|out: &mut Output<Chunk<f32>>, cx, _| {
            let chunk = out.chunk(cx).expect("all have come home");
            out.push(cx, chunk)
        });
        let beat = graph.add("beat", chunks);
        let even = graph.add("even", InPlace::new(Even));
        let moody = graph.add("moody", InPlace::new(Moody { log: log.clone(), left: 8 }));
        let last = graph.add("last", InPlace::new(Even));
        let end = graph.sink("end", |_: Chunk<f32>| ());
        graph.connect(beat, |b| &b.out, even, |e| &e.input);
        graph.connect(even, |e| &e.out, moody, |m| &m.input);
        graph.connect(moody, |m| &m.out, last, |l| &l.input);
        graph.connect(last, |l| &l.out, end, |e| &e.input);
        graph.deadline(end, 1_000_000);
        let mut options = options("f:20");
        options.pools[0].operators = ["beat", "even", "moody", "last", "end"].map(str::to_owned).into();
        let plan = graph.plan(&options).expect("a plan").to_string();
        assert!(plan.contains("as one step: beat, even, moody, last"), "{plan}");
        let (record, start_ns) = run(graph, &options);
        let explained = record.explained.as_ref().expect("it was looked for");
        assert!(explained.sampled.is_empty(), "each of their steps is timed: {explained:?}");
        let expected = Expected { class: CauseClass::OwnCompute, name: "moody" };
        score("a neighbour", &record, start_ns, &log.all(), expected).is_good();
    });
}
