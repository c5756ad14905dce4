//! The jobs of `onbeat bench jobs` in FutureSDR 0.8: `fm` and `spectrum`, from file to file.
//!
//!   jobs list
//!   jobs VARIANT JOB FOLDER RESULT CORE,...    {"samples": samples read, "seconds": of the run}

use anyhow::{Context, Result, bail};
use futuresdr::blocks::{Apply, ApplyNM, Fft, FftDirection, FileSink, FileSource, FirBuilder, XlatingFir};
use futuresdr::prelude::*;
use futuresdr::runtime::config;
use futuresdr::runtime::dev::prelude::*;
use futuresdr::runtime::scheduler::SmolScheduler;
use std::f32::consts::TAU;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Name and settings.
const VARIANTS: &[(&str, &str)] = &[
    ("default", "its default scheduler, buffers and file blocks"),
    ("best", "its default scheduler with pinned threads, buffers of 1 MiB, files without threads of their own"),
];

/// Reads a file without the threads of an asynchronous file.
#[derive(Block)]
struct PlainSource<O: CpuBufferWriter<Item = Complex32> = DefaultCpuWriter<Complex32>> {
    #[output]
    output: O,
    file: File,
}

impl<O: CpuBufferWriter<Item = Complex32>> Kernel for PlainSource<O> {
    async fn work(&mut self, io: &mut WorkIo, _: &mut MessageOutputs, _: &BlockMeta) -> Result<()> {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(self.output.slice());
        let mut filled = 0;
        while filled < bytes.len() {
            match self.file.read(&mut bytes[filled..])? {
                0 => {
                    io.finished = true;
                    break;
                }
                count => filled += count,
            }
        }
        self.output.produce(filled / size_of::<Complex32>());
        Ok(())
    }
}

/// Writes a file without the threads of an asynchronous file.
#[derive(Block)]
struct PlainSink<I: CpuBufferReader<Item = f32> = DefaultCpuReader<f32>> {
    #[input]
    input: I,
    file: File,
}

impl<I: CpuBufferReader<Item = f32>> Kernel for PlainSink<I> {
    async fn work(&mut self, io: &mut WorkIo, _: &mut MessageOutputs, _: &BlockMeta) -> Result<()> {
        let samples = self.input.slice();
        let count = samples.len();
        self.file.write_all(bytemuck::cast_slice(samples))?;
        io.finished = self.input.finished();
        self.input.consume(count);
        Ok(())
    }
}

const SIZE: usize = 1024;
const AVERAGE: usize = 16;

/// Means of the power of frames, in dB.
#[derive(Block)]
struct PowerMean<I: CpuBufferReader<Item = Complex32> = DefaultCpuReader<Complex32>, O: CpuBufferWriter<Item = f32> = DefaultCpuWriter<f32>> {
    #[input]
    input: I,
    #[output]
    output: O,
    sums: [f32; SIZE],
    frames: usize,
    /// Factor for a sum.
    scale: f32,
}

impl<I: CpuBufferReader<Item = Complex32>, O: CpuBufferWriter<Item = f32>> PowerMean<I, O> {
    fn new(scale: f32) -> Self {
        let (mut input, mut output) = (I::default(), O::default());
        input.set_min_items(SIZE);
        output.set_min_items(SIZE);
        output.set_min_buffer_size_in_items(SIZE);
        PowerMean { input, output, sums: [0.0; SIZE], frames: 0, scale }
    }
}

impl<I: CpuBufferReader<Item = Complex32>, O: CpuBufferWriter<Item = f32>> Kernel for PowerMean<I, O> {
    async fn work(&mut self, io: &mut WorkIo, _: &mut MessageOutputs, _: &BlockMeta) -> Result<()> {
        let (input, output) = (self.input.slice(), self.output.slice());
        let (mut taken, mut sent) = (0, 0);
        for frame in input.chunks_exact(SIZE) {
            if self.frames + 1 == AVERAGE && output.len() - sent < SIZE {
                break;
            }
            self.sums.iter_mut().zip(frame).for_each(|(sum, x)| *sum += x.norm_sqr());
            self.frames += 1;
            taken += SIZE;
            if self.frames == AVERAGE {
                let row = output[sent..sent + SIZE].iter_mut().zip(&mut self.sums);
                row.for_each(|(to, sum)| *to = 10.0 * (std::mem::take(sum) * self.scale).log10());
                sent += SIZE;
                self.frames = 0;
            }
        }
        let left = input.len() - taken;
        self.input.consume(taken);
        self.output.produce(sent);
        io.finished = self.input.finished() && left < SIZE;
        Ok(())
    }
}

fn taps(path: &Path) -> Result<Vec<f32>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Ok(text.lines().map(str::parse).collect::<Result<_, _>>()?)
}

/// Unconnected ends of a graph: the first and the last block.
type Ends = (BlockId, BlockId);

/// The specification of onbeat's pipeline, with its taps.
fn fm(graph: &mut Flowgraph, folder: &Path) -> Result<Ends> {
    let (rate_hz, audio_hz, tau_s) = (256e3, 48e3, 50e-6);
    let tune = XlatingFir::with_taps(taps(&folder.join("channel.taps"))?, 2, 40e3, rate_hz);
    let mut last = Complex32::new(0.0, 0.0);
    let gain = rate_hz / 2.0 / (TAU * 25e3);
    let demod = Apply::<_, Complex32, f32>::new(move |x| {
        let turn = (x * last.conj()).arg();
        last = *x;
        turn * gain
    });
    let band = FirBuilder::decimating_with_taps::<f32, f32, _>(4, taps(&folder.join("band.taps"))?);
    let mut rate_taps = taps(&folder.join("rate.taps"))?;
    rate_taps.resize(rate_taps.len().next_multiple_of(3), 0.0);
    let rate = FirBuilder::resampling_with_taps::<f32, f32, _>(3, 2, rate_taps);
    // The bilinear transform of 1 / (1 + s tau).
    let k = 2.0 * audio_hz * tau_s;
    let (forward, back) = (1.0 / (k + 1.0), (k - 1.0) / (k + 1.0));
    let (mut x1, mut y1) = (0.0, 0.0);
    let treble = Apply::<_, f32, f32>::new(move |x: &f32| {
        y1 = forward * (x + x1) + back * y1;
        x1 = *x;
        y1
    });
    connect!(graph, tune > demod > band > rate > treble);
    Ok((tune.id(), treble.id()))
}

fn spectrum(graph: &mut Flowgraph) -> Result<Ends> {
    let window: Vec<f32> = (0..SIZE).map(|n| 0.5 - 0.5 * (TAU * n as f32 / SIZE as f32).cos()).collect();
    let scale = 1.0 / (window.iter().sum::<f32>().powi(2) * AVERAGE as f32);
    let weigh = ApplyNM::<_, Complex32, Complex32, SIZE, SIZE>::new(move |frame: &[Complex32], to: &mut [Complex32]| {
        to.iter_mut().zip(frame).zip(&window).for_each(|((to, x), w)| *to = x * w);
    });
    let fft = Fft::with_options(SIZE, FftDirection::Forward, true, None);
    let mean: PowerMean = PowerMean::new(scale);
    connect!(graph, weigh > fft > mean);
    Ok((weigh.id(), mean.id()))
}

fn run(variant: &str, job: &str, folder: &Path, result: &Path, on: &[usize]) -> Result<(u64, f64)> {
    // Its threads inherit these cores, and it makes one for each.
    let mut cores = rustix::thread::CpuSet::new();
    on.iter().for_each(|&core| cores.set(core));
    rustix::thread::sched_setaffinity(None, &cores)?;
    let is_default = match variant {
        "default" => true,
        "best" => false,
        _ => bail!("it has no variant `{variant}`"),
    };
    if !is_default {
        config::set("buffer_size", 1u64 << 20);
    }
    let mut graph = Flowgraph::new();
    let (first, last) = match job {
        "fm" => fm(&mut graph, folder)?,
        "spectrum" => spectrum(&mut graph)?,
        _ => bail!("it has no job `{job}`"),
    };
    let input = folder.join("input");
    let samples = fs::metadata(&input)?.len() / size_of::<Complex32>() as u64;
    if is_default {
        let source = graph.add(FileSource::<Complex32>::new(&input, false))?;
        let sink = graph.add(FileSink::<f32>::new(result))?;
        graph.stream_dyn(source.id(), "output", first, "input")?;
        graph.stream_dyn(last, "output", sink.id(), "input")?;
    } else {
        let source: PlainSource = PlainSource { output: Default::default(), file: File::open(&input)? };
        let sink: PlainSink = PlainSink { input: Default::default(), file: File::create(result)? };
        let (source, sink) = (graph.add(source)?, graph.add(sink)?);
        graph.stream_dyn(source.id(), "output", first, "input")?;
        graph.stream_dyn(last, "output", sink.id(), "input")?;
    }
    let runtime = Runtime::with_scheduler(SmolScheduler::with_config(on.len(), !is_default));
    let begin = Instant::now();
    runtime.run(graph)?;
    Ok((samples, begin.elapsed().as_secs_f64()))
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["list"] => {
            for (name, how) in VARIANTS {
                println!(
                    "{{\"peer\": \"futuresdr\", \"version\": \"0.8.0\", \"variant\": \"{name}\", \"how\": \"{how}\", \
                     \"jobs\": [\"fm\", \"spectrum\"], \"cores\": [1, 2]}}"
                );
            }
        }
        [variant, job, folder, result, on] => {
            let on: Vec<usize> = on.split(',').map(str::parse).collect::<Result<_, _>>()?;
            let (samples, seconds) = run(variant, job, &PathBuf::from(folder), &PathBuf::from(result), &on)?;
            println!("{{\"samples\": {samples}, \"seconds\": {seconds:.9}}}");
        }
        _ => {
            eprintln!("usage: list | VARIANT JOB FOLDER RESULT CORE,...");
            std::process::exit(2);
        }
    }
    Ok(())
}
