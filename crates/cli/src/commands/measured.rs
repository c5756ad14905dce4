//! `onbeat plan FILE --measure` and `onbeat bench plan`

use super::show;
use crate::arguments::PlanArguments;
use crate::arguments::bench::BenchPlanArguments;
use crate::commands::bench::Watched;
use crate::documents;
use crate::failure::Failure;
use crate::maker::{FileMaker, cache_folder};
use onbeat::Scheduler;
use onbeat::trace::replace::replace;
use onbeat_bench::costs::MeasuredCosts;
use onbeat_bench::model::MachineCosts;
use onbeat_bench::{BenchError, BenchWatch, costs, pipeline, shapes};
use std::fs;
use std::path::Path;
use toml_edit::{DocumentMut, value};

pub fn measured(arguments: &PlanArguments, abort: fn() -> !) -> Result<u8, Failure> {
    let (mut maker, given) = FileMaker::new(&arguments.pipeline, "plan --measure")?;
    if arguments.write && given.options.scheduler == Scheduler::Custom {
        return Err(Failure::new(
            "--write: this pipeline names its own pools, and another scheduler would not have them",
        )
        .help("leave --write out, or take its [[pool]] and `scheduler = \"custom\"` away first"));
    }
    let mut watched = Watched::new("plan", abort);
    let known = machine(arguments.fresh, &mut watched)?;
    let found = pipeline::advised(&mut maker, &known.costs, arguments.seconds, &mut watched);
    watched.clear();
    let mut found = found.map_err(|error| failure(&error))?;
    drop(watched);
    found.notes.extend(known.note);
    let written = match arguments.write {
        true => Some(write(&arguments.pipeline.file, found.chosen().scheduler)?),
        false => None,
    };
    show(&documents::measured(&found, given.name(), &known.costs, written.as_deref()), arguments.format)?;
    Ok(0)
}

pub fn shapes(arguments: &BenchPlanArguments, abort: fn() -> !) -> Result<u8, Failure> {
    let mut watched = Watched::new("plan", abort);
    let known = machine(arguments.fresh, &mut watched)?;
    let found = shapes::run(&arguments.settings(), &known.costs, &mut watched);
    watched.clear();
    let mut found = found.map_err(|error| failure(&error))?;
    drop(watched);
    found.result.notes.extend(known.note);
    show(&documents::shapes(&found), arguments.format)?;
    Ok(0)
}

/// Above this part of the machine for others, what it costs is not kept.
const BUSY: f64 = 0.1;

struct Known {
    costs: MachineCosts,
    note: Option<String>,
}

/// What this machine costs: as it was kept, or measured now and kept.
fn machine(fresh: bool, watch: &mut dyn BenchWatch) -> Result<Known, Failure> {
    let folder = cache_folder();
    if fresh && let Some(folder) = &folder {
        costs::forget(folder).map_err(|error| {
            Failure::new(format!("--fresh: {}: cannot be thrown away: {error}", folder.display()))
        })?;
    }
    if let Some(costs) = folder.as_deref().and_then(costs::cached) {
        let note = "what this machine costs was measured before: --fresh measures it again".to_owned();
        return Ok(Known { costs, note: Some(note) });
    }
    let MeasuredCosts { costs, others } = costs::measure(watch).map_err(|error| failure(&error))?;
    if let Some(others) = others.filter(|others| *others > BUSY) {
        let note = format!(
            "others used {:.0} % of the machine while it was measured: what is said here is worth little, and is not kept",
            others * 100.0
        );
        return Ok(Known { costs, note: Some(note) });
    }
    let note = match folder.map(|folder| costs::save(&folder, costs)) {
        Some(Ok(path)) => format!("what this machine costs is kept in {}", path.display()),
        Some(Err(error)) => format!("what this machine costs could not be kept: {error}"),
        None => "what this machine costs is not kept: set XDG_CACHE_HOME to a folder".to_owned(),
    };
    Ok(Known { costs, note: Some(note) })
}

fn failure(error: &BenchError) -> Failure {
    Failure::new(error.to_string())
}

/// Puts the scheduler into the file and leaves everything else as it is; says what was done.
fn write(file: &Path, scheduler: Scheduler) -> Result<String, Failure> {
    let shown = file.display();
    let cannot = |error: &dyn std::fmt::Display| Failure::new(format!("--write: {shown}: {error}"));
    let text = fs::read_to_string(file).map_err(|error| cannot(&error))?;
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| cannot(&error))?;
    let wanted = scheduler.to_string();
    match document.get_mut("scheduler").and_then(|item| item.as_value_mut()) {
        Some(known) if known.as_str() == Some(&wanted) => {
            return Ok(format!("{shown} says {wanted} already"));
        }
        // With the comment that stands behind it.
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
    Ok(format!("{shown} now says scheduler = \"{wanted}\""))
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
            assert!(write(&file, Scheduler::Pinned).expect("it can be").contains("now says"));
            assert_eq!(fs::read_to_string(&file).expect("read"), after);
            assert!(write(&file, Scheduler::Pinned).expect("it can be").contains("already"));
        }
    }
}
