//! A chunk that is filled again, without a way through its store, is as fresh from it each time.

use crate::watchdog::watched;
use onbeat_runtime::{
    Chunk, Context, Error, Graph, InPlace, Info, Inline, Input, Map, Operator, Options, Output, Ports,
    Shortcut, Step, Tag, Value,
};
use std::sync::{Arc, Mutex};

/// Marks every second chunk with all that its head has room for.
#[derive(Default)]
struct Marker {
    out: Output<Chunk<f32>>,
    sent: u64,
    /// How many of them it was given to fill.
    filled: Arc<Mutex<u64>>,
}

const CHUNKS: u64 = 1000;

/// Writes the head that the chunk with this number must have.
fn mark(number: u64, info: &mut Info) {
    if number.is_multiple_of(2) {
        info.start = 7 * number;
        info.shape = [1, 2, 3];
        info.tags.push(Tag { offset: 0, key: "mark".into(), value: Value::Bool(true) });
    }
}

impl Operator for Marker {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.sent == CHUNKS {
            return Ok(Step::Done);
        }
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        mark(self.sent, chunk.info_mut());
        self.sent += 1;
        self.out.push(cx, chunk)?;
        Ok(Step::Again)
    }
    fn inline(&mut self) -> Option<&mut dyn Inline> {
        Some(self)
    }
}

impl Inline for Marker {
    fn shortcut(&self) -> Shortcut {
        Shortcut::Fill(self.out.chunks())
    }
    fn fill(&mut self, _: &mut Context, _: &mut [u8], info: &mut Info) -> bool {
        if self.sent == CHUNKS {
            return false;
        }
        mark(self.sent, info);
        self.sent += 1;
        *self.filled.lock().unwrap() += 1;
        true
    }
}

struct Same;

impl Map for Same {
    type Sample = f32;
    fn map(&mut self, _: &mut [f32]) {}
}

/// Keeps the heads.
#[derive(Default)]
struct Heads {
    input: Input<Chunk<f32>>,
    seen: Arc<Mutex<Vec<Info>>>,
}

impl Operator for Heads {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(chunk) = self.input.pop(cx) {
            self.seen.lock().unwrap().push(chunk.info().clone());
        }
        Ok(Step::Wait)
    }
    fn inline(&mut self) -> Option<&mut dyn Inline> {
        Some(self)
    }
}

impl Inline for Heads {
    fn shortcut(&self) -> Shortcut {
        Shortcut::Drain(self.input.edge())
    }
    fn drain(&mut self, _: &mut Context, _: &[u8], info: &Info) -> bool {
        self.seen.lock().unwrap().push(info.clone());
        true
    }
}

#[test]
fn a_head_has_what_was_put_into_it_this_time() {
    watched(60, || {
        let (filled, seen) = (Arc::default(), Arc::default());
        let mut graph = Graph::new("marks");
        let marker = graph.add("marker", Marker { filled: Arc::clone(&filled), ..Marker::default() });
        let same = graph.add("same", InPlace::new(Same));
        let heads = graph.add("heads", Heads { seen: Arc::clone(&seen), ..Heads::default() });
        graph.connect(marker, |it| &it.out, same, |it| &it.input);
        graph.connect(same, |it| &it.out, heads, |it| &it.input);
        graph.run(&Options::default()).unwrap();
        assert!(*filled.lock().unwrap() > CHUNKS / 2, "most of them went by direct hand-over");
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len() as u64, CHUNKS);
        for (number, info) in (0..).zip(&*seen) {
            let mut expected = Info::default();
            mark(number, &mut expected);
            assert_eq!((info.start, info.shape), (expected.start, expected.shape), "chunk {number}");
            assert_eq!(info.tags, expected.tags, "chunk {number}");
        }
    });
}
