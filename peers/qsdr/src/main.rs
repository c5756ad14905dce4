//! Dummy source → saxpy operators → benchmark sink in qsdr 0.1.

use anyhow::Result;
use futures::executor::block_on;
use qsdr::BlockObject;
use qsdr::buffers::CacheAlignedBuffer;
use qsdr::prelude::*;
use qsdr::scheduler::{run, sequence2, sequence3, sequence4, sequence5, sequence6, sequence7, sequence8};
use saxpy_kernel::{Affine, Count, Request, Variant, program};
use std::hint::black_box;

type B = CacheAlignedBuffer<f32>;

/// Gives on what came back, and writes nothing.
#[derive(Block, Debug)]
#[work(WorkInPlace)]
struct DummySource<Cin = Spsc, Cout = Spsc>
where
    Cin: Channel,
    Cin::Receiver<Quantum<B>>: Receiver<Quantum<B>>,
    Cout: Channel,
{
    #[port]
    input: PortSourceQ<B, Cin>,
    #[port]
    output: PortOutQ<B, Cout>,
}

impl<Cin, Cout> WorkInPlace<Quantum<B>> for DummySource<Cin, Cout>
where
    Cin: Channel,
    Cin::Receiver<Quantum<B>>: Receiver<Quantum<B>>,
    Cout: Channel,
{
    async fn work_in_place(&mut self, _: &mut Quantum<B>) -> Result<WorkStatus> {
        Ok(Run)
    }
}

#[derive(Block, Debug)]
#[work(WorkInPlace)]
struct Saxpy<Cin = Spsc, Cout = Spsc>
where
    Cin: Channel,
    Cin::Receiver<Quantum<B>>: Receiver<Quantum<B>>,
    Cout: Channel,
{
    #[port]
    input: PortInQ<B, Cin>,
    #[port]
    output: PortOutQ<B, Cout>,
    affine: Affine,
}

impl<Cin, Cout> WorkInPlace<Quantum<B>> for Saxpy<Cin, Cout>
where
    Cin: Channel,
    Cin::Receiver<Quantum<B>>: Receiver<Quantum<B>>,
    Cout: Channel,
{
    async fn work_in_place(&mut self, quantum: &mut Quantum<B>) -> Result<WorkStatus> {
        self.affine.in_place(quantum.as_mut_slice());
        Ok(Run)
    }
}

#[derive(Block, Debug)]
#[work(WorkSink)]
struct Sink<Cin = SpscRef>
where
    Cin: Channel,
{
    #[port]
    input: PortRefInQ<B, Cin>,
    count: Count,
}

impl<Cin: Channel> WorkSink<Quantum<B>> for Sink<Cin> {
    async fn work_sink(&mut self, quantum: &Quantum<B>) -> Result<BlockWorkStatus> {
        self.count.add(quantum.as_slice().len());
        Ok(BlockWorkStatus::Run)
    }
}

/// Number of buffers per variant; 0 for one more than the number of cores.
const BUFFERS: [usize; 5] = [0, 1, 8, 8, 8];

const VARIANTS: &[Variant] = &[
    Variant { name: "default", how: "pinned in order, 16 KiB, N+1 buffers", in_place: true, quantum: 16 << 10, cores: &[1, 2] },
    Variant { name: "one_32k", how: "one buffer of 32 KiB", in_place: true, quantum: 32 << 10, cores: &[1] },
    Variant { name: "8x16k", how: "pinned in order, 8 buffers of 16 KiB", in_place: true, quantum: 16 << 10, cores: &[2] },
    Variant { name: "8x64k", how: "pinned in order, 8 buffers of 64 KiB", in_place: true, quantum: 64 << 10, cores: &[2] },
    Variant { name: "tokio", how: "each block a task of tokio, 8 buffers of 16 KiB", in_place: true, quantum: 16 << 10, cores: &[2] },
];

fn main() {
    program("qsdr", "0.1.0", VARIANTS, measure);
}

fn measure(request: &Request, count: Count) -> String {
    match chain(request, count) {
        Ok(()) => "it ended too early".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// A chain's operators, connected, before anything runs them.
struct Blocks {
    source: BlockObject<DummySource<Spsc, Spsc>>,
    middles: Vec<BlockObject<Saxpy<Spsc, Spsc>>>,
    last: BlockObject<Saxpy<Spsc, SpscRef>>,
    sink: BlockObject<Sink<SpscRef>>,
}

fn chain(request: &Request, count: Count) -> Result<()> {
    anyhow::ensure!(request.kernels <= 6, "this program has chains of 6 at most");
    anyhow::ensure!(request.cores <= request.kernels, "with fewer operators than cores there is nothing to split");
    let blocks = connected(request, count)?;
    match request.cores {
        _ if VARIANTS[request.variant].name == "tokio" => on_tokio(request, blocks),
        1 => on_one_core(request, blocks),
        _ => on_two_cores(request, blocks),
    }
}

fn connected(request: &Request, count: Count) -> Result<Blocks> {
    let len = VARIANTS[request.variant].quantum / size_of::<f32>();
    let buffers = match BUFFERS[request.variant] {
        0 => request.cores + 1,
        buffers => buffers,
    };
    let affine = black_box(Affine::new(1.0, 0.0));
    let mut graph = Flowgraph::new();
    let source = graph.add_block(DummySource::<Spsc, Spsc> { input: Default::default(), output: Default::default() });
    let saxpy = || Saxpy::<Spsc, Spsc> { input: Default::default(), output: Default::default(), affine };
    let middles: Vec<_> = (1..request.kernels).map(|_| graph.add_block(saxpy())).collect();
    let last = graph
        .add_block(Saxpy::<Spsc, SpscRef> { input: Default::default(), output: Default::default(), affine });
    let sink = graph.add_block(Sink::<SpscRef> { input: Default::default(), count });
    let all: Vec<_> = (0..buffers).map(|_| Quantum::new(B::from_value(len, 0.5))).collect();
    let mut circle = graph.new_circuit(all.into_iter());
    for (at, middle) in middles.iter().enumerate() {
        match at {
            0 => graph.connect(&mut circle, source.output(), middle.input())?,
            _ => graph.connect(&mut circle, middles[at - 1].output(), middle.input())?,
        }
    }
    match middles.last() {
        Some(middle) => graph.connect(&mut circle, middle.output(), last.input())?,
        None => graph.connect(&mut circle, source.output(), last.input())?,
    }
    graph.connect_with_return(&mut circle, last.output(), sink.input(), source.input())?;
    let mut graph = graph.validate()?;
    let source = graph.extract_block(source)?;
    let middles = middles.into_iter().map(|middle| graph.extract_block(middle)).collect::<Result<Vec<_>>>()?;
    let (last, sink) = (graph.extract_block(last)?, graph.extract_block(sink)?);
    Ok(Blocks { source, middles, last, sink })
}

fn on_tokio(request: &Request, blocks: Blocks) -> Result<()> {
    pin(request.on[0]);
    let on = request.on.clone();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(request.cores)
        .on_thread_start(move || pin(on[next.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % on.len()]))
        .build()?;
    runtime.spawn(run(blocks.source.into_stream()));
    for middle in blocks.middles {
        runtime.spawn(run(middle.into_stream()));
    }
    runtime.spawn(run(blocks.last.into_stream()));
    runtime.block_on(async { runtime.spawn(run(blocks.sink.into_stream())).await? })
}

fn on_one_core(request: &Request, blocks: Blocks) -> Result<()> {
    let (source, last, sink) = (blocks.source.into_stream(), blocks.last.into_stream(), blocks.sink.into_stream());
    let mut middles = blocks.middles.into_iter().map(|middle| middle.into_stream());
    let mut next = || middles.next().expect("as many as were counted");
    pin(request.on[0]);
    match request.kernels {
        1 => block_on(run(sequence3(source, last, sink))),
        2 => block_on(run(sequence4(source, next(), last, sink))),
        3 => block_on(run(sequence5(source, next(), next(), last, sink))),
        4 => block_on(run(sequence6(source, next(), next(), next(), last, sink))),
        5 => block_on(run(sequence7(source, next(), next(), next(), next(), last, sink))),
        _ => block_on(run(sequence8(source, next(), next(), next(), next(), next(), last, sink))),
    }
}

/// The first core has one operator more where they are odd in number.
fn on_two_cores(request: &Request, blocks: Blocks) -> Result<()> {
    let first = request.kernels.div_ceil(2);
    let (source, last, sink) = (blocks.source.into_stream(), blocks.last.into_stream(), blocks.sink.into_stream());
    let mut middles: Vec<_> = blocks.middles.into_iter().map(|middle| middle.into_stream()).collect();
    let mut second = middles.split_off(first).into_iter();
    let mut next = || second.next().expect("as many as were counted");
    let core = request.on[0];
    let mut before = middles.into_iter();
    let thread = std::thread::spawn(move || {
        pin(core);
        let mut next = || before.next().expect("as many as were counted");
        match first {
            1 => block_on(run(sequence2(source, next()))),
            2 => block_on(run(sequence3(source, next(), next()))),
            _ => block_on(run(sequence4(source, next(), next(), next()))),
        }
    });
    pin(request.on[1]);
    match request.kernels - first {
        1 => block_on(run(sequence2(last, sink)))?,
        2 => block_on(run(sequence3(next(), last, sink)))?,
        _ => block_on(run(sequence4(next(), next(), last, sink)))?,
    }
    thread.join().expect("it does not panic")
}

fn pin(core: usize) {
    if !core_affinity::set_for_current(core_affinity::CoreId { id: core }) {
        eprintln!("core {core} was refused");
    }
}
