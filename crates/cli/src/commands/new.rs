//! `onbeat new`: a crate with an operator of its own, its test, a pipeline and a command.

use crate::arguments::new::NewArguments;
use crate::error::CommandError;
use crate::output;
use std::fs;
use std::path::{Path, PathBuf};

/// Files of the crate, with their texts. `@name@`, `@module@` and `@source@` stand for the name of the crate,
/// its name in Rust, and the folder of onbeat.
const FILES: [(&str, &str); 7] = [
    ("Cargo.toml", include_str!("../../template/Cargo.toml.in")),
    (".gitignore", include_str!("../../template/gitignore.in")),
    ("README.md", include_str!("../../template/README.md.in")),
    ("pipeline.toml", include_str!("../../template/pipeline.toml.in")),
    ("src/main.rs", include_str!("../../template/src/main.rs.in")),
    ("src/lib.rs", include_str!("../../template/src/lib.rs.in")),
    ("src/level.rs", include_str!("../../template/src/level.rs.in")),
];

/// Names that a crate cannot have, with `_` for `-`: words of Rust, crates that it uses, folders of cargo.
const TAKEN: &str = "abstract as async await become box break const continue crate do dyn else enum extern false final \
                     fn for gen if impl in let loop macro match mod move mut priv pub ref return self static struct \
                     super test trait true try type unsafe use while \
                     alloc core level onbeat onbeat_cli proc_macro schemars serde std \
                     build deps examples incremental";

pub fn new(arguments: &NewArguments) -> Result<u8, CommandError> {
    let NewArguments { path, name, source } = arguments;
    let name = match name {
        Some(name) => name.clone(),
        None => path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
    };
    check(&name)?;
    let source = sources(source.as_deref())?;
    if path.exists() {
        return Err(CommandError::new(format!("{} is there already: give another name", path.display())));
    }
    let failed =
        |file: &Path, error: std::io::Error| CommandError::new(format!("{}: {error}", file.display()));
    for (file, text) in FILES {
        let file = path.join(file);
        let folder = file.parent().unwrap_or(path);
        fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        let text = text
            .replace("@name@", &name)
            .replace("@module@", &name.replace('-', "_"))
            .replace("@source@", &source.display().to_string().replace('\\', "\\\\").replace('"', "\\\""));
        fs::write(&file, text).map_err(|error| failed(&file, error))?;
    }
    // The versions that onbeat is tested with.
    let (from, to) = (source.join("Cargo.lock"), path.join("Cargo.lock"));
    fs::copy(&from, &to).map_err(|error| failed(&from, error))?;
    output::to_stdout(&format!(
        "made the crate `{name}` in {path}:\n\n  cd {path}\n  cargo test\n  cargo run --release -- run pipeline.toml\n\nThe operator is \
         in src/level.rs. Its onbeat is the source code in {source} (another one: --source FOLDER).\n",
        path = path.display(),
        source = source.display()
    ))?;
    Ok(0)
}

/// Refuses names that cargo would refuse.
fn check(name: &str) -> Result<(), CommandError> {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !starts || !name.chars().all(is_letter) || name.len() > 64 {
        return Err(CommandError::new(format!(
            "`{}` cannot be the name of a crate: use up to 64 letters, digits, `-` and `_`, with a letter first, or give \
             --name",
            name.escape_debug()
        )));
    }
    let in_rust = name.replace('-', "_");
    if TAKEN.split(' ').any(|taken| taken == in_rust) || in_rust.starts_with("onbeat_") {
        return Err(CommandError::new(format!("a crate cannot be called `{name}`: give another --name")));
    }
    Ok(())
}

/// The source code of onbeat: as given, around the current folder, or that which this program was built from.
fn sources(given: Option<&Path>) -> Result<PathBuf, CommandError> {
    let built = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let is_source = |folder: &Path| {
        folder.join("crates/onbeat/Cargo.toml").is_file() && folder.join("Cargo.lock").is_file()
    };
    let here = std::env::current_dir().unwrap_or_default();
    let around = || here.ancestors().find(|folder| is_source(folder)).map(Path::to_path_buf);
    let folder = given.map(Path::to_path_buf).or_else(around).unwrap_or(built);
    match folder.canonicalize() {
        Ok(found) if is_source(&folder) => Ok(found),
        _ if given.is_none() => Err(CommandError::new(
            "a crate with operators needs the source code of onbeat, and the folder that this program was built from is \
             not there: clone it, and give its folder with --source",
        )),
        _ => Err(CommandError::new(format!(
            "{} is not the source code of onbeat (there is no crates/onbeat): give the folder of a clone with --source",
            folder.display()
        ))),
    }
}
