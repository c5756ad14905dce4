//! `onbeat bench`

use super::{measured, show};
use crate::arguments::bench::{
    BenchCommand, BenchPipelineArguments, EchoArguments, ExplainArguments, JobsArguments, OverheadArguments,
    QueueArguments, RealtimeArguments, SaxpyArguments,
};
use crate::documents;
use crate::error::CommandError;
use crate::maker::FileMaker;
use crate::output;
use crate::progress::BenchProgress;
use onbeat::Registry;
use onbeat::trace::replace::replace;
use onbeat_bench::{echo, explain, jobs, overhead, pipeline, queue, realtime, saxpy};
use std::path::{Path, PathBuf};

pub fn bench(command: &BenchCommand, registry: &Registry, abort: fn() -> !) -> Result<u8, CommandError> {
    match command {
        BenchCommand::Overhead(arguments) => overhead(arguments, abort),
        BenchCommand::Queue(arguments) => queue(arguments, abort),
        BenchCommand::Saxpy(arguments) => saxpy(arguments, abort),
        BenchCommand::Jobs(arguments) => jobs(arguments, abort),
        BenchCommand::Pipeline(arguments) => pipeline(arguments, registry, abort),
        BenchCommand::Plan(arguments) => measured::shapes(arguments, abort),
        BenchCommand::Realtime(arguments) => realtime(arguments, abort),
        BenchCommand::Explain(arguments) => explain(arguments, abort),
        BenchCommand::Echo(arguments) => echo(arguments, abort),
        BenchCommand::EchoServer => Ok(u8::from(!echo::serve())),
    }
}

fn overhead(arguments: &OverheadArguments, abort: fn() -> !) -> Result<u8, CommandError> {
    if let Some(path) = &arguments.plot {
        check_plot(path)?;
    }
    let mut progress = BenchProgress::new("overhead", abort);
    let found = overhead::run(&arguments.settings(), &mut progress);
    progress.clear();
    let found = found.map_err(|error| CommandError::new(error.to_string()))?;
    if let Some(path) = &arguments.plot {
        replace(path, found.to_svg().as_bytes())
            .map_err(|error| CommandError::new(format!("--plot: {error}")))?;
    }
    drop(progress);
    show(&documents::overhead(&found, arguments.plot.as_deref()), arguments.format)?;
    Ok(0)
}

fn queue(arguments: &QueueArguments, abort: fn() -> !) -> Result<u8, CommandError> {
    if let Some(path) = &arguments.plot {
        check_plot(path)?;
    }
    let mut progress = BenchProgress::new("queue", abort);
    let found = queue::run(&arguments.settings(), &mut progress);
    progress.clear();
    let found = found.map_err(|error| CommandError::new(error.to_string()))?;
    if let Some(path) = &arguments.plot {
        replace(path, found.to_svg().as_bytes())
            .map_err(|error| CommandError::new(format!("--plot: {error}")))?;
    }
    drop(progress);
    show(&documents::queue(&found.result, arguments.plot.as_deref()), arguments.format)?;
    Ok(0)
}

fn saxpy(arguments: &SaxpyArguments, abort: fn() -> !) -> Result<u8, CommandError> {
    if let Some(path) = &arguments.plot {
        check_plot(path)?;
    }
    let mut progress = BenchProgress::new("saxpy", abort);
    let found = saxpy::run(&arguments.settings(), &mut progress);
    progress.clear();
    let found = found.map_err(|error| CommandError::new(error.to_string()))?;
    if let Some(path) = &arguments.plot {
        replace(path, found.to_svg().as_bytes())
            .map_err(|error| CommandError::new(format!("--plot: {error}")))?;
    }
    drop(progress);
    show(&documents::saxpy(&found, arguments.plot.as_deref()), arguments.format)?;
    Ok(0)
}

fn jobs(arguments: &JobsArguments, abort: fn() -> !) -> Result<u8, CommandError> {
    if let Some(path) = &arguments.plot {
        check_plot(path)?;
    }
    let mut progress = BenchProgress::new("jobs", abort);
    let found = jobs::run(&arguments.settings(), &mut progress);
    progress.clear();
    let found = found.map_err(|error| CommandError::new(error.to_string()))?;
    if let Some(path) = &arguments.plot {
        replace(path, found.to_svg().as_bytes())
            .map_err(|error| CommandError::new(format!("--plot: {error}")))?;
    }
    drop(progress);
    show(&documents::jobs(&found, arguments.plot.as_deref()), arguments.format)?;
    Ok(0)
}

fn pipeline(
    arguments: &BenchPipelineArguments,
    registry: &Registry,
    abort: fn() -> !,
) -> Result<u8, CommandError> {
    if arguments.pipeline.has_scheduler() {
        return Err(CommandError::new("--scheduler: bench pipeline measures several schedulers")
            .help("choose them with --mode"));
    }
    let (mut maker, _) = FileMaker::new(&arguments.pipeline, registry, "bench pipeline")?;
    let mut progress = BenchProgress::new("pipeline", abort);
    let found = pipeline::run(&mut maker, &arguments.settings(), &mut progress);
    progress.clear();
    let found = found.map_err(|error| CommandError::new(error.to_string()))?;
    drop(progress);
    show(&documents::bench_pipeline(&found), arguments.format)?;
    Ok(0)
}

fn realtime(arguments: &RealtimeArguments, abort: fn() -> !) -> Result<u8, CommandError> {
    let in_folder = |name: &str| arguments.output.as_ref().map(|folder| folder.join(name));
    let mut plots: Vec<PathBuf> = arguments.plot.iter().cloned().collect();
    if let Some(folder) = &arguments.output {
        std::fs::create_dir_all(folder).map_err(|error| {
            CommandError::new(format!("--output {}: {error}", folder.display()))
                .help("name a writable folder")
        })?;
        plots.extend(in_folder("realtime.svg"));
    }
    for path in &plots {
        check_plot(path)?;
    }
    let mut progress = BenchProgress::new("realtime", abort);
    let found = realtime::run(&arguments.settings(), &mut progress);
    progress.clear();
    let found = found.map_err(|error| CommandError::new(error.to_string()))?;
    let mut files = plots;
    for path in &files {
        let shown = path.display();
        replace(path, found.to_svg().as_bytes())
            .map_err(|error| CommandError::new(format!("plot {shown}: {error}")))?;
    }
    if let Some(path) = in_folder("realtime.json") {
        let json = serde_json::to_vec_pretty(&found.result).expect("a result is plain data");
        replace(&path, &json).map_err(|error| CommandError::new(format!("{}: {error}", path.display())))?;
        files.push(path);
    }
    drop(progress);
    show(&documents::realtime(&found, &files), arguments.format)?;
    Ok(0)
}

fn explain(arguments: &ExplainArguments, abort: fn() -> !) -> Result<u8, CommandError> {
    let mut progress = BenchProgress::new("explain", abort);
    let found = explain::run(&arguments.settings(), &mut progress);
    progress.clear();
    let found = found.map_err(|error| CommandError::new(error.to_string()))?;
    drop(progress);
    show(&documents::explain(&found), arguments.format)?;
    Ok(0)
}

fn echo(arguments: &EchoArguments, abort: fn() -> !) -> Result<u8, CommandError> {
    let program = std::env::current_exe()
        .map_err(|error| CommandError::new(format!("cannot find this program, to start servers: {error}")))?;
    let server = vec![program.into(), "bench".into(), "echo-server".into()];
    let mut progress = BenchProgress::new("echo", abort);
    let found = echo::run(&arguments.settings(server), &mut progress);
    progress.clear();
    let found = found.map_err(|error| CommandError::new(error.to_string()))?;
    drop(progress);
    show(&documents::echo(&found), arguments.format)?;
    Ok(0)
}

/// Checks the path of a plot, before a long measurement.
pub fn check_plot(path: &Path) -> Result<(), CommandError> {
    let shown = path.display();
    if !path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg")) {
        let other = path.with_extension("svg");
        return Err(CommandError::new(format!("--plot {shown}: plots are written as SVG"))
            .help(format!("name a file that ends in .svg: --plot {}", other.display())));
    }
    output::can_be_written(path).map_err(|error| {
        CommandError::new(format!("--plot {shown}: cannot be written: {error}"))
            .help("name a file in a writable folder")
    })
}
