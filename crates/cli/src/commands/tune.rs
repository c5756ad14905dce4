//! `onbeat tune`

use super::{doctor, host};
use crate::arguments::host::{LoaderName, TuneArguments, TuneFormat};
use crate::documents::{self, Tuning};
use crate::error::CommandError;
use crate::{output, stderr};
use onbeat::Registry;
use onbeat::trace::replace::replace;
use onbeat_host::tune::{self, TuningPlan, apply, boot, grants, undo};
use onbeat_host::{Attempts, MachineCase, Measurements, Root, checks, examine};
use std::io::{self, IsTerminal};
use std::path::Path;

impl From<tune::TuneError> for CommandError {
    fn from(error: tune::TuneError) -> Self {
        CommandError::new(error.what).help(error.fix)
    }
}

pub fn tune(arguments: &TuneArguments, registry: &Registry) -> Result<u8, CommandError> {
    if let Some(id) = arguments.only.iter().chain(&arguments.skip).find(|id| checks::named(id).is_none()) {
        return Err(doctor::unknown(id));
    }
    let root = host::root(&arguments.case)?;
    if arguments.undo {
        return undo_all(&root);
    }
    let mut case = host::case(&arguments.case, &root, registry)?;
    // Measurements do not matter here. Rights do: existing ones need not be granted.
    case.measured = Measurements::not("tune does not measure");
    case.tried = match root.is_this_machine() {
        true => Attempts::now(
            case.pipeline.as_ref().map_or(80, |pipeline| pipeline.priority().max(1)),
            &case.cpus,
        ),
        false => Attempts::not("only files of another machine are read"),
    };
    let report = examine(&case);
    let is_left_out = |id: &str| {
        let named = |ids: &[String]| ids.iter().any(|one| one == id);
        (!arguments.only.is_empty() && !named(&arguments.only)) || named(&arguments.skip)
    };
    let plan = tune::plan(&case, &report, &is_left_out)?;
    if let Some(path) = &arguments.systemd {
        return systemd(path, &case, &plan);
    }
    if let Some(path) = &arguments.limits {
        return write(path, &grants::limits(case.pipeline.as_ref()));
    }
    if arguments.apply {
        return carry_out(&root, &plan, arguments.partition);
    }
    let release = case.facts.kernel.release.known().map_or("", String::as_str);
    let edits = boot::edits(&root, release, arguments.loader.map(LoaderName::loader), &plan.parameters);
    if let (Some(loader), true) = (arguments.loader, edits.is_empty()) {
        return Err(CommandError::new(format!(
            "--loader: no configuration file of {} on this machine",
            loader.loader().name()
        ))
        .help("omit --loader to show the parameters alone"));
    }
    let shown = Tuning { plan: &plan, edits: &edits, case: &case, why_cpus: &case.why_cpus };
    match arguments.format {
        TuneFormat::Json => output::to_stdout(&(documents::tuning(&shown).to_string() + "\n"))?,
        TuneFormat::Human => output::to_stdout(&shown.text(stderr::may_colour(io::stdout().is_terminal())))?,
    }
    Ok(0)
}

fn systemd(path: &Path, case: &MachineCase, plan: &TuningPlan) -> Result<u8, CommandError> {
    let command = std::env::current_exe()
        .map_err(|error| CommandError::new(format!("cannot find the path of this command: {error}")))?;
    let house = plan.house.parse().unwrap_or_default();
    let pipeline = case.pipeline.as_ref().expect("clap asks for it");
    let run = grants::ServiceRun { command: &command.to_string_lossy(), pipeline, house: &house };
    write(path, &grants::systemd(&run, case, plan)?)
}

fn write(path: &Path, text: &str) -> Result<u8, CommandError> {
    if path == Path::new("-") {
        output::to_stdout(text)?;
        return Ok(0);
    }
    let is_other = std::fs::read_to_string(path)
        .is_ok_and(|there| !there.is_empty() && !there.contains("Made by `onbeat tune"))
        || std::fs::metadata(path).is_ok_and(|found| found.is_dir());
    if is_other {
        return Err(CommandError::new(format!(
            "{}: the file exists, was not made by onbeat and would be overwritten",
            path.display()
        ))
        .help("name another file"));
    }
    replace(path, text.as_bytes()).map_err(|error| CommandError::new(error.to_string()))?;
    stderr::to_stderr(&format!("written: {}\n", path.display()));
    Ok(0)
}

/// Applies the settings that need no reboot.
fn carry_out(root: &Root, plan: &TuningPlan, with_partition: bool) -> Result<u8, CommandError> {
    let mut prepared = apply::prepare(root, plan, with_partition)?;
    let refused = std::mem::take(&mut prepared.refused);
    let (count, already) = (prepared.len(), prepared.already);
    for (path, why) in &refused {
        stderr::to_stderr(&format!("skipped: /{path}: {why}\n"));
    }
    if prepared.is_nothing() {
        let text = format!("nothing to do: all {already} settings are already correct\n");
        output::to_stdout(&text)?;
        return Ok(u8::from(!refused.is_empty()));
    }
    let mut failed = 0;
    for done in prepared.begin(root)? {
        match done.refused {
            None => output::to_stdout(&format!("{} > /{}\n", done.value, done.path))?,
            Some(why) => {
                failed += 1;
                stderr::to_stderr(&format!("failed: {} > /{}: {why}\n", done.value, done.path));
            }
        }
    }
    output::to_stdout(&format!(
        "{} of {count} settings changed, {already} were already correct; `onbeat tune --undo` restores them ({})\n",
        count - failed,
        root.path(undo::FILE).display()
    ))?;
    Ok(u8::from(failed > 0 || !refused.is_empty()))
}

fn undo_all(root: &Root) -> Result<u8, CommandError> {
    let Some(outcomes) = apply::undo(root)? else {
        output::to_stdout("nothing to restore: no settings were applied since the machine booted\n")?;
        return Ok(0);
    };
    let (text, is_whole) = documents::undone(&outcomes);
    output::to_stdout(&text)?;
    Ok(u8::from(!is_whole))
}
