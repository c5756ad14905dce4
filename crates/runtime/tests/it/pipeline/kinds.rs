//! Kinds of operators that do little, for reading pipelines.

use onbeat_runtime::{
    Bytes, Chunk, Context, Error, Folders, Hertz, Input, Kind, Operator, Output, Pace, Ports, Registry, Step,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema)]
struct Count {
    /// The last number.
    to: u64,
    #[serde(default)]
    pace: Pace,
    #[serde(default = "Count::rate")]
    rate: Hertz,
}

impl Count {
    fn rate() -> Hertz {
        Hertz(1e3)
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Times {
    /// The factor.
    #[serde(default = "Times::two")]
    by: f32,
    #[serde(default)]
    shape: Shape,
}

impl Times {
    fn two() -> f32 {
        2.0
    }
}

/// A table within the table.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Shape {
    #[serde(default)]
    taps: Vec<f32>,
    #[serde(default)]
    window: Window,
    #[serde(default)]
    small: u8,
}

#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Window {
    #[default]
    Hann,
    BlackmanHarris,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct File {
    /// Name of the file.
    path: String,
    #[serde(default)]
    buffer: Bytes,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Nothing {}

struct Numbers {
    out: Output<u64>,
    next: u64,
    to: u64,
}

impl Operator for Numbers {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.next == self.to {
            return Ok(Step::Done);
        }
        self.next += 1;
        self.out.push(cx, self.next)?;
        Ok(Step::Again)
    }
}

/// Ports only: what it would do is of no interest here.
#[derive(Default)]
struct Shell {
    inputs: Vec<(&'static str, Input<u64>)>,
    outputs: Vec<(&'static str, Output<u64>)>,
    chunk_in: Option<Input<Chunk<f32>>>,
    chunk_out: Option<Output<Chunk<f32>>>,
}

impl Shell {
    fn new(inputs: &[&'static str], outputs: &[&'static str]) -> Self {
        Shell {
            inputs: inputs.iter().map(|name| (*name, Input::default())).collect(),
            outputs: outputs.iter().map(|name| (*name, Output::default())).collect(),
            ..Shell::default()
        }
    }
}

impl Operator for Shell {
    fn ports(&mut self, p: &mut Ports) {
        for (name, port) in &mut self.inputs {
            p.input(name, port);
        }
        for (name, port) in &mut self.outputs {
            p.output(name, port);
        }
        if let Some(port) = &mut self.chunk_in {
            p.input("in", port);
        }
        if let Some(port) = &mut self.chunk_out {
            p.output("out", port);
        }
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        for (_, port) in &mut self.inputs {
            port.pop(cx);
        }
        Ok(Step::Wait)
    }
}

pub fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.add(Kind::new("count", "counts up", "to = 3", |p: &Count, _: &Folders| {
        Ok(Numbers { out: Output::default(), next: 0, to: p.to })
    }));
    registry.add(Kind::new("times", "y = by · x", "by = 3.0", |p: &Times, _: &Folders| {
        if p.by == 0.0 {
            return Err(Error::new("`by` is 0: nothing would come out; choose another factor"));
        }
        if p.by < 0.0 {
            return Err(Error::new("a negative factor turns time around"));
        }
        Ok(Shell::new(&["in"], &["out"]))
    }));
    registry
        .add(Kind::new("add", "a + b", "", |_: &Nothing, _: &Folders| Ok(Shell::new(&["a", "b"], &["out"]))));
    registry.add(Kind::new("end", "takes", "", |_: &Nothing, _: &Folders| Ok(Shell::new(&["in"], &[]))));
    registry.add(Kind::new("chunk.source", "chunks", "", |_: &Nothing, _: &Folders| {
        Ok(Shell { chunk_out: Some(Output::default()), ..Shell::default() })
    }));
    registry.add(Kind::new(
        "chunk.file",
        "chunks to a file",
        "path = \"x\"",
        |p: &File, folders: &Folders| {
            assert!(!folders.output(&p.path).as_os_str().is_empty());
            Ok(Shell { chunk_in: Some(Input::default()), ..Shell::default() })
        },
    ));
    registry
}
