//! The visitor that every operator shows its ports to.

use crate::operator::link::{MakeEdge, MakeInLink, MakeOutLink, in_link, make_edge, out_link};
use crate::operator::link::{MakeSpread, make_spread};
use crate::operator::message::{Message, Value, type_label};
use crate::{Input, Output};
use std::any::{Any, TypeId};

/// Shows an operator's ports to the engine: one line per port in [`Operator::ports`](crate::Operator::ports).
///
/// ```
/// # use onbeat_runtime::{Input, Output, Ports};
/// # struct Add { a: Input<f32>, b: Input<f32>, gain: Input<f32>, out: Output<f32> }
/// # impl Add {
/// fn ports(&mut self, p: &mut Ports) {
///     p.input("a", &mut self.a);
///     p.input("b", &mut self.b);
///     p.input("gain", &mut self.gain).optional();
///     p.output("out", &mut self.out).fresh();
/// }
/// # }
/// ```
pub struct Ports<'v> {
    visit: Visit<'v>,
}

enum Visit<'v> {
    /// Collects the ports and numbers them.
    Describe(&'v mut Described),
    /// Hands out the ends of the planned edges.
    Bind(&'v mut Vec<BoundEnd>),
    /// Exchanges the ends that the ports are connected to with the given ones.
    Swap(&'v mut [BoundEnd]),
}

/// All ports of one operator.
#[derive(Default, Clone)]
pub(crate) struct Described {
    pub inputs: Vec<InputInfo>,
    pub outputs: Vec<OutputInfo>,
}

#[derive(Clone)]
pub(crate) struct InputInfo {
    pub name: String,
    pub message: TypeId,
    pub label: String,
    pub sample_bytes: Option<usize>,
    pub required: bool,
    /// Whether more than one edge may come in, and in which order; `None` for one edge.
    pub merge: Option<Merge>,
    pub holds: usize,
    /// Whether other processes may map the chunks that come in.
    pub shared: bool,
    pub link: MakeInLink,
}

#[derive(Clone)]
pub(crate) struct OutputInfo {
    pub name: String,
    pub message: TypeId,
    pub label: String,
    pub sample_bytes: Option<usize>,
    pub required: bool,
    pub fresh: bool,
    pub make: MakeEdge,
    pub link: MakeOutLink,
    pub spread: MakeSpread,
    /// Whether a value of a file can stand for a message.
    pub takes_value: fn(&Value) -> bool,
}

/// Order in which one port takes the messages of several edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Merge {
    /// By source time, sequence, edge: the same in every run. The operator waits until every open edge has a
    /// message, because an earlier message could still come.
    #[default]
    Ordered,
    /// In the order of arrival, each edge in turn. The operator does not wait for such a port.
    Arrival,
}

/// One end of an edge, before it is bound to its port.
pub(crate) struct BoundEnd {
    pub is_input: bool,
    pub port: usize,
    pub end: Box<dyn Any + Send>,
}

impl<'v> Ports<'v> {
    pub(crate) fn describe(described: &'v mut Described) -> Self {
        Ports { visit: Visit::Describe(described) }
    }

    pub(crate) fn bind(ends: &'v mut Vec<BoundEnd>) -> Self {
        Ports { visit: Visit::Bind(ends) }
    }

    pub(crate) fn swap(ends: &'v mut [BoundEnd]) -> Self {
        Ports { visit: Visit::Swap(ends) }
    }

    /// Takes the ends to bind, for an operator that keeps them for another one.
    pub(crate) fn take_ends(&mut self) -> Vec<BoundEnd> {
        match &mut self.visit {
            Visit::Bind(ends) => std::mem::take(ends),
            _ => Vec::new(),
        }
    }

    /// Declares an input port. It must be connected, and the operator is stepped when every such input has a
    /// message.
    pub fn input<M: Message>(&mut self, name: &str, port: &mut Input<M>) -> InputPort<'_> {
        match &mut self.visit {
            Visit::Describe(described) => {
                port.index = described.inputs.len();
                described.inputs.push(InputInfo {
                    name: name.to_string(),
                    message: TypeId::of::<M>(),
                    label: type_label::<M>(),
                    sample_bytes: M::SAMPLE_BYTES,
                    required: true,
                    merge: None,
                    holds: 1,
                    shared: false,
                    link: in_link::<M>,
                });
                InputPort(described.inputs.last_mut())
            }
            Visit::Bind(ends) => {
                if let Some(end) = take_end(ends, true, port.index) {
                    port.link = *end.downcast().expect("the plan made this end for this type");
                }
                InputPort(None)
            }
            Visit::Swap(ends) => {
                let mut ends = ends.iter_mut().filter(|end| end.is_input && end.port == port.index);
                if let Some(link) = ends.find_map(|end| end.end.downcast_mut()) {
                    std::mem::swap(&mut port.link, link);
                }
                InputPort(None)
            }
        }
    }

    /// Declares an output port. It must be connected.
    pub fn output<M: Message>(&mut self, name: &str, port: &mut Output<M>) -> OutputPort<'_> {
        match &mut self.visit {
            Visit::Describe(described) => {
                port.index = described.outputs.len();
                described.outputs.push(OutputInfo {
                    name: name.to_string(),
                    message: TypeId::of::<M>(),
                    label: type_label::<M>(),
                    sample_bytes: M::SAMPLE_BYTES,
                    required: true,
                    fresh: false,
                    make: make_edge::<M>,
                    link: out_link::<M>,
                    spread: make_spread::<M>,
                    takes_value: M::takes_value,
                });
                OutputPort(described.outputs.last_mut())
            }
            Visit::Bind(ends) => {
                if let Some(end) = take_end(ends, false, port.index) {
                    port.link = *end.downcast().expect("the plan made this end for this type");
                }
                OutputPort(None)
            }
            Visit::Swap(ends) => {
                let mut ends = ends.iter_mut().filter(|end| !end.is_input && end.port == port.index);
                if let Some(link) = ends.find_map(|end| end.end.downcast_mut()) {
                    std::mem::swap(&mut port.link, link);
                }
                OutputPort(None)
            }
        }
    }
}

fn take_end(ends: &mut Vec<BoundEnd>, is_input: bool, port: usize) -> Option<Box<dyn Any + Send>> {
    let at = ends.iter().position(|end| end.is_input == is_input && end.port == port)?;
    Some(ends.swap_remove(at).end)
}

/// Options of an input port.
pub struct InputPort<'v>(Option<&'v mut InputInfo>);

impl InputPort<'_> {
    /// Makes the input optional: it need not be connected, and the operator does not wait for it. A message
    /// still wakes the operator.
    pub fn optional(mut self) -> Self {
        if let Some(info) = &mut self.0 {
            info.required = false;
        }
        self
    }

    /// Allows several edges into the input; see [`Merge`] for the order of their messages.
    pub fn many(mut self, merge: Merge) -> Self {
        if let Some(info) = &mut self.0 {
            info.merge = Some(merge);
        }
        self
    }

    /// Puts the stores of the chunks that come in into files that other processes can map, so that the
    /// operator can [lend](crate::Chunk::place) chunks to them.
    pub fn shared(mut self) -> Self {
        if let Some(info) = &mut self.0 {
            info.shared = true;
        }
        self
    }

    /// Sets the number of chunks that the operator may keep from this input between steps. Default: 1. The
    /// chunk store has that many more.
    pub fn holds(mut self, chunks: usize) -> Self {
        if let Some(info) = &mut self.0 {
            info.holds = chunks;
        }
        self
    }
}

/// Options of an output port.
pub struct OutputPort<'v>(Option<&'v mut OutputInfo>);

impl OutputPort<'_> {
    /// Makes the output optional: it need not be connected. Messages pushed to an unconnected output are
    /// dropped.
    pub fn optional(mut self) -> Self {
        if let Some(info) = &mut self.0 {
            info.required = false;
        }
        self
    }

    /// States that the output sends only new chunks, never a chunk of an input. So the inputs may have larger
    /// quanta.
    pub fn fresh(mut self) -> Self {
        if let Some(info) = &mut self.0 {
            info.fresh = true;
        }
        self
    }
}
