//! Pipelines that are made repeatedly, for the runs of a benchmark.

use crate::arguments::PipelineArguments;
use crate::error::CommandError;
use crate::stdout;
use onbeat::{Graph, Options, Overrides, Pipeline, Registry};
use onbeat_bench::Maker;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

/// Makes the pipeline of a file for each run. Its sinks write to a temporary folder.
pub struct FileMaker<'r> {
    file: PathBuf,
    registry: &'r Registry,
    overrides: Overrides,
    _scratch: Scratch,
}

impl<'r> FileMaker<'r> {
    /// Reads the pipeline once, to report errors with their line. Sources run as fast as possible unless
    /// `--pace` is given.
    pub fn new(
        arguments: &PipelineArguments,
        registry: &'r Registry,
        what: &str,
    ) -> Result<(FileMaker<'r>, Pipeline), CommandError> {
        let scratch = Scratch::make()?;
        let mut overrides = arguments.overrides();
        if !arguments.has_pace() {
            overrides.flag("--pace", "pace", "fast");
        }
        overrides.text("--set output", "output", scratch.0.display().to_string());
        let pipeline = Pipeline::read(&arguments.file, registry, &overrides)?;
        if stdout::is_taken(&pipeline)? {
            return Err(CommandError::new(format!(
                "{what} runs the pipeline many times, but an operator of it writes to stdout"
            ))
            .help("let that operator write to a file instead"));
        }
        let file = arguments.file.clone();
        Ok((FileMaker { file, registry, overrides, _scratch: scratch }, pipeline))
    }
}

impl Maker for FileMaker<'_> {
    fn make(&mut self) -> Result<(Graph, Options), String> {
        let pipeline =
            Pipeline::read(&self.file, self.registry, &self.overrides).map_err(|error| error.to_string())?;
        Ok((pipeline.graph, pipeline.options))
    }
}

/// Temporary folder, removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn make() -> Result<Scratch, CommandError> {
        let of = |number: u32| env::temp_dir().join(format!("onbeat-{}-{number}", process::id()));
        // It must be new: others can write to the parent folder and prepare one of this name.
        let mut made = Err(std::io::ErrorKind::AlreadyExists.into());
        for number in 0..100 {
            made = fs::DirBuilder::new().mode(0o700).create(of(number)).map(|()| Scratch(of(number)));
            if !made.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::AlreadyExists) {
                break;
            }
        }
        made.map_err(|error| {
            CommandError::new(format!("{}: cannot create a folder: {error}", env::temp_dir().display()))
                .help("set TMPDIR to a writable folder")
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Anything that remains is in the folder for temporary files.
        let _left = fs::remove_dir_all(&self.0);
    }
}

/// Returns the cache folder of this user; `None` if neither XDG_CACHE_HOME nor HOME is set.
pub fn cache_folder() -> Option<PathBuf> {
    // The XDG specification requires that relative paths are ignored.
    let set = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    Some(set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?.join(Path::new("onbeat")))
}
