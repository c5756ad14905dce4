//! `onbeat run FILE`

pub mod late;

use crate::arguments::{OutputFormat, RunArguments};
use crate::documents::{self, RunFacts};
use crate::error::CommandError;
use crate::interrupt::CtrlC;
use crate::metrics::{Metrics, MetricsListener, MetricsOf};
use crate::output::{self, OutputPaths, RecordTo};
use crate::progress::ProgressLine;
use crate::systemd::Service;
use crate::top::Top;
use crate::tracing::{self, Tracing};
use crate::{costs, panics, stderr, stdout, threads, views};
use late::Actions;
use onbeat::trace::record::{FaultAction, Obtained, Outcome};
use onbeat::{FileUse, OnHang, Pipeline, Position, Record, Registry, Run, RunError, RunHandle, Written};
use std::io::{self, IsTerminal};

pub fn run(arguments: &RunArguments, registry: &Registry, abort: fn() -> !) -> Result<u8, CommandError> {
    let mut pipeline = costs::read(&arguments.pipeline, registry)?;
    if let Some(path) = &arguments.trace {
        tracing::check(path, &mut pipeline.plan)?;
        if !arguments.on_miss.is_empty() {
            return Err(CommandError::new("--trace and --on-miss cannot be used together")
                .help("--on-miss trace,file=FILE writes the steps around each late message"));
        }
    }
    check_gates(&pipeline)?;
    let said = warn(&pipeline, arguments.quiet)?;
    let metrics = arguments.metrics.as_deref().map(MetricsListener::new).transpose()?;
    let outputs = RunOutputs::prepare(arguments, &pipeline)?;
    let started =
        StartedRun::start(arguments, pipeline, said, abort).inspect_err(|_| outputs.paths.remove_empty())?;
    started.wait(arguments, metrics, outputs.stdout_is_taken)?.report(arguments, &outputs)
}

/// Refuses a gate that is closed and that nobody could open: the run would wait for ever.
pub fn check_gates(pipeline: &Pipeline) -> Result<(), CommandError> {
    match pipeline.closed_gates()[..] {
        [gate, ..] if pipeline.control.is_none() => Err(CommandError::new(format!(
            "gate `{gate}` is closed at the start, and nobody can open it: there is no control socket"
        ))
        .help("add `control = \"NAME.ctl\"` or --control NAME.ctl; then `onbeat ctl NAME.ctl gate NAME open` opens it")),
        _ => Ok(()),
    }
}

/// Warns of what operators find odd in what they were given, or refuses it under `strict`. Returns the notes
/// on the same that the run will make.
pub fn warn(pipeline: &Pipeline, is_quiet: bool) -> Result<Vec<String>, CommandError> {
    let odd = pipeline.odd();
    if let Some(first) = odd.first().filter(|_| pipeline.options.strict) {
        return Err(CommandError::new(format!("strict: {first}")));
    }
    for text in odd.iter().filter(|_| !is_quiet) {
        stderr::to_stderr(&format!("warning: {text}\n"));
    }
    Ok(if is_quiet { Vec::new() } else { odd.iter().map(|text| format!("note: {text}")).collect() })
}

/// Files that a run writes, checked before it starts.
struct RunOutputs {
    paths: OutputPaths,
    /// Whether an operator writes its data to stdout.
    stdout_is_taken: bool,
    /// Files of this command that no operator can use.
    in_use: Vec<FileUse>,
}

impl RunOutputs {
    fn prepare(arguments: &RunArguments, pipeline: &Pipeline) -> Result<Self, CommandError> {
        let stdout_is_taken = stdout::is_taken(pipeline)?;
        let paths = OutputPaths::prepare(&pipeline.output, RecordTo::of(arguments, pipeline))?;
        let in_use = stdout::check_record(stdout_is_taken, &paths.record)
            .and_then(|()| in_use(arguments, &paths.record, pipeline.name()))
            .inspect_err(|_| paths.remove_empty())?;
        Ok(RunOutputs { paths, stdout_is_taken, in_use })
    }
}

/// A run that has started, and what follows it.
struct StartedRun {
    name: String,
    written: Written,
    run: Run,
    /// Cores of the helper threads, as requested and obtained.
    house: Option<Obtained>,
    ctrl_c: CtrlC,
    trace: Option<Tracing>,
    actions: Actions,
    /// Lines on what was not obtained and notes that were printed at the start.
    said: Vec<String>,
}

impl StartedRun {
    fn start(
        arguments: &RunArguments,
        pipeline: Pipeline,
        mut said: Vec<String>,
        abort: fn() -> !,
    ) -> Result<Self, CommandError> {
        let (name, written) = (pipeline.name().to_string(), pipeline.written.clone());
        // First of all: threads that start after this inherit these cores, and workers get cores of their
        // own.
        let house = threads::keep_house(&pipeline.plan.house_keeping())
            .filter(|_| !pipeline.options.house_keeping.is_empty());
        if pipeline.options.strict {
            house.as_ref().map_or(Ok(()), check_obtained)?;
        }
        let ctrl_c = CtrlC::listen(abort);
        if !arguments.on_miss.is_empty() && !pipeline.plan.is_explained() {
            return Err(late::no_limit());
        }
        let waits = pipeline.options.on_hang == OnHang::Wait;
        let evidence = onbeat::evidence(&pipeline.plan);
        let plan = pipeline.plan.clone();
        let trace = arguments.trace.as_deref().map(|path| Tracing::begin(path, &plan)).transpose()?;
        let run = pipeline.start_explained(evidence).map_err(|error| CommandError::new(error.to_string()))?;
        let handle = run.handle();
        if let Some(trace) = &trace {
            trace.follow(&handle);
        }
        let actions = Actions::start(&arguments.on_miss, &name, &plan, &handle);
        ctrl_c.stop_by(handle.clone());
        handle.on_hang(move |hang| {
            let what = if waits {
                "the run waits for it; Ctrl-C ends the run without it"
            } else {
                "the run ends without it"
            };
            stderr::clear_line();
            stderr::to_stderr(&format!("warning: {hang}\n  {what}\n"));
        });
        if !arguments.quiet {
            let missing = documents::not_obtained(run.obtained().chain(&house));
            let lines: Vec<String> =
                missing.chain(run.notes().iter().map(|note| format!("note: {note}"))).collect();
            lines.iter().for_each(|line| stderr::to_stderr(&format!("{line}\n")));
            said.extend(lines);
        }
        Ok(StartedRun { name, written, run, house, ctrl_c, trace, actions, said })
    }

    /// Shows the run as it goes on, and waits for its end.
    fn wait(
        self,
        arguments: &RunArguments,
        metrics: Option<MetricsListener>,
        stdout_is_taken: bool,
    ) -> Result<EndedRun, CommandError> {
        let handle = self.run.handle();
        let service = Service::start(handle.clone());
        // If a requested monitor cannot start, the run stops: it should not run unseen.
        let (monitors, unwatched) = match Monitors::start(arguments, &handle, metrics, stdout_is_taken) {
            Ok(monitors) => (Some(monitors), None),
            Err(failure) => {
                handle.stop();
                (None, Some(failure))
            }
        };
        let progress = ProgressLine::start(&self.name, handle.clone(), arguments.quiet || arguments.top);
        let result = self.run.wait();
        let helpers = threads::helpers();
        progress.end();
        drop(monitors);
        drop(service);
        let (mut record, failed) = match result {
            Ok(record) => (record, None),
            Err(RunError::Failed(record)) => {
                let failure = failure_of(&record, &self.written);
                (*record, Some(failure))
            }
            Err(error) => return Err(CommandError::new(error.to_string())),
        };
        record.threads.extend(helpers);
        record.obtained.extend(self.house);
        apply_limit(&mut record, arguments.max_misses);
        let acted = self.actions.end(&mut record).err();
        let position_ns = position_ns(&record, handle.progress());
        let StartedRun { ctrl_c, trace, said, .. } = self;
        Ok(EndedRun { record, position_ns, ctrl_c, trace, failed, unwatched, acted, said })
    }
}

/// A run that has ended, and all that went wrong.
struct EndedRun {
    record: Record,
    position_ns: u64,
    ctrl_c: CtrlC,
    trace: Option<Tracing>,
    failed: Option<CommandError>,
    unwatched: Option<CommandError>,
    acted: Option<CommandError>,
    said: Vec<String>,
}

impl EndedRun {
    /// Writes the record, shows the results and returns the exit status.
    fn report(self, arguments: &RunArguments, outputs: &RunOutputs) -> Result<u8, CommandError> {
        let EndedRun { record, position_ns, ctrl_c, trace, failed, unwatched, acted, said } = self;
        // If an operator uses the record's file, the run failed, and the file stays as it is.
        let is_contested = outputs.in_use.iter().any(FileUse::is_contested);
        let written = if is_contested { Ok(None) } else { outputs.paths.record.write(&record) };
        // An interruption can leave nothing half done from here on.
        drop(ctrl_c);
        let facts = RunFacts {
            position_ns,
            output: &outputs.paths.output,
            record: written.as_ref().ok().and_then(Option::as_deref),
            said: if output::is_one_place() { &said } else { &[] },
        };
        // Without a record, the folder stays only if a sink wrote there.
        if matches!(outputs.paths.record, RecordTo::Nowhere) {
            outputs.paths.remove_empty();
        }
        let shown = show(arguments, &record, &facts, &outputs.paths.record, outputs.stdout_is_taken);
        let traced = trace.and_then(|trace| trace.end(arguments.quiet).err());
        // All failures are shown, the last one by the caller.
        let mut failures: Vec<CommandError> =
            [failed, unwatched, written.err(), traced, shown.err(), acted].into_iter().flatten().collect();
        let last = failures.pop();
        failures.iter().for_each(CommandError::show);
        last.map_or(Ok(record.result.exit_status), Err)
    }
}

/// Refuses a setting that was not obtained as requested.
fn check_obtained(setting: &Obtained) -> Result<(), CommandError> {
    if setting.asked == setting.obtained {
        return Ok(());
    }
    let reason = setting.reason.as_deref().unwrap_or("not available");
    let (what, asked) = (&setting.what, &setting.asked);
    Err(CommandError::new(format!("strict: {what}: {asked} was asked for and not obtained: {reason}")))
}

/// Registers the pipeline file and all output files of this command, so that no operator overwrites them.
fn in_use(arguments: &RunArguments, record: &RecordTo, name: &str) -> Result<Vec<FileUse>, CommandError> {
    let failure = |error: onbeat::Error| CommandError::new(error.to_string());
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

/// Views of a run from outside: `--top` and `--metrics`.
struct Monitors {
    _top: Option<Top>,
    _metrics: Option<Metrics>,
}

impl Monitors {
    fn start(
        arguments: &RunArguments,
        handle: &RunHandle,
        metrics: Option<MetricsListener>,
        stdout_is_taken: bool,
    ) -> Result<Self, CommandError> {
        if let Some(listener) = metrics.as_ref().filter(|_| !arguments.quiet) {
            stderr::to_stderr(&format!("{}\n", listener.line()));
        }
        let watched = handle.clone();
        let look = move || vec![watched.status()];
        let metrics = metrics.map(|listener| listener.serve(MetricsOf::Run, look)).transpose()?;
        let top = arguments.top.then(|| Top::start(handle.clone(), stdout_is_taken)).transpose()?;
        Ok(Monitors { _top: top, _metrics: metrics })
    }
}

/// Returns the source time at the end: the full length if the sources know it and ended on their own.
pub fn position_ns(record: &Record, last: Position) -> u64 {
    let ended = record.result.outcome == Outcome::Ended;
    last.length_ns.filter(|_| ended).unwrap_or(last.position_ns)
}

/// The failure of a run, with the place of the operator that failed in the file.
fn failure_of(record: &Record, written: &Written) -> CommandError {
    let reason = &record.result.reason;
    // Several may have failed.
    let fatal = record.faults.iter().filter(|fault| fault.then == FaultAction::Stopped);
    let mut operators = fatal.filter_map(|fault| fault.operator.as_deref());
    let failure = match operators.find(|name| reason.starts_with(&format!("operator `{name}`: "))) {
        Some(operator) => written.error(operator, reason).into(),
        None => CommandError::new(reason.clone()),
    };
    match panics::last() {
        Some(place) if std::env::var_os("RUST_BACKTRACE").is_some_and(|asked| asked != "0") => {
            failure.help(format!("panic at {place}"))
        }
        Some(place) => failure.help(format!("panic at {place}; RUST_BACKTRACE=1 shows a backtrace")),
        None => failure.if_of_file(),
    }
}

/// Applies `--max-misses` to the exit status. An error or lost messages take precedence.
fn apply_limit(record: &mut Record, max_misses: Option<u64>) {
    let Some(limit) = max_misses.filter(|&limit| record.misses_total > limit) else { return };
    if record.result.exit_status == 0 {
        record.result.exit_status = 2;
        let misses = record.misses_total;
        record.result.reason += &format!("; {misses} misses exceed --max-misses {limit}");
    }
}

/// Prints the results: to stderr if the record or the data of an operator go to stdout, else to stdout.
fn show(
    arguments: &RunArguments,
    record: &Record,
    facts: &RunFacts<'_>,
    record_to: &RecordTo,
    stdout_is_taken: bool,
) -> Result<(), CommandError> {
    let is_there = matches!(record_to, RecordTo::Stdout);
    let on_stdout = !is_there && !stdout_is_taken;
    match arguments.format {
        OutputFormat::Human if arguments.quiet => return Ok(()),
        OutputFormat::Json if is_there => return Ok(()),
        _ => {}
    }
    let is_terminal = if on_stdout { io::stdout().is_terminal() } else { io::stderr().is_terminal() };
    let view = views::view(arguments.format, stderr::may_colour(is_terminal));
    let text = view.text(&documents::run(record, facts));
    if on_stdout {
        output::to_stdout(&text)
    } else {
        stderr::to_stderr(&text);
        Ok(())
    }
}
