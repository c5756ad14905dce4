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

/// Names that a crate cannot have: those of its dependencies, and words of Rust.
const TAKEN: [&str; 47] = [
    "abstract",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "onbeat",
    "onbeat-cli",
    "priv",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "unsafe",
    "use",
    "while",
];

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
        "made the crate `{name}` in {path}:\n\n  cd {path}\n  cargo test\n  cargo run --release -- run pipeline.toml\n\nThe \
         operator is in src/level.rs.\n",
        path = path.display()
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
    if TAKEN.contains(&name) {
        return Err(CommandError::new(format!("a crate cannot be called `{name}`: give another --name")));
    }
    Ok(())
}

/// The source code of onbeat.
fn sources(given: Option<&Path>) -> Result<PathBuf, CommandError> {
    let built = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let folder = given.unwrap_or(Path::new(built));
    let has_it = folder.join("crates/onbeat/Cargo.toml").is_file() && folder.join("Cargo.lock").is_file();
    match folder.canonicalize() {
        Ok(found) if has_it => Ok(found),
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
