//! `onbeat bench`

use super::show;
use crate::arguments::bench::{BenchCommand, OverheadArguments, QueueArguments, SaxpyArguments};
use crate::documents;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::output;
use crate::progress::StatusLine;
use onbeat::trace::replace::replace;
use onbeat_bench::{Watch, overhead, queue, saxpy};
use std::path::Path;

pub fn bench(command: &BenchCommand, abort: fn() -> !) -> Result<u8, Failure> {
    match command {
        BenchCommand::Overhead(arguments) => overhead(arguments, abort),
        BenchCommand::Queue(arguments) => queue(arguments, abort),
        BenchCommand::Saxpy(arguments) => saxpy(arguments, abort),
    }
}

fn overhead(arguments: &OverheadArguments, abort: fn() -> !) -> Result<u8, Failure> {
    if let Some(path) = &arguments.plot {
        check_plot(path)?;
    }
    let mut watched = Watched { line: StatusLine::new("overhead"), interrupts: Interrupts::listen(abort) };
    let found = overhead::run(&arguments.settings(), &mut watched);
    watched.line.clear();
    let found = found.map_err(|error| Failure::new(error.to_string()))?;
    if let Some(path) = &arguments.plot {
        replace(path, found.to_svg().as_bytes()).map_err(|error| Failure::new(format!("--plot: {error}")))?;
    }
    drop(watched);
    show(&documents::overhead(&found, arguments.plot.as_deref()), arguments.format)?;
    Ok(0)
}

fn queue(arguments: &QueueArguments, abort: fn() -> !) -> Result<u8, Failure> {
    if let Some(path) = &arguments.plot {
        check_plot(path)?;
    }
    let mut watched = Watched { line: StatusLine::new("queue"), interrupts: Interrupts::listen(abort) };
    let found = queue::run(&arguments.settings(), &mut watched);
    watched.line.clear();
    let found = found.map_err(|error| Failure::new(error.to_string()))?;
    if let Some(path) = &arguments.plot {
        replace(path, found.to_svg().as_bytes()).map_err(|error| Failure::new(format!("--plot: {error}")))?;
    }
    drop(watched);
    show(&documents::queue(&found.result, arguments.plot.as_deref()), arguments.format)?;
    Ok(0)
}

fn saxpy(arguments: &SaxpyArguments, abort: fn() -> !) -> Result<u8, Failure> {
    if let Some(path) = &arguments.plot {
        check_plot(path)?;
    }
    let mut watched = Watched { line: StatusLine::new("saxpy"), interrupts: Interrupts::listen(abort) };
    let found = saxpy::run(&arguments.settings(), &mut watched);
    watched.line.clear();
    let found = found.map_err(|error| Failure::new(error.to_string()))?;
    if let Some(path) = &arguments.plot {
        replace(path, found.to_svg().as_bytes()).map_err(|error| Failure::new(format!("--plot: {error}")))?;
    }
    drop(watched);
    show(&documents::saxpy(&found, arguments.plot.as_deref()), arguments.format)?;
    Ok(0)
}

/// Before minutes are spent on measuring.
pub fn check_plot(path: &Path) -> Result<(), Failure> {
    let shown = path.display();
    if !path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg")) {
        let other = path.with_extension("svg");
        return Err(Failure::new(format!("--plot {shown}: plots are written as SVG"))
            .help(format!("name a file that ends in .svg: --plot {}", other.display())));
    }
    output::can_be_written(path).map_err(|error| {
        Failure::new(format!("--plot {shown}: cannot be written: {error}"))
            .help("name a file in a folder of yours")
    })
}

struct Watched {
    line: StatusLine,
    interrupts: Interrupts,
}

impl Watch for Watched {
    fn at(&mut self, done: usize, all: usize, next: &str) {
        let percent = 100 * done / all.max(1);
        self.line.draw(&format!("{percent:3} %, {next}"));
    }

    fn is_stopped(&self) -> bool {
        self.interrupts.is_asked()
    }
}
