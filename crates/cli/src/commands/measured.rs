//! `onbeat plan FILE --measure` and `onbeat bench plan`

use super::show;
use crate::arguments::PlanArguments;
use crate::arguments::bench::BenchPlanArguments;
use crate::documents;
use crate::error::CommandError;
use crate::maker::{FileMaker, cache_folder};
use crate::progress::BenchProgress;
use onbeat::trace::replace::replace;
use onbeat::{Registry, Scheduler};
use onbeat_bench::costs::MeasuredCosts;
use onbeat_bench::model::MachineCosts;
use onbeat_bench::{BenchError, BenchWatch, costs, pipeline, shapes};
use std::fs;
use std::path::Path;
use toml_edit::{DocumentMut, value};

pub fn measured(
    arguments: &PlanArguments,
    registry: &Registry,
    abort: fn() -> !,
) -> Result<u8, CommandError> {
    let (mut maker, given) = FileMaker::new(&arguments.pipeline, registry, "plan --measure")?;
    if arguments.write && given.options.scheduler == Scheduler::Custom {
        return Err(CommandError::new(
            "--write: this pipeline defines its own pools, and other schedulers do not use them",
        )
        .help("omit --write, or first remove [[pool]] and `scheduler = \"custom\"` from the file"));
    }
    let mut progress = BenchProgress::new("plan", abort);
    let known = machine(arguments.fresh, &mut progress)?;
    let found = pipeline::advised(&mut maker, &known.costs, arguments.seconds, &mut progress);
    progress.clear();
    let mut found = found.map_err(|error| failure(&error))?;
    drop(progress);
    found.notes.extend(known.note);
    let written = match arguments.write {
        true => Some(write(&arguments.pipeline.file, found.chosen().scheduler)?),
        false => None,
    };
    show(&documents::measured(&found, given.name(), &known.costs, written.as_deref()), arguments.format)?;
    Ok(0)
}

pub fn shapes(arguments: &BenchPlanArguments, abort: fn() -> !) -> Result<u8, CommandError> {
    let mut progress = BenchProgress::new("plan", abort);
    let known = machine(arguments.fresh, &mut progress)?;
    let found = shapes::run(&arguments.settings(), &known.costs, &mut progress);
    progress.clear();
    let mut found = found.map_err(|error| failure(&error))?;
    drop(progress);
    found.result.notes.extend(known.note);
    show(&documents::shapes(&found), arguments.format)?;
    Ok(0)
}

/// Share of the machine used by other programs above which measured costs are not cached.
const BUSY: f64 = 0.1;

struct KnownCosts {
    costs: MachineCosts,
    note: Option<String>,
}

/// Returns the costs of this machine, from the cache or measured now.
fn machine(fresh: bool, watch: &mut dyn BenchWatch) -> Result<KnownCosts, CommandError> {
    let folder = cache_folder();
    if fresh && let Some(folder) = &folder {
        costs::forget(folder).map_err(|error| {
            CommandError::new(format!("--fresh: {}: cannot be deleted: {error}", folder.display()))
        })?;
    }
    if let Some(costs) = folder.as_deref().and_then(costs::cached) {
        let note = "costs of this machine: cached from an earlier measurement; --fresh measures them again"
            .to_owned();
        return Ok(KnownCosts { costs, note: Some(note) });
    }
    let MeasuredCosts { costs, others } = costs::measure(watch).map_err(|error| failure(&error))?;
    if let Some(others) = others.filter(|others| *others > BUSY) {
        let note = format!(
            "other programs used {:.0} % of the machine during the measurement: the results are unreliable, and not cached",
            others * 100.0
        );
        return Ok(KnownCosts { costs, note: Some(note) });
    }
    let note = match folder.map(|folder| costs::save(&folder, costs)) {
        Some(Ok(path)) => format!("costs of this machine: cached in {}", path.display()),
        Some(Err(error)) => format!("costs of this machine: cannot be cached: {error}"),
        None => "costs of this machine: not cached: set XDG_CACHE_HOME to a folder".to_owned(),
    };
    Ok(KnownCosts { costs, note: Some(note) })
}

fn failure(error: &BenchError) -> CommandError {
    CommandError::new(error.to_string())
}

/// Writes the scheduler into the file and leaves everything else unchanged. Returns a message.
fn write(file: &Path, scheduler: Scheduler) -> Result<String, CommandError> {
    let shown = file.display();
    let cannot = |error: &dyn std::fmt::Display| CommandError::new(format!("--write: {shown}: {error}"));
    let text = fs::read_to_string(file).map_err(|error| cannot(&error))?;
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| cannot(&error))?;
    let wanted = scheduler.to_string();
    match document.get_mut("scheduler").and_then(|item| item.as_value_mut()) {
        Some(known) if known.as_str() == Some(&wanted) => {
            return Ok(format!("{shown} already has scheduler = \"{wanted}\""));
        }
        // Keeps the comment after the value.
        Some(known) => {
            let decor = known.decor().clone();
            *known = wanted.as_str().into();
            *known.decor_mut() = decor;
        }
        None => {
            document.insert("scheduler", value(&wanted));
        }
    }
    replace(file, document.to_string().as_bytes()).map_err(|error| cannot(&error))?;
    Ok(format!("{shown} now has scheduler = \"{wanted}\""))
}

#[cfg(test)]
mod tests {
    use super::write;
    use onbeat::Scheduler;
    use std::fs;

    #[test]
    fn a_file_keeps_its_comments() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("p.toml");
        for (before, after) in [
            (
                "# mine\nscheduler = \"greedy\"  # why\n\n[[operator]]\n",
                "# mine\nscheduler = \"pinned\"  # why\n\n[[operator]]\n",
            ),
            (
                "name = \"x\" # y\n\n# z\n[[operator]]\n",
                "name = \"x\" # y\nscheduler = \"pinned\"\n\n# z\n[[operator]]\n",
            ),
        ] {
            fs::write(&file, before).expect("written");
            assert!(write(&file, Scheduler::Pinned).expect("it can be").contains("now has"));
            assert_eq!(fs::read_to_string(&file).expect("read"), after);
            assert!(write(&file, Scheduler::Pinned).expect("it can be").contains("already"));
        }
    }
}
