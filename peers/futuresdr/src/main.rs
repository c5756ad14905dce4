//! Dummy source → saxpy operators → benchmark sink in FutureSDR 0.8.

use anyhow::Result;
use futuresdr::prelude::*;
use futuresdr::runtime::config;
use futuresdr::runtime::dev::prelude::*;
use futuresdr::runtime::scheduler::{FlowScheduler, SmolScheduler};
use saxpy_kernel::{Affine, Count, Request, Variant, program};
use std::hint::black_box;

/// Gives on all the room that there is, and writes nothing.
#[derive(Block)]
struct DummySource<O: CpuBufferWriter<Item = f32> = DefaultCpuWriter<f32>> {
    #[output]
    output: O,
}

impl<O: CpuBufferWriter<Item = f32>> Kernel for DummySource<O> {
    async fn work(&mut self, _: &mut WorkIo, _: &mut MessageOutputs, _: &BlockMeta) -> Result<()> {
        let room = self.output.slice().len();
        self.output.produce(room);
        Ok(())
    }
}

#[derive(Block)]
struct Saxpy<I: CpuBufferReader<Item = f32> = DefaultCpuReader<f32>, O: CpuBufferWriter<Item = f32> = DefaultCpuWriter<f32>> {
    #[input]
    input: I,
    #[output]
    output: O,
    affine: Affine,
}

impl<I: CpuBufferReader<Item = f32>, O: CpuBufferWriter<Item = f32>> Kernel for Saxpy<I, O> {
    async fn work(&mut self, _: &mut WorkIo, _: &mut MessageOutputs, _: &BlockMeta) -> Result<()> {
        let (x, y) = (self.input.slice(), self.output.slice());
        let len = x.len().min(y.len());
        if len > 0 {
            self.affine.out_of_place(&x[..len], &mut y[..len]);
            self.input.consume(len);
            self.output.produce(len);
        }
        Ok(())
    }
}

#[derive(Block)]
struct Sink<I: CpuBufferReader<Item = f32> = DefaultCpuReader<f32>> {
    #[input]
    input: I,
    count: Count,
}

impl<I: CpuBufferReader<Item = f32>> Kernel for Sink<I> {
    async fn work(&mut self, _: &mut WorkIo, _: &mut MessageOutputs, _: &BlockMeta) -> Result<()> {
        let len = self.input.slice().len();
        if len > 0 {
            self.count.add(len);
            self.input.consume(len);
        }
        Ok(())
    }
}

const VARIANTS: &[Variant] = &[
    Variant { name: "default", how: "its default scheduler and buffers", in_place: false, quantum: 32 << 10, cores: &[1, 2] },
    Variant { name: "pinned", how: "its default scheduler, threads pinned", in_place: false, quantum: 32 << 10, cores: &[1, 2] },
    Variant { name: "flow", how: "its flow scheduler", in_place: false, quantum: 32 << 10, cores: &[1, 2] },
    Variant { name: "flow_64k", how: "its flow scheduler, buffers of 64 KiB", in_place: false, quantum: 64 << 10, cores: &[1, 2] },
];

fn main() {
    program("futuresdr", "0.8.0", VARIANTS, |request, count| match chain(request, count) {
        Ok(()) => "it ended too early".to_owned(),
        Err(error) => error.to_string(),
    });
}

fn chain(request: &Request, count: Count) -> Result<()> {
    // Its threads inherit these cores, and it makes one for each.
    let mut cores = rustix::thread::CpuSet::new();
    request.on.iter().take(request.cores).for_each(|&core| cores.set(core));
    rustix::thread::sched_setaffinity(None, &cores)?;
    let variant = &VARIANTS[request.variant];
    config::set("buffer_size", variant.quantum as u64);
    let affine = black_box(Affine::new(1.0, 0.0));
    let mut graph = Flowgraph::new();
    let source = graph.add(DummySource::<DefaultCpuWriter<f32>> { output: Default::default() })?;
    let saxpy = || Saxpy::<DefaultCpuReader<f32>, DefaultCpuWriter<f32>> {
        input: Default::default(),
        output: Default::default(),
        affine,
    };
    let first = graph.add(saxpy())?;
    graph.stream_dyn(&source, "output", &first, "input")?;
    let mut last = first;
    for _ in 1..request.kernels {
        let next = graph.add(saxpy())?;
        graph.stream_dyn(&last, "output", &next, "input")?;
        last = next;
    }
    let sink = graph.add(Sink::<DefaultCpuReader<f32>> { input: Default::default(), count })?;
    graph.stream_dyn(&last, "output", &sink, "input")?;
    match variant.name {
        "default" => Runtime::with_scheduler(SmolScheduler::with_config(request.cores, false)).run(graph)?,
        "pinned" => Runtime::with_scheduler(SmolScheduler::with_config(request.cores, true)).run(graph)?,
        _ => Runtime::with_scheduler(FlowScheduler::new()).run(graph)?,
    };
    Ok(())
}
