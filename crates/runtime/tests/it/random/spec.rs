//! Random graphs: their description, and the graph that is built of it.

use crate::kernels::{Average, Keep, Repeat, Saw, Scale, Symmetric};
use crate::operators::{Add, ChunkSink, ChunkSource, Filter, MessageSink, MessageSource, Slow, Total};
use crate::reference::Data;
use crate::splitmix::Random;
use onbeat_runtime::{Graph, InPlace, Merge, Operator, Stream};
use std::sync::{Arc, Mutex};

/// One operator. Inputs are numbers of earlier nodes.
#[derive(Debug, Clone)]
pub enum Node {
    /// Samples of a fixed pattern, with tags on some.
    Samples { seed: u64, len: u64 },
    /// Messages `0..len` at times `n * period`.
    Messages { len: u64, period: u64 },
    /// y = a·x, in place.
    Scale { input: usize, a: f32 },
    /// Every k-th sample.
    Keep { input: usize, k: u32 },
    /// Every sample k times.
    Repeat { input: usize, k: u32 },
    /// Mean of the last n samples.
    Average { input: usize, n: usize },
    /// Sum of the samples at most `reach` away, of every k-th sample.
    Symmetric { input: usize, reach: usize, k: u32 },
    /// Adds the number of the sample, less whole periods.
    Saw { input: usize, period: u64 },
    /// Sample by sample, until one of both ends.
    Add { a: usize, b: usize },
    /// Messages whose value leaves a rest of 0.
    Filter { input: usize, modulus: u64 },
    /// Messages by time, sequence, edge.
    Merge { inputs: Vec<usize> },
    /// Each value added to the total of those before, which comes back round a cycle.
    Total { input: usize, start: u64 },
}

#[derive(Debug, Clone)]
pub struct Spec {
    pub nodes: Vec<Node>,
    slow: bool,
    seed: u64,
}

/// How fast a stream flows beside others of its component: joins need equal rates, or the queues between fill
/// up.
#[derive(Clone, Copy, PartialEq)]
struct Flow {
    component: usize,
    up: u64,
    down: u64,
}

impl Spec {
    pub fn random(seed: u64) -> Spec {
        let mut random = Random(seed);
        let mut nodes = Vec::new();
        let mut flows: Vec<(bool, Flow)> = Vec::new();
        let sources = 1 + random.below(3);
        for _ in 0..sources {
            let component = nodes.len();
            let samples = random.below(3) > 0;
            nodes.push(if samples {
                Node::Samples { seed: random.next(), len: random.below(40_000) }
            } else {
                Node::Messages { len: random.below(300), period: 1 + random.below(5) }
            });
            flows.push((samples, Flow { component, up: 1, down: 1 }));
        }
        for _ in 0..1 + random.below(12) {
            let at = random.below(nodes.len() as u64) as usize;
            let (samples, flow) = flows[at];
            let node = if samples {
                sample_node(&mut random, &mut flows, at)
            } else {
                message_node(&mut random, &mut flows, at)
            };
            let Some(node) = node else { continue };
            let rated = match node {
                Node::Keep { k, .. } | Node::Symmetric { k, .. } => {
                    reduced(flow.up, flow.down * u64::from(k))
                }
                Node::Repeat { k, .. } => reduced(flow.up * u64::from(k), flow.down),
                _ => (flow.up, flow.down),
            };
            if rated.0 > 16 || rated.1 > 64 {
                continue;
            }
            let component = flows[at].1.component;
            flows.push((samples, Flow { component, up: rated.0, down: rated.1 }));
            nodes.push(node);
        }
        Spec { nodes, slow: false, seed }
    }

    /// Every step takes a random time first.
    pub fn slowed(self) -> Spec {
        Spec { slow: true, ..self }
    }

    /// The graph, with a sink on every node, and what the sinks will have received. `size` gives quantum and
    /// capacity for each edge.
    pub fn build(
        &self,
        mut size: impl FnMut(&mut Random) -> (usize, usize),
    ) -> (Graph, Vec<Arc<Mutex<Data>>>) {
        let mut random = Random(self.seed ^ 0xabcd);
        let mut graph = Graph::new("random");
        let slow = self.slow.then_some(self.seed);
        let mut results = Vec::new();
        for (number, node) in self.nodes.iter().enumerate() {
            let name = format!("n{number}");
            put(&mut graph, slow, name.clone(), node.operator());
            if let Node::Total { start, .. } = node {
                let back = format!("back{number}");
                put(&mut graph, slow, back.clone(), Box::new(Filter::new(1, None)));
                let (_, capacity) = size(&mut random);
                graph.connect_names(format!("{name}.out"), format!("{back}.in")).capacity(capacity);
                let again = graph.connect_names(format!("{back}.out"), format!("{name}.before"));
                again.capacity(capacity).initial(*start);
            }
            for (input, port) in node.inputs() {
                let (quantum, capacity) = size(&mut random);
                let edge = graph.connect_names(format!("n{input}.out"), format!("{name}.{port}"));
                let edge = edge.capacity(capacity);
                if node.sends_samples() {
                    edge.quantum(quantum);
                }
            }
        }
        for (number, node) in self.nodes.iter().enumerate() {
            let result = Arc::new(Mutex::new(Data::default()));
            results.push(Arc::clone(&result));
            let sink: Box<dyn Operator> = if node.sends_samples() {
                Box::new(ChunkSink::new(result))
            } else {
                Box::new(MessageSink::new(result))
            };
            put(&mut graph, slow, format!("sink{number}"), sink);
            let (_, capacity) = size(&mut random);
            graph.connect_names(format!("n{number}.out"), format!("sink{number}.in")).capacity(capacity);
        }
        (graph, results)
    }
}

/// Adds an operator, whose steps take a random time first if there is a seed for that.
fn put(graph: &mut Graph, slow: Option<u64>, name: String, operator: Box<dyn Operator>) {
    match slow {
        Some(seed) => graph.add_boxed(name, "slow", Box::new(Slow::new(operator, seed))),
        None => graph.add_boxed(name, "plain", operator),
    };
}

impl Node {
    fn operator(&self) -> Box<dyn Operator> {
        match self {
            Node::Samples { seed, len } => Box::new(ChunkSource::new(*seed, *len)),
            Node::Messages { len, period } => Box::new(MessageSource::new(*len, *period)),
            Node::Scale { a, .. } => Box::new(InPlace::new(Scale(*a))),
            Node::Keep { k, .. } => Box::new(Stream::new(Keep::new(*k))),
            Node::Repeat { k, .. } => Box::new(Stream::new(Repeat::new(*k))),
            Node::Average { n, .. } => Box::new(Stream::new(Average::new(*n))),
            Node::Symmetric { reach, k, .. } => Box::new(Stream::new(Symmetric::new(*reach, *k))),
            Node::Saw { period, .. } => Box::new(InPlace::new(Saw::new(*period))),
            Node::Add { .. } => Box::<Add>::default(),
            Node::Filter { modulus, .. } => Box::new(Filter::new(*modulus, None)),
            Node::Total { .. } => Box::<Total>::default(),
            Node::Merge { .. } => Box::new(Filter::new(1, Some(Merge::Ordered))),
        }
    }

    /// Numbers of the nodes that it takes from, each with the port for them.
    fn inputs(&self) -> Vec<(usize, &'static str)> {
        match self {
            Node::Samples { .. } | Node::Messages { .. } => Vec::new(),
            Node::Add { a, b } => vec![(*a, "a"), (*b, "b")],
            Node::Merge { inputs } => inputs.iter().map(|&input| (input, "in")).collect(),
            Node::Scale { input, .. }
            | Node::Keep { input, .. }
            | Node::Repeat { input, .. }
            | Node::Average { input, .. }
            | Node::Symmetric { input, .. }
            | Node::Saw { input, .. }
            | Node::Filter { input, .. }
            | Node::Total { input, .. } => vec![(*input, "in")],
        }
    }

    /// Whether it sends chunks of samples; other nodes send single messages.
    fn sends_samples(&self) -> bool {
        !matches!(self, Node::Messages { .. } | Node::Filter { .. } | Node::Total { .. } | Node::Merge { .. })
    }
}

fn reduced(up: u64, down: u64) -> (u64, u64) {
    let (mut a, mut b) = (up, down);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    (up / a, down / a)
}

fn sample_node(random: &mut Random, flows: &mut [(bool, Flow)], at: usize) -> Option<Node> {
    Some(match random.below(10) {
        0 => Node::Scale { input: at, a: 0.5 + random.below(8) as f32 / 4.0 },
        1 => Node::Keep { input: at, k: 2 + random.below(6) as u32 },
        2 => Node::Repeat { input: at, k: 2 + random.below(3) as u32 },
        3 => Node::Average { input: at, n: 1 + random.below(40) as usize },
        4 | 5 => {
            let most = if random.below(4) == 0 { 700 } else { 30 };
            Node::Symmetric { input: at, reach: random.below(most) as usize, k: 1 + random.below(4) as u32 }
        }
        6 => Node::Saw { input: at, period: 1 + random.below(100) },
        _ => {
            let other = random.below(flows.len() as u64) as usize;
            let (a, (samples, b)) = (flows[at].1, flows[other]);
            if !samples || other == at {
                return None;
            }
            if a.component == b.component {
                if a != b {
                    return None;
                }
            } else {
                // From now on both flow together: b's component is scaled so that the two have one rate.
                for (_, flow) in flows.iter_mut().filter(|(_, flow)| flow.component == b.component) {
                    let (up, down) = reduced(flow.up * a.up * b.down, flow.down * a.down * b.up);
                    *flow = Flow { component: a.component, up, down };
                }
            }
            Node::Add { a: at, b: other }
        }
    })
}

fn message_node(random: &mut Random, flows: &mut [(bool, Flow)], at: usize) -> Option<Node> {
    match random.below(4) {
        0 | 1 => return Some(Node::Filter { input: at, modulus: 1 + random.below(4) }),
        2 => return Some(Node::Total { input: at, start: random.below(100) }),
        _ => {}
    }
    // Only streams that do not yet depend on each other: a filter between a fork and a join starves the join.
    let mut inputs = vec![at];
    for other in 0..flows.len() {
        let (samples, flow) = flows[other];
        let apart = inputs.iter().all(|&input| flows[input].1.component != flow.component);
        if !samples && apart && random.below(2) == 0 {
            inputs.push(other);
        }
    }
    let component = flows[at].1.component;
    for &input in &inputs[1..] {
        let joined = flows[input].1.component;
        flows
            .iter_mut()
            .filter(|(_, flow)| flow.component == joined)
            .for_each(|(_, flow)| flow.component = component);
    }
    Some(Node::Merge { inputs })
}
