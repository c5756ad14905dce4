//! The pipeline of a file, made again and again for runs that measure it.

use crate::arguments::PipelineArguments;
use crate::failure::Failure;
use crate::stdout;
use onbeat::{Graph, Options, Overrides, Pipeline, Registry, operators};
use onbeat_bench::Maker;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

/// Reads the file for each run. What its sinks write goes to a folder that is gone afterwards.
pub struct FileMaker {
    file: PathBuf,
    registry: Registry,
    overrides: Overrides,
    _scratch: Scratch,
}

impl FileMaker {
    /// Reads the pipeline once, so that what is wrong with it is said with its line. Sources that keep time go as fast as they can
    /// unless `--pace` says otherwise.
    pub fn new(arguments: &PipelineArguments, what: &str) -> Result<(FileMaker, Pipeline), Failure> {
        let registry = operators::registry();
        let scratch = Scratch::make()?;
        let mut overrides = arguments.overrides();
        if !arguments.has_pace() {
            overrides.flag("--pace", "pace", "fast");
        }
        overrides.text("--set output", "output", scratch.0.display().to_string());
        let pipeline = Pipeline::read(&arguments.file, &registry, &overrides)?;
        if stdout::is_taken(&pipeline)? {
            return Err(Failure::new(format!(
                "{what} runs the pipeline many times, and it writes its data to stdout"
            ))
            .help("give the sink a file in place of stdout"));
        }
        let file = arguments.file.clone();
        Ok((FileMaker { file, registry, overrides, _scratch: scratch }, pipeline))
    }
}

impl Maker for FileMaker {
    fn make(&mut self) -> Result<(Graph, Options), String> {
        let pipeline =
            Pipeline::read(&self.file, &self.registry, &self.overrides).map_err(|error| error.to_string())?;
        Ok((pipeline.graph, pipeline.options))
    }
}

/// A folder that is taken away when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn make() -> Result<Scratch, Failure> {
        let of = |number: u32| env::temp_dir().join(format!("onbeat-{}-{number}", process::id()));
        // A new one: whoever may write there could have put something in its place.
        let mut made = Err(std::io::ErrorKind::AlreadyExists.into());
        for number in 0..100 {
            made = fs::DirBuilder::new().mode(0o700).create(of(number)).map(|()| Scratch(of(number)));
            if !made.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::AlreadyExists) {
                break;
            }
        }
        made.map_err(|error| {
            Failure::new(format!("{}: no folder can be made there: {error}", env::temp_dir().display()))
                .help("set TMPDIR to a folder that can be written to")
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left of it is in the folder for what is temporary.
        let _left = fs::remove_dir_all(&self.0);
    }
}

/// Where this user's caches are; none where neither XDG_CACHE_HOME nor HOME says so.
pub fn cache_folder() -> Option<PathBuf> {
    // The specification says that a relative path there is to be ignored.
    let set = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    Some(set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?.join(Path::new("onbeat")))
}
