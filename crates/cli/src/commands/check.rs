//! `onbeat check FILE`

use crate::arguments::CheckArguments;
use crate::documents::counted;
use crate::error::CommandError;
use crate::{costs, output, stdout};
use onbeat::{Folders, Pipeline, Registry};
use std::fs;
use std::path::{Path, PathBuf};

/// Reads and plans the pipeline as `run` does, and checks that its input files exist. Opens none of them.
pub fn check(arguments: &CheckArguments, registry: &Registry) -> Result<u8, CommandError> {
    let pipeline = costs::read(&arguments.pipeline, registry)?;
    stdout::is_taken(&pipeline)?;
    let input = arguments.pipeline.file.parent().unwrap_or(Path::new("")).to_path_buf();
    let folders = Folders { input, output: pipeline.output.clone() };
    let wrong: Vec<String> = inputs(&pipeline, registry, &folders)
        .filter_map(|(operator, path)| Some(format!("operator `{operator}`: {}", what_is_wrong(&path)?)))
        .collect();
    if let [first, others @ ..] = &wrong[..] {
        let mut message = first.clone();
        others.iter().for_each(|other| message += &format!("\n{other}"));
        return Err(CommandError::new(message)
            .help("relative paths start at the folder of the pipeline file, or else at the current folder"));
    }
    if !arguments.quiet {
        let plan = &pipeline.plan;
        let operators = counted(plan.operators.len() as u64, "operator");
        let edges = counted(plan.edges.len() as u64, "edge");
        let file = arguments.pipeline.file.display();
        output::to_stdout(&format!("{file}: ok: {operators}, {edges}\n"))?;
    }
    Ok(0)
}

/// Returns the files that the sources read, with their operators.
fn inputs<'p>(
    pipeline: &'p Pipeline,
    registry: &'p Registry,
    folders: &'p Folders,
) -> impl Iterator<Item = (&'p str, PathBuf)> {
    pipeline.operators().iter().filter_map(move |operator| {
        let kind = registry.get(operator["kind"].as_str()?)?;
        let path = operator["path"].as_str().filter(|path| *path != "-")?;
        kind.ports().0.is_empty().then(|| (operator["name"].as_str().unwrap_or(""), folders.input(path)))
    })
}

/// Checks an input file. The name of a SigMF recording can lack the extension of its two files.
fn what_is_wrong(path: &Path) -> Option<String> {
    let mut longer = path.as_os_str().to_os_string();
    longer.push(".sigmf-meta");
    match (fs::metadata(path), fs::metadata(&longer)) {
        (Ok(found), _) if found.is_file() => None,
        (_, Ok(found)) if found.is_file() => None,
        (Ok(_), _) => Some(format!("{} is not a file", path.display())),
        (Err(error), _) => Some(format!("{}: {error}", path.display())),
    }
}
