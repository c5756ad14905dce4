//! `onbeat run FILE`

pub mod late;

use crate::arguments::{Format, RunArguments};
use crate::documents::{self, RunFacts};
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::metrics::{Bound, Metrics};
use crate::output::{self, Places, RecordTo};
use crate::progress::Progress;
use crate::systemd::Service;
use crate::top::Top;
use crate::tracing::{self, Tracing};
use crate::{costs, panics, stdout, threads, views};
use late::Actions;
use onbeat::trace::record::Outcome;
use onbeat::{FileUse, OnHang, Position, Record, RunError, RunHandle, operators};
use std::io::{self, IsTerminal};

pub fn run(arguments: &RunArguments, abort: fn() -> !) -> Result<u8, Failure> {
    let mut pipeline = costs::read(&arguments.pipeline, &operators::registry())?;
    if let Some(path) = &arguments.trace {
        tracing::check(path, &mut pipeline.plan)?;
        if !arguments.on_miss.is_empty() {
            return Err(Failure::new("--trace and --on-miss: one of them at a time follows the run")
                .help("--on-miss trace,file=FILE keeps the steps around each late message"));
        }
    }
    let metrics = arguments.metrics.as_deref().map(Bound::new).transpose()?;
    let is_taken = stdout::is_taken(&pipeline)?;
    let places = Places::prepare(&pipeline.output, arguments.record.as_deref(), pipeline.name())?;
    stdout::check_record(is_taken, &places.record).inspect_err(|_| places.give_back())?;
    let name = pipeline.name().to_string();
    let in_use = in_use(arguments, &places.record, &name).inspect_err(|_| places.give_back())?;
    // First of all: the threads that are started from here on inherit it, and workers go to cores of their own.
    let house = threads::keep_house(&pipeline.options.house_keeping);
    if let Some(setting) =
        house.as_ref().filter(|setting| setting.asked != setting.obtained && pipeline.options.strict)
    {
        places.give_back();
        let reason = setting.reason.as_deref().unwrap_or("not available");
        let (what, asked) = (&setting.what, &setting.asked);
        return Err(Failure::new(format!(
            "strict: {what}: {asked} was asked for and not obtained: {reason}"
        )));
    }
    let interrupts = Interrupts::listen(abort);
    if !arguments.on_miss.is_empty() && !pipeline.plan.is_explained() {
        places.give_back();
        return Err(late::no_limit());
    }
    let waits = pipeline.options.on_hang == OnHang::Wait;
    let evidence = onbeat::evidence(&pipeline.plan);
    let plan = pipeline.plan.clone();
    let trace = arguments.trace.as_deref().map(|path| Tracing::begin(path, &plan)).transpose();
    let trace = trace.inspect_err(|_| places.give_back())?;
    let run = pipeline.start_explained(evidence).map_err(|error| {
        places.give_back();
        Failure::new(error.to_string())
    })?;
    let handle = run.handle();
    if let Some(trace) = &trace {
        trace.follow(&handle);
    }
    let actions = Actions::start(&arguments.on_miss, &name, &plan, &handle);
    interrupts.stop_by(handle.clone());
    handle.on_hang(move |hang| {
        let what = if waits {
            "it is waited for; Ctrl-C ends the run without it"
        } else {
            "the run ends without it"
        };
        output::to_stderr(&format!("\r\x1b[Kwarning: {hang}\n  {what}\n"));
    });
    if !arguments.quiet {
        let missing = documents::not_obtained(run.obtained().chain(&house));
        missing.chain(run.notes().iter().map(|note| format!("note: {note}"))).for_each(|line| {
            output::to_stderr(&format!("{line}\n"));
        });
    }
    let service = Service::start(handle.clone());
    let watched = Watched::start(arguments, &handle, metrics, is_taken);
    // What cannot be watched as it was asked for is not to run unseen.
    let (watched, unwatched) = match watched {
        Ok(watched) => (Some(watched), None),
        Err(failure) => {
            handle.stop();
            (None, Some(failure))
        }
    };
    let progress = Progress::start(&name, handle.clone(), arguments.quiet || arguments.top);
    let result = run.wait();
    let helpers = threads::helpers();
    progress.end();
    drop(watched);
    drop(service);
    let (mut record, failed) = match result {
        Ok(record) => (record, None),
        Err(RunError::Failed(record)) => {
            let failure = failure_of(&record);
            (*record, Some(failure))
        }
        Err(error) => return Err(Failure::new(error.to_string())),
    };
    record.threads.extend(helpers);
    record.obtained.extend(house);
    apply_limit(&mut record, arguments.max_misses);
    let acted = actions.end(&mut record);
    // A run that failed because an operator uses the record's file leaves that as it is.
    let is_contested = in_use.iter().any(FileUse::is_contested);
    let written = if is_contested { Ok(None) } else { places.record.write(&record) };
    // From here on there is nothing that an interruption could leave half done.
    drop(interrupts);
    let facts = RunFacts {
        position_ns: position_ns(&record, handle.progress()),
        output: &places.output,
        record: written.as_ref().ok().and_then(Option::as_deref),
    };
    let shown = show(arguments, &record, &facts, &places.record, is_taken);
    // All that went wrong is told, the last of it by whoever called.
    let traced = trace.and_then(|trace| trace.end(arguments.quiet).err());
    let mut failures: Vec<Failure> =
        [failed, unwatched, written.err(), traced, shown.err(), acted.err()].into_iter().flatten().collect();
    let last = failures.pop();
    failures.iter().for_each(Failure::show);
    last.map_or(Ok(record.result.exit_status), Err)
}

/// The pipeline file is not to be replaced by what the run writes, and neither is the record.
fn in_use(arguments: &RunArguments, record: &RecordTo, name: &str) -> Result<Vec<FileUse>, Failure> {
    let failure = |error: onbeat::Error| Failure::new(error.to_string());
    let mut uses =
        vec![FileUse::reading(&arguments.pipeline.file, "onbeat, as the pipeline,").map_err(failure)?];
    if let Some(path) = &arguments.trace {
        tracing::check_place(path)?;
        uses.push(FileUse::replacing(path, "the trace").map_err(failure)?);
    }
    if let RecordTo::File(path) = record {
        uses.push(FileUse::replacing(path, "the record").map_err(failure)?);
    }
    uses.extend(late::uses(&arguments.on_miss, name)?);
    Ok(uses)
}

/// What is seen of the run from outside while it goes on.
struct Watched {
    _top: Option<Top>,
    _metrics: Option<Metrics>,
}

impl Watched {
    fn start(
        arguments: &RunArguments,
        handle: &RunHandle,
        metrics: Option<Bound>,
        is_taken: bool,
    ) -> Result<Self, Failure> {
        if let Some(bound) = metrics.as_ref().filter(|_| !arguments.quiet) {
            output::to_stderr(&format!("{}\n", bound.line()));
        }
        let metrics = metrics.map(|bound| bound.serve(handle.clone())).transpose()?;
        let top = arguments.top.then(|| Top::start(handle.clone(), is_taken)).transpose()?;
        Ok(Watched { _top: top, _metrics: metrics })
    }
}

/// Source time at the end: all of it, where the sources knew how much they had and ended by themselves.
fn position_ns(record: &Record, last: Position) -> u64 {
    let ended = record.result.outcome == Outcome::Ended;
    last.length_ns.filter(|_| ended).unwrap_or(last.position_ns)
}

fn failure_of(record: &Record) -> Failure {
    let failure = Failure::new(record.result.reason.clone());
    match panics::last() {
        Some(place) => {
            failure.help(format!("the panic was at {place}; RUST_BACKTRACE=1 shows the way there"))
        }
        None => failure,
    }
}

/// A run that was good but for a limit of the command line was not good. An error or lost data weigh more.
fn apply_limit(record: &mut Record, max_misses: Option<u64>) {
    let Some(limit) = max_misses.filter(|&limit| record.misses_total > limit) else { return };
    if record.result.exit_status == 0 {
        record.result.exit_status = 2;
        let misses = record.misses_total;
        record.result.reason += &format!("; {misses} misses, more than the {limit} of --max-misses");
    }
}

/// Data goes to stdout, unless the record itself or the data of an operator (`is_taken`) go there.
fn show(
    arguments: &RunArguments,
    record: &Record,
    facts: &RunFacts<'_>,
    record_to: &RecordTo,
    is_taken: bool,
) -> Result<(), Failure> {
    let is_there = matches!(record_to, RecordTo::Stdout);
    let on_stdout = !is_there && !is_taken;
    match arguments.format {
        Format::Human if arguments.quiet => return Ok(()),
        Format::Json if is_there => return Ok(()),
        _ => {}
    }
    let is_terminal = if on_stdout { io::stdout().is_terminal() } else { io::stderr().is_terminal() };
    let view = views::view(arguments.format, output::may_colour(is_terminal));
    let text = view.text(&documents::run(record, facts));
    if on_stdout {
        output::to_stdout(&text)
    } else {
        output::to_stderr(&text);
        Ok(())
    }
}
