//! Sources and sinks as the ends of a chain.

use super::{Add, Numbers, Sink, Taken, quarter};
use crate::watchdog::watched;
use onbeat_runtime::{
    Chunk, Context, Error, Graph, InPlace, Info, Inline, Input, Operator, Options, Output, Ports, Scheduler,
    Shortcut, Step,
};

/// One that has no state, and so may be there several times.
struct Alike<O>(O, fn() -> O);

impl<O: Operator> Operator for Alike<O> {
    fn ports(&mut self, p: &mut Ports) {
        self.0.ports(p);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        self.0.step(cx)
    }
    fn replica(&self) -> Option<Box<dyn Operator>> {
        Some(Box::new(Alike((self.1)(), self.1)))
    }
}

#[test]
fn ends_without_a_state_wander_with_a_run() {
    let numbers = || Numbers { out: Output::default(), sent: 0, limit: 1 };
    let sink = || Sink { input: Input::default(), taken: Taken::default(), slow: false };
    let parts = |is_alike: bool, sink_cost_ns: f64| {
        let mut graph = Graph::new("wanders");
        if is_alike {
            graph.add("numbers", Alike(numbers(), numbers));
            graph.add("sink", Alike(sink(), sink));
        } else {
            graph.add("numbers", numbers());
            graph.add("sink", sink());
        }
        graph.add("add", InPlace::new(quarter()));
        graph.connect_names("numbers.out", "add.in");
        graph.connect_names("add.out", "sink.in");
        let mut options = Options { scheduler: Scheduler::Event, workers: Some(2), ..Options::default() };
        options.costs.insert("sink".to_string(), sink_cost_ns);
        graph.plan(&options).unwrap().parts.len()
    };
    assert_eq!((parts(true, 10.0), parts(true, 50_000.0), parts(false, 10.0)), (1, 2, 3));
}

/// Sends a message while it fills a chunk.
#[derive(Default)]
struct Hasty {
    out: Output<Chunk<f64>>,
}

impl Operator for Hasty {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        self.out.push(cx, chunk)?;
        Ok(Step::Again)
    }
    fn inline(&mut self) -> Option<&mut dyn Inline> {
        Some(self)
    }
}

impl Inline for Hasty {
    fn shortcut(&self) -> Shortcut {
        Shortcut::Fill(self.out.chunks())
    }
    fn fill(&mut self, cx: &mut Context, _: &mut [u8], _: &mut Info) -> bool {
        self.step(cx).is_ok()
    }
}

#[test]
fn who_sends_while_it_fills_is_told() {
    watched(60, || {
        let mut graph = Graph::new("hasty");
        let hasty = graph.add("hasty", Hasty::default());
        let add = graph.add("add", InPlace::new(Add { x: 1.0, panics_at: None }));
        let end = graph.sink("end", |_: Chunk<f64>| ());
        graph.connect(hasty, |it| &it.out, add, |it| &it.input);
        graph.connect(add, |it| &it.out, end, |it| &it.input);
        let error = graph.run(&Options::default()).unwrap_err().to_string();
        assert!(error.contains("hasty") && error.contains("its `fill` sent a message"), "{error}");
    });
}

/// Sends `left` chunks. Checks whether one is left before it asks for a chunk.
struct Few {
    out: Output<Chunk<f64>>,
    left: usize,
    fills: bool,
}

impl Operator for Few {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.left == 0 {
            return Ok(Step::Done);
        }
        let Some(chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        self.left -= 1;
        self.out.push(cx, chunk)?;
        Ok(Step::Again)
    }
    fn inline(&mut self) -> Option<&mut dyn Inline> {
        self.fills.then_some(self)
    }
}

impl Inline for Few {
    fn shortcut(&self) -> Shortcut {
        Shortcut::Fill(self.out.chunks())
    }
    fn fill(&mut self, _: &mut Context, _: &mut [u8], _: &mut Info) -> bool {
        let fills = self.left > 0;
        self.left -= usize::from(fills);
        fills
    }
}

/// Keeps all.
#[derive(Default)]
struct Keeper(Input<Chunk<f64>>, Vec<Chunk<f64>>);

impl Operator for Keeper {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.0);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        self.1.extend(self.0.pop(cx));
        Ok(Step::Wait)
    }
}

#[test]
fn who_needs_no_chunk_does_not_wait_for_one() {
    watched(60, || {
        for chunks in 1..40 {
            let ends = |fills: bool| {
                let mut graph = Graph::new("kept");
                let some = graph.add("some", Few { out: Output::default(), left: chunks, fills });
                let add = graph.add("add", InPlace::new(quarter()));
                let keeper = graph.add("keeper", Keeper::default());
                let _ = graph.connect(some, |it| &it.out, add, |it| &it.input);
                let _ = graph.connect(add, |it| &it.out, keeper, |it| &it.0);
                graph.run(&Options::default()).is_ok()
            };
            assert_eq!(ends(true), ends(false), "{chunks} chunks");
        }
    });
}
